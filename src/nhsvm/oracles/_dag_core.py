"""A core: what is left to decide of one sample, and the rules that shrink it.

The problem on a core, with x in {0, 1}: maximise Σ_i x_i (r_i + [no child of i is in the set]·d_i) over sets that hold
the parents of their members. d_i ≤ 0 is what it costs to cover i by a folded child; where there is none it is so
negative that no optimum pays it. Nodes known to be in the set stay only while they still need a child.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nhsvm._jit import inlined, kernel
from nhsvm.hierarchy.graph import FloatArray, IntArray
from nhsvm.oracles._dag_plan import Links

States = npt.NDArray[np.uint8]
FREE, ON, OFF, DONE, FOLDED = range(5)  # DONE: in the set, and settled


@dataclass
class Core:
    """Nodes in topological order, and the way back to the core it was made from."""

    reward: FloatArray  # r
    cover: FloatArray  # d
    state: States  # FREE or ON; a node that is ON has no parent here
    links: Links
    share: FloatArray  # of every entry of links.parent: the part of the reward accounted for there (the dual)
    constant: float  # value of all that is settled
    above: Core | None = None
    node: IntArray | None = None  # number of each node in ``above``
    fate: States | None = None  # of each node of ``above``
    folds: tuple[IntArray, IntArray, States] | None = None  # child, parent, whether worth it by itself
    best: IntArray | None = None  # of each node of ``above``: the folded child that covers it, or -1

    @property
    def size(self) -> int:
        return len(self.reward)

    @property
    def n_edges(self) -> int:
        return len(self.share)


def reduced(core: Core, fate: States, big: float) -> Core | None:
    """Apply decisions, and what follows from them.

    Parameters
    ----------
    core : Core
    fate : array of FREE, ON and OFF
        Decisions; it is changed, to the fate of every node.
    big : float
        A cover below ``-big`` is none at all.

    Returns
    -------
    A smaller core with the same optimum among the sets that agree with the decisions; None if there is none.
    """
    n = core.size
    reward, cover = core.reward.copy(), core.cover.copy()
    child, parent, take = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.uint8)
    best = np.full(n, -1, np.int32)
    number = np.empty(n, np.int32)
    n_folds, constant, feasible, m, n_edges = _reduce_kernel(
        reward, cover, *core.links[:4], fate, big, child, parent, take, best, number
    )  # fmt: skip
    if not feasible:
        return None
    node = np.empty(m, np.int32)
    new = Links(
        np.empty(m + 1, np.int32), np.empty(n_edges, np.int32), np.empty(m + 1, np.int32),
        np.empty(n_edges, np.int32), np.empty(n_edges, np.int32),
    )  # fmt: skip
    r, d, state, share = np.empty(m), np.empty(m), np.empty(m, np.uint8), np.empty(n_edges)
    _compact_kernel(
        number, reward, cover, fate, *core.links[:2], core.links.slot, core.share, node, r, d, state, share, *new
    )  # fmt: skip
    folds = child[:n_folds], parent[:n_folds], take[:n_folds]
    return Core(r, d, state, new, share, core.constant + constant, core, node, fate, folds, best)


def back(core: Core, on: States) -> States:
    """The set on the first core that the set ``on`` of ``core`` stands for."""
    while core.above is not None:
        assert core.node is not None
        assert core.fate is not None
        assert core.folds is not None
        wide = np.zeros(core.above.size, np.uint8)
        _back_kernel(core.node, on, core.fate, *core.above.links[2:4], *core.folds, core.best, wide)
        core, on = core.above, wide
    return on


def fixed(state: States, marginal: FloatArray, gap: float) -> tuple[States, int]:
    """Further decisions that any better set agrees with, the best known being ``gap`` below the bound; their number."""
    fate = state.copy()
    return fate, int(_fix_kernel(marginal, gap, fate))


@kernel
def _fix_kernel(marginal, gap, fate):
    found = 0
    for i in range(fate.shape[0]):
        if fate[i] == FREE and abs(marginal[i]) >= gap:
            fate[i] = ON if marginal[i] > 0.0 else OFF
            found += 1
    return found


@inlined
def _push(i, fate, stack, size, waits):
    if waits[i] == 0 and fate[i] <= ON:
        waits[i] = 1
        stack[size] = i
        size += 1
    return size


@kernel
def _reduce_kernel(
    reward, cover, child_ptr, child, parent_ptr, parent, fate, big, fold_child, fold_parent, take, best, number
):  # fmt: skip
    # every node is looked at once, children first, and again when something around it has changed
    n = reward.shape[0]
    constant = 0.0
    folds = 0
    stack, waits = np.arange(n).astype(np.int32), np.ones(n, np.uint8)
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
            s = fate[child[e]]
            if s == FREE:
                free += 1
                last = child[e]
            elif s in (ON, DONE):
                covered = True
        parents, p, covers, banned = 0, -1, 0.0, False
        for q in range(parent_ptr[i], parent_ptr[i + 1]):
            s = fate[parent[q]]
            if s <= ON:
                parents += 1
                p = parent[q]
                covers += cover[p]
            elif s == OFF:
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
                return folds, constant, False, 0, 0
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
    m, edges = 0, 0
    for i in range(n):
        number[i] = -1
        if fate[i] <= ON:
            number[i] = m
            m += 1
            for e in range(child_ptr[i], child_ptr[i + 1]):
                edges += fate[child[e]] <= ON
    return folds, constant, True, m, edges


@kernel
def _compact_kernel(
    number, reward, cover, fate, child_ptr, child, slot, share, node, r, d, state, new_share,
    new_child_ptr, new_child, new_parent_ptr, new_parent, new_slot,
):  # fmt: skip
    m = node.shape[0]
    for j in range(m + 1):
        new_parent_ptr[j] = 0
    k = 0
    new_child_ptr[0] = 0
    for i in range(number.shape[0]):
        j = number[i]
        if j < 0:
            continue
        node[j], r[j], d[j], state[j] = i, reward[i], cover[i], fate[i]
        for e in range(child_ptr[i], child_ptr[i + 1]):
            c = number[child[e]]
            if c >= 0:
                new_child[k] = c
                new_slot[k] = slot[e]
                new_parent_ptr[c + 1] += 1
                k += 1
        new_child_ptr[j + 1] = k
    for j in range(m):
        new_parent_ptr[j + 1] += new_parent_ptr[j]
    place = new_parent_ptr[:m].copy()
    for j in range(m):
        for e in range(new_child_ptr[j], new_child_ptr[j + 1]):
            c = new_child[e]
            new_parent[place[c]] = j
            new_share[place[c]] = share[new_slot[e]]
            new_slot[e] = place[c]
            place[c] += 1


@kernel
def _back_kernel(node, on, fate, parent_ptr, parent, fold_child, fold_parent, take, best, wide):
    n = wide.shape[0]
    covered = np.zeros(n, np.uint8)
    for i in range(n):
        wide[i] = fate[i] == DONE
    for j in range(node.shape[0]):
        wide[node[j]] = on[j]
    for i in range(n):
        if wide[i]:
            for q in range(parent_ptr[i], parent_ptr[i + 1]):
                covered[parent[q]] = 1
    for k in range(fold_child.shape[0] - 1, -1, -1):
        c, p = fold_child[k], fold_parent[k]
        if wide[p] and (take[k] or (best[p] == c and covered[p] == 0)):
            wide[c] = 1
            covered[p] = 1
