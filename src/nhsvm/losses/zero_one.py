"""The zero-one loss, under which the flat SVM is Crammer and Singer's."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nhsvm.losses._base import AnyFloats, Loss, LossRows, NodeLoss
from nhsvm.losses._difference import symmetric_difference


class ZeroOne(Loss):
    """Δ(y, y') = 1[y ≠ y']: right or wrong, wherever in the hierarchy.

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> loss = ZeroOne(h)
    >>> loss.distance("dog", "cat"), loss.distance({"dog", "oak"}, {"oak", "dog"})
    (1.0, 0.0)
    """

    name: ClassVar[str] = "zero_one"
    indivisible: ClassVar[str] = "one wrong node costs as much as many"

    def between(self, y: npt.ArrayLike, z: npt.ArrayLike) -> float:
        return float(len(symmetric_difference(self.graph, y, z)) > 0)

    def _fill(self, leaf_positions: npt.NDArray[np.int64], out: AnyFloats) -> None:
        out.fill(1.0)
        out[np.arange(len(out)), leaf_positions] = 0.0

    def by_rows(self, leaf_positions: npt.ArrayLike) -> LossRows:
        leaves = self._positions(leaf_positions).astype(np.int32)
        n = len(leaves)
        row = np.ones((1, self.graph.n_leaves))
        return LossRows(row, np.zeros(n, np.int32), np.arange(n + 1), leaves, np.zeros(n))

    def per_node(self, true_nodes: npt.ArrayLike, *, multilabel: bool) -> NodeLoss:
        """As in the base class, but sparse: −1 at the true leaf, and the constant 1."""
        rewards, _ = super().per_node(true_nodes, multilabel=multilabel)
        rewards[self.graph.leaves] -= 1.0
        return NodeLoss(rewards, 1.0)
