"""Scores of samples under stored weights, some samples at a time, on all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import DataError
from nhsvm.storage.samples import LARGEST, SINGLE_LARGEST, magnitude, precise_enough, too_large, within
from nhsvm.storage.weights import Weights, dense_scores
from nhsvm.threads import Team
from nhsvm.typing import Array, DType, Matrix

_SCORES = 2**18  # numbers in the scores of one chunk of samples
_NEAR = 2**20  # numbers of dense samples turned into single precision at a time, so that they stay in the cache
_FEW_ROWS = 160  # samples below which BLAS is slow
_ROWS = 2**25  # numbers, at most

Use = Callable[[slice, Array], None]


def score_in_chunks(
    X: Matrix, weights: Weights, bias: float, use: Use, *, n_threads: int = 1, width: int | None = None
) -> None:
    """``use(rows, scores of the columns)`` for all samples, some at a time, on all threads.

    Parameters
    ----------
    X : csr_array or array
    weights : Weights
    bias : float
        Value of the constant feature.
    use : callable
        What it does for a sample must not depend on the chunk that the sample is in.
    n_threads : int
    width : int, optional
        Numbers a sample that ``use`` needs room for, if more than there are columns.

    Raises
    ------
    DataError
        If scores are not finite, or values of dense samples too large.
    """
    dtype = scoring_precision(X, weights, bias)
    step = max(16, _SCORES // max(1, weights.n_columns, width or 0))
    with Team(n_threads) as team:
        if sp.issparse(X) or not weights.takes_dense:
            _sparse(as_sparse(X), weights, bias, use, dtype, step, team)
        else:
            _dense(X, weights, bias, use, dtype, step, team)


def scoring_precision(X: Matrix, weights: Weights, bias: float) -> DType:
    """To score in: that of dense samples is kept, since they are scored by BLAS in it anyway."""
    if not sp.issparse(X) and X.dtype == np.float64:
        return np.dtype(np.float64)
    return weights.dtype if precise_enough(X, bias) else np.dtype(np.float64)


def as_sparse(X: Matrix) -> sp.csr_array:
    """Samples in rows; dense ones, whose values nobody has looked at, must not be too large."""
    if not sp.issparse(X) and not within(X, LARGEST):
        raise too_large(X)
    return sp.csr_array(X)


def _sparse(X: sp.csr_array, weights: Weights, bias: float, use: Use, dtype: DType, step: int, team: Team) -> None:
    X, kept, bias = weights.plain(X, bias)
    scorer = kept.scorer(X, bias)

    def work(lo: int, hi: int) -> None:
        for rows in _steps(lo, hi, step):
            scores = np.empty((rows.stop - rows.start, weights.n_columns), dtype=dtype)
            scorer(np.arange(rows.start, rows.stop), scores)
            if not magnitude(scores) < np.inf:  # or not a number: no search has a place for such scores
                raise DataError("scores are not finite: the samples, or the weights of the model, are too large")
            use(rows, scores)

    team.split(X.shape[0], work)


def _dense(X: Array, weights: Weights, bias: float, use: Use, dtype: DType, step: int, team: Team) -> None:
    """BLAS has threads of its own, and its bits may depend on the shape of what it is given: chunks in turn."""
    table = weights.dense_table()
    single = _Single(X, table, bias) if X.dtype == np.float64 and table.dtype == np.float32 else None

    def scored(rows: slice) -> Array:
        scores = np.empty((rows.stop - rows.start, weights.n_columns), dtype=dtype)
        dense_scores(X, table, bias, np.arange(rows.start, rows.stop), scores)
        return scores

    for rows in _steps(0, X.shape[0], step if single is None else min(step, single.step)):
        with np.errstate(over="ignore", invalid="ignore"):
            scores = scored(rows) if single is None else single.scores(rows)
            largest = magnitude(scores)
            if single is not None and not largest <= SINGLE_LARGEST:
                scores = scored(rows)
                largest = magnitude(scores)
        if not largest <= LARGEST:  # or not a number
            raise too_large(X)
        if largest <= SINGLE_LARGEST:  # answers have the precision of the weights, as those of sparse samples
            scores = scores.astype(table.dtype, copy=False)
        _share(team, use, rows.start, scores)


class _Single:
    """Scores of dense float64 samples in single precision, for weights that have no more: twice as fast.

    Parameters
    ----------
    X : array of (n_samples, n_features)
    table : array of (n_columns, n_features + 1)
    bias : float
    """

    def __init__(self, X: Array, table: Array, bias: float) -> None:
        self.X, self.coef, self.intercept = X, table[:, :-1].T, table[:, -1] * table.dtype.type(bias)
        self.step = max(16, min(max(_FEW_ROWS, _NEAR // X.shape[1]), _ROWS // X.shape[1]))
        self._rows = np.empty((min(self.step, len(X)), X.shape[1]), dtype=np.float32)

    def scores(self, rows: slice) -> Array:
        """Of up to ``step`` samples; not finite where single precision does not reach."""
        taken = self._rows[: rows.stop - rows.start]
        np.copyto(taken, self.X[rows], casting="same_kind")
        found: Array = taken @ self.coef
        found += self.intercept
        return found


def _share(team: Team, use: Use, start: int, scores: Array) -> None:
    team.split(len(scores), lambda lo, hi: use(slice(start + lo, start + hi), scores[lo:hi]) if lo < hi else None)


def _steps(lo: int, hi: int, step: int) -> Iterator[slice]:
    return (slice(k, min(hi, k + step)) for k in range(lo, hi, step))
