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
        With exactly one label a sample, on a leaf or an inner node; sets have
        :func:`~nhsvm.metrics.graph_accuracy`.
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
