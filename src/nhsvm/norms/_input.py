"""Checks before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import NHSVMError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray


def matrix(U: npt.ArrayLike, name: str = "U", column: bool = False) -> FloatArray:
    """``U`` as a finite, non-empty, real 2-D array of floats; with ``column``, a 1-D array is one column."""
    given: Any = U
    if hasattr(given, "toarray"):  # scipy.sparse
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


def tolerance(tol: float) -> float:
    """``tol`` as a positive float."""
    if isinstance(tol, bool) or not isinstance(tol, (int, float, np.floating)) or not 0 < tol < np.inf:
        raise OptionError(f"tol must be a positive number, not {tol!r}")
    return float(tol)


def a_hierarchy(hierarchy: Hierarchy) -> Hierarchy:
    """``hierarchy`` itself."""
    if not isinstance(hierarchy, Hierarchy):
        raise NHSVMError(f"hierarchy must be a Hierarchy, not a {type(hierarchy).__name__}")
    return hierarchy
