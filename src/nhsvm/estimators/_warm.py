"""Going on from the dual variables of the fit before; a mixin."""

from __future__ import annotations

from typing import Any

import numpy as np

from nhsvm.errors import OptionError


class WarmStart:
    """What is kept of a fit if ``warm_start``: dual variables, what they are about, and the costs they belong to."""

    warm_start: bool
    _planes: Any
    _fitted_truth: Any
    _fitted_costs: Any

    def _start(self, problem: Any) -> tuple[Any, ...]:
        """Dual variables of the fit before, if they are to be used: made fit for the new costs."""
        state = getattr(self, "_planes", None)
        if not self.warm_start or state is None:
            return ()
        if not _same(self._fitted_truth, _truth(problem)):
            raise OptionError(
                "warm_start goes on from the dual variables of the last fit, so it needs the same samples and labels "
                "(and with label sets the same allow_empty and nodes with weight, and on a DAG oracle='lp' in both or "
                "in neither); set warm_start=False for other data"
            )
        self._planes = None  # the solver changes them, and may fail
        had = self._fitted_costs > 0
        if hasattr(problem, "leaves"):
            state.describe(problem.leaves, problem.oracle)
        elif (problem.costs > 0)[~had].any():  # a sample that cost nothing has no label sets to go on from
            return ()
        state.warm_start(self._fitted_costs, problem.costs)
        return (state,)

    def _keep_state(self, problem: Any, solution: Any) -> None:
        self._planes = solution.planes if self.warm_start else None
        self._fitted_truth = _truth(problem) if self.warm_start else None
        self._fitted_costs = problem.costs if self.warm_start else None

    def _keep_nothing(self) -> None:
        self._planes = self._fitted_truth = self._fitted_costs = None


def _truth(problem: Any) -> tuple[Any, ...]:
    """What dual variables are about."""
    if hasattr(problem, "leaves"):
        return (problem.leaves,)
    relaxed = getattr(problem, "answers", None) is not None
    return (type(problem).__name__, *problem.truth, problem.columns.nodes, problem.oracle.allow_empty, relaxed)


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))
