"""Norms of weight matrices (Section 6), each with the factorisation that attains it and a proof that none is better.

Every norm takes ``return_certificate=True``. It then returns the factors and both bounds instead of the value alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.sparse as sp

from nhsvm.checks import a_hierarchy, matrix
from nhsvm.errors import NHSVMError, NotSolvedError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import Graph
from nhsvm.paper import scaled_trace_norm, structured_norm
from nhsvm.sizes import is_number
from nhsvm.typing import FloatArray
from nhsvm.weights import shared_weights

_RANK = 1e-14  # singular values below this multiple of the largest are rounding


@dataclass(frozen=True, eq=False)
class Bounds:
    """A value and a proof of how far it may be above the optimum.

    Attributes
    ----------
    value : float
        From above: what the solution found costs.
    lower_bound : float
        From below: nothing costs less.
    """

    value: float
    lower_bound: float

    @property
    def gap(self) -> float:
        """How far ``value`` may be above the optimum, relatively; 0/0 counts as 0."""
        return float((self.value - self.lower_bound) / self.value) if self.value > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Factorisation(Bounds):
    """U = ``left`` @ ``right`` with the norms of the two factors multiplying to ``value``.

    Attributes
    ----------
    value, lower_bound : float
        The norm, from above and from below.
    left : array or sparse array of n_rows × n_factors
        A, the coefficients.
    right : array of n_factors × n_columns
        V, or Wᵀ in the paper's notation for the trace and max norms: the factors.
    row_weights, column_weights : array or None
        The proof of ``lower_bound`` for the shared and the max norm: probability vectors p and q with
        ‖diag(√p) U diag(√q)‖_* = ``lower_bound`` (no q for the shared norm).
    """

    left: FloatArray | sp.csr_array
    right: FloatArray
    row_weights: FloatArray | None = None
    column_weights: FloatArray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class NodeFactorisation(Factorisation):
    """A factorisation that follows a hierarchy: A_{ln} = √α_n for n ∈ Ā(l), V_n = U_n/√α_n.

    Attributes
    ----------
    node_weights : array of n_nodes
        α ≥ 0 with Σ_{n∈Ā(l)} α_n ≤ 1 for every leaf.
    node_rows : array of n_nodes × n_columns
        U_n, with Σ_{n∈Ā(l)} U_n = U_l and Σ_n ‖U_n‖²/α_n = ``value``².
    dual : array of n_leaves × n_columns
        Z, the proof of ``lower_bound`` = ⟨Z, U⟩ together with ``prices``.
    prices : array of n_leaves
        λ ≥ 0 with Σ_l λ_l = 1 and ‖Σ_{l below n} Z_l‖² ≤ Σ_{l below n} λ_l for every node n.
    """

    node_weights: FloatArray
    node_rows: FloatArray
    dual: FloatArray
    prices: FloatArray


@dataclass(frozen=True, eq=False)
class NodePenalty(Bounds):
    """The value of Eq. 20, Σ_n ‖U_n‖²/α_n, and the ``node_weights`` α that attain it."""

    node_weights: FloatArray


# -- without a hierarchy -----------------------------------------------------------------------------------------------


@overload
def frobenius_norm(U: npt.ArrayLike, *, return_certificate: Literal[False] = False) -> float: ...
@overload
def frobenius_norm(U: npt.ArrayLike, *, return_certificate: Literal[True]) -> Factorisation: ...
def frobenius_norm(U: npt.ArrayLike, *, return_certificate: bool = False) -> float | Factorisation:
    """‖U‖_F = (Σ_{ld} U_{ld}²)^{1/2}: ‖A‖_{2→∞}‖V‖_F for A = I, the factorisation that shares nothing (Table 1).

    The norm of a flat multi-class SVM. By Theorem 2 the shared norms are at most as large, and smaller only if sharing
    pays.

    Parameters
    ----------
    U : array of n_rows × n_columns
    return_certificate : bool
        Also return the factorisation; ``left`` is a sparse identity.

    Returns
    -------
    float or Factorisation

    Examples
    --------
    >>> frobenius_norm([[3.0, 0.0], [0.0, 4.0]])
    5.0
    """
    small, scale = _scaled(U)  # keeps the squares of huge and tiny entries in range
    value = scale * float(np.linalg.norm(small))
    if not return_certificate:
        return value
    return Factorisation(value, value, sp.csr_array(sp.diags_array(np.ones(len(small)))), matrix(U).copy())


@overload
def trace_norm(U: npt.ArrayLike, *, return_certificate: Literal[False] = False) -> float: ...
@overload
def trace_norm(U: npt.ArrayLike, *, return_certificate: Literal[True]) -> Factorisation: ...
def trace_norm(U: npt.ArrayLike, *, return_certificate: bool = False) -> float | Factorisation:
    """‖U‖_* = min_{AWᵀ=U} ‖A‖_F ‖W‖_F = Σ_i σ_i(U) (Theorem 2).

    From the singular value decomposition U = PΣQᵀ: A = PΣ^{1/2} and W = QΣ^{1/2} attain it, and ⟨PQᵀ, U⟩ with
    ‖PQᵀ‖₂ = 1 bounds it from below.

    Parameters
    ----------
    U : array of n_rows × n_columns
    return_certificate : bool
        Also return the factorisation: ``left`` is A, ``right`` is Wᵀ.

    Returns
    -------
    float or Factorisation

    Examples
    --------
    >>> trace_norm([[3.0, 0.0], [0.0, 4.0]])
    7.0
    >>> found = trace_norm([[1.0, 1.0], [1.0, 1.0]], return_certificate=True)
    >>> (found.left @ found.right).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    U, scale = _scaled(U)
    if not return_certificate:
        return scale * float(np.linalg.svd(U, compute_uv=False).sum())
    P, sigma, Qt = np.linalg.svd(U, full_matrices=False)
    root = np.sqrt(sigma)
    left, right = P * root * np.sqrt(scale), (root[:, None] * Qt) * np.sqrt(scale)
    value = float(np.linalg.norm(left) * np.linalg.norm(right))
    # the rounded PQᵀ may be a little longer than 1
    polar = P @ Qt
    below = scale * float(np.vdot(polar, U)) / max(1.0, float(np.linalg.norm(polar, 2)))
    return Factorisation(value, min(below, value), left, right)


@overload
def shared_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: Literal[False] = False) -> float: ...
@overload
def shared_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: Literal[True]) -> Factorisation: ...
def shared_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: bool = False) -> float | Factorisation:
    """‖U‖_s = min_{AV=U} ‖A‖_{2→∞} ‖V‖_F (Eq. 17), where ‖A‖_{2→∞} is the length of the longest row of A.

    Solved in its dual form, the maximum over probability vectors p of ‖diag(√p) U‖_*, by an interior-point method; on
    more than 1,200 rows, on a growing set of rows. Both sides of the result are proved: p gives ``lower_bound``, the
    factors give ``value``.

    Parameters
    ----------
    U : array of n_rows × n_columns
    tol : float
        Relative gap allowed between the two bounds.
    return_certificate : bool
        Return the factorisation, p and both bounds instead of the value alone.

    Returns
    -------
    float or Factorisation
        ``left`` is A, ``right`` is V, ``row_weights`` is p.

    Raises
    ------
    NotSolvedError
        If the bounds do not meet within ``tol``.

    Examples
    --------
    >>> round(shared_norm([[3.0, 4.0], [3.0, 4.0], [3.0, 4.0]]), 5)  # full sharing: ‖u‖
    5.0
    >>> round(shared_norm([[3.0, 0.0], [0.0, 4.0]]), 5)  # disjoint features: ‖U‖_F
    5.0
    >>> found = shared_norm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], return_certificate=True)
    >>> found.row_weights.round(3).tolist()
    [0.167, 0.167, 0.667]
    """
    (U, scale), tol = _scaled(U), _tolerance(tol)
    n, m = U.shape
    kept = U.any(axis=1)
    if not kept.any():
        found = Factorisation(0.0, 0.0, np.zeros((n, 1)), np.zeros((1, m)), np.full(n, 1 / n))
    else:
        rows, axes = _rotated(U[kept])
        best = scaled_trace_norm.solve(rows, columns=False, tol=tol)
        _check_gap("shared_norm", best.lower, best.upper, tol)
        left, p = np.zeros((n, best.left.shape[1])), np.zeros(n)
        left[kept], p[kept] = best.left, best.p
        found = Factorisation(scale * best.upper, scale * best.lower, left, scale * (best.right @ axes), p)
    return found if return_certificate else found.value


@overload
def max_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: Literal[False] = False) -> float: ...
@overload
def max_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: Literal[True]) -> Factorisation: ...
def max_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: bool = False) -> float | Factorisation:
    """‖U‖_max = min_{AWᵀ=U} ‖A‖_{2→∞} ‖W‖_{2→∞} (Theorem 2), the γ₂ norm; ‖·‖_{2→∞} as in :func:`shared_norm`.

    Solved in its dual form, the maximum over probability vectors p and q of ‖diag(√p) U diag(√q)‖_*, by an
    interior-point method; on more than 1,200 rows and columns together, on a growing set of these.

    Parameters
    ----------
    U : array of n_rows × n_columns
    tol : float
        Relative gap allowed between the two bounds.
    return_certificate : bool
        Return the factorisation, p, q and both bounds instead of the value alone.

    Returns
    -------
    float or Factorisation
        ``left`` is A, ``right`` is Wᵀ, ``row_weights`` is p, ``column_weights`` is q.

    Raises
    ------
    NotSolvedError
        If the bounds do not meet within ``tol``.

    Examples
    --------
    >>> round(max_norm([[1.0, 1.0], [1.0, -1.0]]), 5)  # √2
    1.41421
    >>> found = max_norm([[1.0, 0.0], [1.0, 1.0]], return_certificate=True)
    >>> round(found.value, 5), found.gap < 1e-6  # 2/√3, the smallest triangle
    (1.1547, True)
    """
    (U, scale), tol = _scaled(U), _tolerance(tol)
    n, m = U.shape
    rows, cols = U.any(axis=1), U.any(axis=0)
    if not rows.any():
        found = Factorisation(0.0, 0.0, np.zeros((n, 1)), np.zeros((1, m)), np.full(n, 1 / n), np.full(m, 1 / m))
    else:
        best = scaled_trace_norm.solve(U[np.ix_(rows, cols)], columns=True, tol=tol)
        _check_gap("max_norm", best.lower, best.upper, tol)
        k = best.left.shape[1]
        left, right, p, q = np.zeros((n, k)), np.zeros((k, m)), np.zeros(n), np.zeros(m)
        left[rows], right[:, cols], p[rows], q[cols] = best.left, scale * best.right, best.p, best.q
        found = Factorisation(scale * best.upper, scale * best.lower, left, right, p, q)
    return found if return_certificate else found.value


# -- along a hierarchy -------------------------------------------------------------------------------------------------


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
    graph = a_hierarchy(hierarchy).graph
    (U, scale), tol = _scaled(U), _tolerance(tol)
    if len(U) != graph.n_leaves:
        raise NHSVMError(
            f"U must have one row for each of the {graph.n_leaves} leaves of the hierarchy, but has {len(U)}"
        )
    rows, axes = _rotated(U)
    best = structured_norm.solve(rows, hierarchy, tol)
    squares = (best.rows**2).sum(axis=1)
    used = best.alpha > 0
    costs = np.divide(squares, best.alpha, out=np.where(squares > 0, np.inf, 0.0), where=used)  # 0/0 counts as 0
    upper = float(np.sqrt(costs.sum()))
    _check_gap("structured_shared_norm", best.lower, upper, tol)
    if not return_certificate:
        return scale * upper
    node_rows, root = scale * (best.rows @ axes), np.sqrt(best.alpha)[:, None]
    return NodeFactorisation(
        value=scale * upper,
        lower_bound=scale * min(best.lower, upper),
        left=sp.csr_array(graph.leaf_matrix() @ sp.diags_array(root[:, 0])),
        right=np.divide(node_rows, root, out=np.zeros_like(node_rows), where=root > 0),
        node_weights=best.alpha,
        node_rows=node_rows,
        dual=best.dual @ axes,
        prices=best.prices,
    )


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

    The node-level penalty of the Shared SVM. Here U has one row a *node*; :func:`structured_shared_norm` takes one row
    a leaf and also looks for the best node rows that add up to it, so that its square is the least penalty of all
    these.

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
    graph = a_hierarchy(hierarchy).graph
    rows, scale = _scaled(node_rows, "node_rows", column=True)
    if len(rows) != graph.n_nodes:
        raise NHSVMError(f"node_rows must have one row for each of {graph.n_nodes} nodes, but has {len(rows)}")
    squares = (rows**2).sum(axis=1)
    alpha = shared_weights(graph, squares)
    used = squares > 0
    value = float((squares[used] / alpha[used]).sum()) if (alpha[used] > 0).all() else np.inf
    if not return_certificate:
        return scale * scale * value
    gain = np.divide(squares, alpha**2, out=np.zeros_like(squares), where=used)
    lower = value**2 / _largest_total(graph, gain) if used.any() else 0.0
    return NodePenalty(scale * scale * value, scale * scale * min(lower, value), alpha)


def _largest_total(graph: Graph, gain: FloatArray) -> float:
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


# -- input and output --------------------------------------------------------------------------------------------------


def _scaled(U: npt.ArrayLike, name: str = "U", column: bool = False) -> tuple[FloatArray, float]:
    """``U`` divided by its largest entry, and this entry; 1 for zero."""
    array = matrix(U, name, column)
    scale = float(np.abs(array).max()) or 1.0
    return array / scale, scale


def _tolerance(tol: float) -> float:
    """``tol`` as a positive float."""
    if not is_number(tol) or not 0 < tol < np.inf:
        raise OptionError(f"tol must be a positive number, not {tol!r}")
    return float(tol)


def _check_gap(name: str, lower: float, upper: float, tol: float) -> None:
    """Raise ``NotSolvedError`` unless the two bounds agree to ``tol``."""
    gap = Bounds(upper, lower).gap
    if not (gap <= tol and np.isfinite(upper)):
        raise NotSolvedError(
            f"{name}: the norm is known to lie in [{lower:.10g}, {upper:.10g}], a relative gap of {gap:.1e}, "
            f"but tol={tol:.1e} was asked for: pass a larger tol"
        )


def _rotated(U: FloatArray) -> tuple[FloatArray, FloatArray]:
    """U = rows @ axes with as many columns in ``rows`` as U has rank, and orthonormal rows in ``axes``.

    The shared norms depend on U only through UUᵀ, so such a rotation loses nothing.
    """
    if U.shape[1] > U.shape[0]:
        wide, triangle = np.linalg.qr(U.T)
        rows, axes = _rotated(triangle.T)
        return rows, axes @ wide.T
    _, sigma, Qt = np.linalg.svd(U, full_matrices=False)
    axes = Qt[: max(1, int((sigma > _RANK * sigma[0]).sum()))]
    return U @ axes.T, axes
