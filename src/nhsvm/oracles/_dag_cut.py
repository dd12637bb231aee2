"""What every best set holds and what none does, by a maximum flow: the stage after :mod:`nhsvm.oracles._dag_prune`.

Sets that hold the parents of their members are *closures*, and the closure of largest weight is a minimum cut: nodes of
positive weight pay for the nodes above them, and what a largest flow of payments leaves over is its value. Two kinds of
weights make such closures say something about best sets, in which, beyond that, every node needs a child:

- *Low* weights say what a node brings at least: max(r + D, min(r, 0)), where D ≤ 0 is the best cover that is private
  (see _dag_prune). Let C be the smallest closure of largest low weight. If a best set y lacked some of it, what is
  missing would have positive weight, since y ∩ C is a closure, too. To add it, with private cover where D was counted,
  makes y better: nodes of C without a child in C have positive weight, or C would not be the smallest. So y holds C.
- *High* weights say what a node brings at most: r + Σ X over its parents, X being what it costs if a parent loses its
  last child. Let C be the largest closure of largest high weight. What a best set y had beyond it would have negative
  weight, since y ∪ C is a closure, too. To take it out and mend what it leaves uncovered makes y better. So C holds y.

Both remain true for flows that are not the largest, of fewer nodes, so that a flow may end early. High weights are not
less than low ones, so that the second flow goes on from the first.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.oracles._dag_work import OFF, ON, RUNNING

_FAR = 1 << 30  # label of what has no way to a node that is to be paid for
_ROUNDS = 3  # of pushes; what they leave is found faster one way at a time


# -- flows: ``excess`` is what nodes can still pay, or owe if negative; ``flow`` is what is paid along an edge, to the
# parent; nodes that are ON are not looked at


@inlined
def _up(n, parent_ptr, parent, fate, excess, flow, label):
    """Pay what is owed above, the nearest first, in one pass up the graph."""
    for i in range(n):
        near = _FAR
        if fate[i] != ON:
            if excess[i] < 0.0:
                near = 0
            else:
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    near = min(near, label[parent[q]] + 1)
        label[i] = near
    for i in range(n - 1, 0, -1):
        if excess[i] <= 0.0 or label[i] >= _FAR:
            continue
        for q in range(parent_ptr[i], parent_ptr[i + 1]):
            p = parent[q]
            if label[p] == label[i] - 1:
                amount = excess[i] if label[p] > 0 else min(excess[i], -excess[p])
                if amount > 0.0:
                    flow[q] += amount
                    excess[i] -= amount
                    excess[p] += amount
                    if excess[i] <= 0.0:
                        break


@inlined
def _pushed(n, child_ptr, child, parent_ptr, parent, slot, fate, excess, flow, label, queue, waits):
    """Some rounds of pushes along labels, which are distances to the next node that owes, or less."""
    for _turn in range(_ROUNDS):
        at, size = 0, 0
        for i in range(n):
            label[i] = _FAR
            if excess[i] < 0.0:
                label[i] = 0
                queue[size] = i
                size += 1
        while at < size:
            i = queue[at]
            at += 1
            for e in range(child_ptr[i], child_ptr[i + 1]):
                c = child[e]
                if label[c] == _FAR and fate[c] != ON:
                    label[c] = label[i] + 1
                    queue[size] = c
                    size += 1
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                p = parent[q]
                if flow[q] > 0.0 and label[p] == _FAR and fate[p] != ON:
                    label[p] = label[i] + 1
                    queue[size] = p
                    size += 1
        count = 0  # of those that can pay, in a ring
        for k in range(size):
            i = queue[k]
            waits[i] = excess[i] > 0.0
            queue[count] = i
            count += waits[i]
        if count == 0:
            break
        first, steps = 0, 0
        while count > 0 and steps < n:
            i = queue[first]
            first = first + 1 if first + 1 < size else 0
            count -= 1
            waits[i] = 0
            while excess[i] > 0.0 and label[i] < _FAR and steps < n:
                steps += 1
                near = _FAR
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    p = parent[q]
                    near = min(near, label[p] + 1)
                    if label[p] == label[i] - 1:
                        amount = min(excess[i], -excess[p]) if excess[p] < 0.0 else excess[i]
                        flow[q] += amount
                        excess[i] -= amount
                        excess[p] += amount
                        if excess[p] > 0.0 and waits[p] == 0:
                            waits[p] = 1
                            at = first + count
                            queue[at if at < size else at - size] = p
                            count += 1
                        if excess[i] <= 0.0:
                            break
                if excess[i] <= 0.0:
                    break
                for e in range(child_ptr[i], child_ptr[i + 1]):
                    c, q = child[e], slot[e]
                    if flow[q] > 0.0:
                        if label[c] == label[i] - 1:
                            amount = min(excess[i], flow[q])
                            if excess[c] < 0.0:
                                amount = min(amount, -excess[c])
                            flow[q] -= amount
                            excess[i] -= amount
                            excess[c] += amount
                            if excess[c] > 0.0 and waits[c] == 0:
                                waits[c] = 1
                                at = first + count
                                queue[at if at < size else at - size] = c
                                count += 1
                            if excess[i] <= 0.0:
                                break
                        if flow[q] > 0.0:
                            near = min(near, label[c] + 1)
                if excess[i] > 0.0:
                    label[i] = min(max(near, label[i]), _FAR)


@inlined
def _ways(
    n, limit, back, child_ptr, child, parent_ptr, parent, slot, fate, excess, flow, label, queue, origin, via, place
):
    """One way after the other, from all nodes that can pay, or ``back`` from those that owe; whether all are found.

    Nodes that lead nowhere do so for all that come after, so that no node is looked at in vain twice.
    """
    sign = -1.0 if back else 1.0
    for i in range(n):
        label[i] = _FAR if fate[i] == ON else 0
    steps, turns = 0, 0
    for start in range(n - 1, -1, -1):
        if steps > limit:
            break
        while sign * excess[start] > 0.0 and label[start] < _FAR:
            turns += 1
            label[start], place[start] = turns, 0
            queue[0] = start
            at, size = 0, 1
            while at < size and excess[start] != 0.0 and steps <= limit:
                steps += 1
                i, hit = queue[at], -1
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    j = parent[q]
                    if label[j] < turns and (not back or flow[q] > 0.0):
                        label[j], origin[j], via[j], place[j] = turns, i, -q - 1 if back else q, size
                        queue[size] = j
                        size += 1
                        if sign * excess[j] < 0.0:
                            hit = j
                            break
                if hit < 0:
                    for e in range(child_ptr[i], child_ptr[i + 1]):
                        j, q = child[e], slot[e]
                        if label[j] < turns and (back or flow[q] > 0.0):
                            label[j], origin[j], via[j], place[j] = turns, i, q if back else -q - 1, size
                            queue[size] = j
                            size += 1
                            if sign * excess[j] < 0.0:
                                hit = j
                                break
                if hit < 0:
                    at += 1
                    continue
                amount = min(abs(excess[start]), abs(excess[hit]))
                j = hit
                while j != start:
                    if via[j] < 0:
                        amount = min(amount, flow[-via[j] - 1])
                    j = origin[j]
                j, whole = hit, size
                while j != start:
                    if via[j] < 0:
                        flow[-via[j] - 1] -= amount
                        if flow[-via[j] - 1] == 0.0:
                            whole = place[j]
                    else:
                        flow[via[j]] += amount
                    j = origin[j]
                excess[start] -= sign * amount
                excess[hit] += sign * amount
                if whole < size:  # a way is used up; what was found before it stays
                    at = place[origin[queue[whole]]]
                    for k in range(whole, size):
                        label[queue[k]] = 0
                    steps += size - whole
                    size = whole
            if at == size:  # nothing more to be found from any of these
                for k in range(size):
                    label[queue[k]] = _FAR
            if steps > limit:
                break
    return steps <= limit


@inlined
def _spread(size, value, down, least, child_ptr, child, parent_ptr, parent, slot, flow, mark, queue):
    """Mark what the queue has ways to, or ``down`` what has ways to it; flows up to ``least`` are none."""
    at = 0
    while at < size:
        i = queue[at]
        at += 1
        for q in range(parent_ptr[i], parent_ptr[i + 1]):
            j = parent[q]
            if mark[j] == 0 and (not down or flow[q] > least):
                mark[j] = value
                queue[size] = j
                size += 1
        for e in range(child_ptr[i], child_ptr[i + 1]):
            j = child[e]
            if mark[j] == 0 and (down or flow[slot[e]] > least):
                mark[j] = value
                queue[size] = j
                size += 1


# -- decisions ---------------------------------------------------------------------------------------------------------


@kernel
def cut_kernel(
    effort, samples, lines, all_reward, all_cover, all_state, all_child_ptr, all_child, all_parent_ptr, all_parent,
    all_slot, all_fate,
):  # fmt: skip
    """Decisions for all samples that are running; ``effort`` times the nodes may be visited in search of ways."""
    most, most_edges = all_reward.shape[1], all_slot.shape[1]
    excess, best, total, bare = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    label, queue = np.empty(most, np.int32), np.empty(most, np.int32)
    origin, via, place = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    mark, flow = np.empty(most, np.uint8), np.empty(most_edges)
    for s in range(samples.shape[0]):
        me, line = samples[s], lines[2 * s]
        if me.phase != RUNNING:
            continue
        b, n, row = 2 * s, line.size, line.links
        child_ptr, child, slot = all_child_ptr[row], all_child[row], all_slot[row]
        parent_ptr, parent = all_parent_ptr[row], all_parent[row]
        reward, cover, state, fate = all_reward[b], all_cover[b], all_state[b], all_fate[b]
        slack = 1e-12 * me.big
        for i in range(n):
            total[i], best[i], fate[i] = 0.0, cover[i], state[i]
        for i in range(n - 1, 0, -1):
            q = parent_ptr[i]
            if parent_ptr[i + 1] - q == 1:
                worth = reward[i] + (total[i] if total[i] > 0.0 else best[i])
                p = parent[q]
                total[p] += max(worth, 0.0)
                best[p] = max(best[p], worth)
        for i in range(n):
            best[i] = min(best[i], 0.0)
            excess[i] = 0.0 if fate[i] == ON else max(reward[i] + best[i], min(reward[i], 0.0))
        for q in range(line.n_edges):
            flow[q] = 0.0
        for high in range(2):
            if high:
                for i in range(n):  # marked: needs no child any more
                    mark[i] = cover[i] == 0.0
                for i in range(n):
                    if fate[i] == ON:
                        for q in range(parent_ptr[i], parent_ptr[i + 1]):
                            mark[parent[q]] = 1
                for i in range(n):
                    more = 0.0
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        more += bare[parent[q]]
                    if fate[i] == ON:
                        bare[i] = 0.0 if mark[i] else -best[i]
                        excess[i] = 0.0
                    else:
                        bare[i] = max(0.0, min(-best[i], reward[i] + more))
                        excess[i] += reward[i] + more - max(reward[i] + best[i], min(reward[i], 0.0))
            _up(n, parent_ptr, parent, fate, excess, flow, label)
            paid, owed = 0.0, 0.0
            for i in range(n):
                paid += max(excess[i], 0.0)
                owed -= min(excess[i], 0.0)
            back = owed < paid
            if high and not back:  # ways are long where much is owed that is not paid
                _pushed(n, child_ptr, child, parent_ptr, parent, slot, fate, excess, flow, label, queue, mark)
            largest = _ways(
                n, effort * n, back, child_ptr, child, parent_ptr, parent, slot,
                fate, excess, flow, label, queue, origin, via, place,
            )  # fmt: skip
            for i in range(n):
                mark[i] = fate[i] == ON
            size = 0
            if high == 0:  # what payers have ways to is in, but for what has a way to a node that owes
                if not largest:
                    for i in range(n):
                        if excess[i] < 0.0:
                            mark[i] = 1
                            queue[size] = i
                            size += 1
                    _spread(size, 1, True, 0.0, child_ptr, child, parent_ptr, parent, slot, flow, mark, queue)
                size = 0
                for i in range(n):
                    if excess[i] > slack and mark[i] == 0:
                        mark[i] = 2
                        queue[size] = i
                        size += 1
                _spread(size, 2, False, slack, child_ptr, child, parent_ptr, parent, slot, flow, mark, queue)
                for i in range(n):  # here: has a child that is in
                    place[i] = 0
                for i in range(n - 1, -1, -1):
                    if mark[i] != 2:
                        continue
                    if place[i] == 0 and max(reward[i] + best[i], min(reward[i], 0.0)) <= 0.0:
                        mark[i] = 0  # nothing pays for it, but for rounding
                        continue
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        place[parent[q]] = 1
                for i in range(n):
                    fate[i] = ON if mark[i] == 2 else fate[i]
            else:  # what has a way to a node that owes is out, but for what payers have ways to
                for i in range(n):
                    if excess[i] > 0.0:
                        mark[i] = 1
                        queue[size] = i
                        size += 1
                _spread(size, 1, False, 0.0, child_ptr, child, parent_ptr, parent, slot, flow, mark, queue)
                size = 0
                for i in range(n):
                    if excess[i] < -slack and mark[i] == 0:
                        mark[i] = 2
                        queue[size] = i
                        size += 1
                _spread(size, 2, True, slack, child_ptr, child, parent_ptr, parent, slot, flow, mark, queue)
                for i in range(n):
                    fate[i] = OFF if mark[i] == 2 else fate[i]
