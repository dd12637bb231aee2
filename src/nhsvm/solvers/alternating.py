"""The Shared SVM (Eq. 14, Eq. 15): the dual method, with weights α that are learned on the way.

    min_{U, α}  ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i(U)   s.t.  α ≥ 0,  Σ_{n∈Ā(l)} α_n ≤ 1 for every leaf l

is jointly convex. After every pass over the samples α takes a step towards what is best for U (Eq. 20); the dual
variables stay as they are, so there is nothing to begin anew. The fit ends when a gap of the *joint* problem is proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nhsvm.solvers._joint import Joint
from nhsvm.solvers._multilabel import SetAscent
from nhsvm.solvers._problem import Problem
from nhsvm.solvers._set_problem import SetProblem
from nhsvm.solvers.dual import Dual, PlanesAscent
from nhsvm.threads import Team


class _JointPlanes(Joint, PlanesAscent):
    """Single labels."""


class _JointSets(Joint, SetAscent):
    """Label sets."""


@dataclass(frozen=True)
class Alternating(Dual):
    """Block dual ascent, and weights that are learned. The parameters are those of :class:`nhsvm.solvers.Dual`.

    Of a problem it needs ``graph`` too. The weights of its columns, which must all be positive and add up to one at
    most on every path, are where it starts; nodes that are no columns get none. ``alpha`` of the solution is what it
    has found.
    """

    def _ascent(self, problem: Problem | SetProblem, state: Any, team: Team) -> Joint:
        if isinstance(problem, SetProblem):
            return _JointSets(self, problem, state, team)
        return _JointPlanes(self, problem, state, team)
