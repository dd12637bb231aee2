"""Algorithm 1 as the paper prints it, and the alternation that it is a part of (Section 7.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from nhsvm.checks import node_values
from nhsvm.estimators import NHSVM
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray


@dataclass(frozen=True)
class Printed:
    """Weights by Algorithm 1 as printed, of a tree. They are not those of Eq. 20: :class:`nhsvm.weights.Shared` is.

    E_n is computed after N_n is overwritten, so that it is (√B + √S)/(√B + 2√S) and not √B/(√B + √S): every node takes
    at least half of what is left for its subtree, whatever its vector. The root has no weight but takes its share.
    One thing must be added, since else no leaf has a weight: E_n = 1 on the leaves.

    Parameters
    ----------
    squared_norms : array of n_nodes
        B_n = ‖U_n‖², aligned with ``hierarchy.nodes``.
    root : bool
        What the last loop gives, √(L_p E_n), is the factor √α_n of Eq. 5; else it is α_n.
    """

    squared_norms: npt.ArrayLike
    root: bool = True

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        norms = node_values(self.squared_norms, hierarchy, "squared_norms")
        graph = hierarchy.graph
        below = [graph.children.rows(np.array([n])).indices for n in range(graph.n_nodes)]
        cost, share = norms.copy(), np.ones(graph.n_nodes)
        for n in reversed(range(graph.n_nodes)):  # children come after their parent
            if len(below[n]):
                mine, theirs = np.sqrt(cost[n]), np.sqrt(cost[below[n]].sum())
                cost[n] = (mine + theirs) ** 2
                share[n] = (mine + theirs) / (mine + 2 * theirs) if mine + theirs > 0 else 0.0
        left, alpha = 1 - share, np.zeros(graph.n_nodes)  # of a root, L = 1 − E
        for n in range(graph.n_nodes):
            alpha[below[n]] = left[n] * share[below[n]]
            left[below[n]] *= left[n]
        return alpha if self.root else np.sqrt(alpha)


def alternated(model: NHSVM, X: Any, y: Any, *, root: bool, rounds: int) -> NHSVM:
    """SSVM by the paper's alternation, from a fitted model: weights by :class:`Printed`, then vectors, and so on."""
    for _ in range(rounds):
        vectors = np.column_stack([model.coef_, model.intercept_])
        norms = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        model = clone(model).set_params(weights=Printed(norms, root)).fit(X, y)
    return model
