"""The losses that come with the library; one of your own is a file beside this one and a line in ``LOSSES``."""

from __future__ import annotations

from abc import abstractmethod
from math import sqrt
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nhsvm.hierarchy import Graph, Hierarchy
from nhsvm.losses.base import Loss, LossRows, NodeLoss, checked_weights
from nhsvm.losses.difference import WeightedDifference, symmetric_difference
from nhsvm.typing import FloatArray, Floats


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

    def _fill(self, leaf_positions: npt.NDArray[np.int64], out: Floats) -> None:
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


class NodeSum(Loss):
    """Σ_{n∈y△y'} w_n for weights w of the nodes: a sum over nodes, on Y_s and on Y_m."""

    def __init__(self, hierarchy: Hierarchy, node_weights: npt.ArrayLike | None = None) -> None:
        super().__init__(hierarchy, node_weights)
        self._difference = WeightedDifference(self.graph, self._costs(self.graph))

    @staticmethod
    @abstractmethod
    def _costs(graph: Graph) -> FloatArray:
        """The weights w."""

    def between(self, y: npt.ArrayLike, z: npt.ArrayLike) -> float:
        return self._difference.between(y, z)

    def _fill(self, leaf_positions: npt.NDArray[np.int64], out: Floats) -> None:
        self._difference.fill(leaf_positions, out)

    def by_rows(self, leaf_positions: npt.ArrayLike) -> LossRows:
        found = self._difference.by_rows(self._positions(leaf_positions))
        return super().by_rows(leaf_positions) if found is None else found

    @classmethod
    def decomposes(cls, multilabel: bool) -> bool:
        """It does, on Y_s and on Y_m."""
        return True

    def per_node(self, true_nodes: npt.ArrayLike, *, multilabel: bool) -> NodeLoss:
        """−w at the true nodes, +w elsewhere, and the constant Σ_{n∈y_true} w_n."""
        return self._difference.per_node(true_nodes)


class Hamming(NodeSum):
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

    @staticmethod
    def _costs(graph: Graph) -> FloatArray:
        return np.ones(graph.n_nodes)


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

    def _fill(self, leaf_positions: npt.NDArray[np.int64], out: Floats) -> None:
        self._difference.fill(leaf_positions, out)
        np.sqrt(out, out=out)

    def by_rows(self, leaf_positions: npt.ArrayLike) -> LossRows:
        found = self._difference.by_rows(self._positions(leaf_positions))
        if found is None:
            return super().by_rows(leaf_positions)
        if self._roots is None:
            self._roots = np.sqrt(found.rows)
        return found._replace(rows=self._roots, values=np.sqrt(found.values))


class LeafHamming(NodeSum):
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

    @staticmethod
    def _costs(graph: Graph) -> FloatArray:
        return graph.is_leaf.astype(np.float64)
