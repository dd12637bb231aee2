"""How far apart are the true and the predicted label? For one label a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics._pair import make_pair
from nhsvm.metrics._paths import path_lengths


def tree_distance(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> float:
    """Mean number of edges between the true and the predicted label, the tree-induced error [1]_.

    On a tree this is the length of the path between them. On a DAG it is the length of the shortest path that goes up
    to a common ancestor and down again. Several roots are taken to be children of an unnamed root.

    Parameters
    ----------
    y_true, y_pred : labels, label sets, or 0/1 matrix
        With exactly one label a sample, on a leaf or an inner node.
    hierarchy : Hierarchy
    labels : sequence of labels, optional
        What the columns of a matrix are; by default ``hierarchy.leaves``.
    sample_weight : array of n_samples, optional

    Returns
    -------
    float
        0 is best.

    References
    ----------
    .. [1] O. Dekel, J. Keshet, Y. Singer. Large margin hierarchical classification. ICML 2004.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> tree_distance(["dog", "dog", "dog"], ["cat", "oak", "animal"], hierarchy=h)  # (2 + 4 + 1) / 3
    2.3333333333333335
    """
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    return pair.mean(path_lengths(hierarchy.graph, *pair.single("tree_distance")))


def lca_f1(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> float:
    """Mean F1 of the ways from the true and from the predicted label up to their lowest common ancestor [1]_.

    Each label is extended by the nodes on its way up to the lowest common ancestor c, c included, and not, as in
    :func:`~nhsvm.metrics.hierarchical_f1`, by all its ancestors: what is above c is in both and says nothing. The two
    ways share c alone, so with up(n, c) edges from n to c

    P = 1 / (up(ŷ, c) + 1), R = 1 / (up(y, c) + 1), F1 = 2PR / (P + R) = 2 / (2 + d(y, ŷ)),

    where d = up(y, c) + up(ŷ, c) is the distance of :func:`tree_distance`. On a DAG, c is a common ancestor for which d
    is least; which of several does not matter to F1. It may be the unnamed root above several roots.

    Parameters
    ----------
    y_true, y_pred : labels, label sets, or 0/1 matrix
        With exactly one label a sample, on a leaf or an inner node.
    hierarchy : Hierarchy
    labels : sequence of labels, optional
        What the columns of a matrix are; by default ``hierarchy.leaves``.
    sample_weight : array of n_samples, optional

    Returns
    -------
    float
        Above 0 and at most 1, 1 is best.

    References
    ----------
    .. [1] A. Kosmopoulos, I. Partalas, E. Gaussier, G. Paliouras, I. Androutsopoulos. Evaluation measures for
       hierarchical classification: a unified view and novel approaches. Data Mining and Knowledge Discovery 29, 2015.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> lca_f1(["dog", "dog"], ["cat", "dog"], hierarchy=h)  # (2 / (2 + 2) + 2 / (2 + 0)) / 2
    0.75
    """
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    return pair.mean(2 / (2 + path_lengths(hierarchy.graph, *pair.single("lca_f1"))))
