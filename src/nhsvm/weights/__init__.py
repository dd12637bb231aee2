"""Normalisation weights α, one scheme a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from nhsvm.checks import a_hierarchy, node_values
from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.weights.flat import Flat
from nhsvm.weights.maxmin import Maxmin
from nhsvm.weights.power import Power
from nhsvm.weights.shared import Shared, shared_weights
from nhsvm.weights.uniform import Uniform

Scheme = Callable[[Hierarchy], FloatArray]

SCHEMES: dict[str, Callable[..., Scheme]] = {
    "flat": Flat,
    "maxmin": Maxmin,
    "power": Power,
    "shared": Shared,
    "uniform": Uniform,
}


def node_weights(hierarchy: Hierarchy, scheme: str | Scheme = "maxmin", **options: Any) -> FloatArray:
    """The normalisation weights α of a hierarchy, aligned with ``hierarchy.nodes``.

    Parameters
    ----------
    hierarchy : Hierarchy
    scheme : str or callable
        - ``"flat"``: 1 on the leaves, 0 elsewhere
        - ``"uniform"``: 1 everywhere (HSVM; not normalised)
        - ``"maxmin"``: the largest smallest weight, Eq. 7
        - ``"power"``: least Σ α^ρ, Eq. 6
        - ``"shared"``: best for given node vectors, Eq. 20

        or an instance of one of the classes behind these names, or any function of a hierarchy.
    **options
        Of the scheme: ``rho``, ``directional``, ``total``, ``include_common``, ``squared_norms``; see the classes.

    Returns
    -------
    array of n_nodes, float64

    Examples
    --------
    >>> from nhsvm import Hierarchy, node_weights
    >>> h = Hierarchy.from_paths([("sport", "ball", "football"), ("sport", "ball", "tennis"), ("sport", "chess")])
    >>> h.nodes
    ('sport', 'ball', 'chess', 'football', 'tennis')
    >>> node_weights(h, "power", rho=2.0).round(3)
    array([0.   , 0.667, 1.   , 0.333, 0.333])
    >>> node_weights(h, "maxmin", include_common=True).round(3)
    array([0.333, 0.333, 0.667, 0.333, 0.333])
    """
    a_hierarchy(hierarchy)
    if isinstance(scheme, str):
        if scheme not in SCHEMES:
            raise OptionError(f"unknown weights scheme {scheme!r}; there are {sorted(SCHEMES)}")
        known = [field.name for field in fields(SCHEMES[scheme])]  # type: ignore[arg-type]
        unknown = sorted(options.keys() - known)
        if unknown:
            raise OptionError(f"weights scheme {scheme!r} has no option {unknown[0]!r}; it has {known or 'none'}")
        if scheme == "shared" and "squared_norms" not in options:
            raise OptionError("weights scheme 'shared' needs squared_norms=, the ‖U_n‖² of every node")
        scheme = SCHEMES[scheme](**options)
    elif options:
        raise OptionError(f"options {sorted(options)} go with the name of a scheme, not with an instance")
    elif isinstance(scheme, type) or not callable(scheme):
        raise OptionError(f"a scheme is a name, an instance such as Power(rho=2), or a function, not {scheme!r}")
    return node_values(scheme(hierarchy), hierarchy, f"the result of {scheme!r}")


__all__ = ["SCHEMES", "Flat", "Maxmin", "Power", "Scheme", "Shared", "Uniform", "node_weights", "shared_weights"]
