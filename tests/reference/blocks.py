"""The block problem of one sample, solved by trying every set of planes that may have weight."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from nhsvm.columns import Columns


def plane_vectors(columns: Columns, leaves: np.ndarray, true: int, scale: np.ndarray) -> np.ndarray:
    """κ(∧̃(l) − ∧̃(y)), a row a plane."""
    rows = np.zeros((len(leaves), columns.n_columns))
    for row, leaf, k in zip(rows, leaves, scale, strict=True):
        row[columns.paths.row(leaf)] += k * np.sqrt(columns.alpha[columns.paths.row(leaf)])
        row[columns.paths.row(true)] -= k * np.sqrt(columns.alpha[columns.paths.row(true)])
    return rows


def value(Q: np.ndarray, h: np.ndarray, change: np.ndarray) -> float:
    """What the dual gains by a change of weights: h·d − ½ dᵀQd."""
    return float(h @ change - 0.5 * change @ Q @ change)


def best(Q: np.ndarray, h: np.ndarray, a: np.ndarray, cost: float) -> float:
    """max over a' ≥ 0, Σ a' ≤ C of the gain; the true leaf, with a plane of zeros, takes what is left of C.

    The optimum with the fewest weights solves its own equality-constrained problem, and no other solution of that
    problem exists; so all sets of planes are tried.
    """
    m = len(h)
    Q = np.pad(Q, (0, 1))
    h, old = np.append(h, 0.0), np.append(a, cost - a.sum())
    found = -np.inf
    for size in range(1, m + 2):
        for some in combinations(range(m + 1), size):
            S = list(some)
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[-1, -1] = Q[np.ix_(S, S)], 0.0
            right = np.append((h + Q @ old)[S], cost)
            solution = np.linalg.lstsq(system, right, rcond=None)[0][:size]
            if (solution >= -1e-12 * cost).all() and abs(solution.sum() - cost) <= 1e-9 * cost:
                new = np.zeros(m + 1)
                new[S] = np.maximum(solution, 0.0)
                found = max(found, value(Q, h, new - old))
    return found
