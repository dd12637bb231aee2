"""The arrays a multi-label oracle is given and fills: one check before a kernel trusts their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import FloatArray, Graph


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
