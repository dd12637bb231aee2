"""The area under the micro-averaged precision-recall curve over nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.checks import a_hierarchy
from nhsvm.errors import DataError, LabelError
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics.inputs import (
    Roots,
    a_number,
    closures,
    column_numbers,
    documented,
    indicators,
    node_mask,
    sample_weights,
)
from nhsvm.typing import Array, FloatArray, Label, LabelsLike, PtrArray, SampleWeights

BATCH = 2**22  # scores that are sorted at a time


@documented
def auprc(
    y_true: LabelsLike,
    node_scores: npt.ArrayLike,
    *,
    hierarchy: Hierarchy,
    nodes: Sequence[Label] | None = None,
    roots: Roots = "auto",
    labels: Sequence[Label] | None = None,
    sample_weight: SampleWeights = None,
    zero_division: float = 0.0,
) -> float:
    r"""AU(PRC), the area under one precision-recall curve for all nodes together [1]_.

    Every pair of a sample i and a node n is one decision. It is positive if n is one of the labels of i or above one,
    and it is predicted at threshold t if its score is at least t. With t_1 > t_2 > … the distinct scores, P_k and R_k
    precision and recall at t_k, and R_0 = 0,

    .. math:: AU(PRC) = \sum_k (R_k - R_{k-1}) P_k .

    This is the average precision, a sum of steps, as scikit-learn's ``average_precision_score(average="micro")`` has
    it and C-HMCNN [2]_ reports it. Nothing is interpolated: the curve of Davis and Goadrich, which [1]_ uses, lies
    between its points and gives slightly other numbers when there are few distinct scores.

    Parameters
    ----------
    y_true : labels, label sets, or 0/1 matrix
        See :func:`~nhsvm.metrics.example_jaccard`; ancestors are added.
    node_scores : array of (n_samples, n_nodes)
        Scores or probabilities, higher for surer. Dense; only their order matters, and infinite ones are fine.
    hierarchy : Hierarchy
    nodes : sequence of nodes, optional
        What the columns of ``node_scores`` are; by default ``hierarchy.nodes``. With fewer, only these count.
    {roots}
        C-HMCNN leaves out the three roots of the Gene Ontology, which is ``roots=False``. Virtual leaves never count.
    {given}
    zero_division : float
        The value if no decision is positive.

    Returns
    -------
    float
        From 0 to 1, 1 is best.

    Notes
    -----
    Scores are sorted some rows at a time, so the memory needed beside the scores is that of 4 million of them and of
    the positive decisions.

    References
    ----------
    .. [1] C. Vens, J. Struyf, L. Schietgat, S. Džeroski, H. Blockeel. Decision trees for hierarchical multi-label
       classification. Machine Learning 73, 2008.
    .. [2] E. Giunchiglia, T. Lukasiewicz. Coherent hierarchical multi-label classification networks. NeurIPS 2020.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> h.nodes
    ('animal', 'plant', 'dog', 'cat', 'oak')
    >>> scores = [[0.9, 0.4, 0.8, 0.1, 0.3], [0.7, 0.6, 0.2, 0.5, 0.6]]

    The positive decisions have .9, .8, .6 and .6. From the top: .9 and .8 are right, .7 is not, and with both .6 four
    of five are right: 1/4 · 1/1 + 1/4 · 2/2 + 2/4 · 4/5.

    >>> auprc(["dog", "oak"], scores, hierarchy=h)
    0.9
    """
    a_hierarchy(hierarchy)
    zero_division = a_number("zero_division", zero_division)
    columns = None if labels is None else column_numbers(labels, hierarchy, "labels")
    true = indicators(y_true, hierarchy, columns, "y_true")
    weight = sample_weights(sample_weight, true.shape[0])
    scores = _scores(node_scores, true.shape[0])
    numbers = np.arange(hierarchy.n_nodes) if nodes is None else column_numbers(nodes, hierarchy, "nodes")
    if scores.shape[1] != len(numbers):
        raise LabelError(
            f"node_scores has {scores.shape[1]} columns, but there are {len(numbers)} nodes"
            + ("; say with nodes=... which they are" if nodes is None else "")
        )
    counted = np.flatnonzero(node_mask(hierarchy, roots)[numbers])
    positive = closures(true, hierarchy)[:, numbers[counted]]
    rows = np.repeat(np.arange(len(scores)), np.diff(positive.indptr))
    if not weight[rows].any():
        return zero_division
    thresholds, place = np.unique(scores[rows, counted[positive.indices]], return_inverse=True)
    gain = np.bincount(place, weight[rows], len(thresholds))
    found = np.cumsum(gain[::-1])[::-1]
    said = _at_least(thresholds, scores, counted, None if sample_weight is None else weight)
    precision = found / np.where(said > 0, said, 1.0)  # said is 0 where only samples without weight are
    return float(gain @ precision / gain.sum())


def _scores(given: npt.ArrayLike, n_samples: int) -> Array:
    """Real numbers, one row a sample; in whatever precision they come."""
    if sp.issparse(given):
        raise DataError("node_scores must be dense: every node has a score")
    try:
        scores = np.asarray(given)
    except ValueError:
        raise DataError("node_scores must be a matrix, but its rows have different lengths") from None
    if scores.ndim != 2 or scores.dtype.kind not in "biuf":
        raise DataError(f"node_scores must be a matrix of numbers, not {scores.dtype} of shape {scores.shape}")
    if len(scores) != n_samples:
        raise DataError(f"y_true has {n_samples} samples, but node_scores {len(scores)}")
    return scores


def _at_least(thresholds: Array, scores: Array, columns: PtrArray, weight: FloatArray | None) -> FloatArray:
    """For each of the ascending thresholds, how many scores reach it; weighted by the row's weight."""
    total = np.zeros(len(thresholds))
    step = max(1, BATCH // max(1, len(columns)))
    for start in range(0, len(scores), step):
        block = scores[start : start + step]
        block = block.copy() if len(columns) == block.shape[1] else block[:, columns]
        if block.dtype.kind == "f" and np.isnan(block).any():
            row = start + int(np.flatnonzero(np.isnan(block).any(axis=1))[0])
            raise DataError(f"node_scores must not be NaN, but row {row} has one")
        flat = block.ravel()
        if weight is None:
            flat.sort()
            total += len(flat) - np.searchsorted(flat, thresholds)
        else:
            order = np.argsort(flat)
            below = np.concatenate([[0.0], np.cumsum(np.repeat(weight[start : start + step], block.shape[1])[order])])
            total += below[-1] - below[np.searchsorted(flat[order], thresholds)]
    return total
