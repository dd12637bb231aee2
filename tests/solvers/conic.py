"""The joint problem of Shared SVM (Eq. 14) as a conic program, straight from its definition, for Clarabel."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from nhsvm import Hierarchy


def joint_optimum(
    h: Hierarchy, X: np.ndarray, costs: np.ndarray, members: np.ndarray, truth: np.ndarray, losses: np.ndarray
) -> tuple[float, np.ndarray]:
    """min ½ Σ‖U_n‖²/α_n + Σ_i C_i ξ_i over U and α, by listing all labels.

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
