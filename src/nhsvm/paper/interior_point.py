"""A primal-dual interior-point path for smooth convex problems over positive variables.

min f(x) over x > 0 in an affine set. On the central path x_i times its multiplier z_i is μ for all i, and μ goes to
zero. All steps are relative, d_i = Δx_i / x_i, because variables that end at zero shrink by many orders of magnitude.
The norms here are degenerate at their optima (weights that vanish together with what they weigh), so we insist on being
near the path before μ goes down: that is what keeps the bounds tight, which ask for *every* multiplier to be feasible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from nhsvm.typing import FloatArray


@dataclass(frozen=True)
class Tuning:
    """How the path is followed.

    Attributes
    ----------
    near : float
        Residual of stationarity, in units of the multipliers, below which μ may go down; below 1 they are feasible.
    least_cut : float
        Smallest factor of μ in one step.
    spread : float
        x_i z_i stays within this factor of their mean.
    boundary : float
        Share of the way to the boundary that a step may go.
    patience : int
        Iterations without a better gap, near the end of what rounding allows.
    small_gap : float
        Relative gap from which patience counts.
    """

    near: float = 0.3
    least_cut: float = 0.02
    spread: float = 0.1
    boundary: float = 0.98
    patience: int = 12
    small_gap: float = 1e-3


TUNING = Tuning()


class Point(Protocol):
    """A strictly feasible point of a problem."""

    @property
    def x(self) -> FloatArray: ...

    @property
    def objective(self) -> float: ...

    @property
    def slope(self) -> FloatArray:
        """x_i ∂f/∂x_i."""
        ...

    def bounds(self, xz: FloatArray) -> tuple[float, float]:
        """Proved lower and upper bounds of the norm, from x_i z_i."""
        ...

    def offset(self, xz: FloatArray) -> float:
        """The largest residual of stationarity, in units of its multiplier."""
        ...

    def newton(self, xz: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """The function that maps target values of x_i z_i to the relative Newton step towards them."""
        ...


P = TypeVar("P", bound=Point)


@dataclass(frozen=True)
class Found(Generic[P]):
    """The points with the best bounds, and the x_i z_i that go with the lower one."""

    lower: float
    upper: float
    lower_point: P
    lower_xz: FloatArray
    upper_point: P


def follow(point: P, move: Callable[[P, FloatArray], P], tol: float, max_iter: int = 150) -> Found[P]:
    """Follow the path from ``point`` until the bounds agree to ``tol`` or no longer improve.

    ``move(point, d)`` is the point at x·(1 + d). The objective should be of order 1.
    """
    n = len(point.x)
    xz = np.full(n, 1.0 / n)
    found = Found(*point.bounds(xz), point, xz, point)
    best, waited = np.inf, 0
    for _ in range(max_iter):
        lower, upper = point.bounds(xz)
        if lower > found.lower:
            found = Found(lower, found.upper, point, xz, found.upper_point)
        if upper < found.upper:
            found = Found(found.lower, upper, found.lower_point, found.lower_xz, point)
        gap = 1 - found.lower / found.upper
        waited = waited + 1 if gap < TUNING.small_gap and gap > 0.9 * best else 0
        best = min(best, gap)
        if gap <= tol or waited > TUNING.patience:
            break
        try:
            point, xz = _step(point, xz, move)
        except np.linalg.LinAlgError:  # out of digits: what was found is what there is
            break
    return found


def _step(point: P, xz: FloatArray, move: Callable[[P, FloatArray], P]) -> tuple[P, FloatArray]:
    mu = float(xz.mean())
    newton = point.newton(xz)
    if point.offset(xz) > TUNING.near:
        goal, target = mu, np.full_like(xz, mu)
    else:
        goal, target = _predicted(newton, xz, mu)
    d = newton(target)
    dz = target - xz * d - xz
    point, length = _line_search(point, move, d, goal, min(1.0, TUNING.boundary * _room(d)))
    dual_length = min(1.0, TUNING.boundary * _room(dz / xz))
    xz = (xz + dual_length * dz) * (1 + length * d)
    return point, np.clip(xz, TUNING.spread * xz.mean(), xz.mean() / TUNING.spread)


def _predicted(newton: Callable[[FloatArray], FloatArray], xz: FloatArray, mu: float) -> tuple[float, FloatArray]:
    """Mehrotra: how far a step to μ = 0 would get tells the next μ and the second-order term."""
    d = newton(np.zeros_like(xz))
    dz = -xz * d - xz
    reached = float(((1 + min(1.0, _room(d)) * d) * (xz + min(1.0, _room(dz / xz)) * dz)).mean())
    goal = max(TUNING.least_cut, min(1.0, max(reached, 0.0) / mu) ** 2) * mu
    return goal, goal - np.clip(d * dz, -goal, goal)


def _line_search(
    point: P, move: Callable[[P, FloatArray], P], d: FloatArray, mu: float, length: float
) -> tuple[P, float]:
    """Backtrack until f - μ Σ log x falls as its slope promises."""
    slope = float((point.slope - mu) @ d)
    slack = 1e-15 * len(d)
    while True:
        new = move(point, length * d)
        change = new.objective - point.objective - mu * float(np.log1p(length * d).sum())
        if slope >= 0 or change <= 1e-4 * length * slope + slack or length < 1e-4:
            return new, length
        length /= 2


def _room(d: FloatArray) -> float:
    """The largest multiple of the relative step ``d`` that keeps 1 + d ≥ 0."""
    down = float(-d.min())
    return 1 / down if down > 1e-300 else np.inf
