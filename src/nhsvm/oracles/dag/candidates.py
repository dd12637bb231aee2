"""Candidate leaves, which are those that a best label set could hold, found without any sets; and sets of these.

Nodes that are *in*, in every best set, are those whose parents are in and which are worth something with the best that
is *private* below them, with no other parent. If a node p loses its last child, the best that is private below it takes
that place, or p goes as well if it is not in, which may cost its own parents their last child. (Above all roots there
is a node that is in, and needs no child if a set may be empty.) So that costs at most

    x_p = max(0, min(−cover_p, r_p + Σ_q x_q over its parents q)),

without the second choice if p is in; cover that runs through what is gone does not count. A set that holds a leaf l
gets better without it unless r_l + Σ_p x_p ≥ 0 over its parents; and unless r_l + Σ_n max(r_n, 0) + Σ_m x_m ≥ 0 over
all nodes n above it that are not in, and m that are, which counts none twice. These sums bound what l could add to a
set; leaves whose bound is not below 0 are candidates. The same holds for an inner node with all candidates below it: if
it is none, nothing below it is one. (:mod:`nhsvm.oracles.dag.reduce` has the reasons; here it is done on the hierarchy,
most of which is leaves, in one visit of every leaf and a few of inner nodes.) Few leaves of a large hierarchy are
candidates.

With weights that have seen little, thousands of leaves may be candidates that could add next to nothing. A caller that
does not need all of them can ask for those with the largest bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.hierarchy.graph import Ragged
from nhsvm.oracles.dag.core import TUNING
from nhsvm.oracles.dag.primal import best_leaf
from nhsvm.typing import ByteArray, FloatArray, Floats, IntArray, PtrArray

_MOST = 1e300  # kernels must not meet infinity
Lists = tuple[PtrArray, IntArray]  # where the lists of samples begin, and the lists


class CandidateGraph(NamedTuple):
    """A graph as the search for candidate leaves goes through it; nodes are in topological order."""

    above_ptr: PtrArray  # nodes next above every node
    above: IntArray
    own_ptr: PtrArray  # nodes of which it is the only one next above
    own: IntArray
    paths_ptr: PtrArray  # nodes of every leaf, itself last
    paths: IntArray
    inner: IntArray  # nodes that are no leaves
    leaf_node: IntArray  # of every leaf
    first_above: IntArray  # of every leaf: a node next above, or itself if there is none
    more_leaf: IntArray  # a leaf and a node next above, of all others
    more_above: IntArray
    roots: IntArray  # nodes with none above
    leaf_of: IntArray  # of a node, or −1


def candidate_graph(above: Ragged, paths: Ragged) -> CandidateGraph:
    """From the nodes next above every node and the path of every leaf."""
    n = len(above.indptr) - 1
    alone = np.flatnonzero(above.sizes() == 1).astype(np.int32)
    parent = above.indices[above.indptr[alone]]
    order = np.argsort(parent, kind="stable")
    own_ptr = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=n))]).astype(np.int64)
    leaf_node = paths.last()
    leaf_of = np.full(n, -1, np.int32)
    leaf_of[leaf_node] = np.arange(len(leaf_node), dtype=np.int32)
    over = above.rows(leaf_node)
    first = leaf_node.copy()
    first[over.sizes() > 0] = over.indices[over.indptr[:-1][over.sizes() > 0]]
    others = np.ones(len(over.indices), bool)
    others[over.indptr[:-1][over.sizes() > 0]] = False
    more = over.owners()[others].astype(np.int32), over.indices[others]
    inner, roots = np.flatnonzero(leaf_of < 0).astype(np.int32), np.flatnonzero(above.sizes() == 0).astype(np.int32)
    return CandidateGraph(*above, own_ptr, alone[order], *paths, inner, leaf_node, first, *more, roots, leaf_of)


class LeafCandidates:
    """Finds candidate leaves, and label sets of these: beyond one visit of every node, no more work.

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
        self.graph, self.allow_empty = candidate_graph(above, paths), allow_empty
        self.n_nodes = len(above.indptr) - 1

    def useful(self, rewards: Floats, limit: int | None = None) -> Lists:
        """Candidate leaves of every row of rewards: (where their lists begin, the lists).

        Of more than ``limit``, those with the largest bounds.
        """
        return self.ranked(rewards, limit)[0]

    def ranked(self, rewards: Floats, limit: int | None = None) -> tuple[Lists, FloatArray]:
        """The same, and the bound of each."""
        limit = len(self.graph.leaf_node) if limit is None else limit
        indptr, leaves, use_of = candidates_kernel(rewards, limit, self.allow_empty, self.graph)
        return (indptr, leaves), use_of

    def narrowed(self, useful: Lists, use_of: FloatArray, limit: int, more: Lists) -> Lists:
        """Of candidate leaves, the ``limit`` with the largest bounds, and all in ``more``."""
        indptr, leaves = narrowed_kernel(*useful, use_of, limit, *more)
        return indptr, leaves

    def found(self, rewards: Floats, useful: Lists, first: Lists | None = None) -> tuple[Lists, FloatArray, FloatArray]:
        """Sets of leaves for every row of rewards, their values and bounds, of known candidates.

        Bounds hold if these are all of them. Others may begin with ``first``, some of them; this one looks at all.
        """
        value, bound = np.empty((2, len(rewards)))
        indptr, leaves = candidate_sets_kernel(rewards, *useful, self.graph, self.allow_empty, value, bound)
        return (indptr, leaves), value, bound

    def write(self, indptr: PtrArray, leaves: IntArray, chosen: ByteArray) -> None:
        """Sets of leaves as nodes: 1 for each that is in the set."""
        write_kernel(indptr, leaves, self.graph.paths_ptr, self.graph.paths, chosen)


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


@kernel
def candidate_sets_kernel(rewards, indptr, leaves, graph, allow_empty, value, bound):
    """Sets of the leaves listed, as lists; fills in their values and bounds. There is a leaf if one is needed."""
    above_ptr, above, paths_ptr, paths = graph.above_ptr, graph.above, graph.paths_ptr, graph.paths
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
            k, best = best_leaf(r, mine, paths_ptr, paths)
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
        _, with_one = best_leaf(kept, mine, paths_ptr, paths)
        with_one += upper
        if allow_empty:
            with_one = max(with_one, 0.0)
        bound[t] = max(min(root if not allow_empty and upper <= 0.0 else upper, with_one), worth)
    return put_ptr, put[:at].copy()


@kernel
def write_kernel(indptr, leaves, paths_ptr, paths, chosen):
    """Sets of leaves as nodes."""
    for t in range(chosen.shape[0]):
        for c in range(chosen.shape[1]):
            chosen[t, c] = 0
        for e in range(indptr[t], indptr[t + 1]):
            for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                chosen[t, paths[q]] = 1


# -- which leaves ------------------------------------------------------------------------------------------------------


@inlined
def _largest(found, bounds, size):
    """Those of the first leaves that have the ``size`` largest bounds come first, in the same order, and these too."""
    least = np.partition(bounds, bounds.shape[0] - size)[bounds.shape[0] - size]
    ties = size
    for e in range(bounds.shape[0]):
        ties -= bounds[e] > least
    kept = 0
    for e in range(bounds.shape[0]):
        if bounds[e] > least or (bounds[e] == least and ties > 0):
            ties -= bounds[e] == least
            found[kept], bounds[kept] = found[e], bounds[e]
            kept += 1


@kernel
def candidates_kernel(rewards, limit, allow_empty, graph):
    """For every row of rewards, its candidate leaves, ascending.

    (where their lists begin, the lists, the bound of each). Of more than ``limit`` leaves, those with the largest
    bounds.
    """
    (
        above_ptr, above, own_ptr, own, paths_ptr, paths, inner, leaf_node, first_above, more_leaf, more_above, roots,
        leaf_of,
    ) = graph  # fmt: skip
    n, n_nodes = rewards.shape
    n_leaves = leaf_node.shape[0]
    indptr, found, use_of = np.zeros(n + 1, np.int64), np.empty(256, np.int32), np.empty(256)
    worth, extra = np.empty(n_nodes), np.empty(n_nodes)
    first, second = np.empty(n_nodes), np.empty(n_nodes)  # the best that has no other parent below a node, and the next
    bare, barer = np.zeros(n_nodes), np.zeros(n_nodes)  # x; x if the best is to go
    held, bounds, rough = np.zeros(n_nodes, np.bool_), np.empty(n_leaves), np.empty(n_leaves)
    best = np.full(n_nodes, -1, np.int32)
    total, top, out = np.zeros(n_nodes), np.full(n_nodes, -_MOST), np.zeros(n_nodes, np.bool_)
    size = 0
    for t in range(n):
        r = rewards[t]
        if found.shape[0] < size + n_leaves:
            larger, wider = np.empty(2 * (size + n_leaves), np.int32), np.empty(2 * (size + n_leaves))
            for e in range(size):
                larger[e] = found[e]
                wider[e] = use_of[e]
            found, use_of = larger, wider
        largest = 0.0
        for c in range(n_nodes):
            worth[c] = r[c]
            largest = max(largest, abs(r[c]))
        slack = -1e-9 * largest  # what takes its own place has exactly 0, but for rounding
        for k in range(inner.shape[0] - 1, -1, -1):
            c = inner[k]
            more, most, next_most, at = 0.0, -_MOST, -_MOST, -1
            for e in range(own_ptr[c], own_ptr[c + 1]):
                w = worth[own[e]]
                more += max(w, 0.0)
                next_most = max(next_most, min(most, w))
                at = own[e] if w > most else at
                most = max(most, w)
            worth[c] = r[c] + (more if more > 0.0 else most)
            first[c], second[c], best[c] = most, next_most, at
        # above all is what is in every set, and needs a child unless a set may be empty
        most, next_most, at = 0.0 if allow_empty else -_MOST, 0.0 if allow_empty else -_MOST, -1
        for k in range(roots.shape[0]):
            w = worth[roots[k]]
            next_most = max(next_most, min(most, w))
            at = roots[k] if w > most else at
            most = max(most, w)
        all_bare, all_barer = max(0.0, -most), max(0.0, -next_most)
        for k in range(roots.shape[0]):  # for leaves that have none above; those of inner nodes follow
            bare[roots[k]] = all_bare
        for k in range(inner.shape[0]):
            c = inner[k]
            lost, inside = r[c], worth[c] > 0.0
            if above_ptr[c] == above_ptr[c + 1]:
                lost += all_barer if at == c else all_bare
            for q in range(above_ptr[c], above_ptr[c + 1]):
                p = above[q]
                lost += barer[p] if best[p] == c else bare[p]
                inside &= held[p]
            held[c] = inside
            lost = _MOST if inside else min(lost, _MOST)
            bare[c], barer[c] = max(0.0, min(-first[c], lost)), max(0.0, min(-second[c], lost))
            extra[c] = bare[c] if inside else max(r[c], 0.0)
        # passes without a loop over what is above a leaf take half of the time
        for leaf in range(n_leaves):
            bounds[leaf] = worth[leaf_node[leaf]] + bare[first_above[leaf]]
        for e in range(more_leaf.shape[0]):
            bounds[more_leaf[e]] += bare[more_above[e]]
        for k in range(inner.shape[0]):
            c = inner[k]
            if best[c] >= 0 and leaf_of[best[c]] >= 0:
                bounds[leaf_of[best[c]]] += barer[c] - bare[c]
        if at >= 0 and leaf_of[at] >= 0:
            bounds[leaf_of[at]] += all_barer - all_bare
        begin = size
        for leaf in range(n_leaves):
            found[size] = leaf
            size += bounds[leaf] >= slack
        closely = max(TUNING.listed * limit, TUNING.listed_least)
        if size - begin > closely:  # most will not be listed: do not bound all of them closely
            for e in range(begin, size):
                rough[e - begin] = worth[leaf_node[found[e]]] + bare[first_above[found[e]]]
            _largest(found[begin:size], rough[: size - begin], closely)
            size = begin + closely
        # what inner nodes are worth with all candidates below them
        for e in range(begin, size):
            c = leaf_node[found[e]]
            lo, hi = above_ptr[c], above_ptr[c + 1]
            w = bounds[found[e]] if hi - lo > 1 else worth[c]
            for q in range(lo, hi):
                total[above[q]] += max(w, 0.0)
                top[above[q]] = max(top[above[q]], w)
        for k in range(inner.shape[0] - 1, -1, -1):
            c = inner[k]
            if top[c] == -_MOST:  # there is no candidate below it
                continue
            lo, hi = above_ptr[c], above_ptr[c + 1]
            w = max(r[c] + (total[c] if total[c] > 0.0 else top[c]), -_MOST)
            whole = w
            if lo == hi:
                whole += all_barer if at == c else all_bare
            for q in range(lo, hi):
                p = above[q]
                whole += barer[p] if best[p] == c else bare[p]
            out[c] = whole < slack and not held[c]
            total[c], top[c] = 0.0, -_MOST  # for the next
            if hi - lo > 1:
                w = whole if whole > 0.0 else whole / (hi - lo)
            for q in range(lo, hi):
                total[above[q]] += max(w, 0.0)
                top[above[q]] = max(top[above[q]], w)
        kept = begin
        for e in range(begin, size):
            leaf = found[e]
            bound, use = worth[leaf_node[leaf]] + all_bare, True
            for q in range(paths_ptr[leaf], paths_ptr[leaf + 1] - 1):
                bound += extra[paths[q]]
                use &= not out[paths[q]]
            bound = min(bound, bounds[leaf])
            found[kept] = leaf
            use_of[kept] = bound
            kept += use and bound >= slack
        if kept - begin > limit:
            _largest(found[begin:kept], use_of[begin:kept], limit)
            kept = begin + limit
        size = kept
        indptr[t + 1] = size
    return indptr, found[:size].copy(), use_of[:size].copy()


@kernel
def narrowed_kernel(indptr, leaves, use_of, limit, put_ptr, put):
    """Of every list the ``limit`` leaves with the largest bounds, and those of ``put``; all lists are ascending."""
    n = indptr.shape[0] - 1
    new_ptr, new = np.zeros(n + 1, np.int64), np.empty(leaves.shape[0] + put.shape[0], np.int32)
    some, bounds, size = np.empty(leaves.shape[0], np.int32), np.empty(leaves.shape[0]), 0
    for t in range(n):
        lo, hi = indptr[t], indptr[t + 1]
        most = hi - lo
        for e in range(lo, hi):
            some[e - lo], bounds[e - lo] = leaves[e], use_of[e]
        if most > limit:
            _largest(some[:most], bounds[:most], limit)
            most = limit
        a, b = 0, put_ptr[t]  # both are ascending
        while a < most or b < put_ptr[t + 1]:
            if b == put_ptr[t + 1] or (a < most and some[a] <= put[b]):
                leaf = some[a]
                b += b < put_ptr[t + 1] and put[b] == leaf
                a += 1
            else:
                leaf = put[b]
                b += 1
            new[size] = leaf
            size += 1
        new_ptr[t + 1] = size
    return new_ptr, new[:size].copy()
