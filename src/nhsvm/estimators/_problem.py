"""What ``fit`` learns from, made once from X and y: no part of a fit encodes labels or solves α again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nhsvm.estimators._label_sets import LabelSets
from nhsvm.estimators._targets import Codes, Targets
from nhsvm.typing import FloatArray


@dataclass(frozen=True)
class LearningProblem:
    """Samples, labels and weights of a fit; an estimator makes it, and nothing changes it.

    Estimates of memory, held-out folds, paths of C and warm starts all take it.

    Attributes
    ----------
    labels : Targets or LabelSets
        Encoded, with the classes and the hierarchy restricted to them.
    weight : array of n_samples
        Sample weights.
    alpha : array of n_nodes
        Node weights α of that hierarchy.
    costs : array of n_samples
        C_i / C: sample weights times class weights.
    C : float
    solved : Problem, SetProblem or IndependentProblem
        The same as a solver takes it.
    """

    labels: Targets | LabelSets
    weight: FloatArray
    alpha: FloatArray
    costs: FloatArray
    C: float
    solved: Any

    @property
    def has_sets(self) -> bool:
        """Whether samples have label sets."""
        return isinstance(self.labels, LabelSets)

    def at(self, C: float) -> LearningProblem:
        """The same with another C."""
        if C == self.C:
            return self
        return replace(self, C=C, solved=replace(self.solved, costs=C * self.costs))

    def part(self, rows: Codes) -> Any:
        """What a solver takes, of some of the samples; with the same columns, whether or not all labels are there."""
        return self.solved.part(np.asarray(rows))
