"""Truth and prediction side by side, as sparse 0/1 matrices over nodes, and what is counted in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.checks import a_hierarchy
from nhsvm.errors import DataError, LabelError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import BoolArray, FloatArray, IntArray
from nhsvm.metrics._labels import class_numbers, column_numbers, indicators
from nhsvm.metrics._options import choice

Over = Literal["labels", "nodes"]
Roots = bool | Literal["auto"]


class Counts(NamedTuple):
    """|Y ∩ Ŷ|, |Y| and |Ŷ|, of every sample or of every column."""

    both: FloatArray
    true: FloatArray
    pred: FloatArray


@dataclass(frozen=True)
class Pair:
    """What was true and what was predicted.

    Attributes
    ----------
    hierarchy : Hierarchy
    true, pred : sparse array of booleans, (n_samples, n_columns)
        The columns are the nodes of the hierarchy, or those of them that count.
    weight : array of n_samples
    named : array of node numbers, or None
        The labels that the caller named.
    """

    hierarchy: Hierarchy
    true: sp.csr_array
    pred: sp.csr_array
    weight: FloatArray
    named: IntArray | None

    def over(self, what: Over, roots: Roots) -> Pair:
        """The same pair with one column for each label, or for each node with its closures filled in."""
        choice("over", what, ("labels", "nodes"))
        counted = node_mask(self.hierarchy, roots)  # checks roots, which labels leave aside
        if what == "nodes":
            true, pred = (closures(y, self.hierarchy) for y in (self.true, self.pred))
        else:
            true, pred = self.true, self.pred
            counted = np.zeros(self.hierarchy.n_nodes, dtype=bool)
            counted[class_numbers(self.hierarchy) if self.named is None else self.named] = True
            counted[true.indices] = True
            counted[pred.indices] = True
        if not counted.all():
            true, pred = true[:, counted], pred[:, counted]
        return Pair(self.hierarchy, true, pred, self.weight, self.named)

    @property
    def n_columns(self) -> int:
        return int(self.true.shape[1])

    def per_sample(self) -> Counts:
        """The sizes of every sample's sets."""
        common = self.true.multiply(self.pred).tocsr()
        return Counts(*(_sizes(y).astype(np.float64) for y in (common, self.true, self.pred)))

    def per_column(self) -> Counts:
        """The weighted number of samples that have each column."""
        common = self.true.multiply(self.pred).tocsr()
        return Counts(*(column_weights(y, self.weight) for y in (common, self.true, self.pred)))

    def mean(self, values: FloatArray) -> float:
        """The weighted mean over samples."""
        return float(np.average(values, weights=self.weight))

    def single(self, measure: str) -> tuple[IntArray, IntArray]:
        """Node numbers of the true and the predicted label of every sample, for measures that know no sets."""
        for y, name in ((self.true, "y_true"), (self.pred, "y_pred")):
            bad = np.flatnonzero(_sizes(y) != 1)
            if len(bad):
                n = _sizes(y)[bad[0]]
                raise LabelError(f"{measure} compares one label with one, but sample {bad[0]} of {name} has {n} labels")
        return self.true.indices, self.pred.indices

    @property
    def is_single(self) -> bool:
        """Whether every sample has one true and one predicted label."""
        return all(bool((_sizes(y) == 1).all()) for y in (self.true, self.pred))


def make_pair(y_true: Any, y_pred: Any, hierarchy: Hierarchy, labels: Sequence[Any] | None, weight: Any) -> Pair:
    """Check and encode what every measure is given."""
    a_hierarchy(hierarchy)
    columns = None if labels is None else column_numbers(labels, hierarchy, "labels")
    true = indicators(y_true, hierarchy, columns, "y_true")
    pred = indicators(y_pred, hierarchy, columns, "y_pred")
    if true.shape[0] != pred.shape[0]:
        raise DataError(f"y_true has {true.shape[0]} samples, but y_pred {pred.shape[0]}")
    return Pair(hierarchy, true, pred, sample_weights(weight, true.shape[0]), columns)


def closures(y: sp.csr_array, hierarchy: Hierarchy) -> sp.csr_array:
    """Ā of the labels of every sample: each with everything above it."""
    indptr, indices = hierarchy.graph.ancestors
    above = sp.csr_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=(hierarchy.n_nodes,) * 2)
    found = sp.csr_array(y @ above)
    found.sort_indices()
    return found


def column_weights(y: sp.csr_array, weight: FloatArray) -> FloatArray:
    """For every column, the weight of the samples that have it."""
    found: FloatArray = np.bincount(y.indices, np.repeat(weight, _sizes(y)), y.shape[1]).astype(np.float64)
    return found


def _sizes(y: sp.csr_array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = np.diff(y.indptr)
    return found


def node_mask(hierarchy: Hierarchy, roots: Roots) -> BoolArray:
    """Which nodes count: no virtual leaf, and the roots as told."""
    choice("roots", roots, ("auto", True, False))
    n_roots = hierarchy.graph.n_roots
    counted = ~hierarchy.is_virtual
    counted[:n_roots] = n_roots > 1 if roots == "auto" else roots
    return counted


def ratio(part: FloatArray, whole: FloatArray, other: FloatArray, zero_division: float) -> FloatArray:
    """The share part / whole; 0/0 is 1 if the other side is empty as well (they agree), else ``zero_division``."""
    empty = whole == 0
    values: FloatArray = part / np.where(empty, 1.0, whole)
    return np.where(empty, np.where(other == 0, 1.0, zero_division), values)


def sample_weights(given: Any, n_samples: int) -> FloatArray:
    """Finite weights ≥ 0, not all 0; ones if none are given."""
    if given is None:
        return np.ones(n_samples)
    try:
        weight = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("sample_weight must be numbers, one a sample") from None
    if weight.shape != (n_samples,):
        raise DataError(f"sample_weight must have one number a sample, {n_samples}, not shape {weight.shape}")
    bad = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if len(bad):
        raise DataError(f"sample_weight must be finite and ≥ 0, but sample {bad[0]} has {weight[bad[0]]}")
    if not weight.any():
        raise DataError("sample_weight is 0 for every sample")
    return weight
