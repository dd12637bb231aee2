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

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm._jit import inlined, kernel
from nhsvm.errors import MemoryLimitError
from nhsvm.hierarchy.graph import FloatArray, PtrArray
from nhsvm.sizes import readable_bytes
from nhsvm.storage.rows import StoredRows
from nhsvm.threads import Team

FULL = -1  # size of a full row
_SHARE = 0.2  # of the columns from which on a row is full: an entry of a short one takes several times as long to read
_CLASSES = 64  # sizes of rooms
_FREE = "free some memory, or raise the limits of this process (ulimit)"
_HOLES = 4096  # rooms of one size that are remembered for reuse; others stay empty until rows are made anew


Pool = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]  # columns and values of entries, full rows


class Room(NamedTuple):
    """What threads take room from, one entry each; arrays that kernels change."""

    top: PtrArray  # first free entry
    end: PtrArray
    holes: npt.NDArray[np.int64]  # (threads, classes, holes) where rooms begin that rows have left
    n_holes: npt.NDArray[np.int64]  # (threads, classes)
    place: npt.NDArray[np.int64]  # (threads, columns) entry of each column in the row at hand, counted on from base
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

    def _reserved(self, narrow: np.dtype[Any]) -> tuple[int, Pool]:
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

    def _allocated(self, size: int, narrow: np.dtype[Any]) -> Pool:
        """Pool and full rows of ``size`` bytes each, at most."""
        most = min(size // self.entry_bytes, 4 * self.n_rows * self.n_columns) + 64
        full = min(size // self.full_bytes, self.n_rows), self.n_columns
        return np.empty(most, narrow), np.empty(most, self.dtype), np.empty(full, self.dtype)

    def share(self, n_threads: int) -> None:
        """Forget all rows, and give every thread a part of the pool."""
        self.size[:], self.room[:] = 0, 0
        cuts = np.arange(n_threads + 1, dtype=np.int64)
        pool = cuts * len(self.value) // n_threads
        self.parts = Room(
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
        if len(self.parts.top) != n_threads:
            self.share(n_threads)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """(start, size, index, value, full), for reading."""
        return self.start, self.size, self.index, self.value, self.full

    @property
    def used(self) -> int:
        """Bytes of the pool that have been written to since rows were last made anew."""
        entries = int((self.parts.top - self._pool_start).sum())
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
        with Team(1 if ordered else len(self.parts.top)) as team:  # within the pool, a row goes where the last one was
            team.split(self.n_rows, lambda lo, hi: _pack_kernel(lo, hi, *parts))
        self.index, self.value, self.full = self.index[:0].copy(), self.value[:0].copy(), self.full[:0].copy()
        if ordered:  # nothing else refers to them
            index.resize(n, refcheck=False)
            value.resize(n, refcheck=False)
            full.resize((len(wide), self.n_columns), refcheck=False)
        self.share(len(self.parts.top))
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
        _norms_kernel(*self.arrays, total)
        return total

    def rescale(self, factors: FloatArray) -> None:
        """Multiply every column by a factor."""
        _rescale_kernel(*self.arrays, factors)


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
