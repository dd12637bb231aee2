"""Sums over the nodes that leaves share: a kernel of :mod:`nhsvm.losses._difference`."""

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
