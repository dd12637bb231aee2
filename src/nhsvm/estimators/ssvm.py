"""The Shared SVM (Eq. 14, Eq. 15): weights learned from the data."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from nhsvm.errors import OptionError
from nhsvm.estimators._base import HierarchicalSVM
from nhsvm.estimators._problem import LearningProblem
from nhsvm.hierarchy import Hierarchy
from nhsvm.losses import Loss
from nhsvm.options import Preset
from nhsvm.typing import FloatArray

_KEPT = 0.99  # of the weights of the fit before, in a warm start; the rest keeps all of them away from zero


class SSVM(HierarchicalSVM):
    """The Shared SVM (Eq. 14, Eq. 15): learns which nodes share, as weights α beside the vectors of nodes.

    min_{U, α} ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i(U), for α ≥ 0 that sum to one at most on every path. It is convex, and
    never above what any fixed weights of that kind reach. Nodes above every leaf get no weight.
    """

    _preset = Preset(
        "zero_one",
        settled={"weights": "maxmin", "margin": "loss"},  # weights to start from
        defaults={"solver": "alternating"},
        doc={
            "loss": (
                '{"auto", "zero_one", "hamming", "leaf_hamming"}, class or Loss',
                'The structural error Δ; "auto" is "zero_one"; of label sets always "leaf_hamming", and "hamming" is '
                'the other one they can have. "normalized" depends on α, and is refused.',
            ),
            "solver": (
                '"alternating" or instance',
                "Weights change between the passes of the dual method, until a gap of the joint problem is proved. An "
                "instance, such as ``nhsvm.engine.Alternating(tol=1e-5)``, has its own tol, max_iter, certify, "
                "threads, seed and callback.",
            ),
        },
        texts={
            "node_weights": "α as learned, aligned with ``hierarchy_.nodes``.",
            "history": "; and fixed_primal and\n    fixed_dual, the objectives for the weights of that pass",
        },
    )

    def start_from(self, model: HierarchicalSVM) -> SSVM:
        """Let the next fit go on from the dual variables of another model, such as an :class:`NHSVM`.

        Parameters
        ----------
        model : fitted estimator
            With ``warm_start=True``, of the same hierarchy, and of the samples and labels that this one will learn
            from. It is not changed.

        Returns
        -------
        self

        Raises
        ------
        OptionError
            If this estimator has not ``warm_start=True``, or the other has kept no dual variables.
        """
        if not self.warm_start:
            raise OptionError("start_from needs warm_start=True, which says that a fit goes on from what was before")
        if getattr(model, "_planes", None) is None:
            raise OptionError(
                f"this {type(model).__name__} has no dual variables to go on from: fit it with warm_start=True; a file "
                "does not hold them"
            )
        self._planes = deepcopy(model._planes)
        self._fitted_truth, self._fitted_costs = model._fitted_truth, model._fitted_costs
        return self

    def _solver(self, *, silent: bool = False) -> Any:
        from nhsvm.engine import Alternating

        solver = super()._solver(silent=silent)
        if not isinstance(solver, Alternating):
            raise OptionError(f"SSVM learns weights, which takes solver='alternating', not {self.solver!r}")
        return solver

    def _loss(self, auto: str, hierarchy: Hierarchy, alpha: FloatArray) -> Loss:
        loss = super()._loss(auto, hierarchy, alpha)
        if loss.needs_weights:
            raise OptionError(f"loss {loss.name!r} depends on α, which SSVM learns; use another, such as 'zero_one'")
        return loss

    def _assembled(self, X: Any, labels: Any, weight: FloatArray) -> LearningProblem:
        problem = super()._assembled(X, labels, weight)
        return replace(problem, solved=replace(problem.solved, graph=labels.hierarchy.graph))

    def _continued(self, problem: LearningProblem) -> LearningProblem:
        """With the weights of the fit before, in a warm start."""
        learned = getattr(self, "node_weights_", None)
        if not self.warm_start or learned is None or learned.shape != problem.alpha.shape:
            return problem
        columns = problem.solved.columns
        start = _KEPT * learned[columns.nodes] + (1.0 - _KEPT) * columns.alpha
        return replace(problem, solved=replace(problem.solved, columns=replace(columns, alpha=start)))

    def _store(self, problem: Any, targets: Any, alpha: FloatArray, solution: Any) -> None:
        learned = np.zeros(len(alpha))
        learned[problem.columns.nodes] = solution.alpha
        columns = replace(problem.columns, alpha=solution.alpha)
        super()._store(replace(problem, columns=columns), targets, learned, solution)
