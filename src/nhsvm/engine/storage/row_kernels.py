"""Kernels of weights in rows: their changes by a batch, the rows from nothing, and the ends of full rows.

The weights of a frequent word are many, and most are of single labels: a full row of a tree with 2,000 inner nodes and
5,000 leaves has two sevenths of its columns without the leaves. Of a document such words have little, in text with
idf weights, and of what tells its labels apart they have less. So which labels to look at is told by the inner nodes of
full rows and all nodes of short ones; here these few labels get what was left out, and the steps that follow are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel, prefetch
from nhsvm.engine.samples import first_entry
from nhsvm.typing import Array, IntArray, PtrArray


class FeatureWalk(NamedTuple):
    """What a walk through the entries of samples, a range of features after the other, keeps; one thread's own."""

    begin: PtrArray  # entries that all samples have in features before each
    cursor: PtrArray  # where every sample has its first feature that is not before the range; moved on
    who: IntArray  # samples that hold a feature, feature by feature
    what: Array  # a number for each of these
    filled: PtrArray  # by feature: where its list ends so far


class RowArrays(NamedTuple):
    """Rows as kernels read and change them; see :class:`nhsvm.engine.storage.rows.Rows`."""

    start: PtrArray
    size: IntArray
    room: IntArray
    column: Array
    value: Array
    full: Array


class FreeSpace(NamedTuple):
    """What threads take room from, one entry each; arrays that kernels change."""

    top: PtrArray  # first free entry
    end: PtrArray
    holes: PtrArray  # (threads, classes, holes) where rooms begin that rows have left
    n_holes: PtrArray  # (threads, classes)
    entry: PtrArray  # (threads, columns) entry of each column in the row at hand, counted on from base
    base: PtrArray


@inlined
def _size(c):
    """Entries of a room of class c: powers of two, and one and a half times these in between."""
    return (2 + c % 2) << (c // 2)


@inlined
def _class(n):
    """The smallest room for n entries."""
    c = 2
    while _size(c) < n:
        c += 1
    return c


@inlined
def _leave(p, begin, room, space):
    """Remember a room that a row has left; of one that is of no class, the largest part that is."""
    holes, n_holes = space.holes, space.n_holes
    c = _class(room)
    if _size(c) > room:
        c -= 1
    if c >= 2 and n_holes[p, c] < holes.shape[2]:
        holes[p, c, n_holes[p, c]] = begin
        n_holes[p, c] += 1


@inlined
def _take(p, c, space):
    """Where a room of class c begins; −1 if there is none."""
    top, end, holes, n_holes = space.top, space.end, space.holes, space.n_holes
    if n_holes[p, c] > 0:
        n_holes[p, c] -= 1
        return holes[p, c, n_holes[p, c]]
    if top[p] + _size(c) > end[p]:
        return -1
    top[p] += _size(c)
    return top[p] - _size(c)


@kernel
def promote_kernel(features, free, n_taken, rows, least):
    """Make rows full that have ``least`` entries or more; returns how many of ``free`` are taken.

    By one thread and before any row changes, so that which rows are full does not depend on the number of threads.
    """
    start, size, room, index, value, full = rows
    for k in range(features.shape[0]):
        f = features[k]
        if size[f] < least or n_taken == free.shape[0]:
            continue
        row = full[free[n_taken]]
        for m in range(row.shape[0]):
            row[m] = 0.0
        for j in range(start[f], start[f] + size[f]):
            row[index[j]] = value[j]
        start[f] = free[n_taken]
        size[f] = -1
        room[f] = 0
        n_taken += 1
    return n_taken


@inlined
def move(f, n, need, p, rows, space):
    """Give a short row of n entries room for ``need``; returns whether there was any."""
    start, room, index, value = rows.start, rows.room, rows.column, rows.value
    c = _class(need)
    at = _take(p, c, space)
    if at < 0:
        return False
    for k in range(n):
        index[at + k] = index[start[f] + k]
        value[at + k] = value[start[f] + k]
    if room[f] > 0:
        _leave(p, start[f], room[f], space)
    start[f] = at
    room[f] = _size(c)
    return True


@kernel
def apply_kernel(p, step, lists, updates, rows, space):
    """Thread p of ``step`` changes every ``step``-th of the features that a batch touches; False if room has run out.

    The samples that hold the k-th feature of ``lists`` are ``order[starts[k]:starts[k + 1]]``, with values ``factor``.

    Changes of a short row are summed first and its entries looked through once: most rows are much longer than what a
    batch changes of them, and a mark that says so stays near.
    """
    features, starts, order, factor = lists
    ptr, columns, coefficients = updates
    start, size, room, index, value, full = rows
    n_columns = full.shape[1]
    marked, sums = np.zeros(n_columns, np.bool_), np.zeros(n_columns, value.dtype)
    some = np.empty(n_columns, np.int32)
    for k in range(p, features.shape[0], step):
        f = features[k]
        if k + step < features.shape[0] and size[features[k + step]] > 0:
            ahead = start[features[k + step]]
            for j in range(0, min(size[features[k + step]], 128), 32):
                prefetch(index, ahead + j)
                prefetch(value, ahead + j)
        if size[f] < 0:
            row = full[start[f]]
            for e in range(starts[k], starts[k + 1]):
                v = factor[e]
                for i in range(ptr[order[e]], ptr[order[e] + 1]):
                    row[columns[i]] += v * coefficients[i]
            continue
        m = 0
        for e in range(starts[k], starts[k + 1]):
            v = factor[e]
            for i in range(ptr[order[e]], ptr[order[e] + 1]):
                c = columns[i]
                sums[c] += v * coefficients[i]
                if not marked[c]:
                    marked[c] = True
                    some[m] = c
                    m += 1
        left, first, n = m, start[f], size[f]
        for j in range(n if m > 0 else 0):
            c = index[first + j]
            if marked[c]:
                value[first + j] += sums[c]
                marked[c] = False
                left -= 1
                if left == 0:
                    break
        if n + left > room[f] and not move(f, n, n + left, p, rows, space):
            return False
        for e in range(m):
            c = some[e]
            if marked[c]:
                index[start[f] + n] = c
                value[start[f] + n] = sums[c]
                marked[c] = False
                n += 1
            sums[c] = 0.0
        size[f] = n
    return True


def first_entries(indptr: PtrArray, indices: IntArray, first: int) -> PtrArray:
    """Where every sample has its first feature that is not before ``first``."""
    out = np.empty(len(indptr) - 1, dtype=np.int64)
    _first_kernel(indptr, indices, first, out)
    return out


@kernel
def _first_kernel(indptr, indices, first, out):
    for t in range(out.shape[0]):
        out[t] = first_entry(indices, indptr[t], indptr[t + 1], first)


@kernel
def counts_kernel(indices, out):
    """How often every feature occurs; bincount would make a copy of ``indices`` in eight bytes each."""
    for j in range(indices.shape[0]):
        out[indices[j]] += 1


@kernel
def bounds_kernel(indptr, indices, ptr, out):
    """``out[f]`` = entries that the row of feature f has at most, when every sample adds to ``ptr[t+1] - ptr[t]``."""
    for t in range(indptr.shape[0] - 1):
        n = ptr[t + 1] - ptr[t]
        for j in range(indptr[t], indptr[t + 1]):
            out[indices[j]] += n


@kernel
def rebuild_kernel(p, first, last, samples, updates, walk, rows, space, next_full, least, exact, stored):
    """The rows of the features from ``first`` to ``last`` from nothing, in double precision; False if room has run out.

    ``start[f]`` is 0 if feature f may take the next full row, ``next_full[0]``, or −1.
    Squares are added to ``exact`` and ``stored``.
    """
    indptr, indices, data = samples
    ptr, columns, coefficients = updates
    begin, cursor, who, factor, filled = walk
    start, size, room, index, value, full = rows
    top, end = space.top, space.end
    for f in range(first, last):
        filled[f - first] = begin[f] - begin[first]
    for t in range(cursor.shape[0]):
        j = cursor[t]
        while j < indptr[t + 1] and indices[j] < last:
            if ptr[t + 1] > ptr[t]:
                at = filled[indices[j] - first]
                who[at] = t
                factor[at] = data[j]
                filled[indices[j] - first] = at + 1
            j += 1
        cursor[t] = j
    n_columns = exact.shape[0]
    total = np.zeros(n_columns)
    seen = np.zeros(n_columns, np.bool_)
    touched = np.empty(n_columns, np.int64)
    for f in range(first, last):
        n = 0
        for e in range(begin[f] - begin[first], filled[f - first]):
            v = np.float64(factor[e])
            for i in range(ptr[who[e]], ptr[who[e] + 1]):
                c = columns[i]
                if not seen[c]:
                    seen[c] = True
                    touched[n] = c
                    n += 1
                total[c] += v * coefficients[i]
        wide = n >= least and start[f] >= 0
        if wide:
            start[f] = next_full[0]
            next_full[0] += 1
            size[f] = -1
            for m in range(n_columns):
                full[start[f], m] = 0.0
        else:
            if top[p] + n > end[p]:
                return False
            start[f] = top[p]
            size[f] = 0
        room[f] = 0
        for k in range(n):
            c = touched[k]
            x = total[c]
            rounded = np.float64(value.dtype.type(x))
            exact[c] += x * x
            stored[c] += rounded * rounded
            total[c] = 0.0
            seen[c] = False
            if wide:
                full[start[f], c] = x
            elif rounded != 0.0:
                index[start[f] + size[f]] = c
                value[start[f] + size[f]] = x
                size[f] += 1
        if not wide and size[f] > 0:  # some room to grow, lest every row moves in the next pass
            room[f] = min(size[f] + size[f] // 4 + 1, end[p] - top[p])
            top[p] += room[f]
    return True


@inlined
def _copy(source, target):
    """One after the other from the first on: the two may overlap."""
    for k in range(source.shape[0]):
        target[k] = source[k]


@kernel
def pack_kernel(first, last, old, new):
    """Rows from ``first`` to ``last`` move to where they are to be; in the old arrays themselves if no row moves up."""
    start, _, index, value, full, _ = old
    new_start, size, new_index, new_value, new_full, _ = new
    for f in range(first, last):
        at, to, n = start[f], new_start[f], size[f]
        if n < 0:
            _copy(full[at], new_full[to])
        else:
            _copy(index[at : at + n], new_index[to : to + n])
            _copy(value[at : at + n], new_value[to : to + n])


@kernel
def norms_kernel(rows, out):
    """Add the squares of every column."""
    start, size, index, value, full, _ = rows
    for f in range(start.shape[0]):
        if size[f] < 0:
            for m in range(out.shape[0]):
                x = np.float64(full[start[f], m])
                out[m] += x * x
        for k in range(start[f], start[f] + size[f]):
            x = np.float64(value[k])
            out[index[k]] += x * x


@kernel
def rescale_kernel(rows, factors):
    """Multiply every column by a factor."""
    start, size, index, value, full, _ = rows
    for f in range(start.shape[0]):
        if size[f] < 0:
            for m in range(factors.shape[0]):
                full[start[f], m] *= factors[m]
        for k in range(start[f], start[f] + size[f]):
            value[k] *= factors[index[k]]


@kernel
def tails_kernel(which, samples, rows, head, leaves, paths, found):
    """Add to ``value[t, k]`` what columns from ``head`` on of full rows make of ``leaf[t, k]`` beside the true leaf.

    Of a path only the last column can be one of these. ``slack`` is then the largest value, or 0.
    """
    indptr, indices, data = samples
    start, size, full = rows.start, rows.size, rows.full
    ptr, idx = paths
    leaf, n_planes, scale, value, slack = found.leaf, found.size, found.scale, found.value, found.slack
    width = leaf.shape[1] + 1
    column, beyond, dots = np.empty(width, np.int32), np.empty(width, np.bool_), np.empty(width)
    for t in range(which.shape[0]):
        m = n_planes[t]
        for k in range(m + 1):  # the true leaf comes last
            path = leaves[t] if k == m else leaf[t, k]
            column[k] = idx[ptr[path + 1] - 1] if ptr[path] < ptr[path + 1] else 0
            beyond[k] = column[k] >= head
            dots[k] = 0.0
        for j in range(indptr[which[t]], indptr[which[t] + 1]):
            f = indices[j]
            if size[f] < 0:
                row, v = full[start[f]], np.float64(data[j])
                for k in range(m + 1):
                    dots[k] += v * row[column[k]]
        own = dots[m] if beyond[m] else 0.0
        top = 0.0
        for k in range(m):
            value[t, k] += scale[t, k] * ((dots[k] if beyond[k] else 0.0) - own)
            top = max(top, value[t, k])
        slack[t] = top
