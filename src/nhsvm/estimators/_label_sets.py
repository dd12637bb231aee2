"""Label sets of samples: what is accepted as a multi-label ``y``, its classes, and predictions in the same form."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import LabelError, UnknownLabelError
from nhsvm.estimators._targets import Codes, Labels, _is_missing, unique, within
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.build import collection
from nhsvm.hierarchy.graph import IntArray, PtrArray

_CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_Given = tuple[Labels, Codes, PtrArray, str]  # sample i has names[codes[indptr[i] : indptr[i + 1]]], some perhaps twice


@dataclass(frozen=True)
class LabelSets:
    """Encoded label sets.

    Attributes
    ----------
    hierarchy : Hierarchy
        The classes and what is above them; an inner node that is a class has a virtual leaf. All leaves are classes.
    classes, class_leaves : arrays of n_classes
        Sorted as for single labels, or the columns of an indicator as they stand; positions among the leaves.
    indptr, indices : arrays
        Sample i has the leaves ``indices[indptr[i]:indptr[i + 1]]``: positions, ascending, all different.
    form : {"list", "tuple", "set", "frozenset", "dense", "sparse"}
        What the label sets were given as: containers, or an indicator.
    """

    hierarchy: Hierarchy
    classes: Labels
    class_leaves: IntArray
    indptr: PtrArray
    indices: IntArray
    form: str


def is_multilabel(y: Any, hierarchy: Hierarchy | None = None) -> bool:
    """Whether ``y`` has label sets, not labels: in containers, or as a matrix or DataFrame of several columns.

    Lists, sets and arrays are label sets. So are tuples and frozensets that are no nodes of the hierarchy; without a
    hierarchy, where all that is hashable can be a label, they are labels unless another sample has a list or set.

    Examples
    --------
    >>> is_multilabel([{"dog", "cat"}, {"oak"}]), is_multilabel(["dog", "oak"]), is_multilabel(np.eye(2))
    (True, False, True)
    """
    shape: tuple[int, ...] = getattr(y, "shape", (1,))
    if len(shape) == 2:
        return bool(sp.issparse(y) or shape[1] > 1)
    if len(shape) != 1 or sp.issparse(y) or isinstance(y, (str, bytes)) or not hasattr(y, "__len__"):
        return False
    items = _items(y)
    surely = any(issubclass(kind, (list, set, np.ndarray)) for kind in set(map(type, items)))
    return surely or (hierarchy is not None and any(_is_set(item, hierarchy) for item in items))


def encode_sets(y: Any, hierarchy: Hierarchy | None, *, allow_empty: bool = False, classes: Any = None) -> LabelSets:
    """Check and encode label sets; ``hierarchy=None`` is the flat hierarchy over the classes.

    A label stands for itself and all above. A set that also names what is above, such as ``{"animal", "dog"}``, makes
    the inner node a class of its own, by a virtual leaf: "dog, and animal itself", as in ``LabelSpace``. So every set
    can come back as it was given; leave ancestors out that are only implied.

    Parameters
    ----------
    y : label sets, or indicator
        A list, tuple, set, frozenset or array of labels for every sample; or a matrix of 0 and 1 (dense, sparse or a
        DataFrame) with one column a class. It is called as in the DataFrame, or as in ``classes``, or like a leaf of
        the hierarchy, or 0, 1, ... without one. A DataFrame's 0, 1, ... are no names unless they are leaves.
    hierarchy : Hierarchy, optional
    allow_empty : bool
        Accept samples without a label.
    classes : array-like, optional
        All classes there will be, also those not in ``y``; for a matrix without names, what its columns are.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> sets = encode_sets([{"dog", "oak"}, {"animal"}], h)
    >>> sets.hierarchy.leaves, sets.indptr.tolist(), sets.indices.tolist()
    (('dog', 'animal', 'oak'), [0, 2, 3], [0, 2, 1])
    """
    is_matrix = sp.issparse(y) or len(getattr(y, "shape", (1,))) != 1
    names, codes, indptr, form = _from_matrix(y, hierarchy, classes) if is_matrix else _from_sets(y, hierarchy)
    if classes is not None:
        known = _array(_items(classes), "classes")
        known = known if is_matrix else unique(known)[0]  # columns as they stand
        names, codes = known, within(names, codes, known)
    empty = np.flatnonzero(np.diff(indptr) == 0)
    if len(empty) and not allow_empty:
        raise LabelError(f"sample {empty[0]} has no label: drop such samples, or accept them with allow_empty=True")
    if len(indptr) == 1 or not len(names):
        raise LabelError("y has no labels; fitting needs at least 1 sample, but there is 0 sample(s) with a label")
    if hierarchy is None:
        hierarchy = Hierarchy.from_edges([], nodes=names.tolist())
    else:
        unknown = np.array([label not in hierarchy for label in names.tolist()])
        if unknown.any():
            error = UnknownLabelError(names[unknown].tolist(), hierarchy.nodes)
            where = [f"; first in sample {_row(indptr, k)}" for k in np.flatnonzero(unknown[codes])[:1]]
            raise UnknownLabelError(error.labels, text="".join([str(error), *where]))
        hierarchy = hierarchy.with_virtual_leaves(names.tolist()).subset(names.tolist())
    positions = np.array([hierarchy.leaf_position(label) for label in names.tolist()], dtype=np.int32)
    rows = _rows(positions[codes], indptr, len(names))
    return LabelSets(hierarchy, names, positions, rows.indptr.astype(np.int64), rows.indices.astype(np.int32), form)


def decode_sets(encoded: LabelSets, indptr: Any, leaves: Any) -> Any:
    """Label sets in the form of those that were encoded.

    Parameters
    ----------
    encoded : LabelSets
    indptr, leaves : arrays
        Sample i has the leaves ``leaves[indptr[i]:indptr[i + 1]]``, positions in any order.

    Returns
    -------
    array of objects, or indicator
        Containers as given, with labels in the order of the classes; lists for arrays and a mix of containers. Or an
        indicator with the classes as columns: sparse of int8, or dense of int64, also for a DataFrame.

    Examples
    --------
    >>> decode_sets(encode_sets([("b", "a"), ("c",)], None), [0, 2, 3, 3], [1, 0, 2])
    array([('a', 'b'), ('c',), ()], dtype=object)
    """
    class_of = np.argsort(encoded.class_leaves)  # a permutation, so this is its inverse
    rows = _rows(class_of[np.asarray(leaves, dtype=np.int64)], indptr, len(class_of))
    if encoded.form not in _CONTAINERS:
        return rows if encoded.form == "sparse" else rows.astype(np.int64).toarray()
    labels, container = encoded.classes.astype(object)[rows.indices].tolist(), _CONTAINERS[encoded.form]
    found = np.empty(rows.shape[0], dtype=object)
    for i, (a, b) in enumerate(pairwise(rows.indptr.tolist())):
        found[i] = container(labels[a:b])
    return found


def _rows(indices: Any, indptr: Any, width: int) -> sp.csr_array:
    """A matrix with ones at the given places."""
    rows = sp.csr_array((np.ones(len(indices), np.int8), indices, indptr), (len(indptr) - 1, width), copy=True)
    rows.sum_duplicates()  # sorts too
    rows.data[:] = 1
    return rows


def _row(indptr: PtrArray, k: Any) -> int:
    return int(np.searchsorted(indptr, k, side="right")) - 1


def _from_sets(y: Any, hierarchy: Hierarchy | None) -> _Given:
    items = _items(y)
    _check_sets(items, hierarchy)
    flat, sizes = list(chain.from_iterable(items)), np.fromiter(map(len, items), dtype=np.int64, count=len(items))
    indptr, rest = np.concatenate([[0], np.cumsum(sizes)]), iter(flat)
    try:
        place = dict.fromkeys(rest)
    except TypeError:
        i = _row(indptr, len(flat) - len(list(rest)) - 1)
        raise LabelError(f"sample {i}: a label must be hashable, unlike those in {items[i]!r}") from None
    if any(map(_is_missing, place)):
        i = _row(indptr, [_is_missing(label) for label in flat].index(True))
        raise LabelError(f"Input y contains NaN: sample {i} has {items[i]!r}; leave out what is no label")
    names, ranks = unique(_array(list(place)))
    rank = dict(zip(place, ranks.tolist(), strict=True))
    codes = np.fromiter(map(rank.__getitem__, flat), dtype=np.int64, count=len(flat))
    if rank.keys() <= {0, 1} and (sizes == sizes[:1]).all() and _rows(codes, indptr, 2).nnz < len(codes):
        raise LabelError("y looks like rows of an indicator, but lists are label sets: give numpy.array(y)")
    kinds = {kind.__name__ for kind in set(map(type, items))}
    return names, codes, indptr, kinds.pop() if len(kinds) == 1 and kinds <= _CONTAINERS.keys() else "list"


def _from_matrix(y: Any, hierarchy: Hierarchy | None, classes: Any) -> _Given:
    matrix = y if sp.issparse(y) else np.asarray(y)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise LabelError(f"y must be label sets or a matrix with one column a class, not of shape {matrix.shape}")
    names = _array(_columns(y, matrix.shape[1], hierarchy, classes), "columns of y")
    number = np.frompyfunc(lambda value: float(value) if isinstance(value, _NUMBERS) else np.nan, 1, 1)
    as_is = sp.issparse(y) or matrix.dtype.char in "?bBhHiIlLqQfd"
    rows = sp.csr_array(matrix if as_is else number(matrix).astype(np.float64), copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    for k in np.flatnonzero(rows.data != 1)[:1]:
        i, j = _row(rows.indptr, k), rows.indices[k]
        value, name = rows.data[k] if sp.issparse(y) else matrix[i, j], names.tolist()[j]
        raise LabelError(f"an indicator holds 0 and 1, but sample {i} has {value} in column {j}, {name!r}")
    return names, rows.indices, rows.indptr.astype(np.int64), "sparse" if sp.issparse(y) else "dense"


def _columns(y: Any, width: int, hierarchy: Hierarchy | None, classes: Any) -> list[Any]:
    numbers = list(range(width))
    leaves = numbers if hierarchy is None else list(hierarchy.leaves)
    given = list(getattr(y, "columns", ()))
    if given and (given != numbers or set(numbers) <= set(leaves)):
        return given
    names, what = (leaves, "leaves") if classes is None else (_items(classes), "classes")
    if len(names) == width:
        return names
    raise LabelError(f"y has {width} columns, but there are {len(names)} {what}: give label sets or a DataFrame")


def _array(labels: list[Any], what: str = "labels") -> Labels:
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
    is_set = [] if set(map(type, items)) <= {list, set} else [_is_set(item, hierarchy) for item in items]
    if all(is_set):
        return
    one = is_set.index(False)
    if _is_missing(items[one]):
        raise LabelError(f"Input y contains NaN: sample {one} has {items[one]!r}; drop samples without a label")
    other = f", but sample {is_set.index(True)} a set of labels, {items[is_set.index(True)]!r}" if any(is_set) else ""
    hint = "; a tuple that is a node is one label" if any(isinstance(item, tuple) for item in items) else ""
    raise LabelError(f"sample {one} has one label, {items[one]!r}{other}; give every sample a set, or none{hint}")


def _is_set(item: object, hierarchy: Hierarchy | None) -> bool:
    is_label = isinstance(item, (tuple, frozenset)) and hierarchy is not None and item in hierarchy
    return isinstance(item, (list, set, tuple, frozenset, np.ndarray)) and getattr(item, "ndim", 1) > 0 and not is_label


def _items(y: Any) -> list[Any]:
    y = y.to_list() if hasattr(y, "to_list") else y.tolist() if hasattr(y, "tolist") else y  # polars would give series
    return list(collection(y, LabelError, "label sets"))
