"""The Hamming loss over nodes, induced by the hierarchy (Section 4)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nhsvm.hierarchy import Hierarchy
from nhsvm.losses._base import AnyFloats, Loss, LossRows, NodeLoss
from nhsvm.losses._difference import WeightedDifference


class Hamming(Loss):
    """Δᴴ(y, y') = |y△y'| = Σ_n |1[n∈y] − 1[n∈y']|, the loss of HSVM (Section 4, below Eq. 1).

    Of two leaves of a tree it is the number of edges on the path between them; roots of a forest are taken as joined
    by one node above them all. A virtual leaf is a node like any other: from an inner node that is a label to a leaf
    right below it, it is 2.

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> loss = Hamming(h)
    >>> loss.distance("dog", "cat"), loss.distance("dog", "oak"), loss.distance({"dog", "oak"}, {"dog"})
    (2.0, 4.0, 2.0)
    >>> loss.to_leaves([0])
    array([[0., 2., 4.]])
    """

    name: ClassVar[str] = "hamming"

    def __init__(self, hierarchy: Hierarchy, node_weights: npt.ArrayLike | None = None) -> None:
        super().__init__(hierarchy, node_weights)
        self._difference = WeightedDifference(self.graph, np.ones(self.graph.n_nodes))

    def between(self, y: npt.ArrayLike, z: npt.ArrayLike) -> float:
        return self._difference.between(y, z)

    def _fill(self, leaf_positions: npt.NDArray[np.int64], out: AnyFloats) -> None:
        self._difference.fill(leaf_positions, out)

    def by_rows(self, leaf_positions: npt.ArrayLike) -> LossRows:
        found = self._difference.by_rows(self._positions(leaf_positions))
        return super().by_rows(leaf_positions) if found is None else found

    @classmethod
    def decomposes(cls, multilabel: bool) -> bool:
        """It does, on Y_s and on Y_m."""
        return True

    def per_node(self, true_nodes: npt.ArrayLike, *, multilabel: bool) -> NodeLoss:
        """−1 at the true nodes, +1 elsewhere, and the constant |y_true|."""
        return self._difference.per_node(true_nodes)
