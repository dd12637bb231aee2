"""Changes of rows of weights by the samples of a batch: kernels of :mod:`nhsvm.solvers._rows`."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel, prefetch


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
def _leave(p, begin, room, holes, n_holes):
    """Remember a room that a row has left; of one that is of no class, the largest part that is."""
    c = _class(room)
    if _size(c) > room:
        c -= 1
    if c >= 2 and n_holes[p, c] < holes.shape[2]:
        holes[p, c, n_holes[p, c]] = begin
        n_holes[p, c] += 1


@inlined
def _take(p, c, top, end, holes, n_holes):
    """Where a room of class c begins; −1 if there is none."""
    if n_holes[p, c] > 0:
        n_holes[p, c] -= 1
        return holes[p, c, n_holes[p, c]]
    if top[p] + _size(c) > end[p]:
        return -1
    top[p] += _size(c)
    return top[p] - _size(c)


@kernel
def promote_kernel(features, free, n_taken, start, size, room, index, value, full, least):
    """Make rows full that have ``least`` entries or more; returns how many of ``free`` are taken.

    By one thread and before any row changes, so that which rows are full does not depend on the number of threads.
    """
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
def _move(f, n, need, p, start, room, index, value, top, end, holes, n_holes):
    """Give a short row of n entries room for ``need``; returns whether there was any."""
    c = _class(need)
    at = _take(p, c, top, end, holes, n_holes)
    if at < 0:
        return False
    for k in range(n):
        index[at + k] = index[start[f] + k]
        value[at + k] = value[start[f] + k]
    if room[f] > 0:
        _leave(p, start[f], room[f], holes, n_holes)
    start[f] = at
    room[f] = _size(c)
    return True


@kernel
def apply_kernel(
    p, step, features, begin, end_of, order, factor, ptr, ptr_end, columns, coefficients,
    start, size, room, index, value, full, top, end, holes, n_holes,
):  # fmt: skip
    """Thread p of ``step`` changes every ``step``-th of the features that a batch touches; False if room has run out.

    The samples that hold the k-th feature are ``order[begin[k]:end_of[k]]``, with values ``factor``; sample t adds
    ``coefficients`` to ``columns``, from ``ptr[t]`` to ``ptr_end[t]``.

    Changes of a short row are summed first and its entries looked through once: most rows are much longer than what a
    batch changes of them, and a mark that says so stays near.
    """
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
            for e in range(begin[k], end_of[k]):
                v = factor[e]
                for i in range(ptr[order[e]], ptr_end[order[e]]):
                    row[columns[i]] += v * coefficients[i]
            continue
        m = 0
        for e in range(begin[k], end_of[k]):
            v = factor[e]
            for i in range(ptr[order[e]], ptr_end[order[e]]):
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
        if n + left > room[f] and not _move(
            f, n, n + left, p, start, room, index, value, top, end, holes, n_holes
        ):  # fmt: skip
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
