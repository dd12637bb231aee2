"""The node-level penalty of the Shared SVM: the first term of Eq. 14 at its best α (Eq. 20)."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
import numpy.typing as npt
import scipy.optimize

from nhsvm.errors import NHSVMError, NotSolvedError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray, Graph
from nhsvm.norms import _input
from nhsvm.norms._certificate import NodePenalty
from nhsvm.weights import shared_weights


@overload
def node_penalty(
    node_rows: npt.ArrayLike, hierarchy: Hierarchy, *, return_certificate: Literal[False] = False
) -> float: ...
@overload
def node_penalty(
    node_rows: npt.ArrayLike, hierarchy: Hierarchy, *, return_certificate: Literal[True]
) -> NodePenalty: ...
def node_penalty(
    node_rows: npt.ArrayLike, hierarchy: Hierarchy, *, return_certificate: bool = False
) -> float | NodePenalty:
    """min_α Σ_n ‖U_n‖²/α_n  s.t.  Σ_{n∈Ā(l)} α_n ≤ 1 for every leaf l,  α ≥ 0 (first term of Eq. 14; Eq. 20).

    Here U has one row a *node*; :func:`structured_shared_norm` takes one row a leaf and also looks for the best node
    rows that add up to it, so that its square is the least penalty of all these.

    Parameters
    ----------
    node_rows : array of n_nodes × n_columns, or array of n_nodes
        U_n, or just their lengths ‖U_n‖, aligned with ``hierarchy.nodes``.
    hierarchy : Hierarchy
        G.
    return_certificate : bool
        Return α and a lower bound with the value.

    Returns
    -------
    float or NodePenalty

    Notes
    -----
    Lower bound: (Σ_n ‖U_n‖²/α_n)² / max_β Σ_n β_n ‖U_n‖²/α_n² over feasible β, by Cauchy-Schwarz. That maximum is a
    recursion on a tree and a linear program on a DAG; it is computed only for the certificate.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat")])
    >>> node_penalty([2.0, 3.0, 4.0], h)  # (2 + √(3² + 4²))²
    49.0
    >>> node_penalty([2.0, 3.0, 4.0], h, return_certificate=True).node_weights.round(3).tolist()
    [0.286, 0.714, 0.714]
    """
    graph = _input.a_hierarchy(hierarchy).graph
    rows = _input.matrix(node_rows, "node_rows", column=True)
    if len(rows) != graph.n_nodes:
        raise NHSVMError(f"node_rows must have one row for each of {graph.n_nodes} nodes, but has {len(rows)}")
    scale = float(np.abs(rows).max()) or 1.0
    squares = ((rows / scale) ** 2).sum(axis=1)
    alpha = shared_weights(graph, squares)
    used = squares > 0
    value = float((squares[used] / alpha[used]).sum()) if (alpha[used] > 0).all() else np.inf
    if not return_certificate:
        return scale * scale * value
    gain = np.divide(squares, alpha**2, out=np.zeros_like(squares), where=used)
    lower = value**2 / largest_total(graph, gain) if used.any() else 0.0
    return NodePenalty(scale * scale * value, scale * scale * min(lower, value), alpha)


def largest_total(graph: Graph, gain: FloatArray) -> float:
    """Max Σ_n β_n gain_n  s.t.  Σ_{n∈Ā(l)} β_n ≤ 1 for every leaf l,  β ≥ 0, for gain ≥ 0, from above.

    On a tree each node either takes all of what reaches it or leaves it to its children.
    """
    if graph.is_tree:
        best = gain.copy()
        for nodes in graph.levels_up():
            inner = np.arange(nodes.start, nodes.stop)[~graph.is_leaf[nodes]]
            if len(inner):
                below = graph.children.rows(inner)
                best[inner] = np.maximum(best[inner], np.add.reduceat(best[below.indices], below.indptr[:-1]))
        return float(best[: graph.n_roots].sum())
    used = np.flatnonzero(gain)
    A = graph.leaf_matrix()[:, used]
    scale = gain.max()
    # the dual, min Σλ s.t. Aᵀλ ≥ gain: what the solver's tolerance leaves a node short of is added below that node
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = scipy.optimize.linprog(
        np.ones(graph.n_leaves), A_ub=-A.T, b_ub=-gain[used] / scale, method="highs", options=tight
    )
    if answer.x is None:
        raise NotSolvedError(f"node_penalty: no lower bound, the linear program failed: {answer.message}")
    price = np.maximum(answer.x, 0)
    short = np.maximum(gain[used] / scale - A.T @ price, 0)
    return float(scale * (price.sum() + short.sum()))
