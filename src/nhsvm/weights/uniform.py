"""Weights of the unnormalised hierarchical SVM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.weights._options import left_out


@dataclass(frozen=True)
class Uniform:
    """α_n = 1 everywhere: HSVM (Eq. 3). Path sums grow with depth; that is what normalisation mends.

    Parameters
    ----------
    include_common : bool
        Give weight also to nodes above every leaf (they cancel from every comparison of labels).
    """

    include_common: bool = False

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        return np.where(left_out(hierarchy.graph, self.include_common), 0.0, 1.0)
