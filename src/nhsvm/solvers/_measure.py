"""Slacks of all samples, exactly: what every certificate is made of."""

from __future__ import annotations

import numpy as np

from nhsvm.hierarchy.graph import FloatArray, IntArray
from nhsvm.solvers._memory import Weights
from nhsvm.solvers._problem import Problem
from nhsvm.solvers._rounding import of_sums, path_sums
from nhsvm.threads import Team

_SCORES = 2**18  # scores (samples × columns) in one chunk


def measure(problem: Problem, weights: Weights | None, team: Team) -> tuple[FloatArray, IntArray]:
    """(ξ_i, leaf with the highest score) of every sample, in double precision; without weights, at U = 0."""
    n, n_columns = problem.n_samples, problem.columns.n_columns
    slack, best = np.empty(n), np.empty(n, dtype=np.int32)
    step = max(1, _SCORES // max(1, n_columns))

    def work(lo: int, hi: int) -> None:
        for start in range(lo * step, min(n, hi * step), step):
            rows = slice(start, min(n, start + step))
            scores = np.zeros((rows.stop - start, n_columns))
            if weights is not None:
                weights.scores(np.arange(rows.start, rows.stop), scores)
            problem.oracle.slacks(scores, problem.leaves[rows], slack[rows], best[rows])

    team.split(-(-n // step), work)
    return slack, best


def slack_errors(problem: Problem, lengths_squared: FloatArray, squared_norms: FloatArray) -> FloatArray:
    """What rounding makes ξ_i wrong by at most, for samples of these ‖x_i‖² and weights of these ‖U_n‖².

    A bracket has the scores of two paths, divided by the loss in Eq. 13, whose square is at least the smallest α.
    """
    columns = problem.columns
    longest = 2.0 * float(path_sums(squared_norms, columns).max(initial=0.0))
    if problem.oracle.normalized:
        used = columns.alpha[columns.alpha > 0]
        longest /= float(np.sqrt(used.min(initial=1.0))) * (1.0 - 1e-9)
    return of_sums(problem.X, lengths_squared, longest, 0.0, 2.0 * columns.longest)
