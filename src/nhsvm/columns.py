"""Labels as sets of columns of U: the nodes that carry weight, and the path of every leaf among them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.hierarchy.graph import Graph, Ragged
from nhsvm.typing import FloatArray, IntArray, PtrArray


@dataclass(frozen=True, eq=False)
class Columns:
    """The nodes with α_n > 0, which are the columns of U; a node without weight has U_n = 0 and needs none.

    Attributes
    ----------
    nodes : array of n_columns
        Node number of every column, ascending, so parents come first.
    alpha : array of n_columns
        Their weights.
    paths : Ragged
        For every leaf, the columns of Ā(l), ascending.
    parent : array of n_columns
        On a tree, the column next above, or −1; empty on a DAG, where sums over ancestors do not nest.
    leaf_column : array of n_leaves
        On a tree, the last column on a leaf's path, or −1; empty on a DAG.
    """

    nodes: IntArray
    alpha: FloatArray
    paths: Ragged
    parent: IntArray
    leaf_column: IntArray

    @property
    def n_columns(self) -> int:
        return len(self.nodes)

    @property
    def n_leaves(self) -> int:
        return len(self.paths.indptr) - 1

    def path_matrix(self, dtype: npt.DTypeLike = np.float64) -> sp.csr_array:
        """1 where a column is on the path of a leaf: (n_leaves, n_columns)."""
        ones = np.ones(len(self.paths.indices), dtype)
        return sp.csr_array((ones, self.paths.indices, self.paths.indptr), (self.n_leaves, self.n_columns))

    @cached_property
    def nests(self) -> bool:
        """A tree where every leaf has a column that no other leaf has: block steps are then exact."""
        last = self.leaf_column
        alone = len(last) > 0 and bool((last >= 0).all()) and len(np.unique(last)) == len(last)
        return alone and not np.isin(last, self.parent).any()

    @cached_property
    def flat(self) -> bool:
        """Every leaf is its own column, in order: the scores of columns are those of leaves."""
        return np.array_equal(self.paths.indices, np.arange(self.n_leaves)) and self.longest == 1

    @cached_property
    def head(self) -> int:
        """Columns up to the last one that is inside a path, 0 if none is; all beyond are the last ones of paths."""
        inside = np.ones(len(self.paths.indices), dtype=bool)
        inside[self.paths.indptr[1:][self.paths.sizes() > 0] - 1] = False
        return int(self.paths.indices[inside].max(initial=-1)) + 1

    @cached_property
    def longest(self) -> int:
        """Columns on the longest path."""
        return int(self.paths.sizes().max())


def make_columns(graph: Graph, node_weights: FloatArray) -> Columns:
    """The columns of a hierarchy under weights α."""
    carries = node_weights > 0
    nodes = np.flatnonzero(carries).astype(np.int32)
    position = np.cumsum(carries, dtype=np.int64).astype(np.int32) - 1
    up = graph.leaf_ancestors
    kept = carries[up.indices]
    indptr: PtrArray = np.concatenate([[0], np.cumsum(kept)])[up.indptr].astype(np.int64)
    paths = Ragged(indptr, position[up.indices[kept]].astype(np.int32))
    empty = np.zeros(0, dtype=np.int32)
    parent, leaf_column = (empty, empty) if not graph.is_tree else _nearest(graph, carries, position, nodes)
    return Columns(nodes, node_weights[nodes].astype(np.float64), paths, parent, leaf_column)


def _nearest(graph: Graph, carries: np.ndarray, position: IntArray, nodes: IntArray) -> tuple[IntArray, IntArray]:
    """On a tree: the column of the nearest node with weight, strictly above each column, and at or above each leaf."""
    at = np.full(graph.n_nodes, -1, dtype=np.int32)  # at or above
    above = np.full(graph.n_nodes, -1, dtype=np.int32)
    for level in graph.levels():
        here = np.arange(level.start, level.stop)
        if level.start:
            above[here] = at[graph.parents.rows(here).indices]
        at[here] = np.where(carries[here], position[here], above[here])
    return above[nodes], at[graph.leaves]


def column_parents(graph: Graph, columns: Columns) -> Ragged:
    """For every column, the columns next above it, ascending.

    Nodes without weight are contracted: what is below them is below their parents. A column beside a longer way up says
    nothing that the longer way does not, and is left out.
    """
    carries = np.zeros(graph.n_nodes, dtype=bool)
    carries[columns.nodes] = True
    position = np.cumsum(carries) - 1
    has = carries.tolist()
    above: list[set[int]] = []  # of every node, the nearest with weight
    for up in np.split(graph.parents.indices, graph.parents.indptr[1:-1]):
        above.append(set().union(*({p} if has[p] else above[p] for p in up.tolist())))
    lists = []
    for node in columns.nodes.tolist():
        near = above[node]
        if len(near) > 1:
            near = near.difference(*(graph.ancestors.row(p)[:-1].tolist() for p in near))
        lists.append(sorted(near))
    indptr: PtrArray = np.concatenate([[0], np.cumsum([len(near) for near in lists])]).astype(np.int64)
    flat = np.array([p for near in lists for p in near], dtype=np.int64)
    return Ragged(indptr, position[flat].astype(np.int32))
