"""How label sets are read: containers of labels, or an indicator; what is wrong with them is said with the sample."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import LabelError
from nhsvm.estimators._targets import Codes, Labels, _is_missing, unique
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.build import collection
from nhsvm.hierarchy.hashes import first_crowded
from nhsvm.model.sets import CONTAINERS, rows_of
from nhsvm.typing import PtrArray

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
Given = tuple[Labels, Codes, PtrArray, str]  # sample i has names[codes[indptr[i] : indptr[i + 1]]], some perhaps twice


def read(y: Any, hierarchy: Hierarchy | None, classes: Any) -> Given:
    """Label sets, or an indicator whose columns are called as :func:`nhsvm.estimators._label_sets.encode_sets` says."""
    return _from_matrix(y, hierarchy, classes) if is_matrix(y) else _from_sets(y, hierarchy)


def is_matrix(y: Any) -> bool:
    """Whether ``y`` has rows and columns, not one item a sample."""
    return bool(sp.issparse(y) or len(getattr(y, "shape", (1,))) != 1)


def row_of(indptr: PtrArray, k: Any) -> int:
    return int(np.searchsorted(indptr, k, side="right")) - 1


def _from_sets(y: Any, hierarchy: Hierarchy | None) -> Given:
    items = items_of(y)
    _check_sets(items, hierarchy)
    flat, sizes = list(chain.from_iterable(items)), np.fromiter(map(len, items), dtype=np.int64, count=len(items))
    indptr, rest = np.concatenate([[0], np.cumsum(sizes)]), iter(flat)
    try:
        crowded = first_crowded(rest)
        if crowded:
            raise LabelError(crowded)
        place = dict.fromkeys(flat)
    except TypeError:
        i = row_of(indptr, len(flat) - len(list(rest)) - 1)
        raise LabelError(f"sample {i}: a label must be hashable, unlike those in {items[i]!r}") from None
    if any(map(_is_missing, place)):
        i = row_of(indptr, [_is_missing(label) for label in flat].index(True))
        raise LabelError(f"Input y contains NaN: sample {i} has {items[i]!r}; leave out what is no label")
    names, ranks = unique(array_of(list(place)))
    rank = dict(zip(place, ranks.tolist(), strict=True))
    codes = np.fromiter(map(rank.__getitem__, flat), dtype=np.int64, count=len(flat))
    if rank.keys() <= {0, 1} and (sizes == sizes[:1]).all() and rows_of(codes, indptr, 2).nnz < len(codes):
        raise LabelError("y looks like rows of an indicator, but lists are label sets: give numpy.array(y)")
    kinds = {kind.__name__ for kind in set(map(type, items))}
    return names, codes, indptr, kinds.pop() if len(kinds) == 1 and kinds <= CONTAINERS.keys() else "list"


def _from_matrix(y: Any, hierarchy: Hierarchy | None, classes: Any) -> Given:
    matrix = y if sp.issparse(y) else np.asarray(y)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise LabelError(f"y must be label sets or a matrix with one column a class, not of shape {matrix.shape}")
    names = array_of(_columns(y, matrix.shape[1], hierarchy, classes), "columns of y")
    number = np.frompyfunc(lambda value: float(value) if isinstance(value, _NUMBERS) else np.nan, 1, 1)
    as_is = sp.issparse(y) or matrix.dtype.char in "?bBhHiIlLqQfd"
    rows = sp.csr_array(matrix if as_is else number(matrix).astype(np.float64), copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    for k in np.flatnonzero(rows.data != 1)[:1]:
        i, j = row_of(rows.indptr, k), rows.indices[k]
        value, name = rows.data[k] if sp.issparse(y) else matrix[i, j], names.tolist()[j]
        raise LabelError(f"an indicator holds 0 and 1, but sample {i} has {value} in column {j}, {name!r}")
    return names, rows.indices, rows.indptr.astype(np.int64), "sparse" if sp.issparse(y) else "dense"


def _columns(y: Any, width: int, hierarchy: Hierarchy | None, classes: Any) -> list[Any]:
    numbers = list(range(width))
    leaves = numbers if hierarchy is None else list(hierarchy.leaves)
    given = list(getattr(y, "columns", ()))
    if given and (given != numbers or set(numbers) <= set(leaves)):
        return given
    names, what = (leaves, "leaves") if classes is None else (items_of(classes), "classes")
    if len(names) == width:
        return names
    raise LabelError(f"y has {width} columns, but there are {len(names)} {what}: give label sets or a DataFrame")


def array_of(labels: list[Any], what: str = "labels") -> Labels:
    """Labels, all different, as an array; of objects, unless an array of another type has them as they are."""
    if any(map(_is_missing, labels)):
        raise LabelError(f"{what} must be labels, not {next(filter(_is_missing, labels))!r}")
    objects = np.empty(len(labels), dtype=object)
    objects[:] = labels
    distinct, codes = unique(objects)
    if len(distinct) < len(labels):
        twice = distinct[np.bincount(codes).argmax()]
        raise LabelError(f"{what} must be different from each other, but {twice!r} is there twice")
    if all(isinstance(label, (str, int, float, np.generic)) for label in labels):
        array = np.array(labels)
        if array.dtype.kind in "biufU" and array.tolist() == labels:
            return array
    return objects


def _check_sets(items: list[Any], hierarchy: Hierarchy | None) -> None:
    several = [] if set(map(type, items)) <= {list, set} else [is_set(item, hierarchy) for item in items]
    if all(several):
        return
    one = several.index(False)
    if _is_missing(items[one]):
        raise LabelError(f"Input y contains NaN: sample {one} has {items[one]!r}; drop samples without a label")
    other = ""
    if any(several):
        other = f", but sample {several.index(True)} a set of labels, {items[several.index(True)]!r}"
    hint = "; a tuple that is a node is one label" if any(isinstance(item, tuple) for item in items) else ""
    raise LabelError(f"sample {one} has one label, {items[one]!r}{other}; give every sample a set, or none{hint}")


def is_set(item: object, hierarchy: Hierarchy | None) -> bool:
    is_label = isinstance(item, (tuple, frozenset)) and hierarchy is not None and item in hierarchy
    return isinstance(item, (list, set, tuple, frozenset, np.ndarray)) and getattr(item, "ndim", 1) > 0 and not is_label


def items_of(y: Any) -> list[Any]:
    y = y.to_list() if hasattr(y, "to_list") else y.tolist() if hasattr(y, "tolist") else y  # polars would give series
    return list(collection(y, LabelError, "label sets"))
