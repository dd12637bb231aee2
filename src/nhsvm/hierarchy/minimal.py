"""Duplicated nodes, and the minimal graph M(G) of Theorem 1, which has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nhsvm.errors import LabelError
from nhsvm.hierarchy.graph import Ragged
from nhsvm.hierarchy.labels import LabelSpace, public, samples

if TYPE_CHECKING:
    from nhsvm.hierarchy.build import EdgeArrays
    from nhsvm.hierarchy.hierarchy import Hierarchy
    from nhsvm.typing import IntArray, Label, LabelsLike


def duplicate_classes(hierarchy: Hierarchy, y: LabelsLike = None) -> IntArray:
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


def minimal_arrays(hierarchy: Hierarchy, y: LabelsLike = None) -> EdgeArrays:
    """Merge duplicated nodes; see ``Hierarchy.minimal``."""
    if y is not None:
        y = samples(y)
        hierarchy = LabelSpace.for_labels(hierarchy, y).hierarchy
    cls = duplicate_classes(hierarchy, y)
    parent, child = hierarchy.graph.edges()
    pairs = np.stack([cls[parent], cls[child]], axis=1)
    # an edge inside a class vanishes; occurrences shrink along edges, so classes cannot form a cycle
    pairs = np.unique(pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])], axis=0)
    return _names(hierarchy, cls), pairs[:, 0].astype(np.int32), pairs[:, 1].astype(np.int32)


def _names(hierarchy: Hierarchy, cls: IntArray) -> list[Label]:
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
    members: list[int] = group.tolist()
    leaves, inside = [i for i in members if hierarchy.graph.is_leaf[i]], set(members)
    wishes = [
        [i for i in leaves if i not in node_of],
        [node_of[i] for i in leaves if i in node_of and node_of[i] in inside],
        leaves,
        [i for i in members if i in owners],
        members,
    ]
    return next(wish[0] for wish in wishes if wish)
