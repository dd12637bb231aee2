"""The norms as conic programs, straight from their definitions, for Clarabel."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np

from nhsvm import Hierarchy
from nhsvm.typing import FloatArray


def _solve(problem: cp.Problem) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cvxpy's own making
        problem.solve(solver="CLARABEL")
    assert problem.status in ("optimal", "optimal_inaccurate")
    return float(problem.solution.opt_val)  # problem.value divides by α, which may be a rounded zero


def shared_norm(U: FloatArray) -> float:
    """Eq. 17: [[AAᵀ, U], [Uᵀ, VᵀV]] ⪰ 0, minimise tr VᵀV for rows of A of length at most 1."""
    n, m = U.shape
    G = cp.Variable((n + m, n + m), PSD=True)
    squared = _solve(cp.Problem(cp.Minimize(cp.trace(G[n:, n:])), [G[:n, n:] == U, cp.diag(G)[:n] <= 1]))
    return float(np.sqrt(max(0.0, squared)))


def max_norm(U: FloatArray) -> float:
    n, m = U.shape
    G = cp.Variable((n + m, n + m), PSD=True)
    t = cp.Variable()
    return _solve(cp.Problem(cp.Minimize(t), [G[:n, n:] == U, cp.diag(G) <= t]))


def structured_shared_norm(U: FloatArray, h: Hierarchy) -> float:
    """Eq. 16 in node rows: min Σ‖U_n‖²/α_n with Σ_{Ā(l)} U_n = U_l and Σ_{Ā(l)} α_n ≤ 1."""
    A = h.graph.leaf_matrix().toarray()
    rows = cp.Variable((h.n_nodes, U.shape[1]))
    alpha = cp.Variable(h.n_nodes, nonneg=True)
    cost = sum(cp.quad_over_lin(rows[n], alpha[n]) for n in range(h.n_nodes))
    return float(np.sqrt(max(0.0, _solve(cp.Problem(cp.Minimize(cost), [A @ rows == U, A @ alpha <= 1])))))


def node_penalty(lengths: FloatArray, h: Hierarchy) -> float:
    """Eq. 20."""
    A = h.graph.leaf_matrix().toarray()
    alpha = cp.Variable(h.n_nodes, nonneg=True)
    used = np.flatnonzero(lengths)
    cost = sum(lengths[n] ** 2 * cp.inv_pos(alpha[n]) for n in used)
    return _solve(cp.Problem(cp.Minimize(cost), [A @ alpha <= 1]))
