"""Normalisation weights α: how much of what tells labels apart may live at which node.

>>> from nhsvm import Hierarchy, node_weights
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> node_weights(h, "maxmin")
array([0.5, 0.5, 0.5, 0.5, 0.5])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nhsvm.registry import Family, Spec, on_first_use

if TYPE_CHECKING:
    from collections.abc import Callable

    from nhsvm.weights.power import Power
    from nhsvm.weights.schemes import Flat, Maxmin, Scheme, Uniform, node_weights
    from nhsvm.weights.shared import Shared, shared_weights

__all__ = ["SCHEMES", "Flat", "Maxmin", "Power", "Scheme", "Shared", "Uniform", "node_weights", "shared_weights"]

_SUMS = ("directional", "total", "include_common")

SCHEMES: Family[Spec, Callable[..., Scheme]] = Family(
    "weights",
    __name__,
    [
        Spec(
            "maxmin",
            "schemes.Maxmin",
            "the smallest weight is as large as possible (Eq. 7); every inner node gets it, leaves the rest",
            options=_SUMS,
        ),
        Spec(
            "power",
            "power.Power",
            "least Σ α^ρ (Eq. 6); the smaller ρ, the more weight at the top",
            options=("rho", *_SUMS),
        ),
        Spec("uniform", "schemes.Uniform", "1 everywhere: HSVM, not normalised", options=("include_common",)),
        Spec("flat", "schemes.Flat", "all weight on the leaves: a flat SVM"),
        Spec(
            "shared",
            "shared.Shared",
            "best for given node vectors (Eq. 20), as Shared SVM learns them",
            options=("squared_norms",),
            needs=("squared_norms",),
        ),
    ],
    also=", an instance of a scheme or a function of a hierarchy",
)
"""Every scheme by its name."""

SCHEME_OPTIONS = tuple(
    dict.fromkeys(
        option
        for options in sorted((SCHEMES.specs[name].options for name in SCHEMES.choices), key=len, reverse=True)
        for option in options
    )
)
"""Options of the schemes that can be chosen by their name alone."""

_HOMES = {"Scheme": "schemes", "node_weights": "schemes", "shared_weights": "shared"}
__getattr__ = on_first_use(__name__, lambda: _HOMES | SCHEMES.homes)


def __dir__() -> list[str]:
    return sorted({*__all__, *SCHEMES.homes})
