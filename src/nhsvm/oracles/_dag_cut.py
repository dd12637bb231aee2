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

from nhsvm._jit import kernel
from nhsvm.oracles._dag_work import FREE, OFF, ON, RUNNING

_FAR = 1 << 30  # label of what has no way to a node that is to be paid for
_PASSES = 2  # up the graph, before ways down are looked at, too


@kernel
def cut_kernel(
    effort, samples, lines, all_reward, all_cover, all_state, all_child_ptr, all_child, all_parent_ptr, all_parent,
    all_slot, all_fate,
):  # fmt: skip
    """Decisions for all samples that are running."""
    most, most_edges = all_reward.shape[1], all_slot.shape[1]
    excess, best, total, bare = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    label, queue = np.empty(most, np.int32), np.empty(most, np.int32)
    origin, via, place = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    dead = np.empty(most, np.uint8)
    flow = np.empty(most_edges)
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
                for i in range(n):
                    dead[i] = cover[i] == 0.0  # here: needs no child any more
                for i in range(n):
                    if fate[i] == ON:
                        for q in range(parent_ptr[i], parent_ptr[i + 1]):
                            dead[parent[q]] = 1
                for i in range(n):
                    more = 0.0
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        more += bare[parent[q]]
                    if fate[i] == ON:
                        bare[i] = 0.0 if dead[i] else -best[i]
                        excess[i] = 0.0
                    else:
                        bare[i] = max(0.0, min(-best[i], reward[i] + more))
                        excess[i] += reward[i] + more - max(reward[i] + best[i], min(reward[i], 0.0))
            # ways up
            for _turn in range(_PASSES):
                for i in range(n):
                    near = _FAR
                    if fate[i] != ON:
                        if excess[i] < 0.0:
                            near = 0
                        else:
                            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                                near = min(near, label[parent[q]] + 1)
                    label[i] = near
                moved = 0
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
                                moved += 1
                                if excess[i] <= 0.0:
                                    break
                if moved == 0:
                    break
            # all ways, from the side that has fewer nodes
            payers, owing = 0.0, 0.0
            for i in range(n):
                label[i] = -1
                dead[i] = fate[i] == ON
                payers += max(excess[i], 0.0)
                owing -= min(excess[i], 0.0)
            back = owing < payers
            sign = -1.0 if back else 1.0
            steps, limit, turns = 0, effort * n, 0
            for start in range(n - 1, -1, -1):
                if steps > limit:
                    break
                while sign * excess[start] > 0.0 and dead[start] == 0:
                    turns += 1
                    label[start], place[start] = turns, 0
                    queue[0] = start
                    at, size = 0, 1
                    while at < size and excess[start] != 0.0:
                        steps += 1
                        i, hit = queue[at], -1
                        for q in range(parent_ptr[i], parent_ptr[i + 1]):
                            j = parent[q]
                            if label[j] != turns and dead[j] == 0 and (not back or flow[q] > 0.0):
                                label[j], origin[j], via[j], place[j] = turns, i, -q - 1 if back else q, size
                                queue[size] = j
                                size += 1
                                if sign * excess[j] < 0.0:
                                    hit = j
                                    break
                        if hit < 0:
                            for e in range(child_ptr[i], child_ptr[i + 1]):
                                j, q = child[e], slot[e]
                                if label[j] != turns and dead[j] == 0 and (back or flow[q] > 0.0):
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
                            size = whole
                    if at == size:  # nothing more to be found from any of these
                        for k in range(size):
                            dead[queue[k]] = 1
                    if steps > limit:
                        break
            if high == 0:
                # what payers can reach, unless they can reach what is still to be paid for
                if steps > limit:
                    size = 0
                    for i in range(n):
                        dead[i] = excess[i] < 0.0
                        if dead[i]:
                            queue[size] = i
                            size += 1
                    at = 0
                    while at < size:
                        i = queue[at]
                        at += 1
                        for e in range(child_ptr[i], child_ptr[i + 1]):
                            c = child[e]
                            if dead[c] == 0 and fate[c] != ON:
                                dead[c] = 1
                                queue[size] = c
                                size += 1
                        for q in range(parent_ptr[i], parent_ptr[i + 1]):
                            p = parent[q]
                            if dead[p] == 0 and flow[q] > 0.0:
                                dead[p] = 1
                                queue[size] = p
                                size += 1
                else:
                    for i in range(n):
                        dead[i] = 0
                size = 0
                for i in range(n):
                    if excess[i] > slack and fate[i] != ON and dead[i] == 0:
                        fate[i] = ON
                        queue[size] = i
                        size += 1
                at = 0
                while at < size:
                    i = queue[at]
                    at += 1
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        p = parent[q]
                        if fate[p] != ON:
                            fate[p] = ON
                            queue[size] = p
                            size += 1
                    for e in range(child_ptr[i], child_ptr[i + 1]):
                        c = child[e]
                        if flow[slot[e]] > 0.0 and fate[c] != ON:
                            fate[c] = ON
                            queue[size] = c
                            size += 1
            else:
                size = 0
                for i in range(n):
                    dead[i] = 0
                    if excess[i] > 0.0:
                        dead[i] = 1
                        queue[size] = i
                        size += 1
                at = 0
                while at < size:
                    i = queue[at]
                    at += 1
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        p = parent[q]
                        if dead[p] == 0:
                            dead[p] = 1
                            queue[size] = p
                            size += 1
                    for e in range(child_ptr[i], child_ptr[i + 1]):
                        c = child[e]
                        if flow[slot[e]] > 0.0 and dead[c] == 0:
                            dead[c] = 1
                            queue[size] = c
                            size += 1
                size = 0
                for i in range(n):
                    if excess[i] < -slack and dead[i] == 0:
                        fate[i] = OFF
                        queue[size] = i
                        size += 1
                at = 0
                while at < size:
                    i = queue[at]
                    at += 1
                    for e in range(child_ptr[i], child_ptr[i + 1]):
                        c = child[e]
                        if fate[c] == FREE and dead[c] == 0:
                            fate[c] = OFF
                            queue[size] = c
                            size += 1
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        p = parent[q]
                        if flow[q] > slack and fate[p] == FREE and dead[p] == 0:
                            fate[p] = OFF
                            queue[size] = p
                            size += 1
