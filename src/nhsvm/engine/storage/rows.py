"""Rows of weights, one a feature, that are as long as they need to be: most features touch few nodes.

A row is *short* (columns and values of its entries, in the order in which they came) or *full* (a number for every
column). A short row that outgrows its room moves to a larger one; once it holds a good part of the columns it becomes
full, which is then quicker to read. Rows live in one pool, of which every thread has a part of its own to take room
from, so threads that change different rows never wait for each other. What a row holds does not depend on where it is,
so results do not depend on the number of threads.

The pool is as large as the memory that may be used. An operating system gives memory only when it is first written to,
so an empty pool costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm._jit import inlined, kernel
from nhsvm.columns import Columns
from nhsvm.engine.dual.block import Paths
from nhsvm.engine.dual.planes import Batch, Planes, Pool
from nhsvm.engine.samples import Samples, Scorer, SparseBatch, Updates, squared_norms
from nhsvm.engine.storage.addresses import Addresses, find_addresses, row_pass_kernel
from nhsvm.engine.storage.row_kernels import (
    FeatureLists,
    FeatureWalk,
    apply_kernel,
    bounds_kernel,
    counts_kernel,
    first_entries,
    promote_kernel,
    rebuild_kernel,
    tails_kernel,
)
from nhsvm.errors import MemoryLimitError
from nhsvm.oracles.leaves import Proposals
from nhsvm.sizes import readable_bytes
from nhsvm.storage.kernels import rows_kernel
from nhsvm.storage.rows import StoredRows
from nhsvm.storage.samples import csr
from nhsvm.threads import Team
from nhsvm.typing import FloatArray, IntArray, PtrArray

_ENTRIES = 2**20  # of the samples, in one block of features whose rows are made anew
_GROWTH = 1.3  # rows that have this much more room than when they were last made anew are made anew
_SMALL = 2**26  # bytes of rows that are left as they are
_BLOCKS = 64  # of features, at least, so that every thread has some
FULL = -1  # size of a full row
_SHARE = 0.2  # of the columns from which on a row is full: an entry of a short one takes several times as long to read
_CLASSES = 64  # sizes of rooms
_FREE = "free some memory, or raise the limits of this process (ulimit)"
_HOLES = 4096  # rooms of one size that are remembered for reuse; others stay empty until rows are made anew
_Reserved = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]  # columns and values of entries, full rows


class RowWeights:
    """Samples in CSR form and the weights U of every column (node), feature-major, in short and full rows.

    It does what :class:`nhsvm.engine.storage.table.SparseWeights` does, in less memory, and in less time where weights
    are sparse; working-set passes need addresses found for them.

    Parameters
    ----------
    X : csr_array
        Sorted, without duplicates; float32 or float64.
    n_columns : int
    bias : float
        Value of the constant feature, 0 for none.
    dtype : dtype
        To compute in.
    limit : int
        Bytes that the weights may take.
    """

    needs_addresses = True

    def __init__(self, X: sp.csr_array, n_columns: int, bias: float, dtype: Any, limit: int) -> None:
        self.indptr, self.indices, self.data = X.indptr, X.indices, X.data
        self.bias, self.n_columns = float(bias), n_columns
        self.n_samples, self.n_features = X.shape
        self.constant = np.zeros(n_columns, dtype=dtype)
        self.rows = Rows(self.n_features, n_columns, dtype, limit)
        self.limit = self.rows.limit  # less where the system does not give that much
        self._compact = 0  # bytes that rows took when they were last made anew

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.rows.dtype

    @cached_property
    def squared_norms(self) -> FloatArray:
        """‖x_i‖² of every sample, the constant feature included."""
        return squared_norms(self.indptr, self.data, self.bias)

    @cached_property
    def scratch(self) -> IntArray:
        """A zero for every feature, for the lists of a batch."""
        return np.zeros(self.n_features, dtype=np.int32)

    @cached_property
    def begin(self) -> PtrArray:
        """Entries of the samples in the features before each."""
        counts = np.zeros(self.n_features + 1, dtype=np.int64)
        counts_kernel(self.indices, counts[1:])
        return np.cumsum(counts)

    def entries(self) -> Samples:
        """The samples, as kernels read them."""
        return Samples(self.indptr, self.indices, self.data)

    def intercept(self) -> npt.NDArray[Any]:
        """What the constant feature adds to the score of every column."""
        scaled: npt.NDArray[Any] = self.constant * self.dtype.type(self.bias)
        return scaled

    def learned(self) -> StoredRows:
        """U as a model keeps it; these weights are zero afterwards."""
        return self.rows.taken(self.constant)

    def double(self) -> RowWeights:
        """The same in double precision; weights start at zero."""
        X = csr(self.data, self.indices, self.indptr, (self.n_samples, self.n_features))
        return RowWeights(X, self.n_columns, self.bias, np.float64, self.rows.asked)

    def column_norms(self) -> FloatArray:
        """‖U_n‖² of every column."""
        return self.rows.column_norms() + self.constant.astype(np.float64) ** 2

    def rescale(self, factors: FloatArray) -> None:
        """Multiply U_n of every column by a factor."""
        self.rows.rescale(factors)
        self.constant *= factors.astype(self.dtype)

    def scores(self, rows: npt.NDArray[np.int64], out: npt.NDArray[Any]) -> None:
        """``out[t] = U x`` for the samples ``rows``; summed in the precision of ``out``."""
        self.head_scores(rows, self.n_columns, out)

    def head_scores(self, rows: npt.NDArray[np.int64], head: int, out: npt.NDArray[Any]) -> None:
        """The same, but of full rows only the first columns are read; :meth:`add_tails` knows of the others."""
        rows_kernel(rows, *self.entries(), *self.rows.stored, self.constant, self.bias, head, out)

    def add_tails(self, rows: npt.NDArray[np.int64], leaves: IntArray, columns: Columns, found: Proposals) -> None:
        """Make the values of labels exact that were proposed by :meth:`head_scores` up to ``columns.head``."""
        tails_kernel(rows, self.entries(), self.rows.arrays, columns.head, leaves, columns.paths, found)

    def scorer(self, rows: npt.NDArray[np.int64]) -> Scorer:
        """``scorer(lo, hi, out)`` fills ``out[lo:hi]`` with the scores of the samples ``rows[lo:hi]``."""
        return lambda lo, hi, out: self.scores(rows[lo:hi], out[lo:hi])

    def batch(self, rows: npt.NDArray[np.int64]) -> RowBatch:
        """Samples that change the weights together; does not read the weights."""
        return RowBatch(self, rows)

    def working_set_is_cheap(self, planes: Any, columns: Any) -> bool:
        """Never: a column of a short row is found by reading the row."""
        return False

    def addresses(
        self, samples: PtrArray, leaves: IntArray, planes: Planes, columns: Columns, team: Team
    ) -> Iterator[tuple[PtrArray, Addresses]]:
        """Some samples at a time, and where they find the weights of their planes, for :meth:`working_set_pass`."""
        return find_addresses(self, samples, leaves, planes, columns, team)

    def working_set_pass(
        self, batch: Batch, pool: Pool, paths: Paths, tolerance: float, gaps: FloatArray, addresses: Addresses
    ) -> float:
        """Block steps over the working set, one sample after the other; returns the gain of the dual."""
        rows = self.rows.arrays
        gain = row_pass_kernel(
            batch, pool, self.entries(), self.bias, rows, self.constant, addresses, paths, tolerance, gaps
        )
        return float(gain)

    def column_cost(self) -> float:
        """Time to read one column by itself, in units of one among all columns."""
        return np.inf

    def rebuild(self, updates: Updates, team: Team) -> tuple[FloatArray, FloatArray]:
        """U_n = Σ_t coefficient · x_t from nothing, in double precision, over all samples; rows then have no gaps.

        Returns
        -------
        exact, stored : arrays of n_columns
            ‖U_n‖² of the sums, and of the sums as stored, which differ when the weights are float32.
        """
        self.rows.reserve(team.size, self._bounds(updates.indptr))
        blocks = self.blocks()
        exact, stored = np.zeros((2, len(blocks) - 1, self.n_columns))
        enough = np.zeros(team.size, dtype=bool)
        # where each thread has full rows for all of its features that may need one
        first_full = np.concatenate([[0], np.cumsum(self.rows.start >= 0)])[blocks]

        def work(lo: int, hi: int) -> None:
            for p in range(lo, hi):
                cuts = [len(exact) * k // team.size for k in (p, p + 1)]
                enough[p] = self._remake(p, range(*cuts), blocks, first_full[cuts[0]], updates, exact, stored)

        team.split(team.size, work)
        self.rows.settle()
        self._compact = self.rows.roomy
        if not enough.all() or self.overfull:
            raise self.rows.exhausted()
        constant = self.bias * np.bincount(updates.columns, updates.values, minlength=self.n_columns)
        self.constant[:] = constant
        return exact.sum(axis=0) + constant**2, stored.sum(axis=0) + self.constant.astype(np.float64) ** 2

    def _bounds(self, ptr: PtrArray) -> npt.NDArray[np.int64]:
        """Entries that every row has at most."""
        bounds = np.zeros(self.n_features, dtype=np.int64)
        bounds_kernel(self.indptr, self.indices, ptr, bounds)
        return bounds

    def blocks(self) -> npt.NDArray[np.int64]:
        """Ranges of features with about as many entries of the samples each."""
        total = int(self.begin[-1])
        size = min(_ENTRIES, total // _BLOCKS + 1)
        aims = np.arange(1, -(-total // size)) * size
        cuts = np.searchsorted(self.begin, aims)
        return np.unique(np.concatenate([[0], cuts, [self.n_features]]))

    def _remake(
        self,
        p: int,
        which: range,
        blocks: Any,
        first_full: int,
        updates: Updates,
        exact: FloatArray,
        stored: FloatArray,
    ) -> bool:
        """The blocks of one thread; whether there was room."""
        if not which:
            return True
        begin, rows = self.begin, self.rows
        most = max(int(begin[blocks[b + 1]] - begin[blocks[b]]) for b in which)
        wide = max(int(blocks[b + 1] - blocks[b]) for b in which)
        who, factor, filled = np.empty(most, np.int64), np.empty(most, self.data.dtype), np.empty(wide, np.int64)
        cursor = first_entries(self.indptr, self.indices, int(blocks[which[0]]))
        walk, next_full = FeatureWalk(begin, cursor, who, factor, filled), np.array([first_full])
        return all(
            rebuild_kernel(
                p, blocks[b], blocks[b + 1], self.entries(), updates, walk, rows.arrays, rows.space, next_full,
                rows.least, exact[b], stored[b],
            )
            for b in which
        )  # fmt: skip

    @property
    def grown(self) -> bool:
        """Whether rows take much more than they need: gaps, and weights that are zero again.

        By what rows have room for, not by what of the pool is used, which depends on the number of threads.
        """
        return self.rows.roomy > max(_GROWTH * self._compact, _SMALL)

    @property
    def bulky(self) -> bool:
        """Whether a copy of the rows would be more than may be taken; those just made anew are packed without one.

        Beside the copy there are the rows, and gaps between them, which may take half as much again. Not by what of the
        pool is used: the weights would depend on the number of threads.
        """
        return 2.5 * self.rows.roomy > self.limit

    @property
    def overfull(self) -> bool:
        """Whether rows take more than they may; making them anew may help."""
        return self.rows.used > self.limit


class RowBatch(SparseBatch):
    """Some samples, with lists of who holds a feature, for weights in rows of any length."""

    weights: RowWeights

    def apply(self, updates: Updates, team: Team) -> None:
        """U_n += coefficient · x_t for every update (t, n, coefficient); threads share the features."""
        w, rows = self.weights, self.weights.rows
        rows.for_threads(team.size)
        lists = FeatureLists(*self._lists)
        rows.n_taken = promote_kernel(lists.features, rows.free, rows.n_taken, rows.arrays, rows.least)
        changes = updates._replace(values=updates.values[: updates.indptr[-1]].astype(w.dtype))
        enough = np.zeros(team.size, dtype=bool)

        def work(lo: int, hi: int) -> None:
            for p in range(lo, hi):
                enough[p] = apply_kernel(p, team.size, lists, changes, rows.arrays, rows.space)

        team.split(team.size, work)
        if not enough.all():
            raise rows.exhausted()
        if w.bias:
            self._apply_bias(updates, w.constant)


class RowArrays(NamedTuple):
    """Rows as kernels read and change them; see :class:`Rows`."""

    start: PtrArray
    size: IntArray
    room: IntArray
    column: npt.NDArray[Any]
    value: npt.NDArray[Any]
    full: npt.NDArray[Any]


class FreeSpace(NamedTuple):
    """What threads take room from, one entry each; arrays that kernels change."""

    top: PtrArray  # first free entry
    end: PtrArray
    holes: npt.NDArray[np.int64]  # (threads, classes, holes) where rooms begin that rows have left
    n_holes: npt.NDArray[np.int64]  # (threads, classes)
    entry: npt.NDArray[np.int64]  # (threads, columns) entry of each column in the row at hand, counted on from base
    base: PtrArray


class Rows:
    """Short and full rows.

    Parameters
    ----------
    n_rows, n_columns : int
    dtype : float32 or float64
    limit : int
        Bytes that rows may take.

    Attributes
    ----------
    asked, limit : int
        Bytes that rows may take, and what they may of these where the system gives less.
    start : array of n_rows
        First entry of a short row in the pool, or number of a full row.
    size : array of n_rows
        Entries of a short row; −1 for a full one.
    room : array of n_rows
        Entries that a short row has room for.
    index, value : arrays
        The pool: column and weight of each entry.
    full : array of (any, n_columns)
        Full rows.
    """

    def __init__(self, n_rows: int, n_columns: int, dtype: Any, limit: int, n_threads: int = 1) -> None:
        self.n_rows, self.n_columns, self.asked = n_rows, n_columns, limit
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        narrow = np.dtype(np.uint16 if n_columns <= 2**16 else np.uint32)
        self.start = np.zeros(n_rows, dtype=np.int64)
        self.size, self.room = np.zeros((2, n_rows), dtype=np.int32)
        self.entry_bytes, self.full_bytes = narrow.itemsize + self.dtype.itemsize, n_columns * self.dtype.itemsize
        self.limit, (self.index, self.value, self.full) = self._reserved(narrow)
        self.least = max(4, int(_SHARE * n_columns))  # entries from which on a row is full
        self.share(n_threads)

    def _reserved(self, narrow: np.dtype[Any]) -> tuple[int, _Reserved]:
        """Twice what rows may take, since room that they have left, and parts of other threads, are not to be had.

        What is used counts against the limit in any case. A system that gives no more than it has, or has limits of
        its own for a process, may refuse: then less, down to about a hundredth, and the limit with it.
        """
        size = 2 * self.asked
        while True:
            try:
                return min(self.asked, size), self._allocated(size, narrow)
            except MemoryError as error:
                if size <= self.asked // 100:
                    raise MemoryLimitError(
                        f"the system does not even give {readable_bytes(2 * size)} for the weights of {self.n_rows:,} "
                        f"features and {self.n_columns:,} nodes; {_FREE}"
                    ) from error
            size //= 2  # what a part of it had got is free again here

    def _allocated(self, size: int, narrow: np.dtype[Any]) -> _Reserved:
        """Pool and full rows of ``size`` bytes each, at most."""
        most = min(size // self.entry_bytes, 4 * self.n_rows * self.n_columns) + 64
        full = min(size // self.full_bytes, self.n_rows), self.n_columns
        return np.empty(most, narrow), np.empty(most, self.dtype), np.empty(full, self.dtype)

    def share(self, n_threads: int) -> None:
        """Forget all rows, and give every thread a part of the pool."""
        self.size[:], self.room[:] = 0, 0
        cuts = np.arange(n_threads + 1, dtype=np.int64)
        pool = cuts * len(self.value) // n_threads
        self.space = FreeSpace(
            pool[:-1].copy(), pool[1:],
            np.empty((n_threads, _CLASSES, _HOLES), np.int64), np.zeros((n_threads, _CLASSES), np.int64),
            np.full((n_threads, self.n_columns), -1, np.int64), np.zeros(n_threads, np.int64),
        )  # fmt: skip
        self._pool_start = pool[:-1]
        self.free = np.arange(len(self.full))  # full rows that no feature has, ascending
        self.n_taken = 0  # of these, since then
        self._n_settled = 0  # full rows that were there before

    def reserve(self, n_threads: int, bounds: npt.NDArray[np.int64]) -> None:
        """Forget all rows; ``start`` is 0 for those that may become full, by the entries that they have at most.

        Others get −1. Where there are more of them than full rows, those with the most entries, it seems, are chosen.
        """
        self.share(n_threads)
        wide = np.flatnonzero(bounds >= self.least)
        if len(wide) > len(self.full):
            order = np.argsort(-bounds[wide], kind="stable")
            wide = wide[order[: len(self.full)]]
        self.start[:] = -1
        self.start[wide] = 0

    def settle(self) -> None:
        """Rows have been made anew: note which full rows are free."""
        taken = self.start[self.size == FULL]
        self.free = np.setdiff1d(np.arange(len(self.full)), taken)
        self.n_taken, self._n_settled = 0, len(taken)

    def for_threads(self, n_threads: int) -> None:
        """Be ready for changes by so many threads; rows that were made for another number are forgotten."""
        if len(self.space.top) != n_threads:
            self.share(n_threads)

    @property
    def arrays(self) -> RowArrays:
        """The rows, as kernels change them."""
        return RowArrays(self.start, self.size, self.room, self.index, self.value, self.full)

    @property
    def stored(self) -> tuple[Any, ...]:
        """(start, size, index, value, full), for reading."""
        return self.start, self.size, self.index, self.value, self.full

    @property
    def used(self) -> int:
        """Bytes of the pool that have been written to since rows were last made anew."""
        entries = int((self.space.top - self._pool_start).sum())
        return entries * int(self.entry_bytes) + self.n_full * int(self.full_bytes)

    @property
    def roomy(self) -> int:
        """Bytes that rows have room for, gaps between them not counted; the same for any number of threads."""
        return int(self.room.sum(dtype=np.int64)) * int(self.entry_bytes) + self.n_full * int(self.full_bytes)

    @property
    def n_full(self) -> int:
        return self._n_settled + self.n_taken

    @property
    def n_entries(self) -> int:
        """Numbers that are stored."""
        return int(self.size[self.size > 0].sum(dtype=np.int64)) + self.n_full * self.n_columns

    def taken(self, constant: npt.NDArray[Any]) -> StoredRows:
        """The rows next to each other; this pool is empty afterwards.

        Rows that have just been made anew are in order, and are moved within the pool, which then is cut: beside it
        there may be no memory for a copy.
        """
        wide, short = np.flatnonzero(self.size == FULL), np.flatnonzero(self.size > 0)
        size, index, value, full = self.size.copy(), self.index, self.value, self.full
        lengths = np.maximum(size, 0).astype(np.int64)
        start = np.cumsum(lengths) - lengths
        start[wide] = np.arange(len(wide))
        ordered = all((np.diff(self.start[which]) > 0).all() for which in (wide, short))
        n = int(lengths.sum())
        if not ordered:
            index, value, full = np.empty(n, index.dtype), np.empty(n, self.dtype), np.empty_like(full[: len(wide)])
        parts = (self.start, size, self.index, self.value, self.full, start, index, value, full)
        with Team(1 if ordered else len(self.space.top)) as team:  # within the pool, a row goes where the last one was
            team.split(self.n_rows, lambda lo, hi: _pack_kernel(lo, hi, *parts))
        self.index, self.value, self.full = self.index[:0].copy(), self.value[:0].copy(), self.full[:0].copy()
        if ordered:  # nothing else refers to them
            index.resize(n, refcheck=False)
            value.resize(n, refcheck=False)
            full.resize((len(wide), self.n_columns), refcheck=False)
        self.share(len(self.space.top))
        return StoredRows(start, size, index, value, full, constant)

    def exhausted(self) -> MemoryLimitError:
        """What to say when there is no more room, and what would help."""
        had, more = readable_bytes(self.limit), "raise memory_limit (estimate_memory says about how much it takes)"
        if self.limit < self.asked:
            had, more = f"{had}, all that the system gives of {readable_bytes(self.asked)} allowed", _FREE
        return MemoryLimitError(
            f"the weights of {self.n_rows:,} features and {self.n_columns:,} nodes need more than {had}; {more}, use "
            "fewer features (min_df of the vectorizer), or a smaller C, which keeps fewer labels; pruning makes a "
            "model smaller once it is fitted, not the fit"
        )

    def column_norms(self) -> FloatArray:
        """Σ of squares of every column."""
        total = np.zeros(self.n_columns)
        _norms_kernel(*self.stored, total)
        return total

    def rescale(self, factors: FloatArray) -> None:
        """Multiply every column by a factor."""
        _rescale_kernel(*self.stored, factors)


@inlined
def _copy(source, target):
    """One after the other from the first on: the two may overlap."""
    for k in range(source.shape[0]):
        target[k] = source[k]


@kernel
def _pack_kernel(first, last, start, size, index, value, full, new_start, new_index, new_value, new_full):
    """Rows from ``first`` to ``last`` move to where they are to be; in the old arrays themselves if no row moves up."""
    for f in range(first, last):
        at, to, n = start[f], new_start[f], size[f]
        if n < 0:
            _copy(full[at], new_full[to])
        else:
            _copy(index[at : at + n], new_index[to : to + n])
            _copy(value[at : at + n], new_value[to : to + n])


@kernel
def _norms_kernel(start, size, index, value, full, out):
    for f in range(start.shape[0]):
        if size[f] < 0:
            for m in range(out.shape[0]):
                x = np.float64(full[start[f], m])
                out[m] += x * x
        for k in range(start[f], start[f] + size[f]):
            x = np.float64(value[k])
            out[index[k]] += x * x


@kernel
def _rescale_kernel(start, size, index, value, full, factors):
    for f in range(start.shape[0]):
        if size[f] < 0:
            for m in range(factors.shape[0]):
                full[start[f], m] *= factors[m]
        for k in range(start[f], start[f] + size[f]):
            value[k] *= factors[index[k]]
