"""Weights with the largest smallest weight (Eq. 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.weights._options import check_total, left_out


@dataclass(frozen=True)
class Maxmin:
    """Eq. 7:  max min_n α_n  s.t.  Σ_{n∈Ā(l)} α_n = 1 for every leaf l,  α_child ≥ α_parent.

    Only the smallest weight is determined: it is t = 1 / max_l |Ā(l)|, on trees and DAGs alike, since the |Ā(l)|
    weights of the leaf with most ancestors are all ≥ t and add up to 1. Of the many optima we take the one with the
    smallest inner weights: **every inner node gets t, every leaf the rest**. It is unique, exists on every hierarchy,
    and keeps the directional constraint; so ``directional`` makes no difference here.

    With ``total=(low, high)`` (Eq. 8) the longest path may use up ``high``: t = high / max_l |Ā(l)|, and a leaf gets
    the least that is ≥ t and brings its path to ``low``.

    Parameters
    ----------
    directional : bool
        Ask for α_child ≥ α_parent (the optimum chosen has it anyway).
    total : (low, high)
        Range of the sum of weights on every path.
    include_common : bool
        Give weight also to nodes above every leaf.
    """

    directional: bool = True
    total: tuple[float, float] = (1.0, 1.0)
    include_common: bool = False

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        low, high = check_total(self.total)
        graph = hierarchy.graph
        out = left_out(graph, self.include_common)
        # on a tree Ā(l) is a path, so the level counts it and no ancestor sets are needed
        size = graph.level[graph.leaves] + 1 if graph.is_tree else graph.leaf_ancestors.sizes()
        size = size - out.sum()
        smallest = high / size.max()
        alpha = np.where(out, 0.0, smallest)
        alpha[graph.leaves] = np.maximum(smallest, low - (size - 1) * smallest)
        return alpha
