"""The learning problem: joint feature, primal, dual and gap, each formula once, in double precision.

All single-label models are one problem. With C_i the cost of sample i,

    min_U  ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i max_l [ Δ(l, y_i) + κ(l, y_i) (s_i(l) − s_i(y_i)) ],  s_i(l) = Σ_{n∈Ā(l)} U_n·x_i,

where κ = 1 and Δ is any structural error (Eq. 3 with α = 1, Eq. 10 to 12), or κ = 1/‖∧̃(l) − ∧̃(y_i)‖ and Δ = 1[l ≠ y_i]
(Eq. 13). Its dual has a_il ≥ 0 with Σ_l a_il = C_i, and U_n = α_n V_n,
V_n = Σ_i Σ_l a_il κ(l, y_i) (1[n∈Ā(y_i)] − 1[n∈Ā(l)]) x_i:

    max_a  Σ_i Σ_l a_il Δ(l, y_i) − ½ Σ_n α_n ‖V_n‖².

The paper's λ is 1/(2C).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.hierarchy.graph import Graph
from nhsvm.typing import FloatArray, IntArray


class Certificate(NamedTuple):
    """Two numbers with the optimum between them."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """(primal − dual) / primal; 0 when both are 0."""
        return relative_gap(self.primal, self.dual)


def joint_feature(graph: Graph, leaf_position: int, x: npt.ArrayLike) -> FloatArray:
    """∧(y) ⊗ x of Eq. 1: row n is x where n∈Ā(l), and zero elsewhere, so that γ(x, y) = Σ_n U_n·(row n).

    Parameters
    ----------
    graph : Graph
    leaf_position : int
        Position of l among the leaves.
    x : array of n_features
    """
    x = np.asarray(x, dtype=np.float64)
    feature = np.zeros((graph.n_nodes, len(x)))
    feature[graph.leaf_ancestors.row(leaf_position)] = x
    return feature


def penalty(squared_norms: FloatArray, alpha: FloatArray) -> float:
    """½ Σ_n ‖U_n‖²/α_n over the nodes with α_n > 0: the regulariser of Eq. 11, which is ½‖W‖² of Eq. 10 and Eq. 12.

    Parameters
    ----------
    squared_norms : array
        ‖U_n‖²; zero wherever α_n = 0.
    alpha : array
    """
    carries = alpha > 0
    return 0.5 * float(np.sum(squared_norms[carries] / alpha[carries]))


def loss_augmented(
    leaf_scores: FloatArray, leaves: IntArray, losses: FloatArray, normalized: bool = False
) -> FloatArray:
    """The bracket of the problem, for every sample and every leaf; 0 at the true leaf.

    Parameters
    ----------
    leaf_scores : array of (n_samples, n_leaves)
        s_i(l).
    leaves : array of n_samples
        True leaves.
    losses : array of (n_samples, n_leaves)
        Δ(l, y_i) of Eq. 3 and Eq. 10; with ``normalized``, the norms of Eq. 13.
    normalized : bool
        Eq. 13. A leaf at distance 0 from the true one asks for nothing: no direction separates the two.
    """
    difference = leaf_scores - np.take_along_axis(leaf_scores, leaves[:, None], axis=1)
    if not normalized:
        return difference + losses
    apart = losses > 0
    return np.where(apart, 1.0 + difference / np.where(apart, losses, 1.0), 0.0)


def primal(penalty: float, slacks: FloatArray, costs: FloatArray) -> float:
    """½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i, with ξ_i the largest bracket of sample i (Eq. 2, Eq. 3, Eq. 10 to 13)."""
    return penalty + float(costs @ slacks)


def dual(penalty: float, mass: float) -> float:
    """Σ a_il Δ(l, y_i) − ½ Σ_n α_n ‖V_n‖²; ``mass`` is the first sum, ``penalty`` the second, that of U_n = α_n V_n."""
    return mass - penalty


def relative_gap(primal: float, dual: float) -> float:
    """(primal − dual) / primal, which is ≥ 0 up to rounding; 0 when both are 0, infinite when one is not a number."""
    if not (np.isfinite(primal) and np.isfinite(dual)):
        return np.inf
    return 0.0 if primal == dual else (primal - dual) / primal if primal > 0 else np.inf
