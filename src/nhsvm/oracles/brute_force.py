"""The ground truth for every oracle: try all labels, each from its definition."""

from __future__ import annotations

import numpy as np

from nhsvm.hierarchy.graph import FloatArray, Graph
from nhsvm.losses import Loss


def brute_force(
    graph: Graph, node_scores: FloatArray, true_leaf: int, loss: Loss, *, normalized: bool = False
) -> tuple[int, float]:
    """Argmax and max over the leaves l of Δ(l, y) + s(l) − s(y) (Eq. 18), or of Eq. 13 with ``normalized``.

    Parameters
    ----------
    graph : Graph
    node_scores : array of n_nodes
        U_n·x of every node.
    true_leaf : int
        Position of y among the leaves.
    loss : Loss
        Δ; with ``normalized``, the norm of Eq. 9 that differences are divided by.
    normalized : bool

    Returns
    -------
    leaf, value : int, float
        The first leaf with the largest value.
    """
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
