"""Measures that can be aimed at: those that are known as functions of counts, or of the distance of two labels.

The tuning of offsets and decisions (:mod:`nhsvm.model.decisions`) read here what a label more or less is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics import METRICS, Counted, Metric
from nhsvm.metrics.inputs import node_mask
from nhsvm.typing import Array, BoolArray, FloatArray, Options

Count = Array | float
"""Of nodes: of every sample or label, or of all together."""


@dataclass(frozen=True)
class Measure:
    """A measure with its options, and its value as a ratio of weighted counts; more is better."""

    metric: Metric
    options: Options
    ratio: Counted

    @property
    def average(self) -> str:
        """Whether counts are those of every sample ("samples"), of all together ("micro"), or of a label ("macro")."""
        return str(self.options.get("average", self.ratio.average))

    @property
    def nodes(self) -> bool:
        """Whether all nodes of label sets are counted, or their leaves only."""
        return bool(self.options.get("over", self.ratio.over) != "labels")

    def of(self, both: Count, true: Count, pred: Count) -> Count:
        """Its value for counts |Y ∩ Ŷ|, |Y| and |Ŷ|, but for a positive factor; 0/0 is 1."""
        part = combined(self.ratio.numerator, both, true, pred)
        if self.ratio.denominator is None:
            return part
        whole = combined(self.ratio.denominator, both, true, pred)
        return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 1.0)

    def value(self, hierarchy: Hierarchy, true: sp.csr_array, pred: sp.csr_array, weight: FloatArray) -> float:
        """The measure of label sets given as matrices with a column a leaf; of errors, its negative."""
        found = METRICS[self.metric.name](true, pred, hierarchy=hierarchy, sample_weight=weight, **self.options)
        assert isinstance(found, float)
        return found if self.metric.best == 1 else -found

    def counted(self, hierarchy: Hierarchy) -> BoolArray:
        """The nodes that count."""
        if not self.nodes:
            return hierarchy.graph.is_leaf
        return node_mask(hierarchy, True if self.ratio.over == "edges" else "auto")


def combined(factors: tuple[float, float, float], both: Count, true: Count, pred: Count) -> Count:
    """A sum of counts, each times a factor; where that is 0, the count is not made."""
    terms = [factor * count for factor, count in zip(factors, (both, true, pred), strict=True) if factor]
    return sum(terms[1:], terms[0])


def measures(*, single: bool) -> dict[str, Measure]:
    """Measures that are ratios of counts, by the names of their scorers; ``single`` for one label a sample."""
    return {
        name: Measure(metric, options, metric.counted)
        for metric in METRICS.specs.values()
        if metric.counted is not None and (single or not metric.single)
        for name, options in metric.scorers.items()
    }


MEASURES: Mapping[str, Measure] = {
    name: measure
    for name, measure in measures(single=False).items()
    if not (measure.nodes and measure.average == "macro")  # a label more changes many nodes
}
"""Of label sets, by the names that :func:`nhsvm.metrics.scorers` has for them."""
