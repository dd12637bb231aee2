"""F1 of the ways up to the lowest common ancestors of true and predicted labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics._extensions import f1_of_sets
from nhsvm.metrics._pair import make_pair
from nhsvm.metrics._paths import path_lengths
from nhsvm.metrics._ways import Ways, each_pair


def lca_f1(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> float:
    """Mean F1 of the ways from true and from predicted labels up to their lowest common ancestors [1]_.

    Labels are extended by the nodes on their ways up to common ancestors, these included, and not, as in
    :func:`~nhsvm.metrics.hierarchical_f1`, by all their ancestors: what is above is in both and says nothing. With T
    and P, the true and the predicted labels so extended, F1 is 2 |T ∩ P| / (|T| + |P|).

    **One label a sample.** The two ways share the lowest common ancestor c alone. So with d(y, ŷ) edges between the
    labels, the distance of :func:`~nhsvm.metrics.tree_distance`, F1 = 2 / (2 + d). On a DAG, c is a common ancestor for
    which d is least; which of several does not matter. It may be the unnamed root above several roots.

    **Label sets.** Labels above others of the same set are left out first. Every label that is not in both sets gets
    its way up to a lowest common ancestor with the nearest label of the other set, and every ancestor that such a way
    leads to is reached from both sides, from any label below it. Where several are equally near, or several labels
    are below, those are taken for which |T| + |P| is least, and of these, those for which |T ∩ P| is largest: nothing
    is added that is not needed. (With more than 4,096 combinations, the first of each choice is taken.) On a DAG, of
    several shortest ways up the one counts whose nodes come first in ``hierarchy.nodes``.

    Parameters
    ----------
    y_true, y_pred : labels, label sets, or 0/1 matrix
        See :func:`~nhsvm.metrics.example_jaccard`.
    hierarchy : Hierarchy
    labels : sequence of labels, optional
        What the columns of a matrix are; by default ``hierarchy.leaves``.
    sample_weight : array of n_samples, optional

    Returns
    -------
    float
        From 0 to 1, 1 is best. A sample counts 1 if both sets are empty, and 0 if one is.

    References
    ----------
    .. [1] A. Kosmopoulos, I. Partalas, E. Gaussier, G. Paliouras, I. Androutsopoulos. Evaluation measures for
       hierarchical classification: a unified view and novel approaches. Data Mining and Knowledge Discovery 29, 2015.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> lca_f1(["dog", "dog"], ["cat", "dog"], hierarchy=h)  # (2 / (2 + 2) + 2 / (2 + 0)) / 2
    0.75
    >>> lca_f1([{"dog", "oak"}], [{"cat", "oak"}], hierarchy=h)  # {dog, animal, oak} and {cat, animal, oak}
    0.6666666666666666
    """
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    if pair.is_single:
        return pair.mean(2 / (2 + path_lengths(hierarchy.graph, pair.true.indices, pair.pred.indices)))
    ways = Ways(hierarchy.graph)
    return pair.mean(each_pair(pair, lambda true, pred: f1_of_sets(ways, true, pred)))
