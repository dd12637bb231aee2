"""How many labels, or nodes, are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics._options import choice
from nhsvm.metrics._pair import Over, Roots, make_pair


def hamming_distance(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    over: Over = "labels",
    roots: Roots = "auto",
    normalize: bool = True,
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> float:
    """Mean over samples of |Y △ Ŷ|, as a share of all labels or nodes there are.

    Parameters
    ----------
    y_true, y_pred : labels, label sets, or 0/1 matrix
        See :func:`~nhsvm.metrics.example_jaccard`.
    hierarchy : Hierarchy
    over : {"labels", "nodes"}
        Y is the set of labels as given, or these with everything above them.
    roots : "auto" or bool
        Whether roots count among the nodes; by default if there are several.
    normalize : bool
        Divide by the number of columns: ``labels`` if given, else all leaves, and in both cases the further labels that
        occur; or all nodes that count. ``False`` gives the mean number of labels or nodes that are wrong.
    labels : sequence of labels, optional
        What the columns of a matrix are; by default ``hierarchy.leaves``.
    sample_weight : array of n_samples, optional

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
