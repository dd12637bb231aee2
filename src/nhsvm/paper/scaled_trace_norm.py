"""max over probability vectors p (and q) of ‖diag(√p) U diag(√q)‖_*, the dual form of the shared and the max norm.

Write X = diag(√p) U diag(√q) = PΣQᵀ. The value Σ_i σ_i is jointly concave in (p, q). With W = [P; Q], in relative steps
d = (Δp/p, Δq/q):

    gradient   ½ Σ_i W_{li}² σ_i
    Hessian   -½ s_l s_m Σ_{ij} W_{li} W_{lj} W_{mi} W_{mj} σ_i σ_j/(σ_i + σ_j),   s = +1 on rows, -1 on columns.

From any p, q > 0 come the factors A = U diag(√q) QΣ^{-1/2} and B = Uᵀ diag(√p) PΣ^{-1/2} of U = ABᵀ, whose squared row
norms are 2·gradient/p and 2·gradient/q: they prove the upper bound, the value itself is the lower one. The shared norm
has no q (it is 1), and then B has squared Frobenius norm Σ_i σ_i.

A large matrix is solved on a working set of its rows and columns. At the optimum at most k(k+1)/2 rows have p_l > 0,
for U of rank k (Carathéodory), and mostly few more than k. Rows and columns that the best p, q of the submatrix leave
too long are added until there are none. The submatrix must have the rank of U: then its factors extend to all of U
exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from nhsvm.paper.interior_point import Found, follow
from nhsvm.typing import FloatArray, PtrArray


@dataclass(frozen=True)
class Tuning:
    """Sizes at which methods change.

    Attributes
    ----------
    whole : int
        Rows and columns up to which working sets do not pay.
    rounds : int
        Working sets that are tried.
    factors : int
        Singular values up to which all pairs i ≤ j are summed; beyond it quadrature, which grows linearly.
    rank : float
        Singular values below this multiple of the largest are rounding.
    """

    whole: int = 1200
    rounds: int = 60
    factors: int = 60
    rank: float = 1e-14


TUNING = Tuning()


@dataclass(frozen=True)
class Solution:
    """Weights on all rows and columns, U = left @ right, and the bounds these prove."""

    p: FloatArray
    q: FloatArray
    left: FloatArray
    right: FloatArray
    lower: float
    upper: float


def solve(U: FloatArray, columns: bool, tol: float) -> Solution:
    """Maximise ‖diag(√p) U diag(√q)‖_* for a matrix of any size without zero rows (and columns)."""
    n, m = U.shape
    small = n + columns * m <= TUNING.whole
    rows = np.arange(n) if small else _spanning(U, n)
    cols = np.arange(m) if small or not columns else _spanning(U.T, m)
    best: Solution | None = None
    for _ in range(TUNING.rounds):
        found = maximise(U[np.ix_(rows, cols)], columns, 0.5 * tol)
        new = _extended(U, rows, cols, found.lower_point, found.upper_point, columns)
        if best is None or new.upper - new.lower < best.upper - best.lower:
            best = new
        if small or new.upper - new.lower <= tol * new.upper:
            break
        more_rows = _too_long(new.left, rows, 0.25 * tol)
        more_cols = _too_long(new.right.T, cols, 0.25 * tol) if columns else cols[:0]
        if not len(more_rows) and not len(more_cols):
            break
        rows, cols = np.union1d(rows, more_rows), np.union1d(cols, more_cols)
    assert best is not None
    return best


def _extended(U: FloatArray, rows: PtrArray, cols: PtrArray, dual: Scaling, primal: Scaling, columns: bool) -> Solution:
    """The factors of all of U from those of the submatrix, with what they cost and prove."""
    p, q = np.zeros(len(U)), np.zeros(U.shape[1])
    p[rows], q[cols] = dual.p, dual.q
    lower = float(np.linalg.svd(np.sqrt(p)[:, None] * U * np.sqrt(q), compute_uv=False).sum())
    P, sigma, Q = replace(primal, U=U[np.ix_(rows, cols)]).svd  # the path had rescaled it
    root = np.sqrt(sigma)
    left = U[:, cols] @ (np.sqrt(primal.q)[:, None] * Q / root)
    if columns:
        right = (P * np.sqrt(primal.p)[:, None] / root).T @ U[rows]
        right[:, cols] = root[:, None] * (Q / np.sqrt(primal.q)[:, None]).T  # the same with fewer digits lost
        left, right = _completed(U, left, right)
        length = float(np.sqrt((right**2).sum(axis=0).max()))
    else:
        right = root[:, None] * Q.T
        length = float(np.linalg.norm(right))
    upper = float(np.sqrt((left**2).sum(axis=1).max())) * length
    return Solution(p, q, left, right, min(lower, upper), upper)


def _completed(U: FloatArray, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Factors for what rounding left over.

    Where a row and a column both have next to no weight, their entry is lost below the other singular values. Both have
    room to spare, though (that is why they have no weight), so further factors for it cost nothing.
    """
    rest = U - left @ right
    if np.abs(rest).max() <= 1e-14:
        return left, right
    balance = np.sqrt((right**2).sum(axis=0).max() / (left**2).sum(axis=1).max())
    P, sigma, Qt = np.linalg.svd(rest, full_matrices=False)
    k = int((sigma > 1e-14).sum())
    root = np.sqrt(sigma[:k])
    return (
        np.concatenate([left, P[:, :k] * root / np.sqrt(balance)], axis=1),
        np.concatenate([right, (Qt[:k].T * root * np.sqrt(balance)).T]),
    )


def _spanning(U: FloatArray, n: int) -> PtrArray:
    """Rows to begin with: as many independent ones as the rank, and the longest ones."""
    R, order = scipy.linalg.qr(U.T, mode="r", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > 1e-13 * diagonal[0]).sum())
    longest = np.argsort(-(U**2).sum(axis=1), kind="stable")[: max(50, rank)]
    return np.union1d(order[:rank], longest)


def _too_long(factor: FloatArray, inside: PtrArray, tol: float) -> PtrArray:
    """The worst rows of a factor outside the working set that are longer than all inside: at most as many as inside."""
    length = np.sqrt((factor**2).sum(axis=1))
    limit = length[inside].max() * (1 + tol)
    length[inside] = 0
    worst = np.argsort(-length, kind="stable")[: max(50, len(inside) // 2)]
    return np.asarray(worst[length[worst] > limit])


@dataclass(frozen=True)
class Scaling:
    """A point (p, q) with X = PΣQᵀ; ``columns`` says whether q is a variable."""

    U: FloatArray
    p: FloatArray
    q: FloatArray
    columns: bool

    @cached_property
    def svd(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """P, σ, Q without the singular values that are rounding."""
        X = np.sqrt(self.p)[:, None] * self.U * np.sqrt(self.q)
        P, sigma, Qt = np.linalg.svd(X, full_matrices=False)
        k = int((sigma > TUNING.rank * sigma[0]).sum())
        return P[:, :k], sigma[:k], Qt[:k].T

    @cached_property
    def x(self) -> FloatArray:
        return np.concatenate([self.p, self.q]) if self.columns else self.p

    @cached_property
    def objective(self) -> float:
        return -float(self.svd[1].sum())

    @cached_property
    def slope(self) -> FloatArray:
        P, sigma, Q = self.svd
        return -0.5 * (np.concatenate([P**2, Q**2]) @ sigma if self.columns else P**2 @ sigma)

    def bounds(self, xz: FloatArray) -> tuple[float, float]:
        """The value, and what the factors of this point cost."""
        lengths = -2 * self.slope / self.x
        n = len(self.p)
        right = float(lengths[n:].max()) if self.columns else -self.objective
        return -self.objective, float(np.sqrt(lengths[:n].max() * right))

    @cached_property
    def _simplices(self) -> FloatArray:
        """Rows: the gradients of Σp = 1 and of Σq = 1, in relative steps."""
        n = len(self.p)
        out = np.zeros((1 + self.columns, len(self.x)))
        out[0, :n] = self.p
        if self.columns:
            out[1, n:] = self.q
        return out

    def offset(self, xz: FloatArray) -> float:
        """By how much x_i(∂_i + z_i) differs from x_i times its mean, the multiplier of the simplex."""
        pull = xz - self.slope
        E = self._simplices
        mean = (E > 0) @ pull
        return float(np.abs((pull - mean @ E) / xz).max())

    def newton(self, xz: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """(-Hessian + diag(x z)) d = gradient + target, within the simplices."""
        P, sigma, Q = self.svd
        H = _curvature(np.concatenate([P, Q]) if self.columns else P, sigma)
        n = len(self.p)
        H[:n, n:] *= -1
        H[n:, :n] *= -1
        E = self._simplices
        H += np.diag(xz) + E.T @ E  # the last term is idle on the simplices and makes H well-conditioned across them
        factor = scipy.linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        across = scipy.linalg.cho_solve(factor, E.T, check_finite=False)

        def step(target: FloatArray) -> FloatArray:
            free = scipy.linalg.cho_solve(factor, target - self.slope, check_finite=False)
            return np.asarray(free - across @ np.linalg.solve(E @ across, E @ free))

        return step


def maximise(U: FloatArray, columns: bool, tol: float) -> Found[Scaling]:
    """The best p (and q, with ``columns``) for a matrix without zero rows (and columns); ``U`` of order 1."""
    n, m = U.shape
    q = np.full(m, 1 / m) if columns else np.ones(m)
    start = Scaling(U, np.full(n, 1 / n), q, columns)
    scale = -start.objective  # of order 1, as the path likes it
    return follow(replace(start, U=U / scale), _moved, tol)


def _moved(at: Scaling, d: FloatArray) -> Scaling:
    n = len(at.p)
    p = at.p * (1 + d[:n])
    q = at.q * (1 + d[n:]) if at.columns else at.q
    return Scaling(at.U, p / p.sum(), q / q.sum() if at.columns else q, at.columns)


def _curvature(W: FloatArray, sigma: FloatArray) -> FloatArray:
    """½ Σ_{ij} W_{li} W_{lj} W_{mi} W_{mj} σ_i σ_j/(σ_i + σ_j), over l and m."""
    k = len(sigma)
    if k <= TUNING.factors:
        i, j = np.triu_indices(k)
        weight = sigma[i] * sigma[j] / (sigma[i] + sigma[j]) * np.where(i == j, 0.5, 1.0)
        pairs = W[:, i] * W[:, j] * np.sqrt(weight)
        return np.asarray(pairs @ pairs.T)
    # 1/s = ∫ exp(u - s eᵘ) du, so the sum over i and j is a square for every u. Steps of 0.8 leave a relative error of
    # about 1e-5, plenty for a Newton matrix; each term is positive semidefinite, so the whole stays so.
    step = 0.8
    u = np.arange(np.log(1e-5 / (2 * sigma[0])), np.log(12 / (2 * sigma[-1])) + step, step)
    out = np.zeros((len(W), len(W)))
    for t in np.exp(u):
        damped = sigma * np.exp(-t * sigma)
        used = damped**2 * t > 1e-12 * sigma  # this many of the smallest or largest values matter at this u
        part = W[:, used] * np.sqrt(damped[used])
        gram = part @ part.T
        out += (0.5 * step * t) * gram * gram
    return out
