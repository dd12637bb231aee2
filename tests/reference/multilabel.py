"""Twins of the multi-label oracles: the dynamic programme with sets, the constraints of Eq. 19 with loops."""

from __future__ import annotations

import itertools

import numpy as np

from nhsvm.hierarchy import Graph

REWARDS = ("noise", "ties", "negative", "positive", "zero", "cover", "planted", "tiny", "huge")


def random_rewards(graph: Graph, kind: str, seed: int, n: int = 4) -> np.ndarray:
    """Rewards of many kinds; ``cover`` makes inner nodes worth having and leaves costly, where relaxations fail."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n, graph.n_nodes))
    if kind == "ties":
        return rng.integers(-2, 3, size=noise.shape).astype(float)
    if kind == "cover":
        return np.where(graph.is_leaf, -3.0 - rng.random(noise.shape), 1.0 + rng.random(noise.shape))
    if kind == "planted":
        found = -np.abs(noise)
        for row in found:
            row[graph.leaf_ancestors.row(rng.integers(graph.n_leaves))] += 2.0
        return found
    by_factor = {"noise": noise, "negative": -np.abs(noise), "positive": np.abs(noise), "zero": 0.0 * noise}
    return by_factor[kind] if kind in by_factor else noise * {"tiny": 1e-12, "huge": 1e12}[kind]


def tree_best(graph: Graph, r: np.ndarray, allow_empty: bool) -> tuple[set[int], float]:
    """The best label set of a tree, and its value."""
    children = {n: [int(c) for c in graph.children.row(n)] for n in range(graph.n_nodes)}
    gain: dict[int, float] = {}

    def worth(nodes: list[int], must: bool) -> list[int]:
        good = [n for n in nodes if gain[n] > 0]
        return good if good or not must or not nodes else [max(nodes, key=gain.__getitem__)]

    for n in reversed(range(graph.n_nodes)):
        gain[n] = float(r[n]) + sum(gain[c] for c in reversed(worth(children[n], True)))
    front = worth(list(range(graph.n_roots)), not allow_empty)
    value, found = sum(gain[n] for n in front), set()
    while front:
        n = front.pop()
        found.add(n)
        front += worth(children[n], True)
    return found, float(value)


def violated(graph: Graph, z: np.ndarray, allow_empty: bool) -> float:
    """By how much z breaks the worst constraint of Eq. 19 (of the relaxation, if z is fractional)."""
    worst = [0.0, float(-z.min()), float(z.max() - 1)]
    if not allow_empty:
        worst += [1 - z[graph.leaves].sum(), 1 - z[: graph.n_roots].sum()]
    for n in range(graph.n_nodes):
        worst += [z[n] - z[p] for p in graph.parents.row(n)]
        if len(graph.children.row(n)):
            worst.append(z[n] - sum(z[c] for c in graph.children.row(n)))
    return max(worst)


def answer(oracle, rewards: np.ndarray):
    """(chosen, value, bound) in arrays that were full of rubbish."""
    chosen = np.full(rewards.shape, 7, oracle.dtype)
    value, bound = np.full((2, len(rewards)), np.nan)
    assert oracle.solve(rewards, chosen, value, bound) is None
    return chosen, value, bound


def closures(graph):
    """Every set of leaves, and the nodes of each."""
    sets = np.array(list(itertools.product((0, 1), repeat=graph.n_leaves)))
    return sets, sets @ graph.leaf_matrix().toarray() > 0


def best_of_all(graph, rewards, allow_empty):
    value = rewards @ closures(graph)[1].T
    return value.max(axis=1) if allow_empty else value[:, 1:].max(axis=1)
