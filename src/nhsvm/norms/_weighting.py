"""min over α of tr Uᵀ K(α)⁻¹ U, K(α) = A diag(α) Aᵀ: the structured shared norm as a problem in the node weights alone.

The inner nodes have weights a > 0, each leaf has what they leave, s = 1 - Ba > 0, where B is the leaf × inner part of
A; so K = diag(s) + B diag(a) Bᵀ. With Z = K⁻¹U and V = BᵀZ the best node rows are a_n V_n and s_l Z_l, the objective is
Σ a_n ‖V_n‖² + Σ s_l ‖Z_l‖², and its derivatives in a_n and s_l are -‖V_n‖² and -‖Z_l‖².

Lower bound: for prices λ_l ≥ ‖Z_l‖² with Σ_{l below n} λ_l ≥ ‖V_n‖² every feasible α has Σ α_n ‖V_n‖² ≤ Σ λ_l, hence
norm ≥ ⟨Z, U⟩/√(Σ λ_l) by Cauchy-Schwarz. The path's multipliers give λ_l = ‖Z_l‖² + z_l.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.norms._coupled import Coupled, Couplings
from nhsvm.norms._nested import NestedCoupled, NestedCouplings
from nhsvm.norms._path import Found, follow

_DENSE_NODES, _DENSE_LEAVES = 600, 3000  # up to these, the whole Hessian; beyond, conjugate gradients
_DEEP = 20  # ancestors a node, on average, beyond which a tree is better not multiplied out
_CG_ACCURACY, _CG_STEPS = 1e-3, 400


@dataclass(frozen=True)
class Problem:
    """B, as something that multiplies and solves with it, and the leaf rows U."""

    couplings: Couplings | NestedCouplings
    U: FloatArray


@dataclass(frozen=True)
class Weighting:
    """A strictly feasible (a, s)."""

    problem: Problem
    a: FloatArray
    s: FloatArray

    @cached_property
    def coupled(self) -> Coupled | NestedCoupled:
        """diag(1/a) + Bᵀ diag(1/s) B, factorised."""
        return self.problem.couplings.factorise(1 / self.a, 1 / self.s)

    @cached_property
    def rows(self) -> tuple[FloatArray, FloatArray]:
        """The best node rows: of the inner nodes, and of the leaves (what the inner ones leave of U, exactly)."""
        U, on = self.problem.U, self.problem.couplings
        inner = self.coupled.solve(on.up(U / self.s[:, None]))
        return inner, U - on.down(inner)

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
        sums = self.problem.couplings.up(self.Z)  # V up to rounding, but a proof must be about Z itself
        return price * max(1.0, float(((sums**2).sum(axis=1) / self.problem.couplings.up(price)).max()))

    def bounds(self, xz: FloatArray) -> tuple[float, float]:
        """Of the norm (not of its square)."""
        # ⟨Z, U⟩ = Σ α‖V‖² holds for the exact Z only, so U itself is asked
        return self.agreement / float(np.sqrt(self.prices(xz).sum())), float(np.sqrt(self.objective))

    @cached_property
    def agreement(self) -> float:
        """⟨Z, U⟩."""
        return float(np.vdot(self.Z, self.problem.U))

    def _inner(self, nodes: FloatArray, leaves: FloatArray) -> FloatArray:
        """A derivative in (a, s) as one in a alone, s = 1 - Ba."""
        return np.asarray(nodes - self.problem.couplings.up(leaves))

    def offset(self, xz: FloatArray) -> float:
        """Stationarity: ‖V_n‖² + z_n = Σ_{l below n} (‖Z_l‖² + z_l)."""
        n = len(self.a)
        pull = self.squares + xz / self.x
        return float(np.abs(self._inner(pull[:n], pull[n:]) / (xz[:n] / self.a)).max())

    def newton(self, xz: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """(Hessian + diag(z/a) + Bᵀ diag(z/s) B) Δa = -gradient + target/a - Bᵀ(target/s)."""
        n = len(self.a)
        stiff = xz / self.x**2
        on, coupled = self.problem.couplings, self.coupled
        small = n <= _DENSE_NODES and len(self.s) <= _DENSE_LEAVES
        if small and isinstance(on, Couplings) and isinstance(coupled, Coupled):
            solve = self._dense(stiff, on, coupled)
        else:
            solve = self._iterative(stiff)

        def step(target: FloatArray) -> FloatArray:
            pull = self.squares + target / self.x
            move = solve(self._inner(pull[:n], pull[n:]))
            return np.concatenate([move, -self.problem.couplings.down(move)]) / self.x

        return step

    def _dense(self, stiff: FloatArray, on: Couplings, coupled: Coupled) -> Callable[[FloatArray], FloatArray]:
        """By Cholesky of 2 (AᵀK⁻¹A) ∘ (VVᵀ) with the leaves eliminated."""
        B, Bt, V, Z, n = on.B, on.Bt, self.V, self.Z, len(self.a)
        inverse = coupled.inverse()
        H = (np.diag(1 / self.a) - inverse / self.a[:, None] / self.a) * (V @ V.T)
        spread = (B @ inverse) / self.s[:, None]
        mixed = Bt @ (spread / self.a * (Z @ V.T))
        H -= mixed + mixed.T
        H += on.dense(self.squares[n:] / self.s + 0.5 * stiff[n:])
        H -= Bt @ (Bt @ ((B @ spread.T).T / self.s * (Z @ Z.T)).T).T
        H = 2 * H + np.diag(stiff[:n])
        unit = 1 / np.sqrt(np.diag(H))
        H = unit[:, None] * H * unit
        H[np.diag_indices(n)] += 1e-14
        factor = scipy.linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        return lambda b: unit * scipy.linalg.cho_solve(factor, unit * b, check_finite=False)

    def _iterative(self, stiff: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """By conjugate gradients, preconditioned with the Hessian for fixed node rows: larger, but sparse."""
        on, V, Z, n = self.problem.couplings, self.V, self.Z, len(self.a)

        def product(v: FloatArray) -> FloatArray:
            leaves = -on.down(v)
            change = on.down(v[:, None] * V) + leaves[:, None] * Z  # of KZ at fixed Z
            inner = self.coupled.solve(on.up(change / self.s[:, None]))
            outer = (change - on.down(inner)) / self.s[:, None]
            curved = 2 * np.concatenate([(inner / self.a[:, None] * V).sum(axis=1), (outer * Z).sum(axis=1)])
            curved += stiff * np.concatenate([v, leaves])
            return self._inner(curved[:n], curved[n:])

        fixed_rows = stiff + 2 * self.squares / self.x
        precondition = on.factorise(fixed_rows[:n], fixed_rows[n:]).solve
        return lambda b: _conjugate_gradients(product, precondition, b)


def minimise(B: sp.csr_array, U: FloatArray, is_tree: bool, tol: float) -> tuple[Found[Weighting], float]:
    """The best weights for a leaf × inner matrix without empty rows, and the scale of the bounds found."""
    deep = is_tree and B.nnz > _DEEP * sum(B.shape)
    couplings = NestedCouplings(B) if deep else Couplings(B)
    lengths = B.sum(axis=1) + 1  # |Ā(l)|
    longest = sp.csr_array((np.repeat(lengths, np.diff(B.indptr)), B.indices, B.indptr), shape=B.shape).max(axis=0)
    a = 1 / longest.toarray().ravel()
    start = Weighting(Problem(couplings, U), a, 1 - B @ a)
    scale = float(np.sqrt(start.objective))
    return follow(Weighting(Problem(couplings, U / scale), a, start.s), _moved, tol), scale


def _moved(at: Weighting, d: FloatArray) -> Weighting:
    n = len(at.a)
    return Weighting(at.problem, at.a * (1 + d[:n]), at.s * (1 + d[n:]))


def _conjugate_gradients(
    product: Callable[[FloatArray], FloatArray], precondition: Callable[[FloatArray], FloatArray], b: FloatArray
) -> FloatArray:
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r)
    p, rz = z.copy(), float(r @ z)
    enough = _CG_ACCURACY**2 * rz
    for _ in range(_CG_STEPS):
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
