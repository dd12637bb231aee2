"""From what users have (edges, parents, paths) to labels and edge arrays, with every slip named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from nhsvm.errors import HierarchyError, NHSVMError
from nhsvm.hierarchy.hashes import Hashes, too_many
from nhsvm.typing import IntArray, Label, LabelsLike

if TYPE_CHECKING:
    import networkx

T = TypeVar("T")
EdgeArrays = tuple[list[Label], IntArray, IntArray]


class Collector:
    """Numbers labels in the order of their first mention, and checks edges as they come."""

    def __init__(self) -> None:
        self.number: dict[Label, int] = {}
        self._seen: dict[tuple[int, int], None] = {}
        self._hashes = Hashes()

    def node(self, label: Label) -> int:
        try:
            return self.number[label]
        except KeyError:
            check_label(label)
            if self._hashes.crowded(label):
                raise HierarchyError(too_many(label)) from None
            return self.number.setdefault(label, len(self.number))
        except TypeError:
            raise _unhashable(label) from None

    def edge(self, parent: Label, child: Label) -> bool:
        """Add an edge; False if it was there already."""
        key = (self.node(parent), self.node(child))
        if key[0] == key[1]:
            raise HierarchyError(f"{parent!r} is given as its own parent (self-loop)")
        if key in self._seen:
            return False
        self._seen[key] = None
        return True

    def arrays(self) -> EdgeArrays:
        pairs = np.array(list(self._seen), dtype=np.int32).reshape(-1, 2)
        return list(self.number), pairs[:, 0].copy(), pairs[:, 1].copy()


def edge_arrays(edges: Iterable[Iterable[Label]], nodes: Iterable[Label], allow_duplicates: bool) -> EdgeArrays:
    """``(parent, child)`` pairs and further nodes."""
    found = Collector()
    for label in collection(nodes, HierarchyError):
        found.node(label)
    for i, given in enumerate(collection(edges, HierarchyError, "(parent, child) pairs")):
        with _blaming("edge", i):
            pair = _items(given, "a (parent, child) pair")
            if len(pair) != 2:
                raise HierarchyError(f"expected a (parent, child) pair, not {len(pair)} items: {given!r}")
            if not found.edge(*pair) and not allow_duplicates:
                raise HierarchyError(
                    f"{pair[0]!r} -> {pair[1]!r} is a duplicate; allow_duplicates=True merges repeated edges"
                )
    return found.arrays()


def parent_arrays(parents: Mapping[Label, LabelsLike]) -> EdgeArrays:
    """``{child: parent or parents}``."""
    if not isinstance(parents, Mapping):
        raise HierarchyError(f"expected a mapping of child to parent(s), not {type(parents).__name__}")
    found = Collector()
    for child, given in parents.items():
        found.node(child)
        several = isinstance(given, (list, set, frozenset, np.ndarray))
        for parent in collection(given, HierarchyError) if several else [] if given is None else [given]:
            if parent is None:
                raise HierarchyError(f"contradictory parents of {child!r}: None (a root) among {given!r}")
            if not found.edge(parent, child):
                raise HierarchyError(f"{parent!r} is listed twice as a parent of {child!r}")
    return found.arrays()


def networkx_arrays(graph: networkx.DiGraph) -> EdgeArrays:
    """A directed networkx graph."""
    if not callable(getattr(graph, "is_directed", None)):
        raise HierarchyError(f"expected a networkx.DiGraph, not {type(graph).__name__}")
    if not graph.is_directed():
        raise HierarchyError("an undirected graph has no parents and children: give a networkx.DiGraph")
    return edge_arrays(graph.edges(), graph.nodes(), allow_duplicates=graph.is_multigraph())


def path_arrays(paths: Iterable[Iterable[Label]], qualified: bool, allow_duplicates: bool) -> EdgeArrays:
    """Root-to-leaf paths."""
    found = Collector()
    seen: set[tuple[Label, ...]] = set()
    hashes = Hashes()
    started: dict[Label, int] = {}  # label -> the first path that starts there
    parent_of: dict[Label, Label] = {}
    for i, given in enumerate(collection(paths, HierarchyError, "paths")):
        with _blaming("path", i):
            path = _items(given, "a sequence of labels, split already")
            if not path:
                raise HierarchyError("an empty path")
            if path in seen and not allow_duplicates:
                raise HierarchyError(f"{path!r} is a duplicate; allow_duplicates=True accepts repeated paths")
            if path not in seen and hashes.crowded(path):
                raise HierarchyError(too_many(path))
            seen.add(path)
            steps = tuple(path[: k + 1] for k in range(len(path))) if qualified else path
            if len(set(steps)) < len(steps):
                raise HierarchyError(f"{path!r} goes through the same node twice")
            found.node(steps[0])
            started.setdefault(steps[0], i)
            for parent, child in pairwise(steps):
                found.edge(parent, child)
                parent_of[child] = parent
    for root, i in started.items():
        if root in parent_of:
            raise HierarchyError(
                f"contradictory paths: this one starts at {root!r}, another has it below {parent_of[root]!r}", "path", i
            )
    return found.arrays()


@contextmanager
def _blaming(kind: str, item: int) -> Iterator[None]:
    """Say which of the given items an error is about."""
    try:
        yield
    except HierarchyError as error:
        raise HierarchyError(error.problem, kind, item) from None


def _items(given: Iterable[Label], wanted: str) -> tuple[Label, ...]:
    # a set has no order, so it would say at random who is the parent
    if isinstance(given, (str, bytes, Set, Mapping)) or not _is_iterable(given):
        raise HierarchyError(f"expected {wanted}, not {given!r}")
    items = tuple(given)
    for label in items:
        check_label(label)
    return items


def collection(given: Iterable[T], error: type[NHSVMError], of: str = "labels") -> Iterable[T]:
    """What was given, unless it cannot be gone through, or is a string (whose letters nobody means)."""
    if isinstance(given, (str, bytes)):
        raise error(f"expected a collection of {of}, not the string {given!r}")
    if not _is_iterable(given):
        raise error(f"expected a collection of {of}, not {given!r}")
    return given


def _is_iterable(given: Iterable[object]) -> bool:
    try:
        iter(given)  # isinstance(given, Iterable) is True for an array without dimensions
    except TypeError:
        return False
    return True


def check_label(label: Label) -> None:
    """Raise unless a value can be a label: hashable, not None, not NaN."""
    try:
        hash(label)
    except TypeError:
        raise _unhashable(label) from None
    try:
        missing = label is None or bool(label != label)  # NaN, as pandas has for an empty cell
    except TypeError:  # pandas.NA does not say
        missing = True
    if missing:
        raise HierarchyError(f"{label!r} cannot be a label")


def _unhashable(label: object) -> HierarchyError:
    return HierarchyError(f"a label must be hashable, but {label!r} is a {type(label).__name__}")
