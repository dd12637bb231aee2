"""HR-SVM: one hinge a leaf, and a vector of every node that is tied to its parent's (Gopal and Yang, 2013)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.columns import Columns, make_columns
from nhsvm.errors import OptionError
from nhsvm.estimators._base import HierarchicalSVM
from nhsvm.estimators._label_sets import LabelSets
from nhsvm.estimators._memory import allowed_bytes
from nhsvm.estimators._problem import LearningProblem
from nhsvm.estimators._sets import Inference
from nhsvm.estimators._targets import Targets
from nhsvm.hierarchy.graph import FloatArray, Graph, IntArray, Ragged
from nhsvm.options import Preset
from nhsvm.weights import Uniform, node_weights


class HRSVM(HierarchicalSVM):
    """One-vs-rest SVMs of all leaves, with recursive regularisation: HR-SVM of Gopal and Yang (2013).

    min ½ Σ_n ‖w_n − w_parent(n)‖² + Σ_i C_i Σ_l max(0, 1 − y_il w_l·x_i), where y_il is 1 for the labels of sample i
    and −1 for all other leaves l, and the parent of a root is 0. In the terms of this library w_l is the sum of U_n
    over Ā(l), the leaf and everything above it, with U_n = w_n − w_parent(n) and α = 1 on all nodes; on a DAG the sum
    is over all ancestors.

    One label a sample: the leaf of the highest score is predicted. Label sets: all leaves with a positive score, and
    the leaf of the highest score if there is none.
    """

    _preset = Preset(
        "auto",
        settled={
            "weights": Uniform(include_common=True),
            "margin": "loss",
            "loss": "auto",
            "oracle": "auto",
            "leaf_offset": 0.0,
        },
        doc={
            "solver": (
                '"dual" or instance',
                "Exact, and proves it. An instance of ``nhsvm.engine.Dual`` has its own tol, max_iter, certify, "
                "threads, seed and callback.",
            ),
            "allow_empty": (
                "bool",
                "Accept samples without a label, and predict empty sets where no leaf has a positive score. For label "
                "sets.",
            ),
        },
        texts={
            "hierarchy": "None is the flat hierarchy over the labels seen: separate hinge SVMs.",
            "node_weights": (
                "α, aligned with ``hierarchy_.nodes``: 1 everywhere, also above all leaves, where nothing cancels here."
            ),
        },
    )

    def _solver(self, *, silent: bool = False) -> Any:
        from nhsvm.engine import Dual

        solver = super()._solver(silent=silent)
        if type(solver) is not Dual:  # others learn weights, or have no such hinges
            raise OptionError(f"HRSVM takes solver='dual' or an instance of nhsvm.engine.Dual, not {self.solver!r}")
        return solver

    def _assembled(self, X: Any, labels: Targets | LabelSets, weight: FloatArray) -> LearningProblem:
        from nhsvm.engine import prepare
        from nhsvm.engine.problem import HingeProblem, Hinges

        self._solver(silent=True)  # before any work is done
        single, costs = isinstance(labels, Targets), weight
        if isinstance(labels, LabelSets):
            truth = Ragged(labels.indptr, labels.indices)
        else:
            truth = Ragged(np.arange(labels.n_samples + 1, dtype=np.int64), labels.leaves)
            costs = self._relative_costs(labels, weight)
        alpha = node_weights(labels.hierarchy, self.weights)
        bias, dtype = self._precision(X)
        solved = HingeProblem(
            X=prepare(X),
            truth=truth,
            costs=self.C * costs,
            columns=make_columns(labels.hierarchy.graph, alpha),
            oracle=Hinges(single, bool(self.allow_empty)),
            bias=bias,
            dtype=dtype,
            memory=allowed_bytes(self.memory_limit),
        )
        return LearningProblem(labels, weight, alpha, costs, self.C, solved)

    def _inference(self, *, exact: bool = True) -> Inference:
        return LeafInference(self.hierarchy_.graph, self._columns, self._class_leaves, self._sets.allow_empty)

    def _counted(self, node: int, predicted: IntArray) -> IntArray:
        """All of Ā(l), of label sets too: a leaf's score does not depend on what else is predicted."""
        own: IntArray = self.hierarchy_.graph.ancestors.row(node)
        return own


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
        self.graph, self._columns, self._own = graph, columns, graph.leaves[class_leaves]
        self._position = np.cumsum(graph.is_leaf, dtype=np.int32) - np.int32(1)
        self.oracle = SimpleNamespace(allow_empty=allow_empty)  # nothing has to be searched for

    def best(self, scores: npt.NDArray[Any], offsets: FloatArray) -> tuple[FloatArray, npt.NDArray[np.uint8]]:
        """(scores of nodes, 1 for the leaves of the best set); ``offsets`` of leaves are added."""
        from nhsvm.oracles.single_label import leaf_scores

        found = np.empty((len(scores), len(self._own)), dtype=scores.dtype)
        leaf_scores(self._columns, scores, found)
        found = found + offsets[self._own]
        chosen = found > 0.0
        if not self.oracle.allow_empty:
            alone = np.flatnonzero(~chosen.any(axis=1))
            chosen[alone, found[alone].argmax(axis=1)] = True
        full, inside = (
            np.zeros((len(scores), self.graph.n_nodes)),
            np.zeros((len(scores), self.graph.n_nodes), np.uint8),
        )
        full[:, self._own], inside[:, self._own] = found, chosen
        return full, inside
