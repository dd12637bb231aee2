"""The engine: minimises the objective over U, and proves how near it is to the best; one solver a class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nhsvm.registry import Family, Spec, on_first_use

if TYPE_CHECKING:  # kernels load numba
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

SOLVERS: Family[Spec, type[Dual] | type[Sgd]] = Family(
    "solver",
    __name__,
    [
        Spec("dual", "ascent.Dual", "block dual ascent, which is exact and proves it"),
        Spec("sgd", "sgd.Sgd", "the paper's stochastic method"),
        Spec("alternating", "alternating.Alternating", "block dual ascent, and weights that are learned"),
    ],
    also=" or an instance",
)
"""Every solver by its name; what each can do, its class says: see :class:`Solver`."""

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

_HOMES = {
    **dict.fromkeys(
        ("LabelSetProblem", "Problem", "SingleLabelProblem", "Solution", "Solver", "StreamingSolver", "prepare"),
        "problem",
    ),
    **dict.fromkeys(("HingeProblem", "Hinges"), "hinges"),
}
__getattr__ = on_first_use(__name__, lambda: _HOMES | SOLVERS.homes)
