"""Interior-point method for the α of DAGs: separable convex costs under sparse linear inequalities.

    minimise  Σ_k φ_k(y_k)   over x,   where y = (x, F x + f) ≥ 0

Every weights problem without a closed form is of this kind: the forms y are the weights themselves, what a path leaves
over for its leaf, the slack of a range constraint or of α_child ≥ α_parent (the last two with φ = 0).

The iterates (y, w) are primal *and dual* feasible throughout: y is an affine function of x, and the multipliers obey
w_x + Fᵀ w_rest = 0. Their slack z = φ'(y) − w is kept positive, and by Fenchel's inequality

    primal − dual = Σ_k φ_k(y_k) + φ*_k(w_k) − w_k y_k  ≤  Σ_k y_k z_k,

so every iterate carries a proof of its own accuracy. Newton steps go to y_k z_k = μ with φ' taken exactly in the line
search. That matters for ρ near 1, where a weight of 1e-12 still has a sizeable slope.

The matrices of the Newton systems couple nodes that share a leaf: a leaf meets only its ancestors, low nodes meet few
others, nodes near the roots meet nearly everybody. So :func:`factorise` eliminates, round by round, sets of nodes of
low degree no two of which are coupled (the block to invert is diagonal, and the rest is one sparse product), and gives
what is left to LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from nhsvm.errors import NotSolvedError
from nhsvm.typing import BoolArray, FloatArray, PtrArray

_AIM = 1e-13  # relative gap to stop at
_ACCEPT = 1e-8  # relative gap that must be proved, divided by the degree of the costs
_PATIENCE = 2  # steps without a smaller gap, once it is small enough
_CENTRAL = 1e-3  # the smallest y·z may be this part of their mean
_MOST_STEPS = 200
_REFINEMENTS = 2  # of every Newton solve

_DENSE_SIZE = 300  # below this, LAPACK at once
_DENSE_SHARE = 0.25  # of non-zeros, above which sparse products no longer pay
_LARGEST_DENSE = 15_000  # 1.8 GB
# Added to a unit diagonal, this keeps rounding from making a pivot negative, and the caller's refinement undoes it. The
# less the better, since refinement is slow where the matrix itself is as small. Rounding grows with size.
_NUDGE = 1e-17
_LARGEST_NUDGE = 1e-14
_WORTH_IT = 0.07  # part of the nodes that a round must eliminate to be worth while


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


class _Round(NamedTuple):
    gone: PtrArray  # the eliminated set, mutually uncoupled
    kept: PtrArray
    pivot: FloatArray
    coupling: sp.csr_array  # rows: gone, columns: kept
    scaled: sp.csr_array  # coupling / pivot


def factorise(H: sp.csr_array) -> Callable[[FloatArray], FloatArray]:
    """A function that solves ``H x = b``. Raises ``numpy.linalg.LinAlgError`` if a pivot is not positive."""
    rounds: list[_Round] = []
    while H.shape[0] > _DENSE_SIZE and H.nnz < _DENSE_SHARE * H.shape[0] ** 2:
        row = np.repeat(np.arange(H.shape[0]), np.diff(H.indptr))
        gone = _uncoupled_set(H, row)
        # few candidates: the fill has begun, and one dense factorisation is cheaper than many sparse products
        if gone.sum() < (_WORTH_IT if len(gone) <= _LARGEST_DENSE else 0.01) * len(gone):
            break
        last, kept_block = _eliminate(H, row, gone)
        rounds.append(last)
        H = (kept_block - last.coupling.T @ last.scaled).tocsr()
    solve_rest = _solver_of_rest(H)

    def solve(b: FloatArray) -> FloatArray:
        eliminated = []
        for r in rounds:
            eliminated.append(b[r.gone] / r.pivot)
            b = b[r.kept] - r.coupling.T @ eliminated[-1]
        x = solve_rest(b)
        for r, part in zip(reversed(rounds), reversed(eliminated), strict=True):
            whole = np.empty(len(r.gone) + len(r.kept))
            whole[r.kept] = x
            whole[r.gone] = part - r.scaled @ x
            x = whole
        return x

    return solve


def _uncoupled_set(H: sp.csr_array, row: PtrArray) -> BoolArray:
    """Rows of low degree whose degree (ties: number) is below that of all their neighbours."""
    n = H.shape[0]
    degree = np.diff(H.indptr)
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(n)
    others = np.where(H.indices == row, n, rank[H.indices])
    smallest = np.minimum.reduceat(others, H.indptr[:-1])
    picked: BoolArray = (rank < smallest) & (degree <= max(32, 2 * np.median(degree)))
    return picked


def _eliminate(H: sp.csr_array, row: PtrArray, gone: BoolArray) -> tuple[_Round, sp.csr_array]:
    """One round, and the block of H among the nodes that stay."""
    pivot = H.diagonal()[gone]
    if not (pivot > 0).all():
        raise np.linalg.LinAlgError("a pivot is not positive")
    coupling = _block(H, row, gone, ~gone)
    scaled = coupling.copy()
    scaled.data /= np.repeat(pivot, np.diff(coupling.indptr))
    done = _Round(np.flatnonzero(gone), np.flatnonzero(~gone), pivot, coupling, scaled)
    return done, _block(H, row, ~gone, ~gone)


def _block(H: sp.csr_array, row: PtrArray, rows: BoolArray, columns: BoolArray) -> sp.csr_array:
    """Some rows in some columns: one pass, where scipy's indexing takes several."""
    inside = rows[row] & columns[H.indices]
    number = np.cumsum(columns) - 1
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[inside], minlength=len(rows))[rows])])
    shape = (int(rows.sum()), int(columns.sum()))
    return sp.csr_array((H.data[inside], number[H.indices[inside]], indptr), shape=shape)


def _solver_of_rest(H: sp.csr_array) -> Callable[[FloatArray], FloatArray]:
    n = H.shape[0]
    if n == 0:
        return lambda b: b
    if n > _LARGEST_DENSE:
        options = {"SymmetricMode": True}
        lu = scipy.sparse.linalg.splu(H.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
        return lambda b: np.asarray(lu.solve(b))
    diagonal = H.diagonal()
    if not (diagonal > 0).all():
        raise np.linalg.LinAlgError("a pivot is not positive")
    unit = 1 / np.sqrt(diagonal)
    factor = _dense_factor(H, unit)
    return lambda b: unit * scipy.linalg.cho_solve(factor, unit * b, check_finite=False)


def _dense_factor(H: sp.csr_array, unit: FloatArray) -> tuple[FloatArray, bool]:
    nudge = min(_NUDGE * len(unit), _LARGEST_NUDGE)
    while True:
        dense = H.toarray(order="F")
        dense *= unit
        dense *= unit[:, None]
        dense[np.diag_indices(len(unit))] += nudge
        try:
            factor, lower = scipy.linalg.cho_factor(dense, lower=True, overwrite_a=True, check_finite=False)
            return factor, lower
        except np.linalg.LinAlgError:
            if nudge >= _LARGEST_NUDGE:
                raise
            nudge = min(10 * nudge, _LARGEST_NUDGE)
