"""Naive twins of the kernels of independent hinges, and the problem as brute force and cvxpy solve it."""

from __future__ import annotations

import warnings
from itertools import product

import cvxpy as cp
import numpy as np


def found(scores: np.ndarray, single: bool, allow_empty: bool) -> set[int]:
    """Leaves that are predicted."""
    best = {int(np.argmax(scores))}
    positive = set(np.flatnonzero(scores > 0).tolist())
    return best if single or not (positive or allow_empty) else positive


def hinges(scores: np.ndarray, true: set[int], single: bool, allow_empty: bool) -> tuple[float, int, bool]:
    """(sum of the hinges, how many are above 0, whether the labels are not found) of one sample."""
    each = [max(0.0, 1.0 - (s if k in true else -s)) for k, s in enumerate(scores.tolist())]
    return sum(each), sum(h > 0 for h in each), found(scores, single, allow_empty) != true


def candidates(
    scores: np.ndarray, true: list[int], used: list[int], n_new: int, tolerance: float, first: int
) -> list[tuple[int, float]]:
    """Leaves of one sample that may move, with gradients: those in use, the true ones, the largest others."""
    n = len(scores)
    g = [1.0 - s if k in true else 1.0 + s for k, s in enumerate(scores.tolist())]
    mine = used + [k for k in true if k not in used and g[k] > tolerance]
    others = [k for k in [*range(first, n), *range(first)] if k not in used and k not in true and g[k] > tolerance]
    return [(k, g[k]) for k in mine + sorted(others, key=lambda k: -g[k])[:n_new]]


def visit(h, b, y, leaves, cost, q, paths, alpha, tolerance, rounds=100):
    """Coordinate ascent over the block of one sample; returns its variables and the gain. ``paths`` is a 0/1 matrix."""
    b, gain = b.copy(), 0.0
    K = (paths[leaves] * alpha) @ paths[leaves].T * np.outer(y, y) * q
    first = b.copy()

    def violation(k):
        g = h[k] - K[k] @ (b - first)
        held = (b[k] <= 0 and g <= 0) or (b[k] >= cost and g >= 0)
        return g, 0.0 if held else abs(g)

    if max((violation(k)[1] for k in range(len(b))), default=0.0) <= tolerance:
        return b, 0.0
    for _ in range(rounds):
        worst = 0.0
        for k in range(len(b)):
            g, size = violation(k)
            if size <= 0.1 * tolerance:
                continue
            worst = max(worst, size)
            new = np.clip(b[k] + g / K[k, k], 0.0, cost) if K[k, k] > 0 else (cost if g > 0 else 0.0)
            gain += (new - b[k]) * (g - 0.5 * K[k, k] * (new - b[k]))
            b[k] = new
        if worst <= tolerance:
            break
    return b, gain


def batch(X, costs, lists, paths, alpha, tolerance, sweeps, slow):
    """Visits of samples in order; ``lists`` has (leaves, b, gradients, y) of each. Returns all b, and the gain.

    Scores are sums over what was added to the weights, without inner products of samples.
    """
    lists = [tuple(np.array(part) for part in one) for one in lists]
    start = [one[1].copy() for one in lists]
    added = np.zeros((len(alpha), X.shape[1]))  # to V
    total = 0.0
    for sweep in range(sweeps):
        gained = 0.0
        for t, (leaves, b, g, y) in enumerate(lists):
            h = g - y * (paths[leaves] @ (alpha[:, None] * added) @ X[t])
            new, gain = visit(h, b, y, leaves, costs[t], X[t] @ X[t], paths, alpha, tolerance)
            added += np.outer(paths[leaves].T @ (y * (new - b)), X[t])
            gained += gain
            kept = (new > 0) | (start[t] > 0) if sweep == 0 else np.ones(len(new), dtype=bool)
            start[t] = start[t][kept]
            lists[t] = (leaves[kept], new[kept], g[kept], y[kept])
        total += gained
        if gained <= slow * total:
            break
    return [(leaves, b) for leaves, b, _, _ in lists], total


def best_block(h, b, y, leaves, cost, q, paths, alpha) -> float:
    """The largest gain of one block: every variable at 0, at C, or between them."""
    K = (paths[leaves] * alpha) @ paths[leaves].T * np.outer(y, y) * q
    best = -np.inf
    for states in product((0, 1, 2), repeat=len(b)):
        new = np.where(np.array(states) == 1, cost, 0.0)
        free = np.flatnonzero(np.array(states) == 2)
        fixed = np.setdiff1d(np.arange(len(b)), free)
        right = h[free] - K[np.ix_(free, fixed)] @ (new - b)[fixed]
        new[free] = b[free] + np.linalg.lstsq(K[np.ix_(free, free)], right, rcond=None)[0]
        change = np.clip(new, 0.0, cost) - b
        best = max(best, float(h @ change - 0.5 * change @ K @ change))
    return best


def values(U, b, X, Y, paths, alpha, costs) -> tuple[float, float]:
    """(primal of weights, dual of variables) from their definitions; Y is ±1, a row a sample, a column a leaf."""
    has = alpha > 0
    hinge = np.maximum(0.0, 1.0 - Y * (X @ U.T @ paths.T))
    upper = 0.5 * float(((U**2).sum(axis=1)[has] / alpha[has]).sum()) + float(costs @ hinge.sum(axis=1))
    V = paths.T @ (Y * b).T @ X
    return upper, float(b.sum()) - 0.5 * float(alpha @ (V**2).sum(axis=1))


def optimum(X, Y, paths, alpha, costs) -> float:
    """min ½‖W‖² + Σ C_i Σ_l hinge with U_n = √α_n W_n."""
    W = cp.Variable((len(alpha), X.shape[1]))
    scores = X @ W.T @ np.diag(np.sqrt(alpha)) @ paths.T
    hinge = cp.sum(cp.pos(1 - cp.multiply(Y, scores)), axis=1)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + costs @ hinge))
    with warnings.catch_warnings(action="ignore"):
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(problem.value)
