"""What an oracle tells a solver of a batch of samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm.hierarchy.graph import FloatArray, IntArray


class Proposals(NamedTuple):
    """What the oracle says of a batch: for every sample, the planes it has and the most violating others."""

    leaf: IntArray  # (batch, width)
    weight: FloatArray  # dual variable of each, 0 for a new plane
    value: FloatArray  # Δ + score difference (scaled, for Eq. 13): the slack this label asks for
    loss: FloatArray  # Δ; 1 for Eq. 13
    scale: FloatArray  # κ: 1, or 1/norm for Eq. 13
    size: IntArray  # (batch,) planes in use
    slack: FloatArray  # (batch,) the largest value, or 0
    best: IntArray  # (batch,) leaf of the highest score, without the loss

    def part(self, which: slice) -> Proposals:
        """The same of some of the samples, as views."""
        return Proposals._make(array[which] for array in self)

    @classmethod
    def empty(cls, n: int, width: int) -> Proposals:
        """Room for n samples of up to ``width`` planes."""
        leaf = np.empty((n, width), np.int32)
        weight, value, loss, scale = np.empty((4, n, width))
        return cls(leaf, weight, value, loss, scale, np.empty(n, np.int32), np.empty(n), np.empty(n, np.int32))
