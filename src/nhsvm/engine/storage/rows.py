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

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.engine.dual.block import Paths
from nhsvm.engine.dual.planes import Batch, Planes, Pool
from nhsvm.engine.protocols import Weights
from nhsvm.engine.samples import SparseBatch, SparseSamples, Updates, add_to_constant
from nhsvm.engine.storage.addresses import find_addresses, row_pass_kernel
from nhsvm.engine.storage.row_kernels import (
    FeatureWalk,
    FreeSpace,
    RowArrays,
    apply_kernel,
    bounds_kernel,
    counts_kernel,
    first_entries,
    norms_kernel,
    pack_kernel,
    promote_kernel,
    rebuild_kernel,
    rescale_kernel,
    tails_kernel,
)
from nhsvm.errors import MemoryLimitError
from nhsvm.oracles.leaves import Proposals
from nhsvm.sizes import readable_bytes, two_sizes
from nhsvm.storage import StoredRows
from nhsvm.storage.kernels import rows_kernel
from nhsvm.storage.weights import WeightRows
from nhsvm.threads import Team
from nhsvm.typing import Array, DType, FloatArray, IntArray, PtrArray


class Tuning(NamedTuple):
    """What weights in rows go by."""

    share: float = 0.2  # of the columns from which on a row is full: an entry of a short one takes longer to read
    growth: float = 1.3  # rows that have this much more room than when they were last made anew are made anew
    small: int = 2**26  # bytes of rows that are left as they are
    entries: int = 2**20  # of the samples, in one block of features whose rows are made anew
    blocks: int = 64  # of features, at least, so that every thread has some
    classes: int = 64  # sizes of rooms
    holes: int = 4096  # rooms of one size that are remembered for reuse; others stay empty until rows are made anew
    feature: int = 32  # bytes for one, also if it never occurs: where its row lies, how long it is, room to make it


TUNING = Tuning()
_FULL = -1  # size of a full row
_FREE = "free some memory, or raise the limits of this process (ulimit)"


class RowWeights(SparseSamples, Weights):
    """Sparse samples and the weights U of every column (node), feature-major, in short and full rows.

    It does what :class:`nhsvm.engine.storage.table.SparseWeights` does, in less memory, and in less time where weights
    are sparse; working-set passes need addresses found for them. ``limit`` is the bytes that the weights may take.
    """

    needs_addresses = True

    def __init__(self, X: sp.csr_array, n_columns: int, bias: float, dtype: npt.DTypeLike, limit: int) -> None:
        super().__init__(X, bias)
        self.rows = Rows(self.n_features, n_columns, dtype, limit)
        self.constant = np.zeros(n_columns, dtype=dtype)
        self.limit = self.rows.limit  # less where the system does not give that much
        self._compact = 0  # bytes that rows took when they were last made anew

    @classmethod
    def zeros(cls, X: sp.csr_array, n_columns: int, bias: float, dtype: npt.DTypeLike, limit: int | None) -> Self:
        """U = 0, or an error if that is too large."""
        assert limit is not None
        if X.shape[1] * TUNING.feature > limit:
            needed, allowed = two_sizes(X.shape[1] * TUNING.feature, limit)
            raise MemoryLimitError(
                f"{X.shape[1]:,} features need {needed} even if their weights are zero, but {allowed} may be used; "
                "leave out features that do not occur, as read_lshtc does, or raise memory_limit"
            )
        return cls(X, n_columns, bias, dtype, limit)

    @property
    def n_columns(self) -> int:
        return self.rows.n_columns

    @property
    def dtype(self) -> DType:
        return self.rows.dtype

    @cached_property
    def begin(self) -> PtrArray:
        """Entries of the samples in the features before each."""
        counts = np.zeros(self.n_features + 1, dtype=np.int64)
        counts_kernel(self.X.indices, counts[1:])
        return np.cumsum(counts)

    @property
    def stored(self) -> WeightRows:
        """The weights, for reading."""
        rows = self.rows
        return WeightRows(rows.start, rows.size, rows.index, rows.value, rows.full, self.constant)

    def learned(self) -> StoredRows:
        """U as a model keeps it; these weights are zero afterwards."""
        return self.rows.taken(self.constant)

    def double(self) -> Self:
        return type(self)(self.X, self.n_columns, self.bias, np.float64, self.rows.asked)

    def column_norms(self) -> FloatArray:
        total = np.zeros(self.n_columns)
        norms_kernel(self.stored, total)
        return total + self.constant.astype(np.float64) ** 2

    def rescale(self, factors: FloatArray) -> None:
        rescale_kernel(self.stored, factors)
        self.constant *= factors.astype(self.dtype)

    def scores(self, rows: PtrArray, out: Array) -> None:
        self.head_scores(rows, self.n_columns, out)

    def head_scores(self, rows: PtrArray, head: int, out: Array) -> None:
        """The same, but of full rows only the first columns are read; :meth:`add_tails` knows of the others."""
        rows_kernel(rows, self.entries(), self.stored, self.bias, head, out)

    def add_tails(self, rows: PtrArray, leaves: IntArray, columns: Columns, found: Proposals) -> None:
        tails_kernel(rows, self.entries(), self.rows.arrays, columns.head, leaves, columns.paths, found)

    def batch(self, rows: PtrArray) -> RowBatch:
        return RowBatch(self, rows)

    def addresses(
        self, samples: PtrArray, leaves: IntArray, planes: Planes, columns: Columns, team: Team
    ) -> Iterator[tuple[PtrArray, object]]:
        """Some samples at a time, and where they find the weights of their planes, for :meth:`working_set_pass`."""
        return find_addresses(self, samples, leaves, planes, columns, team)

    def working_set_pass(
        self, batch: Batch, pool: Pool, paths: Paths, tolerance: float, gaps: FloatArray, addresses: object
    ) -> float:
        parts = self.entries(), self.bias, self.rows.arrays, self.constant, addresses
        return float(row_pass_kernel(batch, pool, *parts, paths, tolerance, gaps))

    def column_cost(self) -> float:
        """Infinite: a column of a short row is found by reading the row."""
        return np.inf

    def rebuild(self, updates: Updates, team: Team) -> tuple[FloatArray, FloatArray]:
        """U from nothing, in double precision, so that rows have no gaps: see :meth:`Weights.rebuild`."""
        rows, samples = self.rows, self.entries()
        bounds = np.zeros(self.n_features, dtype=np.int64)  # entries that every row has at most
        bounds_kernel(samples.indptr, samples.indices, updates.indptr, bounds)
        rows.reserve(team.size, bounds)
        blocks = self.blocks()
        exact, stored = np.zeros((2, len(blocks) - 1, self.n_columns))
        # where each thread has full rows for all of its features that may need one
        first_full = np.concatenate([[0], np.cumsum(rows.start >= 0)])[blocks]

        def remake(p: int) -> bool:
            low, high = (len(exact) * k // team.size for k in (p, p + 1))
            walk, next_full = self.walk(blocks[low : high + 1], samples.data.dtype), first_full[low : low + 1].copy()
            return all(
                rebuild_kernel(
                    p, blocks[b], blocks[b + 1], samples, updates, walk, rows.arrays, rows.space, next_full,
                    rows.least, exact[b], stored[b],
                )
                for b in range(low, high)
            )  # fmt: skip

        enough = rows.by_threads(team, remake)
        rows.settle()
        self._compact = rows.roomy
        if not enough or self.overfull:
            raise rows.exhausted()
        constant = self.bias * np.bincount(updates.columns, updates.values, minlength=self.n_columns)
        self.constant[:] = constant
        return exact.sum(axis=0) + constant**2, stored.sum(axis=0) + self.constant.astype(np.float64) ** 2

    def blocks(self) -> PtrArray:
        """Ranges of features with about as many entries of the samples each."""
        total = int(self.begin[-1])
        size = min(TUNING.entries, total // TUNING.blocks + 1)
        aims = np.arange(1, -(-total // size)) * size
        cuts = np.searchsorted(self.begin, aims)
        return np.unique(np.concatenate([[0], cuts, [self.n_features]]))

    def walk(self, blocks: PtrArray, what: npt.DTypeLike) -> FeatureWalk:
        """A walk through some blocks of features, with room for the largest of them."""
        wide, most = (int(np.diff(ends).max(initial=0)) for ends in (blocks, self.begin[blocks]))
        who, numbers, filled = np.empty(most, np.int32), np.empty(most, what), np.empty(wide, np.int64)
        return FeatureWalk(self.begin, first_entries(self.X.indptr, self.X.indices, blocks[0]), who, numbers, filled)

    @property
    def grown(self) -> bool:
        """Whether rows take much more than they need: gaps, and weights that are zero again.

        By what rows have room for, not by what of the pool is used, which depends on the number of threads.
        """
        return self.rows.roomy > max(TUNING.growth * self._compact, TUNING.small)

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
    """Some samples, for weights in rows of any length."""

    def __init__(self, weights: RowWeights, rows: PtrArray) -> None:
        super().__init__(weights, rows, weights.dtype)
        self.weights = weights

    def apply(self, updates: Updates, team: Team) -> None:
        """U_n += coefficient · x_t for every update (t, n, coefficient); threads share the features."""
        w, rows = self.weights, self.weights.rows
        rows.for_threads(team.size)
        rows.n_taken = promote_kernel(self.lists.features, rows.free, rows.n_taken, rows.arrays, rows.least)
        changes = updates._replace(values=updates.values[: updates.indptr[-1]].astype(w.dtype))
        if not rows.by_threads(
            team, lambda p: bool(apply_kernel(p, team.size, self.lists, changes, rows.arrays, rows.space))
        ):
            raise rows.exhausted()
        add_to_constant(w.bias, updates, w.constant)


class Rows:
    """Short and full rows.

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

    def __init__(self, n_rows: int, n_columns: int, dtype: npt.DTypeLike, limit: int) -> None:
        self.n_rows, self.n_columns, self.asked = n_rows, n_columns, limit
        self.dtype: DType = np.dtype(dtype)
        narrow = np.dtype(np.uint16 if n_columns <= 2**16 else np.uint32)
        self.start = np.zeros(n_rows, dtype=np.int64)
        self.size, self.room = np.zeros((2, n_rows), dtype=np.int32)
        self.entry_bytes, self.full_bytes = narrow.itemsize + self.dtype.itemsize, n_columns * self.dtype.itemsize
        self.limit, (self.index, self.value, self.full) = self._reserved(narrow)
        self.least = max(4, int(TUNING.share * n_columns))  # entries from which on a row is full
        self.share(1)

    def _reserved(self, narrow: DType) -> tuple[int, tuple[Array, Array, Array]]:
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

    def _allocated(self, size: int, narrow: DType) -> tuple[Array, Array, Array]:
        """Pool and full rows of ``size`` bytes each, at most."""
        most = min(size // self.entry_bytes, 4 * self.n_rows * self.n_columns) + 64
        full = min(size // self.full_bytes, self.n_rows), self.n_columns
        return np.empty(most, narrow), np.empty(most, self.dtype), np.empty(full, self.dtype)

    def share(self, n_threads: int) -> None:
        """Forget all rows, and give every thread a part of the pool."""
        self.size[:], self.room[:] = 0, 0
        pool = np.arange(n_threads + 1, dtype=np.int64) * len(self.value) // n_threads
        n_holes = np.zeros((n_threads, TUNING.classes), np.int64)
        holes = np.empty((*n_holes.shape, TUNING.holes), np.int64)
        entry = np.full((n_threads, self.n_columns), -1, np.int64)
        self.space = FreeSpace(pool[:-1].copy(), pool[1:], holes, n_holes, entry, np.zeros(n_threads, np.int64))
        self._pool_start = pool[:-1]
        self.free = np.arange(len(self.full))  # full rows that no feature has, ascending
        self.n_taken = 0  # of these, since then
        self._n_settled = 0  # full rows that were there before

    def reserve(self, n_threads: int, bounds: PtrArray) -> None:
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
        taken = self.start[self.size == _FULL]
        self.free = np.setdiff1d(np.arange(len(self.full)), taken)
        self.n_taken, self._n_settled = 0, len(taken)

    @property
    def n_threads(self) -> int:
        """That have made the rows, and may find room for more."""
        return len(self.space.top)

    def for_threads(self, n_threads: int) -> None:
        """Be ready for changes by so many threads; rows that were made for another number are forgotten."""
        if self.n_threads != n_threads:
            self.share(n_threads)

    def by_threads(self, team: Team, work: Callable[[int], bool]) -> bool:
        """``work(p)`` by thread p, with its part of the pool; whether there was room for all of it."""
        enough = np.zeros(self.n_threads, dtype=bool)

        def some(lo: int, hi: int) -> None:
            for p in range(lo, hi):
                enough[p] = work(p)

        team.split(len(enough), some)
        return bool(enough.all())

    @property
    def arrays(self) -> RowArrays:
        """The rows, as kernels change them."""
        return RowArrays(self.start, self.size, self.room, self.index, self.value, self.full)

    @property
    def used(self) -> int:
        """Bytes of the pool that have been written to since rows were last made anew."""
        return self._bytes(int((self.space.top - self._pool_start).sum()))

    @property
    def roomy(self) -> int:
        """Bytes that rows have room for, gaps between them not counted; the same for any number of threads."""
        return self._bytes(int(self.room.sum(dtype=np.int64)))

    def _bytes(self, entries: int) -> int:
        return entries * int(self.entry_bytes) + self.n_full * int(self.full_bytes)

    @property
    def n_full(self) -> int:
        return self._n_settled + self.n_taken

    def taken(self, constant: Array) -> StoredRows:
        """The rows next to each other; this pool is empty afterwards.

        Rows that have just been made anew are in order, and are moved within the pool, which then is cut: beside it
        there may be no memory for a copy.
        """
        wide, short = np.flatnonzero(self.size == _FULL), np.flatnonzero(self.size > 0)
        size, index, value, full = self.size.copy(), self.index, self.value, self.full
        lengths = np.maximum(size, 0).astype(np.int64)
        start = np.cumsum(lengths) - lengths
        start[wide] = np.arange(len(wide))
        ordered = all((np.diff(self.start[which]) > 0).all() for which in (wide, short))
        n = int(lengths.sum())
        if not ordered:
            index, value, full = np.empty(n, index.dtype), np.empty(n, self.dtype), np.empty_like(full[: len(wide)])
        old = WeightRows(self.start, size, self.index, self.value, self.full, constant)
        new = WeightRows(start, size, index, value, full, constant)
        with Team(1 if ordered else self.n_threads) as team:  # within the pool, a row goes where the last one was
            team.split(self.n_rows, lambda lo, hi: pack_kernel(lo, hi, old, new))
        self.index, self.value, self.full = self.index[:0].copy(), self.value[:0].copy(), self.full[:0].copy()
        if ordered:  # there are no views of them
            index.resize(n, refcheck=False)
            value.resize(n, refcheck=False)
            full.resize((len(wide), self.n_columns), refcheck=False)
        self.share(self.n_threads)
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
