"""Checks of what losses are given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nhsvm.checks import node_values
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
    alpha = node_values(given, hierarchy, "node_weights")
    alpha.flags.writeable = False
    return alpha
