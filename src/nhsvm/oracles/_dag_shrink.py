"""The rules that shrink a core: a stage of a look.

The problem on a core, with x in {0, 1}: maximise Σ_i x_i (r_i + [no child of i is in the set]·d_i) over sets that hold
the parents of their members. d_i ≤ 0 is what it costs to cover i by a folded child; where there is none it is so
negative that no optimum pays it. Nodes known to be in the set stay only while they still need a child.

Decisions are applied, and what follows from them: a node with a child in the set is in; one whose parent is out is out;
one without free children is folded into its only parent, or out if that is as good. The rest is a smaller core with the
same optimum among the sets that agree with the decisions.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.oracles._dag_work import DONE, FOLDED, FREE, OFF, ON, RUNNING, SETTLED


@inlined
def _push(i, fate, stack, size, waits):
    if waits[i] == 0 and fate[i] <= ON:
        waits[i] = 1
        stack[size] = i
        size += 1
    return size


@kernel
def shrink_kernel(
    samples, lines, all_reward, all_cover, all_state, all_node, all_child_ptr, all_child, all_parent_ptr, all_parent,
    all_slot, all_share, all_edge, all_kept, all_done, all_best, all_fold_child, all_fold_parent, all_take, all_fate,
):  # fmt: skip
    """Apply the decisions of the samples that have some."""
    most, most_edges = all_reward.shape[1], all_share.shape[1]
    reward, cover, best = np.empty(most), np.empty(most), np.empty(most, np.int32)
    number, stack, waits = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
    fold_child, fold_parent, take = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.uint8)
    old_share, old_edge = np.empty(most_edges), np.empty(most_edges, np.int32)
    for s in range(samples.shape[0]):
        me = samples[s]
        if me.phase != RUNNING or me.shrink == 0:
            continue
        a, b = 2 * s + me.shrink - 1, 2 * s + me.line
        me.shrink = 0
        old, new = lines[a], lines[b]
        n, big = old.size, me.big
        child_ptr, child, slot = all_child_ptr[old.links], all_child[old.links], all_slot[old.links]
        parent_ptr, parent = all_parent_ptr[old.links], all_parent[old.links]
        r, d, node = all_reward[a], all_cover[a], all_node[a]
        possible, constant, folds = False, 0.0, 0
        fate = all_fate[2 * s]
        for attempt in range(1 + me.line):  # a dive has a second choice
            fate = all_fate[2 * s + attempt]
            possible, constant, folds = True, 0.0, 0
            for i in range(n):
                reward[i], cover[i], best[i] = r[i], d[i], -2  # −2: as it is
                stack[i], waits[i] = i, 1
            # every node is looked at once, children first, and again when something around it has changed
            size = n
            while size > 0:
                size -= 1
                i = stack[size]
                waits[i] = 0
                before = fate[i]
                if before > ON:
                    continue
                free, last, covered = 0, -1, False
                for e in range(child_ptr[i], child_ptr[i + 1]):
                    f = fate[child[e]]
                    if f == FREE:
                        free += 1
                        last = child[e]
                    elif f in (ON, DONE):
                        covered = True
                parents, p, covers, banned = 0, -1, 0.0, False
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    f = fate[parent[q]]
                    if f <= ON:
                        parents += 1
                        p = parent[q]
                        covers += cover[p]
                    elif f == OFF:
                        banned = True
                if covered:
                    cover[i] = 0.0
                    best[i] = -1
                    fate[i] = ON
                elif free == 0 and cover[i] < 0.0:
                    banned |= cover[i] < -big
                    reward[i] += cover[i]
                    cover[i] = 0.0
                if banned:
                    if fate[i] == ON:
                        possible = False
                        break
                    fate[i] = OFF
                elif fate[i] == ON or (parents == 0 and reward[i] + cover[i] > 0.0):
                    fate[i] = ON
                    if cover[i] == 0.0:
                        fate[i] = DONE
                        constant += reward[i]
                    elif free == 1 and cover[i] < -big:
                        fate[last] = ON
                        size = _push(last, fate, stack, size, waits)
                        for q in range(parent_ptr[last], parent_ptr[last + 1]):
                            size = _push(parent[q], fate, stack, size, waits)
                elif free == 0:
                    v = reward[i]
                    if parents == 1:
                        fate[i] = FOLDED
                        fold_child[folds] = i
                        fold_parent[folds] = p
                        take[folds] = v > 0.0
                        folds += 1
                        if v > 0.0:
                            reward[p] += v
                            cover[p] = 0.0
                            best[p] = i
                        elif v > cover[p]:
                            cover[p] = v
                            best[p] = i
                    elif parents == 0 or v <= covers:  # its parents cover themselves for less, all together
                        fate[i] = OFF
                if fate[i] != before:
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        size = _push(parent[q], fate, stack, size, waits)
                    if fate[i] > ON:
                        for e in range(child_ptr[i], child_ptr[i + 1]):
                            size = _push(child[e], fate, stack, size, waits)
            if possible:
                break
        m = 0
        for i in range(n):
            number[i] = -1
            if fate[i] <= ON:
                number[i] = m
                m += 1
        if me.line == 1 and (not possible or m == n):  # the dive ends where it is
            me.line = a - 2 * s
            me.over, me.find = 1, 1
            continue
        if not possible:
            me.phase = SETTLED
            continue
        # the way back
        done, cover_by = all_done[b], all_best[b]
        if a != b:
            for i in range(most):
                done[i], cover_by[i] = all_done[a, i], all_best[a, i]
        for k in range(folds):
            at = old.folds + k
            all_fold_child[s, at] = node[fold_child[k]]
            all_fold_parent[s, at] = node[fold_parent[k]]
            all_take[s, at] = take[k]
        new.folds = old.folds + folds
        for i in range(n):
            if fate[i] == DONE:
                done[node[i]] = 1
            if best[i] >= -1:
                cover_by[node[i]] = -1 if best[i] == -1 else node[best[i]]
        # the smaller core; where it takes the place of the larger one, entries move to the front
        share, edge = all_share[a], all_edge[a]
        for q in range(old.n_edges):
            old_share[q], old_edge[q] = share[q], edge[q]
            if a == b and me.remember:
                all_kept[s, edge[q]] = share[q]
        row = 1 + b
        new_ptr, new_child, new_slot = all_child_ptr[row], all_child[row], all_slot[row]
        up_ptr, up = all_parent_ptr[row], all_parent[row]
        r, d, state, to, share, edge = (
            all_reward[b], all_cover[b], all_state[b], all_node[b], all_share[b], all_edge[b]
        )  # fmt: skip
        k, end = 0, child_ptr[0]
        new_ptr[0] = 0
        for j in range(m + 1):
            up_ptr[j] = 0
        for i in range(n):
            begin = end
            end = child_ptr[i + 1]
            j = number[i]
            if j < 0:
                continue
            r[j], d[j], state[j], to[j] = reward[i], cover[i], fate[i], node[i]
            for e in range(begin, end):
                c = number[child[e]]
                if c >= 0:
                    new_child[k] = c
                    new_slot[k] = slot[e]
                    up_ptr[c + 1] += 1
                    k += 1
            new_ptr[j + 1] = k
        for j in range(m):
            up_ptr[j + 1] += up_ptr[j]
            stack[j] = up_ptr[j]
        for j in range(m):
            for e in range(new_ptr[j], new_ptr[j + 1]):
                at = stack[new_child[e]]
                up[at] = j
                share[at], edge[at] = old_share[new_slot[e]], old_edge[new_slot[e]]
                new_slot[e] = at
                stack[new_child[e]] = at + 1
        new.size, new.n_edges, new.links, new.constant = m, k, row, old.constant + constant
        if me.line == 0 and old.swept == 2:
            me.first, me.looks = 0, 0
        new.swept = min(old.swept, 1)
