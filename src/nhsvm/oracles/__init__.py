"""The most violating label of a sample: argmax over labels of score plus loss.

:class:`SingleLabel` is over Y_s, all others are over Y_m and keep to :class:`Oracle`.

>>> from nhsvm import Hierarchy
>>> from nhsvm.oracles import most_violating
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> most_violating(h, [0.0, 0.0, 1.0, 0.5, -2.0]).leaves
('dog', 'cat')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nhsvm.oracles.brute_force import BruteForce
    from nhsvm.oracles.dag import DagMultilabel
    from nhsvm.oracles.inference import MostViolating, most_violating
    from nhsvm.oracles.leaves import SingleLabel
    from nhsvm.oracles.lp import LinearProgram
    from nhsvm.oracles.protocol import Oracle
    from nhsvm.oracles.tree import TreeMultilabel

__all__ = [
    "ORACLES",
    "BruteForce",
    "DagMultilabel",
    "LinearProgram",
    "MostViolating",
    "Oracle",
    "SingleLabel",
    "TreeMultilabel",
    "most_violating",
]


_HOME = {
    "BruteForce": "brute_force",
    "DagMultilabel": "dag",
    "LinearProgram": "lp",
    "MostViolating": "inference",
    "Oracle": "protocol",
    "SingleLabel": "leaves",
    "TreeMultilabel": "tree",
    "most_violating": "inference",
}


def __getattr__(name: str) -> Any:
    """A public name, imported with numba or HiGHS when it is asked for."""
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _Family(Mapping[str, Any]):
    """Name → class, imported when it is asked for."""

    def __init__(self, classes: dict[str, str]) -> None:
        self._classes = classes

    def __getitem__(self, name: str) -> Any:
        return __getattr__(self._classes[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


ORACLES: Mapping[str, Any] = _Family(
    {
        "brute_force": "BruteForce",
        "dag_multilabel": "DagMultilabel",
        "lp": "LinearProgram",
        "single_label": "SingleLabel",
        "tree_multilabel": "TreeMultilabel",
    }
)
"""Every oracle by its name as an option. All but ``single_label``, over Y_s, are over Y_m."""
