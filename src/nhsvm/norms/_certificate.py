"""What a norm returns besides its value: who attains it, and who proves that nothing smaller would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nhsvm.errors import NotSolvedError
from nhsvm.hierarchy.graph import FloatArray


@dataclass(frozen=True, eq=False)
class Factorisation:
    """U = ``left`` @ ``right`` with the norms of the two factors multiplying to ``value``.

    Attributes
    ----------
    value : float
        The norm, from above: what this very factorisation costs.
    lower_bound : float
        The norm, from below: no factorisation costs less.
    left : array or sparse array of n_rows × n_factors
        A, the coefficients.
    right : array of n_factors × n_columns
        V, or Wᵀ in the paper's notation for the trace and max norms: the factors.
    row_weights, column_weights : array or None
        The proof of ``lower_bound`` for the shared and the max norm: probability vectors p and q with
        ‖diag(√p) U diag(√q)‖_* = ``lower_bound`` (no q for the shared norm).
    """

    value: float
    lower_bound: float
    left: Any
    right: FloatArray
    row_weights: FloatArray | None = None
    column_weights: FloatArray | None = None

    @property
    def gap(self) -> float:
        """How far ``value`` may be above the norm, relatively."""
        return relative_gap(self.lower_bound, self.value)


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
class NodePenalty:
    """The value of Eq. 20 and the α that attains it.

    Attributes
    ----------
    value : float
        Σ_n ‖U_n‖²/α_n.
    lower_bound : float
        No feasible α has a smaller sum.
    node_weights : array of n_nodes
        α.
    """

    value: float
    lower_bound: float
    node_weights: FloatArray

    @property
    def gap(self) -> float:
        """How far ``value`` may be above the minimum, relatively."""
        return relative_gap(self.lower_bound, self.value)


def relative_gap(lower: float, upper: float) -> float:
    """(upper - lower) / upper, where 0/0 counts as 0."""
    return float((upper - lower) / upper) if upper > 0 else 0.0


def require(name: str, lower: float, upper: float, tol: float) -> None:
    """Raise ``NotSolvedError`` unless the two bounds agree to ``tol``."""
    gap = relative_gap(lower, upper)
    if not (gap <= tol and np.isfinite(upper)):
        raise NotSolvedError(
            f"{name}: the norm is known to lie in [{lower:.10g}, {upper:.10g}], a relative gap of {gap:.1e}, "
            f"but tol={tol:.1e} was asked for: pass a larger tol"
        )
