"""A twin of the search down a tree, with dictionaries and dense weights."""

from __future__ import annotations

import numpy as np


def beam_leaf(parent: np.ndarray, leaf_column: np.ndarray, scores: np.ndarray, width: int) -> int:
    """The best leaf below the ``width`` best columns of every level, from the scores of all columns of one sample."""
    children: dict[int, list[int]] = {}
    for c, p in enumerate(parent.tolist()):
        children.setdefault(p, []).append(c)
    ends: dict[int, list[int]] = {}
    for k, c in enumerate(leaf_column.tolist()):
        ends.setdefault(c, []).append(k)
    found = [(0.0, k) for k in ends.get(-1, [])]
    front = [(float(scores[c]), c) for c in children.get(-1, [])]
    while front:
        found += [(total, k) for total, c in front for k in ends.get(c, [])]
        inner = sorted((part for part in front if part[1] in children), key=lambda part: -part[0])[:width]
        front = [(total + float(scores[c]), c) for total, node in inner for c in children[node]]
    return min(found, key=lambda part: (-part[0], part[1]))[1]
