"""The learning problem as cvxpy states it, and its two values straight from their definitions."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from nhsvm import objective


def optimum(
    X: np.ndarray,
    paths: np.ndarray,
    alpha: np.ndarray,
    leaves: np.ndarray,
    costs: np.ndarray,
    losses: np.ndarray,
    normalized: bool,
) -> float:
    """min ½‖W‖² + Σ C_i ξ_i with U_n = √α_n W_n, one constraint a sample and leaf.

    Parameters
    ----------
    X : array of (n_samples, n_features)
        With the constant feature.
    paths : 0/1 array of (n_leaves, n_nodes)
    alpha : array of n_nodes
    losses : array of (n_samples, n_leaves)
        Δ(l, y_i); with ``normalized``, the norms of Eq. 13.
    """
    W, slack = cp.Variable((len(alpha), X.shape[1])), cp.Variable((len(X), 1), nonneg=True)
    nodes = X @ W.T @ np.diag(np.sqrt(alpha))
    apart = losses > 0
    kappa = np.where(apart, 1 / np.where(apart, losses, 1), 0.0) if normalized else np.ones_like(losses)
    own = cp.sum(cp.multiply(nodes, paths[leaves]), axis=1, keepdims=True)
    differences = nodes @ paths.T - own @ np.ones((1, len(paths)))
    asked = apart.astype(float) if normalized else losses
    found = [slack @ np.ones((1, len(paths))) >= asked + cp.multiply(kappa, differences)]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + costs @ slack[:, 0]), found)
    with warnings.catch_warnings(action="ignore"):
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(problem.value)


def slacks(U: np.ndarray, X: np.ndarray, paths: np.ndarray, leaves: np.ndarray, losses: np.ndarray, normalized: bool):
    """The bracket of every sample and leaf; U has a row a node, X the constant feature."""
    return objective.loss_augmented(X @ U.T @ paths.T, leaves, losses, normalized)


def from_planes(
    a: np.ndarray, X: np.ndarray, paths: np.ndarray, leaves: np.ndarray, losses: np.ndarray, normalized: bool
) -> tuple[np.ndarray, float]:
    """(V, Σ a Δ) of dual variables a of (n_samples, n_leaves); the true leaf's are left aside."""
    V, mass = np.zeros((paths.shape[1], X.shape[1])), 0.0
    for i, k in zip(*np.nonzero(a), strict=True):
        kappa = 1 / losses[i, k] if normalized else 1.0
        V += a[i, k] * kappa * np.outer(paths[leaves[i]] - paths[k], X[i])
        mass += a[i, k] * (1.0 if normalized else losses[i, k])
    return V, mass
