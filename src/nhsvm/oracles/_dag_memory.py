"""What is kept of samples that are asked about again and again, with rewards that change little in between."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.oracles._dag_work import States

_LARGEST = 2**29  # bytes


class Memory(NamedTuple):
    """The last shares and the last label set of every sample.

    Any shares make a bound, and any set has a value, so that old ones are never wrong, only less good.
    """

    shares: npt.NDArray[np.float32]  # (n_samples, edges of the core)
    sets: States  # (n_samples, nodes of the hierarchy)
    known: States  # (n_samples,): 0 for nothing, 1 for a set, 2 for shares too


def make_memory(n_samples: int, n_nodes: int, n_edges: int) -> Memory | None:
    """Room for samples of a hierarchy with a core of so many edges; None if it takes more than half a gigabyte."""
    if n_samples * (4 * n_edges + n_nodes) > _LARGEST:
        return None
    return Memory(
        np.zeros((n_samples, n_edges), np.float32), np.zeros((n_samples, n_nodes), np.uint8),
        np.zeros(n_samples, np.uint8),
    )  # fmt: skip
