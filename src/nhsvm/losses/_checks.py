"""Checks of what losses are given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nhsvm.errors import LabelError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray


def checked_numbers(values: npt.ArrayLike, limit: int, what: str) -> npt.NDArray[np.int64]:
    """A flat array of whole numbers in ``0 .. limit - 1``."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (numbers.size and not np.issubdtype(numbers.dtype, np.integer)):
        raise LabelError(f"expected a flat array of {what}s, not {numbers.dtype} of shape {numbers.shape}")
    bad = numbers[(numbers < 0) | (numbers >= limit)]
    if len(bad):
        raise LabelError(f"{what} {bad[0]} is outside 0..{limit - 1}")
    return numbers.astype(np.int64)


def checked_weights(given: npt.ArrayLike | None, hierarchy: Hierarchy, name: str) -> FloatArray:
    """α as a frozen array of its own."""
    if given is None:
        raise OptionError(f"loss {name!r} depends on the node weights α: give node_weights, aligned with the nodes")
    try:
        alpha = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"node_weights must be numbers, not {given!r}") from None
    if alpha.shape != (hierarchy.n_nodes,):
        raise OptionError(f"node_weights must have one entry a node, {hierarchy.n_nodes}, not shape {alpha.shape}")
    bad = np.flatnonzero(~np.isfinite(alpha) | (alpha < 0))
    if len(bad):
        raise OptionError(f"node_weights must be finite and ≥ 0, but {hierarchy.nodes[bad[0]]!r} has {alpha[bad[0]]}")
    alpha.flags.writeable = False
    return alpha
