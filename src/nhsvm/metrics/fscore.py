"""Micro- and macro-averaged F1 over labels or over nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics._options import a_number, choice
from nhsvm.metrics._pair import Over, Roots, make_pair, ratio


def f1(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    average: Literal["micro", "macro", "samples"] = "micro",
    over: Over = "labels",
    roots: Roots = "auto",
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
    zero_division: float = float("nan"),
) -> float:
    """F1 = 2 tp / (2 tp + fp + fn), from counts over all columns, or the mean over columns or over samples.

    Parameters
    ----------
    y_true, y_pred : labels, label sets, or 0/1 matrix
        See :func:`~nhsvm.metrics.example_jaccard`.
    hierarchy : Hierarchy
    average : {"micro", "macro", "samples"}
        Counts summed over everything; the mean of every column's F1; the mean of every sample's F1.
    over : {"labels", "nodes"}
        A column for each label as given, or for each node, which a sample has if it is one of its labels or above one.
        Over nodes, "micro" is :func:`~nhsvm.metrics.hierarchical_f1`.
    roots : "auto" or bool
        Whether roots count among the nodes; by default if there are several.
    labels : sequence of labels, optional
        What the columns of a matrix are; by default ``hierarchy.leaves``.
    sample_weight : array of n_samples, optional
    zero_division : float
        For "macro", the F1 of a column that is neither true nor predicted in any sample. By default (nan) it is left
        out of the mean. A number counts it in: the columns are then all of ``labels``, or all leaves and the inner
        nodes that are labels, or all nodes.

    Returns
    -------
    float
        From 0 to 1, 1 is best. Where truth and prediction are both empty, they agree and F1 is 1.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> y_true, y_pred = [{"dog", "oak"}, {"cat"}], [{"dog"}, {"dog"}]
    >>> f1(y_true, y_pred, hierarchy=h)  # tp 1, fp 1, fn 2
    0.4
    >>> f1(y_true, y_pred, hierarchy=h, average="macro")  # dog 2/3, cat 0, oak 0
    0.2222222222222222
    """
    choice("average", average, ("micro", "macro", "samples"))
    zero_division = a_number("zero_division", zero_division, nan=True)
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight).over(over, roots)
    if average == "samples":
        both, true, pred = pair.per_sample()
        return pair.mean(ratio(2 * both, true + pred, true + pred, 1.0))
    both, true, pred = pair.per_column()
    if average == "micro":
        both, true, pred = (np.array([count.sum()]) for count in (both, true, pred))
        return float(ratio(2 * both, true + pred, true + pred, 1.0)[0])
    used = true + pred > 0
    values = 2 * both[used] / (true + pred)[used]
    if not np.isnan(zero_division):
        values = np.append(values, np.full(len(used) - len(values), zero_division))
    return float(values.mean()) if len(values) else 1.0
