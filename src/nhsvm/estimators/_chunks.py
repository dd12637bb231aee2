"""Scores of samples under stored weights, some samples at a time, on all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import DataError
from nhsvm.estimators._data import LARGEST, SINGLE_LARGEST, precise_enough, too_large, within
from nhsvm.estimators._options import n_threads
from nhsvm.packed import Packed
from nhsvm.rows import StoredRows

_SCORES = 2**18  # numbers in the scores of one chunk of samples
_NEAR = 2**20  # numbers of dense samples turned into single precision at a time, so that they stay in the cache
_FEW_ROWS = 160  # samples below which BLAS is slow
_ROWS = 2**25  # numbers, at most

Floats = npt.NDArray[Any]


class Learned(NamedTuple):
    """U as it was learned.

    Attributes
    ----------
    values : array, StoredRows or Packed
        Feature-major with shape (n_features + 1, n_columns) if ``by_feature``, else (n_columns, n_features + 1).
    by_feature : bool
    bias : float
        Value of the constant feature, whose weights are the last.
    """

    values: Any
    by_feature: bool
    bias: float

    @classmethod
    def of(cls, solution: Any, problem: Any) -> Learned:
        """What a solution has learned from the samples of a problem."""
        return cls(solution.weights.learned(), sp.issparse(problem.X), problem.bias)

    @property
    def n_columns(self) -> int:
        return int(self.values.shape[1 if self.by_feature else 0])


def in_chunks(
    X: Any, learned: Learned, use: Callable[[slice, Floats], None], n_jobs: int | None, width: int | None = None
) -> None:
    """``use(rows, scores of the columns)`` for all samples, some at a time, on all threads.

    Parameters
    ----------
    X : csr_array or array
    learned : Learned
    use : callable
        What it does for a sample must not depend on the chunk that the sample is in.
    n_jobs : int or None
    width : int, optional
        Numbers a sample that ``use`` needs room for, if more than there are columns.
    """
    from nhsvm.engine.samples import prepare
    from nhsvm.engine.storage.rows import StoredWeights
    from nhsvm.engine.storage.table import DenseWeights, SparseWeights
    from nhsvm.threads import Team

    values, by_feature, bias = learned
    dtype = scoring_precision(X, learned)
    step = max(16, _SCORES // max(1, learned.n_columns, width or 0))

    def scored(weights: Any, rows: slice) -> Floats:
        scores = np.empty((rows.stop - rows.start, learned.n_columns), dtype=dtype)
        weights.scores(np.arange(rows.start, rows.stop), scores)
        return scores

    if isinstance(values, Packed):
        X, values, bias = unpacked(X, values, bias)
    with Team(n_threads(n_jobs)) as team:
        if sp.issparse(X) or isinstance(values, StoredRows):
            X = as_sparse(X)
            sparse: Any
            if isinstance(values, StoredRows):
                sparse = StoredWeights(prepare(X), values, bias)
            else:
                sparse = SparseWeights(prepare(X), np.ascontiguousarray(values if by_feature else values.T), bias)

            def work(lo: int, hi: int) -> None:
                for rows in _steps(lo, hi, step):
                    scores = scored(sparse, rows)
                    if not _largest(scores) < np.inf:  # or not a number: no search has a place for such scores
                        raise DataError(
                            "scores are not finite: the samples, or the weights of the model, are too large"
                        )
                    use(rows, scores)

            team.split(X.shape[0], work)
            return
        dense = DenseWeights(X, values.T if by_feature else values, bias)
        single = _Single(X, dense) if X.dtype == np.float64 and values.dtype == np.float32 else None
        for rows in _steps(0, X.shape[0], step if single is None else min(step, single.step)):
            # BLAS has threads of its own, and its bits may depend on the shape of what it is given
            with np.errstate(over="ignore", invalid="ignore"):
                scores = scored(dense, rows) if single is None else single.scores(rows)
                largest = _largest(scores)
                if single is not None and not largest <= SINGLE_LARGEST:
                    scores = scored(dense, rows)
                    largest = _largest(scores)
            if not largest <= LARGEST:  # or not a number
                raise too_large(X)
            if largest <= SINGLE_LARGEST:  # answers have the precision of the weights, as those of sparse samples
                scores = scores.astype(values.dtype, copy=False)
            _share(team, use, rows.start, scores)


class _Single:
    """Scores of dense float64 samples in single precision, for weights that have no more: twice as fast.

    Parameters
    ----------
    X : array of (n_samples, n_features)
    weights : DenseWeights
    """

    def __init__(self, X: Floats, weights: Any) -> None:
        self.X, self.coef, self.intercept = X, weights.coef().T, weights.intercept()
        self.step = max(16, min(max(_FEW_ROWS, _NEAR // X.shape[1]), _ROWS // X.shape[1]))
        self._rows = np.empty((min(self.step, len(X)), X.shape[1]), dtype=np.float32)

    def scores(self, rows: slice) -> Floats:
        """Of up to ``step`` samples; not finite where single precision does not reach."""
        taken = self._rows[: rows.stop - rows.start]
        np.copyto(taken, self.X[rows], casting="same_kind")
        found: Floats = taken @ self.coef
        found += self.intercept
        return found


def _largest(scores: Floats) -> float:
    return max(float(scores.max(initial=0.0)), -float(scores.min(initial=0.0)))


def scoring_precision(X: Any, learned: Learned) -> np.dtype[Any]:
    """To score in: that of dense samples is kept, since they are scored by BLAS in it anyway."""
    if not sp.issparse(X) and X.dtype == np.float64:
        return np.dtype(np.float64)
    return learned.values.dtype if precise_enough(X, learned.bias) else np.dtype(np.float64)


def as_sparse(X: Any) -> Any:
    """Samples in rows; dense ones, whose values nobody has looked at, must not be too large."""
    if not sp.issparse(X) and not within(X, LARGEST):
        raise too_large(X)
    return sp.csr_array(X)


def unpacked(X: Any, packed: Packed, bias: float) -> tuple[Any, Any, float]:
    """Samples, weights and the value of the constant feature, such that scores are plain sums of products.

    Codes are read as they are, so that no copy of a large model is made, and samples take their scales.
    """
    if not sp.issparse(X) and not isinstance(packed.codes, StoredRows):  # for BLAS, and tables of few features
        return X, packed.widened(), bias
    X = as_sparse(X)
    scaled = sp.csr_array((X.data * packed.scale[X.indices], X.indices, X.indptr), shape=X.shape)
    return scaled, packed.raw(), bias * float(packed.scale[-1])


def _share(team: Any, use: Callable[[slice, Floats], None], start: int, scores: Floats) -> None:
    team.split(len(scores), lambda lo, hi: use(slice(start + lo, start + hi), scores[lo:hi]) if lo < hi else None)


def _steps(lo: int, hi: int, step: int) -> Iterator[slice]:
    return (slice(k, min(hi, k + step)) for k in range(lo, hi, step))
