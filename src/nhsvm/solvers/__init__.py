"""Solvers: minimise the objective over U, one method a file."""

from __future__ import annotations

from nhsvm.solvers._problem import Problem, Solution
from nhsvm.solvers.alternating import Alternating
from nhsvm.solvers.dual import Dual
from nhsvm.solvers.sgd import Sgd
from nhsvm.storage.samples import prepare

SOLVERS = {"alternating": Alternating, "dual": Dual, "sgd": Sgd}
"""Every solver by its name, which is its file's."""

__all__ = ["SOLVERS", "Alternating", "Dual", "Problem", "Sgd", "Solution", "prepare"]
