"""Checks of the options that several schemes share."""

from __future__ import annotations

import math

import numpy as np

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import BoolArray, Graph


def check_total(total: tuple[float, float]) -> tuple[float, float]:
    """The range (low, high) of Σ α over Ā(l), Eq. 8."""
    try:
        low, high = (float(t) for t in total)
    except (TypeError, ValueError):
        raise OptionError(f"total must be a pair (low, high) of numbers, not {total!r}") from None
    if not (0 < low <= high < math.inf):
        raise OptionError(f"total must have 0 < low <= high < inf, not {total!r}")
    return low, high


def left_out(graph: Graph, include_common: bool) -> BoolArray:
    """The nodes whose weight is zero whatever the scheme: by default those above every leaf."""
    return np.zeros(graph.n_nodes, dtype=bool) if include_common else graph.is_common
