"""Label sets: read off the marginals, and improved by single leaves.

On a core, marginals are rounded to a set, which is repaired, pruned and extended as if on a tree
(:func:`rounding_kernel`). On the hierarchy itself, sets are improved one leaf at a time (:func:`flip_leaves_kernel`):
where training has made many label sets nearly equal, this finds much of what dives along the marginals miss, in a tenth
of their time; and from the set of a moment ago it follows weights that have changed a little.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles.dag.core import links_of
from nhsvm.oracles.protocol import check_array
from nhsvm.typing import ByteArray, FloatArray, IntArray

HUGE = 1e300  # a gap that nothing is known of: kernels must not meet infinity


def label_gains(graph: Graph, scores: FloatArray, chosen: ByteArray, which: IntArray | None = None) -> FloatArray:
    """s(ŷ ∪ Ā(l)) − s(ŷ without l), for s(y) = Σ_{n∈y} s_n and leaves l.

    That is Σ s_n over the nodes of Ā(l) that are not in ŷ; and for a leaf that is in ŷ, over those that no other leaf
    of ŷ lies below. Where ŷ is the best of all label sets, no leaf outside has a gain above 0, and no leaf inside one
    below, but for the only leaf of a set that must not be empty.

    Parameters
    ----------
    graph : Graph
    scores : float64 array of (batch, n_nodes)
        s.
    chosen : uint8 array of (batch, n_nodes)
        1 for the nodes of ŷ, the closure of some leaves.
    which : array, optional
        Positions of the leaves l; all by default.

    Returns
    -------
    array of (batch, len(which))

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> scores, chosen = np.array([[-1.0, -2.0, 3.0, -1.0, 1.0]]), np.array([[1, 0, 1, 0, 0]], np.uint8)
    >>> label_gains(h.graph, scores, chosen)
    array([[ 2., -1., -1.]])
    """
    which = np.arange(graph.n_leaves, dtype=np.int32) if which is None else np.asarray(which, dtype=np.int32)
    check_array("scores", scores, (len(scores), graph.n_nodes), np.float64)
    check_array("chosen", chosen, (len(scores), graph.n_nodes), np.uint8)
    if len(which) and not 0 <= which.min() <= which.max() < graph.n_leaves:
        raise OptionError(f"which must be positions below {graph.n_leaves}, the number of leaves")
    out = np.empty((len(scores), len(which)))
    _gains_kernel(scores, chosen, graph.leaves, *graph.leaf_ancestors, which, out)
    return out


@kernel
def _gains_kernel(scores, chosen, leaves, indptr, indices, which, out):
    below = np.empty(scores.shape[1], np.int32)  # how many leaves of ŷ are at or below a node
    for t in range(scores.shape[0]):
        below[:] = 0
        for k in range(leaves.shape[0]):
            if chosen[t, leaves[k]]:
                for e in range(indptr[k], indptr[k + 1]):
                    below[indices[e]] += 1
        for j in range(which.shape[0]):
            k = which[j]
            own = chosen[t, leaves[k]]  # nodes that l alone holds, or would bring
            total = 0.0
            for e in range(indptr[k], indptr[k + 1]):
                n = indices[e]
                if below[n] == own:
                    total += scores[t, n]
            out[t, j] = total


@inlined
def best_leaf(r, mine, paths_ptr, paths):
    """Which of some leaves is best by itself, the first of equals, and what it is worth."""
    best, top = 0, -1e300
    for k in range(mine.shape[0]):
        worth = 0.0
        for q in range(paths_ptr[mine[k]], paths_ptr[mine[k] + 1]):
            worth += r[paths[q]]
        if worth > top:
            best, top = k, worth
    return best, top


@kernel
def flip_leaves_kernel(rewards, scales, chosen, gap, leaves, path_ptr, path, allow_empty):
    """Put leaves in, with all above them, or take them out, with all that only they hold, while one is worth it.

    ``gap`` is what better sets could exceed these by, and falls by what they gain; where it is 0 nothing is done.
    """
    n, n_leaves = chosen.shape[1], leaves.shape[0]
    below = np.empty(n, np.int32)  # leaves of the set at or below a node
    for s in range(chosen.shape[0]):
        if gap[s] <= 0.0:
            continue
        r, y = rewards[s], chosen[s]
        for i in range(n):
            below[i] = 0
        size, gained = 0, 0.0
        for k in range(n_leaves):
            if y[leaves[k]]:
                size += 1
                for e in range(path_ptr[k], path_ptr[k + 1]):
                    below[path[e]] += 1
        k, left = 0, n_leaves  # leaves to be seen until all have been since the last change
        while left > 0:
            own = np.int64(y[leaves[k]])
            worth = 0.0
            for e in range(path_ptr[k], path_ptr[k + 1]):
                worth += r[path[e]] if below[path[e]] == own else 0.0  # only this leaf holds it, or would
            sign = 1 - 2 * own
            left -= 1
            if sign * worth > 1e-12 * scales[s] and (own == 0 or size > 1 or allow_empty):
                gained += sign * worth
                size += sign
                for e in range(path_ptr[k], path_ptr[k + 1]):
                    below[path[e]] += sign
                    y[path[e]] = below[path[e]] > 0
                left = n_leaves - 1
            k = k + 1 if k + 1 < n_leaves else 0
        gap[s] = max(0.0, gap[s] - gained)


@kernel
def best_leaf_kernel(rewards, chosen, leaves, path_ptr, path):
    """The best closure of one leaf."""
    mine = np.arange(leaves.shape[0]).astype(np.int32)
    for s in range(chosen.shape[0]):
        best, _ = best_leaf(rewards[s], mine, path_ptr, path)
        chosen[s, :] = 0
        for e in range(path_ptr[best], path_ptr[best + 1]):
            chosen[s, path[e]] = 1


@kernel
def cheapest_leaf_kernel(parent_ptr, parent, leaves, rewards, chosen):
    """Fill in the best closure Ā(l) of a leaf l, for rewards ≤ 0; the first of equals."""
    # sums only fall, so a leaf is given up as soon as it is worse than the best so far
    n = rewards.shape[0]
    mark = np.full(n, -1, np.int32)
    queue = np.empty(n, np.int32)
    top = -1e308
    best = leaves[0]
    for k in range(leaves.shape[0] + 1):  # the last time, the best once more, to keep its closure
        last = k == leaves.shape[0]
        leaf = best if last else leaves[k]
        queue[0] = leaf
        mark[leaf] = k
        size, at, total = 1, 0, 0.0
        while at < size and (total > top or last):
            j = queue[at]
            at += 1
            total += rewards[j]
            for q in range(parent_ptr[j], parent_ptr[j + 1]):
                p = parent[q]
                if mark[p] != k:
                    mark[p] = k
                    queue[size] = p
                    size += 1
        if not last and at == size and total > top:
            top = total
            best = leaf
    chosen[:] = 0
    for k in range(size):
        chosen[queue[k]] = 1


# -- marginals to sets, on a core --------------------------------------------------------------------------------------


@inlined
def _switch(i, reward, cover, parent_ptr, parent, on, count):
    """Put i into the set or take it out; the change of the value. ``count`` is the number of children in the set."""
    gain = reward[i]
    if count[i] == 0:
        gain += cover[i]
    if on[i]:
        on[i] = 0
        gain = -gain
        for q in range(parent_ptr[i], parent_ptr[i + 1]):
            p = parent[q]
            count[p] -= 1
            if on[p] and count[p] == 0:
                gain += cover[p]
    else:
        on[i] = 1
        for q in range(parent_ptr[i], parent_ptr[i + 1]):
            p = parent[q]
            if on[p] and count[p] == 0:
                gain -= cover[p]
            count[p] += 1
    return gain


@inlined
def _lift(i, size, reward, cover, parent_ptr, parent, on, count, moved):
    """Put i and all that is missing above it into the set, and onto the list; the change of the value, and its size."""
    gain = 0.0
    if on[i]:
        return gain, size
    gain += _switch(i, reward, cover, parent_ptr, parent, on, count)
    at = size
    moved[size] = i
    size += 1
    while at < size:
        j = moved[at]
        at += 1
        for q in range(parent_ptr[j], parent_ptr[j + 1]):
            p = parent[q]
            if not on[p]:
                gain += _switch(p, reward, cover, parent_ptr, parent, on, count)
                moved[size] = p
                size += 1
    return gain, size


@inlined
def _settle(i, n, reward, cover, child_ptr, child, parent_ptr, parent, marginal, on, count, moved):
    """Below i and all that comes in with it: take children that help, cover what must be. The change of the value."""
    gain = 0.0
    moved[0] = i
    at, size = 0, 1
    while at < size < n:
        j = moved[at]
        at += 1
        if not on[j]:
            continue
        pick = -1
        for e in range(child_ptr[j], child_ptr[j + 1]):
            c = child[e]
            if on[c]:
                continue
            if pick < 0 or marginal[c] > marginal[pick]:
                pick = c
            if marginal[c] > 0.0:
                ready = True
                for q in range(parent_ptr[c], parent_ptr[c + 1]):
                    if not on[parent[q]]:
                        ready = False
                        break
                if ready:
                    gain += _switch(c, reward, cover, parent_ptr, parent, on, count)
                    moved[size] = c
                    size += 1
        if count[j] == 0 and cover[j] < 0.0 and pick >= 0:
            before = size
            more, size = _lift(pick, size, reward, cover, parent_ptr, parent, on, count, moved)
            # a cover of its own may be cheaper than the child together with what that needs below
            if more < 0.0 and child_ptr[pick] == child_ptr[pick + 1]:
                for k in range(size - 1, before - 1, -1):
                    more += _switch(moved[k], reward, cover, parent_ptr, parent, on, count)
                size = before
                more = 0.0
            gain += more
    return gain


@inlined
def _prune(n, reward, cover, state, child_ptr, child, parent_ptr, parent, on, count, worth):
    """Take out nodes that are not worth it with all below them, even if every parent may count a child as its own."""
    change = 0.0
    for i in range(n - 1, -1, -1):
        if on[i]:
            total, top = 0.0, cover[i]
            for e in range(child_ptr[i], child_ptr[i + 1]):
                c = child[e]
                if on[c]:
                    total += max(worth[c], 0.0)
                    top = max(top, worth[c])
            worth[i] = reward[i] + (total if total > 0.0 else top)
    for i in range(n):
        if on[i] and state[i] == 0:
            loss = worth[i]
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                p = parent[q]
                if not on[p]:
                    loss = -1e300
                    break
                if count[p] == 1:
                    loss -= cover[p]
            if loss < 0.0:
                change += _switch(i, reward, cover, parent_ptr, parent, on, count)
    return change


@inlined
def _extend(n, big, reward, cover, child_ptr, child, parent_ptr, parent, on, count, worth):
    """Add trees that are worth it: as on a tree, over nodes that are kept out by one missing parent at most."""
    change = 0.0
    for i in range(n - 1, -1, -1):
        if on[i]:
            continue
        total, top = 0.0, cover[i]
        for e in range(child_ptr[i], child_ptr[i + 1]):
            c = child[e]
            if worth[c] > top or worth[c] > 0.0:
                alone = True
                for q in range(parent_ptr[c], parent_ptr[c + 1]):
                    if parent[q] != i and not on[parent[q]]:
                        alone = False
                        break
                if alone:
                    total += max(worth[c], 0.0)
                    top = max(top, worth[c])
        worth[i] = reward[i] + (total if total > 0.0 else top)
    for i in range(n):
        if on[i] or worth[i] < -big:
            continue
        gain = worth[i]
        for q in range(parent_ptr[i], parent_ptr[i + 1]):
            p = parent[q]
            if not on[p]:
                gain = -1.0
                break
            if count[p] == 0:
                gain -= cover[p]
        if gain > 0.0:
            change += _switch(i, reward, cover, parent_ptr, parent, on, count)
    return change


@kernel
def rounding_kernel(samples, lines, nodes, links, all_on):
    """For samples that ask for it: the better of two readings of the marginals, each pruned and extended.

    A candidate far below ``-big`` means that no set was found.
    """
    most = nodes.reward.shape[1]
    count, moved = np.empty(most, np.int32), np.empty(2 * most + 1, np.int32)
    on, worth = np.empty(most, np.uint8), np.empty(most)
    for s in range(samples.shape[0]):
        me = samples[s]
        if me.find == 0:
            continue
        b = 2 * s + me.line
        line = lines[b]
        n, big = line.size, me.big
        # no better set is sought than one that the bound allows
        enough = 1e300 if me.over == 1 else me.bound - me.tolerance - line.constant
        reward, cover, state, marginal = nodes.reward[b], nodes.cover[b], nodes.state[b], nodes.marginal[b]
        child_ptr, child, parent_ptr, parent, _ = links_of(links, line.links)
        best = all_on[s]
        top = -1e300
        for mode in range(2):
            # mode 0: what has a positive marginal, and all above it. Mode 1: of that only what has all parents there
            for i in range(n):
                count[i] = 0
                on[i] = state[i] == 1 or marginal[i] > 0.0
            if mode == 0:
                for i in range(n - 1, -1, -1):
                    if on[i]:
                        for q in range(parent_ptr[i], parent_ptr[i + 1]):
                            on[parent[q]] = 1
            else:
                for i in range(n):
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        on[i] &= on[parent[q]]
            for i in range(n):
                if on[i]:
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        count[parent[q]] += 1
            value = 0.0
            for i in range(n):
                if on[i]:
                    value += reward[i]
                    if count[i] == 0:
                        value += cover[i]
            for turn in range(2):
                for i in range(n):  # a node that gets a child here, and what is lifted with it, are visited or covered
                    if on[i] and count[i] == 0 and cover[i] < -big and child_ptr[i] < child_ptr[i + 1]:
                        value += _settle(
                            i, n, reward, cover, child_ptr, child, parent_ptr, parent, marginal, on, count, moved
                        )  # fmt: skip
                if value >= enough:
                    break
                if turn == 0:
                    value += _prune(n, reward, cover, state, child_ptr, child, parent_ptr, parent, on, count, worth)
            if value < enough:
                value += _extend(n, big, reward, cover, child_ptr, child, parent_ptr, parent, on, count, worth)
            if value > top:
                top = value
                for i in range(n):
                    best[i] = on[i]
            if top >= enough:
                break
        me.find, me.found, me.candidate = 0, 1, line.constant + top
