"""Twin of the kernel of gains: both label sets written out, and their scores compared."""

from __future__ import annotations

import numpy as np

from nhsvm.hierarchy import Graph


def closure(graph: Graph, leaves: set[int]) -> set[int]:
    """Ā of some leaves, given by position."""
    return {int(n) for k in leaves for n in graph.leaf_ancestors.row(k)}


def gain(graph: Graph, scores: np.ndarray, leaves: set[int], leaf: int) -> float:
    """Score of a label set with a leaf, less its score without."""
    with_it, without = closure(graph, leaves | {leaf}), closure(graph, leaves - {leaf})
    return float(sum(scores[n] for n in with_it) - sum(scores[n] for n in without))
