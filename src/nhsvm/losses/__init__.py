"""Structural errors Δ(y, y'): how wrong is one label set when the other is right; one loss a file.

>>> from nhsvm import Hierarchy
>>> from nhsvm.losses import make_loss
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> make_loss("hamming", h).distance("dog", "oak")
4.0
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy.typing as npt

from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.losses._base import Loss, NodeLoss
from nhsvm.losses.hamming import Hamming
from nhsvm.losses.leaf_hamming import LeafHamming
from nhsvm.losses.normalized import Normalized
from nhsvm.losses.zero_one import ZeroOne

__all__ = ["LOSSES", "Hamming", "LeafHamming", "Loss", "NodeLoss", "Normalized", "ZeroOne", "make_loss"]

LOSSES: Mapping[str, type[Loss]] = MappingProxyType(
    {
        "zero_one": ZeroOne,
        "hamming": Hamming,
        "normalized": Normalized,
        "leaf_hamming": LeafHamming,
    }
)
"""Every loss by its name, which is its file's."""


def make_loss(loss: str | type[Loss] | Loss, hierarchy: Hierarchy, node_weights: npt.ArrayLike | None = None) -> Loss:
    """The loss of that name, over a hierarchy.

    Parameters
    ----------
    loss : str, class or Loss
        A name in :data:`LOSSES`; a :class:`Loss` class; or a ready loss of this very hierarchy, which comes back as it
        is, with its own node weights.
    hierarchy : Hierarchy
        With a virtual leaf for every inner node that is a label.
    node_weights : array of n_nodes, optional
        α, aligned with ``hierarchy.nodes``. Losses that do not depend on α leave it aside.
    """
    if isinstance(loss, Loss):
        # equal hierarchies may number their nodes differently, and then arrays do not fit
        if loss.hierarchy.nodes != hierarchy.nodes or loss.hierarchy != hierarchy:
            raise OptionError(
                f"loss {loss.name!r} was made for {loss.hierarchy!r}, not for {hierarchy!r}; give its name or class"
            )
        return loss
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise OptionError(f"loss must be one of {list(LOSSES)} or a Loss, not {loss!r}")
        loss = LOSSES[loss]
    if not (isinstance(loss, type) and issubclass(loss, Loss)):
        raise OptionError(f"loss must be one of {list(LOSSES)} or a Loss, not {loss!r}")
    return loss(hierarchy, node_weights)
