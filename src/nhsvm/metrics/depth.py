"""Accuracy at each depth of the hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics._pair import closures, column_weights, make_pair


def accuracy_at_depth(
    y_true: Any,
    y_pred: Any,
    *,
    hierarchy: Hierarchy,
    labels: Sequence[Any] | None = None,
    sample_weight: Any = None,
) -> dict[int, float]:
    """The share of samples whose prediction is right at depth 0, 1, 2, ….

    The nodes of a sample at depth k are its labels and their ancestors that are k edges below a root, by the longest
    way down as in ``Hierarchy.depth``. A prediction is right at depth k if it has the very nodes there that the truth
    has. Only samples that have true nodes at depth k count there: a label of depth 1 says nothing about depth 2.

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
    dict of int to float
        Depths without any sample, or without weight, are left out.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> accuracy_at_depth(["dog", "dog", "plant"], ["cat", "dog", "plant"], hierarchy=h)
    {0: 1.0, 1: 0.5}
    """
    pair = make_pair(y_true, y_pred, hierarchy, labels, sample_weight)
    graph = hierarchy.graph
    true, pred = (closures(y, hierarchy) for y in (pair.true, pair.pred))
    shape = (hierarchy.n_nodes, graph.n_levels)
    at = sp.csr_array((np.ones(shape[0], dtype=bool), graph.level, np.arange(shape[0] + 1)), shape=shape)
    has = (true @ at).tocsr()
    wrong = has.multiply((true != pred).tocsr() @ at).tocsr()
    total, missed = (column_weights(m, pair.weight) for m in (has, wrong))
    return {int(k): float((total[k] - missed[k]) / total[k]) for k in np.flatnonzero(total)}
