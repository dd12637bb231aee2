"""Weights as a table: one row a feature for sparse samples, one row a column of U for dense ones."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm._jit import inlined, kernel, prefetch
from nhsvm.engine.dual.plane_step import drop_weightless, gradients, visit, workspace
from nhsvm.engine.protocols import Scorer, Weights
from nhsvm.engine.samples import SparseBatch, SparseSamples, Updates, add_to_constant, first_entry, squared_norms
from nhsvm.errors import MemoryLimitError
from nhsvm.hierarchy.graph import Ragged
from nhsvm.sizes import two_sizes
from nhsvm.storage import Table
from nhsvm.storage.kernels import table_kernel
from nhsvm.storage.samples import Entries
from nhsvm.storage.weights import dense_scores
from nhsvm.threads import Team
from nhsvm.typing import Array, DType, FloatArray, Matrix, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine.dual.block import Paths, Rounds
    from nhsvm.engine.dual.planes import Batch, Pool


class Tuning(NamedTuple):
    """What weights as a table go by; times are in units of what is read in order, or multiplied as a matrix."""

    block: int = 2**20  # numbers in the double-precision buffer of one block of features
    cache: int = 2**25  # bytes of weights that a processor's cache is taken to hold
    near: float = 8.0  # time of a weight read out of order from the cache
    far: float = 128.0  # the same from memory
    vector: float = 4.0  # time of a number in a product of two vectors
    chunk: int = 1024  # samples that are turned into double precision at a time


TUNING = Tuning()


def table_bytes(n_features: int, n_columns: int, dtype: npt.DTypeLike | None) -> int:
    """Bytes of a table of weights, the constant feature's included."""
    return (n_features + 1) * n_columns * int(np.dtype(dtype).itemsize)


class TableWeights(Weights):
    """Samples, and a table of weights.

    Parameters
    ----------
    X : csr_array or array of (n_samples, n_features)
        float32 or float64; sparse samples sorted, without duplicates.
    values : array
        U, in the precision to compute with: (n_features + 1, n_columns) if ``by_feature``, else the other way round;
        the last one is that of the constant feature.
    bias : float
        Value of the constant feature, 0 for none.
    """

    by_feature: ClassVar[bool]
    X: Matrix

    def __init__(self, X: Matrix, values: Array, bias: float) -> None:
        self.X, self.bias = X, float(bias)
        self.n_samples, self.n_features = X.shape
        self.table = Table(values, self.by_feature)

    @classmethod
    def zeros(
        cls, X: Matrix, n_columns: int, bias: float, dtype: npt.DTypeLike | None = None, limit: int | None = None
    ) -> Self:
        """U = 0, or an error if that is too large."""
        sides, dtype = (X.shape[1] + 1, n_columns), dtype or X.dtype
        need = table_bytes(X.shape[1], n_columns, dtype)
        if limit is not None and need > limit:
            needed, allowed = two_sizes(need, limit)
            raise MemoryLimitError(
                f"a table of weights for {X.shape[1]:,} features and {n_columns:,} nodes needs {needed}, but {allowed} "
                "may be used; raise memory_limit, use fewer features, or give sparse samples and solver='dual', which "
                "keeps only the weights that are not zero"
            )
        return cls(X, np.zeros(sides if cls.by_feature else sides[::-1], dtype), bias)

    @property
    def values(self) -> Array:
        """U; changed in place."""
        return self.table.values

    @property
    def n_columns(self) -> int:
        return self.table.n_columns

    @property
    def dtype(self) -> DType:
        return self.table.dtype

    def entries(self) -> Entries:
        return Entries.of(self.X)

    def double(self) -> Self:
        return self.zeros(self.X, self.n_columns, self.bias, np.float64)

    def rescale(self, factors: FloatArray) -> None:
        U = self.table.features_first()
        U *= factors.astype(self.dtype)

    def learned(self) -> Table:
        """The table itself."""
        return self.table

    def column_scores(self, which: PtrArray, samples: PtrArray, columns: Ragged, base: FloatArray, out: Array) -> None:
        """Scores of some columns of some samples, with what is added to them."""
        column_scores_kernel(which, samples, columns, base, *self.entries(), self.bias, self.values, out)

    def working_set_passes(
        self, rounds: Rounds, rng: np.random.Generator, batch: Batch, pool: Pool, paths: Paths, tolerance: float
    ) -> tuple[float, int, bool]:
        gain, n_visits, done = table_passes_kernel(
            rounds, rng, batch, pool, *self.entries(), self.bias, self.values, paths, tolerance
        )
        return float(gain), int(n_visits), bool(done)


class SparseWeights(SparseSamples, TableWeights):
    """A table for sparse samples: one row a feature."""

    by_feature = True

    def __init__(self, X: sp.csr_array, values: Array, bias: float) -> None:
        TableWeights.__init__(self, X, values, bias)

    def column_norms(self) -> FloatArray:
        total = np.zeros(self.n_columns)
        step = max(1, TUNING.block // max(1, self.n_columns))
        for lo in range(0, len(self.values), step):
            part = self.values[lo : lo + step].astype(np.float64)
            total += np.einsum("ij,ij->j", part, part)
        return total

    def scores(self, rows: PtrArray, out: Array) -> None:
        table_kernel(rows, self.entries(), self.values, self.bias, out)

    def batch(self, rows: PtrArray) -> TableBatch:
        return TableBatch(self, rows)

    def column_cost(self) -> float:
        return TUNING.near if self.values.nbytes <= TUNING.cache else TUNING.far

    def rebuild(self, updates: Updates, team: Team) -> tuple[FloatArray, FloatArray]:
        """U from nothing, in double precision, a block of features at a time: see :meth:`Weights.rebuild`."""
        n_rows = self.n_features + 1
        step = max(1, TUNING.block // max(1, self.n_columns))
        n_blocks = -(-n_rows // step)
        exact, stored = np.zeros((2, n_blocks, self.n_columns))
        parts = (self.entries(), self.bias, updates)

        def work(lo: int, hi: int) -> None:
            buffer = np.empty((step, self.n_columns))
            for k in range(lo, hi):
                _rebuild_kernel(k * step, min(n_rows, (k + 1) * step), *parts, buffer, self.values, exact[k], stored[k])

        team.split(n_blocks, work)
        return exact.sum(axis=0), stored.sum(axis=0)


class TableBatch(SparseBatch):
    """Some sparse samples, for weights as a table."""

    def __init__(self, weights: SparseWeights, rows: PtrArray) -> None:
        super().__init__(weights, rows, weights.dtype)
        self.weights = weights

    def apply(self, updates: Updates, team: Team) -> None:
        """U_n += coefficient · x_t for every update (t, n, coefficient).

        Feature by feature, so that a row of weights is fetched once for all samples. Threads share the features; every
        weight gets its updates in the order of the samples.
        """
        w, (features, starts, order, value) = self.weights, self.lists
        ptr, columns = unsigned(updates.indptr), unsigned(updates.columns)
        coefficients = updates.values[: updates.indptr[-1]].astype(w.dtype)
        parts = (
            unsigned(features), unsigned(starts[:-1]), unsigned(starts[1:]), unsigned(order), value,
            ptr[:-1], ptr[1:], columns, coefficients, w.values,
        )  # fmt: skip
        # every so many features, not ranges: those met first are the frequent ones, which are fast
        team.split(team.size, lambda lo, hi: _sparse_apply_kernel(lo, team.size, *parts))
        add_to_constant(w.bias, updates, w.values[-1])


def unsigned(indices: Array) -> Array:
    """The same indices as unsigned numbers, which kernels need not test for counting from the end."""
    return indices.view(f"u{indices.itemsize}")


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
    indptr, indices, data = samples
    ptr, columns, coefficients = updates
    n_features = values.shape[0] - 1
    n_columns = values.shape[1]
    for f in range(last - first):
        for m in range(n_columns):
            buffer[f, m] = 0.0
    for t in range(indptr.shape[0] - 1):
        a, b = ptr[t], ptr[t + 1]
        if a == b:
            continue
        end = indptr[t + 1]
        lo = first_entry(indices, indptr[t], end, first)
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


class DenseWeights(TableWeights):
    """A table for dense samples, which are in C order: one row a column of U."""

    by_feature = False

    @cached_property
    def squared_norms(self) -> FloatArray:
        return squared_norms(self.X, self.bias)

    def column_norms(self) -> FloatArray:
        squares: FloatArray = np.einsum("ij,ij->i", self.values, self.values, dtype=np.float64)
        return squares

    def scores(self, rows: PtrArray, out: Array) -> None:
        """``out[t] = U x`` for the samples ``rows``; summed in the precision of ``out``, or of X if that is higher."""
        dense_scores(self.X, self.values, self.bias, rows, out)

    def taken(self, rows: PtrArray) -> Array:
        """Some samples, in the precision of the weights."""
        some: Array = self.X[rows].astype(self.dtype, copy=False)
        return some

    def scorer(self, rows: PtrArray) -> Scorer:
        # one product for all of them, so that its bits do not depend on how threads share the rest
        scores = self.taken(rows) @ self.table.to_array().T
        scores += self.table.constant * self.dtype.type(self.bias)

        def part(lo: int, hi: int, out: Array) -> None:
            out[lo:hi] = scores[lo:hi]

        return part

    def batch(self, rows: PtrArray) -> DenseBatch:
        return DenseBatch(self, rows)

    def column_cost(self) -> float:
        """Time of the product of one column by itself, in units of one in a product of matrices."""
        return TUNING.vector

    def rebuild(self, updates: Updates, team: Team) -> tuple[FloatArray, FloatArray]:
        """U from nothing, in double precision: see :meth:`Weights.rebuild`."""
        indptr, columns, values = updates
        table = sp.csr_array((values, columns, indptr), shape=(self.n_samples, self.n_columns))
        total = np.zeros(self.values.shape)
        for lo in range(0, self.n_samples, TUNING.chunk):
            part = table[lo : lo + TUNING.chunk].T
            total[:, :-1] += part @ self.X[lo : lo + TUNING.chunk].astype(np.float64)
        total[:, -1] = self.bias * (table.T @ np.ones(self.n_samples))
        self.values[:] = total
        return np.einsum("ij,ij->i", total, total), self.column_norms()


class DenseBatch:
    """Some dense samples, copied next to each other, and their inner products."""

    def __init__(self, weights: DenseWeights, rows: PtrArray) -> None:
        self.weights = weights
        self.X = weights.taken(rows)
        self.gram: Array = self.X @ self.X.T
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


@inlined
def _pass(order, batch, pool, indptr, indices, data, bias, values, paths, tolerance, gaps):
    """A pass over the planes that samples have, changing U at once; returns the gain, and fills the gaps of the blocks.

    Dense samples have ``data`` of two dimensions and one row of weights a column; sparse ones have one row a feature.
    The choice is made when the kernel is compiled.
    """
    _, leaves, costs, norms = batch
    start, count, pool_leaf, pool_weight, pool_loss, pool_scale = pool
    ptr, idx, n_columns = paths.ptr, paths.idx, paths.alpha.shape[0]
    width = 0
    for i in order:
        width = max(width, count[i])
    h, a, score = np.empty(width + 1), np.empty(width), np.zeros(n_columns)
    work = workspace(width, paths)
    mark, columns, changes = work[1][0], work[1][2], work[1][3]
    needed, partial = np.empty(columns.shape[0], np.uint32), np.empty(columns.shape[0], values.dtype)
    weights = values.reshape(-1)
    ahead = np.empty(width + 1, np.uint32)
    x = np.empty(0 if data.ndim == 1 else data.shape[data.ndim - 1], values.dtype)
    total = 0.0
    for t in range(order.shape[0]):
        if data.ndim == 1 and t + 1 < order.shape[0]:  # ask for the next sample's weights while this one is worked on
            i = order[t + 1]
            n = 0
            for k in range(count[i] + 1):
                which = leaves[i]
                if k < count[i]:
                    which = pool_leaf[start[i] + k]
                if ptr[which + 1] > ptr[which]:
                    ahead[n] = idx[ptr[which + 1] - 1]
                    n += 1
            for j in range(indptr[i], indptr[i + 1]):
                base = np.uintp(indices[j]) * np.uintp(n_columns)
                for k in range(n):
                    prefetch(weights, base + ahead[k])
        i = order[t]
        m, y = count[i], leaves[i]
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
        gaps[i], gain, n = visit(h, a, m, y, costs[i], norms[i], leaf, weight, scale, paths, tolerance, work)
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


@kernel
def table_passes_kernel(rounds, rng, batch, pool, indptr, indices, data, bias, values, paths, tolerance):
    """See :meth:`nhsvm.engine.protocols.Weights.working_set_passes`; ``batch`` has all samples, in order."""
    most, enough, focused, share = rounds
    count = pool.n
    gaps = np.empty(count.shape[0])
    some = np.empty(count.shape[0], np.int64)
    total, left = 0.0, 0.0
    n, n_rounds, n_visits = 0, 0, 0
    after = focused  # passes since the last one over all
    while n_rounds < most or after < focused:
        over_all = after == focused
        if over_all:
            n = 0
            for i in range(count.shape[0]):
                if count[i] > 0:
                    some[n] = i
                    n += 1
            n_rounds += 1
            after = 0
        else:
            after += 1
        order = some[:n][rng.permutation(n)]
        total += _pass(order, batch, pool, indptr, indices, data, bias, values, paths, tolerance, gaps)
        n_visits += n
        observed = 0.0
        for k in range(n):
            observed += gaps[some[k]]
        if not over_all:
            if observed <= share * left:
                after = focused
            continue
        left = observed
        if left <= enough:
            return total, n_visits, True
        bar = 0.5 * left / n  # most of the gap is in few samples
        n_far = 0
        for k in range(n):
            if gaps[some[k]] > bar:
                some[n_far] = some[k]
                n_far += 1
        n = n_far
    return total, n_visits, False


@kernel
def column_scores_kernel(which, samples, columns, base, indptr, indices, data, bias, values, out):
    """See :meth:`nhsvm.engine.protocols.Weights.column_scores`.

    Dense samples have ``data`` of two dimensions and one row of weights a column; sparse ones have one row a feature.
    The choice is made when the kernel is compiled.
    """
    ptr, column = columns
    x = np.empty(0 if data.ndim == 1 else data.shape[data.ndim - 1], values.dtype)
    for k in which:
        i = samples[k]
        mine = column[ptr[k] : ptr[k + 1]]
        score = out[ptr[k] : ptr[k + 1]]
        if data.ndim == 1:
            constant = values[values.shape[0] - 1]
            for j in range(mine.shape[0]):
                score[j] = bias * constant[mine[j]]
            for e in range(indptr[i], indptr[i + 1]):
                row = values[indices[e]]
                for j in range(mine.shape[0]):
                    score[j] += data[e] * row[mine[j]]
        else:
            for f in range(x.shape[0]):
                x[f] = data[i, f]
            for j in range(mine.shape[0]):
                row = values[mine[j]]
                dot = bias * row[x.shape[0]]
                for f in range(x.shape[0]):
                    dot += row[f] * x[f]
                score[j] = dot
        added = base[ptr[k] : ptr[k + 1]]
        for j in range(mine.shape[0]):
            score[j] += added[j]
