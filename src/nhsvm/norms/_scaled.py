"""max over probability vectors p (and q) of ‖diag(√p) U diag(√q)‖_*, the dual form of the shared and the max norm.

Write X = diag(√p) U diag(√q) = PΣQᵀ. The value Σ_i σ_i is jointly concave in (p, q). With W = [P; Q], in relative steps
d = (Δp/p, Δq/q):

    gradient   ½ Σ_i W_{li}² σ_i
    Hessian   -½ s_l s_m Σ_{ij} W_{li} W_{lj} W_{mi} W_{mj} σ_i σ_j/(σ_i + σ_j),   s = +1 on rows, -1 on columns.

From any p, q > 0 come the factors A = U diag(√q) QΣ^{-1/2} and B = Uᵀ diag(√p) PΣ^{-1/2} of U = ABᵀ, whose squared row
norms are 2·gradient/p and 2·gradient/q: they prove the upper bound, the value itself is the lower one. The shared norm
has no q (it is 1), and then B has squared Frobenius norm Σ_i σ_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.norms._path import Found, follow

_FEW_FACTORS = 60  # up to here all pairs i ≤ j of singular values, beyond it quadrature, which grows linearly
_RANK = 1e-14  # singular values below this multiple of the largest are rounding


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
        k = int((sigma > _RANK * sigma[0]).sum())
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
    if k <= _FEW_FACTORS:
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
