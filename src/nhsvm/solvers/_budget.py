"""What weights α may be: α ≥ 0 with Σ_{n∈Ā(l)} α_n ≤ 1 for every leaf l; and the two problems over them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import FloatArray, Graph, IntArray
from nhsvm.solvers._rounding import gamma
from nhsvm.weights import shared_weights

_EXACT = 300  # columns of a DAG up to which the interior-point method takes milliseconds
_ROUNDS = (300, 30)  # of raising prices on larger ones: the first time, and later


class Budget:
    """The weights of columns.

    Parameters
    ----------
    graph : Graph
    columns : Columns
        Nodes that may have weight; every leaf is one of them.
    """

    def __init__(self, graph: Graph, columns: Columns) -> None:
        self.graph, self.columns = graph, columns
        self._prices: FloatArray | None = None

    @cached_property
    def spread(self) -> float:
        """What sums over paths and columns may be wrong by, relative to them."""
        n_columns, longest = float(self.columns.n_columns), float(self.columns.longest)
        return (n_columns + 16.0) * gamma(float(self.columns.n_leaves) + longest + 16.0)

    def excess(self, alpha: FloatArray) -> float:
        """Σ_{n∈Ā(l)} α_n of the leaf where it is largest, rounded up, if that is more than one."""
        return max(1.0, float((self._paths @ alpha).max(initial=0.0)) * (1.0 + self.spread))

    def best(self, squared_norms: FloatArray) -> FloatArray:
        """argmin_α Σ_n ‖U_n‖²/α_n (Eq. 20), on a large DAG nearly; an inner column with U_n = 0 gets nothing."""
        if not self.graph.is_tree and self.columns.n_columns > _EXACT:
            return self._nearly_best(squared_norms)
        full = np.zeros(self.graph.n_nodes)
        full[self.columns.nodes] = squared_norms
        return shared_weights(self.graph, full)[self.columns.nodes]

    def _nearly_best(self, squared_norms: FloatArray) -> FloatArray:
        """The same by prices λ of leaves, which are kept for the next time.

        The dual of Eq. 20 is max_λ 2 Σ_n √(B_n Σ_{l below n} λ_l) − Σ λ with α_n = √(B_n / Σ_{l below n} λ_l), and
        √ being concave, multiplying every price by the squared sum of α on its path never lowers it.
        """
        paths, norms = self._paths, squared_norms
        rounds = _ROUNDS[self._prices is not None]
        prices = np.full(paths.shape[0], float(norms.sum()) or 1.0) if self._prices is None else self._prices
        for _ in range(rounds):
            alpha = self._at(norms, prices)
            prices = np.maximum(prices * (paths @ alpha) ** 2, 1e-300)
        self._prices = prices
        return self.filled(self._at(norms, prices))

    def _at(self, squared_norms: FloatArray, prices: FloatArray) -> FloatArray:
        found: FloatArray = np.sqrt(squared_norms / np.maximum(self._paths.T @ prices, 1e-300))
        return found

    def filled(self, sizes: FloatArray) -> FloatArray:
        """Weights that are near some positive numbers: every node divides by the largest sum of a path through it."""
        by_column = self._paths_by_column
        sums = self._paths @ sizes
        largest = np.maximum.reduceat(sums[by_column.indices], by_column.indptr[:-1])
        alpha: FloatArray = np.divide(sizes, largest, out=np.zeros(len(sizes)), where=largest > 0)
        alpha[self._own] += np.maximum(1.0 - self._paths @ alpha, 0.0)  # leaves take what is left
        return alpha

    def most(self, values: FloatArray) -> float:
        """max_α Σ_n α_n v_n for v ≥ 0, or a little more: on a DAG, what HiGHS's prices prove."""
        if self.graph.is_tree:
            return self._most_on_tree(values)
        largest = float(values.max(initial=0.0))
        if largest == 0.0:
            return 0.0
        found = linprog(-values / largest, A_ub=self._paths, b_ub=np.ones(self.columns.n_leaves), method="highs")
        marginals = getattr(found.get("ineqlin"), "marginals", None)
        prices = values[self._own] if marginals is None else -largest * marginals
        return self._proved(values, np.maximum(prices, 0.0))

    def about(self, values: FloatArray, squared_norms: FloatArray, best: FloatArray) -> float:
        """The same, or on a DAG a bound that costs nothing, and is tight where α is right.

        At the optimum of Eq. 20 the price of a leaf's unit of weight is λ_l = ‖U_l‖²/α_l².
        """
        if self.graph.is_tree:
            return self._most_on_tree(values)
        if self._prices is not None:
            return self._proved(values, self._prices)
        norms, alpha = squared_norms[self._own], best[self._own]
        return self._proved(values, np.divide(norms, alpha**2, out=np.zeros(len(alpha)), where=alpha > 0))

    def _proved(self, values: FloatArray, prices: FloatArray) -> float:
        """A bound of Σ α v from prices λ ≥ 0: Σ λ if Σ_{l below n} λ_l ≥ v_n for all n.

        Prices that are too low are raised, by a factor for all or by what is missing at each node, whichever is less.
        """
        sums = self._paths.T @ prices
        total = float(prices.sum())
        added = total + float(np.maximum(values - sums, 0.0).sum())
        if (values[sums == 0] > 0).any():
            return added
        ratio = np.divide(values, sums, out=np.zeros(len(sums)), where=sums > 0)
        return min(added, total * float(ratio.max(initial=0.0)))

    @cached_property
    def _paths(self) -> sp.csr_array:
        indptr, indices = self.columns.paths
        return sp.csr_array((np.ones(len(indices)), indices, indptr), (self.columns.n_leaves, self.columns.n_columns))

    @cached_property
    def _paths_by_column(self) -> sp.csc_array:
        return self._paths.tocsc()

    @cached_property
    def _own(self) -> IntArray:
        """The column of every leaf itself, which is the last on its path."""
        return self.columns.paths.indices[self.columns.paths.indptr[1:] - 1]

    def _most_on_tree(self, values: FloatArray) -> float:
        """Σ over the roots of h(n) = max(v_n, Σ_children h): all of a budget at n, or all of it passed on."""
        graph = self.graph
        own, below = np.zeros(graph.n_nodes), np.zeros(graph.n_nodes)
        own[self.columns.nodes] = values
        for nodes in graph.levels_up():
            best = np.maximum(own[nodes], below[nodes])
            if nodes.start == 0:
                return float(best.sum())
            np.add.at(below, graph.parents.rows(np.arange(nodes.start, nodes.stop)).indices, best)
        return 0.0
