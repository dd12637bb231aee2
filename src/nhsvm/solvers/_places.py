"""Where samples find their weights in rows of any length, so that passes over the planes in use need not look for them.

A sample reads and changes one weight for every feature it holds and every column on which its labels differ. These
are in the rows already, since its dual variables put them there, but for sums that cancelled, which are put there
again as zeros. The places are found once, feature by feature,
and serve many passes. Only the place within a short row is kept, in two bytes mostly; a full row needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm._jit import inlined, kernel
from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import BoolArray, IntArray, PtrArray
from nhsvm.solvers._planes import Planes
from nhsvm.solvers._row_changes import place_kernel
from nhsvm.solvers._row_rebuild import first_entries
from nhsvm.threads import Team

PLACES = 2**26  # bytes of places at a time
KEPT = 4  # times as many are kept while the first pass goes on


class Places(NamedTuple):
    """Columns of samples, and their places in short rows.

    Sample i has the columns ``column[first[i] : first[i + 1]]``. Its s-th feature with a short row has the weight of
    the k-th of n columns at the place ``offset[begin[i] + s·n + k]`` of that row. Rows that were short then may be
    full by now: ``short`` says which have places.
    """

    first: PtrArray
    column: npt.NDArray[Any]
    begin: PtrArray
    offset: npt.NDArray[Any]
    short: BoolArray


def find_places(
    weights: Any, samples: PtrArray, leaves: IntArray, planes: Planes, columns: Columns, team: Team
) -> Iterator[tuple[PtrArray, Places]]:
    """Some samples at a time, in the order given, and their places, which are valid until rows are made anew.

    Parameters
    ----------
    weights : HybridWeights
    samples : array of sample numbers
        Those to find places for.
    leaves : array of n_samples
    planes, columns, team
    """
    rows = weights.rows
    used = np.zeros(len(leaves), dtype=bool)
    used[samples] = True
    begin = _begins(weights, _columns_of(used, leaves, planes, columns)[0])
    need = np.cumsum(np.diff(begin)[samples]) * rows.index.itemsize
    which = need // PLACES  # at most one sample more than there is room for
    for part in np.split(samples, np.flatnonzero(np.diff(which)) + 1) if len(samples) else ():
        used[:] = False
        used[part] = True
        yield part, _places(weights, *_columns_of(used, leaves, planes, columns), team)


def _places(weights: Any, first: PtrArray, column: IntArray, team: Team) -> Places:
    rows = weights.rows
    n_threads = len(rows.parts.top)  # that have made the rows, and may find room for more
    begin = _begins(weights, first)
    offset = np.empty(begin[-1], dtype=rows.index.dtype)
    blocks, entries = weights.blocks(), weights.begin
    # features with full rows cost nothing, and are the frequent ones: threads share the entries of the others
    work_before = np.concatenate([[0], np.cumsum(np.diff(entries) * (rows.size >= 0))])[blocks]
    cuts = np.searchsorted(work_before, work_before[-1] * np.arange(n_threads + 1) / n_threads)
    cuts[-1] = len(blocks) - 1
    enough = np.zeros(n_threads, dtype=bool)

    def work(lo: int, hi: int) -> None:
        for p in range(lo, hi):
            which = range(cuts[p], cuts[p + 1])
            wide = max((int(blocks[b + 1] - blocks[b]) for b in which), default=0)
            most = max((int(entries[blocks[b + 1]] - entries[blocks[b]]) for b in which), default=0)
            cursor = first_entries(weights.indptr, weights.indices, int(blocks[which.start]))
            seats = begin[:-1].copy()
            _seats_kernel(weights.indptr, weights.indices, rows.size, first, cursor, seats)
            who, seat, filled = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(wide, np.int64)
            enough[p] = all(
                place_kernel(
                    p, blocks[b], blocks[b + 1], entries, cursor, weights.indptr, weights.indices, who, seat, filled,
                    first, column, seats, offset, rows.start, rows.size, rows.room, rows.index, rows.value, *rows.parts,
                )
                for b in which
            )  # fmt: skip

    team.split(n_threads, work)
    if not enough.all():
        raise rows.exhausted()
    return Places(first, column, begin, offset, rows.size >= 0)


def _begins(weights: Any, first: PtrArray) -> PtrArray:
    """``begin`` of :class:`Places`."""
    begin = np.empty(len(first), np.int64)
    _begins_kernel(weights.indptr, weights.indices, weights.rows.size, first, begin)
    return begin


def _columns_of(used: BoolArray, leaves: IntArray, planes: Planes, columns: Columns) -> tuple[PtrArray, IntArray]:
    """(first, column) of :class:`Places` for some samples: columns of their labels that not all of these have."""
    size = columns.paths.sizes()
    bound = int(size[planes.leaf[planes.flat()[1]]].sum() + size[leaves].sum())
    first, column = np.zeros(len(leaves) + 1, np.int64), np.empty(bound, np.int32)
    times = np.zeros(columns.n_columns, np.int32)
    parts = planes.start, planes.count, planes.leaf
    n = _columns_kernel(used, leaves, *parts, *columns.paths, first, column, times)
    return first, column[:n].copy()


@inlined
def _count(leaf, ptr, idx, times, met, n):
    """Count the columns of a path, and list those that are met for the first time."""
    for e in range(ptr[leaf], ptr[leaf + 1]):
        c = idx[e]
        if times[c] == 0:
            met[n] = c
            n += 1
        times[c] += 1
    return n


@kernel
def _columns_kernel(used, leaves, start, count, leaf, ptr, idx, first, column, times):
    """``times`` is zero before and after."""
    met = np.empty(times.shape[0], np.int32)
    top = 0
    for i in range(leaves.shape[0]):
        first[i] = top
        if used[i] and count[i] > 0:
            n = _count(leaves[i], ptr, idx, times, met, 0)
            for k in range(start[i], start[i] + count[i]):
                n = _count(leaf[k], ptr, idx, times, met, n)
            for k in range(n):
                c = met[k]
                if times[c] <= count[i]:
                    column[top] = c
                    top += 1
                times[c] = 0
    first[leaves.shape[0]] = top
    return top


@kernel
def _begins_kernel(indptr, indices, size, first, begin):
    total = 0
    for i in range(indptr.shape[0] - 1):
        begin[i] = total
        n = first[i + 1] - first[i]
        if n > 0:
            short = 0
            for j in range(indptr[i], indptr[i + 1]):
                short += size[indices[j]] >= 0
            total += short * n
    begin[indptr.shape[0] - 1] = total


@kernel
def _seats_kernel(indptr, indices, size, first, cursor, seats):
    """Move every sample's seat beyond its short rows before the cursor."""
    for t in range(cursor.shape[0]):
        n = first[t + 1] - first[t]
        if n > 0:
            for j in range(indptr[t], cursor[t]):
                if size[indices[j]] >= 0:
                    seats[t] += n
