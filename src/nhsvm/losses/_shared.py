"""Sums over the nodes that leaves share: kernels of :mod:`nhsvm.losses._difference`."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel


@kernel
def shared_kernel(true, totals, weights, carried_ptr, carried, carriers_ptr, carriers, out):
    """``out[i]`` = the weighted differences of every leaf and the leaf ``true[i]``.

    Leaves have ``totals`` and the nodes ``carried``, nodes with weight the leaves ``carriers``.
    """
    n = totals.shape[0]
    row = np.empty(n)  # in double precision, whatever ``out`` is
    for i in range(true.shape[0]):
        t = true[i]
        for leaf in range(n):
            row[leaf] = totals[t] + totals[leaf]
        for q in range(carried_ptr[t], carried_ptr[t + 1]):
            twice = 2.0 * weights[carried[q]]
            for e in range(carriers_ptr[carried[q]], carriers_ptr[carried[q] + 1]):
                row[carriers[e]] -= twice
        for leaf in range(n):
            out[i, leaf] = row[leaf]


@kernel
def sharing_kernel(true, totals, weights, carried_ptr, carried, carriers_ptr, carriers):
    """The leaves that share nodes with ``true[i]``, for each: (where lists begin, the lists, weighted differences)."""
    n = true.shape[0]
    room = 0
    for t in true:
        for q in range(carried_ptr[t], carried_ptr[t + 1]):
            room += carriers_ptr[carried[q] + 1] - carriers_ptr[carried[q]]
    indptr, leaves, values = np.zeros(n + 1, np.int64), np.empty(room, np.int32), np.empty(room)
    place = np.full(totals.shape[0], -1, np.int64)
    top = 0
    for i in range(n):
        t = true[i]
        for q in range(carried_ptr[t], carried_ptr[t + 1]):
            twice = 2.0 * weights[carried[q]]
            for e in range(carriers_ptr[carried[q]], carriers_ptr[carried[q] + 1]):
                leaf = carriers[e]
                if place[leaf] < indptr[i]:
                    place[leaf] = top
                    leaves[top] = leaf
                    values[top] = totals[t] + totals[leaf]
                    top += 1
                values[place[leaf]] -= twice
        indptr[i + 1] = top
    return indptr, leaves[:top], values[:top]
