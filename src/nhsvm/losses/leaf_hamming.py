"""The Hamming loss over leaves: the multi-label loss of the paper (Section 7.1)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nhsvm.hierarchy import Hierarchy
from nhsvm.losses._base import AnyFloats, Loss, NodeLoss
from nhsvm.losses._difference import WeightedDifference


class LeafHamming(Loss):
    """Δ_L(y, y') = |(y△y') ∩ leaves| = Σ_l (1[l∈y−y'] − 1[l∈y∩y']) + |y' ∩ leaves| (Section 7.1).

    The paper's set expression |(y ∩ leaves) − (y' ∩ leaves)| counts one side only; the sum beside it, taken here,
    counts both. With one leaf a label it is 0 or 2.

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> loss = LeafHamming(h)
    >>> loss.distance({"dog", "oak"}, {"dog"}), loss.distance("dog", "oak")
    (1.0, 2.0)
    """

    name: ClassVar[str] = "leaf_hamming"

    def __init__(self, hierarchy: Hierarchy, node_weights: npt.ArrayLike | None = None) -> None:
        super().__init__(hierarchy, node_weights)
        self._difference = WeightedDifference(self.graph, self.graph.is_leaf.astype(np.float64))

    def between(self, y: npt.ArrayLike, z: npt.ArrayLike) -> float:
        return self._difference.between(y, z)

    def _fill(self, leaf_positions: npt.NDArray[np.int64], out: AnyFloats) -> None:
        out.fill(2.0)
        out[np.arange(len(out)), leaf_positions] = 0.0

    @classmethod
    def decomposes(cls, multilabel: bool) -> bool:
        """It does, on Y_s and on Y_m."""
        return True

    def per_node(self, true_nodes: npt.ArrayLike, *, multilabel: bool) -> NodeLoss:
        """−1 at the true leaves, +1 at the others, 0 at inner nodes, and the constant |y_true ∩ leaves|."""
        return self._difference.per_node(true_nodes)
