"""Eq. 6 on a tree with both the directional constraint and sums in a range: fold, and solve the rest in O(M) a step.

There is no closed form: a weight near the top may have to balance short paths, which gain from more of it, against long
ones, which it makes dearer until they are at the upper end of the range; for general ρ that is an equation without a
formula, and such balances nest. But two things make the problem small and easy.

**Even subtrees fold.** If all leaves of a subtree of N nodes are k nodes below its top (inclusive), all its weights are
equal, a = max(p, (1−s)/k), where s is the sum and p the weight above it. By induction, its children cost
Σ N_c max(t, (1−s−t)/(k−1))^ρ when the top takes t; as long as t < (1−s)/k, the cost falls in t, since
t^{ρ−1} < ((1−s−t)/(k−1))^{ρ−1} and Σ N_c ≥ k−1. So such a subtree is a leaf that costs N-fold and takes k steps, and
the upper end of the range asks of it what it asks of a leaf: s + k·a ≤ high.

**Newton systems have no fill**, see :mod:`nhsvm.weights._tree_system`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy.graph import BoolArray, FloatArray, Graph, PtrArray
from nhsvm.weights._directional import pick
from nhsvm.weights._powers import minimise_powers
from nhsvm.weights._tree_system import RangeTree, sums


def solve_range_tree(graph: Graph, out: BoolArray, rho: float, high: float) -> FloatArray:
    """Eq. 6 with Eq. 8:  min Σ α^ρ  s.t.  1 ≤ Σ_{n∈Ā(l)} α_n ≤ high  and  α_child ≥ α_parent,  on a tree."""
    depth, size, even = _even_subtrees(graph)
    above = np.full(graph.n_nodes, -1)
    parent, child = graph.edges()
    above[child] = np.where(out[parent], -1, parent)
    alpha = np.where(out, 0.0, 1 / depth)  # so much for an even tree with nothing above it
    inner = np.flatnonzero(~even & ~out)
    if len(inner):
        top = np.flatnonzero(even & (above >= 0) & ~even[above])
        # tops of the same depth below the same parent have the same weight and share a variable
        base = graph.n_levels + 1
        key, group = np.unique(above[top] * base + depth[top], return_inverse=True)
        column = np.full(graph.n_nodes + 1, -1)
        column[inner] = np.arange(len(inner))
        starts = np.unique(np.searchsorted(inner, graph.level_ptr)).tolist()
        levels = [slice(*ends) for ends in pairwise(starts)]
        tree = RangeTree(levels, column[above[inner]], column[key // base], (key % base).astype(float))
        x = _solve_folded(tree, sums(group, size[top], len(key)), rho, high)
        alpha[inner] = x[: len(inner)]
        alpha[top] = x[len(inner) :][group]
    inside = (above >= 0) & even[above]
    for nodes in graph.levels():
        here = np.arange(nodes.start, nodes.stop)[inside[nodes]]
        alpha[here] = alpha[above[here]]
    return alpha


def _even_subtrees(graph: Graph) -> tuple[PtrArray, FloatArray, BoolArray]:
    """Of every subtree: nodes on the longest way down, nodes at all, and whether all leaves are equally deep."""
    longest = np.ones(graph.n_nodes, dtype=np.int64)
    shortest = np.where(graph.is_leaf, 1, graph.n_levels + 1)
    for nodes in list(graph.levels_up())[:-1]:
        up = graph.parents.rows(np.arange(nodes.start, nodes.stop)).indices
        np.maximum.at(longest, up, longest[nodes] + 1)
        np.minimum.at(shortest, up, shortest[nodes] + 1)
    return longest, graph.sum_up(np.ones(graph.n_nodes)), longest == shortest


def _solve_folded(tree: RangeTree, size: FloatArray, rho: float, high: float) -> FloatArray:
    """Weights of the inner nodes and of the groups of folded subtrees, ``size`` nodes in each."""
    n, m = len(tree.parent), len(size)
    paths, level = _paths(tree)
    whole = sp.hstack([paths, sp.diags_array(tree.steps)]).tocsr()
    rising = np.arange(tree.levels[0].stop, n + m)
    parent = np.concatenate([tree.parent, tree.top_parent])[rising]
    rise = pick(rising, n + m) - pick(parent, n + m)
    # weights above 1 never pay (cutting them to 1 is feasible and cheaper), so neither do longer sums than this
    high = min(high, float((paths.sum(axis=1) + tree.steps).max()) + 2)
    # a strictly feasible start: weights that grow with the level, and leave tops enough to grow further
    rank = len(tree.levels) + level
    start = 0.5 * rank / (paths @ rank + 2 * len(tree.levels) * tree.steps).max()
    slack = min((high - 1) / 2, 0.5)
    x = np.concatenate([start, (1 + slack - paths @ start) / tree.steps])
    w = np.repeat([-1 / slack, -1 / slack - 1, -0.5], [m, m, len(rising)])
    f = np.repeat([-1.0, high, 0.0], [m, m, len(rising)])
    log_c = np.concatenate([np.zeros(n), np.log(size), np.full(len(f), -np.inf)])
    return minimise_powers(log_c, rho, sp.vstack([whole, -whole, rise]).tocsr(), f, x, w, tree).y[: n + m]


def _paths(tree: RangeTree) -> tuple[sp.csr_array, FloatArray]:
    """0/1 matrix: the inner nodes above each top; and the levels of the inner nodes."""
    m = len(tree.top_parent)
    rows, columns = [np.arange(m)], [tree.top_parent]
    for _ in tree.levels[1:]:
        up = tree.parent[columns[-1]]
        rows.append(rows[-1][up >= 0])
        columns.append(up[up >= 0])
    row, column = np.concatenate(rows), np.concatenate(columns)
    level = np.repeat(np.arange(float(len(tree.levels))), [here.stop - here.start for here in tree.levels])
    return sp.csr_array((np.ones(len(row)), (row, column)), shape=(m, len(tree.parent))), level
