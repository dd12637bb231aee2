"""Probabilities of nodes under models of label sets: a logistic curve of the margin for every node.

P(n|x) = 1 / (1 + exp(−(a_n m_n(x) + b_n))) for the margin m_n(x), the most that a label at or below n adds to the best
label set; then no node is more probable than what is above it. Slopes a_n ≥ 0 and intercepts b_n are those of largest
likelihood on held-out samples (Platt's curves), with a normal prior on the slope per standard deviation of the margin,
since most nodes of a hierarchy have few samples: a node without any keeps its frequency.

References
----------
J. Platt (1999). Probabilistic outputs for support vector machines. Advances in large margin classifiers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from nhsvm.hierarchy.graph import BoolArray, FloatArray, Graph

_PRIOR = 2.0  # weight of the prior on slopes, in samples
_ROUNDS = 30  # of Newton's method
_LONGEST = 1.0  # step of a slope or intercept in one round
_BLOCK = 256  # nodes at a time


class Curves(NamedTuple):
    """Slope and intercept of every node."""

    slope: FloatArray
    intercept: FloatArray

    def probabilities(self, margins: FloatArray, graph: Graph) -> FloatArray:
        """Of all nodes, (n_samples, n_nodes), from their margins."""
        found: FloatArray = expit(margins * self.slope + self.intercept)
        found = np.ascontiguousarray(found.T)
        for level in graph.levels():
            if level.start == 0:
                continue
            up = graph.parents.rows(np.arange(level.start, level.stop))
            above = np.minimum.reduceat(found[up.indices], up.indptr[:-1], axis=0)
            found[level] = np.minimum(found[level], above)
        return np.ascontiguousarray(found.T)


def node_margins(graph: Graph, gains: FloatArray) -> FloatArray:
    """The largest gain among the leaves at or below every node: (n_samples, n_nodes) from (n_samples, n_leaves).

    Examples
    --------
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> node_margins(h.graph, np.array([[2.0, -1.0, -1.0]]))
    array([[ 2., -1.,  2., -1., -1.]])
    """
    margins = np.empty((graph.n_nodes, len(gains)))
    margins[graph.leaves] = gains.T
    for level in graph.levels_up():
        inner = np.arange(level.start, level.stop)
        inner = inner[~graph.is_leaf[inner]]
        if len(inner):
            down = graph.children.rows(inner)
            margins[inner] = np.maximum.reduceat(margins[down.indices], down.indptr[:-1], axis=0)
    return np.ascontiguousarray(margins.T)


def fit_curves(margins: FloatArray, true: BoolArray, weight: FloatArray) -> Curves:
    """Curves of all nodes.

    Parameters
    ----------
    margins : array of (n_samples, n_nodes)
        Of held-out samples.
    true : array of (n_samples, n_nodes)
        Whether a sample has the node.
    weight : array of n_samples
    """
    parts = [
        _fit(margins[:, lo : lo + _BLOCK], true[:, lo : lo + _BLOCK], weight)
        for lo in range(0, margins.shape[1], _BLOCK)
    ]
    return Curves(np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts]))


def _fit(margins: FloatArray, true: BoolArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Newton's method for some nodes at once, each in its two numbers."""
    w = weight[:, None] / weight.mean()
    mean = np.average(margins, axis=0, weights=weight)
    spread = np.sqrt(np.average((margins - mean) ** 2, axis=0, weights=weight))
    z = (margins - mean) / np.where(spread > 0, spread, 1.0)
    # half a sample more of either kind: a node that all have, or none, is not certain
    positive, total = (w * true).sum(axis=0), float(w.sum())
    target = (w * true + 0.5 / len(w)) / (w + 1.0 / len(w))
    slope, intercept = np.zeros(z.shape[1]), np.log((positive + 0.5) / (total - positive + 0.5))
    for _ in range(_ROUNDS):
        p = expit(slope * z + intercept)
        residual, curvature = w * (target - p), w * p * (1.0 - p)
        by_slope, by_intercept = (residual * z).sum(axis=0) - _PRIOR * slope, residual.sum(axis=0)
        both = (curvature * z).sum(axis=0)
        slopes, intercepts = (curvature * z * z).sum(axis=0) + _PRIOR, curvature.sum(axis=0)
        determinant = slopes * intercepts - both**2
        change = np.stack([intercepts * by_slope - both * by_intercept, slopes * by_intercept - both * by_slope])
        change = np.clip(change / determinant, -_LONGEST, _LONGEST)
        before = slope
        slope = np.maximum(slope + change[0], 0.0)
        intercept = intercept + np.where(slope > 0, change[1], np.clip(by_intercept / intercepts, -_LONGEST, _LONGEST))
        if np.abs(slope - before).max() < 1e-6 and np.abs(change[1]).max() < 1e-6:
            break
    per_unit = np.where(spread > 0, slope / np.where(spread > 0, spread, 1.0), 0.0)
    return per_unit, intercept - per_unit * mean
