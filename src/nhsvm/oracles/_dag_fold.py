"""The first and the last stage: rewards of the hierarchy's nodes onto the core, and its sets back to label sets."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel
from nhsvm.oracles._dag_work import ON, RUNNING


@kernel
def fold_kernel(
    rewards, scales, group, is_leaf, fold_child, fold_parent, core, member, allow_empty, budget, precision, rows,
    shares, sets, known, samples, lines, all_reward, all_cover, all_state, all_node, all_share, all_edge, all_done,
    all_best, all_worth, all_below, all_most, parent_ptr, parent, all_wide,
):  # fmt: skip
    """Make samples ready for their first look.

    ``scales`` has Σ|r| of each. ``core`` has the groups that are nodes of the core, ``member`` a node of the hierarchy
    in each. ``shares``, ``sets`` and ``known`` are what is remembered of each of ``rows``, see
    :class:`nhsvm.oracles._dag_memory.Memory`; there may be no rows, and no room for shares.
    """
    n, n_edges, n_groups = all_reward.shape[1], all_share.shape[1], is_leaf.shape[0]
    covered = np.empty(n, np.uint8)
    for s in range(rewards.shape[0]):
        r, worth, below, most = rewards[s], all_worth[s], all_below[s], all_most[s]
        big = 2.0 * scales[s] if scales[s] > 0.0 else 1.0  # no set is worth paying this
        must = -2.0 * big  # what a node without any child in the set costs
        # few branches on rewards: a processor cannot foresee them, and a wrong guess costs as much as two nodes
        for g in range(n_groups):
            worth[g] = 0.0
            below[g] = 0.0
            most[g] = 0.0 if is_leaf[g] else must
        for i in range(group.shape[0]):
            worth[group[i]] += r[i]
        if allow_empty:
            most[0] = 0.0
        for k in range(fold_child.shape[0]):
            c, p = fold_child[k], fold_parent[k]
            v = worth[c] + (below[c] if below[c] > 0.0 else most[c])
            worth[c] = v
            below[p] += max(v, 0.0)
            most[p] = max(v, most[p])
        b = 2 * s
        reward, cover = all_reward[b], all_cover[b]
        for i in range(n):
            g = core[i]
            reward[i] = worth[g] + below[g]
            cover[i] = 0.0 if below[g] > 0.0 else most[g]
            all_state[b, i], all_node[b, i], all_done[b, i], all_best[b, i] = 0, i, 0, -1
        all_state[b, 0] = ON  # the virtual root
        for q in range(n_edges):
            all_edge[b, q] = q
        me, line = samples[s], lines[b]
        me.phase, me.line, me.shrink, me.looks, me.stalled, me.patience, me.rounds = RUNNING, 0, 0, 0, 0, 60, 1
        me.find, me.found, me.over, me.first, me.work, me.budget = 0, 0, 0, 1, 0, budget
        me.value, me.bound, me.last, me.given_up = -1e300, 1e300, 1e300, -1e300
        me.remember, me.origin, me.whole = shares.shape[1], 0, n
        me.big, me.tolerance, me.precision = big, 1e-12 * scales[s], precision
        line.size, line.n_edges, line.links, line.folds, line.swept, line.constant = n, n_edges, 0, 0, 0, 0.0
        if rows.shape[0] > 0 and known[rows[s]]:
            # the last shares still bound well, and the last set is still good, if rewards have changed a little
            t = rows[s]
            if known[t] == 2:
                line.swept, me.looks, me.rounds = 1, 1, 2  # a dive comes next: there is a set already
                for q in range(n_edges):
                    all_share[b, q] = shares[t, q]
            value = 0.0
            for i in range(n):
                covered[i] = 0
                all_wide[s, i] = (sets[t, member[i] >> 3] >> (7 - (member[i] & 7))) & 1 if member[i] >= 0 else 1
            for i in range(n - 1, -1, -1):
                if all_wide[s, i]:
                    value += reward[i] if covered[i] else reward[i] + cover[i]
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        covered[parent[q]] = 1
            me.value = value


@kernel
def unfold_kernel(
    samples, lines, group, fold_child, fold_parent, core, parent_ptr, parent, allow_empty, rows, shares, known,
    all_share, all_edge, all_kept, all_worth, all_below, all_most, all_wide, chosen,
):  # fmt: skip
    """The sets of nodes of the hierarchy that the best sets on the core stand for; remember the shares."""
    n, n_edges, n_groups = core.shape[0], all_share.shape[1], all_worth.shape[1]
    y = np.empty(n_groups, np.uint8)
    bare = np.empty(n_groups, np.uint8)  # has nothing in the set below it
    for s in range(chosen.shape[0]):
        worth, below, most, on = all_worth[s], all_below[s], all_most[s], all_wide[s]
        for g in range(n_groups):
            y[g] = 0
            bare[g] = below[g] <= 0.0
        for i in range(n):
            y[core[i]] = on[i]
            if on[i]:  # most are not, in most samples
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    bare[core[parent[q]]] = 0
        if allow_empty:
            bare[0] = 0
        for k in range(fold_child.shape[0] - 1, -1, -1):  # of equals, the first covers
            c, p = fold_child[k], fold_parent[k]
            only = bare[p] & np.uint8(worth[c] == most[p])
            y[c] = y[p] & (np.uint8(worth[c] > 0.0) | only)
            bare[p] &= ~only
        for i in range(group.shape[0]):
            chosen[s, i] = y[group[i]]
        if shares.shape[1] > 0:
            t = rows[s]
            known[t] = 2
            line = lines[2 * s]
            for q in range(line.n_edges):
                all_kept[s, all_edge[2 * s, q]] = all_share[2 * s, q]
            for q in range(n_edges):
                shares[t, q] = all_kept[s, q]
