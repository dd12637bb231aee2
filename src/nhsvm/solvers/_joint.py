"""Weights α that are learned: what happens to them between two passes of the dual method, and the joint certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.objective import Certificate, dual, penalty
from nhsvm.solvers._ascent import Ascent
from nhsvm.solvers._budget import Budget
from nhsvm.solvers._problem import Record
from nhsvm.solvers._rounding import gamma, largest_penalty, least_dual
from nhsvm.threads import Team

_HASTE = (1.0, 20.0)  # least and first: while the gap at fixed weights is so many times what weights add, these stay
_VAIN = 8  # changes of weights without a smaller gap, after which there is less haste
_LOOK = 8  # passes after which the weights are looked at in any case
_INNER = 0.5  # of the tolerance: what passes at fixed weights aim at
_FLOOR = 0.1  # of the gap: share of the first weights in all later ones
_LEAST = 1e-9  # the same in the weights that are given back, so that columns stay columns
_STEP = (1.0, 2.0, 8.0)  # smallest, first and largest length of steps in log α
_LONGER, _SHORTER = 1.3, 0.5
_FAR = 3.0  # log α changes by no more at a time


class Joint(Ascent):
    """A mixin before a kind of ascent, with a ``problem`` that has ``columns`` and a ``graph``.

    With V_n = Σ_i β_in x_i, so that U_n = α_n V_n, the joint problem over U and α is bounded from below by any dual
    variables: by Σ a Δ − ½ max_α Σ_n α_n‖V_n‖² over the weights that are allowed.
    """

    problem: Any

    def __init__(self, options: Any, problem: Any, state: Any, team: Team) -> None:
        if problem.graph is None:
            raise OptionError("solver='alternating' learns weights, so it needs to know the hierarchy: use SSVM")
        super().__init__(replace(options, tol=_INNER * options.tol), problem, state, team)  # type: ignore[call-arg]
        self.asked_for = options.tol
        self.budget = Budget(problem.graph, problem.columns)
        self.first = problem.columns.alpha
        self.shipped = self.first
        self.best: FloatArray | None = None
        self.inner = self.certificate
        self.excess = np.inf
        self.haste, self.smallest, self.vain = _HASTE[1], np.inf, 0
        self.lower = -np.inf  # the best bound proved
        self.length, self.direction = np.full(len(self.first), _STEP[1]), np.zeros(len(self.first))

    @property
    def alpha(self) -> FloatArray:
        found: FloatArray = self.problem.columns.alpha
        return found

    @property
    def goal(self) -> float:
        return float(self.asked_for)

    @property
    def converged(self) -> bool:
        return self.certified and self.certificate.gap <= self.goal

    def one_pass(self) -> None:
        self.reweigh()
        self.shipped = self.alpha  # until a certificate finds better ones for these U
        self.certificate = self.inner
        super().one_pass()  # type: ignore[safe-super]
        self.inner = self.certificate
        saved = 0.0
        if self.ready or len(self.history) % _LOOK == 1:
            norms = self.weights.column_norms()
            self.best = self.budget.best(norms)
            values = norms / self.alpha**2
            self.excess = 0.5 * (self.budget.about(values, norms, self.best) - float(self.alpha @ values))
            saved = penalty(norms, self.alpha) - penalty(norms, self.best)
        self.certificate = Certificate(self.inner.primal - saved, max(self.inner.dual - self.excess, self.lower))
        self.history[-1].update(self.values())

    @property
    def ready(self) -> bool:
        """Whether U is about right for the weights it has."""
        return self.inner.primal - self.inner.dual <= self.haste * self.excess

    def reweigh(self) -> None:
        """Go towards the weights that are best for U, and beyond them where the way has been the same for long.

        The best for U alone is a step too short: with more weight U_n grows. A weight of zero would never come back, so
        some of the first weights, the less the smaller the gap, is in all. With a large C, U moves against margins that
        new weights violate, which takes passes to repair; so weights wait until U is about right for those it has.
        """
        if self.best is None or not self.ready:
            return
        self.vain = 0 if self.certificate.gap < 0.9 * self.smallest else self.vain + 1
        self.smallest = min(self.smallest, self.certificate.gap)
        if self.vain >= _VAIN:
            self.haste, self.vain = max(_HASTE[0], 0.5 * self.haste), 0
        best, old = np.maximum(self.best, np.finfo(np.float64).tiny), self.alpha
        way = np.log(best) - np.log(old)
        least, _, most = _STEP
        again = way * self.direction > 0
        self.length = np.clip(self.length * np.where(again, _LONGER, _SHORTER), least, most)
        self.length[self.direction == 0] = _STEP[1]
        self.direction = way
        new = self.budget.filled(old * np.exp(np.clip(self.length * way, -_FAR, _FAR)))
        share = _FLOOR * float(np.clip(self.certificate.gap, 0.0, 1.0))
        self.change((1.0 - share) * new + share * self.first)

    def change(self, alpha: FloatArray) -> None:
        """Take other weights: V_n stays, so U_n = α_n V_n is rescaled."""
        values = self.weights.column_norms() / self.alpha**2
        self.weights.rescale(alpha / self.alpha)
        self.problem = replace(self.problem, columns=replace(self.problem.columns, alpha=alpha))
        lower = dual(0.5 * float(alpha @ values), self.mass())
        self.inner = Certificate(max(self.inner.primal, lower), lower)

    def try_certificate(self) -> None:
        super().try_certificate()
        if not self.converged:  # estimates were too good, so that passes did too little
            self.options = replace(self.options, tol=_INNER * self.options.tol)  # type: ignore[type-var]
            self.ratio = min(self.ratio, _INNER)

    def told(self) -> tuple[float, bool]:
        return self.certificate.gap, False  # what is missing may be in α, and no fault of the precision

    def values(self) -> Record:
        return super().values() | {"fixed_primal": self.inner.primal, "fixed_dual": self.inner.dual}

    def measured(self) -> tuple[Certificate, int]:
        self.inner, wrong = super().measured()  # type: ignore[safe-super]
        stored, alpha, spread = self.norms.stored, self.alpha, self.budget.spread
        self.best = self.budget.best(stored)
        shipped = (1.0 - _LEAST) * self.best + _LEAST * self.first
        own, other = self.largest_penalty(stored), largest_penalty(stored, shipped, self.weights.n_features)
        # weights that rounding has made too large by a factor are those without it, and a penalty larger by it
        rest = self.inner.primal * (1.0 + gamma(8.0)) - (2.0 * penalty(stored, alpha) - own)
        uppers = [rest + self.budget.excess(weights) * value for weights, value in ((alpha, own), (shipped, other))]
        self.shipped = shipped if uppers[1] <= uppers[0] else alpha
        upper = min(uppers) * (1.0 + spread)
        values = self.norms.most / alpha**2 * (1.0 + spread)
        mass, beyond = self.least_mass(), self.state.excess(self.costs)
        about = 0.5 * (1.0 + spread) * self.budget.about(values, stored, self.best)
        self.lower = max(self.lower, least_dual(about, mass, beyond))
        if Certificate(upper, self.lower).gap > self.goal:
            most = 0.5 * (1.0 + spread) * self.budget.most(values)
            self.lower = max(self.lower, least_dual(most, mass, beyond))
        self.excess = max(0.0, self.inner.dual - self.lower)
        return Certificate(upper, self.lower), wrong
