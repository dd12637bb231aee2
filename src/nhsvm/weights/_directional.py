"""Eq. 6 with the directional constraint α_child ≥ α_parent, or with sums in a range (Eq. 8)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy.graph import BoolArray, FloatArray, Graph, IntArray
from nhsvm.weights._fold import paths_above, same_parents
from nhsvm.weights._powers import minimise_powers


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
