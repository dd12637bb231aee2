"""Kernels of weights in rows: their changes by a batch, the rows from nothing, and the ends of full rows.

The weights of a frequent word are many, and most are of single labels: a full row of a tree with 2,000 inner nodes and
5,000 leaves has two sevenths of its columns without the leaves. Of a document such words have little, in text with
idf weights, and of what tells its labels apart they have less. So which labels to look at is told by the inner nodes of
full rows and all nodes of short ones; here these few labels get what was left out, and the steps that follow are exact.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel, prefetch
from nhsvm.hierarchy.graph import IntArray, PtrArray


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


def first_entries(indptr: PtrArray, indices: IntArray, first: int) -> PtrArray:
    """Where every sample has its first feature that is not before ``first``."""
    out = np.empty(len(indptr) - 1, dtype=np.int64)
    _first_kernel(indptr, indices, first, out)
    return out


@kernel
def _first_kernel(indptr, indices, first, out):
    for t in range(out.shape[0]):
        lo, hi = indptr[t], indptr[t + 1]
        while lo < hi:
            mid = (lo + hi) // 2
            if indices[mid] < first:
                lo = mid + 1
            else:
                hi = mid
        out[t] = lo


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
def rebuild_kernel(
    p, first, last, begin, cursor, indptr, indices, data, ptr, columns, coefficients, who, factor, filled,
    start, size, room, index, value, full, next_full, least, top, end, exact, stored,
):  # fmt: skip
    """The rows of the features from ``first`` to ``last`` from nothing, in double precision; False if room has run out.

    ``start[f]`` is 0 if feature f may take the next full row, ``next_full[0]``, or −1.
    ``begin[f]`` counts the entries of the samples in features before f; ``cursor[t]`` is where sample t has its first
    feature that is not before ``first``, and is moved to ``last``. Squares are added to ``exact`` and ``stored``.
    """
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


@kernel
def tails_kernel(
    rows, indptr, indices, data, start, size, full, head, leaves, ptr, idx, leaf, n_planes, scale, value, slack
):
    """Add to ``value[t, k]`` what columns from ``head`` on of full rows make of ``leaf[t, k]`` beside the true leaf.

    Of a path only the last column can be one of these. ``slack`` is then the largest value, or 0.
    """
    width = leaf.shape[1] + 1
    column, beyond, dots = np.empty(width, np.int32), np.empty(width, np.bool_), np.empty(width)
    for t in range(rows.shape[0]):
        m = n_planes[t]
        for k in range(m + 1):  # the true leaf comes last
            path = leaves[t] if k == m else leaf[t, k]
            column[k] = idx[ptr[path + 1] - 1] if ptr[path] < ptr[path + 1] else 0
            beyond[k] = column[k] >= head
            dots[k] = 0.0
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
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
