"""The best label set on a tree: the dynamic programme of Section 7.1 over Y_m, exact and O(M)."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel
from nhsvm.errors import HierarchyError
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles.protocol import Oracle
from nhsvm.typing import ByteArray, FloatArray


class TreeMultilabel(Oracle):
    """argmax Σ_{n∈y} r_n over Y_m, the closures y = Ā(L) of non-empty leaf sets L, on a tree or forest (Eq. 19).

    Bottom-up, the best that a node n brings if it is in y is g_n = r_n + Σ_c max(g_c, 0) over its children c, or
    r_n + max_c g_c if no child is worth it, since an inner node needs one. Top-down, that is read off.

    Parameters
    ----------
    graph : Graph
        Without a node that has two parents.
    allow_empty : bool
        Admit the empty set, of value 0, as well.

    Notes
    -----
    Ties: a subtree is taken only if it strictly helps, so that no leaf could be dropped for nothing; where one child
    (or one root) must be taken, it is the first of equals. Nothing changes after the oracle is made, so threads may
    share it.

    Examples
    --------
    >>> import numpy as np
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> h.nodes
    ('animal', 'plant', 'dog', 'cat', 'oak')
    >>> rewards = np.array([[-1.0, -2.0, 3.0, -1.0, 1.0], [-1.0, -2.0, -3.0, -4.0, -5.0]])
    >>> chosen, value, bound = np.empty((2, 5), np.uint8), np.empty(2), np.empty(2)
    >>> TreeMultilabel(h.graph).solve(rewards, chosen, value, bound)
    >>> chosen
    array([[1, 0, 1, 0, 0],
           [1, 0, 1, 0, 0]], dtype=uint8)
    >>> value
    array([ 2., -4.])
    """

    exact = True

    def __init__(self, graph: Graph, *, allow_empty: bool = False) -> None:
        if not graph.is_tree:
            child = int(np.argmax(graph.parents.sizes() > 1))
            raise HierarchyError(
                f"tree_multilabel is for trees, but node number {child} has several parents; use dag_multilabel or lp"
            )
        super().__init__(graph, allow_empty)
        # breadth-first numbers: first the roots, below one common node n_nodes; then everybody's children in turn
        self._parent = np.concatenate([np.full(graph.n_roots, graph.n_nodes, np.int32), graph.parents.indices])
        below_all = [graph.n_nodes + 1]  # that node's children are elsewhere, but it has some
        self._first_child = np.concatenate([graph.children.indptr + graph.n_roots, below_all]).astype(np.int32)

    def _solve(self, rewards: FloatArray, chosen: ByteArray, value: FloatArray, bound: FloatArray) -> None:
        _best_sets_kernel(rewards, self._parent, self._first_child, self.graph.n_roots, self.allow_empty, chosen, value)
        bound[:] = value


@kernel
def _best_sets_kernel(rewards, parent, first_child, n_roots, allow_empty, chosen, value):
    # few branches on rewards: a processor cannot foresee them, and every wrong guess costs as much as two nodes
    n_nodes = rewards.shape[1]
    gain = np.empty(n_nodes)
    below = np.empty(n_nodes + 1)  # sum of the children worth it; the last entry is for what is above the roots
    most = np.empty(n_nodes + 1)  # the gain of the best child
    for t in range(rewards.shape[0]):
        r, y = rewards[t], chosen[t]
        for n in range(n_nodes + 1):
            below[n] = 0.0
            most[n] = 0.0 if first_child[n] == first_child[n + 1] else -1e308
        for n in range(n_nodes - 1, -1, -1):
            p = parent[n]
            g = r[n] + (below[n] if below[n] > 0.0 else most[n])
            gain[n] = g
            below[p] += max(g, 0.0)
            most[p] = max(g, most[p])

        y[:] = 0
        value[t] = below[n_nodes]
        for n in range(n_roots):
            y[n] = gain[n] > 0.0
        if below[n_nodes] <= 0.0 and not allow_empty:
            value[t] = most[n_nodes]
            n = 0
            while gain[n] < most[n_nodes]:
                n += 1
            y[n] = 1
        for n in range(n_nodes):
            if n >= n_roots:
                y[n] |= y[parent[n]] & np.uint8(gain[n] > 0.0)
            c = first_child[n]
            if y[n] & np.uint8(below[n] <= 0.0) & np.uint8(c < first_child[n + 1]):
                while gain[c] < most[n]:
                    c += 1
                y[c] = 1
