"""Ways up from single nodes, for measures that compare label sets a sample at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from nhsvm.hierarchy import Graph
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.metrics._pair import Pair
from nhsvm.metrics._paths import ways_up

Nodes = frozenset[int]


def each_pair(pair: Pair, measure: Callable[[Nodes, Nodes], float]) -> FloatArray:
    """A measure of the true and the predicted labels of every sample; the same two sets are looked at once."""
    known = cache(measure)
    rows = zip(*(np.split(y.indices, y.indptr[1:-1]) for y in (pair.true, pair.pred)), strict=True)
    return np.array([known(frozenset(true.tolist()), frozenset(pred.tolist())) for true, pred in rows])


class Ways:
    """Shortest ways up. If there are several roots, an unnamed node, number ``n_nodes``, is above them.

    Parameters
    ----------
    graph : Graph
    """

    def __init__(self, graph: Graph) -> None:
        self._graph, self._up = graph, ways_up(graph)
        self.above, self.path = cache(self._above), cache(self._path)

    def _above(self, node: int) -> dict[int, int]:
        """Every ancestor of a node, itself included, with the edges on the shortest way up to it."""
        indptr, indices = self._graph.ancestors
        part = slice(indptr[node], indptr[node + 1])
        found = dict(zip(indices[part].tolist(), self._up[part].tolist(), strict=True))
        if self._graph.n_roots > 1:
            found[self._graph.n_nodes] = 1 + min(edges for n, edges in found.items() if n < self._graph.n_roots)
        return found

    def _path(self, node: int, top: int) -> Nodes:
        """The nodes of the shortest way up, both ends included; of several the one over the first parents."""
        found, edges = {node, top}, self.above(node)[top]
        while edges > 1:
            edges -= 1
            node = min(n for n in self._graph.parents.row(node).tolist() if self.above(n).get(top) == edges)
            found.add(node)
        return frozenset(found)

    def lowest(self, nodes: Nodes) -> Nodes:
        """Nodes without those that are above others of them."""
        return nodes - {n for node in nodes for n in self.above(node) if n != node}

    def distance(self, a: int, b: int) -> int:
        """Edges on the shortest way from one node up to a common ancestor and down to the other."""
        above = self.above(b)
        return min(up + above[n] for n, up in self.above(a).items() if n in above)

    def nearest(self, node: int, others: Nodes) -> Nodes:
        """The common ancestors over which the way to the nearest of ``others`` leads."""
        found: dict[int, set[int]] = {}
        above = self.above(node)
        for other in others:
            for n, up in self.above(other).items():
                if n in above:
                    found.setdefault(up + above[n], set()).add(n)
        return frozenset(found[min(found)])
