"""A smaller core in the place of a larger one, of which some nodes are settled: a stage before the first look."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel
from nhsvm.oracles._dag_work import DONE, ON, RUNNING


@kernel
def compact_kernel(
    part, samples, lines, all_reward, all_cover, all_state, all_node, all_child_ptr, all_child, all_parent_ptr,
    all_parent, all_slot, all_share, all_edge, all_kept, all_done, all_fate,
):  # fmt: skip
    """Take settled nodes out of the cores where they are more than a ``part``; the number of samples that then shrink.

    Parents of nodes that are ON are ON, children of nodes that are OFF are OFF. What is ON and needs no child any more
    is DONE.
    """
    most, most_edges = all_reward.shape[1], all_share.shape[1]
    number, fill = np.empty(most, np.int32), np.empty(most, np.int32)
    total, top = np.empty(most), np.empty(most)
    old_share, old_edge = np.empty(most_edges), np.empty(most_edges, np.int32)
    shrinking = 0
    for s in range(samples.shape[0]):
        me, line = samples[s], lines[2 * s]
        if me.phase != RUNNING:
            continue
        b, n = 2 * s, line.size
        child_ptr, child, slot = all_child_ptr[line.links], all_child[line.links], all_slot[line.links]
        parent_ptr, parent = all_parent_ptr[line.links], all_parent[line.links]
        reward, cover, state, fate = all_reward[b], all_cover[b], all_state[b], all_fate[b]
        for i in range(n - 1, -1, -1):  # children come first
            if fate[i] == ON:
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    fate[parent[q]] = DONE
                if cover[i] == 0.0:
                    fate[i] = DONE
            elif fate[i] == DONE:
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    fate[parent[q]] = DONE
        m = 0
        for i in range(n):
            number[i] = -1
            if fate[i] <= ON:
                number[i] = m
                m += 1
        if m > (1.0 - part) * n:
            for i in range(n):  # whoever applies these decisions later counts what is DONE by then
                if fate[i] == DONE:
                    fate[i] = ON
            continue
        share, edge, to, done = all_share[b], all_edge[b], all_node[b], all_done[b]
        if me.remember and line.swept == 0 and line.links == 0:
            # as in a first sweep up: nobody will look at what goes, but its shares are remembered
            for i in range(n):
                total[i], top[i] = 0.0, cover[i]
            for i in range(n - 1, 0, -1):
                begin, end = parent_ptr[i], parent_ptr[i + 1]
                x = (reward[i] + (total[i] if total[i] > 0.0 else top[i])) / (end - begin)
                for q in range(begin, end):
                    p = parent[q]
                    share[q] = x
                    total[p] += max(x, 0.0)
                    top[p] = max(top[p], x)
        shares = me.remember or line.swept > 0  # are there, or will be asked for
        if shares:
            for q in range(line.n_edges):
                old_share[q], old_edge[q] = share[q], edge[q]
                all_kept[s, edge[q]] = share[q]
        row = 1 + b
        new_ptr, new_child, new_slot = all_child_ptr[row], all_child[row], all_slot[row]
        up_ptr, up = all_parent_ptr[row], all_parent[row]
        k, end, constant = 0, child_ptr[0], 0.0
        new_ptr[0] = 0
        for j in range(m + 1):
            up_ptr[j] = 0
        for i in range(n):  # entries move to the front
            begin = end
            end = child_ptr[i + 1]
            j = number[i]
            if fate[i] == DONE:
                done[to[i]] = 1
                constant += reward[i]
            if j < 0:
                continue
            fate[j] = fate[i]
            reward[j], cover[j], state[j], to[j] = reward[i], cover[i], fate[i], to[i]
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
            fill[j] = up_ptr[j]
        for j in range(m):
            for e in range(new_ptr[j], new_ptr[j + 1]):
                q = fill[new_child[e]]
                up[q] = j
                if shares:
                    share[q], edge[q] = old_share[new_slot[e]], old_edge[new_slot[e]]
                fill[new_child[e]] = q + 1
                new_slot[e] = q
        line.size, line.n_edges, line.links = m, k, row
        line.constant += constant
        me.shrink = 1
        shrinking += 1
    return shrinking
