"""Solve H x = b for a sparse symmetric positive definite H whose fill ends in one dense block.

The matrices here couple nodes that share a leaf: a leaf meets only its ancestors, low nodes meet few others, nodes near
the roots meet nearly everybody. So we eliminate, round by round, sets of nodes of low degree no two of which are
coupled (the block to invert is diagonal, and the rest is one sparse product), and give what is left to LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from nhsvm.hierarchy.graph import BoolArray, FloatArray, PtrArray

_DENSE_SIZE = 300  # below this, LAPACK at once
_DENSE_SHARE = 0.25  # of non-zeros, above which sparse products no longer pay
_LARGEST_DENSE = 15_000  # 1.8 GB
# Added to a unit diagonal, this keeps rounding from making a pivot negative, and the caller's refinement undoes it. The
# less the better, since refinement is slow where the matrix itself is as small. Rounding grows with size.
_NUDGE = 1e-17
_LARGEST_NUDGE = 1e-14
_WORTH_IT = 0.07  # part of the nodes that a round must eliminate to be worth while


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
