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

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm.typing import FloatArray, PtrArray
from nhsvm.weights.interior import REFINEMENTS, Descent, Solution, certified, descend, newton_system, room, step_length

# on trees of 50,000 nodes with constraints, ρ = 50 takes 220 steps; nearly all else takes fewer than 60
DESCENT = Descent(aim=1e-11, improved=0.5, patience=3, most_steps=400)
_CLOSE = 0.1  # the smallest product, as a part of their mean, while centring
_FEASIBLE = 1e-9  # by how much equations of multipliers may be wrong, relative to the goal


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
    best, gap, step = descend(problem, _centred(problem, p), DESCENT)
    y = np.delete(best.y, n) / best.y[n]
    value = problem.norm(best)
    return certified(y, F @ y[:n] + f, value, gap * value, gap, step)


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
    for _ in range(DESCENT.most_steps):
        if np.abs(problem.missing(p)).max() <= _FEASIBLE * problem.goal:
            break
        product = problem.products(p)
        mean = product.mean()
        central = min(_CLOSE, 0.9 * product.min() / mean)
        try:
            towards = problem.newton(p, product)
        except np.linalg.LinAlgError:
            break
        plain = towards(mean, 0.0)
        bent = towards(mean, problem.second_order(p, plain))
        steps = ((step_length(problem, p, step, 0.9, central), step) for step in (plain, bent))
        length, by = max(steps, key=itemgetter(0))
        if length == 0:
            break
        p = problem.moved(p, length, by)
    return p


class Point(NamedTuple):
    """Where we are, or a step."""

    y: FloatArray
    t: FloatArray
    z: FloatArray
    omega: FloatArray
    beta: float


@dataclass
class Problem:
    """The problem above as :func:`~nhsvm.weights.interior.descend` sees it."""

    F: sp.csr_array  # with f as last column
    FT: sp.csr_array
    priced: PtrArray  # the forms with c > 0
    a: FloatArray  # their c^{1/ρ}
    rho: float
    goal: float  # the constant above
    bound: float = 0.0  # the best lower bound so far

    def gap(self, p: Point) -> tuple[float, float]:
        """As a part of the norm."""
        self.bound = max(self.bound, self._bound(p))
        return 1 - self.bound / self.norm(p), 1.0

    def room(self, p: Point, by: Point) -> float:
        return min(room(at, change) for at, change in zip(p[:4], by[:4], strict=True))

    def ahead(self, p: Point, length: float, by: Point) -> FloatArray | None:
        p = self.moved(p, length, by)
        product = self.products(p)
        return product if self.slack(p).min() > 0 and product.min() > 0 else None

    def moved(self, p: Point, length: float, by: Point) -> Point:
        y, t, z, omega = (at + length * change for at, change in zip(p[:4], by[:4], strict=True))
        return Point(y, t, z, omega, p.beta + length * by.beta)

    def multipliers(self, p: Point) -> FloatArray:
        """The ``w`` of a point, or its change by a step."""
        w = -p.z
        w[self.priced] += self.a * p.omega
        return w

    def slack(self, p: Point) -> FloatArray:
        """The ``ψ`` of a point."""
        return p.t ** (1 / self.rho) - self.a * p.y[self.priced]

    def products(self, p: Point) -> FloatArray:
        """What is to be μ everywhere."""
        theta = 1 / self.rho
        return np.concatenate([p.y * p.z, p.omega * self.slack(p), p.t * p.beta - theta * p.omega * p.t**theta])

    def gathered(self, w: FloatArray) -> FloatArray:
        """w_x + Fᵀ w_rest, κ being one of the x."""
        n = self.F.shape[1]
        return np.asarray(w[:n] + self.FT @ w[n:])

    def missing(self, p: Point) -> FloatArray:
        """By how much the multipliers of a point fail their equations."""
        lack = -self.gathered(self.multipliers(p))
        lack[-1] += self.goal
        return lack

    def norm(self, p: Point) -> float:
        """‖v‖_ρ for the original f."""
        return norm(self.a * p.y[self.priced], self.rho) / float(p.y[self.F.shape[1] - 1])

    def _bound(self, p: Point) -> float:
        """The lower bound above, with multipliers that are feasible to the last bit."""
        n = self.F.shape[1] - 1
        rest = self.multipliers(p)[n + 1 :]
        back = self.FT @ rest
        w = np.concatenate([-back[:n], [0.0], rest])
        size = norm(np.maximum(w[self.priced] / self.a, 0), self.rho / (self.rho - 1))
        return max(0.0, float(back[n]) / size) if size > 0 else 0.0

    def newton(self, p: Point, product: FloatArray) -> Callable[[float, FloatArray | float], Point]:
        """In relative changes of t and y, form k has the system ((M_tt, M_ty), (M_ty, M_yy)); t is eliminated."""
        m, n, theta, k = len(p.y), self.F.shape[1], 1 / self.rho, self.priced
        slack = self.slack(p)
        of_y, of_slack, of_t = np.split(product, [m, m + len(k)])
        r, q = p.t**theta / slack, self.a * p.y[k] / slack
        bend = of_slack * theta * (1 - theta) * r + of_t
        M_tt = of_slack * (theta * r) ** 2 + bend
        M_ty = -of_slack * theta * r * q
        d = of_y / p.y**2
        d[k] += of_slack * q**2 * bend / M_tt / p.y[k] ** 2
        solve = newton_system(self.F, self.FT, d)
        missing = self.missing(p)

        def linear(b_t: FloatArray, b_y: FloatArray, b_x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            """Steps in w, y and t; corrections are collected where they are not rounded away."""
            dw = b_y / p.y
            dw[k] += M_ty * b_t / M_tt / p.y[k]
            dx = np.zeros(n)
            for _ in range(1 + REFINEMENTS):
                fix = solve(b_x - self.gathered(dw))
                dx, dw = dx + fix, dw + d * np.concatenate([fix, self.F @ fix])
            dy = np.concatenate([dx, self.F @ dx])
            return dw, dy, p.t * (b_t - M_ty * dy[k] / p.y[k]) / M_tt

        border = linear(-p.t, np.zeros(m), np.zeros(n))

        def towards(mean: float, less: FloatArray | float) -> Point:
            change = mean - product - less
            for_y, for_slack, for_t = np.split(change, [m, m + len(k)])
            b_y = -for_y
            b_y[k] += q * for_slack
            free = linear(theta * r * for_slack + for_t, b_y, missing)
            beta = -float(free[2].sum() / border[2].sum())
            dw, dy, dt = (step + beta * by for step, by in zip(free, border, strict=True))
            # ω from w and z, not w from ω and z: so w obeys its equations to rounding, which the bound depends on
            dz = -dw
            dz[k] = (for_y - p.z * dy)[k] / p.y[k]
            return Point(dy, dt, dz, (dw + dz)[k] / self.a, beta)

        return towards

    def second_order(self, p: Point, by: Point) -> FloatArray:
        theta = 1 / self.rho
        h, dt = p.t**theta, by.t / p.t
        bend = 0.5 * theta * (1 - theta) * p.omega * h * dt**2
        slack_change = theta * h * dt - self.a * by.y[self.priced]
        of_t = by.t * by.beta - theta**2 * h * by.omega * dt + theta * bend
        return np.concatenate([by.y * by.z, by.omega * slack_change - bend, of_t])


def norm(values: FloatArray, exponent: float) -> float:
    """‖values‖ for values ≥ 0 of any size."""
    largest = values.max()
    return float(largest * ((values / largest) ** exponent).sum() ** (1 / exponent)) if largest > 0 else 0.0
