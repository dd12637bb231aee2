"""Where a hierarchy is like a tree: subtrees whose α follows in closed form from the budget that reaches their top.

If nothing below a node has a second parent, the best cost of its subtree is a fixed multiple of a fixed power of the
budget l = 1 − Σ α above: c·l^ρ in Eq. 6 and N/l in Eq. 20. So the subtree folds into one leaf with that cost. A tree
folds away wholly; on a DAG what is left is the core, and only the core needs a convex solver. Tops with the same
parents have the same budget and fold into one as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy.graph import Graph, Ragged
from nhsvm.typing import BoolArray, FloatArray, IntArray, PtrArray


@dataclass(frozen=True)
class Core:
    """What is left after folding."""

    inner: IntArray  # its variables: nodes with something below that has two parents
    tops: IntArray  # tops of the folded subtrees that hang from it
    group: PtrArray  # of every top; those with equal parents have equal numbers 0 .. n_groups − 1
    paths: sp.csr_array  # 0/1, (n_groups, n_inner): the ``inner`` nodes above each group


def tree_like(graph: Graph) -> BoolArray:
    """Mask of the nodes below which no node has a second parent."""
    out = np.ones(graph.n_nodes, dtype=bool)
    several = graph.parents.sizes() > 1
    for nodes in graph.levels_up():
        numbers = np.arange(nodes.start, nodes.stop)
        up = graph.parents.rows(numbers[several[nodes] | ~out[nodes]])
        out[up.indices] = False
    return out


def folded_up(graph: Graph, folded: BoolArray) -> Iterator[tuple[IntArray, Ragged]]:
    """Inner nodes that fold, and their children, level by level from below."""
    for nodes in graph.levels_up():
        inner = np.arange(nodes.start, nodes.stop, dtype=np.int32)[(folded & ~graph.is_leaf)[nodes]]
        if len(inner):
            yield inner, graph.children.rows(inner)


def weights_down(
    graph: Graph, folded: BoolArray, share: FloatArray, rest: FloatArray, budget: FloatArray, alpha: FloatArray
) -> FloatArray:
    """α = budget · share in the folded parts, from their tops down; ``rest`` is 1 − share."""
    for nodes in graph.levels():
        here = np.arange(nodes.start, nodes.stop)[folded[nodes]]
        below = graph.children.rows(here)
        budget[below.indices] = np.repeat(budget[here] * rest[here], below.sizes())
    return np.where(folded, budget * share, alpha)


def core_of(graph: Graph, folded: BoolArray, fixed: BoolArray) -> Core:
    """The core of a graph, ``folded = tree_like(graph)``, without the nodes whose weight is ``fixed`` (at zero)."""
    parent, child = graph.edges()
    hangs = np.zeros(graph.n_nodes, dtype=bool)
    hangs[child[~folded[parent]]] = True
    tops = np.flatnonzero(folded & hangs).astype(np.int32)
    inner = np.flatnonzero(~folded & ~fixed).astype(np.int32)
    group, first = same_parents(graph, tops)
    return Core(inner, tops, group, paths_above(graph, tops[first], inner))


def same_parents(graph: Graph, nodes: IntArray) -> tuple[PtrArray, PtrArray]:
    """Group numbers of ``nodes`` by their set of parents, and for each group the position of its first node."""
    numbers: dict[bytes, int] = {}
    group = np.fromiter(
        (numbers.setdefault(graph.parents.row(n).tobytes(), len(numbers)) for n in nodes), np.int64, len(nodes)
    )
    return group, np.unique(group, return_index=True)[1]


def paths_above(graph: Graph, nodes: IntArray, columns: IntArray) -> sp.csr_array:
    """0/1 matrix: which of ``columns`` lie above (not at) each of ``nodes``, where no column is one of ``nodes``."""
    if not len(nodes):
        return sp.csr_array((0, len(columns)))
    indptr, indices = graph.ancestors.rows(nodes)
    every = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(nodes), graph.n_nodes))
    return every[:, columns].tocsr()
