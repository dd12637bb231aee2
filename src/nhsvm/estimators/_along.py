"""Scores along some directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm._jit import kernel
from nhsvm.hierarchy.graph import FloatArray


def along_directions(scores: npt.NDArray[Any], directions: FloatArray) -> FloatArray:
    """``scores @ directions``; a row does not depend on those beside it, as it does in a product of BLAS."""
    out = np.zeros((len(scores), directions.shape[1]))
    _along_kernel(scores, directions, out)
    return out


@kernel
def _along_kernel(scores, directions, out):
    for t in range(out.shape[0]):
        row = out[t]
        for c in range(directions.shape[0]):
            s, direction = scores[t, c], directions[c]
            for k in range(row.shape[0]):
                row[k] += s * direction[k]
