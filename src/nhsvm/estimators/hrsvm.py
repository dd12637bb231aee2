"""HR-SVM: one hinge a leaf, and a vector of every node that is tied to its parent's (Gopal and Yang, 2013)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nhsvm.columns import make_columns
from nhsvm.errors import OptionError
from nhsvm.estimators._base import HierarchicalSVM
from nhsvm.estimators._label_sets import LabelSets
from nhsvm.estimators._memory import allowed_bytes
from nhsvm.estimators._problem import LearningProblem
from nhsvm.estimators._targets import Targets
from nhsvm.hierarchy.graph import Ragged
from nhsvm.options import Preset
from nhsvm.typing import FloatArray
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

    _independent = True
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
