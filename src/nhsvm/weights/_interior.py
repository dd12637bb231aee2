"""Interior-point method for the α of DAGs: separable convex costs under sparse linear inequalities.

    minimise  Σ_k φ_k(y_k)   over x,   where y = (x, F x + f) ≥ 0

Every weights problem without a closed form is of this kind: the forms y are the weights themselves, what a path leaves
over for its leaf, the slack of a range constraint or of α_child ≥ α_parent (the last two with φ = 0).

The iterates (y, w) are primal *and dual* feasible throughout: y is an affine function of x, and the multipliers obey
w_x + Fᵀ w_rest = 0. Their slack z = φ'(y) − w is kept positive, and by Fenchel's inequality

    primal − dual = Σ_k φ_k(y_k) + φ*_k(w_k) − w_k y_k  ≤  Σ_k y_k z_k,

so every iterate carries a proof of its own accuracy. Newton steps go to y_k z_k = μ with φ' taken exactly in the line
search. That matters for ρ near 1, where a weight of 1e-12 still has a sizeable slope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import NotSolvedError
from nhsvm.hierarchy.graph import FloatArray, PtrArray
from nhsvm.weights._cholesky import factorise

_AIM = 1e-13  # relative gap to stop at
_ACCEPT = 1e-8  # relative gap that must be proved, divided by the degree of the costs
_PATIENCE = 2  # steps without a smaller gap, once it is small enough
_CENTRAL = 1e-3  # the smallest y·z may be this part of their mean
_MOST_STEPS = 200
_REFINEMENTS = 2  # of every Newton solve


class Costs(Protocol):
    """φ_k, one for every form; all are convex and defined for y > 0."""

    @property
    def degree(self) -> float:
        """|d| where φ(t·y) = t^d φ(y): a relative gap of d·ε in the sum of costs is one of ε in units of y."""

    def value(self, y: FloatArray) -> FloatArray: ...
    def slope(self, y: FloatArray) -> FloatArray: ...
    def curvature(self, y: FloatArray) -> FloatArray: ...
    def conjugate(self, w: FloatArray) -> FloatArray:
        """φ*_k(w_k) = max over y ≥ 0 of w_k y − φ_k(y); inf where there is no maximum."""


@dataclass(frozen=True)
class Powers:
    """φ(y) = c·y^ρ; c = 0 makes a mere constraint y ≥ 0."""

    c: FloatArray
    rho: float

    @cached_property
    def priced(self) -> PtrArray:
        """Where c > 0: powers take time, and constraints are many."""
        return np.flatnonzero(self.c)

    @property
    def degree(self) -> float:
        return self.rho

    def value(self, y: FloatArray) -> FloatArray:
        return self._powers(1.0, y, self.rho)

    def slope(self, y: FloatArray) -> FloatArray:
        return self._powers(self.rho, y, self.rho - 1)

    def curvature(self, y: FloatArray) -> FloatArray:
        return self._powers(self.rho * (self.rho - 1), y, self.rho - 2)

    def conjugate(self, w: FloatArray) -> FloatArray:
        out = np.where(w > 0, np.inf, 0.0)
        k = (w > 0) & (self.c > 0)
        with np.errstate(over="ignore"):
            exponent = self.rho / (self.rho - 1)
            out[k] = self.c[k] * (self.rho - 1) * np.exp(exponent * np.log(w[k] / (self.rho * self.c[k])))
        return out

    def _powers(self, factor: float, y: FloatArray, exponent: float) -> FloatArray:
        out = np.zeros(len(y))
        out[self.priced] = factor * self.c[self.priced] * y[self.priced] ** exponent
        return out


@dataclass(frozen=True)
class Inverses:
    """φ(y) = b/y; b = 0 makes a mere constraint y ≥ 0."""

    b: FloatArray

    @property
    def degree(self) -> float:
        return 1.0

    def value(self, y: FloatArray) -> FloatArray:
        return self.b / y

    def slope(self, y: FloatArray) -> FloatArray:
        return -self.b / y**2

    def curvature(self, y: FloatArray) -> FloatArray:
        return 2 * self.b / y**3

    def conjugate(self, w: FloatArray) -> FloatArray:
        return np.where(w > 0, np.inf, -2 * np.sqrt(self.b * np.maximum(-w, 0)))


class Solution(NamedTuple):
    """What was found, and how good it is proved to be."""

    y: FloatArray
    value: float
    gap: float  # value − (best possible value) ≤ gap
    n_steps: int


def minimise(
    costs: Costs,
    F: sp.csr_array,
    f: FloatArray,
    x: FloatArray,
    w_rest: FloatArray,
) -> Solution:
    """Solve the problem above.

    Parameters
    ----------
    costs : Costs
        For the forms ``(x, F x + f)``.
    F, f : the rows after the identity
    x : array
        Start with all forms positive.
    w_rest : array
        Multipliers of the rows of ``F`` to start from, with φ'(y) − w > 0 for all forms.

    Raises
    ------
    NotSolvedError
        If a relative gap of 1e-8 cannot be proved.
    """
    n = len(x)
    F = sp.csr_array(F)
    FT = sp.csr_array(F.T)
    y = np.concatenate([x, F @ x + f])
    w = np.concatenate([-(FT @ w_rest), w_rest])
    best, best_gap, best_step, step = (y, w), np.inf, 0, 0
    for step in range(_MOST_STEPS):
        z = costs.slope(y) - w
        gap = float(y @ z)
        if gap < 0.9 * best_gap:
            best, best_gap, best_step = (y, w), gap, step
        value = abs(costs.value(y).sum())
        # rounding ends the descent: nothing moves any more, or the Newton system has run out of digits
        stuck = step - best_step > (_PATIENCE if gap < _ACCEPT * value else 20 * _PATIENCE)
        if stuck or gap <= _AIM * value:
            break
        try:
            dy, dw, length = _step(costs, F, FT, y, w, z)
        except np.linalg.LinAlgError:
            break
        if length == 0:
            break
        y, w = y + length * dy, w + length * dw
    y, w = best
    w = np.concatenate([-(FT @ w[n:]), w[n:]])  # feasible to the last bit
    value = float(costs.value(y).sum())
    gap = float((costs.value(y) + costs.conjugate(w) - w * y).sum())
    return certified(y, F @ y[:n] + f, value, gap, gap / (costs.degree * value), step)


def newton_system(F: sp.csr_array, FT: sp.csr_array, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solver of (I Fᵀ) diag(d) (I; F) x = b, by sparse Cholesky."""
    n = F.shape[1]
    return factorise((sp.diags_array(d[:n]) + FT @ sp.diags_array(d[n:]) @ F).tocsr())


def _step(
    costs: Costs, F: sp.csr_array, FT: sp.csr_array, y: FloatArray, w: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """One predictor-corrector step: a first solve tells how far the way to zero is open, a second one goes."""
    n = F.shape[1]
    d = costs.curvature(y) + z / y
    solve = newton_system(F, FT, d)

    def newton(target: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """The step to y z = target, linearised, inside the feasible sets."""
        r = target / y - z
        dx = solve(r[:n] + FT @ r[n:])
        dw_rest = d[n:] * (F @ dx) - r[n:]
        # Rows with y near 0 have huge d, which blows up the rounding of F @ dx. Corrections are small, hence accurate,
        # and collected in dw itself they are not rounded away.
        for _ in range(_REFINEMENTS):
            fix = solve(r[:n] - d[:n] * dx - FT @ dw_rest)
            dx, dw_rest = dx + fix, dw_rest + d[n:] * (F @ fix)
        return np.concatenate([dx, F @ dx]), np.concatenate([-(FT @ dw_rest), dw_rest])

    product = y * z
    mean = product.mean()
    central = min(_CENTRAL, 0.9 * product.min() / mean)
    dy, dw = newton(0.0)
    open_way = _length(costs, y, w, dy, dw, 0.9999, 0.0)
    ahead = y + open_way * dy
    left = (ahead * (costs.slope(ahead) - w - open_way * dw)).mean() / mean
    aim = min(1.0, max(left, 0.0) ** 3)
    second_order = dy * (costs.curvature(y) * dy - dw)
    dy, dw = newton(aim * mean - second_order)
    length = _length(costs, y, w, dy, dw, 0.995, central)
    if length < 0.1:  # off-centre: give up speed for room
        dy, dw = newton(max(aim, 0.5) * mean)
        length = _length(costs, y, w, dy, dw, 0.995, central)
    return dy, dw, length


def _length(
    costs: Costs, y: FloatArray, w: FloatArray, dy: FloatArray, dw: FloatArray, share: float, central: float
) -> float:
    """The longest step (within factors of 0.8) that keeps y and z positive and no product far below the mean."""
    falling = dy < 0
    length = min(1.0, share * float(np.min(-y[falling] / dy[falling]))) if falling.any() else 1.0
    while length > 1e-10:
        ahead = y + length * dy
        slack = costs.slope(ahead) - w - length * dw
        product = ahead * slack
        if slack.min() > 0 and product.min() >= central * product.mean():
            return length
        length *= 0.8
    return 0.0


def certified(y: FloatArray, rest: FloatArray, value: float, gap: float, relative: float, n_steps: int) -> Solution:
    """A solution, if its gap in units of y is ``relative`` at the most and its last forms are what they should be."""
    drift = float(np.abs(y[len(y) - len(rest) :] - rest).max(initial=0.0))
    if not (relative <= _ACCEPT and drift <= _ACCEPT):
        raise NotSolvedError(
            f"the node weights could not be computed: after {n_steps} steps the relative duality gap is "
            f"{relative:.1e} and the constraints are met to {drift:.1e}, not both to {_ACCEPT:.0e}"
        )
    return Solution(y, value, max(gap, 0.0), n_steps)
