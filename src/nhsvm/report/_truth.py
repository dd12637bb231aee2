"""Labels of the samples, as a sparse 0/1 matrix over the nodes of a hierarchy that holds all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm.checks import a_hierarchy
from nhsvm.errors import DataError, LabelError, UnknownLabelError
from nhsvm.estimators.labels import as_labels, is_multilabel, read, row_of, unique
from nhsvm.hierarchy import Hierarchy
from nhsvm.report._model import Parts
from nhsvm.typing import BoolArray, IntArray


class Truth(NamedTuple):
    """What is true, and where labels stand."""

    hierarchy: Hierarchy
    true: sp.csr_array
    """Booleans, (n_samples, n_nodes); labels without what is above them."""
    class_nodes: IntArray
    """Node of every class of the model."""
    unseen: BoolArray
    """Which nodes are labels of samples, but no class."""


def read_truth(y: Any, parts: Parts, hierarchy: Hierarchy | None) -> Truth:
    """Check and encode ``y``, before anything is predicted."""
    given = hierarchy if hierarchy is not None else getattr(parts.last, "hierarchy", None)
    if given is not None:
        a_hierarchy(given)
    classes = parts.last.classes_
    names, codes, indptr = _labels(y, parts, given)
    sizes = np.diff(indptr)
    if not len(sizes):
        raise DataError("y has no samples")
    if not parts.has_sets and (sizes != 1).any():
        i = int(np.flatnonzero(sizes != 1)[0])
        raise LabelError(f"the model predicts one label a sample, but sample {i} of y has {sizes[i]}")
    if given is None:  # the flat hierarchy of a model without one; training need not have seen all labels
        given = Hierarchy.from_edges([], nodes=dict.fromkeys([*classes.tolist(), *names.tolist()]))
    class_nodes = _class_nodes(classes, given)
    numbers = _numbers(names, codes, indptr, given)
    unseen = np.zeros(given.n_nodes, dtype=bool)
    unseen[numbers] = True
    unseen[class_nodes] = False
    return Truth(given, indicator(numbers[codes], indptr, given.n_nodes), class_nodes, unseen)


def indicator(nodes: Any, indptr: Any, n_nodes: int) -> sp.csr_array:
    """Booleans with ones at the given nodes of every sample; sorted, each once."""
    shape = (len(indptr) - 1, n_nodes)
    found = sp.csr_array((np.ones(len(nodes), dtype=bool), nodes, indptr), shape=shape)
    found.sum_duplicates()
    return found


def as_nodes(predicted: Any, truth: Truth, classes: Any) -> sp.csr_array:
    """Predicted labels, one a sample, over the same nodes."""
    distinct, codes = unique(as_labels(predicted))
    place = dict(zip(classes.tolist(), truth.class_nodes.tolist(), strict=True))
    numbers = np.array([place[label] for label in distinct.tolist()], dtype=np.int32)
    return indicator(numbers[codes], np.arange(len(codes) + 1), truth.hierarchy.n_nodes)


def _labels(y: Any, parts: Parts, hierarchy: Hierarchy | None) -> tuple[Any, Any, Any]:
    """(names, codes, indptr): sample i has the labels names[codes[indptr[i]:indptr[i + 1]]]."""
    # a tuple is a label set for a model of label sets, unless it is a node; for others it is a label
    known = hierarchy if hierarchy is not None or not parts.has_sets else parts.last.hierarchy_
    if is_multilabel(y, known):
        names, codes, indptr, _ = read(y, known, parts.last.classes_)
        return names, codes, indptr
    names, codes = unique(as_labels(y))
    return names, codes, np.arange(len(codes) + 1)


def _class_nodes(classes: Any, hierarchy: Hierarchy) -> IntArray:
    try:
        return hierarchy.numbers(classes.tolist())
    except UnknownLabelError as error:
        raise UnknownLabelError(error.labels, text=f"a class of the model is {error}") from None


def _numbers(names: Any, codes: Any, indptr: Any, hierarchy: Hierarchy) -> IntArray:
    unknown = np.array([label not in hierarchy for label in names.tolist()], dtype=bool)
    if unknown.any():
        found = UnknownLabelError(names[unknown].tolist(), hierarchy.nodes)
        first = int(np.flatnonzero(unknown[codes])[0])
        raise UnknownLabelError(found.labels, text=f"{found}; first in sample {row_of(indptr, first)} of y")
    return np.array([hierarchy.number(label) for label in names.tolist()], dtype=np.int32)
