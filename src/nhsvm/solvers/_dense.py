"""Weights of dense samples: one row a column of U; products go through BLAS."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm._jit import kernel
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.solvers._cached import CachedPasses
from nhsvm.solvers._updates import Scorer, Updates
from nhsvm.storage.table import Table, dense_scores
from nhsvm.threads import Team

_VECTOR = 4  # time of a product of two vectors, in units of one in a product of matrices
_NONE = np.zeros(0, dtype=np.int32)  # dense samples need no lists of features
_CHUNK = 1024  # samples that are turned into double precision at a time


class DenseWeights(CachedPasses):
    """Samples as a C-ordered array and the weights U of every column (node), a row each.

    Parameters
    ----------
    X : array of (n_samples, n_features)
        float32 or float64.
    values : array of (n_columns, n_features + 1)
        U, in the precision to compute with; the last entry of a row belongs to the constant feature.
    bias : float
        Value of the constant feature, 0 for none.
    """

    def __init__(self, X: npt.NDArray[Any], values: npt.NDArray[Any], bias: float) -> None:
        self.X = X
        self.bias = float(bias)
        self.n_samples, self.n_features = X.shape
        self.values = values

    @classmethod
    def zeros(
        cls, X: npt.NDArray[Any], n_columns: int, bias: float, dtype: npt.DTypeLike | None = None
    ) -> DenseWeights:
        return cls(X, np.zeros((n_columns, X.shape[1] + 1), dtype=dtype or X.dtype), bias)

    @property
    def n_columns(self) -> int:  # type: ignore[override]
        return int(self.values.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @cached_property
    def squared_norms(self) -> FloatArray:  # type: ignore[override]
        """‖x_i‖² of every sample, the constant feature included."""
        squares: FloatArray = np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)
        return squares + self.bias**2

    def learned(self) -> Table:
        """U as a model keeps it."""
        return Table(self.values, by_feature=False)

    def coef(self) -> npt.NDArray[Any]:
        """U as (n_columns, n_features), a view."""
        return self.values[:, :-1]

    def intercept(self) -> npt.NDArray[Any]:
        """What the constant feature adds to the score of every column."""
        scaled: npt.NDArray[Any] = self.values[:, -1] * self.values.dtype.type(self.bias)
        return scaled

    def double(self) -> DenseWeights:
        """The same in double precision; weights start at zero."""
        return DenseWeights.zeros(self.X, self.n_columns, self.bias, np.float64)

    def column_norms(self) -> FloatArray:
        """‖U_n‖² of every column."""
        squares: FloatArray = np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64)
        return squares

    def rescale(self, factors: FloatArray) -> None:
        """Multiply U_n of every column by a factor."""
        self.values *= factors.astype(self.values.dtype)[:, None]

    def scores(self, rows: npt.NDArray[np.int64], out: npt.NDArray[Any]) -> None:
        """``out[t] = U x`` for the samples ``rows``; summed in the precision of ``out``, or of X if that is higher."""
        dense_scores(self.X, self.values, self.bias, rows, out)

    def _taken(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Some samples, in the precision of the weights."""
        return self.X[rows].astype(self.values.dtype, copy=False)

    def scorer(self, rows: npt.NDArray[np.int64]) -> Scorer:
        """``scorer(lo, hi, out)`` fills ``out[lo:hi]`` with the scores of the samples ``rows[lo:hi]``."""
        # one product for all of them, so that its bits do not depend on how threads share the rest
        scores = self._taken(rows) @ self.coef().T
        scores += self.intercept()

        def part(lo: int, hi: int, out: npt.NDArray[Any]) -> None:
            out[lo:hi] = scores[lo:hi]

        return part

    def batch(self, rows: npt.NDArray[np.int64]) -> DenseBatch:
        """Samples that change the weights together; does not read the weights."""
        return DenseBatch(self, rows)

    def entries(self) -> tuple[Any, Any, Any]:
        """(indptr, indices, data) of the samples; dense ones need no lists of features."""
        return _NONE, _NONE, self.X

    def apart(self) -> float:
        """Time of the product of one column by itself, in units of one in a product of matrices."""
        return _VECTOR

    def rebuild(self, updates: Updates, team: Team) -> tuple[FloatArray, FloatArray]:
        """U_n = Σ_t coefficient · x_t from nothing, in double precision, over all samples.

        Returns
        -------
        exact, stored : arrays of n_columns
            ‖U_n‖² of the sums, and of the sums as stored, which differ when the weights are float32.
        """
        indptr, columns, values = updates
        table = sp.csr_array((values, columns, indptr), shape=(self.n_samples, self.n_columns))
        total = np.zeros(self.values.shape)
        for lo in range(0, self.n_samples, _CHUNK):
            part = table[lo : lo + _CHUNK].T
            total[:, :-1] += part @ self.X[lo : lo + _CHUNK].astype(np.float64)
        total[:, -1] = self.bias * (table.T @ np.ones(self.n_samples))
        self.values[:] = total
        exact = np.einsum("ij,ij->i", total, total)
        return exact, np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64)


class DenseBatch:
    """Some samples, copied next to each other.

    Parameters
    ----------
    weights : DenseWeights
    rows : array of sample numbers

    Attributes
    ----------
    gram : array of (n, n)
        Inner products of the samples.
    """

    def __init__(self, weights: DenseWeights, rows: npt.NDArray[np.int64]) -> None:
        self.weights = weights
        self.X = weights._taken(rows)
        self.gram: npt.NDArray[Any] = self.X @ self.X.T
        self.gram += weights.bias**2

    def apply(self, updates: Updates, team: Team) -> None:
        """U_n += coefficient · x_t for every update (t, n, coefficient); threads share the features."""
        values, n_features = self.weights.values, self.weights.n_features
        team.split(n_features, lambda lo, hi: _apply_kernel(lo, hi, self.X, *updates, values))
        if self.weights.bias:
            _apply_bias_kernel(self.weights.bias, *updates, values)


@kernel
def _apply_kernel(lo, hi, X, ptr, columns, coefficients, values):
    for t in range(X.shape[0]):
        x = X[t, lo:hi]
        for k in range(ptr[t], ptr[t + 1]):
            row = values[columns[k], lo:hi]
            c = values.dtype.type(coefficients[k])
            for f in range(row.shape[0]):
                row[f] += c * x[f]


@kernel
def _apply_bias_kernel(bias, ptr, columns, coefficients, values):
    last = values.shape[1] - 1
    for k in range(ptr[ptr.shape[0] - 1]):
        values[columns[k], last] += bias * coefficients[k]
