"""Labels of samples: what is accepted as ``y``, the classes in it, and where they are in the hierarchy.

A label set is a container of labels, or a row of an indicator. What is wrong with labels is said with the sample.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from nhsvm.errors import LabelError, UnknownLabelError
from nhsvm.hierarchy import Hierarchy, LabelSpace
from nhsvm.hierarchy.build import collection
from nhsvm.hierarchy.graph import Ragged
from nhsvm.hierarchy.hashes import Hashes, first_crowded, too_many
from nhsvm.model.sets import CONTAINERS, decoded, rows_of
from nhsvm.typing import Array, IntArray, Label, LabelsLike, PtrArray

_SETS = "label sets, where one label a sample is needed: fit learns from label sets, with solver='dual'"
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


# -- what the rest of the library gets ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class EncodedLabels(ABC):
    """Labels or label sets of samples, as numbers.

    Attributes
    ----------
    hierarchy : Hierarchy
        The classes and what is above them; an inner node that is a class has a virtual leaf. All leaves are classes.
    classes : array of n_classes
        Sorted, by type and text if their types cannot be compared; the columns of an indicator as they stand.
    class_leaves : array of n_classes
        Position of every class among the leaves of the hierarchy.
    multilabel : bool
        Whether samples have label sets.
    """

    multilabel: ClassVar[bool]
    hierarchy: Hierarchy
    classes: Array
    class_leaves: IntArray

    @abstractmethod
    def leaf_rows(self) -> Ragged:
        """Positions of the leaves that every sample has, ascending."""

    @abstractmethod
    def given(self, rows: PtrArray) -> Array:
        """Labels or label sets of some samples, as users have them."""

    @property
    def n_samples(self) -> int:
        return len(self.leaf_rows().indptr) - 1


@dataclass(frozen=True)
class Targets(EncodedLabels):
    """One label a sample.

    Attributes
    ----------
    codes : array of n_samples
        Position of every label among the classes.
    """

    multilabel = False
    codes: PtrArray

    @property
    def leaves(self) -> IntArray:
        """Position of every label among the leaves."""
        return self.class_leaves[self.codes]

    def leaf_rows(self) -> Ragged:
        return Ragged(np.arange(len(self.codes) + 1, dtype=np.int64), self.leaves)

    def given(self, rows: PtrArray) -> Array:
        return self.classes[self.codes[rows]]


@dataclass(frozen=True)
class LabelSets(EncodedLabels):
    """A label set a sample.

    Attributes
    ----------
    indptr, indices : arrays
        Sample i has the leaves ``indices[indptr[i]:indptr[i + 1]]``: positions, ascending, all different.
    form : {"list", "tuple", "set", "frozenset", "dense", "sparse"}
        What the label sets were given as: containers, or an indicator.
    """

    multilabel = True
    indptr: PtrArray
    indices: IntArray
    form: str

    def leaf_rows(self) -> Ragged:
        return Ragged(self.indptr, self.indices)

    def given(self, rows: PtrArray) -> Array:
        return self.decoded(*self.leaf_rows().rows(rows))

    def matrix(self, dtype: type[np.integer]) -> sp.csr_array:
        """The same as a 0/1 matrix, (n_samples, n_leaves)."""
        ones = np.ones(len(self.indices), dtype)
        return sp.csr_array((ones, self.indices, self.indptr), (self.n_samples, len(self.classes)))

    def decoded(self, indptr: PtrArray, leaves: IntArray) -> Array:
        """Label sets in the form of these: sample i has ``leaves[indptr[i]:indptr[i + 1]]``, positions in any order.

        Containers have labels in the order of the classes; they are lists for arrays and a mix of containers. Or it is
        an indicator with the classes as columns: sparse of int8, or dense of int64, also for a DataFrame.

        Examples
        --------
        >>> encode_sets([("b", "a"), ("c",)], None).decoded(np.array([0, 2, 3, 3]), np.array([1, 0, 2]))
        array([('a', 'b'), ('c',), ()], dtype=object)
        """
        found: Array = decoded(self.classes, self.class_leaves, self.form, indptr, leaves)
        return found


def encode(y: LabelsLike, hierarchy: Hierarchy | None, classes: LabelsLike = None) -> Targets:
    """Check and encode labels, one a sample; ``hierarchy=None`` is the flat hierarchy over the classes.

    ``classes`` are all that there will be, when ``y`` is only a first part of the data.
    """
    distinct, codes = unique(as_labels(y))
    if not len(distinct):
        raise LabelError("y has no labels; fitting needs at least 1 sample, but there is 0 sample(s)")
    if classes is not None:
        known, _ = unique(as_labels(classes))
        distinct, codes = known, within(distinct, codes, known)
    labels = distinct.tolist()
    found = Hierarchy.from_edges([], nodes=labels) if hierarchy is None else _space(hierarchy, labels).subset(labels)
    return Targets(found, distinct, _positions(found, labels), codes)


def encode_sets(
    y: LabelsLike, hierarchy: Hierarchy | None, *, allow_empty: bool = False, classes: LabelsLike = None
) -> LabelSets:
    """Check and encode label sets; ``hierarchy=None`` is the flat hierarchy over the classes.

    A label set is a list, tuple, set, frozenset or array of labels. A label stands for itself and all above. A set that
    also names what is above, such as ``{"animal", "dog"}``, makes the inner node a class of its own, by a virtual leaf:
    "dog, and animal itself", as in ``LabelSpace``. So every set can come back as it was given; leave ancestors out that
    are only implied.

    An indicator is a matrix of 0 and 1 (dense, sparse or a DataFrame) with one column a class. That is called as in the
    DataFrame, or as in ``classes``, or like a leaf of the hierarchy, or 0, 1, ... without one. A DataFrame's 0, 1, ...
    are no names unless they are leaves.

    ``classes`` are all that there will be, also those not in ``y``; ``allow_empty`` accepts samples without a label.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> sets = encode_sets([{"dog", "oak"}, {"animal"}], h)
    >>> sets.hierarchy.leaves, sets.indptr.tolist(), sets.indices.tolist()
    (('dog', 'animal', 'oak'), [0, 2, 3], [0, 2, 1])
    """
    names, codes, indptr, form = read(y, hierarchy, classes)
    if classes is not None:
        known = _array_of(_items_of(classes), "classes")
        known = known if is_matrix(y) else unique(known)[0]  # columns as they stand
        names, codes = known, within(names, codes, known)
    empty = np.flatnonzero(np.diff(indptr) == 0)
    if len(empty) and not allow_empty:
        raise LabelError(f"sample {empty[0]} has no label: drop such samples, or accept them with allow_empty=True")
    if len(indptr) == 1 or not len(names):
        raise LabelError("y has no labels; fitting needs at least 1 sample, but there is 0 sample(s) with a label")
    labels = names.tolist()
    if hierarchy is None:
        hierarchy = Hierarchy.from_edges([], nodes=labels)
    else:
        unknown = np.array([label not in hierarchy for label in labels])
        if unknown.any():
            error = UnknownLabelError(names[unknown].tolist(), hierarchy.nodes)
            where = [f"; first in sample {row_of(indptr, k)}" for k in np.flatnonzero(unknown[codes])[:1]]
            raise UnknownLabelError(error.labels, text="".join([str(error), *where]))
        hierarchy = hierarchy.with_virtual_leaves(labels).subset(labels)
    positions = _positions(hierarchy, labels)
    rows = rows_of(positions[codes], indptr, len(names))
    return LabelSets(hierarchy, names, positions, rows.indptr.astype(np.int64), rows.indices.astype(np.int32), form)


def matrix_of(y: LabelsLike, hierarchy: Hierarchy, classes: Array) -> sp.csr_array:
    """Label sets as a 0/1 matrix with a column a class, and a last one for all labels that are no class.

    They are given as for :func:`encode_sets`, and may be empty.
    """
    names, codes, indptr, _ = read(y, hierarchy, classes)
    place = {label: k for k, label in enumerate(classes.tolist())}
    columns = np.array([place.get(label, len(place)) for label in names.tolist()], dtype=np.int64)
    return rows_of(columns[codes], indptr, len(place) + 1)


def _space(hierarchy: Hierarchy, labels: list[Label]) -> Hierarchy:
    """The hierarchy with a virtual leaf for every label on an inner node."""
    try:
        space = LabelSpace.for_labels(hierarchy, labels)
    except UnknownLabelError as error:
        if labels != list(range(len(labels))):
            raise
        hint = (
            "; if you did not write these numbers, scikit-learn did: cross_val_predict replaces labels by numbers for "
            "every method but 'predict', and so do CalibratedClassifierCV(ensemble=False) and method='temperature'"
        )
        raise UnknownLabelError(error.labels, text=str(error) + hint) from None
    if space.multilabel:
        raise LabelError(_SETS)
    return space.hierarchy


def _positions(hierarchy: Hierarchy, labels: list[Label]) -> IntArray:
    return np.array([hierarchy.leaf_position(label) for label in labels], dtype=np.int32)


# -- one label a sample ------------------------------------------------------------------------------------------------


def as_labels(y: LabelsLike) -> Array:
    """``y`` as a one-dimensional array; tuples are labels, not rows, and 3 beside "three" stays a number."""
    if y is None:
        raise LabelError("requires y to be passed, but the target y is None: give one label a sample")
    if isinstance(y, (list, tuple)):
        if any(isinstance(label, (list, set)) for label in y):
            raise LabelError(_SETS)
        text = [isinstance(label, (str, bytes)) for label in y]
        if any(isinstance(label, (tuple, frozenset)) for label in y) or (any(text) and not all(text)):
            objects = np.empty(len(y), dtype=object)
            objects[:] = y
            return objects
    try:
        array: Array = column_or_1d(y, warn=True)
        bad = np.flatnonzero(~np.isfinite(array)) if array.dtype.kind in "fc" else np.zeros(0, dtype=np.int64)
        if len(bad):
            what = "NaN" if np.isnan(array[bad[0]]) else "infinity"
            raise LabelError(f"Input y contains {what}: sample {bad[0]}; drop samples without a label")
        # amounts or bytes; of others it would only say that classes are many, which is the rule here
        if array.dtype.kind in "fcS":
            check_classification_targets(array)
    except (ValueError, TypeError) as error:
        raise LabelError(str(error)) from error
    return array


def unique(labels: Array) -> tuple[Array, PtrArray]:
    """Distinct labels and which of them every sample has."""
    if labels.dtype.kind != "O":
        distinct, codes = np.unique(labels, return_inverse=True)
        return distinct, codes.astype(np.int64, copy=False)
    place: dict[Label, int] = {}
    codes = np.empty(len(labels), dtype=np.int64)
    hashes = Hashes()
    for i, label in enumerate(labels):
        try:
            if label not in place and hashes.crowded(label):
                raise LabelError(f"sample {i}: {too_many(label)}")
            codes[i] = place.setdefault(label, len(place))
        except TypeError:
            raise LabelError(f"labels must be hashable, but sample {i} has {label!r}") from None
        if codes[i] == len(place) - 1 and _is_missing(label):
            raise LabelError(f"Input y contains NaN: sample {i} has {label!r}; drop samples without a label")
    order = _order(list(place))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return _objects(list(place))[order], rank[codes]


def within(distinct: Array, codes: PtrArray, classes: Array) -> PtrArray:
    """The same codes, counted in a larger list of classes."""
    place = {label: k for k, label in enumerate(classes.tolist())}
    missing = [label for label in distinct.tolist() if label not in place]
    if missing:
        raise LabelError(f"y has {missing[0]!r}, which is not in classes")
    return np.array([place[label] for label in distinct.tolist()], dtype=np.int64)[codes]


def _order(labels: list[Label]) -> list[int]:
    """What sorts labels; by type and text if they cannot be compared."""
    try:
        if any(isinstance(label, frozenset) for label in labels):
            raise TypeError("sets are ordered by inclusion only")
        return sorted(range(len(labels)), key=labels.__getitem__)  # type: ignore[arg-type]
    except TypeError:  # 3 and "three"
        return sorted(range(len(labels)), key=lambda k: (type(labels[k]).__name__, repr(labels[k])))


def _objects(items: list[Label]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _is_missing(label: object) -> bool:
    """None, NaN, NaT and pandas.NA: the last three are not equal to themselves, or will not say."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


# -- label sets --------------------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """Label sets as they were given: sample i has ``names[codes[indptr[i] : indptr[i + 1]]]``, some perhaps twice."""

    names: Array
    codes: PtrArray
    indptr: PtrArray
    form: str


def is_multilabel(y: LabelsLike, hierarchy: Hierarchy | None = None) -> bool:
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
    items = _items_of(y)
    surely = any(issubclass(kind, (list, set, np.ndarray)) for kind in set(map(type, items)))
    return surely or (hierarchy is not None and any(_is_set(item, hierarchy) for item in items))


def read(y: LabelsLike, hierarchy: Hierarchy | None, classes: LabelsLike) -> Given:
    """Label sets, or an indicator whose columns are called as :func:`encode_sets` says."""
    return _from_matrix(y, hierarchy, classes) if is_matrix(y) else _from_sets(y, hierarchy)


def is_matrix(y: LabelsLike) -> bool:
    """Whether ``y`` has rows and columns, not one item a sample."""
    return bool(sp.issparse(y) or len(getattr(y, "shape", (1,))) != 1)


def row_of(indptr: PtrArray, k: int | np.integer) -> int:
    """The sample whose labels include the k-th of all."""
    return int(np.searchsorted(indptr, k, side="right")) - 1


def _from_sets(y: LabelsLike, hierarchy: Hierarchy | None) -> Given:
    items = _items_of(y)
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
    names, ranks = unique(_array_of(list(place)))
    rank = dict(zip(place, ranks.tolist(), strict=True))
    codes = np.fromiter(map(rank.__getitem__, flat), dtype=np.int64, count=len(flat))
    if rank.keys() <= {0, 1} and (sizes == sizes[:1]).all() and rows_of(codes, indptr, 2).nnz < len(codes):
        raise LabelError("y looks like rows of an indicator, but lists are label sets: give numpy.array(y)")
    kinds = {kind.__name__ for kind in set(map(type, items))}
    return Given(names, codes, indptr, kinds.pop() if len(kinds) == 1 and kinds <= CONTAINERS.keys() else "list")


def _from_matrix(y: LabelsLike, hierarchy: Hierarchy | None, classes: LabelsLike) -> Given:
    matrix = y if sp.issparse(y) else np.asarray(y)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise LabelError(f"y must be label sets or a matrix with one column a class, not of shape {matrix.shape}")
    names = _array_of(_columns(y, matrix.shape[1], hierarchy, classes), "columns of y")
    number = np.frompyfunc(lambda value: float(value) if isinstance(value, _NUMBERS) else np.nan, 1, 1)
    as_is = sp.issparse(y) or matrix.dtype.char in "?bBhHiIlLqQfd"
    rows = sp.csr_array(matrix if as_is else number(matrix).astype(np.float64), copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    for k in np.flatnonzero(rows.data != 1)[:1]:
        i, j = row_of(rows.indptr, k), rows.indices[k]
        value, name = rows.data[k] if sp.issparse(y) else matrix[i, j], names.tolist()[j]
        raise LabelError(f"an indicator holds 0 and 1, but sample {i} has {value} in column {j}, {name!r}")
    return Given(names, rows.indices, rows.indptr.astype(np.int64), "sparse" if sp.issparse(y) else "dense")


def _columns(y: LabelsLike, width: int, hierarchy: Hierarchy | None, classes: LabelsLike) -> list[Label]:
    numbers: list[Label] = list(range(width))
    leaves = numbers if hierarchy is None else list(hierarchy.leaves)
    given: list[Label] = list(getattr(y, "columns", ()))
    if given and (given != numbers or set(numbers) <= set(leaves)):
        return given
    names, what = (leaves, "leaves") if classes is None else (_items_of(classes), "classes")
    if len(names) == width:
        return names
    raise LabelError(f"y has {width} columns, but there are {len(names)} {what}: give label sets or a DataFrame")


def _array_of(labels: list[Label], what: str = "labels") -> Array:
    """Labels, all different, as an array; of objects, unless an array of another type has them as they are."""
    if any(map(_is_missing, labels)):
        raise LabelError(f"{what} must be labels, not {next(filter(_is_missing, labels))!r}")
    objects = _objects(labels)
    distinct, codes = unique(objects)
    if len(distinct) < len(labels):
        twice = distinct[np.bincount(codes).argmax()]
        raise LabelError(f"{what} must be different from each other, but {twice!r} is there twice")
    if all(isinstance(label, (str, int, float, np.generic)) for label in labels):
        array = np.array(labels)
        if array.dtype.kind in "biufU" and array.tolist() == labels:
            return array
    return objects


def _check_sets(items: LabelsLike, hierarchy: Hierarchy | None) -> None:
    several = [] if set(map(type, items)) <= {list, set} else [_is_set(item, hierarchy) for item in items]
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


def _is_set(item: object, hierarchy: Hierarchy | None) -> bool:
    is_label = isinstance(item, (tuple, frozenset)) and hierarchy is not None and item in hierarchy
    return isinstance(item, (list, set, tuple, frozenset, np.ndarray)) and getattr(item, "ndim", 1) > 0 and not is_label


def _items_of(y: LabelsLike) -> LabelsLike:
    """A list of what there is of every sample."""
    y = y.to_list() if hasattr(y, "to_list") else y.tolist() if hasattr(y, "tolist") else y  # polars would give series
    return list(collection(y, LabelError, "label sets"))
