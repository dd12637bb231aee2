"""The dual form of the shared and the max norm on large matrices: solve it on the few rows and columns that matter.

At the optimum at most k(k+1)/2 rows have p_l > 0, for U of rank k (Carathéodory), and mostly few more than k. Rows and
columns that the best p, q of a submatrix leave too long are added until there are none. The submatrix must have the
rank of U: then its factors extend to all of U exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from nhsvm.hierarchy.graph import FloatArray, PtrArray
from nhsvm.norms._scaled import Scaling, maximise

_ALL_AT_ONCE = 1200  # rows and columns up to which working sets do not pay
_ROUNDS = 60


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
    small = n + columns * m <= _ALL_AT_ONCE
    rows = np.arange(n) if small else _spanning(U, n)
    cols = np.arange(m) if small or not columns else _spanning(U.T, m)
    best: Solution | None = None
    for _ in range(_ROUNDS):
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
