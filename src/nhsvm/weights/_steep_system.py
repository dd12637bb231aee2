"""The Newton systems of :mod:`nhsvm.weights._steep`, whose notation this is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy.graph import FloatArray, PtrArray
from nhsvm.weights._interior import newton_system

_REFINEMENTS = 2  # of every Newton solve


class Point(NamedTuple):
    """Where we are, or a step."""

    y: FloatArray
    t: FloatArray
    z: FloatArray
    omega: FloatArray
    beta: float

    def moved(self, length: float, step: Point) -> Point:
        y, t, z, omega = (at + length * by for at, by in zip(self[:4], step[:4], strict=True))
        return Point(y, t, z, omega, self.beta + length * step.beta)


@dataclass(frozen=True)
class Problem:
    """What does not change from step to step."""

    F: sp.csr_array  # with f as last column
    FT: sp.csr_array
    priced: PtrArray  # the forms with c > 0
    a: FloatArray  # their c^{1/ρ}
    rho: float
    goal: float  # the constant above

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

    def bound(self, p: Point) -> float:
        """The lower bound above, with multipliers that are feasible to the last bit."""
        n = self.F.shape[1] - 1
        rest = self.multipliers(p)[n + 1 :]
        back = self.FT @ rest
        w = np.concatenate([-back[:n], [0.0], rest])
        size = norm(np.maximum(w[self.priced] / self.a, 0), self.rho / (self.rho - 1))
        return max(0.0, float(back[n]) / size) if size > 0 else 0.0


def norm(values: FloatArray, exponent: float) -> float:
    largest = values.max()
    return float(largest * ((values / largest) ** exponent).sum() ** (1 / exponent)) if largest > 0 else 0.0


def newton(problem: Problem, p: Point, product: FloatArray) -> Callable[[FloatArray], Point]:
    """A function from desired changes of the products to the step that makes them, linearised.

    In relative changes of t and y, the system of form k is ((M_tt, M_ty), (M_ty, M_yy)); t is eliminated from it.
    """
    m, n, theta, k = len(p.y), problem.F.shape[1], 1 / problem.rho, problem.priced
    slack = problem.slack(p)
    of_y, of_slack, of_t = np.split(product, [m, m + len(k)])
    r, q = p.t**theta / slack, problem.a * p.y[k] / slack
    bend = of_slack * theta * (1 - theta) * r + of_t
    M_tt = of_slack * (theta * r) ** 2 + bend
    M_ty = -of_slack * theta * r * q
    d = of_y / p.y**2
    d[k] += of_slack * q**2 * bend / M_tt / p.y[k] ** 2
    solve = newton_system(problem.F, problem.FT, d)
    missing = problem.missing(p)

    def linear(b_t: FloatArray, b_y: FloatArray, b_x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Steps in w, y and t for given right-hand sides; corrections are collected where they are not rounded away."""
        dw = b_y / p.y
        dw[k] += M_ty * b_t / M_tt / p.y[k]
        dx = np.zeros(n)
        for _ in range(1 + _REFINEMENTS):
            fix = solve(b_x - problem.gathered(dw))
            dx, dw = dx + fix, dw + d * np.concatenate([fix, problem.F @ fix])
        dy = np.concatenate([dx, problem.F @ dx])
        return dw, dy, p.t * (b_t - M_ty * dy[k] / p.y[k]) / M_tt

    border = linear(-p.t, np.zeros(m), np.zeros(n))

    def towards(change: FloatArray) -> Point:
        for_y, for_slack, for_t = np.split(change, [m, m + len(k)])
        b_y = -for_y
        b_y[k] += q * for_slack
        free = linear(theta * r * for_slack + for_t, b_y, missing)
        beta = -float(free[2].sum() / border[2].sum())
        dw, dy, dt = (step + beta * by for step, by in zip(free, border, strict=True))
        # ω from w and z, not w from ω and z: so w obeys its equations to rounding, which the bound depends on
        dz = -dw
        dz[k] = (for_y - p.z * dy)[k] / p.y[k]
        return Point(dy, dt, dz, (dw + dz)[k] / problem.a, beta)

    return towards


def second_order(problem: Problem, p: Point, by: Point) -> FloatArray:
    """What the products change by beyond the linear part."""
    theta = 1 / problem.rho
    h, dt = p.t**theta, by.t / p.t
    bend = 0.5 * theta * (1 - theta) * p.omega * h * dt**2
    slack_change = theta * h * dt - problem.a * by.y[problem.priced]
    of_t = by.t * by.beta - theta**2 * h * by.omega * dt + theta * bend
    return np.concatenate([by.y * by.z, by.omega * slack_change - bend, of_t])
