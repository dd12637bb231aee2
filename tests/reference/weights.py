"""The weights problems as cvxpy states them, solved by an independent conic solver (Clarabel)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np

from nhsvm import Hierarchy

# Clarabel ends in different places under different settings; no single one is always the most accurate.
SETTINGS: tuple[dict[str, Any], ...] = (
    {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13},
    {
        "tol_gap_abs": 1e-12,
        "tol_gap_rel": 1e-12,
        "tol_feas": 1e-12,
        "static_regularization_constant": 1e-12,
        "iterative_refinement_max_iter": 50,
        "iterative_refinement_reltol": 1e-15,
        "iterative_refinement_abstol": 1e-15,
    },
    {
        "tol_gap_abs": 1e-12,
        "tol_gap_rel": 1e-12,
        "tol_feas": 1e-12,
        "static_regularization_constant": 1e-11,
        "equilibrate_enable": False,
    },
)


def paths_of(h: Hierarchy) -> np.ndarray:
    """Leaf x node matrix of Ā(l), from the public label API."""
    column = {n: i for i, n in enumerate(h.nodes)}
    out = np.zeros((h.n_leaves, h.n_nodes))
    for row, leaf in enumerate(h.leaves):
        for node in h.closure(leaf):
            out[row, column[node]] = 1
    return out


def common_of(h: Hierarchy) -> list[int]:
    """Numbers of the inner nodes above every leaf."""
    return [i for i, n in enumerate(h.nodes) if paths_of(h)[:, i].all() and not h.is_leaf(n)]


def constraints(h: Hierarchy, alpha: cp.Variable, directional: bool, total: tuple[float, float], common: bool) -> list:
    column = {n: i for i, n in enumerate(h.nodes)}
    zero = [] if common else common_of(h)
    sums = paths_of(h) @ alpha
    found = [alpha >= 0, sums == total[0]] if total[0] == total[1] else [alpha >= 0, sums >= total[0], sums <= total[1]]
    found += [alpha[i] == 0 for i in zero]
    if directional:
        found += [alpha[column[c]] >= alpha[column[p]] for p, c in h.edges() if column[p] not in zero]
    return found


def solve(cost, found: list, alpha: cp.Variable, measure: Callable[[np.ndarray], float], feasible=1e-11) -> np.ndarray:
    """The best of what the solver finds: violations up to ``feasible``, and then the least cost."""
    problem = cp.Problem(cp.Minimize(cost), found)
    best, least = None, np.inf
    for options in SETTINGS:
        with warnings.catch_warnings(action="ignore"):  # "may be inaccurate": we judge that ourselves
            problem.solve(solver=cp.CLARABEL, accept_unknown=True, **options)
        if alpha.value is None or max(c.violation().max() for c in found) > feasible:
            continue
        value = measure(np.maximum(alpha.value, 0))
        if value < least:
            best, least = np.array(alpha.value), value
    assert best is not None, "the reference solver failed"
    return best


def power(
    h: Hierarchy,
    rho: float,
    directional: bool = False,
    total: tuple[float, float] = (1, 1),
    common: bool = False,
    feasible: float = 1e-11,
) -> np.ndarray:
    alpha = cp.Variable(h.n_nodes)
    cost = cp.sum_squares(alpha) if rho == 2 else cp.sum(cp.power(alpha, rho))
    found = constraints(h, alpha, directional, total, common)
    return solve(cost, found, alpha, lambda a: float((a**rho).sum()), feasible)


def smallest(
    h: Hierarchy, total: tuple[float, float] = (1, 1), common: bool = False, directional: bool = True
) -> float:
    """The optimal value of Eq. 7."""
    alpha, t = cp.Variable(h.n_nodes), cp.Variable()
    zero = [] if common else common_of(h)
    kept = [i for i in range(h.n_nodes) if i not in zero]
    found = [alpha[kept] >= t, *constraints(h, alpha, directional, total, common)]
    return float(solve(-t, found, alpha, lambda a: -float(a[kept].min()))[kept].min())


def shared(h: Hierarchy, squared_norms: np.ndarray) -> np.ndarray:
    """Eq. 20. Only nodes with a vector are variables: the others can as well have no weight."""
    some = np.flatnonzero(squared_norms)
    alpha = cp.Variable(len(some))
    cost = cp.sum(cp.multiply(squared_norms[some], cp.inv_pos(alpha)))
    out = np.zeros(h.n_nodes)
    measure = lambda a: float((squared_norms[some] / a).sum())
    out[some] = solve(cost, [paths_of(h)[:, some] @ alpha <= 1], alpha, measure)
    return out
