"""Where samples find their weights in rows of any length, so that working-set passes need not look for them.

A sample reads and changes one weight for every feature it holds and every column on which its labels differ. Its dual
variables have already put these weights into the rows, except where sums cancelled; those are put back as zeros. The
addresses are found once, feature by feature, and serve many passes. Only the address within a short row is kept, in two
bytes mostly; a full row needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel, prefetch
from nhsvm.columns import Columns
from nhsvm.engine.dual.plane_step import drop_weightless, gradients, visit, workspace
from nhsvm.engine.storage.row_kernels import move
from nhsvm.threads import Team
from nhsvm.typing import Array, BoolArray, IntArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine.dual.planes import Planes
    from nhsvm.engine.storage.rows import RowWeights

ADDRESS_BYTES = 2**26  # bytes of addresses at a time
KEPT = 4  # times as many are kept while the first pass goes on


class Addresses(NamedTuple):
    """Columns of samples, and their addresses in short rows.

    Sample i has the columns ``column[first[i] : first[i + 1]]``. Its s-th feature with a short row has the weight of
    the k-th of n columns at the address ``offset[begin[i] + s·n + k]`` of that row. Rows that were short then may be
    full by now: ``short`` says which have addresses.
    """

    first: PtrArray
    column: Array
    begin: PtrArray
    offset: Array
    short: BoolArray


def find_addresses(
    weights: RowWeights, samples: PtrArray, leaves: IntArray, planes: Planes, columns: Columns, team: Team
) -> Iterator[tuple[PtrArray, Addresses]]:
    """Some samples at a time, in the order given, and their addresses, which are valid until rows are made anew."""
    rows = weights.rows
    used = np.zeros(len(leaves), dtype=bool)
    used[samples] = True
    begin = _begins(weights, _columns_of(used, leaves, planes, columns)[0])
    need = np.cumsum(np.diff(begin)[samples]) * rows.index.itemsize
    which = need // ADDRESS_BYTES  # at most one sample more than there is room for
    for part in np.split(samples, np.flatnonzero(np.diff(which)) + 1) if len(samples) else ():
        used[:] = False
        used[part] = True
        yield part, _addresses(weights, *_columns_of(used, leaves, planes, columns), team)


def _addresses(weights: RowWeights, first: PtrArray, column: IntArray, team: Team) -> Addresses:
    rows, samples = weights.rows, weights.entries()
    begin = _begins(weights, first)
    found = Addresses(first, column, begin, np.empty(begin[-1], rows.index.dtype), rows.size >= 0)
    blocks = weights.blocks()
    # features with full rows cost nothing, and are the frequent ones: threads share the entries of the others
    work_before = np.concatenate([[0], np.cumsum(np.diff(weights.begin) * (rows.size >= 0))])[blocks]
    cuts = np.searchsorted(work_before, work_before[-1] * np.arange(rows.n_threads + 1) / rows.n_threads)
    cuts[-1] = len(blocks) - 1

    def work(p: int) -> bool:
        low, high = cuts[p], cuts[p + 1]
        walk, targets = weights.walk(blocks[low : high + 1], np.int64), begin[:-1].copy()
        _targets_kernel(samples.indptr, samples.indices, rows.size, first, walk.cursor, targets)
        return all(
            address_kernel(p, blocks[b], blocks[b + 1], samples, walk, found, targets, rows.arrays, rows.space)
            for b in range(low, high)
        )

    if not rows.by_threads(team, work):
        raise rows.exhausted()
    return found


def _begins(weights: RowWeights, first: PtrArray) -> PtrArray:
    """``begin`` of :class:`Addresses`."""
    begin = np.empty(len(first), np.int64)
    _begins_kernel(weights.X.indptr, weights.X.indices, weights.rows.size, first, begin)
    return begin


def _columns_of(used: BoolArray, leaves: IntArray, planes: Planes, columns: Columns) -> tuple[PtrArray, IntArray]:
    """(first, column) of :class:`Addresses` for some samples: columns of their labels that not all of these have."""
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
def _targets_kernel(indptr, indices, size, first, cursor, targets):
    """Move every sample's target beyond its short rows before the cursor."""
    for t in range(cursor.shape[0]):
        n = first[t + 1] - first[t]
        if n > 0:
            for j in range(indptr[t], cursor[t]):
                if size[indices[j]] >= 0:
                    targets[t] += n


@kernel
def address_kernel(p, low, high, samples, walk, addresses, next_target, rows, space):
    """The addresses of samples' columns in the short rows of the features from ``low`` to ``high``, by thread p.

    ``next_target[t]`` is where sample t writes the addresses of its next feature with a short row, and is moved on. A
    weight that is not stored is put there, as zero. False if room has run out.
    """
    indptr, indices = samples.indptr, samples.indices
    entries, cursor, who, target, filled = walk
    first, column, offset = addresses.first, addresses.column, addresses.offset
    start, size, room, index, value, _ = rows
    base = space.base
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
                target[at] = next_target[t]
                next_target[t] += n
                filled[f - low] = at + 1
            j += 1
        cursor[t] = j
    mine = space.entry[p]
    for f in range(low, high):
        if size[f] < 0 or filled[f - low] == entries[f] - entries[low]:
            continue
        n = size[f]
        zero = base[p]
        for j in range(n):
            mine[index[start[f] + j]] = zero + j
        for e in range(entries[f] - entries[low], filled[f - low]):
            t = who[e]
            at = target[e]
            for k in range(first[t], first[t + 1]):
                c = column[k]
                if mine[c] < zero:
                    if n == room[f] and not move(f, n, n + 1, p, rows, space):
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
def _read_weights(i, samples, rows, addresses, dots):
    """Add what the short and full rows of a sample's features make of its columns; returns how many columns it has."""
    indptr, indices, data = samples
    start, size, _, _, value, full = rows
    first, column, begin, offset, short = addresses
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
def _write_weights(i, samples, rows, addresses, changes):
    """Change the same weights."""
    indptr, indices, data = samples
    start, size, _, _, value, full = rows
    first, column, begin, offset, short = addresses
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
def _prefetch_weights(i, samples, rows, addresses):
    """Ask for the weights of a sample's columns."""
    indptr, indices, _ = samples
    start, size, _, _, value, full = rows
    first, column, begin, offset, short = addresses
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
def row_pass_kernel(batch, pool, entries, bias, rows, constant, addresses, paths, tolerance, gaps):
    """What :func:`.table_passes_kernel` does, for weights in rows, whose ``addresses`` are known."""
    samples, leaves, costs, norms = batch
    start, count, pool_leaf, pool_weight, pool_loss, pool_scale = pool
    ptr, idx, n_columns = paths.ptr, paths.idx, paths.alpha.shape[0]
    width = 0
    for i in samples:
        width = max(width, count[i])
    h, a, score = np.empty(width + 1), np.empty(width), np.zeros(n_columns)
    work = workspace(width, paths)
    columns, changes = work[1][2], work[1][3]
    dots, place = np.empty(n_columns, rows.value.dtype), np.full(n_columns, -1, np.int64)
    first, column = addresses.first, addresses.column
    total = 0.0
    for t in range(samples.shape[0]):
        if t + 1 < samples.shape[0]:  # ask for the next sample's weights while this one is worked on
            _prefetch_weights(samples[t + 1], entries, rows, addresses)
        i = samples[t]
        m, y = count[i], leaves[t]
        part = slice(start[i], start[i] + m)
        leaf, weight, loss, scale = pool_leaf[part], pool_weight[part], pool_loss[part], pool_scale[part]
        held = column[first[i] : first[i + 1]]
        for k in range(held.shape[0]):
            dots[k] = bias * constant[held[k]]
        n_held = _read_weights(i, entries, rows, addresses, dots)
        for k in range(n_held):
            score[held[k]] = dots[k]
            place[held[k]] = k
        gradients(h, score, y, leaf, loss, scale, m, ptr, idx)
        gaps[t], gain, n = visit(h, a, m, y, costs[t], norms[t], leaf, weight, scale, paths, tolerance, work)
        total += gain
        if n > 0:
            for k in range(n_held):
                dots[k] = 0.0
            for k in range(n):
                if place[columns[k]] >= 0:  # what all labels of a sample share changes by rounding only
                    dots[place[columns[k]]] = changes[k]
                    constant[columns[k]] += bias * changes[k]
            _write_weights(i, entries, rows, addresses, dots)
        for k in range(n_held):
            score[held[k]] = 0.0  # columns that it shares with all its labels are zero for the next one too
            place[held[k]] = -1
        count[i] = drop_weightless(weight, leaf, loss, scale, m)
    return total
