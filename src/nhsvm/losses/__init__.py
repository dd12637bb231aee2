"""Structural errors Δ(y, y'): how wrong is one label set when the other is right.

>>> from nhsvm import Hierarchy
>>> from nhsvm.losses import make_loss
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> make_loss("hamming", h).distance("dog", "oak")
4.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nhsvm.registry import Family, Spec, on_first_use

if TYPE_CHECKING:
    from nhsvm.losses.base import Loss, LossRows, NodeLoss, make_loss, whole_rows
    from nhsvm.losses.losses import Hamming, LeafHamming, Normalized, ZeroOne

__all__ = [
    "LOSSES",
    "Hamming",
    "LeafHamming",
    "Loss",
    "LossRows",
    "NodeLoss",
    "Normalized",
    "ZeroOne",
    "make_loss",
    "whole_rows",
]

LOSSES: Family[Spec, type[Loss]] = Family(
    "loss",
    __name__,
    [
        Spec("zero_one", "losses.ZeroOne", "1 if two labels differ: right or wrong, wherever in the hierarchy"),
        Spec("hamming", "losses.Hamming", "number of nodes in which two labels differ; on a tree, edges between them"),
        Spec("normalized", "losses.Normalized", "√(Σ α of the nodes in which two labels differ) (Eq. 9)"),
        Spec("leaf_hamming", "losses.LeafHamming", "number of leaves in which two label sets differ (Section 7.1)"),
    ],
    also=" or a Loss",
)
"""Every loss by its name."""

_HOMES = dict.fromkeys(("Loss", "LossRows", "NodeLoss", "make_loss", "whole_rows"), "base")
__getattr__ = on_first_use(__name__, lambda: _HOMES | LOSSES.homes)


def __dir__() -> list[str]:
    return sorted({*__all__, *LOSSES.homes})
