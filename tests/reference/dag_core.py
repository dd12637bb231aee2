"""Naive twins of what works on the core of a DAG: all sets are tried, paths are walked."""

from __future__ import annotations

import itertools

import numpy as np

from nhsvm.oracles.dag.core import FREE, OFF, ON, Core


def edges(core: Core) -> list[tuple[int, int]]:
    """(parent, child), in the order of links.child."""
    return [(p, int(c)) for p in range(core.size) for c in children(core, p)]


def children(core: Core, i: int) -> np.ndarray:
    return core.links.child[core.links.child_ptr[i] : core.links.child_ptr[i + 1]]


def worth(core: Core, on) -> float:
    """What a set is worth; -inf if a parent is missing."""
    if any(on[c] and not on[p] for p, c in edges(core)):
        return -np.inf
    bare = [i for i in range(core.size) if on[i] and not any(on[c] for c in children(core, i))]
    return float(core.constant + sum(core.reward[i] for i in range(core.size) if on[i]) + core.cover[bare].sum())


def best(core: Core, decision=None) -> float:
    """The optimum among the sets that agree with the decisions ``decision``."""
    decision = core.state if decision is None else decision
    ways = [{FREE: (0, 1), ON: (1,), OFF: (0,)}[int(s)] for s in decision]
    return max((worth(core, on) for on in itertools.product(*ways)), default=-np.inf)


def own(core: Core) -> np.ndarray:
    """Rewards without the shares that are in the stars of parents."""
    left = core.reward.copy()
    for i in range(core.size):
        left[i] -= core.share[core.links.parent_ptr[i] : core.links.parent_ptr[i + 1]].sum()
    return left


def below(core: Core, i: int) -> set[int]:
    found = {i}
    for c in children(core, i):
        found |= below(core, int(c))
    return found


def leaning(core: Core, state, marginal, unsure: float = 0.5) -> list[int]:
    """The surer half of the free nodes as their signs say; of two that contradict each other, only the surer one."""
    free = [i for i in range(core.size) if state[i] == FREE]
    if not free:
        return list(state)
    least = sorted(abs(marginal[i]) for i in free)[int(unsure * len(free))]
    sure = [i for i in free if abs(marginal[i]) >= least]
    decision = list(state)
    for i in sure:
        if marginal[i] > 0:
            rivals = [-marginal[j] for j in sure if marginal[j] < 0 and i in below(core, j)]
            decision[i] = ON if all(marginal[i] > r for r in rivals) else FREE
        else:
            rivals = [marginal[j] for j in below(core, i) if j in sure and marginal[j] > 0]
            decision[i] = OFF if all(-marginal[i] >= r for r in rivals) else FREE
    return decision


def leaf_by_leaf(graph, r: np.ndarray, y: np.ndarray, allow_empty: bool) -> np.ndarray:
    """Flip one leaf after the other, around and around, as long as that gains; sets made anew from their leaves."""

    def closure(leaves: np.ndarray) -> np.ndarray:
        return (leaves @ graph.leaf_matrix().toarray() > 0).astype(np.uint8)

    leaves = y[graph.leaves] == 1
    unchanged, k = 0, 0
    while unchanged < graph.n_leaves:
        other = leaves.copy()
        other[k] = not other[k]
        gain = r @ closure(other) - r @ closure(leaves)
        unchanged += 1
        if gain > 1e-12 * np.abs(r).sum() and (allow_empty or other.any()):
            leaves, unchanged = other, 1
        k = (k + 1) % graph.n_leaves
    return closure(leaves)
