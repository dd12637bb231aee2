"""What models of label sets answer: the best label sets, and what every label adds to them; a mixin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.estimators._curves import node_margins
from nhsvm.estimators._data import same_length
from nhsvm.estimators._label_sets import LabelSets, decode_sets, matrix_of
from nhsvm.estimators._options import n_threads
from nhsvm.estimators._set_input import rows_of
from nhsvm.estimators._set_problem import WholeProgram
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import BoolArray, FloatArray, Graph, IntArray, PtrArray

Floats = npt.NDArray[Any]
_CHUNK = 2**18  # scores of nodes at work at a time


class SetModel(NamedTuple):
    """What a fit on label sets leaves behind beside U."""

    form: str
    """See :class:`LabelSets`."""
    allow_empty: bool
    leaf_offset: float


def on_leaves(graph: Graph, value: float) -> FloatArray:
    """A number for every leaf, 0 for inner nodes (n_nodes,)."""
    return np.where(graph.is_leaf, value, 0.0)


class Inference:
    """The best label sets under scores of the columns of U, for some samples at a time.

    Parameters
    ----------
    hierarchy : Hierarchy
    nodes : array of n_columns
        Node of every column; scores of other nodes are 0.
    allow_empty : bool
    exact : bool
        On a DAG, prove every set to be the best one; a tree needs no such choice.
    program : bool
        Take the paper's linear program, and the integer program where its answer is no label set, to be exact.
    """

    def __init__(
        self, hierarchy: Hierarchy, nodes: IntArray, allow_empty: bool, *, exact: bool = True, program: bool = False
    ) -> None:
        from nhsvm.oracles import DagMultilabel, TreeMultilabel

        self.graph = hierarchy.graph
        last = np.array_equal(nodes, np.arange(self.graph.n_nodes - len(nodes), self.graph.n_nodes))
        self._nodes = slice(self.graph.n_nodes - len(nodes), None) if last else nodes  # a slice is faster
        self._position = np.cumsum(self.graph.is_leaf, dtype=np.int32) - np.int32(1)
        self.oracle: Any
        if program and exact:
            self.oracle = WholeProgram(self.graph, allow_empty)
        elif self.graph.is_tree:
            self.oracle = TreeMultilabel(self.graph, allow_empty=allow_empty)
        else:
            self.oracle = DagMultilabel(self.graph, allow_empty=allow_empty, exact=exact)

    def best(self, scores: Floats, offsets: FloatArray) -> tuple[FloatArray, npt.NDArray[np.uint8]]:
        """(scores, 1 for the nodes of the best set) of all nodes, which have the offsets added."""
        n = len(scores)
        full = np.tile(offsets, (n, 1))
        full[:, self._nodes] += scores
        chosen, value, bound = np.empty(full.shape, np.uint8), np.empty(n), np.empty(n)
        self.oracle.solve(full, chosen, value, bound)
        return full, chosen

    def leaves(self, chosen: npt.NDArray[np.uint8]) -> tuple[PtrArray, IntArray]:
        """(number, positions) of the leaves among the nodes of every set, one set after the other."""
        row, node = np.nonzero(chosen.view(np.bool_))
        kept = self.graph.is_leaf[node]
        return np.bincount(row[kept], minlength=len(chosen)), self._position[node[kept]]


def held_gains(inference: Inference, scores: Floats, offsets: FloatArray, n_jobs: int | None) -> FloatArray:
    """What every leaf adds to the best label set, (n_samples, n_leaves), from scores of columns."""
    from nhsvm.oracles._gains import label_gains
    from nhsvm.threads import Team

    graph = inference.graph
    gains = np.empty((len(scores), graph.n_leaves))
    step = max(1, _CHUNK // graph.n_nodes)

    def work(lo: int, hi: int) -> None:
        for part in (slice(k, min(hi, k + step)) for k in range(lo, hi, step)):
            gains[part] = label_gains(graph, *inference.best(scores[part], offsets))

    with Team(n_threads(n_jobs)) as team:
        team.split(len(scores), work)
    return gains


class Gains(NamedTuple):
    """What the classes add to the best label sets."""

    gains: FloatArray
    """(n_samples, n_classes)"""
    inside: BoolArray
    """Whether a class is part of the set, (n_samples, n_classes)."""
    along: FloatArray
    """Where the scores lie along the directions of the curves of probabilities; (n_samples, 0) if there are none."""


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


class Sets:
    """Prediction of label sets; what is above a label is understood.

    Attributes
    ----------
    _sets : SetModel or None
        None for a model of samples with one label each.
    offsets_ : array of n_nodes
        Added to the scores of nodes; only if they were tuned.
    """

    oracle: str
    _sets: Any
    _columns: Columns
    _class_leaves: IntArray
    classes_: Floats
    hierarchy_: Hierarchy

    def _all_offsets(self) -> FloatArray:
        """What is added to the score of every node, by ``leaf_offset`` and ``offsets_``."""
        offsets: FloatArray = getattr(self, "offsets_", 0.0) + on_leaves(self.hierarchy_.graph, self._sets.leaf_offset)
        return offsets

    def _inference(self, *, exact: bool = True) -> Inference:
        program = self.oracle == "lp"
        return Inference(self.hierarchy_, self._columns.nodes, self._sets.allow_empty, exact=exact, program=program)

    def _found(self, X: Any, *, exact: bool = True) -> tuple[PtrArray, IntArray]:
        """Leaves of the best label set of every sample, as lists in CSR form."""
        X = self._checked(X)  # type: ignore[attr-defined]
        inference, offsets = self._inference(exact=exact), self._all_offsets()
        sets = Collected(X.shape[0])

        def use(part: slice, scores: Floats) -> None:
            sets.add(part, *inference.leaves(inference.best(scores, offsets)[1]))

        self._in_chunks(X, use, self.hierarchy_.n_nodes)  # type: ignore[attr-defined]
        return sets.all()

    def _predict_sets(self, X: Any, exact: bool) -> Any:
        found = self._found(X, exact=exact)
        sets = LabelSets(self.hierarchy_, self.classes_, self._class_leaves, *found, self._sets.form)
        return decode_sets(sets, *found)

    def _gains(self, X: Any, *, exact: bool = True) -> Gains:
        """What every class adds to the best label set."""
        from nhsvm.estimators._along import along_directions
        from nhsvm.oracles._gains import label_gains

        X = self._checked(X)  # type: ignore[attr-defined]
        inference, offsets, graph = self._inference(exact=exact), self._all_offsets(), self.hierarchy_.graph
        own = graph.leaves[self._class_leaves]
        curves: Any = getattr(self, "_curves", None)
        directions = np.zeros((len(self._columns.nodes), 0)) if curves is None else curves.directions
        found = Gains(
            np.empty((X.shape[0], len(own))),
            np.empty((X.shape[0], len(own)), dtype=bool),
            np.empty((X.shape[0], directions.shape[1])),
        )

        def use(part: slice, scores: Floats) -> None:
            full, chosen = inference.best(scores, offsets)
            found.gains[part] = label_gains(graph, full, chosen, self._class_leaves)
            found.inside[part] = chosen[:, own]
            found.along[part] = along_directions(scores, directions)

        self._in_chunks(X, use, graph.n_nodes)  # type: ignore[attr-defined]
        return found

    def _margins(self, gains: FloatArray) -> FloatArray:
        """Of all nodes, from the gains of classes."""
        leaves = np.empty_like(gains)
        leaves[:, self._class_leaves] = gains
        return node_margins(self.hierarchy_.graph, leaves)

    def _set_proba(self, X: Any) -> FloatArray:
        """Probabilities of all nodes, from label sets found as those that the curves were learned from."""
        gains, _, along = self._gains(X, exact=False)
        curves: Any = self._curves  # type: ignore[attr-defined]
        found: FloatArray = curves.probabilities(self._margins(gains), along, self.hierarchy_.graph)
        return found

    def _right_sets(self, X: Any, y: Any) -> BoolArray:
        """Whether the label set of each sample is found: all of it, and no more."""
        true = matrix_of(y, self.hierarchy_, self.classes_)
        indptr, leaves = self._found(X)
        same_length(len(indptr) - 1, true.shape[0])
        class_of = np.argsort(self._class_leaves)
        found = rows_of(class_of[leaves], indptr, true.shape[1])
        differ: BoolArray = np.diff(sp.csr_array(true != found).indptr) > 0
        return ~differ
