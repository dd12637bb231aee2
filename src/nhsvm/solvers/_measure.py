"""Slacks of all samples, exactly: what every certificate is made of."""

from __future__ import annotations

import numpy as np

from nhsvm.hierarchy.graph import FloatArray, IntArray
from nhsvm.solvers._memory import Weights
from nhsvm.solvers._problem import Problem
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
