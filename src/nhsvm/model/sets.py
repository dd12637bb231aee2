"""Label sets: the best one under scores of nodes, what labels add to it, probabilities of nodes, and forms of sets.

What is above a label is understood: a label set is a set of leaves, and stands for them and all of their ancestors.

Probabilities of nodes are logistic curves of what the model says of a node, and of others:

    P(n|x) = 1 / (1 + exp(−(a_n m_n(x) + b_n + w_n·z(x)))).

The margin m_n(x) is the most that a label at or below n adds to the best label set. z(x) is where the scores of all
nodes lie along the few directions in which they differ most: nodes go together, and a margin says little of a node with
few samples. Finally, no node is made more probable than its parents.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles.choice import AUTO, answering_oracle
from nhsvm.threads import Team
from nhsvm.typing import Array, BoolArray, ByteArray, FloatArray, Floats, IntArray, LabelsLike, PtrArray

CONTAINERS: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
FORMS = (*CONTAINERS, "dense", "sparse")
_CHUNK = 2**18  # scores of nodes at work at a time


class SetForm(NamedTuple):
    """What label sets of a model look like, and how they are found."""

    form: str
    """What they were given as: one of ``FORMS``, containers or an indicator."""
    allow_empty: bool
    leaf_offset: float
    """Added to the scores of leaves, in training and prediction."""
    independent: bool = False
    """Whether each label has a score of its own, as in HR-SVM; else the best set as a whole is searched for."""
    oracle: str = AUTO
    """The oracle of training, which proves sets in prediction too if it can."""

    def inference(self, graph: Graph, columns: Columns, class_leaves: IntArray, *, exact: bool) -> Inference:
        """What finds the best label sets under scores of the columns."""
        if self.independent:
            return LeafInference(graph, columns, class_leaves, self.allow_empty)
        return SetInference(graph, columns.nodes, self.allow_empty, exact=exact, oracle=self.oracle)


class Inference:
    """The best label sets under scores of the columns of U, for some samples at a time."""

    def __init__(self, graph: Graph, allow_empty: bool) -> None:
        self.graph, self.allow_empty = graph, allow_empty
        self._position = np.cumsum(graph.is_leaf, dtype=np.int32) - np.int32(1)

    def best(self, scores: Floats, offsets: FloatArray) -> tuple[FloatArray, ByteArray]:
        """(scores, 1 for the nodes of the best set) of all nodes, which have the offsets added."""
        raise NotImplementedError

    def leaves(self, chosen: ByteArray) -> tuple[PtrArray, IntArray]:
        """(number, positions) of the leaves among the nodes of every set, one set after the other."""
        row, node = np.nonzero(chosen.view(np.bool_))
        kept = self.graph.is_leaf[node]
        return np.bincount(row[kept], minlength=len(chosen)), self._position[node[kept]]


class SetInference(Inference):
    """The best set as a whole: scores of nodes are added up over the set.

    Parameters
    ----------
    graph : Graph
    nodes : array of n_columns
        Node of every column; scores of other nodes are 0.
    allow_empty : bool
    exact : bool
        On a DAG, prove every set to be the best one; a tree needs no such choice.
    oracle : str
        What proves them, if it can: see :func:`nhsvm.oracles.choice.answering_oracle`.
    """

    def __init__(
        self, graph: Graph, nodes: IntArray, allow_empty: bool, *, exact: bool = True, oracle: str = AUTO
    ) -> None:
        super().__init__(graph, allow_empty)
        last = np.array_equal(nodes, np.arange(graph.n_nodes - len(nodes), graph.n_nodes))
        self._nodes = slice(graph.n_nodes - len(nodes), None) if last else nodes  # a slice is faster
        self.oracle = answering_oracle(oracle, graph, allow_empty, exact=exact)

    def best(self, scores: Floats, offsets: FloatArray) -> tuple[FloatArray, ByteArray]:
        n = len(scores)
        full = np.tile(offsets, (n, 1))
        full[:, self._nodes] += scores
        chosen, value, bound = np.empty(full.shape, np.uint8), np.empty(n), np.empty(n)
        self.oracle.solve(full, chosen, value, bound)
        return full, chosen


class LeafInference(Inference):
    """Label sets of leaves that have their scores by themselves: those above 0, and the best one if there is none.

    The scores that it gives to inner nodes are 0, and those of leaves are sums over their paths: so what a leaf adds to
    a label set is its own score.

    Parameters
    ----------
    graph : Graph
    columns : Columns
        Leaves in the order of classes.
    class_leaves : array of n_classes
        Their positions among the leaves of the graph.
    allow_empty : bool
    """

    def __init__(self, graph: Graph, columns: Columns, class_leaves: IntArray, allow_empty: bool) -> None:
        super().__init__(graph, allow_empty)
        self._columns, self._own = columns, graph.leaves[class_leaves]

    def best(self, scores: Floats, offsets: FloatArray) -> tuple[FloatArray, ByteArray]:
        from nhsvm.oracles.leaves import leaf_scores

        found = np.empty((len(scores), len(self._own)), dtype=scores.dtype)
        leaf_scores(self._columns, scores, found)
        found = found + offsets[self._own]
        chosen = found > 0.0
        if not self.allow_empty:
            alone = np.flatnonzero(~chosen.any(axis=1))
            chosen[alone, found[alone].argmax(axis=1)] = True
        shape = len(scores), self.graph.n_nodes
        full, inside = np.zeros(shape), np.zeros(shape, np.uint8)
        full[:, self._own], inside[:, self._own] = found, chosen
        return full, inside


def on_leaves(graph: Graph, value: float) -> FloatArray:
    """A number for every leaf, 0 for inner nodes (n_nodes,)."""
    return np.where(graph.is_leaf, value, 0.0)


# -- of all samples ----------------------------------------------------------------------------------------------------


class Collected:
    """Leaves of label sets, which come in parts and in any order."""

    def __init__(self, n_samples: int) -> None:
        self._sizes = np.zeros(n_samples + 1, np.int64)
        self._parts: dict[int, IntArray] = {}

    def add(self, rows: slice, sizes: PtrArray, leaves: IntArray) -> None:
        """Those of some samples."""
        self._sizes[rows.start + 1 : rows.stop + 1] = sizes
        self._parts[rows.start] = leaves

    def all(self) -> tuple[PtrArray, IntArray]:
        """Lists in CSR form, (indptr, leaves)."""
        return np.cumsum(self._sizes), np.concatenate([self._parts[start] for start in sorted(self._parts)])


class Gains(NamedTuple):
    """What the classes add to the best label sets."""

    gains: FloatArray
    """(n_samples, n_classes)"""
    inside: BoolArray
    """Whether a class is part of the set, (n_samples, n_classes)."""
    along: FloatArray
    """Where the scores lie along the directions of the curves of probabilities; (n_samples, 0) if there are none."""


def gains_of_scores(inference: Inference, scores: Floats, offsets: FloatArray, n_threads: int) -> FloatArray:
    """What every leaf adds to the best label set, (n_samples, n_leaves), from scores of columns."""
    from nhsvm.oracles.dag.primal import label_gains

    graph = inference.graph
    gains = np.empty((len(scores), graph.n_leaves))
    step = max(1, _CHUNK // graph.n_nodes)

    def work(lo: int, hi: int) -> None:
        for part in (slice(k, min(hi, k + step)) for k in range(lo, hi, step)):
            gains[part] = label_gains(graph, *inference.best(scores[part], offsets))

    with Team(n_threads) as team:
        team.split(len(scores), work)
    return gains


def along_directions(scores: Floats, directions: FloatArray) -> FloatArray:
    """``scores @ directions``; a row does not depend on those beside it, as it does in a product of BLAS."""
    from nhsvm.storage.kernels import directions_kernel

    out = np.zeros((len(scores), directions.shape[1]))
    directions_kernel(scores, directions, out)
    return out


# -- probabilities -----------------------------------------------------------------------------------------------------


class Curves(NamedTuple):
    """Probabilities of nodes, as ``probability=True`` learns them from held-out folds."""

    slope: FloatArray
    """a ≥ 0 of every node."""
    intercept: FloatArray
    """b of every node."""
    directions: FloatArray
    """z = scores @ directions: (n_columns, k)."""
    shares: FloatArray
    """w of every node: (k, n_nodes)."""

    def probabilities(self, margins: FloatArray, along: FloatArray, graph: Graph) -> FloatArray:
        """Of all nodes, (n_samples, n_nodes), from their margins and z (n_samples, k)."""
        found: FloatArray = expit(margins * self.slope + self.intercept + along @ self.shares)
        found = np.ascontiguousarray(found.T)
        for level in graph.levels():
            if level.start == 0:
                continue
            up = graph.parents.rows(np.arange(level.start, level.stop))
            above = np.minimum.reduceat(found[up.indices], up.indptr[:-1], axis=0)
            found[level] = np.minimum(found[level], above)
        return np.ascontiguousarray(found.T)


def node_margins(graph: Graph, gains: FloatArray) -> FloatArray:
    """The largest gain among the leaves at or below every node: (n_samples, n_nodes) from (n_samples, n_leaves).

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> node_margins(h.graph, np.array([[2.0, -1.0, -1.0]]))
    array([[ 2., -1.,  2., -1., -1.]])
    """
    margins = np.empty((graph.n_nodes, len(gains)))
    margins[graph.leaves] = gains.T
    for level in graph.levels_up():
        inner = np.arange(level.start, level.stop)
        inner = inner[~graph.is_leaf[inner]]
        if len(inner):
            down = graph.children.rows(inner)
            margins[inner] = np.maximum.reduceat(margins[down.indices], down.indptr[:-1], axis=0)
    return np.ascontiguousarray(margins.T)


# -- as they are given -------------------------------------------------------------------------------------------------


def rows_of(indices: Array, indptr: Array, width: int) -> sp.csr_array:
    """A matrix with ones at the given places."""
    rows = sp.csr_array((np.ones(len(indices), np.int8), indices, indptr), (len(indptr) - 1, width), copy=True)
    rows.sum_duplicates()  # sorts too
    rows.data[:] = 1
    return rows


def decoded(classes: Array, class_leaves: IntArray, form: str, indptr: Array, leaves: Array) -> LabelsLike:
    """Label sets in one of ``FORMS``.

    Parameters
    ----------
    classes, class_leaves : arrays of n_classes
    form : str
    indptr, leaves : arrays
        Sample i has the leaves ``leaves[indptr[i]:indptr[i + 1]]``, positions in any order.

    Returns
    -------
    array of objects, or indicator
        Containers with labels in the order of the classes. Or an indicator with the classes as columns: sparse of int8,
        or dense of int64.
    """
    class_of = np.argsort(class_leaves)  # a permutation, so this is its inverse
    rows = rows_of(class_of[np.asarray(leaves, dtype=np.int64)], indptr, len(class_of))
    if form not in CONTAINERS:
        return rows if form == "sparse" else rows.astype(np.int64).toarray()
    labels, container = classes.astype(object)[rows.indices].tolist(), CONTAINERS[form]
    found = np.empty(rows.shape[0], dtype=object)
    for i, (a, b) in enumerate(pairwise(rows.indptr.tolist())):
        found[i] = container(labels[a:b])
    return found
