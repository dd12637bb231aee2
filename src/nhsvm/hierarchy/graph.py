"""The graph G of a label hierarchy as frozen arrays: no labels here, only node numbers.

Nodes are numbered in breadth-first topological order: parents before children, level by level (level = longest path
from a root), siblings next to each other. So a range of numbers is a level, ``range(n_nodes)`` is a topological order,
and a bottom-up or top-down pass is a loop over levels with one array operation each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import HierarchyError
from nhsvm.typing import Array, BoolArray, IntArray, PtrArray

MAX_ENTRIES = 2**29  # of the stored ancestor sets: 2 GiB of node numbers


class Ragged(NamedTuple):
    """Lists of node numbers in CSR form: list ``i`` is ``indices[indptr[i]:indptr[i + 1]]``."""

    indptr: PtrArray
    indices: IntArray

    def row(self, i: int | np.int32 | np.int64) -> IntArray:
        """List ``i`` (a view)."""
        return self.indices[self.indptr[i] : self.indptr[i + 1]]

    def sizes(self) -> PtrArray:
        """Length of every list."""
        return np.diff(self.indptr)

    def last(self) -> IntArray:
        """The last entry of every list, none of which is empty."""
        return self.indices[self.indptr[1:] - 1]

    def rows(self, which: Array) -> Ragged:
        """The lists ``which``, in that order."""
        start = self.indptr[which]
        size = self.indptr[which + 1] - start
        indptr = np.concatenate([[0], np.cumsum(size)])
        position = np.arange(indptr[-1]) + np.repeat(start - indptr[:-1], size)
        return Ragged(indptr, self.indices[position])

    def owners(self) -> IntArray:
        """For every entry, the number of the list it is in."""
        return np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), self.sizes())

    def transposed(self, n_rows: int) -> Ragged:
        """List ``j`` of the result holds, ascending, every ``i`` whose list holds ``j``."""
        return Ragged.group(self.indices, self.owners(), n_rows)

    @classmethod
    def group(cls, key: IntArray, value: IntArray, n_rows: int) -> Ragged:
        """List ``k`` holds, ascending, the values whose key is ``k``."""
        order = np.lexsort((value, key))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=n_rows))])
        return cls(_frozen(indptr), _frozen(value[order].astype(np.int32, copy=False)))


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed acyclic graph, numbered in breadth-first topological order.

    Attributes
    ----------
    parents, children : Ragged
        P(n) and C(n), ascending.
    level_ptr : array of n_levels + 1
        Level ``k`` holds the nodes ``level_ptr[k] .. level_ptr[k + 1] - 1``; level 0 holds the roots.
    """

    parents: Ragged
    children: Ragged
    level_ptr: PtrArray

    @property
    def n_nodes(self) -> int:
        return len(self.parents.indptr) - 1

    @property
    def n_edges(self) -> int:
        return len(self.parents.indices)

    @property
    def n_leaves(self) -> int:
        return len(self.leaves)

    @property
    def n_levels(self) -> int:
        return len(self.level_ptr) - 1

    @property
    def n_roots(self) -> int:
        """The roots are the nodes ``0 .. n_roots - 1``."""
        return int(self.level_ptr[1])

    @cached_property
    def leaves(self) -> IntArray:
        """Nodes without children, ascending."""
        return _frozen(np.flatnonzero(self.children.sizes() == 0).astype(np.int32))

    @cached_property
    def is_leaf(self) -> BoolArray:
        return _frozen(self.children.sizes() == 0)

    @cached_property
    def is_tree(self) -> bool:
        """No node has two parents (a forest counts: its common root is left implicit)."""
        return bool((self.parents.sizes() <= 1).all())

    @cached_property
    def level(self) -> IntArray:
        """Length of the longest path from a root to each node."""
        return _frozen(np.repeat(np.arange(self.n_levels, dtype=np.int32), np.diff(self.level_ptr)))

    def levels(self) -> Iterator[slice]:
        """Node ranges from the roots down."""
        for start, stop in pairwise(self.level_ptr):
            yield slice(int(start), int(stop))

    def levels_up(self) -> Iterator[slice]:
        """Node ranges from the deepest level up."""
        yield from reversed(list(self.levels()))

    def edges(self) -> tuple[IntArray, IntArray]:
        """All edges as (parent numbers, child numbers), ordered by child."""
        return self.parents.indices, self.parents.owners()

    @cached_property
    def ancestors(self) -> Ragged:
        """Ā(n), the node itself and everything above it, ascending (so the node itself comes last)."""
        n = self.n_nodes
        least = n + int(self.level.sum(dtype=np.int64))  # level k: k nodes above on a tree, on a DAG k or more
        _check_size(least, self)
        indptr = np.zeros(n + 1, dtype=np.int64)
        entries = np.empty(least if self.is_tree else max(least, 4 * n), dtype=np.int32)
        for nodes in self.levels():
            own = np.arange(nodes.start, nodes.stop)
            up = self.parents.rows(own)
            above = Ragged(indptr, entries).rows(up.indices)
            key = np.repeat(up.owners(), above.sizes()).astype(np.int64) * n + above.indices
            if len(up.indices) > len(own):  # somebody has two parents, whose ancestors may overlap
                key = np.unique(key)
            key = np.insert(key, np.searchsorted(key, np.arange(1, len(own) + 1) * n), np.arange(len(own)) * n + own)
            used = indptr[nodes.start]
            entries = _with_room(entries, used + len(key), self)
            entries[used : used + len(key)] = key % n
            indptr[nodes.start + 1 : nodes.stop + 1] = used + np.cumsum(np.bincount(key // n, minlength=len(own)))
        return Ragged(_frozen(indptr), _frozen(entries[: indptr[-1]].copy()))

    @cached_property
    def leaf_ancestors(self) -> Ragged:
        """Ā(l) for the leaves only, in their order."""
        found = self.ancestors.rows(self.leaves)
        return Ragged(_frozen(found.indptr), _frozen(found.indices))

    def leaf_matrix(self) -> sp.csr_array:
        """The 0/1 matrix with ``[l, n] = 1`` when n ∈ Ā(l): one row a leaf, one column a node."""
        indptr, indices = self.leaf_ancestors
        return sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(self.n_leaves, self.n_nodes))

    @cached_property
    def leaf_counts(self) -> PtrArray:
        """How many leaves lie below each node; a leaf counts itself."""
        if not self.is_tree:
            return _frozen(np.bincount(self.leaf_ancestors.indices, minlength=self.n_nodes))
        return _frozen(self.sum_up(self.is_leaf.astype(np.int64)))

    @cached_property
    def is_common(self) -> BoolArray:
        """Nodes strictly above every leaf: they belong to every label, so they cancel from every comparison."""
        return _frozen((self.leaf_counts == self.n_leaves) & ~self.is_leaf)

    def sum_up(self, values: Array) -> Array:
        """On a tree, the sum of ``values`` over D̄(n), the subtree of each node."""
        total = values.copy()
        for nodes in self.levels_up():
            if nodes.start:
                np.add.at(total, self.parents.rows(np.arange(nodes.start, nodes.stop)).indices, total[nodes])
        return total

    def reachable(self, start: IntArray, along: Ragged) -> BoolArray:
        """Mask of what ``start`` reaches along ``parents`` or ``children``, ``start`` itself included."""
        seen = np.zeros(self.n_nodes, dtype=bool)
        front = np.unique(start)
        while len(front):
            seen[front] = True
            front = np.unique(along.rows(front).indices)
            front = front[~seen[front]]
        return seen


def build_graph(n_nodes: int, parent: IntArray, child: IntArray) -> tuple[Graph, IntArray]:
    """Number the nodes of an edge list and freeze it.

    Returns the graph and ``order``: node ``k`` of the graph is node ``order[k]`` of the input. Ties in the order are
    broken by the first parent, then by input number. Edges must be distinct and join different nodes.

    Raises
    ------
    FoundCycle
        With the input numbers of the nodes on one cycle.
    """
    level = _longest_path_levels(n_nodes, parent, child)
    by_child = Ragged.group(child, parent, n_nodes)
    by_level = np.argsort(level, kind="stable")
    level_ptr = np.concatenate([[0], np.cumsum(np.bincount(level, minlength=1))])
    position = np.empty(n_nodes, dtype=np.int32)
    order = np.empty(n_nodes, dtype=np.int32)
    for start, stop in pairwise(level_ptr):
        nodes = by_level[start:stop]
        if start:
            up = by_child.rows(nodes)
            first_parent = np.minimum.reduceat(position[up.indices], up.indptr[:-1])
            nodes = nodes[np.argsort(first_parent, kind="stable")]
        order[start:stop] = nodes
        position[nodes] = np.arange(start, stop, dtype=np.int32)
    graph = Graph(
        parents=Ragged.group(position[child], position[parent], n_nodes),
        children=Ragged.group(position[parent], position[child], n_nodes),
        level_ptr=_frozen(level_ptr),
    )
    return graph, order


class FoundCycle(Exception):  # noqa: N818 - a message to the caller, which raises CycleError
    """Carries the numbers of the nodes on a cycle, parent to child, to whoever knows their labels."""

    def __init__(self, nodes: list[int]) -> None:
        super().__init__(nodes)
        self.nodes = nodes


def _longest_path_levels(n_nodes: int, parent: IntArray, child: IntArray) -> IntArray:
    """Kahn's algorithm, a whole level at a time: a node joins the level after its last parent's."""
    below = Ragged.group(parent, child, n_nodes)
    waiting = np.bincount(child, minlength=n_nodes)
    level = np.full(n_nodes, -1, dtype=np.int32)
    front = np.flatnonzero(waiting == 0)
    step = 0
    while len(front):
        level[front] = step
        step += 1
        met, times = np.unique(below.rows(front).indices, return_counts=True)
        waiting[met] -= times
        front = met[waiting[met] == 0]
    if (level < 0).any():
        raise FoundCycle(_some_cycle(level < 0, Ragged.group(child, parent, n_nodes)))
    return level


def _some_cycle(stuck: BoolArray, above: Ragged) -> list[int]:
    """Every stuck node has a stuck parent, so walking up must come back to where it was."""
    node = int(np.flatnonzero(stuck)[0])
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        up = above.row(node)
        node = int(up[stuck[up]][0])
    path.append(node)
    return path[seen[node] :][::-1]


def _check_size(needed: int, graph: Graph) -> None:
    if needed > MAX_ENTRIES:
        raise HierarchyError(
            f"the ancestor sets of this hierarchy ({graph.n_nodes} nodes on {graph.n_levels} levels) "
            f"have more than {MAX_ENTRIES} entries, too many to store"
        )


def _with_room(entries: IntArray, needed: int, graph: Graph) -> IntArray:
    _check_size(needed, graph)
    if needed <= len(entries):
        return entries
    grown = np.empty(max(needed, 2 * len(entries)), dtype=np.int32)
    grown[: len(entries)] = entries
    return grown


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
