"""Checks of the options that several schemes share."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import BoolArray, Graph


def is_number(value: object) -> bool:
    """A real number: not a text, not a complex one, not a truth value."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def check_total(total: tuple[float, float]) -> tuple[float, float]:
    """The range (low, high) of Σ α over Ā(l), Eq. 8."""
    if not (isinstance(total, (tuple, list)) and len(total) == 2 and all(map(is_number, total))):
        raise OptionError(f"total must be a pair (low, high) of numbers, not {total!r}")
    low, high = float(total[0]), float(total[1])
    if not (0 < low <= high < math.inf):
        raise OptionError(f"total must have 0 < low <= high < inf, not {total!r}")
    return low, high


def check_flag(value: bool, name: str) -> bool:
    """A truth value, not a text that happens to be true."""
    if not isinstance(value, (bool, np.bool_)):
        raise OptionError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def left_out(graph: Graph, include_common: bool) -> BoolArray:
    """The nodes whose weight is zero whatever the scheme: by default those above every leaf."""
    if check_flag(include_common, "include_common"):
        return np.zeros(graph.n_nodes, dtype=bool)
    return graph.is_common
