"""Weights that are best for given node vectors (Eq. 20, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nhsvm.checks import node_values
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import Graph
from nhsvm.typing import BoolArray, FloatArray
from nhsvm.weights.fold import Core, core_of, folded_up, tree_like, weights_down
from nhsvm.weights.interior import Inverses, minimise


@dataclass(frozen=True)
class Shared:
    """Eq. 20:  min Σ_n ‖U_n‖²/α_n  s.t.  Σ_{n∈Ā(l)} α_n ≤ 1 for every leaf l,  α ≥ 0.

    On a tree by Algorithm 1 (corrected), O(M). With B_n = ‖U_n‖² and N_n/l the least cost of the subtree of n at budget
    l: a leaf has N = B; an inner node with S = Σ N over its children takes the share k = √B/(√B + √S) and has
    N = (√B + √S)²; α = l·k from the roots down. On a DAG tree-like parts fold by that rule, and the rest is solved by
    an interior-point method with a proved relative gap of at most 1e-8 (1e-12 as a rule).

    A node with U_n = 0 gets no weight as long as it has children; a leaf gets all that the nodes above it leave. So
    where nothing below a node has a vector and every split is optimal, all of it goes to the leaves. Nodes above every
    leaf are treated like all others: they have weight exactly if they have a vector.

    Parameters
    ----------
    squared_norms : array of n_nodes
        ‖U_n‖², aligned with ``hierarchy.nodes``.
    """

    squared_norms: npt.ArrayLike

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        return shared_weights(hierarchy.graph, node_values(self.squared_norms, hierarchy, "squared_norms"))


def shared_weights(graph: Graph, squared_norms: FloatArray) -> FloatArray:
    """α of Eq. 20 for a graph; see :class:`Shared`."""
    scale = squared_norms.max()
    if scale == 0:
        return graph.is_leaf.astype(float)
    own = squared_norms / scale
    folded = tree_like(graph)
    cost, share = _costs_up(graph, folded, own)
    budget = np.ones(graph.n_nodes)
    alpha = np.zeros(graph.n_nodes)
    core = core_of(graph, folded, own == 0)
    if len(core.inner):
        group_cost: FloatArray = np.bincount(core.group, weights=cost[core.tops]).astype(float)
        alpha[core.inner], group_budget = _solve_core(core, own[core.inner], group_cost)
        budget[core.tops] = group_budget[core.group]
    return weights_down(graph, folded, share, 1 - share, budget, alpha)


def _costs_up(graph: Graph, folded: BoolArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
    """N_n and k_n of the folded nodes."""
    cost = own.copy()
    share = np.ones(graph.n_nodes)
    for inner, below in folded_up(graph, folded):
        mine, theirs = np.sqrt(own[inner]), np.sqrt(np.add.reduceat(cost[below.indices], below.indptr[:-1]))
        total = mine + theirs
        share[inner] = np.divide(mine, total, out=np.zeros(len(inner)), where=total > 0)
        cost[inner] = total**2
    return cost, share


def _solve_core(core: Core, own: FloatArray, group_cost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of the core's inner nodes, all with a vector, and what they leave for each group of folded subtrees."""
    n = len(own)
    reach = np.asarray(core.paths.sum(axis=0)).ravel()
    start = np.sqrt(own / reach)  # makes B/α² the same multiple of ``reach`` everywhere, so one multiplier suits all
    start *= 0.5 / (core.paths @ start).max()
    left = 1 - core.paths @ start
    multiplier = 2 * max((group_cost / left**2).max(), (own / (start**2 * reach)).max())
    found = minimise(
        Inverses(np.concatenate([own, group_cost])),
        -core.paths,
        np.ones(len(group_cost)),
        start,
        np.full(len(group_cost), -multiplier),
    )
    return found.y[:n], found.y[n:]
