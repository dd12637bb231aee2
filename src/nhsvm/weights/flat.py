"""Weights of the flat SVM: everything on the leaves."""

from __future__ import annotations

from dataclasses import dataclass

from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray


@dataclass(frozen=True)
class Flat:
    """α_n = 1 on the leaves and 0 elsewhere: the hierarchy is ignored (Section 5)."""

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        return hierarchy.graph.is_leaf.astype(float)
