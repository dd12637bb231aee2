"""Where samples find their weights in rows of any length, so that passes over the planes in use need not look for them.

A sample reads and changes one weight for every feature it holds and every column on which its labels differ. These
are in the rows already, since its dual variables put them there, but for sums that cancelled, which are put there
again as zeros. The places are found once, feature by feature,
and serve many passes. Only the place within a short row is kept, in two bytes mostly; a full row needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm._jit import inlined, kernel, prefetch
from nhsvm.columns import Columns
from nhsvm.engine.dual.plane_step import _cached_gradients, _shrink, _visit, _workspace
from nhsvm.engine.storage.row_kernels import _move, first_entries
from nhsvm.hierarchy.graph import BoolArray, IntArray, PtrArray
from nhsvm.threads import Team

if TYPE_CHECKING:
    from nhsvm.engine.dual.planes import Planes

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


@kernel
def place_kernel(
    p, low, high, entries, cursor, indptr, indices, who, seat, filled, first, column, next_seat, offset,
    start, size, room, index, value, top, end, holes, n_holes, place, base,
):  # fmt: skip
    """The places of samples' columns in the short rows of the features from ``low`` to ``high``, by thread p.

    ``next_seat[t]`` is where sample t writes the places of its next feature with a short row, ``cursor[t]`` where it
    has its first feature that is not before ``low``; both are moved on. ``entries[f]`` counts the entries that all
    samples have in features before f. A weight that is not stored is put there, as zero. False if room has run out.
    """
    for f in range(low, high):
        filled[f - low] = entries[f] - entries[low]
    for t in range(cursor.shape[0]):
        n = first[t + 1] - first[t]
        if n == 0:
            continue
        j = cursor[t]
        while j < indptr[t + 1] and indices[j] < high:
            f = indices[j]
            if size[f] >= 0:
                at = filled[f - low]
                who[at] = t
                seat[at] = next_seat[t]
                next_seat[t] += n
                filled[f - low] = at + 1
            j += 1
        cursor[t] = j
    mine = place[p]
    for f in range(low, high):
        if size[f] < 0 or filled[f - low] == entries[f] - entries[low]:
            continue
        n = size[f]
        zero = base[p]
        for j in range(n):
            mine[index[start[f] + j]] = zero + j
        for e in range(entries[f] - entries[low], filled[f - low]):
            t = who[e]
            at = seat[e]
            for k in range(first[t], first[t + 1]):
                c = column[k]
                if mine[c] < zero:
                    if n == room[f] and not _move(f, n, n + 1, p, start, room, index, value, top, end, holes, n_holes):
                        size[f] = n
                        return False
                    index[start[f] + n] = c
                    value[start[f] + n] = 0.0
                    mine[c] = zero + n
                    n += 1
                offset[at] = mine[c] - zero
                at += 1
        size[f] = n
        base[p] = zero + n
    return True


@inlined
def _read_places(i, indptr, indices, data, value, placed, dots):
    """Add what the short and full rows of a sample's features make of its columns; returns how many columns it has."""
    start, size, full, _, first, column, begin, offset, short = placed
    columns = column[first[i] : first[i + 1]]
    n = columns.shape[0]
    at = begin[i]
    for j in range(indptr[i], indptr[i + 1]):
        f = indices[j]
        v = value.dtype.type(data[j])
        if size[f] < 0:
            row = full[start[f]]
            for k in range(n):
                dots[k] += v * row[columns[k]]
        else:
            base = np.uintp(start[f])
            for k in range(n):
                dots[k] += v * value[base + offset[at + k]]
        at += n if short[f] else 0
    return n


@inlined
def _write_places(i, indptr, indices, data, value, placed, changes):
    """Change the same weights."""
    start, size, full, _, first, column, begin, offset, short = placed
    columns = column[first[i] : first[i + 1]]
    n = columns.shape[0]
    at = begin[i]
    for j in range(indptr[i], indptr[i + 1]):
        f = indices[j]
        v = value.dtype.type(data[j])
        if size[f] < 0:
            row = full[start[f]]
            for k in range(n):
                row[columns[k]] += v * changes[k]
        else:
            base = np.uintp(start[f])
            for k in range(n):
                value[base + offset[at + k]] += v * changes[k]
        at += n if short[f] else 0


@inlined
def _fetch_places(i, indptr, indices, value, placed):
    """Ask for the weights of a sample's columns."""
    start, size, full, _, first, column, begin, offset, short = placed
    columns = column[first[i] : first[i + 1]]
    n = columns.shape[0]
    at = begin[i]
    flat = full.reshape(-1)
    for j in range(indptr[i], indptr[i + 1]):
        f = indices[j]
        if size[f] < 0:
            base = np.uintp(start[f]) * np.uintp(full.shape[1])
            for k in range(n):
                prefetch(flat, base + columns[k])
        else:
            base = np.uintp(start[f])
            for k in range(n):
                prefetch(value, base + offset[at + k])
        at += n if short[f] else 0


@kernel
def placed_kernel(
    samples, leaves, costs, norms, start, count, pool_leaf, pool_weight, pool_loss, pool_scale,
    indptr, indices, data, bias, value, placed, ptr, idx, alpha, nests, tolerance, gaps,
):  # fmt: skip
    """What :func:`cached_kernel` does, for weights in rows: ``placed`` says where a sample's weights are in them."""
    width = 0
    for i in samples:
        width = max(width, count[i])
    n_columns = alpha.shape[0]
    h, a, score = np.empty(width + 1), np.empty(width), np.zeros(n_columns)
    work = _workspace(width, n_columns, ptr, idx)
    columns, changes = work[1][2], work[1][3]
    dots, place = np.empty(n_columns, value.dtype), np.full(n_columns, -1, np.int64)
    constant, first, column = placed[3], placed[4], placed[5]
    total = 0.0
    for t in range(samples.shape[0]):
        if t + 1 < samples.shape[0]:  # ask for the next sample's weights while this one is worked on
            _fetch_places(samples[t + 1], indptr, indices, value, placed)
        i = samples[t]
        m, y = count[i], leaves[i]
        part = slice(start[i], start[i] + m)
        leaf, weight, loss, scale = pool_leaf[part], pool_weight[part], pool_loss[part], pool_scale[part]
        held = column[first[i] : first[i + 1]]
        for k in range(held.shape[0]):
            dots[k] = bias * constant[held[k]]
        n_held = _read_places(i, indptr, indices, data, value, placed, dots)
        for k in range(n_held):
            score[held[k]] = dots[k]
            place[held[k]] = k
        _cached_gradients(h, score, y, leaf, loss, scale, m, ptr, idx)
        gaps[t], gain, n = _visit(
            h, a, m, y, costs[i], norms[i], leaf, weight, scale, ptr, idx, alpha, nests, tolerance, work
        )
        total += gain
        if n > 0:
            for k in range(n_held):
                dots[k] = 0.0
            for k in range(n):
                if place[columns[k]] >= 0:  # what all labels of a sample share changes by rounding only
                    dots[place[columns[k]]] = changes[k]
                    constant[columns[k]] += bias * changes[k]
            _write_places(i, indptr, indices, data, value, placed, dots)
        for k in range(n_held):
            score[held[k]] = 0.0  # columns that it shares with all its labels are zero for the next one too
            place[held[k]] = -1
        count[i] = _shrink(weight, leaf, loss, scale, m)
    return total
