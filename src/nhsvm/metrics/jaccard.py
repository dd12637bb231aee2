"""The Jaccard index of true and predicted label sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics._pair import Over, Roots, make_pair, ratio


def example_jaccard(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    over: Over = "labels",
    roots: Roots = "auto",
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> float:
    """Mean over samples of |Y ∩ Ŷ| / |Y ∪ Ŷ|, which the LSHTC challenges call accuracy.

    With one label a sample and ``over="labels"`` it is the share of labels that are right.

    Parameters
    ----------
    y_true, y_pred : labels, label sets, or 0/1 matrix
        One label a sample; or a set or list of labels a sample, which may be empty; or a dense or sparse matrix with a
        column for every label.
    hierarchy : Hierarchy
    over : {"labels", "nodes"}
        Y is the set of labels as given, or these with everything above them.
    roots : "auto" or bool
        Whether roots count among the nodes. By default they do if there are several; the only root does not, since
        every label has it. ``over="labels"`` leaves this aside.
    labels : sequence of labels, optional
        What the columns of a matrix are; by default ``hierarchy.leaves``.
    sample_weight : array of n_samples, optional

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
