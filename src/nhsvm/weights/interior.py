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
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from nhsvm.errors import NotSolvedError
from nhsvm.typing import BoolArray, FloatArray, PtrArray

ACCEPT = 1e-8  # relative gap that must be proved, divided by the degree of the costs
REFINEMENTS = 2  # of every Newton solve


@dataclass(frozen=True)
class Descent:
    """When an interior-point method ends, and how near it keeps to the central path."""

    aim: float = 1e-13  # relative gap to stop at
    improved: float = 0.9  # a gap counts as smaller if it is at most this part of the smallest so far
    patience: int = 2  # steps without a smaller gap, once it is below 1e-8; twenty times as many before
    most_steps: int = 200
    central: float = 1e-3  # the smallest product may be this part of their mean


@dataclass(frozen=True)
class Elimination:
    """When sparse elimination gives way to LAPACK."""

    dense_size: int = 300  # rows, below which it is LAPACK at once
    dense_share: float = 0.25  # of non-zeros, above which sparse products no longer pay
    largest_dense: int = 15_000  # rows, which take 1.8 GB; above, SuperLU takes the rest
    worth_it: float = 0.07  # part of the nodes that a round must eliminate to be worth while
    # Added to a unit diagonal, this keeps rounding from making a pivot negative, and the caller's refinement undoes it.
    # The less the better, since refinement is slow where the matrix itself is as small. Rounding grows with size.
    nudge: float = 1e-17
    largest_nudge: float = 1e-14


DESCENT = Descent()
ELIMINATION = Elimination()
Point = TypeVar("Point")


class Method(Protocol[Point]):
    """A problem as :func:`descend` sees it: points, and products that all are to be μ, which goes to zero."""

    def gap(self, p: Point) -> tuple[float, float]:
        """By how much the value of a point may exceed the best one, and that value."""

    def products(self, p: Point) -> FloatArray:
        """What is to be μ everywhere."""

    def room(self, p: Point, by: Point) -> float:
        """The length of step at which something falls to zero."""

    def ahead(self, p: Point, length: float, by: Point) -> FloatArray | None:
        """The products after a step; None if something is not positive there."""

    def moved(self, p: Point, length: float, by: Point) -> Point:
        """The point after a step."""

    def newton(self, p: Point, product: FloatArray) -> Callable[[float, FloatArray | float], Point]:
        """A function from (μ, what to take off) to the step to these products, linearised."""

    def second_order(self, p: Point, by: Point) -> FloatArray:
        """What the products change by beyond the linear part."""


def descend(method: Method[Point], p: Point, limits: Descent) -> tuple[Point, float, int]:
    """The best point on the way down, its gap, and the steps taken."""
    best, best_gap, best_step, step = p, np.inf, 0, 0
    for step in range(limits.most_steps):
        gap, value = method.gap(p)
        if gap < limits.improved * best_gap:
            best, best_gap, best_step = p, gap, step
        # rounding ends the descent: nothing moves any more, or the Newton system has run out of digits
        patience = limits.patience if best_gap < ACCEPT * value else 20 * limits.patience
        if gap <= limits.aim * value or step - best_step > patience:
            break
        try:
            by, length = _step(method, p, limits.central)
        except np.linalg.LinAlgError:
            break
        if length == 0:
            break
        p = method.moved(p, length, by)
    return best, best_gap, step


def _step(method: Method[Point], p: Point, central: float) -> tuple[Point, float]:
    """One predictor-corrector step: a first solve tells how far the way to zero is open, a second one goes."""
    product = method.products(p)
    towards = method.newton(p, product)
    mean = product.mean()
    central = min(central, 0.9 * product.min() / mean)
    by = towards(0.0, 0.0)
    left = method.ahead(p, step_length(method, p, by, 0.9999, 0.0), by)
    aim = 1.0 if left is None else min(1.0, max(left.mean() / mean, 0.0) ** 3)
    by = towards(aim * mean, method.second_order(p, by))
    length = step_length(method, p, by, 0.995, central)
    if length < 0.1:  # off-centre: give up speed for room
        by = towards(max(aim, 0.5) * mean, 0.0)
        length = step_length(method, p, by, 0.995, central)
    return by, length


def step_length(method: Method[Point], p: Point, by: Point, share: float, central: float) -> float:
    """The longest step (within factors of 0.8) that keeps everything positive and no product far below the mean."""
    length = min(1.0, share * method.room(p, by))
    while length > 1e-10:
        product = method.ahead(p, length, by)
        if product is not None and product.min() >= central * product.mean():
            return length
        length *= 0.8
    return 0.0


def room(at: FloatArray, change: FloatArray) -> float:
    """The length of step at which one of the numbers falls to zero."""
    falling = change < 0
    return float(np.min(-at[falling] / change[falling], initial=np.inf))


# -- separable costs ---------------------------------------------------------------------------------------------------


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
    method = _Separable(costs, F, sp.csr_array(F.T))
    start = _Feasible(np.concatenate([x, F @ x + f]), method.multipliers(w_rest))
    (y, w), _, step = descend(method, start, DESCENT)
    w = method.multipliers(w[n:])  # feasible to the last bit
    value = float(costs.value(y).sum())
    gap = float((costs.value(y) + costs.conjugate(w) - w * y).sum())
    return certified(y, F @ y[:n] + f, value, gap, gap / (costs.degree * value), step)


class _Feasible(NamedTuple):
    """Where we are, or a step."""

    y: FloatArray
    w: FloatArray


@dataclass(frozen=True)
class _Separable:
    """The problem of :func:`minimise`; its products are y·z."""

    costs: Costs
    F: sp.csr_array
    FT: sp.csr_array

    def multipliers(self, w_rest: FloatArray) -> FloatArray:
        """All of ``w``."""
        return np.concatenate([-(self.FT @ w_rest), w_rest])

    def gap(self, p: _Feasible) -> tuple[float, float]:
        return float(p.y @ self._slack(p)), float(abs(self.costs.value(p.y).sum()))

    def _slack(self, p: _Feasible) -> FloatArray:
        """The ``z`` of a point."""
        return self.costs.slope(p.y) - p.w

    def products(self, p: _Feasible) -> FloatArray:
        return p.y * self._slack(p)

    def room(self, p: _Feasible, by: _Feasible) -> float:
        return room(p.y, by.y)

    def ahead(self, p: _Feasible, length: float, by: _Feasible) -> FloatArray | None:
        y = p.y + length * by.y
        slack = self.costs.slope(y) - p.w - length * by.w
        return y * slack if slack.min() > 0 else None

    def moved(self, p: _Feasible, length: float, by: _Feasible) -> _Feasible:
        return _Feasible(p.y + length * by.y, p.w + length * by.w)

    def newton(self, p: _Feasible, product: FloatArray) -> Callable[[float, FloatArray | float], _Feasible]:
        F, FT, n, z = self.F, self.FT, self.F.shape[1], self._slack(p)
        d = self.costs.curvature(p.y) + z / p.y
        solve = newton_system(F, FT, d)

        def towards(mean: float, less: FloatArray | float) -> _Feasible:
            """Inside the feasible sets."""
            r = (mean - less) / p.y - z
            dx = solve(r[:n] + FT @ r[n:])
            dw_rest = d[n:] * (F @ dx) - r[n:]
            # Rows with y near 0 have huge d, which blows up the rounding of F @ dx. Corrections are small, hence
            # accurate, and collected in dw itself they are not rounded away.
            for _ in range(REFINEMENTS):
                fix = solve(r[:n] - d[:n] * dx - FT @ dw_rest)
                dx, dw_rest = dx + fix, dw_rest + d[n:] * (F @ fix)
            return _Feasible(np.concatenate([dx, F @ dx]), self.multipliers(dw_rest))

        return towards

    def second_order(self, p: _Feasible, by: _Feasible) -> FloatArray:
        return by.y * (self.costs.curvature(p.y) * by.y - by.w)


def certified(y: FloatArray, rest: FloatArray, value: float, gap: float, relative: float, n_steps: int) -> Solution:
    """A solution, if its gap in units of y is ``relative`` at the most and its last forms are what they should be."""
    drift = float(np.abs(y[len(y) - len(rest) :] - rest).max(initial=0.0))
    if not (relative <= ACCEPT and drift <= ACCEPT):
        raise NotSolvedError(
            f"the node weights could not be computed: after {n_steps} steps the relative duality gap is "
            f"{relative:.1e} and the constraints are met to {drift:.1e}, not both to {ACCEPT:.0e}"
        )
    return Solution(y, value, max(gap, 0.0), n_steps)


# -- Newton systems ----------------------------------------------------------------------------------------------------


def newton_system(F: sp.csr_array, FT: sp.csr_array, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Solver of (I Fᵀ) diag(d) (I; F) x = b, by sparse Cholesky."""
    n = F.shape[1]
    return factorise((sp.diags_array(d[:n]) + FT @ sp.diags_array(d[n:]) @ F).tocsr())


class _Round(NamedTuple):
    gone: PtrArray  # the eliminated set, mutually uncoupled
    kept: PtrArray
    pivot: FloatArray
    coupling: sp.csr_array  # rows: gone, columns: kept
    scaled: sp.csr_array  # coupling / pivot


def factorise(H: sp.csr_array) -> Callable[[FloatArray], FloatArray]:
    """A function that solves ``H x = b``. Raises ``numpy.linalg.LinAlgError`` if a pivot is not positive."""
    rounds: list[_Round] = []
    while H.shape[0] > ELIMINATION.dense_size and H.nnz < ELIMINATION.dense_share * H.shape[0] ** 2:
        row = np.repeat(np.arange(H.shape[0]), np.diff(H.indptr))
        gone = _uncoupled_set(H, row)
        # few candidates: the fill has begun, and one dense factorisation is cheaper than many sparse products
        if gone.sum() < (ELIMINATION.worth_it if len(gone) <= ELIMINATION.largest_dense else 0.01) * len(gone):
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
    if n > ELIMINATION.largest_dense:
        options = {"SymmetricMode": True}
        lu = scipy.sparse.linalg.splu(H.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
        return lambda b: np.asarray(lu.solve(b))
    return dense_solver(H.diagonal(), lambda: H.toarray(order="F"))


def dense_solver(diagonal: FloatArray, made: Callable[[], FloatArray]) -> Callable[[FloatArray], FloatArray]:
    """A function that solves ``H x = b`` by LAPACK's Cholesky, of H with a unit diagonal.

    ``made`` gives H in Fortran order, each time an array of its own; its lower half is read. Raises
    ``numpy.linalg.LinAlgError`` if a pivot is not positive.
    """
    if not (diagonal > 0).all():
        raise np.linalg.LinAlgError("a pivot is not positive")
    unit = 1 / np.sqrt(diagonal)
    factor = _dense_factor(made, unit)
    return lambda b: unit * scipy.linalg.cho_solve(factor, unit * b, check_finite=False)


def _dense_factor(made: Callable[[], FloatArray], unit: FloatArray) -> tuple[FloatArray, bool]:
    nudge = min(ELIMINATION.nudge * len(unit), ELIMINATION.largest_nudge)
    while True:
        dense = made()
        dense *= unit
        dense *= unit[:, None]
        dense[np.diag_indices(len(unit))] += nudge
        try:
            factor, lower = scipy.linalg.cho_factor(dense, lower=True, overwrite_a=True, check_finite=False)
            return factor, lower
        except np.linalg.LinAlgError:
            if nudge >= ELIMINATION.largest_nudge:
                raise
            nudge = min(10 * nudge, ELIMINATION.largest_nudge)
