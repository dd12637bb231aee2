"""The structured shared norm as a problem in the node weights alone: min over α of tr Uᵀ K(α)⁻¹ U, K(α) = A diag(α) Aᵀ.

The inner nodes have weights a > 0, each leaf has what they leave, s = 1 - Ba > 0, where B is the leaf × inner part of
A; so K = diag(s) + B diag(a) Bᵀ. With Z = K⁻¹U and V = BᵀZ the best node rows are a_n V_n and s_l Z_l, the objective is
Σ a_n ‖V_n‖² + Σ s_l ‖Z_l‖², and its derivatives in a_n and s_l are -‖V_n‖² and -‖Z_l‖².

Lower bound: for prices λ_l ≥ ‖Z_l‖² with Σ_{l below n} λ_l ≥ ‖V_n‖² every feasible α has Σ α_n ‖V_n‖² ≤ Σ λ_l, hence
norm ≥ ⟨Z, U⟩/√(Σ λ_l) by Cauchy-Schwarz. The path's multipliers give λ_l = ‖Z_l‖² + z_l.

All linear systems are diag(c) + Bᵀ diag(e) B over the inner nodes: :class:`Couplings` factorises them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from nhsvm.hierarchy import Hierarchy, duplicate_classes
from nhsvm.paper.interior_point import Found, follow
from nhsvm.typing import FloatArray, IntArray, PtrArray

Solve = Callable[[FloatArray], FloatArray]
_LU = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}  # positive definite: the diagonal is pivot enough


@dataclass(frozen=True)
class Tuning:
    """Sizes at which methods change.

    Attributes
    ----------
    dense_nodes, dense_leaves : int
        Inner nodes and leaves up to which the whole Hessian is factorised; beyond, conjugate gradients.
    dense_system : int
        Inner nodes up to which a system is factorised as a dense matrix.
    deep : float
        Inner nodes above a node, on average, from which a tree is not multiplied out.
    cg_accuracy, cg_steps : float, int
        Relative residual at which conjugate gradients end, and the most steps.
    """

    dense_nodes: int = 600
    dense_leaves: int = 3000
    dense_system: int = 600
    deep: float = 20
    cg_accuracy: float = 1e-3
    cg_steps: int = 400


TUNING = Tuning()


@dataclass(frozen=True)
class Solution:
    """α, node rows, and the proof (Z, λ) of the lower bound ⟨Z, U⟩."""

    alpha: FloatArray
    rows: FloatArray
    dual: FloatArray
    prices: FloatArray
    lower: float


def solve(U: FloatArray, hierarchy: Hierarchy, tol: float) -> Solution:
    """The best node weights for one row a leaf; ``U`` of order 1."""
    graph, inner = hierarchy.graph, _inner_nodes(hierarchy)
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
        return Solution(alpha, rows, dual, np.full(len(U), 1 / len(U)), 0.0)
    dual, prices = dual / np.sqrt(total), prices / total
    return Solution(alpha, rows, dual, prices, float(np.vdot(dual, U)))


def _inner_nodes(hierarchy: Hierarchy) -> IntArray:
    """The nodes that can be of use besides the leaves: one of each set of nodes above the same two or more leaves."""
    graph = hierarchy.graph
    same = duplicate_classes(hierarchy)
    _, first = np.unique(same, return_index=True)
    inner = np.sort(first)
    return inner[graph.leaf_counts[inner] > 1].astype(np.int32)


def minimise(B: sp.csr_array, U: FloatArray, is_tree: bool, tol: float) -> tuple[Found[Weighting], float]:
    """The best weights for a leaf × inner matrix without empty rows, and the scale of the bounds found."""
    deep = is_tree and B.nnz > TUNING.deep * sum(B.shape)
    couplings = NestedCouplings(B) if deep else SparseCouplings(B)
    lengths = B.sum(axis=1) + 1  # |Ā(l)|
    longest = sp.csr_array((np.repeat(lengths, np.diff(B.indptr)), B.indices, B.indptr), shape=B.shape).max(axis=0)
    a = 1 / longest.toarray().ravel()
    start = Weighting(couplings, U, a, 1 - B @ a)
    scale = float(np.sqrt(start.objective))
    return follow(Weighting(couplings, U / scale, a, start.s), _moved, tol), scale


def _moved(at: Weighting, d: FloatArray) -> Weighting:
    n = len(at.a)
    return Weighting(at.couplings, at.U, at.a * (1 + d[:n]), at.s * (1 + d[n:]))


@dataclass(frozen=True)
class Weighting:
    """A strictly feasible (a, s), with B as something that multiplies and solves with it, and the leaf rows U."""

    couplings: Couplings
    U: FloatArray
    a: FloatArray
    s: FloatArray

    @cached_property
    def solve(self) -> Solve:
        """Solves with diag(1/a) + Bᵀ diag(1/s) B."""
        return self.couplings.factorise(1 / self.a, 1 / self.s)

    @cached_property
    def rows(self) -> tuple[FloatArray, FloatArray]:
        """The best node rows: of the inner nodes, and of the leaves (what the inner ones leave of U, exactly)."""
        inner = self.solve(self.couplings.up(self.U / self.s[:, None]))
        return inner, self.U - self.couplings.down(inner)

    @cached_property
    def V(self) -> FloatArray:
        return np.asarray(self.rows[0] / self.a[:, None])

    @cached_property
    def Z(self) -> FloatArray:
        return np.asarray(self.rows[1] / self.s[:, None])

    @cached_property
    def x(self) -> FloatArray:
        return np.concatenate([self.a, self.s])

    @cached_property
    def squares(self) -> FloatArray:
        """‖V_n‖² and ‖Z_l‖²."""
        return np.concatenate([(self.V**2).sum(axis=1), (self.Z**2).sum(axis=1)])

    @cached_property
    def slope(self) -> FloatArray:
        return -self.x * self.squares

    @cached_property
    def objective(self) -> float:
        return -float(self.slope.sum())

    def prices(self, xz: FloatArray) -> FloatArray:
        """λ, feasible for Z."""
        n = len(self.a)
        price = self.squares[n:] + xz[n:] / self.s
        sums = self.couplings.up(self.Z)  # V up to rounding, but a proof must be about Z itself
        return price * max(1.0, float(((sums**2).sum(axis=1) / self.couplings.up(price)).max()))

    def bounds(self, xz: FloatArray) -> tuple[float, float]:
        """Of the norm (not of its square)."""
        # ⟨Z, U⟩ = Σ α‖V‖² holds for the exact Z only, so U itself is asked
        return self.agreement / float(np.sqrt(self.prices(xz).sum())), float(np.sqrt(self.objective))

    @cached_property
    def agreement(self) -> float:
        """⟨Z, U⟩."""
        return float(np.vdot(self.Z, self.U))

    def _inner(self, nodes: FloatArray, leaves: FloatArray) -> FloatArray:
        """A derivative in (a, s) as one in a alone, s = 1 - Ba."""
        return np.asarray(nodes - self.couplings.up(leaves))

    def offset(self, xz: FloatArray) -> float:
        """Stationarity: ‖V_n‖² + z_n = Σ_{l below n} (‖Z_l‖² + z_l)."""
        n = len(self.a)
        pull = self.squares + xz / self.x
        return float(np.abs(self._inner(pull[:n], pull[n:]) / (xz[:n] / self.a)).max())

    def newton(self, xz: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """(Hessian + diag(z/a) + Bᵀ diag(z/s) B) Δa = -gradient + target/a - Bᵀ(target/s)."""
        n = len(self.a)
        stiff = xz / self.x**2
        B = self.couplings.B
        small = n <= TUNING.dense_nodes and len(self.s) <= TUNING.dense_leaves
        solve = self._iterative(stiff) if B is None or not small else self._dense(stiff, B)

        def step(target: FloatArray) -> FloatArray:
            pull = self.squares + target / self.x
            move = solve(self._inner(pull[:n], pull[n:]))
            return np.concatenate([move, -self.couplings.down(move)]) / self.x

        return step

    def _dense(self, stiff: FloatArray, B: sp.csr_array) -> Solve:
        """By Cholesky of 2 (AᵀK⁻¹A) ∘ (VVᵀ) with the leaves eliminated."""
        Bt, V, Z, n = sp.csr_array(B.T), self.V, self.Z, len(self.a)
        inverse = self.solve(np.eye(n))
        H = (np.diag(1 / self.a) - inverse / self.a[:, None] / self.a) * (V @ V.T)
        spread = (B @ inverse) / self.s[:, None]
        mixed = Bt @ (spread / self.a * (Z @ V.T))
        H -= mixed + mixed.T
        H += _gram(B, Bt, self.squares[n:] / self.s + 0.5 * stiff[n:])
        H -= Bt @ (Bt @ ((B @ spread.T).T / self.s * (Z @ Z.T)).T).T
        H = 2 * H + np.diag(stiff[:n])
        unit = 1 / np.sqrt(np.diag(H))
        H = unit[:, None] * H * unit
        H[np.diag_indices(n)] += 1e-14
        factor = scipy.linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        return lambda b: unit * scipy.linalg.cho_solve(factor, unit * b, check_finite=False)

    def _iterative(self, stiff: FloatArray) -> Solve:
        """By conjugate gradients, preconditioned with the Hessian for fixed node rows: larger, but sparse."""
        on, V, Z, n = self.couplings, self.V, self.Z, len(self.a)

        def product(v: FloatArray) -> FloatArray:
            leaves = -on.down(v)
            change = on.down(v[:, None] * V) + leaves[:, None] * Z  # of KZ at fixed Z
            inner = self.solve(on.up(change / self.s[:, None]))
            outer = (change - on.down(inner)) / self.s[:, None]
            curved = 2 * np.concatenate([(inner / self.a[:, None] * V).sum(axis=1), (outer * Z).sum(axis=1)])
            curved += stiff * np.concatenate([v, leaves])
            return self._inner(curved[:n], curved[n:])

        fixed_rows = stiff + 2 * self.squares / self.x
        precondition = on.factorise(fixed_rows[:n], fixed_rows[n:])
        return lambda b: _conjugate_gradients(product, precondition, b)


def _conjugate_gradients(product: Callable[[FloatArray], FloatArray], precondition: Solve, b: FloatArray) -> FloatArray:
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r)
    p, rz = z.copy(), float(r @ z)
    enough = TUNING.cg_accuracy**2 * rz
    for _ in range(TUNING.cg_steps):
        if rz <= enough:
            break
        Hp = product(p)
        curvature = float(p @ Hp)
        if curvature <= 0:  # rounding
            break
        x += (rz / curvature) * p
        r -= (rz / curvature) * Hp
        z = precondition(r)
        rz, old = float(r @ z), rz
        p = z + (rz / old) * p
    return x


# -- systems diag(c) + Bᵀ diag(e) B ------------------------------------------------------------------------------------


class Couplings(Protocol):
    """Multiplies with B, the 0/1 leaf × inner matrix of a hierarchy, and factorises diag(c) + Bᵀ diag(e) B.

    Attributes
    ----------
    B : sparse array, or None
        B itself; None where it has too many entries to be multiplied out.
    """

    @property
    def B(self) -> sp.csr_array | None: ...

    def down(self, x: FloatArray) -> FloatArray:
        """B @ x."""
        ...

    def up(self, y: FloatArray) -> FloatArray:
        """Bᵀ @ y."""
        ...

    def factorise(self, c: FloatArray, e: FloatArray) -> Solve:
        """The function that solves for one or several columns, for weights c > 0 of the nodes and e > 0 of the leaves.

        Systems are scaled to a diagonal of one so that vanishing weights do no harm.
        """
        ...


class SparseCouplings:
    """B as a sparse matrix; whatever does not depend on the numbers is done once."""

    def __init__(self, B: sp.csr_array) -> None:
        self.B, self.Bt = B, sp.csr_array(B.T)

    def down(self, x: FloatArray) -> FloatArray:
        """B @ x."""
        return np.asarray(self.B @ x)

    def up(self, y: FloatArray) -> FloatArray:
        """Bᵀ @ y."""
        return np.asarray(self.Bt @ y)

    @cached_property
    def order(self) -> PtrArray:
        """An elimination order with little fill; finding it costs more than a factorisation."""
        pattern = sp.csc_array(self.Bt @ self.B + sp.diags_array(np.ones(self.B.shape[1])))
        found = scipy.sparse.linalg.splu(pattern, permc_spec="MMD_AT_PLUS_A", **_LU)
        return np.argsort(found.perm_c)

    @cached_property
    def _ordered(self) -> sp.csr_array:
        return sp.csr_array(self.B[:, self.order])

    def factorise(self, c: FloatArray, e: FloatArray) -> Solve:
        """By Cholesky if there are few inner nodes, else by sparse LU."""
        unit = 1 / np.sqrt(c)
        if len(c) <= TUNING.dense_system:
            H = unit[:, None] * _gram(self.B, self.Bt, e) * unit
            H[np.diag_indices(len(unit))] += 1
            factor = scipy.linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)

            def solve(b: FloatArray) -> FloatArray:
                scale = unit if b.ndim == 1 else unit[:, None]
                return np.asarray(scale * scipy.linalg.cho_solve(factor, scale * b, check_finite=False))

            return solve
        scaled = self._ordered @ sp.diags_array(unit[self.order])
        whole = scaled.T @ (sp.diags_array(e) @ scaled) + sp.diags_array(np.ones(len(c)))
        lu = scipy.sparse.linalg.splu(sp.csc_array(whole), permc_spec="NATURAL", **_LU)

        def solve_ordered(b: FloatArray) -> FloatArray:
            scale = unit if b.ndim == 1 else unit[:, None]
            out = np.empty_like(b)
            out[self.order] = lu.solve((scale * b)[self.order])
            return scale * out

        return solve_ordered


def _gram(B: sp.csr_array, Bt: sp.csr_array, e: FloatArray) -> FloatArray:
    """Bᵀ diag(e) B as an array."""
    return np.asarray((Bt @ (sp.diags_array(e) @ B)).toarray())


class NestedCouplings:
    """B of a tree with long paths, which has too many entries to be multiplied with.

    There the columns of B are nested: (Bx)_l is the sum of x on the way from the root to the node above l. With g the
    sums at the inner nodes, x = Dg for the sparse D = I - (parent of each node), and diag(c) + Bᵀ diag(e) B becomes the
    matrix Dᵀ diag(c) D + diag(e summed over the leaves of each node), which is as sparse as the tree and fills in
    nowhere when eliminated from below. The columns of B must be in topological order, and no row empty.
    """

    B = None

    def __init__(self, B: sp.csr_array) -> None:
        n = B.shape[1]
        first = np.zeros(len(B.indices), dtype=bool)
        first[B.indptr[:-1]] = True
        inner = np.flatnonzero(~first)
        parent = np.full(n, -1)
        parent[B.indices[inner]] = B.indices[inner - 1]
        self.above: IntArray = B.indices[B.indptr[1:] - 1]  # the inner node next above each leaf
        child = np.flatnonzero(parent >= 0)
        links = sp.csr_array((np.ones(len(child)), (child, parent[child])), shape=(n, n))
        self.D = sp.csc_array(sp.diags_array(np.ones(n)) - links)
        self._sums = scipy.sparse.linalg.splu(self.D, permc_spec="NATURAL", **_LU)
        self._gather = sp.csr_array(
            (np.ones(len(self.above)), (self.above, np.arange(len(self.above)))), shape=(n, len(self.above))
        )

    def down(self, x: FloatArray) -> FloatArray:
        """B @ x."""
        return np.asarray(self._sums.solve(x)[self.above])

    def up(self, y: FloatArray) -> FloatArray:
        """Bᵀ @ y."""
        return np.asarray(self._sums.solve(self._gather @ y, trans="T"))

    def factorise(self, c: FloatArray, e: FloatArray) -> Solve:
        """By sparse LU, children before parents."""
        H = self.D.T @ (sp.diags_array(c) @ self.D) + sp.diags_array(self._gather @ e)
        unit = 1 / np.sqrt(H.diagonal())
        scaled = sp.diags_array(unit) @ H @ sp.diags_array(unit)
        lu = scipy.sparse.linalg.splu(sp.csc_array(scaled[::-1, ::-1]), permc_spec="NATURAL", **_LU)
        stiff = (c > self.up(e))[:, None]
        unit, c, e = unit[:, None], c[:, None], e[:, None]

        def once(b: FloatArray) -> FloatArray:
            g = unit * lu.solve((unit * (self.D.T @ b))[::-1])[::-1]
            x = self.D @ g
            return np.where(stiff, (b - self.up(e * self.down(x))) / c, x)

        def solve(b: FloatArray) -> FloatArray:
            if b.ndim == 1:
                return np.asarray(solve(b[:, None])[:, 0])
            x = once(b)
            # where c is large x is a tiny difference of sums, which one round of refinement restores
            return np.asarray(x + once(b - c * x - self.up(e * self.down(x))))

        return solve
