"""Weights that minimise a sum of powers (Eq. 6), with α_child ≥ α_parent or sums in a range (Eq. 8) if asked for.

Closed forms stand first: trees and tree-like parts of DAGs, and the directional optimum on trees. What is left goes to
an interior-point method: :mod:`~nhsvm.weights.interior` up to ρ = 8, :mod:`~nhsvm.weights.steep` above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import NotSolvedError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import Graph
from nhsvm.sizes import is_number
from nhsvm.typing import BoolArray, FloatArray, IntArray
from nhsvm.weights.fold import core_of, paths_above, same_parents, tree_like
from nhsvm.weights.interior import Powers, Solution, minimise
from nhsvm.weights.schemes import check_flag, check_total, left_out
from nhsvm.weights.steep import minimise_norm

STEEP = 8.0  # ρ above which costs span too many orders of magnitude, and the norm is minimised instead
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
        then it is solved and proved as on a DAG.)
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


def even_tree(graph: Graph, out: BoolArray) -> FloatArray:
    """The directional optimum of Eq. 6 on a tree, for every ρ > 1 at once: α_n = budget_n / height_n.

    ``height`` counts the nodes on the longest way down, ``budget`` is 1 minus the weights above. Why: a root cannot
    have more than 1/height, since nothing on its longest path has less. And it wants no less: with S the cost of the
    children's subtrees at budget 1, the cost t^ρ + S(1−t)^ρ falls until t/(1−t) = S^{1/(ρ−1)}, and S is at least
    (height−1)^{1−ρ}, the cost of that one path. A child of height h then gets (1 − 1/height)/h ≥ 1/height, so no
    constraint is violated.
    """
    height = np.ones(graph.n_nodes)
    budget = np.ones(graph.n_nodes)
    for nodes in graph.levels_up():
        up = graph.parents.rows(np.arange(nodes.start, nodes.stop))
        np.maximum.at(height, up.indices, height[nodes][up.owners()] + 1)
    for nodes in graph.levels():
        below = graph.children.rows(np.arange(nodes.start, nodes.stop))
        left = np.where(out[nodes], budget[nodes], budget[nodes] * (1 - 1 / height[nodes]))
        budget[below.indices] = left[below.owners()]
    return np.where(out, 0.0, budget / height)


def solve_constrained(graph: Graph, out: BoolArray, rho: float, directional: bool, high: float) -> FloatArray:
    """Eq. 6 with Eq. 8:  min Σ α^ρ  s.t.  1 ≤ Σ_{n∈Ā(l)} α_n ≤ high,  and α_child ≥ α_parent if ``directional``.

    Leaves with the same parents have the same weight, by symmetry, and share a variable.
    """
    inner = np.flatnonzero(~graph.is_leaf & ~out).astype(np.int32)
    group, first = same_parents(graph, graph.leaves)
    leaf = graph.leaves[first]
    count = np.bincount(group).astype(float)
    paths = paths_above(graph, leaf, inner)
    # a strictly feasible start: small weights that grow with the level, and leaves that take the rest
    rank = graph.level[inner] + 1.0
    start = 0.5 * rank / (paths @ rank + graph.n_levels).max()
    edges = _Edges(graph, inner, leaf) if directional else None
    if high == 1:
        x, rest = _exact_sums(paths, count, start, rho, edges)
    else:
        x, rest = _sums_in_range(paths, count, start, rho, edges, high)
    alpha = np.zeros(graph.n_nodes)
    alpha[inner] = x
    alpha[graph.leaves] = rest[group]
    return alpha


class _Edges:
    """Parent and child columns of the constraints, split by whether the child is an inner node or a leaf."""

    def __init__(self, graph: Graph, inner: IntArray, leaf: IntArray) -> None:
        column = np.full(graph.n_nodes, -1)
        column[inner] = np.arange(len(inner))
        row = np.full(graph.n_nodes, -1)
        row[leaf] = np.arange(len(leaf))
        parent, child = graph.edges()
        among = (column[parent] >= 0) & (column[child] >= 0)
        down = (column[parent] >= 0) & (row[child] >= 0)
        self.inner_parent, self.inner_child = column[parent[among]], column[child[among]]
        self.leaf_parent, self.leaf_child = column[parent[down]], row[child[down]]


def pick(columns: IntArray, n: int) -> sp.csr_array:
    """Rows that pick one variable each."""
    m = len(columns)
    return sp.csr_array((np.ones(m), columns, np.arange(m + 1)), shape=(m, n))


def _exact_sums(
    paths: sp.csr_array, count: FloatArray, start: FloatArray, rho: float, edges: _Edges | None
) -> tuple[FloatArray, FloatArray]:
    """The leaf weight is 1 − (weights above): only inner weights are variables."""
    n, m = len(start), len(count)
    if n == 0:
        return start, np.ones(m)
    rows, f, w = [-paths], [np.ones(m)], [np.full(m, -1.0)]
    if edges is not None:
        rows += [
            pick(edges.inner_child, n) - pick(edges.inner_parent, n),
            -paths[edges.leaf_child] - pick(edges.leaf_parent, n),
        ]
        f += [np.zeros(len(edges.inner_child)), np.ones(len(edges.leaf_child))]
        w += [_shares(edges.inner_child), np.full(len(edges.leaf_child), -0.5)]
    log_c = np.concatenate([np.zeros(n), np.log(count), np.full(sum(map(len, f[1:])), -np.inf)])
    found = minimise_powers(log_c, rho, sp.vstack(rows).tocsr(), np.concatenate(f), start, np.concatenate(w))
    return found.y[:n], found.y[n : n + m]


def _sums_in_range(
    paths: sp.csr_array, count: FloatArray, start: FloatArray, rho: float, edges: _Edges | None, high: float
) -> tuple[FloatArray, FloatArray]:
    """Inner and leaf weights are variables, the two ends of the range are constraints."""
    n, m = len(start), len(count)
    # weights above 1 never pay (cutting them to 1 is feasible and cheaper), so neither do longer sums than this
    high = min(high, float(paths.sum(axis=1).max()) + 2)
    sums = sp.hstack([paths, sp.eye_array(m)]).tocsr()
    slack = min((high - 1) / 2, 0.5)
    x = np.concatenate([start, 1 + slack - paths @ start])
    # the two ends of a narrow range need large multipliers for slack times multiplier to be like elsewhere
    rows, f = [sums, -sums], [np.full(m, -1.0), np.full(m, high)]
    w = [np.full(m, -1 / slack), np.full(m, -1 / slack - 1)]
    if edges is not None:
        child = np.concatenate([edges.inner_child, n + edges.leaf_child])
        parent = np.concatenate([edges.inner_parent, edges.leaf_parent])
        rows.append(pick(child, n + m) - pick(parent, n + m))
        f.append(np.zeros(len(child)))
        w.append(_shares(child))
    log_c = np.concatenate([np.zeros(n), np.log(count), np.full(sum(map(len, f)), -np.inf)])
    found = minimise_powers(log_c, rho, sp.vstack(rows).tocsr(), np.concatenate(f), x, np.concatenate(w))
    return found.y[:n], found.y[n : n + m]


def _shares(child: IntArray) -> FloatArray:
    """Multipliers that add up to −1/2 over the parents of every child, so that those of the paths outweigh them."""
    return -0.5 / np.bincount(child)[child] if len(child) else np.zeros(0)


def minimise_powers(
    log_c: FloatArray,
    rho: float,
    F: sp.csr_array,
    f: FloatArray,
    x: FloatArray,
    w_rest: FloatArray,
) -> Solution:
    """Minimise Σ c_k y_k^ρ over x, where y = (x, F x + f) ≥ 0, for any ρ > 1.

    ``log_c`` are logarithms, since c^{1/ρ} may be an ordinary number where c is none; −inf makes a mere constraint.
    ``x`` and ``w_rest`` are as for :func:`~nhsvm.weights.interior.minimise`. For large ρ, ``value`` and ``gap`` of the
    result are of (Σ c y^ρ)^{1/ρ}.
    """
    if rho <= STEEP:
        return minimise(Powers(np.exp(log_c), rho), F, f, x, w_rest)
    return minimise_norm(log_c, rho, F, f, x)
