"""Interior-point method for the least ρ-norm when ρ is large.

    minimise  ‖v‖_ρ,  v_k = c_k^{1/ρ} y_k,   over x,   where y = (x, F x + f) ≥ 0

Costs c·y^ρ themselves are no use then: they span hundreds of orders of magnitude, and a Newton step is good for
relative changes of 1/ρ only. The norm is as tame for ρ = 10⁶ as for ρ = 10. It is homogeneous, so we fix it at 1 and
ask for the largest multiple of f that this can pay for, with t_k for what form k takes of the budget Σ v^ρ ≤ 1:

    maximise  κ   over x, t   where  y = (x, κ, F x + κ f) ≥ 0,   ψ_k = t_k^{1/ρ} − c_k^{1/ρ} y_k ≥ 0,   Σ t = 1.

The best v is y/κ. With θ = 1/ρ, multipliers z of y, ω of ψ and β of Σ t, and w = (c^{1/ρ} ω) − z, Newton steps go to

    y_k z_k = μ,    ψ_k ω_k = μ,    t_k (β − θ ω_k t_k^{θ−1}) = μ,    w_x + Fᵀ w_rest = 0,    w_κ + f·w_rest = const.

No t is much smaller than μ, so nothing underflows, whatever ρ is. For w_x + Fᵀ w_rest = 0 with w ≤ 0 where c = 0,

    f·w_rest = y·w ≤ Σ_{c>0} y_k (w_k)₊ ≤ ‖v‖_ρ ‖(w/c^{1/ρ})₊‖_{ρ/(ρ−1)}

for every feasible y (Hölder): each iterate carries a lower bound of the norm, and with it a proof of its own accuracy.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.weights._interior import Solution, certified
from nhsvm.weights._steep_system import Point, Problem, newton, second_order

_AIM = 1e-11  # relative gap to stop at
_ENOUGH = 1e-8  # from here on, few steps without progress are enough
_PATIENCE = 3
_CENTRAL = 1e-3  # the smallest product may be this part of their mean
_CLOSE = 0.1  # the same while centring
_FEASIBLE = 1e-9  # by how much equations of multipliers may be wrong, relative to the goal
_MOST_STEPS = 200


def minimise_norm(log_c: FloatArray, rho: float, F: sp.csr_array, f: FloatArray, x: FloatArray) -> Solution:
    """Solve the problem above. ``value`` and ``gap`` of the result are of ‖v‖_ρ.

    Parameters
    ----------
    log_c : array
        Logarithms of c for the forms ``(x, F x + f)``; −inf makes a mere constraint y ≥ 0. All x have c > 0.
    rho : float
    F, f : the rows after the identity
    x : array
        Start with all forms positive.

    Raises
    ------
    NotSolvedError
        If a relative gap of 1e-8 cannot be proved.
    """
    n = len(x)
    problem, p = _start(np.insert(log_c, n, -np.inf), rho, F, f, x)
    p = _centred(problem, p)
    best, best_gap, best_step, step, bound = p, np.inf, 0, 0, 0.0
    for step in range(_MOST_STEPS):
        bound = max(bound, problem.bound(p))
        gap = 1 - bound / problem.norm(p)
        if gap < 0.5 * best_gap:
            best, best_gap, best_step = p, gap, step
        # rounding ends the descent, as in the other method
        if gap <= _AIM or step - best_step > (_PATIENCE if best_gap < _ENOUGH else 20 * _PATIENCE):
            break
        try:
            by, length = _step(problem, p)
        except np.linalg.LinAlgError:
            break
        if length == 0:
            break
        p = p.moved(length, by)
    y = np.delete(best.y, n) / best.y[n]
    value = problem.norm(best)
    return certified(y, F @ y[:n] + f, value, best_gap * value, best_gap, step)


def _start(log_c: FloatArray, rho: float, F: sp.csr_array, f: FloatArray, x: FloatArray) -> tuple[Problem, Point]:
    """The problem, and a strictly feasible y with multipliers that make the products 1 (those of t: 1 or more)."""
    full = sp.hstack([F, sp.csr_array(f[:, None])]).tocsr()
    back = sp.csr_array(full.T)
    priced = np.flatnonzero(log_c > -np.inf)
    a = np.exp(log_c[priced] / rho)
    y = np.concatenate([x, [1.0], F @ x + f])
    v = a * y[priced]
    # half of the budget to all alike, half as it is taken now
    taken = (v / v.max()) ** rho
    t = 0.5 / len(v) + 0.5 * taken / taken.sum()
    h = t ** (1 / rho)
    y *= 0.5 / (v / h).max()
    problem = Problem(full, back, priced, a, rho, float(1 / y[len(x)]))
    omega = 1 / (h - a * y[priced])
    return problem, Point(y, t, 1 / y, omega, float(((1 + omega * h / rho) / t).max()))


def _centred(problem: Problem, p: Point) -> Point:
    """Near the path at μ = 1, where the multipliers obey their equations.

    Steps that keep the products about 1 while the equations come true: the sooner these do, the better for all that
    follows, but products that fall before would bar the way.
    """
    for _ in range(_MOST_STEPS):
        if np.abs(problem.missing(p)).max() <= _FEASIBLE * problem.goal:
            break
        product = problem.products(p)
        central = min(_CLOSE, 0.9 * product.min() / product.mean())
        try:
            towards = newton(problem, p, product)
        except np.linalg.LinAlgError:
            break
        plain = towards(product.mean() - product)
        bent = towards(product.mean() - product - second_order(problem, p, plain))
        length, by = max(((_length(problem, p, step, 0.9, central), step) for step in (plain, bent)), key=itemgetter(0))
        if length == 0:
            break
        p = p.moved(length, by)
    return p


def _step(problem: Problem, p: Point) -> tuple[Point, float]:
    """One predictor-corrector step: a first solve tells how far the way to zero is open, a second one goes."""
    product = problem.products(p)
    towards = newton(problem, p, product)
    mean = product.mean()
    central = min(_CENTRAL, 0.9 * product.min() / mean)
    by = towards(-product)
    ahead = problem.products(p.moved(_length(problem, p, by, 0.9999, 0.0), by)).mean() / mean
    aim = min(1.0, max(ahead, 0.0) ** 3)
    by = towards(aim * mean - product - second_order(problem, p, by))
    length = _length(problem, p, by, 0.995, central)
    if length < 0.1:  # off-centre: give up speed for room
        by = towards(max(aim, 0.5) * mean - product)
        length = _length(problem, p, by, 0.995, central)
    return by, length


def _length(problem: Problem, p: Point, by: Point, share: float, central: float) -> float:
    """The longest step (within factors of 0.8) that keeps everything positive and no product far below the mean."""
    length = 1.0
    for at, change in zip(p[:4], by[:4], strict=True):
        falling = change < 0
        length = min(length, share * float(np.min(-at[falling] / change[falling], initial=np.inf)))
    while length > 1e-10:
        ahead = p.moved(length, by)
        product = problem.products(ahead)
        if problem.slack(ahead).min() > 0 and product.min() > 0 and product.min() >= central * product.mean():
            return length
        length *= 0.8
    return 0.0
