"""The structured shared Frobenius norm (Eq. 16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import NHSVMError
from nhsvm.hierarchy import Hierarchy, duplicate_classes
from nhsvm.hierarchy.graph import FloatArray, Graph, IntArray
from nhsvm.norms import _input
from nhsvm.norms._certificate import NodeFactorisation, require
from nhsvm.norms._reduce import rotated
from nhsvm.norms._weighting import minimise


@overload
def structured_shared_norm(
    U: npt.ArrayLike, hierarchy: Hierarchy, *, tol: float = 1e-6, return_certificate: Literal[False] = False
) -> float: ...
@overload
def structured_shared_norm(
    U: npt.ArrayLike, hierarchy: Hierarchy, *, tol: float = 1e-6, return_certificate: Literal[True]
) -> NodeFactorisation: ...
def structured_shared_norm(
    U: npt.ArrayLike, hierarchy: Hierarchy, *, tol: float = 1e-6, return_certificate: bool = False
) -> float | NodeFactorisation:
    """‖U‖_{s,G} = min ‖A‖_{2→∞} ‖V‖_F  s.t.  AV = U,  A_{ln} = a_n if n ∈ Ā(l) and 0 otherwise,  a ≥ 0 (Eq. 16).

    With α_n = a_n² and U_n = a_n V_n that is

        ‖U‖²_{s,G} = min Σ_n ‖U_n‖²/α_n  s.t.  Σ_{n∈Ā(l)} U_n = U_l,  Σ_{n∈Ā(l)} α_n ≤ 1 for every leaf l,  α ≥ 0,

    convex in (U_n, α) together. An interior-point method over α alone solves it, on trees and on DAGs. Nodes above
    every leaf take part: full sharing needs them. Of nodes above the same leaves only one gets any weight.

    Parameters
    ----------
    U : array of n_leaves × n_columns
        One row a class, aligned with ``hierarchy.leaves``.
    hierarchy : Hierarchy
        G.
    tol : float
        Relative gap allowed between the two bounds. 1e-8 is within reach, unless many leaves share all they have.
    return_certificate : bool
        Return the factorisation, α and both bounds instead of the value alone.

    Returns
    -------
    float or NodeFactorisation
        ``node_weights`` is α, ``node_rows`` are the U_n, ``left`` is A (sparse), ``right`` is V.

    Raises
    ------
    NotSolvedError
        If the bounds do not meet within ``tol``.

    Notes
    -----
    The path needs 15 to 50 Newton steps, each a few sparse systems over the inner nodes: on one core about a second for
    5,000 nodes and 15 to 30 seconds for a tree of 50,000. On DAGs of that size the systems fill in, and a few columns
    take some minutes; a ``tol`` of 1e-3 takes a third of that (``benchmarks/norms.py`` measures it).

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> round(structured_shared_norm([[3.0, 4.0], [3.0, 4.0], [0.0, 0.0]], h), 5)  # dog and cat share "animal"
    5.0
    >>> found = structured_shared_norm([[2.0, 1.0], [2.0, -1.0], [0.0, 0.0]], h, return_certificate=True)
    >>> dict(zip(h.nodes, found.node_weights.round(3).tolist()))
    {'animal': 0.333, 'plant': 0.0, 'dog': 0.667, 'cat': 0.667, 'oak': 1.0}
    >>> round(found.value, 5)  # ‖U‖_F is 3.16228
    3.0
    """
    graph = _input.a_hierarchy(hierarchy).graph
    U, tol = _input.matrix(U), _input.tolerance(tol)
    if len(U) != graph.n_leaves:
        raise NHSVMError(
            f"U must have one row for each of the {graph.n_leaves} leaves of the hierarchy, but has {len(U)}"
        )
    scale = float(np.abs(U).max()) or 1.0
    basis = rotated(U / scale)
    found = _solve(basis.rows, _inner_nodes(hierarchy), graph, tol)
    upper = float(np.sqrt(_cost(found.alpha, found.rows)))
    require("structured_shared_norm", found.lower, upper, tol)
    if not return_certificate:
        return scale * upper
    node_rows, dual = scale * basis.back(found.rows), basis.back(found.dual)
    root = np.sqrt(found.alpha)
    left = graph.leaf_matrix() @ sp.diags_array(root)
    right = np.divide(node_rows, root[:, None], out=np.zeros_like(node_rows), where=root[:, None] > 0)
    return NodeFactorisation(
        value=scale * upper,
        lower_bound=scale * min(found.lower, upper),
        left=sp.csr_array(left),
        right=right,
        node_weights=found.alpha,
        node_rows=node_rows,
        dual=dual,
        prices=found.prices,
    )


@dataclass(frozen=True)
class _Found:
    alpha: FloatArray
    rows: FloatArray
    dual: FloatArray
    prices: FloatArray
    lower: float


def _inner_nodes(hierarchy: Hierarchy) -> IntArray:
    """The nodes that can be of use besides the leaves: one of each set of nodes above the same two or more leaves."""
    graph = hierarchy.graph
    same = duplicate_classes(hierarchy)
    _, first = np.unique(same, return_index=True)
    inner = np.sort(first)
    return inner[graph.leaf_counts[inner] > 1].astype(np.int32)


def _solve(U: FloatArray, inner: IntArray, graph: Graph, tol: float) -> _Found:
    """α, node rows and the proof, for U of order 1."""
    alpha, rows = np.zeros(graph.n_nodes), np.zeros((graph.n_nodes, U.shape[1]))
    B = sp.csr_array(graph.leaf_matrix()[:, inner])
    linked = np.diff(B.indptr) > 0
    alone = graph.leaves[~linked]  # leaves that share with nobody: all weight, all of their row
    alpha[alone], rows[alone] = 1, U[~linked]
    dual, prices = U.copy(), (U**2).sum(axis=1)  # right for these leaves
    if linked.any() and U[linked].any():
        found, size = minimise(sp.csr_array(B[linked]), U[linked], graph.is_tree, 0.5 * tol)
        best, proof = found.upper_point, found.lower_point
        alpha[inner], alpha[graph.leaves[linked]] = best.a, np.maximum(1 - B[linked] @ best.a, 0)
        rows[inner], rows[graph.leaves[linked]] = (size * part for part in best.rows)
        dual[linked], prices[linked] = size * proof.Z, size**2 * proof.prices(found.lower_xz)
        # both parts add up as squares, for the multiple of each Z that has ⟨Z, U⟩ = Σ λ
        fit = size**2 * proof.agreement / prices[linked].sum()
        dual[linked] *= fit
        prices[linked] *= fit**2
    elif linked.any():
        alpha[graph.leaves[linked]] = 1
    total = prices.sum()
    if total == 0:  # U = 0
        return _Found(alpha, rows, dual, np.full(len(U), 1 / len(U)), 0.0)
    dual, prices = dual / np.sqrt(total), prices / total
    return _Found(alpha, rows, dual, prices, float(np.vdot(dual, U)))


def _cost(alpha: FloatArray, rows: FloatArray) -> float:
    """Σ_n ‖U_n‖²/α_n, where 0/0 counts as 0."""
    squares = (rows**2).sum(axis=1)
    return float(np.divide(squares, alpha, out=np.where(squares > 0, np.inf, 0.0), where=alpha > 0).sum())
