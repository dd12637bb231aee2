"""What the structure of a DAG alone settles about its label sets, found once: merged nodes, needless edges, trees.

Let x be the 0/1 vector of a label set. Below a virtual root, which is in every set:

- an inner node with one child is in the set exactly when the child is: the two are one *group*;
- an edge p → c beside a longer way from p to c says nothing that the longer way does not say (neither that c needs p,
  nor that p is covered when c is there), so it is dropped, which leaves fewer nodes with several parents;
- a node with one parent and nothing below but folded nodes is *folded* into the parent: a tree is solved bottom-up.

What is left is the *core*, on which rewards have to be traded off against each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from nhsvm._jit import kernel
from nhsvm.hierarchy.graph import BoolArray, Graph, IntArray, build_graph

_SEARCH = 200_000_000  # steps in the search for needless edges; beyond, edges are kept


class Links(NamedTuple):
    """Edges of a graph in topological numbering: children by parent, parents by child."""

    child_ptr: IntArray
    child: IntArray
    parent_ptr: IntArray
    parent: IntArray
    slot: IntArray  # of every entry of ``child``: the same edge's position in ``parent``


class Plan(NamedTuple):
    """The graph of groups, its folds in order, and the core."""

    group: IntArray  # (n_nodes,) group of every node of the hierarchy
    is_leaf: BoolArray  # (n_groups,)
    fold_child: IntArray  # (n_folds,) children before their parents
    fold_parent: IntArray
    node: IntArray  # (n_core,) group of every node of the core; the first holds the virtual root
    links: Links  # of the core
    member: IntArray  # (n_core,) a node of the hierarchy in each of its groups, or −1


_PLANS: WeakKeyDictionary[Graph, dict[bool, Plan]] = WeakKeyDictionary()  # as long as there is the graph


def plan_of(graph: Graph, allow_empty: bool) -> Plan:
    """The plan of a graph, made when it is first asked for: it takes longer than most answers, and never changes."""
    known = _PLANS.setdefault(graph, {})
    if allow_empty not in known:
        known[allow_empty] = make_plan(graph, allow_empty)
    return known[allow_empty]


def make_plan(graph: Graph, allow_empty: bool) -> Plan:
    """See the top of this file. With ``allow_empty`` the virtual root needs no child."""
    n = graph.n_nodes + 1  # node 0 is the virtual root
    parent, child = graph.edges()
    roots = np.arange(1, graph.n_roots + 1, dtype=np.int32)
    parent = np.concatenate([np.zeros_like(roots), parent + 1]).astype(np.int32)
    child = np.concatenate([roots, child + 1]).astype(np.int32)
    current, order = build_graph(n, parent, child)
    group = _inverse(order)
    while True:
        links = make_links(current.n_nodes, *current.edges())
        merged = np.empty(current.n_nodes, np.int32)
        _merge_kernel(links.child_ptr, links.child, allow_empty, merged)
        keep = np.ones(current.n_edges, bool)
        _needless_kernel(links.parent_ptr, links.parent, _SEARCH, keep)
        distinct, new = np.unique(merged, return_inverse=True)
        if keep.all() and len(distinct) == current.n_nodes:
            break
        parent, child = current.edges()
        ends = np.unique(np.stack([new[parent[keep]], new[child[keep]]]).astype(np.int32), axis=1)
        ends = ends[:, ends[0] != ends[1]]
        current, order = build_graph(len(distinct), ends[0], ends[1])
        group = _inverse(order)[new[group]]
    gone = np.zeros(current.n_nodes, np.uint8)
    folds = np.empty((2, current.n_nodes), np.int32)
    n_folds = _fold_order_kernel(links.child_ptr, links.child, links.parent_ptr, links.parent, gone, *folds)
    return Plan(
        group=group[1:].copy(),
        is_leaf=current.is_leaf,
        fold_child=folds[0, :n_folds].copy(),
        fold_parent=folds[1, :n_folds].copy(),
        node=np.flatnonzero(gone == 0).astype(np.int32),
        links=_restricted(links, gone == 0),
        member=_members(group[1:], np.flatnonzero(gone == 0)),
    )


def _members(group: IntArray, core: npt.NDArray[np.integer[Any]]) -> IntArray:
    """A node of the hierarchy in each group of the core; −1 for the virtual root if it stands alone."""
    first = np.full(int(max(group.max(initial=0), core.max())) + 1, -1, np.int32)
    first[group[::-1]] = np.arange(len(group), dtype=np.int32)[::-1]
    found: IntArray = first[core]
    return found


def make_links(n: int, parent: IntArray, child: IntArray) -> Links:
    """Both lists of edges whose ends are in topological numbers already."""
    down = np.lexsort((child, parent))
    parent, child = parent[down], child[down]
    up = np.lexsort((parent, child))
    child_ptr = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=n))]).astype(np.int32)
    parent_ptr = np.concatenate([[0], np.cumsum(np.bincount(child, minlength=n))]).astype(np.int32)
    return Links(child_ptr, child.astype(np.int32), parent_ptr, parent[up].astype(np.int32), _inverse(up))


def _restricted(links: Links, keep: BoolArray) -> Links:
    """The graph of the nodes kept, renumbered in order."""
    number = (np.cumsum(keep) - 1).astype(np.int32)
    parent = np.repeat(np.arange(len(keep), dtype=np.int32), np.diff(links.child_ptr))
    inside = keep[parent] & keep[links.child]
    return make_links(int(keep.sum()), number[parent[inside]], number[links.child[inside]])


def _inverse(order: npt.NDArray[np.integer[Any]]) -> IntArray:
    position = np.empty(len(order), np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    return position


@kernel
def _merge_kernel(child_ptr, child, allow_empty, merged):
    # children have higher numbers, so theirs are known
    for n in range(merged.shape[0] - 1, -1, -1):
        only = child_ptr[n + 1] - child_ptr[n] == 1 and not (allow_empty and n == 0)
        merged[n] = merged[child[child_ptr[n]]] if only else n


@kernel
def _needless_kernel(parent_ptr, parent, budget, keep):
    # climb from all parents at once, never above the highest of them: a parent that is met again is an ancestor of
    # another
    n = parent_ptr.shape[0] - 1
    mark = np.full(n, -1, np.int32)
    stack = np.empty(n, np.int32)
    steps = 0
    for c in range(n):
        first, last = parent_ptr[c], parent_ptr[c + 1]
        if last - first < 2 or steps > budget:
            continue
        top = parent[first]
        size = 0
        for q in range(first, last):
            top = min(top, parent[q])
        for q in range(first, last):
            stack[0] = parent[q]
            size = 1
            while size > 0:
                size -= 1
                v = stack[size]
                for k in range(parent_ptr[v], parent_ptr[v + 1]):
                    u = parent[k]
                    steps += 1
                    if u >= top and mark[u] != c:
                        mark[u] = c
                        stack[size] = u
                        size += 1
        for q in range(first, last):
            if mark[parent[q]] == c:
                keep[q] = False


@kernel
def _fold_order_kernel(child_ptr, child, parent_ptr, parent, gone, fold_child, fold_parent):
    n_folds = 0
    for n in range(gone.shape[0] - 1, 0, -1):
        kept = 0
        for e in range(child_ptr[n], child_ptr[n + 1]):
            kept += 1 - gone[child[e]]
        if kept == 0 and parent_ptr[n + 1] - parent_ptr[n] == 1:
            gone[n] = 1
            fold_child[n_folds] = n
            fold_parent[n_folds] = parent[parent_ptr[n]]
            n_folds += 1
    return n_folds
