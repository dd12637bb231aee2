"""What comes after a look: accept a set, dive for a better one, fix nodes, or give up. A stage of a look.

Nodes whose marginal is larger than what is between the bound and the best set are as their signs say in any better set:
they are *fixed*. In a *dive* the surer half of the free nodes is settled by the dual's word alone; where a node to be
left out is above one to be in, the weaker of the two is left free.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.oracles._dag_work import FREE, OFF, ON, RUNNING, SETTLED, SPENT, SPLIT

_UNSURE = 0.5  # part of the free nodes that a dive leaves free
_ROUNDS = 3  # sweeps up and down between two looks at the marginals
_FEW = 0.05  # part of the nodes that has to be settled before a smaller core is made
_SMALL = 3000  # nodes up to which a split says much
_SLOW = 0.02  # part of the gap; sweeps that lower the bound by less, three looks in a row, have stalled


@inlined
def _least(values, n, k):
    """The k-th smallest of n values, from 0; they are put into another order."""
    lo, hi = 0, n - 1
    while lo < hi:
        pivot = values[(lo + hi) // 2]
        i, j = lo, hi
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            break
    return values[k]


@inlined
def _lean(n, child_ptr, child, parent_ptr, parent, marginal, state, above, below, fate):
    """Decisions of a dive into ``fate``; ``above`` and ``below`` are room."""
    free = 0
    for i in range(n):
        fate[i] = state[i]
        if state[i] == FREE:
            above[free] = abs(marginal[i])
            free += 1
    if free == 0:
        return
    least = _least(above, free, int(_UNSURE * free))
    # the surest to be left out above a node, and to be in below it
    for i in range(n):
        above[i] = -marginal[i] if state[i] == FREE and marginal[i] <= -least else 0.0
        for q in range(parent_ptr[i], parent_ptr[i + 1]):
            above[i] = max(above[i], above[parent[q]])
    for i in range(n - 1, -1, -1):
        below[i] = marginal[i] if state[i] == FREE and marginal[i] >= least else 0.0
        for e in range(child_ptr[i], child_ptr[i + 1]):
            below[i] = max(below[i], below[child[e]])
    for i in range(n):
        if state[i] == FREE and abs(marginal[i]) >= least:
            if marginal[i] > above[i]:
                fate[i] = ON
            elif -marginal[i] >= below[i]:
                fate[i] = OFF


@inlined
def _back(n, on, node, done, best, folds, fold_child, fold_parent, take, parent_ptr, parent, covered, wide):
    """The set on the first core that the set ``on`` of a smaller one stands for, into ``wide``."""
    for i in range(wide.shape[0]):
        covered[i] = 0
        wide[i] = done[i]
    for j in range(n):
        wide[node[j]] = on[j]
    for i in range(wide.shape[0]):
        if wide[i]:
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                covered[parent[q]] = 1
    for k in range(folds - 1, -1, -1):
        c, p = fold_child[k], fold_parent[k]
        if wide[p] and (take[k] or (best[p] == c and covered[p] == 0)):
            wide[c] = 1
            covered[p] = 1


@kernel
def next_kernel(
    samples, lines, all_state, all_node, all_marginal, all_child_ptr, all_child, all_parent_ptr, all_parent, all_done,
    all_best, all_fold_child, all_fold_parent, all_take, all_fate, all_parts, all_on, all_wide,
):  # fmt: skip
    """Take every sample on to its next look; the number of samples that have one, and of those that shrink first."""
    most = all_state.shape[1]
    above, below, covered = np.empty(most), np.empty(most), np.empty(most, np.uint8)
    running, shrinking = 0, 0
    for s in range(samples.shape[0]):
        me = samples[s]
        if me.found == 1:
            me.found = 0
            if me.candidate > me.value:
                me.value = me.candidate
                b = 2 * s + me.line
                _back(
                    lines[b].size, all_on[s], all_node[b], all_done[b], all_best[b], lines[b].folds, all_fold_child[s],
                    all_fold_parent[s], all_take[s], all_parent_ptr[me.origin], all_parent[me.origin], covered,
                    all_wide[s, : me.whole],
                )  # fmt: skip
        if me.phase != RUNNING:
            continue
        main = lines[2 * s]
        fate = all_fate[2 * s]
        dived = me.over == 1
        begins = me.line == 0 and not dived and (me.looks in (1, 4) or (me.looks > 0 and me.looks % 8 == 0))
        if begins or (me.line == 1 and not dived):
            b = 2 * s + me.line
            n, row = lines[b].size, lines[b].links
            known = all_state[b] if begins else all_parts[s]
            _lean(
                n, all_child_ptr[row], all_child[row], all_parent_ptr[row], all_parent[row], all_marginal[b], known,
                above, below, fate,
            )  # fmt: skip
            # a node may be in that nothing is left to cover; sets that leave nothing out do exist
            for i in range(n):
                all_fate[2 * s + 1, i] = known[i] if fate[i] == OFF else fate[i]
            me.shrink, me.line = me.line + 1, 1
            running += 1
            shrinking += 1
            continue
        me.line, me.over = 0, 0
        me.looks += 1
        if me.bound <= me.value + max(me.tolerance, me.precision * abs(me.value) if me.value > -1e300 else 0.0):
            me.given_up = max(me.given_up, me.bound)
            me.phase = SETTLED
            continue
        gap = main.bound - me.value
        settled = 0 if dived else me.solved
        for i in range(main.size):
            fate[i] = all_state[2 * s, i] if dived else all_parts[s, i]
            marginal = all_marginal[2 * s, i]
            if fate[i] == FREE and abs(marginal) >= gap - me.tolerance:
                fate[i] = ON if marginal > 0.0 else OFF
                settled += 1
        me.rounds = _ROUNDS
        if me.work > me.budget:
            me.phase = SPENT
            continue
        if settled > _FEW * main.size:
            me.shrink = 1
            running += 1
            shrinking += 1
            continue
        slow = _SLOW * gap if main.size < _SMALL else 0.1 * _SLOW * gap
        me.stalled = me.stalled + 1 if main.bound > me.last - slow else 0
        me.last = main.bound
        me.patience -= 1
        if me.stalled >= 3 or me.patience <= 0:
            me.phase = SPLIT
        else:
            running += 1
    return running, shrinking


@kernel
def back_kernel(on, node, done, best, fold_child, fold_parent, take, parent_ptr, parent, wide):
    """The set ``wide`` of a core that the set ``on`` of a smaller one stands for."""
    covered = np.empty(wide.shape[0], np.uint8)
    _back(
        on.shape[0], on, node, done, best, fold_child.shape[0], fold_child, fold_parent, take, parent_ptr, parent,
        covered, wide,
    )  # fmt: skip
