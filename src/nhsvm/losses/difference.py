"""Weighted symmetric differences of label sets, which all these losses are functions of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm._jit import kernel
from nhsvm.hierarchy import Graph
from nhsvm.hierarchy.graph import Ragged
from nhsvm.losses.base import LossRows, NodeLoss, checked_numbers
from nhsvm.typing import FloatArray, Floats, IntArray, PtrArray


@dataclass(frozen=True)
class Limits:
    """When rows of losses are shared, and how much is worked on at a time."""

    row_entries: int = 2**20  # numbers in rows that many leaves share: 8 MB
    sharing: float = 0.25  # part of all pairs of leaves that may share nodes; above, a row for each leaf is as good
    workspace: int = 2**20  # numbers in the dense (node, sample) array of one step: 8 MB, about the size of a cache


LIMITS = Limits()


def symmetric_difference(graph: Graph, y: npt.ArrayLike, z: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """y△z, ascending, of two sets of node numbers."""
    y, z = (checked_numbers(nodes, graph.n_nodes, "node number") for nodes in (y, z))
    return np.setxor1d(y, z)


class WeightedDifference:
    """d(y, z) = Σ_{n∈y△z} w_n, for node weights w ≥ 0, in every form a loss must have.

    All forms rest on d(y, t) = Σ_{n∈t} w_n + Σ_{n∈y} r_n with r_n = −w_n if n∈t and +w_n if not. Its terms cancel, and
    what floating point would leave of them could be negative, or not zero for equal labels. So w is first rounded up
    to a grid so coarse that sums along paths are exact, in any order: every form then gives the very same number, zero
    is zero, and a positive weight stays positive. The grid is at most 2⁻⁵⁰ of the heaviest path.
    """

    def __init__(self, graph: Graph, weights: FloatArray) -> None:
        self.graph = graph
        indptr, indices = graph.leaf_ancestors
        heaviest = np.add.reduceat(weights[indices], indptr[:-1]).max()
        # two whole paths stay below 2^exponent, and a double holds 53 binary digits
        exponent = np.frexp(2 * heaviest)[1]
        grid = max(np.ldexp(1.0, exponent - 52), np.finfo(np.float64).tiny)
        self.weights = np.ceil(weights / grid) * grid

    def between(self, y: npt.ArrayLike, z: npt.ArrayLike) -> float:
        """The sum for two sets of node numbers."""
        return float(self.weights[symmetric_difference(self.graph, y, z)].sum())

    def per_node(self, true_nodes: npt.ArrayLike) -> NodeLoss:
        """The rewards r and the constant Σ_{n∈t} w_n; they serve Y_s and Y_m alike."""
        nodes = np.unique(checked_numbers(true_nodes, self.graph.n_nodes, "node number"))
        rewards = self.weights.copy()
        rewards[nodes] *= -1
        return NodeLoss(rewards, float(self.weights[nodes].sum()))

    def fill(self, leaf_positions: npt.NDArray[np.int64], out: Floats) -> None:
        """The sum for every leaf and each given leaf."""
        if self._few_shared:
            self._fill_shared(leaf_positions, out)
        else:
            self._fill_closures(leaf_positions, out)

    @cached_property
    def _few_shared(self) -> bool:
        """Whether most pairs of leaves share few nodes with weight: so it is, but for very deep hierarchies."""
        shared = self.graph.leaf_counts[self.weights > 0].astype(np.float64) ** 2
        return bool(shared.sum() <= self.graph.n_leaves * self.graph.n_nodes)

    def _fill_shared(self, leaf_positions: npt.NDArray[np.int64], out: Floats) -> None:
        """Σ_{n∈y△t} w_n = Σ_{n∈y} w_n + Σ_{n∈t} w_n − 2 Σ_{n∈y∩t} w_n, where the last sum is mostly empty."""
        shared_kernel(leaf_positions, self._totals, self.weights, self._carried, self._carriers, out)

    def by_rows(self, leaf_positions: npt.NDArray[np.int64]) -> LossRows | None:
        """The same as one row for all leaves of the same total, and the leaves that share nodes; None if that is more.

        Rows are always the same array.
        """
        if self._rows is None:
            return None
        sharing = sharing_kernel(leaf_positions, self._totals, self.weights, self._carried, self._carriers)
        return LossRows(self._rows, self._kind[leaf_positions], *sharing)

    @cached_property
    def _rows(self) -> FloatArray | None:
        """Σ_{n∈y} w_n + Σ_{n∈t} w_n of every leaf y, for every total that a leaf t can have."""
        shared = self.graph.leaf_counts[self.weights > 0].astype(np.float64) ** 2
        totals, n = np.unique(self._totals), self.graph.n_leaves
        if len(totals) * n > LIMITS.row_entries or shared.sum() > LIMITS.sharing * n * n:
            return None
        return np.asarray(totals[:, None] + self._totals)

    @cached_property
    def _kind(self) -> IntArray:
        """Which of the totals every leaf has."""
        return np.unique(self._totals, return_inverse=True)[1].astype(np.int32)

    @cached_property
    def _totals(self) -> FloatArray:
        """Σ_{n∈y} w_n of every leaf y."""
        return np.asarray(self._closures @ self.weights)

    @cached_property
    def _carried(self) -> Ragged:
        """For every leaf, the nodes with weight of its closure."""
        every = self.graph.leaf_ancestors
        has = self.weights[every.indices] > 0
        indptr = np.concatenate([[0], np.cumsum(has)])[every.indptr]
        return Ragged(indptr, every.indices[has])

    @cached_property
    def _carriers(self) -> Ragged:
        """For every node, the leaves that have it in their closure, if it has weight."""
        return self._carried.transposed(self.graph.n_nodes)

    def _fill_closures(self, leaf_positions: npt.NDArray[np.int64], out: Floats) -> None:
        """Rewards summed over every leaf's closure."""
        step = max(16, LIMITS.workspace // self.graph.n_nodes)
        for start in range(0, len(leaf_positions), step):
            true = self.graph.leaf_ancestors.rows(leaf_positions[start : start + step])
            rewards = np.repeat(self.weights[:, None], len(true.indptr) - 1, axis=1)
            rewards[true.indices, true.owners()] *= -1
            constant = np.add.reduceat(self.weights[true.indices], true.indptr[:-1])
            out[start : start + step] = (self._over_closures(rewards) + constant).T

    def _over_closures(self, values: FloatArray) -> FloatArray:
        """For every leaf, the sum of the rows of ``values`` over its closure; ``values`` is used up."""
        graph = self.graph
        if not graph.is_tree:
            return self._closures @ values  # type: ignore[no-any-return]
        for nodes in graph.levels():
            if nodes.start:  # every node but the roots has one parent, and edges are ordered by child
                up = graph.parents.indices[nodes.start - graph.n_roots : nodes.stop - graph.n_roots]
                values[nodes] += values[up]
        return values[graph.leaves]

    @cached_property
    def _closures(self) -> sp.csr_array:
        return self.graph.leaf_matrix()


@kernel
def shared_kernel(
    true: PtrArray, totals: FloatArray, weights: FloatArray, carried: Ragged, carriers: Ragged, out: Floats
) -> None:
    """``out[i]`` = the weighted differences of every leaf and the leaf ``true[i]``.

    Leaves have ``totals`` and the nodes ``carried``, nodes with weight the leaves ``carriers``.
    """
    row = np.empty(totals.shape[0])  # in double precision, whatever ``out`` is
    for i in range(true.shape[0]):
        t = true[i]
        for leaf in range(row.shape[0]):
            row[leaf] = totals[t] + totals[leaf]
        for q in range(carried.indptr[t], carried.indptr[t + 1]):
            node = carried.indices[q]
            twice = 2.0 * weights[node]
            for e in range(carriers.indptr[node], carriers.indptr[node + 1]):
                row[carriers.indices[e]] -= twice
        for leaf in range(row.shape[0]):
            out[i, leaf] = row[leaf]


@kernel
def sharing_kernel(
    true: PtrArray, totals: FloatArray, weights: FloatArray, carried: Ragged, carriers: Ragged
) -> tuple[PtrArray, IntArray, FloatArray]:
    """The leaves that share nodes with ``true[i]``, for each: (where lists begin, the lists, weighted differences)."""
    n = true.shape[0]
    room = 0
    for t in true:
        for q in range(carried.indptr[t], carried.indptr[t + 1]):
            node = carried.indices[q]
            room += carriers.indptr[node + 1] - carriers.indptr[node]
    indptr, leaves, values = np.zeros(n + 1, np.int64), np.empty(room, np.int32), np.empty(room)
    place = np.full(totals.shape[0], -1, np.int64)
    top = 0
    for i in range(n):
        t = true[i]
        for q in range(carried.indptr[t], carried.indptr[t + 1]):
            node = carried.indices[q]
            twice = 2.0 * weights[node]
            for e in range(carriers.indptr[node], carriers.indptr[node + 1]):
                leaf = carriers.indices[e]
                if place[leaf] < indptr[i]:
                    place[leaf] = top
                    leaves[top] = leaf
                    values[top] = totals[t] + totals[leaf]
                    top += 1
                values[place[leaf]] -= twice
        indptr[i + 1] = top
    return indptr, leaves[:top], values[:top]
