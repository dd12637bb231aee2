"""Leaves that a label set could gain by, found without looking at label sets.

A set of leaves that holds l gets better without it, if other leaves are left or it may be empty, unless what l alone
holds is worth something: r_l + Σ r_n over some of the nodes above it. Nodes that are in every best set stay, whoever
holds them: those whose parents are in every one, and which are worth something with the best that has no other parent
below them. If l was all that held such a node, that best takes its place, which costs x_n ≥ 0. So l is of no use if

    r_l + Σ_n max(r_n, 0) + Σ_m x_m < 0

over the nodes above it, n of those that may be missing and m of those that are in. Most leaves of a large hierarchy are
of no use by far, which a bound tells that is summed down the graph and counts nodes as often as there are ways to them.

With weights that have seen little, thousands of leaves may be worth next to nothing each. Who does not need all of them
can ask for those with the largest bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.hierarchy.graph import IntArray, PtrArray, Ragged

_MOST = 1e300  # kernels must not meet infinity


class Below(NamedTuple):
    """A graph as the search for leaves of use goes through it; nodes are in topological order."""

    above_ptr: PtrArray  # nodes next above every node
    above: IntArray
    own_ptr: PtrArray  # nodes of which it is the only one next above
    own: IntArray
    paths_ptr: PtrArray  # nodes of every leaf, itself last
    paths: IntArray
    inner: IntArray  # nodes that are no leaves
    leaf_node: IntArray  # of every leaf


def make_below(above: Ragged, paths: Ragged) -> Below:
    """From the nodes next above every node and the path of every leaf."""
    n = len(above.indptr) - 1
    alone = np.flatnonzero(above.sizes() == 1).astype(np.int32)
    parent = above.indices[above.indptr[alone]]
    order = np.argsort(parent, kind="stable")
    own_ptr = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=n))]).astype(np.int64)
    leaf_node = paths.indices[paths.indptr[1:] - 1]
    inner = np.setdiff1d(np.arange(n, dtype=np.int32), leaf_node)
    return Below(*above, own_ptr, alone[order], *paths, inner, leaf_node)


@inlined
def _largest(found, bounds, size):
    """Those of the first leaves that have the ``size`` largest bounds come first, in the same order."""
    least = np.partition(bounds, bounds.shape[0] - size)[bounds.shape[0] - size]
    ties = size
    for e in range(bounds.shape[0]):
        ties -= bounds[e] > least
    kept = 0
    for e in range(bounds.shape[0]):
        if bounds[e] > least or (bounds[e] == least and ties > 0):
            ties -= bounds[e] == least
            found[kept] = found[e]
            kept += 1


@kernel
def candidates_kernel(rewards, limit, above_ptr, above, own_ptr, own, paths_ptr, paths, inner, leaf_node):
    """For every row of rewards, the leaves that could be of use, ascending; (where their lists begin, the lists).

    Of more than ``limit`` leaves, those that could be of most use.
    """
    n, n_nodes = rewards.shape
    n_leaves = leaf_node.shape[0]
    indptr, found = np.zeros(n + 1, np.int64), np.empty(256, np.int32)
    most, worth, extra = np.empty(n_nodes), np.empty(n_nodes), np.empty(n_nodes)
    held, bounds = np.zeros(n_nodes, np.uint8), np.empty(n_leaves)
    size = 0
    for t in range(n):
        r = rewards[t]
        if found.shape[0] < size + n_leaves:
            larger = np.empty(2 * (size + n_leaves), np.int32)
            for e in range(size):
                larger[e] = found[e]
            found = larger
        # what nodes are worth with the best that has no other parent below them, and what it costs to cover them so
        largest = 0.0
        for c in range(n_nodes):
            worth[c] = r[c]
            largest = max(largest, abs(r[c]))
        slack = -1e-9 * largest  # the cover of a node that is in has exactly 0, but for rounding
        for k in range(inner.shape[0] - 1, -1, -1):
            c = inner[k]
            total, cover = 0.0, -_MOST
            for e in range(own_ptr[c], own_ptr[c + 1]):
                total += max(worth[own[e]], 0.0)
                cover = max(cover, worth[own[e]])
            worth[c] = r[c] + (total if total > 0.0 else cover)
            extra[c] = max(-cover, 0.0)
        for k in range(inner.shape[0]):
            c = inner[k]
            total, inside = 0.0, worth[c] > 0.0
            for q in range(above_ptr[c], above_ptr[c + 1]):
                total += most[above[q]]
                inside &= held[above[q]] == 1
            held[c] = inside
            extra[c] = extra[c] if inside else max(r[c], 0.0)
            most[c] = min(total + extra[c], _MOST)
        begin = size
        for leaf in range(n_leaves):
            c = leaf_node[leaf]
            total = r[c]
            for q in range(above_ptr[c], above_ptr[c + 1]):
                total += most[above[q]]
            found[size] = leaf
            size += total >= slack
        kept = begin
        for e in range(begin, size):
            first, last = paths_ptr[found[e]], paths_ptr[found[e] + 1] - 1
            total = r[paths[last]]
            for q in range(first, last):
                total += extra[paths[q]]
            found[kept] = found[e]
            bounds[kept - begin] = total
            kept += total >= slack
        if kept - begin > limit:
            _largest(found[begin:kept], bounds[: kept - begin], limit)
            kept = begin + limit
        size = kept
        indptr[t + 1] = size
    return indptr, found[:size].copy()
