"""Weights of sparse samples: one row a feature, so that a document's scores are a sum of contiguous rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm._jit import kernel, prefetch
from nhsvm.hierarchy.graph import FloatArray, IntArray
from nhsvm.solvers._cached import CachedPasses
from nhsvm.solvers._updates import Scorer, Updates
from nhsvm.storage.kernels import table_kernel
from nhsvm.storage.samples import csr
from nhsvm.storage.table import Table
from nhsvm.threads import Team

_BLOCK = 2**20  # numbers in the double-precision buffer of one block of features
_CACHE = 2**25  # bytes of weights that a processor's cache is taken to hold
_NEAR, _FAR = 8, 128  # time of one weight read out of order, in units of one in order: from the cache, from memory
_LONG = 0.08  # share of a batch's samples above which a feature goes into the dense panel of the inner products


class SparseWeights(CachedPasses):
    """Samples in CSR form and the weights U of every column (node), stored feature-major.

    Parameters
    ----------
    X : csr_array
        Sorted, without duplicates; float32 or float64.
    values : array of (n_features + 1, n_columns)
        U, in the precision to compute with; the last row belongs to the constant feature.
    bias : float
        Value of the constant feature, 0 for none.
    """

    def __init__(self, X: sp.csr_array, values: npt.NDArray[Any], bias: float) -> None:
        self.indptr, self.indices, self.data = X.indptr, X.indices, X.data
        self.bias = float(bias)
        self.n_samples, self.n_features = X.shape
        self.values = values

    @classmethod
    def zeros(cls, X: sp.csr_array, n_columns: int, bias: float, dtype: Any = None) -> SparseWeights:
        return cls(X, np.zeros((X.shape[1] + 1, n_columns), dtype=dtype or X.dtype), bias)

    @property
    def n_columns(self) -> int:  # type: ignore[override]
        return int(self.values.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @cached_property
    def squared_norms(self) -> FloatArray:  # type: ignore[override]
        """‖x_i‖² of every sample, the constant feature included."""
        return squared_norms(self.indptr, self.data, self.bias)

    @cached_property
    def scratch(self) -> IntArray:
        """A zero for every feature, for the lists of a batch."""
        return np.zeros(self.n_features, dtype=np.int32)

    def learned(self) -> Table:
        """U as a model keeps it."""
        return Table(self.values, by_feature=True)

    def coef(self) -> npt.NDArray[Any]:
        """U as (n_columns, n_features), a view."""
        return self.values[:-1].T

    def intercept(self) -> npt.NDArray[Any]:
        """What the constant feature adds to the score of every column."""
        scaled: npt.NDArray[Any] = self.values[-1] * self.values.dtype.type(self.bias)
        return scaled

    def double(self) -> SparseWeights:
        """The same in double precision; weights start at zero."""
        X = csr(self.data, self.indices, self.indptr, (self.n_samples, self.n_features))
        return SparseWeights.zeros(X, self.n_columns, self.bias, np.float64)

    def column_norms(self) -> FloatArray:
        """‖U_n‖² of every column."""
        total = np.zeros(self.n_columns)
        step = max(1, _BLOCK // max(1, self.n_columns))
        for lo in range(0, len(self.values), step):
            part = self.values[lo : lo + step].astype(np.float64)
            total += np.einsum("ij,ij->j", part, part)
        return total

    def rescale(self, factors: FloatArray) -> None:
        """Multiply U_n of every column by a factor."""
        self.values *= factors.astype(self.values.dtype)

    def scores(self, rows: npt.NDArray[np.int64], out: npt.NDArray[Any]) -> None:
        """``out[t] = U x`` for the samples ``rows``; summed in the precision of ``out``."""
        table_kernel(rows, self.indptr, self.indices, self.data, self.values, self.bias, out)

    def scorer(self, rows: npt.NDArray[np.int64]) -> Scorer:
        """``scorer(lo, hi, out)`` fills ``out[lo:hi]`` with the scores of the samples ``rows[lo:hi]``."""
        return lambda lo, hi, out: self.scores(rows[lo:hi], out[lo:hi])

    def batch(self, rows: npt.NDArray[np.int64]) -> SparseBatch:
        """Samples that change the weights together; does not read the weights."""
        return SparseBatch(self, rows)

    def entries(self) -> tuple[Any, Any, Any]:
        """(indptr, indices, data) of the samples."""
        return self.indptr, self.indices, self.data

    def apart(self) -> float:
        """Time to read one column by itself, in units of one among all columns."""
        return _NEAR if self.values.nbytes <= _CACHE else _FAR

    def rebuild(self, updates: Updates, team: Team) -> tuple[FloatArray, FloatArray]:
        """U_n = Σ_t coefficient · x_t from nothing, in double precision, over all samples.

        Returns
        -------
        exact, stored : arrays of n_columns
            ‖U_n‖² of the sums, and of the sums as stored, which differ when the weights are float32.
        """
        n_rows = self.n_features + 1
        step = max(1, _BLOCK // max(1, self.n_columns))
        n_blocks = -(-n_rows // step)
        exact = np.zeros((n_blocks, self.n_columns))
        stored = np.zeros((n_blocks, self.n_columns))
        parts = (self.indptr, self.indices, self.data, self.bias, updates.indptr, updates.columns, updates.values)

        def work(lo: int, hi: int) -> None:
            buffer = np.empty((step, self.n_columns))
            for k in range(lo, hi):
                _rebuild_kernel(k * step, min(n_rows, (k + 1) * step), *parts, buffer, self.values, exact[k], stored[k])

        team.split(n_blocks, work)
        return exact.sum(axis=0), stored.sum(axis=0)


def squared_norms(indptr: npt.NDArray[Any], data: npt.NDArray[Any], bias: float) -> FloatArray:
    """‖x_i‖² of every sample, with a constant feature."""
    out = np.empty(len(indptr) - 1)
    _squared_norms_kernel(indptr, data, bias, out)
    return out


class SparseBatch:
    """Some samples, with lists of who holds a feature; the lists serve the inner products and the updates.

    A feature that many of the samples hold goes into a dense panel, whose products are fast; the pairs of the others
    are found in their lists.

    Parameters
    ----------
    weights : SparseWeights
    rows : array of sample numbers

    Attributes
    ----------
    gram : array of (n, n)
        Inner products of the samples.
    """

    weights: Any  # a SparseWeights; what has its samples will do

    def __init__(self, weights: Any, rows: npt.NDArray[np.int64]) -> None:
        self.weights = w = weights
        n = len(rows)
        size = int((w.indptr[rows + 1] - w.indptr[rows]).sum())
        order, value = np.empty(size, dtype=np.int32), np.empty(size, dtype=w.dtype)
        begin, features, starts = (np.empty(size + 1, dtype=np.int32) for _ in range(3))
        n_lists, n_long = _invert_kernel(
            rows, w.indptr, w.indices, w.data, w.scratch, _LONG * n, order, value, begin, features, starts
        )
        self._lists = (features[:n_lists], starts[: n_lists + 1], order, value)
        self.gram = np.empty((n, n), dtype=w.dtype)
        _gram_kernel(rows, n_long, w.bias, w.indptr, w.data, order, value, begin, self.gram)

    def apply(self, updates: Updates, team: Team) -> None:
        """U_n += coefficient · x_t for every update (t, n, coefficient).

        Feature by feature, so that a row of weights is fetched once for all samples. Threads share the features; every
        weight gets its updates in the order of the samples.
        """
        w = self.weights
        features, starts, order, value = self._lists
        ptr, columns = _unsigned(updates.indptr), _unsigned(updates.columns)
        coefficients = updates.values[: updates.indptr[-1]].astype(w.values.dtype)
        parts = (
            _unsigned(features), _unsigned(starts[:-1]), _unsigned(starts[1:]), _unsigned(order), value,
            ptr[:-1], ptr[1:], columns, coefficients, w.values,
        )  # fmt: skip
        # every so many features, not ranges: those met first are the frequent ones, which are fast
        team.split(team.size, lambda lo, hi: _apply_kernel(lo, team.size, *parts))
        if w.bias:
            self._apply_bias(updates, w.values[-1])

    def _apply_bias(self, updates: Updates, row: npt.NDArray[Any]) -> None:
        _apply_bias_kernel(self.weights.bias, *updates, row)


def _unsigned(indices: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same indices as unsigned numbers, which kernels need not test for counting from the end."""
    return indices.view(f"u{indices.itemsize}")


@kernel
def _squared_norms_kernel(indptr, data, bias, out):
    for i in range(out.shape[0]):
        total = bias * bias
        for j in range(indptr[i], indptr[i + 1]):
            v = np.float64(data[j])
            total += v * v
        out[i] = total


@kernel
def _invert_kernel(rows, indptr, indices, data, place, many, order, value, begin, features, starts):
    """Lists, feature by feature, of the samples that hold it, ascending; ``place`` is zero before and after.

    ``begin[e]`` is, for entry e of the batch, where the list of its feature begins, or −1 − k if that is the k-th list
    with more than ``many`` samples. Returns the numbers of lists and of long ones.
    """
    for t in range(rows.shape[0]):
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
            place[indices[j]] += 1
    filled = np.empty(order.shape[0], np.int32)
    long = np.empty(order.shape[0], np.int32)  # which of the long lists it is, or −1
    n_lists, n_long = 0, 0
    top = 0
    e = 0
    for t in range(rows.shape[0]):
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
            f = indices[j]
            if place[f] > 0:  # first met: its count becomes minus the number of its list
                features[n_lists] = f
                starts[n_lists] = top
                filled[n_lists] = top
                long[n_lists] = -1
                if place[f] > many:
                    long[n_lists] = n_long
                    n_long += 1
                top += place[f]
                n_lists += 1
                place[f] = -n_lists
            k = -place[f] - 1
            order[filled[k]] = t
            value[filled[k]] = data[j]
            filled[k] += 1
            begin[e] = starts[k] if long[k] < 0 else -1 - long[k]
            e += 1
    starts[n_lists] = top
    for k in range(n_lists):
        place[features[k]] = 0
    return n_lists, n_long


@kernel
def _gram_kernel(rows, n_long, bias, indptr, data, order, value, begin, out):
    n = rows.shape[0]
    panel = np.zeros((n_long, n), out.dtype)  # a feature's values side by side: a sample adds up rows of it
    e = 0
    for t in range(n):
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
            if begin[e] < 0:
                panel[-1 - begin[e], t] = data[j]
            e += 1
    e = 0
    for t in range(n):
        row = out[t]
        row[: t + 1] = bias * bias
        held = row[:t]
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
            at = begin[e]
            e += 1
            v = out.dtype.type(data[j])
            if at < 0:
                others = panel[-1 - at, :t]
                for u in range(held.shape[0]):
                    held[u] += v * others[u]
            else:
                while order[at] < t:  # a list holds each sample once, and this one ends the walk
                    row[order[at]] += v * value[at]
                    at += 1
            row[t] += v * v
        for u in range(t):
            out[u, t] = row[u]


@kernel
def _apply_kernel(first, step, features, begin, end, order, value, ptr, ptr_end, columns, coefficients, values):
    """All indices are unsigned."""
    weights = values.reshape(-1)
    for k in range(first, features.shape[0], step):
        # the weights of a rare feature are far away: ask for them one feature ahead
        following = k + step
        if following < features.shape[0] and end[following] - begin[following] < 8:
            base = np.uintp(features[following]) * np.uintp(values.shape[1])
            for e in range(begin[following], end[following]):
                for i in range(ptr[order[e]], ptr_end[order[e]]):
                    prefetch(weights, base + columns[i])
        row = values[features[k]]
        for e in range(begin[k], end[k]):
            v = value[e]
            for i in range(ptr[order[e]], ptr_end[order[e]]):
                row[columns[i]] += v * coefficients[i]


@kernel
def _apply_bias_kernel(bias, ptr, columns, coefficients, row):
    for i in range(ptr[ptr.shape[0] - 1]):
        row[columns[i]] += bias * coefficients[i]


@kernel
def _rebuild_kernel(
    first, last, indptr, indices, data, bias, ptr, columns, coefficients, buffer, values, exact, stored
):
    n_features = values.shape[0] - 1
    n_columns = values.shape[1]
    for f in range(last - first):
        for m in range(n_columns):
            buffer[f, m] = 0.0
    for t in range(indptr.shape[0] - 1):
        a, b = ptr[t], ptr[t + 1]
        if a == b:
            continue
        lo, end = indptr[t], indptr[t + 1]
        hi = end
        while lo < hi:  # first entry of the block: indices are sorted
            mid = (lo + hi) // 2
            if indices[mid] < first:
                lo = mid + 1
            else:
                hi = mid
        while lo < end and indices[lo] < last:
            v = data[lo]
            row = buffer[indices[lo] - first]
            for k in range(a, b):
                row[columns[k]] += v * coefficients[k]
            lo += 1
        if first <= n_features < last:
            row = buffer[n_features - first]
            for k in range(a, b):
                row[columns[k]] += bias * coefficients[k]
    for f in range(last - first):
        for m in range(n_columns):
            x = buffer[f, m]
            exact[m] += x * x
            values[first + f, m] = x
            y = np.float64(values[first + f, m])
            stored[m] += y * y
