"""Nodes that no best set holds, and nodes that every one does, by the rewards alone: the stage before the first look.

With trained weights most of a large graph costs more than anything below it brings, and looks at all of it would take
most of the time. Let *private* cover of a node be made of nodes of which every one has a single parent: it can be had
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
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel, prefetch
from nhsvm.oracles._dag_work import FREE, OFF, ON, RUNNING

_AHEAD = 12  # edges, as in _dag_sweeps

# What is noted of a node, 64 bytes, so that it takes one cache line to look at a parent. What is private below it:
# sum of what is worth something, best cover, second best, child of the best; X, X without that child; of ĝ: Σ, max
_SUM, _FIRST, _SECOND, _AT, _BARE, _BARER, _TOTAL, _TOP = range(8)
_WORTH = _BARE  # of a node with all that is private below it, until X is known


@kernel
def prune_kernel(
    samples, lines, all_reward, all_cover, all_child_ptr, all_child, all_parent_ptr, all_parent, all_fate
):  # fmt: skip
    """Decisions on the first cores."""
    most = all_reward.shape[1]
    child_ptr, child, parent_ptr, parent = all_child_ptr[0], all_child[0], all_parent_ptr[0], all_parent[0]
    inside, covered = np.empty(most, np.uint8), np.empty(most, np.uint8)
    note = np.empty(8 * most)  # a row a node
    for s in range(samples.shape[0]):
        me, line = samples[s], lines[2 * s]
        if me.phase != RUNNING:
            continue
        b, n = 2 * s, line.size
        reward, cover, fate = all_reward[b], all_cover[b], all_fate[b]
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
            prefetch(note, 8 * parent[max(q - _AHEAD, 0)])
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
                prefetch(note, 8 * parent[min(q + _AHEAD, n_edges - 1)])
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
                prefetch(note, 8 * parent[max(q - _AHEAD, 0)])
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
                out |= fate[parent[q]] == OFF
            fate[i] = OFF if out else (ON if inside[i] else FREE)
