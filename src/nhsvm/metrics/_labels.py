"""What is accepted as ``y``: labels, label sets or a 0/1 matrix, turned into a sparse 0/1 matrix over the nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import DataError, LabelError, UnknownLabelError
from nhsvm.hierarchy import Hierarchy, VirtualLeaf
from nhsvm.hierarchy.graph import IntArray
from nhsvm.hierarchy.labels import samples


def indicators(y: Any, hierarchy: Hierarchy, columns: IntArray | None, name: str) -> sp.csr_array:
    """Booleans, ``[i, n]`` when sample i has label n: no stored zeros, ascending columns.

    A label on an inner node is that node, whether or not it has a virtual leaf.

    Parameters
    ----------
    y : labels, label sets or 0/1 matrix
    hierarchy : Hierarchy
    columns : array of node numbers, or None
        What the columns of a matrix are; None for the leaves.
    name : str
        "y_true" or "y_pred", for messages.
    """
    if sp.issparse(y) or getattr(y, "ndim", 1) > 1:
        return _from_matrix(y, hierarchy, columns, name)
    items = samples(y.tolist() if hasattr(y, "tolist") and getattr(y, "ndim", 1) == 1 else y)
    if not items:
        raise DataError(f"{name} has no samples")
    is_set = [_is_set(item, hierarchy) for item in items]
    if not any(is_set):
        sizes = np.ones(len(items), dtype=np.int64)
        numbers = _numbers(([item] for item in items), hierarchy, name)
    elif all(is_set):
        sizes = np.array([len(item) for item in items], dtype=np.int64)
        numbers = _numbers(items, hierarchy, name)
    else:
        one, several = is_set.index(False), is_set.index(True)
        raise LabelError(
            f"{name}: sample {one} has one label, {items[one]!r}, but sample {several} a set of labels, "
            f"{items[several]!r}; give every sample a set, or none"
        )
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    found = sp.csr_array((np.ones(len(numbers), dtype=bool), numbers, indptr), shape=(len(items), hierarchy.n_nodes))
    found.sum_duplicates()  # a label named twice; sorts too
    return found


def column_numbers(labels: Any, hierarchy: Hierarchy, name: str) -> IntArray:
    """Node numbers of the labels that name the columns of a matrix, all different."""
    given = samples(labels)
    numbers = _numbers([given], hierarchy, name, place="")
    distinct, times = np.unique(numbers, return_counts=True)
    if len(distinct) < len(numbers):
        twice = hierarchy.nodes[distinct[times > 1][0]]
        raise LabelError(f"{name} must be different from each other, but {twice!r} is there twice")
    return numbers


def class_numbers(hierarchy: Hierarchy) -> IntArray:
    """Node numbers of ``hierarchy.leaves``; in place of a virtual leaf, the node it stands for."""
    return hierarchy.numbers(list(hierarchy.leaves))


def _numbers(rows: Iterable[Iterable[Any]], hierarchy: Hierarchy, name: str, place: str = ", sample {}") -> IntArray:
    found: list[int] = []
    for i, row in enumerate(rows):
        for label in row:
            try:
                found.append(hierarchy.number(label.of if isinstance(label, VirtualLeaf) else label))
            except UnknownLabelError as error:
                raise UnknownLabelError(error.labels, text=f"{name}{place.format(i)}: {error}") from None
            except LabelError as error:
                raise LabelError(f"{name}{place.format(i)}: {error}") from None
    return np.array(found, dtype=np.int32)


def _from_matrix(y: Any, hierarchy: Hierarchy, columns: IntArray | None, name: str) -> sp.csr_array:
    given = y if sp.issparse(y) else np.asarray(y)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise LabelError(f"{name} must be labels, label sets or a 0/1 matrix, not {given.dtype} of shape {given.shape}")
    if columns is None:
        columns = class_numbers(hierarchy)
        if given.shape[1] != len(columns):
            raise LabelError(
                f"{name} has {given.shape[1]} columns, but the hierarchy {len(columns)} leaves: "
                "say with labels=... what the columns are"
            )
    elif given.shape[1] != len(columns):
        raise LabelError(f"{name} has {given.shape[1]} columns, but there are {len(columns)} labels")
    if not given.shape[0]:
        raise DataError(f"{name} has no samples")
    matrix = sp.csr_array(given, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    bad = np.flatnonzero(matrix.data != 1)
    if len(bad):
        sample = np.searchsorted(matrix.indptr, bad[0], side="right") - 1
        label = hierarchy.nodes[columns[matrix.indices[bad[0]]]]
        raise LabelError(f"{name}, sample {sample}: expected 0 or 1 for {label!r}, not {matrix.data[bad[0]]}")
    numbers = columns[matrix.indices]
    shape = (given.shape[0], hierarchy.n_nodes)
    found = sp.csr_array((matrix.data.astype(bool), numbers, matrix.indptr), shape=shape)
    found.sort_indices()
    return found


def _is_set(item: object, hierarchy: Hierarchy) -> bool:
    """A set, list or array; a tuple or frozenset too, unless it is itself a label."""
    if isinstance(item, (tuple, frozenset)):
        return item not in hierarchy
    return isinstance(item, (set, list)) or (isinstance(item, np.ndarray) and item.ndim > 0)
