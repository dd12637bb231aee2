"""Probabilities of nodes under models of label sets: logistic curves of what the model says of a node, and of others.

P(n|x) = 1 / (1 + exp(−(a_n m_n(x) + b_n + w_n·z(x)))). The margin m_n(x) is the most that a label at or below n adds to
the best label set. z(x) is where the scores of all nodes lie along the few directions in which they differ most: nodes
go together, and a margin says little of a node with few samples. At last no node may be more probable than what is
above it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from nhsvm.hierarchy.graph import Graph
from nhsvm.typing import FloatArray


class Curves(NamedTuple):
    """What :func:`nhsvm.estimators.calibration.fit_curves` learns."""

    slope: FloatArray
    """a ≥ 0 of every node."""
    intercept: FloatArray
    """b of every node."""
    directions: FloatArray
    """z = scores @ directions: (n_columns, k)."""
    shares: FloatArray
    """w of every node: (k, n_nodes)."""

    def probabilities(self, margins: FloatArray, along: FloatArray, graph: Graph) -> FloatArray:
        """Of all nodes, (n_samples, n_nodes), from their margins and z (n_samples, k)."""
        found: FloatArray = expit(margins * self.slope + self.intercept + along @ self.shares)
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
