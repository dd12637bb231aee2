"""What the structure of a DAG alone settles about its label sets, found once: merged nodes, needless edges, trees.

Let x be the 0/1 vector of a label set. Below a virtual root, which is in every set:

- an inner node with one child is in the set exactly when the child is: the two are one *group*;
- an edge p → c beside a longer way from p to c says nothing that the longer way does not say (neither that c needs p,
  nor that p is covered when c is there), so it is dropped, which leaves fewer nodes with several parents;
- a node with one parent and nothing below but folded nodes is *folded* into the parent: a tree is solved bottom-up.

What is left is the *core*, on which rewards have to be traded off against each other. Rewards of a batch of samples are
folded onto it before anything else (:func:`fold_kernel`), and its sets unfolded to label sets in the end.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from nhsvm._jit import kernel
from nhsvm.hierarchy.graph import Graph, build_graph
from nhsvm.oracles.dag.core import ON, TUNING, Links, begin
from nhsvm.typing import Array, BoolArray, FloatArray, IntArray


class Plan(NamedTuple):
    """The graph of groups, its folds in order, and the core."""

    group: IntArray  # (n_nodes,) group of every node of the hierarchy
    is_leaf: BoolArray  # (n_groups,)
    fold_child: IntArray  # (n_folds,) children before their parents
    fold_parent: IntArray
    node: IntArray  # (n_core,) group of every node of the core; the first holds the virtual root
    links: Links  # of the core
    member: IntArray  # (n_core,) a node of the hierarchy in each of its groups, or −1


class Folded(NamedTuple):
    """By sample and group: what folds have made of the rewards."""

    worth: FloatArray  # its own reward, and of a folded group all below
    below: FloatArray  # sum of the folded children that are worth something
    most: FloatArray  # the best folded child


PLANS: WeakKeyDictionary[Graph, dict[bool, Plan]] = WeakKeyDictionary()  # as long as there is the graph


def plan_of(graph: Graph, allow_empty: bool) -> Plan:
    """The plan of a graph, made when it is first asked for: it takes longer than most answers, and never changes."""
    known = PLANS.setdefault(graph, {})
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
        _needless_kernel(links.parent_ptr, links.parent, TUNING.needless, keep)
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


def _members(group: IntArray, core: Array) -> IntArray:
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


def _inverse(order: Array) -> IntArray:
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


# -- rewards of the hierarchy's nodes onto the core, and its sets back to label sets ---------------------------------


@kernel
def fold_kernel(asked, limits, plan, allow_empty, folded, work):
    """Make samples ready for their first round.

    ``asked`` is a :class:`nhsvm.oracles.dag.search.Asked`. There may be no rows, and no room for shares in its memory.
    """
    rewards, scales, memory, rows = asked
    group, is_leaf, fold_child, fold_parent, core, member = (
        plan.group, plan.is_leaf, plan.fold_child, plan.fold_parent, plan.node, plan.member
    )  # fmt: skip
    parent_ptr, parent, nodes, trace = plan.links.parent_ptr, plan.links.parent, work.nodes, work.trace
    n, n_edges, n_groups = nodes.reward.shape[1], work.shares.share.shape[1], is_leaf.shape[0]
    covered = np.empty(n, np.uint8)
    for s in range(rewards.shape[0]):
        r, worth, below, most = rewards[s], folded.worth[s], folded.below[s], folded.most[s]
        begin(s, work.samples, work.lines, n, n_edges, 0, scales[s], limits)
        me, line = work.samples[s], work.lines[2 * s]
        me.remember = memory.shares.shape[1]
        must = -2.0 * me.big  # what a node without any child in the set costs
        # few branches on rewards: a processor cannot foresee them, and a wrong guess costs as much as two nodes
        for g in range(n_groups):
            worth[g] = 0.0
            below[g] = 0.0
            most[g] = 0.0 if is_leaf[g] else must
        for i in range(group.shape[0]):
            worth[group[i]] += r[i]
        if allow_empty:
            most[0] = 0.0
        for k in range(fold_child.shape[0]):
            c, p = fold_child[k], fold_parent[k]
            v = worth[c] + (below[c] if below[c] > 0.0 else most[c])
            worth[c] = v
            below[p] += max(v, 0.0)
            most[p] = max(v, most[p])
        b = 2 * s
        reward, cover, share, edge = nodes.reward[b], nodes.cover[b], work.shares.share[b], work.shares.edge[b]
        for i in range(n):
            g = core[i]
            reward[i] = worth[g] + below[g]
            cover[i] = 0.0 if below[g] > 0.0 else most[g]
            nodes.state[b, i], nodes.node[b, i], trace.done[b, i], trace.best[b, i] = 0, i, 0, -1
        nodes.state[b, 0] = ON  # the virtual root
        for q in range(n_edges):
            edge[q] = q
        if rows.shape[0] > 0 and memory.known[rows[s]]:
            # the last shares still bound well, and the last set is still good, if rewards have changed a little
            t = rows[s]
            if memory.known[t] == 2:
                line.swept, me.rounds, me.sweeps = 1, 1, 2  # a dive comes next: there is a set already
                for q in range(n_edges):
                    share[q] = memory.shares[t, q]
            value, wide = 0.0, work.best[s]
            for i in range(n):
                covered[i] = 0
                wide[i] = (memory.sets[t, member[i] >> 3] >> (7 - (member[i] & 7))) & 1 if member[i] >= 0 else 1
            for i in range(n - 1, -1, -1):
                if wide[i]:
                    value += reward[i] if covered[i] else reward[i] + cover[i]
                    for q in range(parent_ptr[i], parent_ptr[i + 1]):
                        covered[parent[q]] = 1
            me.value = value


@kernel
def unfold_kernel(asked, plan, allow_empty, folded, work, chosen):
    """The sets of nodes of the hierarchy that the best sets on the core stand for; remember the shares."""
    memory, rows = asked.memory, asked.rows
    group, fold_child, fold_parent, core = plan.group, plan.fold_child, plan.fold_parent, plan.node
    parent_ptr, parent, shares = plan.links.parent_ptr, plan.links.parent, work.shares
    n, n_edges, n_groups = core.shape[0], shares.share.shape[1], folded.worth.shape[1]
    y = np.empty(n_groups, np.uint8)
    bare = np.empty(n_groups, np.uint8)  # has nothing in the set below it
    for s in range(chosen.shape[0]):
        worth, below, most, on = folded.worth[s], folded.below[s], folded.most[s], work.best[s]
        for g in range(n_groups):
            y[g] = 0
            bare[g] = below[g] <= 0.0
        for i in range(n):
            y[core[i]] = on[i]
            if on[i]:  # most are not, in most samples
                for q in range(parent_ptr[i], parent_ptr[i + 1]):
                    bare[core[parent[q]]] = 0
        if allow_empty:
            bare[0] = 0
        for k in range(fold_child.shape[0] - 1, -1, -1):  # of equals, the first covers
            c, p = fold_child[k], fold_parent[k]
            only = bare[p] & np.uint8(worth[c] == most[p])
            y[c] = y[p] & (np.uint8(worth[c] > 0.0) | only)
            bare[p] &= ~only
        for i in range(group.shape[0]):
            chosen[s, i] = y[group[i]]
        if memory.shares.shape[1] > 0:
            t = rows[s]
            memory.known[t] = 2
            line = work.lines[2 * s]
            for q in range(line.n_edges):
                shares.kept[s, shares.edge[2 * s, q]] = shares.share[2 * s, q]
            for q in range(n_edges):
                memory.shares[t, q] = shares.kept[s, q]


@kernel
def unfold_points_kernel(x, covers, plan, folded, points):
    """The points on the nodes of the hierarchy that points (x, u) on the core stand for.

    What is folded into a node and worth something is there as far as the node is; of others, the best covers what the
    node needs: u on the core, and all of it where all below is folded.
    """
    group, fold_child, fold_parent, core = plan.group, plan.fold_child, plan.fold_parent, plan.node
    n_groups = folded.worth.shape[1]
    z, need = np.empty(n_groups), np.empty(n_groups)
    for s in range(points.shape[0]):
        worth, below, most = folded.worth[s], folded.below[s], folded.most[s]
        for i in range(core.shape[0]):
            z[core[i]] = x[s, i]
            need[core[i]] = min(covers[s, i], x[s, i]) if below[core[i]] <= 0.0 else 0.0
        for k in range(fold_child.shape[0] - 1, -1, -1):  # of equals, the first covers
            c, p = fold_child[k], fold_parent[k]
            z[c] = z[p] if worth[c] > 0.0 else 0.0
            if worth[c] == most[p] and worth[c] <= 0.0:
                z[c] = need[p]
                need[p] = 0.0
            need[c] = z[c] if below[c] <= 0.0 else 0.0
        for i in range(group.shape[0]):
            points[s, i] = z[group[i]]
