"""The arrays a multi-label oracle is given and fills: one check before a kernel trusts their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import DataError, OptionError
from nhsvm.hierarchy.graph import FloatArray, Graph

LARGEST = 1e280  # of Σ|r|; some multiples of it have to be finite


def check_finite(rewards: FloatArray, scales: FloatArray) -> None:
    """Raise unless all rewards are finite and not too large; ``scales`` has Σ|r| of every sample."""
    for t in np.flatnonzero(~np.isfinite(scales))[:1].tolist():
        node = int(np.argmin(np.isfinite(rewards[t])))
        raise DataError(f"rewards must be finite, but sample {t} has {rewards[t, node]} at node number {node}")
    for t in np.flatnonzero(scales > LARGEST)[:1].tolist():
        raise DataError(f"the rewards of sample {t} are too large: their sizes add up to {scales[t]:.0e}")


def checked(
    graph: Graph, rewards: FloatArray, chosen: npt.NDArray[Any], value: FloatArray, bound: FloatArray, dtype: type
) -> None:
    """Raise unless all have the shapes and types of ``solve``; a kernel would read or write beyond them."""
    shape = (len(rewards), graph.n_nodes)
    wanted = {
        "rewards": (rewards, shape, np.float64),
        "chosen": (chosen, shape, dtype),
        "value": (value, shape[:1], np.float64),
        "bound": (bound, shape[:1], np.float64),
    }
    for name, (array, size, kind) in wanted.items():
        if array.shape != size or array.dtype != kind or not array.flags.c_contiguous:
            raise OptionError(
                f"{name} must be a C-ordered {np.dtype(kind)} array of shape {size}, "
                f"not {array.dtype} of shape {array.shape}"
            )
