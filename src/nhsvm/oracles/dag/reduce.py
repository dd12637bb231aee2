"""Nodes that no best set holds, and nodes that every one does, by the rewards alone: before the first round.

With trained weights most of a large graph costs more than anything below it brings, and rounds at all of it would take
most of the time.

Pruning
-------
Let *private* cover of a node be made of nodes of which every one has a single parent: it can be had
whatever else is in the set. A node whose parents are in every best set is in, too, if its own reward and the best that
is private below it are worth something together. And a node is out of every best set if it is worth less than nothing
even with all that it holds up,

    B_i = ĝ_i + Σ_p X_p  over its parents p,

- ĝ_i = r_i + Σ_c max(π_c, 0), or r_i + max(d_i, max_c π_c) where no π_c is positive. What a child is worth to it, π_c,
  is ĝ_c if the child has no other parent; else B_c, in full for each of them if positive, in equal parts if not;
- X_p bounds what it costs if p loses its last child. Then p is covered by what is private, for D_p ≤ 0, or left out,
  which may cost its own parents their last child: X_p = max(0, min(−D_p, r_p + Σ_q X_q)).

If B_i < 0, any set with i gets better by taking out i with all below it and mending what that leaves uncovered. Cover
that runs through i itself does not count then (``second``).

Cutting
-------
Sets that hold the parents of their members are *closures*, and the closure of largest weight is a minimum cut: nodes of
positive weight pay for the nodes above them, and what a largest flow of payments leaves over is its value. Two kinds of
weights make such closures say something about best sets, in which, beyond that, every node needs a child:

- *Low* weights say what a node brings at least: max(r + D, min(r, 0)), where D ≤ 0 is the best cover that is private
  (see above). Let C be the smallest closure of largest low weight. If a best set y lacked some of it, what is
  missing would have positive weight, since y ∩ C is a closure, too. To add it, with private cover where D was counted,
  makes y better: nodes of C without a child in C have positive weight, or C would not be the smallest. So y holds C.
- *High* weights say what a node brings at most: r + Σ X over its parents, X being what it costs if a parent loses its
  last child. Let C be the largest closure of largest high weight. What a best set y had beyond it would have negative
  weight, since y ∪ C is a closure, too. To take it out and mend what it leaves uncovered makes y better. So C holds y.

Both remain true for flows that are not the largest, of fewer nodes, so that a flow may end early. High weights are not
less than low ones, so that the second flow goes on from the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel, prefetch
from nhsvm.oracles.dag.core import FREE, OFF, ON, RUNNING, TUNING, Links, links_of
from nhsvm.typing import ByteArray, FloatArray, IntArray

# What is noted of a node, 64 bytes, so that it takes one cache line to read a parent. What is private below it:
# sum of what is worth something, best cover, second best, child of the best; X, X without that child; of ĝ: Σ, max
_SUM, _FIRST, _SECOND, _AT, _BARE, _BARER, _TOTAL, _TOP = range(8)
_WORTH = _BARE  # of a node with all that is private below it, until X is known


@kernel
def prune_kernel(samples, lines, nodes, links, decisions):
    """Decisions on the first cores."""
    most = nodes.reward.shape[1]
    child_ptr, child, parent_ptr, parent, _ = links_of(links, 0)
    inside, covered = np.empty(most, np.uint8), np.empty(most, np.uint8)
    note = np.empty(8 * most)  # a row a node
    for s in range(samples.shape[0]):
        me, line = samples[s], lines[2 * s]
        if me.phase != RUNNING:
            continue
        b, n = 2 * s, line.size
        reward, cover, decision = nodes.reward[b], nodes.cover[b], decisions[b]
        slack, n_edges = 1e-12 * me.big, line.n_edges
        for i in range(n):
            t = 8 * i
            note[t + _SUM], note[t + _FIRST], note[t + _SECOND], note[t + _AT] = 0.0, cover[i], cover[i], -1.0
            note[t + _TOTAL], note[t + _TOP] = 0.0, cover[i]
            inside[i], covered[i] = i == 0, cover[i] == 0.0
        for i in range(n - 1, 0, -1):
            t, q = 8 * i, parent_ptr[i]
            worth = reward[i] + (note[t + _SUM] if note[t + _SUM] > 0.0 else note[t + _FIRST])
            note[t + _WORTH] = worth
            prefetch(note, 8 * parent[max(q - TUNING.ahead, 0)])
            if parent_ptr[i + 1] - q == 1:
                u = 8 * parent[q]
                note[u + _SUM] += max(worth, 0.0)
                if worth > note[u + _FIRST]:
                    note[u + _SECOND], note[u + _FIRST], note[u + _AT] = note[u + _FIRST], worth, i
                elif worth > note[u + _SECOND]:
                    note[u + _SECOND] = worth
        for i in range(1, n):
            always = True
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                always &= inside[parent[q]] == 1
            if not always:
                continue
            if note[8 * i + _WORTH] <= slack:  # children that need no other node count, too, whoever their parents are
                more, best = 0.0, cover[i]
                for e in range(child_ptr[i], child_ptr[i + 1]):
                    c = child[e]
                    ready = True
                    for q in range(parent_ptr[c], parent_ptr[c + 1]):
                        ready &= inside[parent[q]] == 1 or parent[q] == i
                    if ready:
                        more += max(note[8 * c + _WORTH], 0.0)
                        best = max(best, note[8 * c + _WORTH])
                if reward[i] + (more if more > 0.0 else best) <= slack:
                    continue
            inside[i] = 1
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                covered[parent[q]] = 1
        for i in range(n):
            t = 8 * i
            dropped = 1e300 if inside[i] else reward[i]
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                u = 8 * parent[q]
                prefetch(note, 8 * parent[min(q + TUNING.ahead, n_edges - 1)])
                dropped += note[u + _BARER] if note[u + _AT] == i else note[u + _BARE]
            free = inside[i] and covered[i]
            note[t + _BARE] = 0.0 if free else max(0.0, min(-note[t + _FIRST], dropped))
            note[t + _BARER] = 0.0 if free else max(0.0, min(-note[t + _SECOND], dropped))
        for i in range(n - 1, 0, -1):
            begin, end = parent_ptr[i], parent_ptr[i + 1]
            t = 8 * i
            worth = reward[i] + (note[t + _TOTAL] if note[t + _TOTAL] > 0.0 else note[t + _TOP])
            held = worth
            for q in range(begin, end):
                u = 8 * parent[q]
                prefetch(note, 8 * parent[max(q - TUNING.ahead, 0)])
                held += note[u + _BARER] if note[u + _AT] == i else note[u + _BARE]
            if end - begin > 1:
                worth = held if held > 0.0 else held / (end - begin)
            for q in range(begin, end):
                u = 8 * parent[q]
                note[u + _TOTAL] += max(worth, 0.0)
                note[u + _TOP] = max(note[u + _TOP], worth)
            note[t + _SUM] = held
        for i in range(n):
            out = i > 0 and note[8 * i + _SUM] < -slack and inside[i] == 0
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                out |= decision[parent[q]] == OFF
            decision[i] = OFF if out else (ON if inside[i] else FREE)


# -- cutting -----------------------------------------------------------------------------------------------------------

_FAR = 1 << 30  # label of what has no path to a node that is to be paid for


class Flow(NamedTuple):
    """A flow on one core, and its residual graph."""

    links: Links
    decision: ByteArray
    excess: FloatArray
    flow: FloatArray


class Paths(NamedTuple):
    """What searches for paths work with, by node."""

    label: IntArray
    queue: IntArray
    origin: IntArray  # the node before it on a path
    via: IntArray  # the edge from there; −q − 1 for edge q backwards
    place: IntArray  # in the queue


# -- flows: ``excess`` is what nodes can still pay, or owe if negative; ``flow`` is what is paid along an edge, to the
# parent; nodes that are ON take no part


@inlined
def _pay_upward(n, net, label):
    """Pay what is owed above, the nearest first, in one pass up the graph."""
    parent_ptr, parent, decision, excess, flow = (
        net.links.parent_ptr, net.links.parent, net.decision, net.excess, net.flow
    )  # fmt: skip
    for i in range(n):
        near = _FAR
        if decision[i] != ON:
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
def _push_relabel(n, net, label, queue, waits):
    """Some rounds of pushes along labels, which are distances to the next node that owes, or less."""
    links, decision, excess, flow = net
    child_ptr, child, parent_ptr, parent, slot = links
    for _turn in range(TUNING.pushes):
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
                if label[c] == _FAR and decision[c] != ON:
                    label[c] = label[i] + 1
                    queue[size] = c
                    size += 1
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                p = parent[q]
                if flow[q] > 0.0 and label[p] == _FAR and decision[p] != ON:
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
def _augment(n, limit, back, net, paths):
    """One augmenting path after the other, from all nodes that can pay, or ``back`` from those that owe; whether all
    are found.

    Nodes that lead nowhere do so for all that come after, so that no node is visited in vain twice.
    """
    links, decision, excess, flow = net
    child_ptr, child, parent_ptr, parent, slot = links
    label, queue, origin, via, place = paths
    sign = -1.0 if back else 1.0
    for i in range(n):
        label[i] = _FAR if decision[i] == ON else 0
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
                if whole < size:  # an edge is used up; what was found before it stays
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
def _mark_nodes(n, sign, least, value, net, mark, queue):
    """Mark and list the nodes that can pay more than ``least``, or with a negative sign owe more; how many."""
    size = 0
    for i in range(n):
        if sign * net.excess[i] > least and mark[i] == 0:
            mark[i] = value
            queue[size] = i
            size += 1
    return size


@inlined
def _mark_reachable(size, value, down, least, net, mark, queue):
    """Mark what the queue has paths to, or ``down`` what has paths to it; flows up to ``least`` are none."""
    links, flow = net.links, net.flow
    child_ptr, child, parent_ptr, parent, slot = links
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
def cut_kernel(visits, samples, lines, nodes, links, decisions):
    """Decisions for all samples that are running; ``visits`` times the nodes may be visited in search of paths."""
    most, most_edges = nodes.reward.shape[1], links.slot.shape[1]
    excess, best, total, bare = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    label, queue = np.empty(most, np.int32), np.empty(most, np.int32)
    origin, via, place = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    mark, flow = np.empty(most, np.uint8), np.empty(most_edges)
    paths = Paths(label, queue, origin, via, place)
    for s in range(samples.shape[0]):
        me, line = samples[s], lines[2 * s]
        if me.phase != RUNNING:
            continue
        b, n, row = 2 * s, line.size, line.links
        reward, cover, state, decision = nodes.reward[b], nodes.cover[b], nodes.state[b], decisions[b]
        mine = links_of(links, row)
        parent_ptr, parent, net = mine.parent_ptr, mine.parent, Flow(mine, decision, excess, flow)
        slack = 1e-12 * me.big
        for i in range(n):
            total[i], best[i], decision[i] = 0.0, cover[i], state[i]
        for i in range(n - 1, 0, -1):
            q = parent_ptr[i]
            if parent_ptr[i + 1] - q == 1:
                worth = reward[i] + (total[i] if total[i] > 0.0 else best[i])
                p = parent[q]
                total[p] += max(worth, 0.0)
                best[p] = max(best[p], worth)
        for i in range(n):
            best[i] = min(best[i], 0.0)
            excess[i] = 0.0 if decision[i] == ON else max(reward[i] + best[i], min(reward[i], 0.0))
        for q in range(line.n_edges):
            flow[q] = 0.0
        for high in range(2):
            if high:
                for i in range(n):  # marked: needs no child any more
                    mark[i] = cover[i] == 0.0
                for i in range(n):
                    if decision[i] == ON:
                        for q in range(parent_ptr[i], parent_ptr[i + 1]):
                            mark[parent[q]] = 1
                for i in range(n):
                    more = 0.0
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        more += bare[parent[q]]
                    if decision[i] == ON:
                        bare[i] = 0.0 if mark[i] else -best[i]
                        excess[i] = 0.0
                    else:
                        bare[i] = max(0.0, min(-best[i], reward[i] + more))
                        excess[i] += reward[i] + more - max(reward[i] + best[i], min(reward[i], 0.0))
            _pay_upward(n, net, label)
            paid, owed = 0.0, 0.0
            for i in range(n):
                paid += max(excess[i], 0.0)
                owed -= min(excess[i], 0.0)
            back = owed < paid
            if high and not back:  # paths are long where much is owed that is not paid
                _push_relabel(n, net, label, queue, mark)
            largest = _augment(n, visits * n, back, net, paths)
            for i in range(n):
                mark[i] = decision[i] == ON
            if high == 0:  # what payers have paths to is in, but for what has a path to a node that owes
                if not largest:
                    _mark_reachable(_mark_nodes(n, -1.0, 0.0, 1, net, mark, queue), 1, True, 0.0, net, mark, queue)
                size = _mark_nodes(n, 1.0, slack, 2, net, mark, queue)
                _mark_reachable(size, 2, False, slack, net, mark, queue)
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
                    decision[i] = ON if mark[i] == 2 else decision[i]
            else:  # what has a path to a node that owes is out, but for what payers have paths to
                _mark_reachable(_mark_nodes(n, 1.0, 0.0, 1, net, mark, queue), 1, False, 0.0, net, mark, queue)
                size = _mark_nodes(n, -1.0, slack, 2, net, mark, queue)
                _mark_reachable(size, 2, True, slack, net, mark, queue)
                for i in range(n):
                    decision[i] = OFF if mark[i] == 2 else decision[i]
