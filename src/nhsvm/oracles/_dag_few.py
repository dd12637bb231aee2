"""The few leaves that could be of use, and what is above them: where they are few, no more of a graph is looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm._jit import inlined, kernel
from nhsvm.hierarchy.graph import FloatArray, IntArray, PtrArray, Ragged
from nhsvm.oracles._arrays import check_finite
from nhsvm.oracles._candidates import candidates_kernel, make_below, narrowed_kernel
from nhsvm.oracles._dag_looks import Core
from nhsvm.oracles._dag_plan import Links
from nhsvm.oracles._dag_work import ON

Lists = tuple[PtrArray, IntArray]  # where the lists of samples begin, and the lists


class DagFew:
    """An oracle whose work, beyond one look at every node, depends on the leaves that could be of use.

    Sets are found by putting in and taking out single leaves, from none of these (or the best, if one is needed) and
    from all. Bounds are of one sweep up the graph, in which every node hands what it is worth, v_n, to its parents in
    equal parts; e_n is the sum of those parts that n is handed and that are above 0. A set is worth at most Σ max(v, 0)
    over the roots, and one with leaf l at most that plus Σ_n (r_n + e_n − max(v_n, 0)) over l and all above it: what
    is handed to these is theirs whatever is chosen, and all that they hand on is theirs. The best leaf by this
    bounds all sets but the empty one, and closely where all sets cost something, which the roots do not show.

    Parameters
    ----------
    above : Ragged
        Nodes next above every node; parents come first.
    paths : Ragged
        Nodes of every leaf, itself last.
    allow_empty : bool
    """

    def __init__(self, above: Ragged, paths: Ragged, allow_empty: bool) -> None:
        self.below, self.allow_empty = make_below(above, paths), allow_empty
        self.n_nodes = len(above.indptr) - 1

    def useful(self, rewards: npt.NDArray[Any], limit: int | None = None) -> Lists:
        """Leaves that could be of use, of every row of rewards: (where their lists begin, the lists).

        Of more than ``limit``, those that could be of most use.
        """
        return self.ranked(rewards, limit)[0]

    def ranked(self, rewards: npt.NDArray[Any], limit: int | None = None) -> tuple[Lists, FloatArray]:
        """The same, and of how much use each of them could be."""
        limit = len(self.below.leaf_node) if limit is None else limit
        indptr, leaves, use_of = candidates_kernel(rewards, limit, self.allow_empty, *self.below)
        return (indptr, leaves), use_of

    def narrowed(self, useful: Lists, use_of: FloatArray, limit: int, more: Lists) -> Lists:
        """Of leaves that could be of use, the ``limit`` of most use, and all in ``more``."""
        indptr, leaves = narrowed_kernel(*useful, use_of, limit, *more)
        return indptr, leaves

    def solve(self, rewards: FloatArray, chosen: npt.NDArray[np.uint8], value: FloatArray, bound: FloatArray) -> None:
        """As :meth:`nhsvm.oracles.DagMultilabel.solve`."""
        check_finite(rewards, np.abs(rewards).sum(axis=1))
        (indptr, leaves), value[:], bound[:] = self.found(rewards, self.useful(rewards))
        self.write(indptr, leaves, chosen)

    def found(
        self, rewards: npt.NDArray[Any], useful: Lists, first: Lists | None = None
    ) -> tuple[Lists, FloatArray, FloatArray]:
        """Sets of leaves for every row of rewards, their values and bounds, where the leaves of use are known.

        Bounds hold if these are all of them. Others may begin with ``first``, some of them; this one looks at all.
        """
        b = self.below
        value, bound = np.empty((2, len(rewards)))
        links = b.above_ptr, b.above, b.paths_ptr, b.paths
        indptr, leaves = few_kernel(rewards, *useful, *links, self.allow_empty, value, bound)
        return (indptr, leaves), value, bound

    def write(self, indptr: PtrArray, leaves: IntArray, chosen: npt.NDArray[np.uint8]) -> None:
        """Sets of leaves as nodes: 1 for each that is in the set."""
        write_kernel(indptr, leaves, self.below.paths_ptr, self.below.paths, chosen)

    def core(self, rewards: FloatArray, leaves: IntArray, most: int, must: float) -> tuple[Core, IntArray] | None:
        """The problem of one sample on what is above some leaves, and its nodes; None if these are more than ``most``.

        Its first node is the virtual root. ``must`` is what it costs if nothing below an inner node is chosen.
        """
        below = self.below
        nodes = _above_kernel(leaves, below.paths_ptr, below.paths, self.n_nodes)
        n = len(nodes) + 1
        if n > most:
            return None
        links = Links(*_links_kernel(nodes, below.above_ptr, below.above, self.n_nodes))
        reward, cover = np.zeros(n), np.full(n, must)
        reward[1:] = rewards[nodes]
        cover[1:][below.leaf_of[nodes] >= 0] = 0.0
        cover[0] = 0.0 if self.allow_empty else must
        state = np.zeros(n, np.uint8)
        state[0] = ON
        return Core(reward, cover, state, links, np.zeros(len(links.child)), 0.0), nodes


@kernel
def _above_kernel(leaves, paths_ptr, paths, n_nodes):
    """The nodes of these leaves and all above them, ascending."""
    mark = np.zeros(n_nodes, np.uint8)
    for leaf in leaves:
        for q in range(paths_ptr[leaf], paths_ptr[leaf + 1]):
            mark[paths[q]] = 1
    nodes = np.empty(n_nodes, np.int32)
    n = 0
    for c in range(n_nodes):
        nodes[n] = c
        n += mark[c]
    return nodes[:n].copy()


@kernel
def _links_kernel(nodes, above_ptr, above, n_nodes):
    """Links of nodes with all above them, numbered from 1 on; 0 is what is above the roots."""
    m = nodes.shape[0] + 1
    number = np.empty(n_nodes, np.int32)
    n_edges = 0
    for j in range(m - 1):
        number[nodes[j]] = j + 1
        n_edges += max(1, above_ptr[nodes[j] + 1] - above_ptr[nodes[j]])
    parent_ptr, parent = np.zeros(m + 1, np.int32), np.empty(n_edges, np.int32)
    child_ptr, child = np.zeros(m + 1, np.int32), np.empty(n_edges, np.int32)
    slot, fill = np.empty(n_edges, np.int32), np.empty(m, np.int32)
    k = 0
    for j in range(1, m):
        c = nodes[j - 1]
        if above_ptr[c] == above_ptr[c + 1]:
            parent[k] = 0
            child_ptr[1] += 1
            k += 1
        for q in range(above_ptr[c], above_ptr[c + 1]):
            parent[k] = number[above[q]]
            child_ptr[parent[k] + 1] += 1
            k += 1
        parent_ptr[j + 1] = k
    for j in range(m):
        child_ptr[j + 1] += child_ptr[j]
        fill[j] = child_ptr[j]
    for j in range(1, m):
        for q in range(parent_ptr[j], parent_ptr[j + 1]):
            p = parent[q]
            child[fill[p]] = j
            slot[fill[p]] = q
            fill[p] += 1
    return child_ptr, child, parent_ptr, parent, slot


@inlined
def _improved(r, mine, inside, size, least_size, paths_ptr, paths, below, least):
    """Put leaves in or take them out while one is worth it, but for the last ``least_size``; (their number, gain)."""
    n, gained = mine.shape[0], 0.0
    k, left = 0, n
    while left > 0:
        own = np.int64(inside[k])
        worth = 0.0
        for q in range(paths_ptr[mine[k]], paths_ptr[mine[k] + 1]):
            worth += r[paths[q]] if below[paths[q]] == own else 0.0  # only this leaf holds it, or would
        sign = 1 - 2 * own
        left -= 1
        if sign * worth > least and (own == 0 or size > least_size):
            gained += sign * worth
            inside[k] = 1 - own
            size += sign
            for q in range(paths_ptr[mine[k]], paths_ptr[mine[k] + 1]):
                below[paths[q]] += sign
            left = n - 1
        k = k + 1 if k + 1 < n else 0
    return size, gained


@inlined
def _best_one(r, mine, paths_ptr, paths):
    """Which of the leaves is best by itself, and what it is worth."""
    best, top = 0, -1e300
    for k in range(mine.shape[0]):
        worth = 0.0
        for q in range(paths_ptr[mine[k]], paths_ptr[mine[k] + 1]):
            worth += r[paths[q]]
        if worth > top:
            best, top = k, worth
    return best, top


@kernel
def few_kernel(rewards, indptr, leaves, above_ptr, above, paths_ptr, paths, allow_empty, value, bound):
    """Sets of the leaves listed, as lists; fills in their values and bounds. There is a leaf if one is needed."""
    n_nodes = rewards.shape[1]
    below, total, top = np.zeros(n_nodes, np.int32), np.zeros(n_nodes), np.empty(n_nodes)
    nodes, kept = np.empty(n_nodes, np.int32), np.empty(n_nodes)
    put_ptr, put = np.zeros(rewards.shape[0] + 1, np.int64), np.empty(leaves.shape[0], np.int32)
    at = 0
    for t in range(rewards.shape[0]):
        r, mine = rewards[t], leaves[indptr[t] : indptr[t + 1]]
        n, m = mine.shape[0], 0
        scale, everything, brings = 0.0, 0.0, False
        for k in range(n):
            for q in range(paths_ptr[mine[k]], paths_ptr[mine[k] + 1]):
                c = paths[q]
                below[c] += 1
                if below[c] == 1:
                    everything += r[c]
                    scale += abs(r[c])
                    brings |= r[c] > 0.0
                    nodes[m] = c
                    m += 1
        some = nodes[:m]
        some.sort()
        least, least_size = 1e-12 * scale, np.int64(0 if allow_empty or n == 0 else 1)
        inside = np.ones(n, np.uint8)
        _, gain = _improved(r, mine, inside, n, least_size, paths_ptr, paths, below, least)
        whole = everything + gain
        for c in some:
            below[c] = 0
        other = np.zeros(n, np.uint8)
        size, best = _improved(r, mine, other, 0, least_size, paths_ptr, paths, below, least)
        if size < least_size:  # none is worth anything by itself
            k, best = _best_one(r, mine, paths_ptr, paths)
            other[k] = 1
            for q in range(paths_ptr[mine[k]], paths_ptr[mine[k] + 1]):
                below[paths[q]] = 1
            _, gain = _improved(r, mine, other, 1, least_size, paths_ptr, paths, below, least)
            best += gain
        if best < whole:
            other = inside
        for c in some:
            below[c] = 0
        for k in range(n):
            if other[k]:
                put[at] = mine[k]
                at += 1
                for q in range(paths_ptr[mine[k]], paths_ptr[mine[k] + 1]):
                    below[paths[q]] = 1
        put_ptr[t + 1] = at
        worth = 0.0
        for c in some:
            worth += r[c] if below[c] else 0.0
            below[c] = 0
            total[c], top[c] = 0.0, -1e300
        value[t] = worth
        if not brings:  # nothing, or the best leaf
            bound[t] = worth
            continue
        upper, root = 0.0, -1e300
        for e in range(m - 1, -1, -1):
            c = some[e]
            v = np.float64(r[c])
            if total[c] > 0.0:
                v += total[c]
            elif top[c] > -1e299:
                v += top[c]
            kept[c] = r[c] + total[c] - max(v, 0.0)
            first, last = above_ptr[c], above_ptr[c + 1]
            if first == last:
                upper += max(v, 0.0)
                root = max(root, v)
                continue
            v /= last - first
            for q in range(first, last):
                p = above[q]
                total[p] += max(v, 0.0)
                top[p] = max(top[p], v)
        _, with_one = _best_one(kept, mine, paths_ptr, paths)
        with_one += upper
        if allow_empty:
            with_one = max(with_one, 0.0)
        bound[t] = max(min(root if not allow_empty and upper <= 0.0 else upper, with_one), worth)
    return put_ptr, put[:at].copy()


@kernel
def write_kernel(indptr, leaves, paths_ptr, paths, chosen):
    for t in range(chosen.shape[0]):
        for c in range(chosen.shape[1]):
            chosen[t, c] = 0
        for e in range(indptr[t], indptr[t + 1]):
            for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                chosen[t, paths[q]] = 1
