"""Small connected parts of a core, solved to the end one by one: a search over the stars of the dual as it is.

What is left where sweeps stall is mostly many small parts that have nothing to do with each other, each with a little
gap of its own. Decisions on the nodes of a part leave the shares as they are, so that the bound, the sum of the values
of its stars, changes at the node and its parents only. At every step, all free nodes are tried both ways: what one way
would bring below the best set so far is decided; the split is where the lesser loss is largest.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.oracles._dag_sweeps import OWN
from nhsvm.oracles._dag_work import FREE, OFF, ON, RUNNING

_FEW = 0.05  # part of the nodes; if more are solved, the core shrinks before a set is looked for


@inlined
def _star(i, own, cover, child_ptr, child, slot, share, x):
    """The best value of a star, decisions given."""
    if x[i] == OFF:
        return 0.0
    total, top, covered = own[8 * i + OWN], cover[i], cover[i] == 0.0
    for e in range(child_ptr[i], child_ptr[i + 1]):
        c, t = child[e], share[slot[e]]
        if x[c] == ON or (x[c] == FREE and t > 0.0):
            total += t
            covered = True
        elif x[c] == FREE:
            top = max(top, t)
    if not covered:
        total += top
    return total if x[i] == ON else max(total, 0.0)


@inlined
def _around(i, own, cover, child_ptr, child, slot, parent_ptr, parent, share, x, worth, store):
    """By how much the values of the stars with i in them differ from ``worth``, which is renewed if asked."""
    change = 0.0
    for q in range(parent_ptr[i] - 1, parent_ptr[i + 1]):
        j = i if q < parent_ptr[i] else parent[q]
        value = _star(j, own, cover, child_ptr, child, slot, share, x)
        change += value - worth[j]
        if store:
            worth[j] = value
    return change


@inlined
def _decide(i, way, size, own, cover, child_ptr, child, slot, parent_ptr, parent, share, x, worth, trail):
    """Decide i and what follows; the change of the bound, and the size of the trail."""
    change = 0.0
    x[i] = way
    trail[size] = i
    at = size
    size += 1
    while at < size:
        j = trail[at]
        at += 1
        if way == ON:
            for q in range(parent_ptr[j], parent_ptr[j + 1]):
                if x[parent[q]] == FREE:
                    x[parent[q]] = ON
                    trail[size] = parent[q]
                    size += 1
        else:
            for e in range(child_ptr[j], child_ptr[j + 1]):
                if x[child[e]] == FREE:
                    x[child[e]] = OFF
                    trail[size] = child[e]
                    size += 1
        change += _around(j, own, cover, child_ptr, child, slot, parent_ptr, parent, share, x, worth, True)
    return change, size


@inlined
def _members(start, child_ptr, child, parent_ptr, parent, seen, member):
    """List all nodes connected with ``start``; their number."""
    member[0] = start
    seen[start] = 1
    size, at = 1, 0
    while at < size:
        j = member[at]
        at += 1
        for e in range(child_ptr[j], child_ptr[j + 1]):
            if seen[child[e]] == 0:
                seen[child[e]] = 1
                member[size] = child[e]
                size += 1
        for q in range(parent_ptr[j], parent_ptr[j + 1]):
            if seen[parent[q]] == 0:
                seen[parent[q]] = 1
                member[size] = parent[q]
                size += 1
    return size


@kernel
def small_kernel(
    largest, limit, samples, lines, all_cover, all_state, all_star, all_child_ptr, all_child, all_slot, all_parent_ptr,
    all_parent, all_share, all_parts,
):  # fmt: skip
    """Solve the small parts of cores that samples have come to for the first time, and of dives.

    These are connected parts of up to ``largest`` nodes; those that take more than ``limit`` steps are left. ``parts``
    becomes the best set of each part that was solved, and the state of all other nodes.
    """
    most = all_cover.shape[1]
    seen = np.empty(most, np.uint8)
    member, trail, best = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
    worth = np.empty(most)
    split, mark, other = np.empty(most + 1, np.int32), np.empty(most + 1, np.int32), np.empty(most + 1, np.uint8)
    above = np.empty(most + 1)  # bounds where it was split
    for s in range(samples.shape[0]):
        me = samples[s]
        if me.phase != RUNNING or me.over == 1:
            continue
        b = 2 * s + me.line
        line = lines[b]
        n, x = line.size, all_parts[s]
        for i in range(n):
            x[i] = all_state[b, i]
            seen[i] = 0
            worth[i] = 0.0
        me.solved = 0
        if me.line == 0 and (me.looks > 0 or me.first == 1):
            me.find = 1 if me.looks == 0 else 0
            continue
        child_ptr, child, slot = all_child_ptr[line.links], all_child[line.links], all_slot[line.links]
        parent_ptr, parent = all_parent_ptr[line.links], all_parent[line.links]
        share, own, cover = all_share[b], all_star[b], all_cover[b]
        tolerance = 1e-3 * me.tolerance
        settled, all_steps = 0, 0
        for start in range(n):
            if seen[start]:
                continue
            size = _members(start, child_ptr, child, parent_ptr, parent, seen, member)
            if size > largest:
                continue
            top, bound = -1e300, 0.0
            for k in range(size):
                j = member[k]
                worth[j] = _star(j, own, cover, child_ptr, child, slot, share, x)
                bound += worth[j]
            depth, done, steps = 0, 0, 0  # done: decisions on the trail
            while True:
                pick, again = -1, True
                while again and bound > top + tolerance:
                    again, pick, most_sure = False, -1, -1.0
                    for k in range(size):
                        j = member[k]
                        if x[j] != FREE:
                            continue
                        steps += 2 + parent_ptr[j + 1] - parent_ptr[j]
                        x[j] = ON
                        with_it = _around(
                            j, own, cover, child_ptr, child, slot, parent_ptr, parent, share, x, worth, False
                        )  # fmt: skip
                        x[j] = OFF
                        without = _around(
                            j, own, cover, child_ptr, child, slot, parent_ptr, parent, share, x, worth, False
                        )  # fmt: skip
                        x[j] = FREE
                        if bound + min(with_it, without) <= top + tolerance:
                            way = ON if with_it > without else OFF
                            change, done = _decide(
                                j, way, done, own, cover, child_ptr, child, slot, parent_ptr, parent, share, x, worth,
                                trail,
                            )  # fmt: skip
                            bound += change
                            again = True
                            if bound <= top + tolerance:
                                break
                        elif -max(with_it, without) - 1e-3 * min(with_it, without) > most_sure:
                            most_sure = -max(with_it, without) - 1e-3 * min(with_it, without)
                            pick = j
                            other[depth] = OFF if with_it > without else ON
                if steps > limit:
                    break
                if bound > top + tolerance and pick < 0:  # all is decided
                    top = bound
                    for k in range(size):
                        best[member[k]] = x[member[k]]
                if bound > top + tolerance:
                    way = ON + OFF - other[depth]
                    split[depth], mark[depth], above[depth] = pick, done, bound
                    depth += 1
                else:  # back to the last split that has another way
                    while depth > 0 and other[depth - 1] == FREE:
                        depth -= 1
                    if depth == 0:
                        break
                    while done > mark[depth - 1]:
                        done -= 1
                        x[trail[done]] = FREE
                    for k in range(size):
                        j = member[k]
                        worth[j] = _star(j, own, cover, child_ptr, child, slot, share, x)
                    pick, bound, way = split[depth - 1], above[depth - 1], other[depth - 1]
                    other[depth - 1] = FREE
                change, done = _decide(
                    pick, way, done, own, cover, child_ptr, child, slot, parent_ptr, parent, share, x, worth, trail
                )  # fmt: skip
                bound += change
            for k in range(done):
                x[trail[k]] = FREE
            all_steps += steps
            if depth == 0 and steps <= limit:
                for k in range(size):
                    settled += x[member[k]] == FREE
                    x[member[k]] = best[member[k]]
        me.solved = settled
        me.work += all_steps
        if me.line == 0:
            me.find = 1 if settled <= _FEW * n else 0
