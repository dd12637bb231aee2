"""How far true and predicted labels are apart, if each is paired with the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics._options import positive
from nhsvm.metrics._pair import make_pair
from nhsvm.metrics._ways import Nodes, Ways, each_pair

MAX_DISTANCE = 5.0


def graph_accuracy(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    max_distance: float = MAX_DISTANCE,
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> float:
    """Multi-label graph-induced accuracy (MGIA) [1]_: the distance of label sets, as a share of the largest.

    Labels that are in one of the sets Y and Ŷ only are paired with labels of the other set, each with at least one, or
    left alone. A pair costs the edges between its labels, as in :func:`~nhsvm.metrics.tree_distance`, a label that is
    alone costs ``max_distance``. With E, the cost of the cheapest pairing, the graph-induced error, the value of a
    sample is 1 - E / (max_distance |Y △ Ŷ|).

    Parameters
    ----------
    y_true, y_pred : labels, label sets, or 0/1 matrix
        See :func:`~nhsvm.metrics.example_jaccard`. Labels above others of the same set count as any other.
    hierarchy : Hierarchy
    max_distance : float
        What a label costs that is not paired.
    labels : sequence of labels, optional
        What the columns of a matrix are; by default ``hierarchy.leaves``.
    sample_weight : array of n_samples, optional

    Returns
    -------
    float
        From 0 to 1, 1 is best.

    References
    ----------
    .. [1] A. Kosmopoulos, I. Partalas, E. Gaussier, G. Paliouras, I. Androutsopoulos. Evaluation measures for
       hierarchical classification: a unified view and novel approaches. Data Mining and Knowledge Discovery 29, 2015.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> graph_accuracy([{"dog", "oak"}], [{"cat", "oak"}], hierarchy=h)  # dog and cat: 1 - 2 / (5 · 2)
    0.8
    """
    alone = positive("max_distance", max_distance)
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    ways = Ways(hierarchy.graph)

    def share(true: Nodes, pred: Nodes) -> float:
        differ = len(true ^ pred)
        return 1.0 - pairing_cost(ways, true, pred, alone) / (alone * differ) if differ else 1.0

    return pair.mean(each_pair(pair, share))


def pairing_cost(ways: Ways, true: Nodes, pred: Nodes, alone: float) -> float:
    """The cost of the cheapest pairing.

    If every label takes what is cheapest for it, a pair that is cheapest for both is paid for twice. So that much is
    paid at first, and given back for pairs of different labels such that most is given back, which is an assignment.
    """
    ours, theirs = sorted(true - pred), sorted(pred - true)
    own, other = (
        np.array([min([alone, *(ways.distance(n, m) for m in found)]) for n in some])
        for some, found in ((ours, pred), (theirs, true))
    )
    paid = float(own.sum() + other.sum())
    if not (ours and theirs):
        return paid
    pairs = np.array([[ways.distance(n, m) for m in theirs] for n in ours])
    back = np.maximum(own[:, None] + other[None, :] - pairs, 0.0)
    return paid - float(back[linear_sum_assignment(back, maximize=True)].sum())
