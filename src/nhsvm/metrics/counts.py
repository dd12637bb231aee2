"""Measures that are made of counts: Jaccard, F1, Hamming, hierarchical precision and recall, accuracy by depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics.inputs import (
    Over,
    Pair,
    Roots,
    a_number,
    by_level,
    choice,
    closures,
    column_weights,
    documented,
    make_pair,
    ratio,
)
from nhsvm.typing import FloatArray, Label, LabelsLike, SampleWeights

Average = Literal["micro", "samples"]


@documented
def example_jaccard(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    over: Over = "labels",
    roots: Roots = "auto",
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
) -> float:
    """Mean over samples of |Y ∩ Ŷ| / |Y ∪ Ŷ|, which the LSHTC challenges call accuracy.

    With one label a sample and ``over="labels"`` it is the share of labels that are right.

    Parameters
    ----------
    {y}
    hierarchy : Hierarchy
    {over}
    {roots}
    {given}

    Returns
    -------
    float
        From 0 to 1, 1 is best. Two empty sets agree and count as 1.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> example_jaccard([{"dog", "oak"}, {"cat"}], [{"dog"}, {"dog"}], hierarchy=h)  # (1/2 + 0/1) / 2
    0.25
    >>> example_jaccard(["cat", "oak"], ["dog", "oak"], hierarchy=h, over="nodes")  # (1/3 + 2/2) / 2
    0.6666666666666666
    """
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight).over(over, roots)
    both, true, pred = pair.per_sample()
    return pair.mean(ratio(both, true + pred - both, true, 1.0))


@documented
def f1(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    average: Literal["micro", "macro", "samples"] = "micro",
    over: Over = "labels",
    roots: Roots = "auto",
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
    zero_division: float = float("nan"),
) -> float:
    """F1 = 2 tp / (2 tp + fp + fn), from counts over all columns, or the mean over columns or over samples.

    Parameters
    ----------
    {y}
    hierarchy : Hierarchy
    average : {"micro", "macro", "samples"}
        Counts summed over everything; the mean of every column's F1; the mean of every sample's F1.
    over : {"labels", "nodes"}
        A column for each label as given, or for each node, which a sample has if it is one of its labels or above one.
        Over nodes, "micro" is :func:`~nhsvm.metrics.hierarchical_f1`.
    {roots}
    {given}
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
        return pair.mean(_f1(both, true, pred))
    both, true, pred = pair.per_column()
    if average == "micro":
        return float(_f1(*(np.array([count.sum()]) for count in (both, true, pred)))[0])
    used = true + pred > 0
    values = 2 * both[used] / (true + pred)[used]
    if not np.isnan(zero_division):
        values = np.append(values, np.full(len(used) - len(values), zero_division))
    return float(values.mean()) if len(values) else 1.0


@documented
def hamming_distance(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    over: Over = "labels",
    roots: Roots = "auto",
    normalize: bool = True,
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
) -> float:
    """Mean over samples of |Y △ Ŷ|, as a share of all labels or nodes there are.

    Parameters
    ----------
    {y}
    hierarchy : Hierarchy
    {over}
    {roots}
    normalize : bool
        Divide by the number of columns: ``labels`` if given, else all leaves, and in both cases the further labels that
        occur; or all nodes that count. ``False`` gives the mean number of labels or nodes that are wrong.
    {given}

    Returns
    -------
    float
        0 is best; with ``normalize`` at most 1.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> hamming_distance([{"dog", "oak"}, {"cat"}], [{"dog"}, {"dog"}], hierarchy=h)  # (1 + 2) / (2 · 3)
    0.5
    >>> hamming_distance(["dog"], ["cat"], hierarchy=h, over="nodes", normalize=False)
    2.0
    """
    choice("normalize", normalize, (True, False))
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight).over(over, roots)
    both, true, pred = pair.per_sample()
    wrong = pair.mean(true + pred - 2 * both)
    return wrong / max(pair.n_columns, 1) if normalize else wrong


@documented
def hierarchical_precision(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    average: Average = "micro",
    roots: Roots = "auto",
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
    zero_division: float = 0.0,
) -> float:
    """The share of predicted nodes that are right: hP = Σ_i |Ā(Y_i) ∩ Ā(Ŷ_i)| / Σ_i |Ā(Ŷ_i)| [1]_.

    Ā adds everything above a label, so it does not matter whether ancestors are written out.

    Parameters
    ----------
    {y}
    hierarchy : Hierarchy
    average : {"micro", "samples"}
        The ratio of sums above, or the mean of every sample's ratio.
    {roots}
    {given}
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
    zero = a_number("zero_division", zero_division)
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    return _mean_of_nodes(pair, average, roots, lambda both, true, pred: ratio(both, pred, true, zero))


def hierarchical_recall(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    average: Average = "micro",
    roots: Roots = "auto",
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
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
    zero = a_number("zero_division", zero_division)
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    return _mean_of_nodes(pair, average, roots, lambda both, true, pred: ratio(both, true, pred, zero))


def hierarchical_f1(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    average: Average = "micro",
    roots: Roots = "auto",
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
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
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    return _mean_of_nodes(pair, average, roots, _f1)


@documented
def accuracy_at_depth(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    *,
    hierarchy: Hierarchy,
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
) -> dict[int, float]:
    """The share of samples whose prediction is right at depth 0, 1, 2, ….

    The nodes of a sample at depth k are its labels and their ancestors that are k edges below a root, by the longest
    way down as in ``Hierarchy.depth``. A prediction is right at depth k if it has the very nodes there that the truth
    has. Only samples that have true nodes at depth k count there: a label of depth 1 says nothing about depth 2.

    Parameters
    ----------
    {y}
    hierarchy : Hierarchy
    {given}

    Returns
    -------
    dict of int to float
        Depths without any sample, or without weight, are left out.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> accuracy_at_depth(["dog", "dog", "plant"], ["cat", "dog", "plant"], hierarchy=h)
    {0: 1.0, 1: 0.5}
    """
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    true, pred = (closures(y, hierarchy) for y in (pair.true, pair.pred))
    at = by_level(hierarchy)
    has = (true @ at).tocsr()
    wrong = has.multiply((true != pred).tocsr() @ at).tocsr()
    total, missed = (column_weights(m, pair.weight) for m in (has, wrong))
    return {int(k): float((total[k] - missed[k]) / total[k]) for k in np.flatnonzero(total)}


def _f1(both: FloatArray, true: FloatArray, pred: FloatArray) -> FloatArray:
    return ratio(2 * both, true + pred, true + pred, 1.0)


def _mean_of_nodes(
    pair: Pair, average: Average, roots: Roots, ratios: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
) -> float:
    """The mean over samples of ratios of the sizes of closures; for "micro", their ratio for all samples as one."""
    choice("average", average, ("micro", "samples"))
    pair = pair.over("nodes", roots)
    counts = pair.per_sample()
    if average == "samples":
        return pair.mean(ratios(*counts))
    return float(ratios(*(np.array([pair.weight @ count]) for count in counts))[0])
