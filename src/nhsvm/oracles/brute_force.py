"""The ground truth for every oracle: try all labels, each from its definition."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import Graph
from nhsvm.losses import Loss
from nhsvm.oracles.protocol import Oracle
from nhsvm.typing import FloatArray

_MOST_LEAVES = 16  # 65,535 label sets


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


class BruteForce(Oracle):
    """argmax Σ_{n∈y} r_n over Y_m (Eq. 19), the closures of all non-empty leaf sets, one by one.

    Parameters
    ----------
    graph : Graph
        With up to 16 leaves.
    allow_empty : bool
        Admit the empty set, of value 0, as well.

    Notes
    -----
    Ties: the set with the fewest leaves, then the one whose leaves come first.

    Examples
    --------
    >>> import numpy as np
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> chosen, value, bound = np.empty((1, 5), np.uint8), np.empty(1), np.empty(1)
    >>> BruteForce(h.graph).solve(np.array([[-1.0, -2.0, 3.0, -1.0, 1.0]]), chosen, value, bound)
    >>> [h.nodes[n] for n in np.flatnonzero(chosen[0])], value
    (['animal', 'dog'], array([2.]))
    """

    def __init__(self, graph: Graph, *, allow_empty: bool = False) -> None:
        if graph.n_leaves > _MOST_LEAVES:
            raise OptionError(
                f"brute_force tries all sets of up to {_MOST_LEAVES} leaves, but there are {graph.n_leaves}"
            )
        super().__init__(graph, allow_empty)
        leaves = range(graph.n_leaves)
        above = np.zeros((graph.n_leaves, graph.n_nodes), np.uint8)
        for k in leaves:
            above[k, graph.leaf_ancestors.row(k)] = 1
        sizes = range(0 if allow_empty else 1, graph.n_leaves + 1)
        self.sets = np.array(
            [above[list(some)].any(axis=0) for size in sizes for some in combinations(leaves, size)], np.uint8
        )
        self.sets.flags.writeable = False

    def _solve(self, rewards: FloatArray, chosen: npt.NDArray[np.uint8], value: FloatArray, bound: FloatArray) -> None:
        for t, r in enumerate(rewards):
            values = self.sets @ r
            best = int(np.argmax(values))
            chosen[t] = self.sets[best]
            value[t] = bound[t] = values[best]
