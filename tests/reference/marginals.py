"""The block problem of node marginals on a tree: its constraints, bound and optimum, by enumeration and loops."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from reference import blocks


def children(parent: np.ndarray) -> dict[int, list[int]]:
    """Of every node; those of -1 are the roots."""
    return {p: [n for n, above in enumerate(parent) if above == p] for p in range(-1, len(parent))}


def label_sets(parent: np.ndarray, allow_empty: bool) -> np.ndarray:
    """Y_m, a row a closure."""
    below = children(parent)
    leaves = [n for n in range(len(parent)) if not below[n]]
    rows = []
    for size in range(0 if allow_empty else 1, len(leaves) + 1):
        for some in combinations(leaves, size):
            row = np.zeros(len(parent))
            for n in some:
                while n >= 0:
                    row[n], n = 1.0, int(parent[n])
            rows.append(row)
    return np.array(rows)


def best_set(parent: np.ndarray, r: np.ndarray, allow_empty: bool) -> float:
    """max r·y over Y_m."""
    below = children(parent)

    def gain(n: int) -> float:
        own = 0.0 if n < 0 else float(r[n])
        gains = [gain(c) for c in below[n]]
        good = [g for g in gains if g > 0]
        if good or not gains or (n < 0 and allow_empty):
            return own + sum(good)
        return own + max(gains)

    return gain(-1)


def value(alpha: np.ndarray, r: np.ndarray, z0: np.ndarray, q: float, z: np.ndarray) -> float:
    """What the dual gains by going from z0 to z."""
    return float(r @ (z - z0) - 0.5 * q * alpha @ (z - z0) ** 2)


def violated(parent: np.ndarray, z: np.ndarray, C: float, allow_empty: bool) -> float:
    """By how much z breaks the worst constraint."""
    worst = [0.0, float(-z.min())]
    for p, nodes in children(parent).items():
        above = C if p < 0 else z[p]
        worst += [z[c] - above for c in nodes]
        if nodes and not (p < 0 and allow_empty):
            worst.append(above - sum(z[c] for c in nodes))
    return float(max(worst))


def optimum(parent, alpha, r, weights, q, allow_empty) -> float:
    """The largest gain from z0 = Σ_y weights_y y, with all of Y_m as planes; for three leaves or so."""
    sets = label_sets(parent, allow_empty)
    rows = sets[:-1] - sets[-1]
    return blocks.best(q * (rows * alpha) @ rows.T, rows @ r, weights[:-1], float(weights.sum()))
