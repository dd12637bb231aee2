"""What is kept of samples that are asked about again and again, with rewards that change little in between."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.oracles._dag_work import States

_LARGEST = 600_000_000  # bytes


class Memory(NamedTuple):
    """The last shares and the last label set of every sample.

    Any shares make a bound, and any set has a value, so that old ones are never wrong, only less good.
    """

    shares: npt.NDArray[np.float32]  # (n_samples, edges of the core)
    sets: States  # (n_samples, nodes of the hierarchy, eight a byte)
    known: States  # (n_samples,): 0 for nothing, 1 for a set, 2 for shares too

    def recalled(self, rows: npt.NDArray[np.int64], n_nodes: int) -> States:
        """The sets of some samples, 1 for a node in the set; nothing if there is none."""
        return np.unpackbits(self.sets[rows], axis=1, count=n_nodes)

    def keep(self, rows: npt.NDArray[np.int64], chosen: States) -> None:
        """Remember label sets."""
        self.sets[rows] = np.packbits(chosen, axis=1)
        self.known[rows] = np.maximum(self.known[rows], 1)


def make_memory(n_samples: int, n_nodes: int, n_edges: int, most: float = _LARGEST) -> Memory | None:
    """Room for samples of a hierarchy with a core of so many edges; None if it takes more than ``most`` bytes."""
    n_bytes = -(-n_nodes // 8)
    if n_samples * (4 * n_edges + n_bytes) > most:
        return None
    return Memory(
        np.zeros((n_samples, n_edges), np.float32), np.zeros((n_samples, n_bytes), np.uint8),
        np.zeros(n_samples, np.uint8),
    )  # fmt: skip
