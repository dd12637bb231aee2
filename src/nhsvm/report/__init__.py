"""How good a model is on labelled samples, as a record and as one HTML page.

>>> from nhsvm import Hierarchy, NHSVM
>>> from nhsvm.report import evaluate
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> X, y = [[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]], ["dog", "cat", "oak"]
>>> found = evaluate(NHSVM(h, C=10).fit(X, y), X, y)
>>> found.metrics["accuracy"], found.metrics["tree_distance"]
(1.0, 0.0)
"""

from typing import TYPE_CHECKING

from nhsvm.registry import on_first_use

if TYPE_CHECKING:
    from nhsvm.report.evaluation import evaluate
    from nhsvm.report.page import write_report
    from nhsvm.report.record import Evaluation

__all__ = ["Evaluation", "evaluate", "write_report"]

_HOMES = {"Evaluation": "record", "evaluate": "evaluation", "write_report": "page"}
__getattr__ = on_first_use(__name__, lambda: _HOMES)


def __dir__() -> list[str]:
    return __all__
