"""Lengths of the shortest paths between nodes through a common ancestor."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.hierarchy import Graph, Ragged
from nhsvm.hierarchy.graph import FloatArray, IntArray

_STEP = 2**17  # pairs that are compared at a time

Lengths = npt.NDArray[np.int64]


def path_lengths(graph: Graph, a: IntArray, b: IntArray) -> FloatArray:
    """d(a, b) = min over common ancestors c of up(a, c) + up(b, c), for each pair of node numbers.

    up(n, c) is the number of edges on the shortest way from n up to c, and a node is an ancestor of itself. If there
    are several roots, an unnamed node above them is an ancestor of everything.
    """
    keys, place = np.unique(a.astype(np.int64) * graph.n_nodes + b, return_inverse=True)
    found = np.empty(len(keys), dtype=np.int64)
    indptr, indices = graph.ancestors
    above = sp.csr_array((ways_up(graph) + 1, indices, indptr), shape=(graph.n_nodes, graph.n_nodes))
    # the roots have the lowest numbers: from each node the shortest way up to one, and one step further
    to_top = np.minimum.reduceat(np.where(indices < graph.n_roots, above.data, np.iinfo(np.int32).max), indptr[:-1])
    for start in range(0, len(keys), _STEP):
        part = slice(start, start + _STEP)
        found[part] = _lengths(above, to_top, *np.divmod(keys[part], graph.n_nodes))
    return found[place].astype(np.float64)


def _lengths(above: sp.csr_array, to_top: IntArray, a: Lengths, b: Lengths) -> Lengths:
    """``above[n, c]`` is up(n, c) + 1, so that no stored number is zero."""
    lengths = to_top[a].astype(np.int64) + to_top[b]
    from_a, from_b = above[a], above[b]
    both = (from_a.multiply(from_b.astype(bool)) + from_b.multiply(from_a.astype(bool))).tocsr()
    rows = np.flatnonzero(np.diff(both.indptr))
    if len(rows):
        through = np.minimum.reduceat(both.data, both.indptr[rows]) - 2
        lengths[rows] = np.minimum(lengths[rows], through)
    return lengths


def ways_up(graph: Graph) -> IntArray:
    """up(n, c) for every entry c of every list of ``graph.ancestors``."""
    ancestors = graph.ancestors
    if graph.is_tree:
        return np.repeat(graph.level, ancestors.sizes()) - graph.level[ancestors.indices]
    n = graph.n_nodes
    ways = np.full(len(ancestors.indices), np.iinfo(np.int32).max, dtype=np.int32)
    ways[ancestors.indptr[1:] - 1] = 0  # a node itself is the last of its list
    entry = Ragged(ancestors.indptr, np.arange(len(ways), dtype=np.int32))
    for nodes in graph.levels():
        own = np.arange(nodes.start, nodes.stop)
        up = graph.parents.rows(own)
        theirs = entry.rows(up.indices)
        owner = np.repeat(up.owners(), theirs.sizes()).astype(np.int64)
        mine = ancestors.rows(own)
        keys = mine.owners().astype(np.int64) * n + mine.indices
        place = np.searchsorted(keys, owner * n + ancestors.indices[theirs.indices])
        np.minimum.at(ways, ancestors.indptr[nodes.start] + place, ways[theirs.indices] + 1)
    return ways
