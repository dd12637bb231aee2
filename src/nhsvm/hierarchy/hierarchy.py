"""``Hierarchy``: user labels on top of the frozen graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from nhsvm.errors import CycleError, HierarchyError, LabelError, UnknownLabelError
from nhsvm.hierarchy import build
from nhsvm.hierarchy.build import collection
from nhsvm.hierarchy.drawing import draw, summary
from nhsvm.hierarchy.graph import FoundCycle, Graph, build_graph
from nhsvm.hierarchy.hashes import first_crowded
from nhsvm.hierarchy.labels import VirtualLeaf, public
from nhsvm.hierarchy.minimal import minimal_arrays
from nhsvm.typing import BoolArray, IntArray, Label, LabelsLike

if TYPE_CHECKING:
    import networkx


class Hierarchy:
    """A label hierarchy: a tree, a forest or a directed acyclic graph whose leaves are the classes.

    Make one with :meth:`from_edges`, :meth:`from_parents`, :meth:`from_paths`, :meth:`from_networkx` or :meth:`read`.
    It never changes afterwards. Node numbers, used by every array in this library, are positions in :attr:`nodes`,
    which is a topological order (parents first, level by level, siblings together).

    Two hierarchies are equal when they have the same nodes and the same edges, in whatever order these were given.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> h
    Hierarchy(forest, 5 nodes, 3 leaves, 2 roots, 2 levels)
    >>> h.leaves
    ('dog', 'cat', 'oak')
    >>> sorted(h.ancestors({"dog", "oak"}))
    ['animal', 'plant']
    """

    def __init__(self, labels: Sequence[Label], parent: IntArray, child: IntArray) -> None:
        if not len(labels):
            raise HierarchyError("an empty hierarchy: give at least one node")
        crowded = first_crowded(labels)
        if crowded:
            raise HierarchyError(crowded)
        try:
            graph, order = build_graph(len(labels), parent, child)
        except FoundCycle as found:
            raise CycleError([labels[i] for i in found.nodes]) from None
        self._graph = graph
        self._nodes = tuple(labels[i] for i in order)
        self._number = {label: i for i, label in enumerate(self._nodes)}

    # -- ways in -------------------------------------------------------------------------------------------------------

    @classmethod
    def from_edges(
        cls, edges: Iterable[tuple[Label, Label]], *, nodes: Iterable[Label] = (), allow_duplicates: bool = False
    ) -> Hierarchy:
        """From ``(parent, child)`` pairs.

        Parameters
        ----------
        edges : iterable of (parent, child)
        nodes : iterable of labels
            Further nodes, for those without any edge (a root that is a leaf); nodes named here come first.
        allow_duplicates : bool
            Merge repeated edges; by default a repetition is an error, since it is a mistake more often than not.
        """
        return cls(*build.edge_arrays(edges, nodes, allow_duplicates))

    @classmethod
    def from_parents(cls, parents: Mapping[Label, LabelsLike]) -> Hierarchy:
        """From ``{child: parent}`` or ``{child: [parent, ...]}``; ``None`` or an empty list marks a root.

        A list, set, frozenset or array is a collection of parents; anything else, a tuple too, is one parent.

        Examples
        --------
        >>> Hierarchy.from_parents({"dog": "animal", "bat": ["mammal", "flyer"]}).is_tree
        False
        """
        return cls(*build.parent_arrays(parents))

    @classmethod
    def from_paths(
        cls, paths: Iterable[Sequence[Label]], *, qualified: bool = False, allow_duplicates: bool = False
    ) -> Hierarchy:
        """From root-to-leaf paths.

        Parameters
        ----------
        paths : iterable of sequences of labels
            Each begins at a root. A path may stop at an inner node.
        qualified : bool
            By default a name means the same node wherever it stands, so a name below two parents makes a DAG. With
            ``True`` a node is its whole path, a tuple: ``("books", "other")`` and ``("toys", "other")`` are two nodes.
        allow_duplicates : bool
            Accept a path that is given twice.

        Examples
        --------
        >>> h = Hierarchy.from_paths([("books", "other"), ("toys", "other")], qualified=True)
        >>> h.leaves
        (('books', 'other'), ('toys', 'other'))
        """
        return cls(*build.path_arrays(paths, qualified, allow_duplicates))

    @classmethod
    def from_networkx(cls, graph: networkx.DiGraph) -> Hierarchy:
        """From a directed networkx graph with edges parent → child; parallel edges of a multigraph are one edge."""
        return cls(*build.networkx_arrays(graph))

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        *,
        format: str = "auto",
        label_type: type | None = None,
        allow_duplicates: bool = False,
    ) -> Hierarchy:
        """From a file: LSHTC ``cat_hier.txt``, edge TSV/CSV or JSON, each also gzipped (``.gz``).

        Parameters
        ----------
        path : path
        format : {"auto", "lshtc", "tsv", "csv", "json"}
            ``"auto"`` goes by the file's ending, and takes ``.txt`` for LSHTC unless its first line has a tab.
        label_type : type, optional
            ``int`` or ``str``. By default LSHTC labels are read as ``int``, CSV and TSV labels as ``str``, and JSON
            labels as what they are.
        allow_duplicates : bool
            Merge repeated lines instead of reporting them.

        Notes
        -----
        *LSHTC*: labels separated by blanks, one root-to-leaf path a line, or one ``parent child`` pair a line (when
        every line has two labels). *TSV, CSV*: ``parent, child`` columns, blanks around a cell do not count; a first
        line ``parent, child`` (or ``child, parent``, or ``source, target``, or ``from, to``) is a header.
        *JSON*: ``{"edges": [[parent, child], ...], "nodes": [...]}``, a list of such pairs, nested objects
        ``{"root": {"leaf": {}}}``, or parents ``{"leaf": "root", "other": ["a", "b"]}``: a plain object maps a child to
        its parent or parents, not a parent to its children.
        """
        from nhsvm.hierarchy.files import read_arrays

        arrays = read_arrays(path, format, label_type, allow_duplicates)
        try:
            return cls(*arrays)
        except CycleError as error:
            raise CycleError(error.cycle, str(path)) from None

    # -- what it holds -------------------------------------------------------------------------------------------------

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

    @cached_property
    def roots(self) -> tuple[Label, ...]:
        return self._nodes[: self._graph.n_roots]

    @property
    def n_nodes(self) -> int:
        return self._graph.n_nodes

    @property
    def n_leaves(self) -> int:
        return self._graph.n_leaves

    @property
    def is_tree(self) -> bool:
        """Whether no node has two parents. A forest counts as a tree with an unnamed root."""
        return self._graph.is_tree

    @cached_property
    def is_virtual(self) -> BoolArray:
        """Mask over :attr:`nodes`: which are virtual leaves."""
        mask = np.fromiter((isinstance(n, VirtualLeaf) for n in self._nodes), dtype=bool, count=self.n_nodes)
        mask.flags.writeable = False
        return mask

    def edges(self) -> Iterator[tuple[Label, Label]]:
        """All ``(parent, child)`` pairs; virtual leaves are left out."""
        for p, c in zip(*self._graph.edges(), strict=True):
            if not isinstance(self._nodes[c], VirtualLeaf):
                yield self._nodes[p], self._nodes[c]

    # -- questions about nodes; a virtual leaf is never part of an answer ----------------------------------------------

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

    def numbers(self, nodes: LabelsLike) -> IntArray:
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

    # -- other hierarchies from this one -------------------------------------------------------------------------------

    def with_virtual_leaves(self, labels: Iterable[Label]) -> Hierarchy:
        """The hierarchy in which each given inner node is a class of its own, next to the leaves below it.

        Such a node gets a virtual leaf as a child. It counts in :attr:`nodes` (as a :class:`VirtualLeaf`), because it
        has weights of its own; every label that comes out (leaves, ancestors, predictions) is the inner node itself.
        Labels that are leaves already are left as they are.

        Examples
        --------
        >>> h = Hierarchy.from_edges([("science", "physics"), ("science", "biology")])
        >>> h.with_virtual_leaves(["science", "physics"]).leaves
        ('physics', 'biology', 'science')
        """
        numbers = np.unique(self.numbers(list(collection(labels, LabelError))))
        inner = numbers[~self._graph.is_leaf[numbers]]
        leaves = {VirtualLeaf(self._nodes[i]): i for i in inner if VirtualLeaf(self._nodes[i]) not in self}
        if not leaves:
            return self
        parent, child = self._graph.edges()
        new = np.arange(self.n_nodes, self.n_nodes + len(leaves), dtype=np.int32)
        above = np.array(list(leaves.values()), dtype=np.int32)
        return type(self)([*self._nodes, *leaves], np.concatenate([parent, above]), np.concatenate([child, new]))

    def subset(self, labels: Iterable[Label]) -> Hierarchy:
        """Only the given labels and what is above them.

        A virtual leaf stays if its node is among the labels. An inner node that loses all its children becomes a leaf.

        Examples
        --------
        >>> h = Hierarchy.from_edges([("a", "b"), ("a", "c"), ("c", "d")])
        >>> h.subset(["b", "c"]).leaves
        ('b', 'c')
        """
        start = self.numbers(list(collection(labels, LabelError)))
        own = [VirtualLeaf(self._nodes[i]) for i in start]
        start = np.concatenate([start, self.numbers([leaf for leaf in own if leaf in self])])
        keep = self._graph.reachable(start, self._graph.parents)
        parent, child = self._graph.edges()
        inside = keep[parent] & keep[child]
        n_children = np.bincount(parent[inside], minlength=self.n_nodes)
        for leaf in np.flatnonzero(self.is_virtual & keep):  # left as an only child, it melts into its node
            up = self._graph.parents.row(leaf)
            keep[leaf] = len(up) > 1 or n_children[up[0]] > 1
        inside &= keep[child]
        position = np.cumsum(keep, dtype=np.int32) - 1
        names = [self._nodes[i] for i in np.flatnonzero(keep)]
        return type(self)(names, position[parent[inside]], position[child[inside]])

    def minimal(self, y: LabelsLike = None) -> Hierarchy:
        """The minimal graph M(G) of Theorem 1: duplicated nodes merged into one.

        Parameters
        ----------
        y : iterable of labels or label sets, optional
            Two nodes are duplicates when they belong to the same of these label sets; nodes in none of them are left
            out. By default every leaf counts as one label, so that nodes above the same leaves are duplicates.

        Returns
        -------
        Hierarchy
            Each merged set bears the name of its leaf, or else of its topmost node (one with a virtual leaf first).

        Examples
        --------
        >>> h = Hierarchy.from_paths([("food", "fruit", "citrus", "lemon"), ("food", "fruit", "citrus", "lime")])
        >>> h.minimal().nodes
        ('food', 'lemon', 'lime')
        """
        return type(self)(*minimal_arrays(self, y))

    def to_networkx(self) -> networkx.DiGraph:
        """As a ``networkx.DiGraph`` with edges parent → child; virtual leaves are left out."""
        try:
            import networkx
        except ImportError as error:
            raise ImportError("to_networkx() needs networkx: pip install 'nhsvm[networkx]'") from error
        graph = networkx.DiGraph()
        graph.add_nodes_from(n for n in self._nodes if not isinstance(n, VirtualLeaf))
        graph.add_edges_from(self.edges())
        return graph

    # -- as text, as a value -------------------------------------------------------------------------------------------

    def draw(self, *, notes: Mapping[Label, str] | None = None, max_nodes: int = 200) -> str:
        """A text drawing.

        Parameters
        ----------
        notes : mapping of node to text, optional
            Shown behind the node, in a column.
        max_nodes : int
            Lines to draw at the most; what is left out is counted.

        Examples
        --------
        >>> print(Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")]).draw())
        animal
        ├── dog
        └── cat
        plant
        └── oak
        """
        return draw(self._nodes, self._graph, notes or {}, max_nodes)

    def __repr__(self) -> str:
        return f"Hierarchy({summary(self._graph)})"

    def __len__(self) -> int:
        return self.n_nodes

    def __contains__(self, label: object) -> bool:
        try:
            return label in self._number
        except TypeError:  # not hashable
            return False

    @cached_property
    def _edge_set(self) -> frozenset[tuple[Label, Label]]:
        p, c = self._graph.edges()
        return frozenset((self._nodes[i], self._nodes[j]) for i, j in zip(p, c, strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        if (self.n_nodes, self._graph.n_edges) != (other.n_nodes, other._graph.n_edges):
            return False
        return self._number.keys() == other._number.keys() and self._edge_set == other._edge_set

    def __hash__(self) -> int:
        return hash((frozenset(self._nodes), self._edge_set))

    def __copy__(self) -> Hierarchy:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, object]) -> Hierarchy:
        return self

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return Hierarchy, (self._nodes, *self._graph.edges())

    def __setattr__(self, name: str, value: object) -> None:
        if "_number" in self.__dict__:
            raise AttributeError("a Hierarchy does not change; build a new one")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Hierarchy does not change; build a new one")


def _is_collection(value: object) -> TypeGuard[Collection[Label]]:
    """Whether a value is a set of labels rather than one label (a tuple is one label)."""
    return isinstance(value, (set, frozenset, list, np.ndarray))
