"""Learning problems as conic programs, straight from their definitions, for Clarabel."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from nhsvm import Hierarchy


def joint_optimum(
    h: Hierarchy, X: np.ndarray, costs: np.ndarray, members: np.ndarray, truth: np.ndarray, losses: np.ndarray
) -> tuple[float, np.ndarray]:
    """min ½ Σ‖U_n‖²/α_n + Σ_i C_i ξ_i over U and α (Eq. 14), by listing all labels.

    Parameters
    ----------
    X : array of (n_samples, n_features)
        With the constant feature.
    members : 0/1 array of (n_labels, n_nodes)
        The nodes of every label, or label set.
    truth : array of n_samples
        The number of the true one.
    losses : array of (n_samples, n_labels)

    Returns
    -------
    float, array of n_nodes
        The optimum, and an optimal α.
    """
    paths = h.graph.leaf_matrix().toarray()
    U = cp.Variable((h.n_nodes, X.shape[1]))
    alpha = cp.Variable(h.n_nodes, nonneg=True)
    slack = cp.Variable(len(X))
    scores = X @ U.T @ members.T
    true = cp.sum(cp.multiply(scores, np.eye(len(members))[truth]), axis=1)
    margins = losses + scores - cp.reshape(true, (len(X), 1), order="C") @ np.ones((1, len(members)))
    rows = cp.reshape(slack, (len(X), 1), order="C") @ np.ones((1, len(members)))
    cost = 0.5 * sum(cp.quad_over_lin(U[n], alpha[n]) for n in range(h.n_nodes)) + costs @ slack
    problem = cp.Problem(cp.Minimize(cost), [paths @ alpha <= 1, margins <= rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cvxpy's own making
        problem.solve(solver="CLARABEL")
    assert problem.status in ("optimal", "optimal_inaccurate")
    return float(problem.solution.opt_val), np.asarray(alpha.value)


def relaxed_optimum(
    h: Hierarchy, alpha: np.ndarray, X: np.ndarray, costs: np.ndarray, true: np.ndarray, loss: np.ndarray, empty: bool
) -> float:
    """max of the dual of label sets over the relaxation of Eq. 19: a point with 0 ≤ z ≤ 1 for every sample.

    Parameters
    ----------
    X : array of (n_samples, n_features)
        With the constant feature.
    true : 0/1 array of (n_samples, n_nodes)
    loss : array of n_nodes
        w of Σ_n w_n 1[n in one of y, y_i].
    empty : bool
        No sum has to reach 1.
    """
    graph, n = h.graph, len(X)
    Z = cp.Variable((n, h.n_nodes), nonneg=True)
    allowed = [Z <= 1]
    for node in range(h.n_nodes):
        allowed += [Z[:, node] <= Z[:, int(parent)] for parent in graph.parents.row(node)]
        below = graph.children.row(node).astype(int)
        if len(below):
            allowed.append(Z[:, node] <= cp.sum(Z[:, below], axis=1))
    if not empty:
        allowed += [cp.sum(Z[:, graph.leaves.astype(int)], axis=1) >= 1, cp.sum(Z[:, : graph.n_roots], axis=1) >= 1]
    mass = cp.sum(cp.multiply(costs[:, None] * loss * (1 - 2 * true), Z)) + (costs[:, None] * loss * true).sum()
    scaled = cp.multiply(costs[:, None] * np.sqrt(alpha), true - Z)  # ½ Σ_n α_n‖V_n‖² = ½ ‖scaledᵀ X‖²
    problem = cp.Problem(cp.Maximize(mass - 0.5 * cp.sum_squares(scaled.T @ X)), allowed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cvxpy's own making
        problem.solve(solver="CLARABEL")
    assert problem.status == "optimal"
    return float(problem.solution.opt_val)
