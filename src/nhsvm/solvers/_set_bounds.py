"""Bounds of the slacks of label sets, for a certificate: as many and as good ones as it takes to tell the gap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.objective import Certificate
from nhsvm.solvers._rounding import largest_primal
from nhsvm.threads import Team

LOOSE = 0.2  # of the tolerance: by how much bounds may make the gap look larger
_PARTS = 10  # in which samples are looked at more closely, until the gap is known to be too large
_FIRST = 4  # of the first of these, what is asked about to see how much better bounds become
_REACH = 0.25  # of what bounds are too large by: if less would do, an oracle that gains little is worth its time

Asked = Callable[[np.ndarray, Any], tuple[FloatArray, FloatArray]]


class Stage(NamedTuple):
    """One oracle, and when it is asked."""

    oracle: Any
    whole: bool = False  # about all samples that matter at once
    anyway: bool = False  # the next one is asked even if the gap is known to be too large
    modest: bool = False  # only if bounds need to become a little better
    doubted: bool = False  # it takes long: only as long as it seems to lead to a proof


class Bounds:
    """What is known of the slacks ξ_i of some weights.

    All samples are asked about with the quickest oracle, then those with the loosest bounds with the next; and so on,
    unless the gap is known to be small enough, or too large, or the last oracle does not bound much better.

    Parameters
    ----------
    costs : array of n_samples
    penalty_value : float
        Of the weights, and what is to be added for rounding.
    dual_value : float
        Of any dual variables.
    tol : float
    ask : callable
        ``ask(rows, oracle)`` gives what the slacks of some samples are at least and at most.
    chunk : int
        Samples to ask about at a time.
    team : Team

    Attributes
    ----------
    least, most : arrays of n_samples
    seen : float
        The gap by what the first oracle found.
    """

    def __init__(
        self, costs: FloatArray, penalty_value: float, dual_value: float, tol: float, ask: Asked, chunk: int, team: Team
    ) -> None:
        self.costs, self.penalty_value, self.dual_value, self.tol = costs, penalty_value, dual_value, tol
        self.ask, self.chunk, self.team = ask, chunk, team
        n = len(costs)
        self.least, self.most = np.zeros(n), np.full(n, np.inf)
        self.rows = np.arange(n)  # whose bounds matter
        self.seen = np.inf

    def certificate(self, slacks: FloatArray) -> Certificate:
        """What the gap would be with these slacks."""
        return Certificate(largest_primal(self.penalty_value, slacks, self.costs), self.dual_value)

    @property
    def proved(self) -> Certificate:
        return self.certificate(self.most)

    @property
    def at_least(self) -> Certificate:
        """The gap is no smaller, whatever the bounds."""
        return self.certificate(self.least)

    @property
    def settled(self) -> bool:
        """Whether the gap is small enough, or known not to be."""
        return self.at_least.gap > self.tol or self.proved.gap <= self.tol

    def tighten(self, stages: Iterable[Stage]) -> None:
        """Ask, stage by stage, until the gap is settled; it may be already."""
        if self.seen < np.inf and self.settled:
            return
        for stage in stages:
            if stage.modest and self.certificate(self.most - _REACH * (self.most - self.least)).gap > self.tol:
                continue
            self._one_stage(stage)
            if self.proved.gap <= self.tol or (self.settled and not stage.anyway):
                return
            loose = self._loose()
            order = np.argsort(-loose, kind="stable")
            left = np.cumsum(loose[order][::-1])[::-1]  # what is left if all before are exact
            self.rows = order[left > LOOSE * self.tol * self.at_least.primal]

    def _one_stage(self, stage: Stage) -> None:
        parts = np.array_split(self.rows, 1 if stage.whole else _PARTS)
        if stage.doubted:  # few have to tell whether to go on
            parts = [*np.array_split(parts[0], [-(-len(parts[0]) // _FIRST)]), *parts[1:]]
        for p, some in enumerate(parts):
            before = self._loose()[some].sum() if stage.doubted else 0.0  # at first, nothing is known
            self._in_chunks(some, partial(self._asked, oracle=stage.oracle))
            self.seen = min(self.seen, self.at_least.gap)
            if self.settled:
                return
            if stage.doubted:  # if the bounds of the others become better as these have
                part = self._loose()[some].sum() / before if before > 0 else 0.0
                others = self._loose()[np.concatenate([self.rows[:0], *parts[p + 1 :]])].sum()
                if Certificate(self.proved.primal - (1.0 - part) * float(others), self.dual_value).gap > self.tol:
                    return

    def _loose(self) -> FloatArray:
        """What the bounds leave open, in units of the objective."""
        return self.costs * (self.most - self.least)

    def _asked(self, rows: np.ndarray, oracle: Any) -> None:
        low, high = self.ask(rows, oracle)
        self.least[rows] = np.maximum(self.least[rows], low)
        self.most[rows] = np.maximum(np.minimum(self.most[rows], high), 0.0)

    def _in_chunks(self, samples: np.ndarray, use: Callable[[np.ndarray], None]) -> None:
        """Some samples at a time, on all threads."""
        parts = [samples[lo : lo + self.chunk] for lo in range(0, len(samples), self.chunk)]
        self.team.each(len(parts), lambda k: use(parts[k]))
