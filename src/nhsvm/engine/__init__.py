"""The engine: minimises the objective over U, and proves how near it is to the best; one solver a class."""

from __future__ import annotations

from nhsvm.engine import leaf_search, single_label  # noqa: F401 - each says how its kind of problem is solved
from nhsvm.engine.alternating import Alternating
from nhsvm.engine.ascent import Dual
from nhsvm.engine.hinges import HingeProblem, Hinges
from nhsvm.engine.problem import (
    LabelSetProblem,
    Problem,
    SingleLabelProblem,
    Solution,
    Solver,
    StreamingSolver,
)
from nhsvm.engine.sgd import Sgd
from nhsvm.storage.samples import prepare

SOLVERS: dict[str, type[Dual] | type[Sgd]] = {"alternating": Alternating, "dual": Dual, "sgd": Sgd}
"""Every solver by its name."""

__all__ = [
    "SOLVERS",
    "Alternating",
    "Dual",
    "HingeProblem",
    "Hinges",
    "LabelSetProblem",
    "Problem",
    "Sgd",
    "SingleLabelProblem",
    "Solution",
    "Solver",
    "StreamingSolver",
    "prepare",
]
