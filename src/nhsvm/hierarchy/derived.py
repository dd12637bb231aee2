"""Hierarchies made from others: with virtual leaves, of some labels only, and the minimal graph M(G) of Theorem 1."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from nhsvm.errors import LabelError
from nhsvm.hierarchy.build import collection
from nhsvm.hierarchy.graph import Ragged
from nhsvm.hierarchy.labels import LabelSpace, VirtualLeaf, public, samples
from nhsvm.typing import BoolArray, IntArray

if TYPE_CHECKING:
    from nhsvm.hierarchy.hierarchy import Hierarchy


def with_virtual_leaves(hierarchy: Hierarchy, labels: Iterable[Hashable]) -> Hierarchy:
    """See ``Hierarchy.with_virtual_leaves``."""
    graph, nodes = hierarchy.graph, hierarchy.nodes
    numbers = np.unique(hierarchy.numbers(list(collection(labels, LabelError))))
    inner = numbers[~graph.is_leaf[numbers]]
    new = np.array([i for i in inner if VirtualLeaf(nodes[i]) not in hierarchy], dtype=np.int32)
    if not len(new):
        return hierarchy
    parent, child = graph.edges()
    return type(hierarchy)(
        [*nodes, *(VirtualLeaf(nodes[i]) for i in new)],
        np.concatenate([parent, new]),
        np.concatenate([child, np.arange(len(nodes), len(nodes) + len(new), dtype=np.int32)]),
    )


def subset(hierarchy: Hierarchy, labels: Iterable[Hashable]) -> Hierarchy:
    """See ``Hierarchy.subset``."""
    start = hierarchy.numbers(list(collection(labels, LabelError)))
    own = [VirtualLeaf(hierarchy.nodes[i]) for i in start]
    start = np.concatenate([start, hierarchy.numbers([leaf for leaf in own if leaf in hierarchy])])
    return _restricted(hierarchy, hierarchy.graph.reachable(start, hierarchy.graph.parents))


def _restricted(hierarchy: Hierarchy, keep: BoolArray) -> Hierarchy:
    """The induced sub-hierarchy; a virtual leaf that is left as an only child melts into its node."""
    parent, child = hierarchy.graph.edges()
    inside = keep[parent] & keep[child]
    n_children = np.bincount(parent[inside], minlength=hierarchy.n_nodes)
    keep = keep.copy()
    for leaf in np.flatnonzero(hierarchy.is_virtual & keep):
        up = hierarchy.graph.parents.row(leaf)
        keep[leaf] = len(up) > 1 or n_children[up[0]] > 1
    inside &= keep[child]
    position: IntArray = np.cumsum(keep, dtype=np.int32) - 1
    names = [hierarchy.nodes[i] for i in np.flatnonzero(keep)]
    return type(hierarchy)(names, position[parent[inside]], position[child[inside]])


def duplicate_classes(hierarchy: Hierarchy, y: Iterable[Any] | None = None) -> IntArray:
    """For every node, the number of the set of duplicates (Theorem 1, Section 5.2) it is in; -1 for a node in no label.

    Nodes n1, n2 are duplicated when n1 ∈ y_i ⟺ n2 ∈ y_i for every label y_i: all of Y_s by default, or those given
    (then ``hierarchy`` must hold a virtual leaf for every inner node among the labels). Exact: the sets themselves are
    compared, not hashes of them. Classes are numbered by their topmost node.
    """
    graph = hierarchy.graph
    if y is None:
        labels = graph.leaf_ancestors
    else:
        y = samples(y)
        space = LabelSpace.for_labels(hierarchy, y)
        if space.hierarchy is not hierarchy:
            raise LabelError("there are inner nodes among the labels: call with_virtual_leaves(labels) first")
        labels = space.closures(y)
    occurrences = labels.transposed(graph.n_nodes)
    numbers: dict[bytes, int] = {}
    out = np.full(graph.n_nodes, -1, dtype=np.int32)
    for node in np.flatnonzero(occurrences.sizes()):
        out[node] = numbers.setdefault(occurrences.row(node).tobytes(), len(numbers))
    return out


def minimal(hierarchy: Hierarchy, y: Iterable[Any] | None = None) -> Hierarchy:
    """Merge duplicated nodes; see ``Hierarchy.minimal``."""
    if y is not None:
        y = samples(y)
        hierarchy = LabelSpace.for_labels(hierarchy, y).hierarchy
    cls = duplicate_classes(hierarchy, y)
    names = _names(hierarchy, cls)
    parent, child = hierarchy.graph.edges()
    pairs = np.stack([cls[parent], cls[child]], axis=1)
    # an edge inside a class vanishes; occurrences shrink along edges, so classes cannot form a cycle
    pairs = np.unique(pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])], axis=0)
    return type(hierarchy)(names, pairs[:, 0].astype(np.int32), pairs[:, 1].astype(np.int32))


def _names(hierarchy: Hierarchy, cls: IntArray) -> list[Any]:
    """One name a class; see :func:`_chosen`."""
    seen = np.flatnonzero(cls >= 0).astype(np.int32)
    members = Ragged.group(cls[seen], seen, int(cls.max()) + 1)
    virtual = np.flatnonzero(hierarchy.is_virtual)
    node_of = {int(v): hierarchy.number(public(hierarchy.nodes[v])) for v in virtual}
    owners = set(node_of.values())
    chosen = [_chosen(hierarchy, members.row(k), node_of, owners) for k in range(len(members.indptr) - 1)]
    names = [hierarchy.nodes[i] for i in chosen]
    kept = set(names)
    # a virtual leaf whose node bears another name now is the only one left to bear that of the node
    return [public(name) if public(name) not in kept else name for name in names]


def _chosen(hierarchy: Hierarchy, group: IntArray, node_of: dict[int, int], owners: set[int]) -> int:
    """The member that names a class: its leaf, or else its topmost node.

    A virtual leaf together with its node is that node; among inner nodes, one that has a virtual leaf comes first,
    because that leaf goes by the name of its node.
    """
    leaves = [int(i) for i in group[hierarchy.graph.is_leaf[group]]]
    inside = {int(i) for i in group}
    wishes = [
        [i for i in leaves if i not in node_of],
        [node_of[i] for i in leaves if i in node_of and node_of[i] in inside],
        leaves,
        [int(i) for i in group if int(i) in owners],
        [int(group[0])],
    ]
    return next(wish[0] for wish in wishes if wish)
