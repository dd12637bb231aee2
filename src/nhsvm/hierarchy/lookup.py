"""Labels ↔ node numbers, and P, C, A, D of a node or of a set of nodes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from nhsvm.errors import LabelError, UnknownLabelError
from nhsvm.hierarchy.build import collection
from nhsvm.hierarchy.graph import Graph, IntArray
from nhsvm.hierarchy.virtual import VirtualLeaf, public

Label = Hashable


class Lookup:
    """What :class:`Hierarchy` is asked; a virtual leaf is never part of an answer."""

    _graph: Graph
    _nodes: tuple[Label, ...]
    _number: dict[Label, int]

    @property
    def graph(self) -> Graph:
        """The same hierarchy as arrays over node numbers."""
        return self._graph

    @property
    def nodes(self) -> tuple[Label, ...]:
        """All nodes in topological order. Arrays such as α are aligned with it."""
        return self._nodes

    @cached_property
    def leaves(self) -> tuple[Label, ...]:
        """The classes, in node order; a virtual leaf appears as the inner node it stands for."""
        return tuple(public(self._nodes[i]) for i in self._graph.leaves)

    def parents(self, nodes: Label | Collection[Label]) -> frozenset[Label]:
        """P(n): the direct parents of a node, or of any node of a set (a set, list or array of labels)."""
        return self._labels(self._graph.parents.rows(self.numbers(nodes)).indices)

    def children(self, nodes: Label | Collection[Label]) -> frozenset[Label]:
        """C(n): the direct children of a node, or of any node of a set."""
        return self._labels(self._graph.children.rows(self.numbers(nodes)).indices)

    def ancestors(self, nodes: Label | Collection[Label]) -> frozenset[Label]:
        """A(n): everything above a node, without the node itself; for a set, the union over its nodes."""
        above = self._graph.parents.rows(self.numbers(nodes)).indices
        return self._labels(np.flatnonzero(self._graph.reachable(above, self._graph.parents)))

    def descendants(self, nodes: Label | Collection[Label]) -> frozenset[Label]:
        """D(n): everything below a node, without the node itself; for a set, the union over its nodes."""
        below = self._graph.children.rows(self.numbers(nodes)).indices
        return self._labels(np.flatnonzero(self._graph.reachable(below, self._graph.children)))

    def closure(self, nodes: Label | Collection[Label]) -> frozenset[Label]:
        """Ā(n): a node, or a set of nodes, with everything above."""
        return self._labels(np.flatnonzero(self._graph.reachable(self.numbers(nodes), self._graph.parents)))

    def depth(self, node: Label) -> int:
        """Edges on the longest path from a root to the node."""
        return int(self._graph.level[self.number(node)])

    def is_leaf(self, node: Label) -> bool:
        return bool(self._graph.is_leaf[self.number(node)])

    def number(self, node: Label) -> int:
        """Position of a node in :attr:`nodes`."""
        try:
            return self._number[node]
        except KeyError:
            raise UnknownLabelError([node], self._number) from None
        except TypeError:
            raise LabelError(f"a label must be hashable, but {node!r} is a {type(node).__name__}") from None

    def numbers(self, nodes: Any) -> IntArray:
        """Positions in :attr:`nodes` of one node, or of a set, list or array of nodes."""
        if _is_collection(nodes) and not (isinstance(nodes, frozenset) and nodes in self._number):
            return np.array([self.number(node) for node in collection(nodes, LabelError)], dtype=np.int32)
        try:
            return np.array([self.number(nodes)], dtype=np.int32)
        except UnknownLabelError as error:
            if isinstance(nodes, tuple) and nodes and all(node in self._number for node in nodes):
                hint = "a tuple is one label; give a set or list for several"
                raise UnknownLabelError([nodes], text=f"{error} ({hint})") from None
            raise

    def leaf_position(self, label: Label) -> int:
        """Position in :attr:`leaves` of a class: a leaf, or an inner node that has a virtual leaf."""
        try:
            return self._leaf_position[label]
        except (KeyError, TypeError):
            self.number(label)  # an unknown or unhashable label is reported as such
            raise LabelError(
                f"{label!r} is an inner node, not a leaf; with_virtual_leaves([{label!r}]) makes it a class of its own"
            ) from None

    @cached_property
    def _leaf_position(self) -> dict[Label, int]:
        return {label: i for i, label in enumerate(self.leaves)}

    def _labels(self, numbers: Iterable[int]) -> frozenset[Label]:
        return frozenset(n for n in (self._nodes[i] for i in numbers) if not isinstance(n, VirtualLeaf))


def _is_collection(value: object) -> TypeGuard[Collection[Label]]:
    """Whether a value is a set of labels rather than one label (a tuple is one label)."""
    return isinstance(value, (set, frozenset, list, np.ndarray))
