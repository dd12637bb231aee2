"""The normalised structural error of NHSVM (Eq. 9)."""

from __future__ import annotations

from math import sqrt
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.losses._base import AnyFloats, Loss, LossRows
from nhsvm.losses._checks import checked_weights
from nhsvm.losses._difference import WeightedDifference


class Normalized(Loss):
    """Δ̃(y, y') = ‖∧̃(y) − ∧̃(y')‖ = √(Σ_{n∈y△y'} α_n): the distance of normalised class attributes (Eq. 9, Eq. 5).

    It holds for trees and DAGs, single labels and label sets. The square root makes it no sum over nodes on Y_m.

    Parameters
    ----------
    hierarchy : Hierarchy
    node_weights : array of n_nodes
        α ≥ 0.

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> loss = Normalized(h, node_weights=[0.5, 0.5, 0.5, 0.5, 0.5])
    >>> loss.distance("dog", "cat"), round(loss.distance("dog", "oak"), 3)
    (1.0, 1.414)
    """

    name: ClassVar[str] = "normalized"
    needs_weights: ClassVar[bool] = True
    indivisible: ClassVar[str] = "the square root of Eq. 9 is over all nodes at once"

    def __init__(self, hierarchy: Hierarchy, node_weights: npt.ArrayLike | None = None) -> None:
        super().__init__(hierarchy)
        self.node_weights = checked_weights(node_weights, hierarchy, self.name)
        self._difference = WeightedDifference(self.graph, self.node_weights)
        self._roots: FloatArray | None = None  # of the rows that many leaves share

    def between(self, y: npt.ArrayLike, z: npt.ArrayLike) -> float:
        return sqrt(self._difference.between(y, z))

    def _fill(self, leaf_positions: npt.NDArray[np.int64], out: AnyFloats) -> None:
        self._difference.fill(leaf_positions, out)
        np.sqrt(out, out=out)

    def by_rows(self, leaf_positions: npt.ArrayLike) -> LossRows:
        found = self._difference.by_rows(self._positions(leaf_positions))
        if found is None:
            return super().by_rows(leaf_positions)
        if self._roots is None:
            self._roots = np.sqrt(found.rows)
        return found._replace(rows=self._roots, values=np.sqrt(found.values))
