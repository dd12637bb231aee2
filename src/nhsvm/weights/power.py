"""Weights that minimise a sum of powers (Eq. 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nhsvm.errors import NotSolvedError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import BoolArray, FloatArray, Graph
from nhsvm.weights._directional import even_tree, solve_constrained
from nhsvm.weights._fold import core_of, tree_like
from nhsvm.weights._options import check_flag, check_total, is_number, left_out
from nhsvm.weights._powers import minimise_powers
from nhsvm.weights._range_tree import solve_range_tree

_STEEPEST = 1e7  # above, ratios of weights have too few digits for their powers
_NARROW = 1e-6  # the narrowest range of sums that can be told from none


@dataclass(frozen=True)
class Power:
    """Eq. 6:  min Σ_n α_n^ρ  s.t.  Σ_{n∈Ā(l)} α_n = 1 for every leaf l,  α ≥ 0.

    Closed form on a tree, O(M). Let c_n·l^ρ be the least cost of the subtree of n when the budget l is left for its
    paths. A leaf has c = 1. An inner node takes the share k of the budget: k^ρ + S·(1−k)^ρ is least, with S = Σ c over
    the children, at k/(1−k) = S^{1/(ρ−1)}, and then c = k^{ρ−1}. So c goes up the tree and α = l·k comes down it; both
    in logarithms, since S^{1/(ρ−1)} overflows for ρ near 1.

    On a DAG, tree-like parts fold by the same rule and the rest is solved by an interior-point method, which meets the
    constraints to rounding and proves ‖α‖_ρ to a relative gap of 1e-8 at the most (1e-11 as a rule). This is what is
    guaranteed, for every ρ; what it says of a single weight depends on ρ. Where α_n^ρ is less than the gap's part of
    Σ α^ρ, nothing: at ρ = 100 these are weights below 4/5 of the largest, and for ρ → ∞ all that are below it, since
    then only max α is minimised. Such weights are taken from the middle of what is left open.

    Parameters
    ----------
    rho : float
        ρ > 1. Small ρ moves weight to the top, where it is shared most; ρ → ∞ evens it out.
    directional : bool
        Add α_child ≥ α_parent for every edge. On a tree the optimum then does not depend on ρ: each node takes its
        share of what is left, divided by the number of nodes on the longest way down. (Not so with a range ``total``:
        then every node has an equation of its own, and the result the same proof as on a DAG.)
    total : (low, high)
        Range of the sum of weights on every path, Eq. 8; the paper has (1, 1.5) for DAGs. On a tree without
        ``directional`` the sums are always ``low``: a heavier path could save by a lighter leaf.
    include_common : bool
        Give weight also to nodes above every leaf. They cancel from every comparison of labels, yet would take most of
        the weight.
    """

    rho: float = 2.0
    directional: bool = False
    total: tuple[float, float] = (1.0, 1.0)
    include_common: bool = False

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        if not is_number(self.rho) or not 1 < self.rho < math.inf:
            raise OptionError(f"rho must be a finite number > 1, not {self.rho!r}")
        check_flag(self.directional, "directional")
        low, high = check_total(self.total)
        if 0 < high / low - 1 < _NARROW:
            raise OptionError(f"total={self.total!r} is narrower than {_NARROW:.0e}: make both ends equal")
        graph = hierarchy.graph
        out = left_out(graph, self.include_common)
        try:
            return low * self._unit_sums(graph, out, high / low)  # the problem is homogeneous in the sums
        except NotSolvedError as error:
            raise NotSolvedError(f"{self} on {hierarchy}: {error}; another rho may do") from None

    def _unit_sums(self, graph: Graph, out: BoolArray, high: float) -> FloatArray:
        """α with sums of 1 to ``high``."""
        if not self.directional and (high == 1 or graph.is_tree):
            return _solve_folded(graph, out, float(self.rho))
        if graph.is_tree and high == 1:
            return even_tree(graph, out)
        if graph.is_tree and self.rho <= _STEEPEST:
            return solve_range_tree(graph, out, float(self.rho), high)
        return solve_constrained(graph, out, float(self.rho), self.directional, high)


def _solve_folded(graph: Graph, out: BoolArray, rho: float) -> FloatArray:
    """Closed form where the graph is tree-like, interior-point method on the core."""
    folded = tree_like(graph)
    log_cost, log_ratio = _costs_up(graph, folded, out, rho)
    budget = np.ones(graph.n_nodes)
    alpha = np.zeros(graph.n_nodes)
    core = core_of(graph, folded, out)
    n = len(core.inner)
    if n:
        group_cost = np.full(core.paths.shape[0], -np.inf)
        np.logaddexp.at(group_cost, core.group, log_cost[core.tops])
        reach = np.asarray(core.paths.sum(axis=0)).ravel()
        start = 0.5 / reach / (core.paths @ (1 / reach)).max()
        found = minimise_powers(
            np.concatenate([np.zeros(n), group_cost]),
            rho,
            -core.paths,
            np.ones(len(group_cost)),
            start,
            np.full(len(group_cost), -1.0),
        )
        alpha[core.inner] = found.y[:n]
        budget[core.tops] = found.y[n:][core.group]
    return _weights_down(graph, folded, log_ratio, budget, alpha)


def _costs_up(graph: Graph, folded: BoolArray, out: BoolArray, rho: float) -> tuple[FloatArray, FloatArray]:
    """Logarithms of c_n and of k_n/(1−k_n) of the folded nodes."""
    q = 1 / (rho - 1)
    log_cost = np.zeros(graph.n_nodes)
    log_ratio = np.full(graph.n_nodes, np.inf)  # a leaf takes all that is left
    for nodes in graph.levels_up():
        inner = np.arange(nodes.start, nodes.stop)[(folded & ~graph.is_leaf)[nodes]]
        if not len(inner):
            continue
        below = graph.children.rows(inner)
        log_sum = np.logaddexp.reduceat(log_cost[below.indices], below.indptr[:-1])
        log_ratio[inner] = np.where(out[inner], -np.inf, q * log_sum)
        log_share = -np.logaddexp(0, -q * log_sum)
        log_cost[inner] = np.where(out[inner], log_sum, log_share / q)
    return log_cost, log_ratio


def _weights_down(
    graph: Graph, folded: BoolArray, log_ratio: FloatArray, budget: FloatArray, alpha: FloatArray
) -> FloatArray:
    """α = budget · k in the folded parts, from their tops down."""
    share = np.exp(-np.logaddexp(0, -log_ratio))
    rest = np.exp(-np.logaddexp(0, log_ratio))  # 1 − k without cancellation
    for nodes in graph.levels():
        here = np.arange(nodes.start, nodes.stop)[folded[nodes]]
        below = graph.children.rows(here)
        budget[below.indices] = np.repeat(budget[here] * rest[here], below.sizes())
    return np.where(folded, budget * share, alpha)
