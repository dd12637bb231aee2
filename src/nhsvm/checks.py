"""Checks, before any work, of what several parts of the library are given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import NHSVMError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.typing import FloatArray, Matrix


def matrix(U: npt.ArrayLike, name: str = "U", column: bool = False) -> FloatArray:
    """``U`` as a finite, non-empty, real 2-D array of floats; with ``column``, a 1-D array is one column."""
    given: Matrix = U
    if sp.issparse(given):
        given = given.toarray()
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"its entries are of type {array.dtype}")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise NHSVMError(f"{name} must be a matrix of real numbers: {error}") from None
    if column and array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise NHSVMError(f"{name} must be a 2-D array, one row a class, but has {array.ndim} dimensions")
    if array.size == 0:
        raise NHSVMError(f"{name} is empty: shape {array.shape}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        row, column = bad[0]
        raise NHSVMError(f"{name} must be finite, but entry [{row}, {column}] is {array[row, column]}")
    return array


def node_values(values: npt.ArrayLike, hierarchy: Hierarchy, name: str) -> FloatArray:
    """Finite numbers ≥ 0, one a node, as an array of their own; the error names the node."""
    try:
        array = np.array(values)
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise OptionError(f"{name} must be numbers, not {values!r}")
    if array.shape != (hierarchy.n_nodes,):
        raise OptionError(f"{name} must have one entry a node, {hierarchy.n_nodes}, not shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array) | (array < 0))
    if len(bad):
        raise OptionError(f"{name} must be finite and ≥ 0, but {hierarchy.nodes[bad[0]]!r} has {array[bad[0]]}")
    return array.astype(np.float64)


def a_hierarchy(hierarchy: Hierarchy) -> Hierarchy:
    """``hierarchy`` itself."""
    if not isinstance(hierarchy, Hierarchy):
        raise NHSVMError(f"hierarchy must be a Hierarchy, not a {type(hierarchy).__name__}")
    return hierarchy


def flag(name: str, value: object) -> bool:
    """True or False, not a text that happens to be true."""
    if not isinstance(value, (bool, np.bool_)):
        raise OptionError(f"{name} must be True or False, not {value!r}")
    return bool(value)
