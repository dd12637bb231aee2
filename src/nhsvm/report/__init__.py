"""How good a model is on labelled samples, as a record and as one HTML page.

>>> from nhsvm import Hierarchy, NHSVM
>>> from nhsvm.report import evaluate
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> X, y = [[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]], ["dog", "cat", "oak"]
>>> found = evaluate(NHSVM(h, C=10).fit(X, y), X, y)
>>> found.metrics["accuracy"], found.metrics["tree_distance"]
(1.0, 0.0)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nhsvm.report._record import Evaluation
    from nhsvm.report.evaluation import evaluate
    from nhsvm.report.page import write_report

__all__ = ["Evaluation", "evaluate", "write_report"]

_HOME = {"Evaluation": "_record", "evaluate": "evaluation", "write_report": "page"}  # imported on first use


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
