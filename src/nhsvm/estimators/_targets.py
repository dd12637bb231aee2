"""Labels of samples: what is accepted as ``y``, the classes in it, and where they are in the hierarchy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from nhsvm.errors import LabelError, UnknownLabelError
from nhsvm.hierarchy import Hierarchy, LabelSpace
from nhsvm.hierarchy.hashes import Hashes, too_many
from nhsvm.typing import IntArray

_SETS = "label sets, where one label a sample is needed: fit learns from label sets, with solver='dual'"
Labels = npt.NDArray[Any]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Targets:
    """Encoded labels.

    Attributes
    ----------
    hierarchy : Hierarchy
        Restricted to the classes seen and what is above them; an inner node that is a label has a virtual leaf.
    classes : array of n_classes
        Sorted, by type and text if their types cannot be compared.
    class_leaves : array of n_classes
        Position of every class among the leaves of the hierarchy.
    codes : array of n_samples
        Position of every label among the classes.
    """

    hierarchy: Hierarchy
    classes: Labels
    class_leaves: IntArray
    codes: Codes

    @property
    def n_samples(self) -> int:
        return len(self.codes)

    @property
    def leaves(self) -> IntArray:
        """Position of every label among the leaves."""
        return self.class_leaves[self.codes]


def encode(y: Any, hierarchy: Hierarchy | None, classes: Any = None) -> Targets:
    """Check and encode labels; ``hierarchy=None`` is the flat hierarchy over the classes.

    Parameters
    ----------
    y : array-like of labels, one a sample
    hierarchy : Hierarchy, optional
    classes : array-like, optional
        All classes there will be, when ``y`` is only a first part of the data.
    """
    distinct, codes = unique(as_labels(y))
    if not len(distinct):
        raise LabelError("y has no labels; fitting needs at least 1 sample, but there is 0 sample(s)")
    if classes is not None:
        known, _ = unique(as_labels(classes))
        distinct, codes = known, within(distinct, codes, known)
    if hierarchy is None:
        space = LabelSpace(Hierarchy.from_edges([], nodes=distinct.tolist()))
    else:
        space = _space(hierarchy, distinct.tolist())
        if space.multilabel:
            raise LabelError(_SETS)
        space = LabelSpace(space.hierarchy.subset(distinct.tolist()))
    positions = np.asarray(space.encode(distinct.tolist()), dtype=np.int32)
    return Targets(space.hierarchy, distinct, positions, codes)


def _space(hierarchy: Hierarchy, labels: list[Any]) -> LabelSpace:
    try:
        return LabelSpace.for_labels(hierarchy, labels)
    except UnknownLabelError as error:
        if labels != list(range(len(labels))):
            raise
        hint = (
            "; if you did not write these numbers, scikit-learn did: cross_val_predict replaces labels by numbers for "
            "every method but 'predict', and so do CalibratedClassifierCV(ensemble=False) and method='temperature'"
        )
        raise UnknownLabelError(error.labels, text=str(error) + hint) from None


def as_labels(y: Any) -> Labels:
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
        array: Labels = column_or_1d(y, warn=True)
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


def unique(labels: Labels) -> tuple[Labels, Codes]:
    """Distinct labels and which of them every sample has."""
    if labels.dtype.kind != "O":
        distinct, codes = np.unique(labels, return_inverse=True)
        return distinct, codes.astype(np.int64, copy=False)
    place: dict[Any, int] = {}
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
    names = list(place)
    try:
        if any(isinstance(name, frozenset) for name in names):
            raise TypeError("sets are ordered by inclusion only")
        order = sorted(range(len(names)), key=names.__getitem__)
    except TypeError:  # 3 and "three"
        order = sorted(range(len(names)), key=lambda k: (type(names[k]).__name__, repr(names[k])))
    distinct = np.empty(len(names), dtype=object)
    distinct[:] = [names[k] for k in order]
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return distinct, rank[codes]


def _is_missing(label: Any) -> bool:
    """None, NaN, NaT and pandas.NA: the last three are not equal to themselves, or will not say."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def within(distinct: Labels, codes: Codes, classes: Labels) -> Codes:
    """The same codes, counted in a larger list of classes."""
    place = {label: k for k, label in enumerate(classes.tolist())}
    missing = [label for label in distinct.tolist() if label not in place]
    if missing:
        raise LabelError(f"y has {missing[0]!r}, which is not in classes")
    return np.array([place[label] for label in distinct.tolist()], dtype=np.int64)[codes]
