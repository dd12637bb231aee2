"""Hierarchical precision, recall and F1: labels are compared with everything above them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.metrics._options import a_number, choice
from nhsvm.metrics._pair import Counts, Roots, make_pair, ratio

Average = Literal["micro", "samples"]


def hierarchical_precision(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    average: Average = "micro",
    roots: Roots = "auto",
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
    zero_division: float = 0.0,
) -> float:
    """The share of predicted nodes that are right: hP = Σ_i |Ā(Y_i) ∩ Ā(Ŷ_i)| / Σ_i |Ā(Ŷ_i)| [1]_.

    Parameters
    ----------
    y_true, y_pred : labels, label sets, or 0/1 matrix
        See :func:`~nhsvm.metrics.example_jaccard`. Ā adds everything above a label, so it does not matter
        whether ancestors are written out.
    hierarchy : Hierarchy
    average : {"micro", "samples"}
        The ratio of sums above, or the mean of every sample's ratio.
    roots : "auto" or bool
        Whether roots count. By default they do if there are several; the only root does not, since every label has it.
    labels : sequence of labels, optional
        What the columns of a matrix are; by default ``hierarchy.leaves``.
    sample_weight : array of n_samples, optional
    zero_division : float
        The value where nothing is predicted but something is true. Where both are empty, they agree and it is 1.

    Returns
    -------
    float
        From 0 to 1, 1 is best.

    References
    ----------
    .. [1] S. Kiritchenko, S. Matwin, A. F. Famili. Functional annotation of genes using hierarchical text
       categorization. BioLINK SIG, 2005.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> hierarchical_precision(["dog", "oak"], ["cat", "plant"], hierarchy=h)  # (1 + 1) / (2 + 1)
    0.6666666666666666
    """
    weight, (both, true, pred) = _counts(y_true, y_pred, hierarchy, average, roots, labels, sample_weight)
    return _mean(weight, ratio(both, pred, true, a_number("zero_division", zero_division)))


def hierarchical_recall(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    average: Average = "micro",
    roots: Roots = "auto",
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
    zero_division: float = 0.0,
) -> float:
    """The share of true nodes that are found: hR = Σ_i |Ā(Y_i) ∩ Ā(Ŷ_i)| / Σ_i |Ā(Y_i)|.

    Parameters and reference as in :func:`hierarchical_precision`; ``zero_division`` is the value where nothing is true
    but something is predicted.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> hierarchical_recall(["dog", "oak"], ["cat", "plant"], hierarchy=h)  # (1 + 1) / (2 + 2)
    0.5
    """
    weight, (both, true, pred) = _counts(y_true, y_pred, hierarchy, average, roots, labels, sample_weight)
    return _mean(weight, ratio(both, true, pred, a_number("zero_division", zero_division)))


def hierarchical_f1(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    average: Average = "micro",
    roots: Roots = "auto",
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> float:
    """The harmonic mean of both: hF = 2 hP hR / (hP + hR) = 2 Σ_i |Ā(Y_i) ∩ Ā(Ŷ_i)| / Σ_i (|Ā(Y_i)| + |Ā(Ŷ_i)|).

    Parameters and reference as in :func:`hierarchical_precision`. 0/0 means that truth and prediction are empty: they
    agree, and the value is 1.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> hierarchical_f1(["dog", "oak"], ["cat", "plant"], hierarchy=h)  # 2 (1 + 1) / (2 + 2 + 2 + 1)
    0.5714285714285714
    >>> hierarchical_f1(["dog", "oak"], ["cat", "plant"], hierarchy=h, roots=False)
    0.0
    """
    weight, (both, true, pred) = _counts(y_true, y_pred, hierarchy, average, roots, labels, sample_weight)
    return _mean(weight, ratio(2 * both, true + pred, true + pred, 1.0))


def _counts(
    y_true: Any, y_pred: Any, hierarchy: Hierarchy, average: Average, roots: Roots, labels: Any, sample_weight: Any
) -> tuple[FloatArray, Counts]:
    """The sizes of every sample's closures and the samples' weights; for "micro", those of all samples as one."""
    choice("average", average, ("micro", "samples"))
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight).over("nodes", roots)
    counts = pair.per_sample()
    if average == "micro":
        return np.ones(1), Counts(*(np.array([pair.weight @ count]) for count in counts))
    return pair.weight, counts


def _mean(weight: FloatArray, values: FloatArray) -> float:
    return float(np.average(values, weights=weight))
