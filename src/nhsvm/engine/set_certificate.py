"""Certificates of label sets: the gap that bounds prove, and weights near by for which they prove a smaller one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nhsvm.engine.ascent import Ascent
from nhsvm.engine.certificate import largest_primal
from nhsvm.engine.problem import LabelSetProblem
from nhsvm.objective import Certificate
from nhsvm.oracles.protocol import Oracle
from nhsvm.threads import Team
from nhsvm.typing import FloatArray

if TYPE_CHECKING:
    pass

AT_A_TIME = 16  # samples on a large graph that are asked about together, and of a batch of a relaxation
_SCORES = 2**18  # scores (samples × nodes) in one chunk of a certificate
_HOPE = 0.35  # of the gap that is seen: the next certificate waits for no less, whatever bounds are too large by
READY = 0.7  # of the tolerance: gap that has to be left at most, whatever bounds are, to try a relaxation
_AGAIN = 0.8  # of the gap that was left when it was in vain: before that it is not tried again
_RELAXED = 640  # samples that take a step of it
_RENEWED = 40, 60  # sweeps of a certificate from what is remembered; and more, which gain less
LOOSE = 0.2  # of the tolerance: by how much bounds may make the gap look larger
_PARTS = 10  # in which samples are looked at more closely, until the gap is known to be too large
_FIRST = 4  # of the first of these, what is asked about to see how much better bounds become
_REACH = 0.25  # of what bounds are too large by: if less would do, an oracle that gains little is worth its time
Asked = Callable[[np.ndarray, Any], tuple[FloatArray, FloatArray]]


class SetCertificate(Ascent):
    """What a run on label sets knows of its gap.

    Attributes
    ----------
    oracles : tuple of Oracle
        The quickest first; ``stage`` is the one in use.
    renewal : callable, optional
        An oracle that renews, by so many sweeps, what is remembered of samples.
    relaxation : Oracle, optional
        Finds points of a relaxation whose bounds are those that sweeps can reach.
    exact_oracle : bool
        The oracle itself is asked, from now on.
    tried, in_vain : bool, float
        Whether the last certificate has made use of the relaxation; the gap that was left when that was in vain.
    bounds : Bounds
        Of the last certificate, for the weights that the dual variables make.
    """

    most_ratio = 10.0  # a search whose estimate is good enough takes no steps, so estimates must not stay too small
    problem: LabelSetProblem
    oracles: tuple[Any, ...]
    stage = 0
    exact_oracle: bool
    bounds: Bounds
    tried, in_vain = False, np.inf
    renewal: Callable[[int], Oracle] | None
    relaxation: Oracle | None = None

    @abstractmethod
    def remembered(self, samples: np.ndarray) -> dict[str, Any]:
        """What to tell the oracle beside the rewards of samples."""

    def relaxed_run(self, relaxation: Oracle) -> SetCertificate:
        """A run of the relaxed problem from the marginals that the dual variables are, on the same weights."""
        raise NotImplementedError  # of runs that have a relaxation

    @property
    def first_stage(self) -> int:
        """The first oracle that a certificate asks."""
        return self.stage

    @property
    def chunk(self) -> int:
        """Samples that a certificate asks about at a time."""
        return max(1, _SCORES // self.problem.n_nodes)

    def measured(self) -> tuple[Certificate, int]:
        self.rebuild()
        of_dual, stored = self.norms, self.norms.stored
        quick, last = self._stages()
        self.bounds, wrong = self._bounds(self._upper(stored), self.least_dual(), quick)
        self.tried = self.relaxation is not None and self._is_loose()
        if self.relaxation is None or not self.tried:
            self.bounds.tighten(last)
            return self.bounds.proved, self.errors(wrong)
        run = self.relaxed_run(self.relaxation)
        relaxed, other = self._relaxed(run, quick)
        if relaxed.gap > self.options.tol:  # see what can be proved of the weights as they were
            self.rebuild()
            self.bounds.tighten(last)
            if self.bounds.proved.gap <= relaxed.gap:
                return self.bounds.proved, self.errors(wrong)
            run.rebuild()
        self.detached, self.norms = True, of_dual._replace(stored=run.norms.stored)
        return relaxed, self.errors(other)

    def _upper(self, squared_norms: FloatArray) -> float:
        """The penalty of weights, and what rounding may have taken from their slacks."""
        return self.largest_penalty(squared_norms) + self.slack_error(squared_norms)

    def errors(self, wrong: np.ndarray) -> int:
        """How many label sets are wrong; ``wrong`` says which, if each was looked at."""
        return round(float(wrong.sum()))

    def _stages(self) -> tuple[list[Stage], list[Stage]]:
        """Whom a certificate asks, and whom in the end: sweeps bound nearly as well as all oracles but the last."""
        first, *others = self.oracles[self.first_stage :]
        last = [Stage(oracle, doubted=True) for oracle in others[-1:]]
        if self.renewal is None:
            return [Stage(first, whole=True), *map(Stage, others[:-1])], last
        sweeps = [Stage(self.renewal(_RENEWED[0]), whole=True), Stage(self.renewal(_RENEWED[1]), modest=True)]
        return [Stage(first, whole=True, anyway=True), *sweeps], last

    def _bounds(self, penalty_value: float, dual_value: float, stages: list[Stage]) -> tuple[Bounds, np.ndarray]:
        """Bounds of the slacks of the weights as they are, and which sets found without the loss are wrong ones."""
        wrong = np.zeros(self.problem.n_samples, dtype=bool)

        def ask(rows: np.ndarray, oracle: Any) -> tuple[FloatArray, FloatArray]:
            return self.ask(rows, oracle, wrong if oracle is stages[0].oracle else None)

        bounds = Bounds(self.costs, penalty_value, dual_value, self.options.tol, ask, self.chunk, self.team)
        bounds.tighten(stages)
        return bounds, wrong

    def ask(self, rows: np.ndarray, oracle: Any, wrong: np.ndarray | None) -> tuple[FloatArray, FloatArray]:
        """What slacks are at least and at most; fills ``wrong``: whether sets found without the loss are wrong."""
        problem = self.problem
        scores = np.empty((len(rows), problem.columns.n_columns))
        self.weights.scores(rows, scores)
        rewards = problem.rewards(rows, scores)
        true = problem.true_rewards(rows, rewards)
        _, value, bound = problem.asked(oracle, rewards, **self.remembered(rows))
        if wrong is not None:
            answers = oracle if problem.answers is None else problem.answers
            wrong[rows] = problem.differ(rows, problem.asked(answers, scores + problem.offsets)[0])
        return value - true, bound - true

    def _is_loose(self) -> bool:
        """Whether bounds are what is left to do, and a relaxation may make them close: near by it was in vain."""
        most = min(READY * self.options.tol, _AGAIN * self.in_vain)
        return self.bounds.at_least.gap <= most and not self.bounds.settled

    def _relaxed(self, run: SetCertificate, stages: list[Stage]) -> tuple[Certificate, np.ndarray]:
        """Go on to other weights near by, for which bounds are closer; their gap, and which sets are wrong.

        Bounds are those of the linear relaxation, whose objective has its smallest value elsewhere. Steps of its own
        dual method go there, from the marginals that the dual variables are; some samples are enough, since it is by
        what all of them share that bounds are too large. These weights are as good as any: the lower bound that they
        are compared with is that of the exact problem.
        """
        before = self.bounds.proved
        tolerance = 0.1 * (before.primal - before.dual) / float(self.costs.sum())
        order = run.rng.permutation(np.flatnonzero(self.costs > 0))[:_RELAXED]
        for lo in range(0, len(order), AT_A_TIME):
            samples = order[lo : lo + AT_A_TIME]
            points, batch = run.propose(samples, tolerance), self.weights.batch(samples)
            updates, _ = run.improve(samples, points, batch.gram, tolerance)
            batch.apply(updates, self.team)
        run.rebuild()
        bounds, wrong = self._bounds(self._upper(run.norms.stored), before.dual, stages)
        self.in_vain = self.bounds.at_least.gap if bounds.proved.gap > self.options.tol else np.inf
        return bounds.proved, wrong

    def reported(self) -> tuple[float, bool]:
        # bounds do not become better with the weights: the gap that is seen has to make up for what they are too large
        # by. If it cannot, it is to fall much at least, since nearly the same weights would be asked about again
        tol, seen, least, proved = self.options.tol, self.bounds.seen, self.bounds.at_least.gap, self.certificate.gap
        needed = max(seen - (proved - tol), _HOPE * seen)
        if self.relaxation is not None and not self.tried:
            needed = max(needed, READY * tol)
        gap = max(least if least > tol else 0.0, tol * seen / max(needed, 1e-300))
        return gap, proved <= (1.0 + LOOSE) * least

    def try_certificate(self) -> None:
        self.exact_oracle = True
        super().try_certificate()
        missed = self.bounds.at_least.gap - self.bounds.seen
        if self.converged or self.stage == len(self.oracles) - 1:
            return
        if missed > self.bounds.seen or self.ratio == self.most_ratio:  # than there is left to learn from what it finds
            self.stage += 1
            self.ratio = 1.0  # what was learned of it does not hold for the next


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
