"""``node_weights``, the schemes whose weights have a closed form on every hierarchy, and checks of options."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nhsvm.checks import a_hierarchy, node_values
from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import Graph
from nhsvm.sizes import is_number
from nhsvm.typing import BoolArray, FloatArray
from nhsvm.weights import SCHEMES

Scheme = Callable[[Hierarchy], FloatArray]
"""What a scheme is: any function from a hierarchy to α, such as an instance of one of the classes."""


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
        SCHEMES.check_options(scheme, options)
        scheme = SCHEMES[scheme](**options)
    elif options:
        raise OptionError(f"options {sorted(options)} go with the name of a scheme, not with an instance")
    elif isinstance(scheme, type) or not callable(scheme):
        raise OptionError(f"a scheme is a name, an instance such as Power(rho=2), or a function, not {scheme!r}")
    return node_values(scheme(hierarchy), hierarchy, f"the result of {scheme!r}")


@dataclass(frozen=True)
class Maxmin:
    """Eq. 7:  max min_n α_n  s.t.  Σ_{n∈Ā(l)} α_n = 1 for every leaf l,  α_child ≥ α_parent.

    Only the smallest weight is determined: it is t = 1 / max_l |Ā(l)|, on trees and DAGs alike, since the |Ā(l)|
    weights of the leaf with most ancestors are all ≥ t and add up to 1. Of the many optima we take the one with the
    smallest inner weights: **every inner node gets t, every leaf the rest**. It is unique, exists on every hierarchy,
    and keeps the directional constraint; so ``directional`` makes no difference here.

    With ``total=(low, high)`` (Eq. 8) the longest path may use up ``high``: t = high / max_l |Ā(l)|, and a leaf gets
    the least that is ≥ t and brings its path to ``low``.

    Parameters
    ----------
    directional : bool
        Ask for α_child ≥ α_parent (the optimum chosen has it anyway).
    total : (low, high)
        Range of the sum of weights on every path.
    include_common : bool
        Give weight also to nodes above every leaf.
    """

    directional: bool = True
    total: tuple[float, float] = (1.0, 1.0)
    include_common: bool = False

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        low, high = check_total(self.total)
        graph = hierarchy.graph
        out = left_out(graph, self.include_common)
        # on a tree Ā(l) is a path, so the level counts it and no ancestor sets are needed
        size = graph.level[graph.leaves] + 1 if graph.is_tree else graph.leaf_ancestors.sizes()
        size = size - out.sum()
        smallest = high / size.max()
        alpha = np.where(out, 0.0, smallest)
        alpha[graph.leaves] = np.maximum(smallest, low - (size - 1) * smallest)
        return alpha


@dataclass(frozen=True)
class Uniform:
    """α_n = 1 everywhere: HSVM (Eq. 3). Path sums grow with depth; that is what normalisation mends.

    Parameters
    ----------
    include_common : bool
        Give weight also to nodes above every leaf (they cancel from every comparison of labels).
    """

    include_common: bool = False

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        return np.where(left_out(hierarchy.graph, self.include_common), 0.0, 1.0)


@dataclass(frozen=True)
class Flat:
    """α_n = 1 on the leaves and 0 elsewhere: the hierarchy is ignored (Section 5)."""

    def __call__(self, hierarchy: Hierarchy) -> FloatArray:
        return hierarchy.graph.is_leaf.astype(float)


def check_total(total: tuple[float, float]) -> tuple[float, float]:
    """The range (low, high) of Σ α over Ā(l), Eq. 8."""
    if not (isinstance(total, (tuple, list)) and len(total) == 2 and all(map(is_number, total))):
        raise OptionError(f"total must be a pair (low, high) of numbers, not {total!r}")
    low, high = float(total[0]), float(total[1])
    if not (0 < low <= high < math.inf):
        raise OptionError(f"total must have 0 < low <= high < inf, not {total!r}")
    return low, high


def check_flag(value: bool, name: str) -> bool:
    """A truth value, not a text that happens to be true."""
    if not isinstance(value, (bool, np.bool_)):
        raise OptionError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def left_out(graph: Graph, include_common: bool) -> BoolArray:
    """The nodes whose weight is zero whatever the scheme: by default those above every leaf."""
    if check_flag(include_common, "include_common"):
        return np.zeros(graph.n_nodes, dtype=bool)
    return graph.is_common
