"""Naive twins of the single-label oracle: loops over leaves and their closures."""

from __future__ import annotations

import numpy as np

from nhsvm import Hierarchy
from nhsvm.losses import Loss


def random_alpha(h: Hierarchy, seed: int) -> np.ndarray:
    """α ≥ 0 of many kinds: positive; with random zeros; on the leaves only; zero above all leaves; uniform."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(5)
    alpha = rng.random(h.n_nodes) + 0.05
    if kind == 1:
        alpha *= rng.random(h.n_nodes) < 0.6
    elif kind == 2:
        alpha = np.where(h.graph.is_leaf, 1.0, 0.0)
    elif kind == 3:
        alpha[h.graph.is_common] = 0.0
    elif kind == 4:
        alpha[:] = 1.0
    return alpha


def leaf_sums(h: Hierarchy, node_scores: np.ndarray) -> list[float]:
    """γ(x, l): the sum over Ā(l), for every leaf."""
    return [float(sum(node_scores[n] for n in h.graph.leaf_ancestors.row(k))) for k in range(h.n_leaves)]


def values(h: Hierarchy, node_scores: np.ndarray, true: int, loss: Loss, normalized: bool) -> list[float]:
    """Δ + score difference, or 1 + difference / norm (Eq. 13), for every leaf."""
    scores = leaf_sums(h, node_scores)
    closures = [h.graph.leaf_ancestors.row(k) for k in range(h.n_leaves)]
    distances = [loss.between(closure, closures[true]) for closure in closures]
    if not normalized:
        return [d + s - scores[true] for d, s in zip(distances, scores, strict=True)]
    return [1 + (s - scores[true]) / d if d > 0 else 0.0 for d, s in zip(distances, scores, strict=True)]


def proposed(found: list[float], used: list[int], weights: list[float], true: int, cost: float, n_new: int, tol: float):
    """The planes in use, then the largest others above their mean and the tolerance; equal ones in leaf order."""
    bar = sum(w * found[k] for k, w in zip(used, weights, strict=True)) / cost + tol
    new = [k for k, v in enumerate(found) if v > bar and k not in used and k != true]
    return used + sorted(new, key=lambda k: (-found[k], k))[:n_new]


def brute_force(graph, node_scores, true_leaf, loss, *, normalized=False):
    """Argmax and max over the leaves l of Δ(l, y) + s(l) − s(y) (Eq. 18), or of Eq. 13 with ``normalized``."""
    closures = [graph.leaf_ancestors.row(k) for k in range(graph.n_leaves)]
    own = sum(node_scores[n] for n in closures[true_leaf])
    values = []
    for closure in closures:
        difference = sum(node_scores[n] for n in closure) - own
        distance = loss.between(closure, closures[true_leaf])
        if normalized:
            values.append(1.0 + difference / distance if distance > 0 else 0.0)
        else:
            values.append(difference + distance)
    best = int(np.argmax(values))
    return best, float(values[best])
