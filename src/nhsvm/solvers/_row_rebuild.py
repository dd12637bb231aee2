"""Rows of weights from nothing, out of the dual variables of all samples: kernels of :mod:`nhsvm.solvers._rows`."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel
from nhsvm.hierarchy.graph import IntArray, PtrArray


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
