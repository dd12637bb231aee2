"""Eq. 6 on a tree with both the directional constraint and sums in a range.

There is no closed form: a weight near the top may have to balance short paths, which gain from more of it, against long
ones, which it makes dearer until they are at the upper end of the range; for general ρ that is an equation without a
formula. But it is one equation with one unknown for each node, see :mod:`nhsvm.weights._reach`, and the upper end takes
little more, see :mod:`nhsvm.weights._range_sums`. And large parts of most trees have a closed form.

**Even subtrees fold.** If all leaves of a subtree of N nodes are k nodes below its top (inclusive), all its weights are
equal, a = max(p, (1−s)/k), where s is the sum and p the weight above it. By induction, its children cost
Σ N_c max(t, (1−s−t)/(k−1))^ρ when the top takes t; as long as t < (1−s)/k, the cost falls in t, since
t^{ρ−1} < ((1−s−t)/(k−1))^{ρ−1} and Σ N_c ≥ k−1. So such a subtree is a leaf that costs N-fold and takes k steps, and
the upper end of the range asks of it what it asks of a leaf: s + k·a ≤ high.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from nhsvm.hierarchy.graph import BoolArray, FloatArray, Graph, PtrArray
from nhsvm.weights._range_sums import solve_range
from nhsvm.weights._reach import FoldedTree


def solve_range_tree(graph: Graph, out: BoolArray, rho: float, high: float) -> FloatArray:
    """Eq. 6 with Eq. 8:  min Σ α^ρ  s.t.  1 ≤ Σ_{n∈Ā(l)} α_n ≤ high  and  α_child ≥ α_parent,  on a tree."""
    above = np.full(graph.n_nodes, -1)
    parent, child = graph.edges()
    above[child] = parent
    height, size, even = _even_subtrees(graph, above)
    above[child] = np.where(out[parent], -1, parent)
    alpha = np.where(out, 0.0, 1 / height)  # so much for an even tree with nothing above it
    inner = np.flatnonzero(~even & ~out)
    top = np.flatnonzero(even & (above >= 0) & ~even[above])
    if len(inner):
        tree, of_inner, of_top = _folded(graph, above, inner, top, height, size)
        weight = solve_range(tree, rho, high).y
        alpha[inner], alpha[top] = weight[of_inner], weight[of_top]
    inside = (above >= 0) & even[above]
    for here in graph.levels():
        below = np.arange(here.start, here.stop)[inside[here]]
        alpha[below] = alpha[above[below]]
    return alpha


def _even_subtrees(graph: Graph, parent: PtrArray) -> tuple[PtrArray, FloatArray, BoolArray]:
    """Of every subtree: nodes on the longest way down, nodes at all, and whether all leaves are equally deep."""
    longest = np.ones(graph.n_nodes, dtype=np.int64)
    shortest = np.where(graph.is_leaf, 1, graph.n_levels + 1)
    size = np.ones(graph.n_nodes)
    for here in list(graph.levels_up())[:-1]:
        up = parent[here]
        np.maximum.at(longest, up, longest[here] + 1)
        np.minimum.at(shortest, up, shortest[here] + 1)
        np.add.at(size, up, size[here])
    return longest, size, longest == shortest


def _folded(
    graph: Graph, above: PtrArray, inner: PtrArray, top: PtrArray, height: PtrArray, size: FloatArray
) -> tuple[FoldedTree, PtrArray, PtrArray]:
    """The tree of inner nodes and tops, and where they are in it.

    Tops of the same height below the same parent have the same weight, and are one.
    """
    base, n = graph.n_levels + 1, len(inner)
    key, group = np.unique(above[top] * base + height[top], return_inverse=True)
    up = key // base
    level = np.concatenate([graph.level[inner], graph.level[up] + 1])
    is_top = np.arange(len(level)) >= n
    order = np.lexsort((is_top, level))
    position = np.argsort(order)
    column = np.full(graph.n_nodes + 1, -1)  # the last for −1, above the roots
    column[inner] = position[:n]
    starts = np.searchsorted(level[order], np.arange(level.min(), level.max() + 2)).tolist()
    tree = FoldedTree(
        levels=[slice(*ends) for ends in pairwise(starts)],
        is_top=is_top[order],
        parent=column[np.concatenate([above[inner], up])][order],
        level=level[order].astype(np.float64),
        height=np.concatenate([height[inner], key % base])[order].astype(np.float64),
        size=np.concatenate([np.ones(n), np.bincount(group, size[top], len(key))])[order],
    )
    return tree, position[:n], position[n:][group]
