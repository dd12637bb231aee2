"""Leaves that a label set could gain by, found without looking at label sets.

A set of leaves that holds l gets better without it, if other leaves are left or it may be empty, unless what l alone
holds is worth something: r_l + Σ r_n over some of the nodes above it. Nodes that are in every best set stay, whoever
holds them: those whose parents are in every one, and which are worth something with the best that has no other parent
below them. If l was all that held such a node, that best takes its place, which costs x_n ≥ 0. So l is of no use if

    r_l + Σ_n max(r_n, 0) + Σ_m x_m < 0

over the nodes above it, n of those that may be missing and m of those that are in. Most leaves of a large hierarchy are
of no use by far, which a bound tells that is summed down the graph and counts nodes as often as there are ways to them.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel

_MOST = 1e300  # kernels must not meet infinity


@kernel
def candidates_kernel(rewards, above_ptr, above, paths_ptr, paths, leaf_of):
    """For every row of rewards, the leaves that could be of use, ascending; (where their lists begin, the lists).

    ``above`` has the nodes next above every node, which come first; ``paths`` the nodes of every leaf, itself last;
    ``leaf_of`` the leaf of a node, or −1.
    """
    n, n_nodes = rewards.shape
    indptr, found = np.zeros(n + 1, np.int64), np.empty(256, np.int32)
    most, private, cover = np.empty(n_nodes), np.empty(n_nodes), np.empty(n_nodes)
    held = np.zeros(n_nodes, np.uint8)
    size = 0
    for t in range(n):
        r = rewards[t]
        if found.shape[0] < size + n_nodes:
            larger = np.empty(2 * size + n_nodes, np.int32)
            for e in range(size):
                larger[e] = found[e]
            found = larger
        for c in range(n_nodes):
            private[c], cover[c] = 0.0, -_MOST if leaf_of[c] < 0 else 0.0
        # what nodes are worth with the best that has no other parent below them
        for c in range(n_nodes - 1, -1, -1):
            worth = r[c] + (private[c] if private[c] > 0.0 else cover[c])
            most[c] = worth
            if above_ptr[c + 1] - above_ptr[c] == 1:
                p = above[above_ptr[c]]
                private[p] += max(worth, 0.0)
                cover[p] = max(cover[p], worth)
        begin = size
        for c in range(n_nodes):
            total, inside = 0.0, True
            for q in range(above_ptr[c], above_ptr[c + 1]):
                total += most[above[q]]
                inside &= held[above[q]] == 1
            if leaf_of[c] < 0:
                held[c] = inside and most[c] > 0.0
                if held[c]:
                    private[c] = 0.0 if private[c] > 0.0 else -cover[c]
                else:
                    private[c] = max(r[c], 0.0)
                most[c] = min(total + private[c], _MOST)
            else:
                found[size] = leaf_of[c]
                size += total + r[c] >= 0.0
        kept = begin
        for e in range(begin, size):
            first, last = paths_ptr[found[e]], paths_ptr[found[e] + 1] - 1
            total = r[paths[last]]
            for q in range(first, last):
                total += private[paths[q]]
            found[kept] = found[e]
            kept += total >= 0.0
        size = kept
        indptr[t + 1] = size
    return indptr, found[:size]
