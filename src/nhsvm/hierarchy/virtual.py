"""Labels on inner nodes: virtual leaves, and the sub-hierarchies that keep or drop them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nhsvm.errors import LabelError
from nhsvm.hierarchy.build import collection
from nhsvm.hierarchy.graph import BoolArray, IntArray

if TYPE_CHECKING:
    from nhsvm.hierarchy.hierarchy import Hierarchy

Label = Hashable


@dataclass(frozen=True)
class VirtualLeaf:
    """The name, among ``Hierarchy.nodes``, of the leaf that stands for "this inner node itself"."""

    of: Label


def public(label: Label) -> Label:
    """The label a user knows: the inner node in place of its virtual leaf."""
    return label.of if isinstance(label, VirtualLeaf) else label


def with_virtual_leaves(hierarchy: Hierarchy, labels: Iterable[Label]) -> Hierarchy:
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


def subset(hierarchy: Hierarchy, labels: Iterable[Label]) -> Hierarchy:
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
