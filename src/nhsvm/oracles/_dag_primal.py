"""Label sets on a core: read off the marginals, repaired, and improved by exact moves."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.oracles._dag_core import Core, States

_LIMIT = 20  # nodes that one move may touch


def find(
    core: Core, marginal: FloatArray, big: float, enough: float, moves: int = 0, gap: float = 0.0
) -> tuple[States, float]:
    """The better of two readings of the marginals, each improved by up to ``moves`` passes of moves; its value.

    Parameters
    ----------
    core : Core
    marginal : array
        By how much the dual prefers each node in the set.
    big : float
        A cover below ``-big`` is none at all.
    enough : float
        No better set is looked for than one of this value.
    moves, gap : int, float
        Passes of moves, tried at nodes whose marginal is smaller than ``gap``.

    Returns
    -------
    on, value : uint8 array, float
        A value far below ``-big`` means that no set was found.
    """
    best, on = np.empty(core.size, np.uint8), np.empty(core.size, np.uint8)
    value = _find_kernel(
        core.reward, core.cover, core.state, *core.links[:4], marginal, big, enough - core.constant, moves, gap, _LIMIT,
        on, best,
    )  # fmt: skip
    return best, core.constant + value


@kernel
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


@kernel
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


@kernel
def _settle(
    begin, size, limit, reward, cover, child_ptr, child, parent_ptr, parent, marginal, on, count, moved, banned
):  # fmt: skip
    """Below what is new on the list: take children that help, cover what must be. The change of the value, the size."""
    gain = 0.0
    at = begin
    while at < size and size < limit:
        j = moved[at]
        at += 1
        if not on[j]:
            continue
        pick = -1
        for e in range(child_ptr[j], child_ptr[j + 1]):
            c = child[e]
            if on[c] or c == banned:
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
    return gain, size


@kernel
def _prune(reward, cover, state, child_ptr, child, parent_ptr, parent, on, count, worth):
    """Take out nodes that are not worth it with all below them, even if every parent may count a child as its own."""
    n = reward.shape[0]
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


@kernel
def _extend(big, reward, cover, child_ptr, child, parent_ptr, parent, on, count, worth):
    """Add trees that are worth it: as on a tree, over nodes that are kept out by one missing parent at most."""
    n = reward.shape[0]
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
def _find_kernel(
    reward, cover, state, child_ptr, child, parent_ptr, parent, marginal, big, enough, moves, gap, limit, on, best
):  # fmt: skip
    n = reward.shape[0]
    count = np.empty(n, np.int32)
    moved = np.empty(2 * n + 1, np.int32)
    worth = np.empty(n)
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
                    moved[0] = i
                    gain, size = _settle(
                        0, 1, n, reward, cover, child_ptr, child, parent_ptr, parent, marginal, on, count, moved, -1
                    )  # fmt: skip
                    value += gain
            if value >= enough:
                break
            if turn == 0:
                value += _prune(reward, cover, state, child_ptr, child, parent_ptr, parent, on, count, worth)
        if value < enough:
            value += _extend(big, reward, cover, child_ptr, child, parent_ptr, parent, on, count, worth)
        if value > top:
            top = value
            best[:] = on
        if top >= enough:
            return top
    if moves == 0:
        return top
    on[:] = best
    for i in range(n):
        count[i] = 0
    for i in range(n):
        if on[i]:
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                count[parent[q]] += 1
    value = top
    for _ in range(moves):
        start = value
        for i in range(n):
            if state[i] == 1 or abs(marginal[i]) > gap:
                continue
            if on[i]:
                moved[0] = i
                size = 1
                gain = _switch(i, reward, cover, parent_ptr, parent, on, count)
                at = 0
                while at < size and size < limit:  # all below goes too
                    j = moved[at]
                    at += 1
                    for e in range(child_ptr[j], child_ptr[j + 1]):
                        c = child[e]
                        if on[c]:
                            gain += _switch(c, reward, cover, parent_ptr, parent, on, count)
                            moved[size] = c
                            size += 1
                off = size
                if at == off:  # nodes beside it that lost their only child may find another
                    for k in range(off):
                        for q in range(parent_ptr[moved[k]], parent_ptr[moved[k] + 1]):
                            p = parent[q]
                            if on[p] and count[p] == 0 and cover[p] < 0.0 and size < limit:
                                moved[size] = p
                                begin = size
                                more, size = _settle(
                                    begin, size + 1, limit, reward, cover, child_ptr, child, parent_ptr, parent,
                                    marginal, on, count, moved, i,
                                )  # fmt: skip
                                gain += more
                                for m in range(begin, size - 1):  # p itself did not move
                                    moved[m] = moved[m + 1]
                                size -= 1
                else:
                    gain = -1.0
            else:
                gain, size = _lift(i, 0, reward, cover, parent_ptr, parent, on, count, moved)
                more, size = _settle(
                    0, size, limit, reward, cover, child_ptr, child, parent_ptr, parent, marginal, on, count,
                    moved, -1,
                )  # fmt: skip
                gain += more
            if gain > 1e-14 * big:
                value += gain
            else:
                for k in range(size - 1, -1, -1):
                    _switch(moved[k], reward, cover, parent_ptr, parent, on, count)
        if value <= start:
            break
    value = 0.0  # once more, without the rounding of many changes
    for i in range(n):
        if on[i]:
            value += reward[i]
            if count[i] == 0:
                value += cover[i]
    if value > top:
        top = value
        best[:] = on
    return top
