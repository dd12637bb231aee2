"""The most violating label of a sample: argmax over labels of score plus loss, one problem class a file.

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
    from nhsvm.oracles._door import MostViolating, most_violating
    from nhsvm.oracles.brute_force import BruteForce
    from nhsvm.oracles.dag_multilabel import DagMultilabel
    from nhsvm.oracles.lp import LinearProgram
    from nhsvm.oracles.single_label import SingleLabel
    from nhsvm.oracles.tree_multilabel import TreeMultilabel

__all__ = [
    "ORACLES",
    "BruteForce",
    "DagMultilabel",
    "LinearProgram",
    "MostViolating",
    "SingleLabel",
    "TreeMultilabel",
    "most_violating",
]


class _Family(Mapping[str, Any]):
    """Name → class; a class is imported, with numba or HiGHS, when it is asked for."""

    def __init__(self, classes: dict[str, str]) -> None:
        self._classes = classes

    def __getitem__(self, name: str) -> Any:
        own = self._classes[name]
        return getattr(import_module(f"{__name__}.{name}"), own)

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


_CLASSES = {
    "brute_force": "BruteForce",
    "dag_multilabel": "DagMultilabel",
    "lp": "LinearProgram",
    "single_label": "SingleLabel",
    "tree_multilabel": "TreeMultilabel",
}
_HOME = {name: module for module, name in _CLASSES.items()} | {"MostViolating": "_door", "most_violating": "_door"}

ORACLES: Mapping[str, Any] = _Family(_CLASSES)
"""Every oracle by its name, which is its file's. All but ``single_label``, over Y_s, are over Y_m."""


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
