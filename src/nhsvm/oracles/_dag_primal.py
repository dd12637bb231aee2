"""Label sets on a core: read off the marginals, repaired, and improved as if on a tree. A stage of a look."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel


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
def find_kernel(
    samples, lines, all_reward, all_cover, all_state, all_marginal, all_child_ptr, all_child, all_parent_ptr,
    all_parent, all_on,
):  # fmt: skip
    """For samples that ask for it: the better of two readings of the marginals, each pruned and extended.

    A candidate far below ``-big`` means that no set was found.
    """
    most = all_reward.shape[1]
    count, moved = np.empty(most, np.int32), np.empty(2 * most + 1, np.int32)
    on, worth = np.empty(most, np.uint8), np.empty(most)
    for s in range(samples.shape[0]):
        me = samples[s]
        if me.find == 0:
            continue
        b = 2 * s + me.line
        line = lines[b]
        n, big = line.size, me.big
        # no better set is looked for than one that the bound allows
        enough = 1e300 if me.over == 1 else me.bound - me.tolerance - line.constant
        reward, cover, state, marginal = all_reward[b], all_cover[b], all_state[b], all_marginal[b]
        child_ptr, child = all_child_ptr[line.links], all_child[line.links]
        parent_ptr, parent = all_parent_ptr[line.links], all_parent[line.links]
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
