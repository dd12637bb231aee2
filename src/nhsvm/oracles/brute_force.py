"""The ground truth for every oracle: try all labels, each from its definition."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles.protocol import Oracle
from nhsvm.typing import ByteArray, FloatArray

_MOST_LEAVES = 16  # 65,535 label sets


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

    exact = True

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

    def _solve(self, rewards: FloatArray, chosen: ByteArray, value: FloatArray, bound: FloatArray) -> None:
        for t, r in enumerate(rewards):
            values = self.sets @ r
            best = int(np.argmax(values))
            chosen[t] = self.sets[best]
            value[t] = bound[t] = values[best]
