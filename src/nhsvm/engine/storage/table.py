"""Weights as a table: one row a feature for sparse samples, one row a column of U for dense ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm._jit import inlined, kernel, prefetch
from nhsvm.columns import Columns
from nhsvm.engine.dual.plane_step import drop_weightless, gradients, visit, workspace
from nhsvm.engine.samples import Samples, Scorer, SparseBatch, Updates, squared_norms, unsigned
from nhsvm.oracles.leaves import Proposals
from nhsvm.storage.kernels import table_kernel
from nhsvm.storage.samples import csr
from nhsvm.storage.table import Table, dense_scores
from nhsvm.threads import Team
from nhsvm.typing import FloatArray, IntArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine.dual.block import Paths
    from nhsvm.engine.dual.planes import Batch, Planes, Pool

_OVERHEAD = 100  # time that a batch spends on a sample beside its columns, in units of one column
_BLOCK = 2**20  # numbers in the double-precision buffer of one block of features
_CACHE = 2**25  # bytes of weights that a processor's cache is taken to hold
_NEAR, _FAR = 8, 128  # time of one weight read out of order, in units of one in order: from the cache, from memory
_VECTOR = 4  # time of a product of two vectors, in units of one in a product of matrices
_NO_LISTS, _NONE = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)  # dense samples need no lists of features
_CHUNK = 1024  # samples that are turned into double precision at a time


class TableWeights(ABC):
    """A base of weights that know their samples."""

    n_samples: int
    n_columns: int
    bias: float
    values: npt.NDArray[Any]
    squared_norms: FloatArray
    grown = overfull = bulky = False  # a table has the size it has
    needs_addresses = False  # a weight is found without looking for it

    @abstractmethod
    def learned(self) -> Table:
        """U as a model keeps it."""

    @abstractmethod
    def entries(self) -> Samples:
        """The samples, as kernels read them."""

    @abstractmethod
    def column_cost(self) -> float:
        """Time to read one column by itself, in units of one among all columns."""

    def working_set_is_cheap(self, planes: Planes, columns: Columns) -> bool:
        """Whether reading only the columns of the working set is much less work than reading them all."""
        if not planes.n_planes:  # the first labels of all samples would be the same
            return False
        used = columns.paths.sizes()[planes.leaf[planes.flat()[1]]].sum() + self.n_samples
        return bool(self.column_cost() * used < self.n_samples * (self.n_columns + _OVERHEAD))

    def head_scores(self, rows: npt.NDArray[np.int64], head: int, out: npt.NDArray[Any]) -> None:
        """All scores: a table has nothing that takes long to read."""
        self.scores(rows, out)

    def add_tails(self, rows: npt.NDArray[np.int64], leaves: IntArray, columns: Columns, found: Proposals) -> None:
        """Nothing: no scores were left out."""
        return

    @abstractmethod
    def scores(self, rows: npt.NDArray[np.int64], out: npt.NDArray[Any]) -> None:
        """``out[t] = U x`` for the samples ``rows``."""

    def addresses(self, *_: Any) -> Iterator[tuple[PtrArray, None]]:
        """Nothing: no passes are to follow a batch pass."""
        return iter(())

    def working_set_pass(
        self, batch: Batch, pool: Pool, paths: Paths, tolerance: float, gaps: FloatArray, addresses: None = None
    ) -> float:
        """Block steps over the working set, one sample after the other; returns the gain of the dual."""
        gain = table_pass_kernel(batch, pool, *self.entries(), self.bias, self.values, paths, tolerance, gaps)
        return float(gain)


class SparseWeights(TableWeights):
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

    def batch(self, rows: npt.NDArray[np.int64]) -> TableBatch:
        """Samples that change the weights together; does not read the weights."""
        return TableBatch(self, rows)

    def learned(self) -> Table:
        """U as a model keeps it."""
        return Table(self.values, by_feature=True)

    def entries(self) -> Samples:
        """The samples, as kernels read them."""
        return Samples(self.indptr, self.indices, self.data)

    def column_cost(self) -> float:
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
        parts = (self.entries(), self.bias, updates)

        def work(lo: int, hi: int) -> None:
            buffer = np.empty((step, self.n_columns))
            for k in range(lo, hi):
                _rebuild_kernel(k * step, min(n_rows, (k + 1) * step), *parts, buffer, self.values, exact[k], stored[k])

        team.split(n_blocks, work)
        return exact.sum(axis=0), stored.sum(axis=0)


@kernel
def _sparse_apply_kernel(first, step, features, begin, end, order, value, ptr, ptr_end, columns, coefficients, values):
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
def _rebuild_kernel(first, last, samples, bias, updates, buffer, values, exact, stored):
    indptr, indices, data = samples.indptr, samples.indices, samples.data
    ptr, columns, coefficients = updates.indptr, updates.columns, updates.values
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


class TableBatch(SparseBatch):
    """Some samples, with lists of who holds a feature, for weights as a table."""

    def apply(self, updates: Updates, team: Team) -> None:
        """U_n += coefficient · x_t for every update (t, n, coefficient).

        Feature by feature, so that a row of weights is fetched once for all samples. Threads share the features; every
        weight gets its updates in the order of the samples.
        """
        w = self.weights
        features, starts, order, value = self._lists
        ptr, columns = unsigned(updates.indptr), unsigned(updates.columns)
        coefficients = updates.values[: updates.indptr[-1]].astype(w.values.dtype)
        parts = (
            unsigned(features), unsigned(starts[:-1]), unsigned(starts[1:]), unsigned(order), value,
            ptr[:-1], ptr[1:], columns, coefficients, w.values,
        )  # fmt: skip
        # every so many features, not ranges: those met first are the frequent ones, which are fast
        team.split(team.size, lambda lo, hi: _sparse_apply_kernel(lo, team.size, *parts))
        if w.bias:
            self._apply_bias(updates, w.values[-1])


class DenseWeights(TableWeights):
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

    def learned(self) -> Table:
        """U as a model keeps it."""
        return Table(self.values, by_feature=False)

    def entries(self) -> Samples:
        """The samples, as kernels read them; dense ones need no lists of features."""
        return Samples(_NO_LISTS, _NONE, self.X)

    def column_cost(self) -> float:
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
        team.split(n_features, lambda lo, hi: _dense_apply_kernel(lo, hi, self.X, *updates, values))
        if self.weights.bias:
            _dense_bias_kernel(self.weights.bias, *updates, values)


@kernel
def _dense_apply_kernel(lo, hi, X, ptr, columns, coefficients, values):
    for t in range(X.shape[0]):
        x = X[t, lo:hi]
        for k in range(ptr[t], ptr[t + 1]):
            row = values[columns[k], lo:hi]
            c = values.dtype.type(coefficients[k])
            for f in range(row.shape[0]):
                row[f] += c * x[f]


@kernel
def _dense_bias_kernel(bias, ptr, columns, coefficients, values):
    last = values.shape[1] - 1
    for k in range(ptr[ptr.shape[0] - 1]):
        values[columns[k], last] += bias * coefficients[k]


@inlined
def _needed(y, leaf, m, ptr, idx, mark, columns):
    """The columns on the paths of a sample's planes, ascending if paths nest; ``mark`` is −1 before and after."""
    n = 0
    for k in range(m + 1):
        which = y
        if k < m:
            which = leaf[k]
        for e in range(ptr[which], ptr[which + 1]):
            if mark[idx[e]] < 0:
                mark[idx[e]] = 0
                columns[n] = idx[e]
                n += 1
    for k in range(n):
        mark[columns[k]] = -1
    return n


@kernel
def table_pass_kernel(batch, pool, indptr, indices, data, bias, values, paths, tolerance, gaps):
    """A pass over the planes that samples have, changing U at once; returns the gain, and fills the gaps of the blocks.

    Dense samples have ``data`` of two dimensions and one row of weights a column; sparse ones have one row a feature.
    The choice is made when the kernel is compiled.
    """
    samples, leaves, costs, norms = batch.samples, batch.leaves, batch.costs, batch.squared_norms
    start, count, pool_leaf, pool_weight, pool_loss, pool_scale = pool
    ptr, idx, n_columns = paths.ptr, paths.idx, paths.alpha.shape[0]
    width = 0
    for i in samples:
        width = max(width, count[i])
    h, a, score = np.empty(width + 1), np.empty(width), np.zeros(n_columns)
    work = workspace(width, paths)
    mark, columns, changes = work[1][0], work[1][2], work[1][3]
    needed, partial = np.empty(columns.shape[0], np.uint32), np.empty(columns.shape[0], values.dtype)
    weights = values.reshape(-1)
    ahead = np.empty(width + 1, np.uint32)
    x = np.empty(0 if data.ndim == 1 else data.shape[data.ndim - 1], values.dtype)
    total = 0.0
    for t in range(samples.shape[0]):
        if data.ndim == 1 and t + 1 < samples.shape[0]:  # ask for the next sample's weights while this one is worked on
            i = samples[t + 1]
            n = 0
            for k in range(count[i] + 1):
                which = leaves[t + 1]
                if k < count[i]:
                    which = pool_leaf[start[i] + k]
                if ptr[which + 1] > ptr[which]:
                    ahead[n] = idx[ptr[which + 1] - 1]
                    n += 1
            for j in range(indptr[i], indptr[i + 1]):
                base = np.uintp(indices[j]) * np.uintp(n_columns)
                for k in range(n):
                    prefetch(weights, base + ahead[k])
        i = samples[t]
        m, y = count[i], leaves[t]
        part = slice(start[i], start[i] + m)
        leaf, weight, loss, scale = pool_leaf[part], pool_weight[part], pool_loss[part], pool_scale[part]
        n = _needed(y, leaf, m, ptr, idx, mark, needed)
        if data.ndim == 1:
            constant = values[values.shape[0] - 1]
            for k in range(n):
                partial[k] = bias * constant[needed[k]]
            for j in range(indptr[i], indptr[i + 1]):
                base = np.uintp(indices[j]) * np.uintp(n_columns)
                v = values.dtype.type(data[j])
                for k in range(n):
                    partial[k] += v * weights[base + needed[k]]
        else:
            for f in range(x.shape[0]):
                x[f] = data[i, f]
            for k in range(n):
                row = values[needed[k]]
                dot = bias * row[x.shape[0]]
                for f in range(x.shape[0]):
                    dot += row[f] * x[f]
                partial[k] = dot
        for k in range(n):
            score[needed[k]] = partial[k]
        gradients(h, score, y, leaf, loss, scale, m, ptr, idx)
        gaps[t], gain, n = visit(h, a, m, y, costs[t], norms[t], leaf, weight, scale, paths, tolerance, work)
        total += gain
        for k in range(n):
            partial[k] = changes[k]
        if data.ndim == 1:
            if n > 0:
                constant = values[values.shape[0] - 1]
                for k in range(n):
                    constant[columns[k]] += bias * changes[k]
                for j in range(indptr[i], indptr[i + 1]):
                    base = np.uintp(indices[j]) * np.uintp(n_columns)
                    v = values.dtype.type(data[j])
                    for k in range(n):
                        weights[base + columns[k]] += v * partial[k]
        else:
            for k in range(n):
                row = values[columns[k]]
                for f in range(x.shape[0]):
                    row[f] += partial[k] * x[f]
                row[x.shape[0]] += bias * changes[k]
        count[i] = drop_weightless(weight, leaf, loss, scale, m)
    return total
