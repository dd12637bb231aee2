"""Measures of label sets that offsets can be tuned for: the function itself, and how it is made of counts.

All are functions of |Y ∩ Ŷ|, |Y| and |Ŷ|, of every sample, of every label, or of everything. So one sees at once what a
measure gains when a label is added to a sample, or taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics import example_jaccard, f1, hamming_distance, hierarchical_f1
from nhsvm.metrics.inputs import node_mask
from nhsvm.typing import BoolArray, FloatArray


def _jaccard(both: Any, true: Any, pred: Any) -> Any:
    union = true + pred - both
    return np.where(union > 0, both / np.where(union > 0, union, 1.0), 1.0)


def _f1(both: Any, true: Any, pred: Any) -> Any:
    total = true + pred
    return np.where(total > 0, 2 * both / np.where(total > 0, total, 1.0), 1.0)


def _agreement(both: Any, true: Any, pred: Any) -> Any:
    return 2 * both - true - pred


@dataclass(frozen=True)
class Measure:
    """A measure of label sets; more is better.

    Attributes
    ----------
    function : callable
        Of :mod:`nhsvm.metrics`.
    of : callable
        Its value for counts (both, true, pred), but for a positive factor.
    average : {"samples", "micro", "macro"}
        Whether these are the counts of every sample, of all samples together, or of every label.
    nodes : bool
        Whether all nodes of label sets are counted, or their leaves only.
    options : dict
    sign : float
        −1 for a measure of error.
    """

    function: Callable[..., float]
    of: Callable[[Any, Any, Any], Any]
    average: str
    nodes: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    sign: float = 1.0

    def value(self, hierarchy: Hierarchy, true: sp.csr_array, pred: sp.csr_array, weight: FloatArray) -> float:
        """The measure of label sets given as matrices with a column a leaf."""
        return self.sign * self.function(true, pred, hierarchy=hierarchy, sample_weight=weight, **self.options)

    def counted(self, hierarchy: Hierarchy) -> BoolArray:
        """The nodes that count."""
        return node_mask(hierarchy, "auto") if self.nodes else hierarchy.graph.is_leaf


_NODES = {"over": "nodes"}
MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "example_jaccard": Measure(example_jaccard, _jaccard, "samples"),
        "example_jaccard_nodes": Measure(example_jaccard, _jaccard, "samples", nodes=True, options=_NODES),
        "f1_micro": Measure(f1, _f1, "micro", options={"average": "micro"}),
        "f1_macro": Measure(f1, _f1, "macro", options={"average": "macro"}),
        "hierarchical_f1": Measure(hierarchical_f1, _f1, "micro", nodes=True),
        "hierarchical_f1_samples": Measure(hierarchical_f1, _f1, "samples", nodes=True, options={"average": "samples"}),
        "neg_hamming_distance": Measure(hamming_distance, _agreement, "samples", sign=-1.0),
        "neg_hamming_distance_nodes": Measure(
            hamming_distance, _agreement, "samples", nodes=True, options=_NODES, sign=-1.0
        ),
    }
)
"""By the names that :func:`nhsvm.metrics.scorers` has for them; precision or recall alone would ask for extremes."""
