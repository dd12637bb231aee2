"""Certificates of label sets: the gap that bounds prove, and weights near by for which they prove a smaller one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from nhsvm.engine.ascent import Ascent, Dual, FitState, PassTuning
from nhsvm.engine.certificate import largest_primal
from nhsvm.engine.dual.block import Layout
from nhsvm.engine.problem import LabelSetProblem
from nhsvm.engine.protocols import SetBlock
from nhsvm.objective import Certificate
from nhsvm.oracles.protocol import Memory, Oracle
from nhsvm.threads import Team
from nhsvm.typing import BoolArray, FloatArray, PtrArray

Query: TypeAlias = Callable[[PtrArray], tuple[FloatArray, FloatArray]]
"""What the slacks of some samples are at least and at most."""


@dataclass(frozen=True)
class SetTuning(PassTuning):
    """Constants of label sets, on DAGs. Numbers name the records of ``docs/decisions`` with what was measured."""

    most_estimate: float = 10.0  # a search whose estimate is good enough takes no steps, so it must not stay too small
    # passes
    near: float = 0.35  # gap from which on all samples can be queried with the same weights [124]
    nearer: float = 0.05  # the same where nothing is remembered [124]
    all_scores: int = 2**23  # scores (samples × columns) in a batch of a search pass
    oracle: int = 100  # time of the oracle, in units of reading the weights of all columns once
    overhead: int = 100  # time that a batch spends on a sample beside its columns, in units of one column
    few: int = 64  # samples of a batch in a working-set pass
    few_sweeps: int = 2  # over them
    passes: int = 4  # working-set passes between two that query the oracle; more lower the primal no further [125]
    focused: int = 0  # passes over the samples with most of the gap, between two over all
    measure_gap: bool = False  # whether steps measure what is left to gain
    slow: float = 0.005  # of the gap: a working-set pass that gains less is the last
    enough: float = 0.15  # of the gap that the search pass observes: no more need be left, if it is measured
    enough_of_target: float = 0.8  # nor less than so much of the gap to go for
    left: float = 0.3  # passes over the samples with most of the gap end when no more of it is left
    finer: float = 0.1  # violations that do not matter in working-set passes make up so much of
    share: float = 0.3  # this share of the gap that there is, or of the gap to go for
    # certificates
    scores: int = 2**18  # scores (samples × nodes) that a thread makes at a time
    renewed: tuple[int, int] = (40, 60)  # sweeps of a certificate from the memory; and more, which gain less [126]
    modest: float = 0.25  # of what bounds are too large by: if less would do, more sweeps are worth their time [126]
    parts: int = 10  # in which samples are queried more thoroughly, until the gap is known to be too large [126]
    first_part: float = 0.25  # of the first of these, queried to see how much better bounds become [126]
    loose: float = 0.2  # of the tolerance: by how much bounds may make the gap look larger
    hope: float = 0.35  # of the gap seen: the next certificate waits for no less, whatever bounds are too large by
    ready: float = 0.7  # of the tolerance: gap that has to be left at most, whatever bounds are, to try a relaxation
    again: float = 0.8  # of the gap left when a relaxation gained nothing: before that it is not tried again [127]
    relaxed: int = 640  # samples that take a step of it [127]
    relaxed_batch: int = 16  # of these at a time [127]


class SetFound(NamedTuple):
    """What is known of a batch before its steps."""

    layout: Layout
    slack: FloatArray


S = TypeVar("S", bound=SetBlock)


@dataclass
class SetFit(FitState[S]):
    """The state of a run on label sets."""

    memory: Memory | None = None  # what the oracle knows of every sample from the last time, if it makes use of that
    stage: int = 0  # the oracle in use; the first one is the quickest
    exact: bool = True  # query the oracle, no longer only its memory
    no_gain: float = np.inf  # the gap that was left when a relaxation gained nothing


class SetCertificate(Ascent[LabelSetProblem, S, SetFound], Generic[S]):
    """How a run on label sets queries its oracle, and what it proves."""

    tuning: SetTuning = SetTuning()
    fit: SetFit[S]
    bounds: Bounds  # of the last certificate, for the weights that the dual variables make
    tried = False  # the last certificate has made use of the relaxation
    relaxation: Oracle | None = None  # finds points of a relaxation whose bounds are those that sweeps can reach

    def __init__(self, options: Dual, problem: LabelSetProblem, fit: SetFit[S], team: Team) -> None:
        super().__init__(options, problem, fit, team)
        self.oracles = problem.oracle.stages  # the quickest first

    @property
    def n_stages(self) -> int:
        return len(self.oracles)

    @property
    def first_stage(self) -> int:
        """The first oracle that a certificate queries."""
        return self.fit.stage

    @property
    def chunk(self) -> int:
        """Samples that a thread queries at a time for a certificate."""
        return max(1, self.tuning.scores // self.problem.n_nodes)

    # -- bounds of slacks ----------------------------------------------------------------------------------------------

    def query(self, stage: int, wrong: BoolArray | None = None) -> Query:
        """How the oracle of a stage is queried for the slacks of samples; see :meth:`bounded`."""
        return partial(self.bounded, self.oracles[stage], wrong=wrong)

    def bounded(self, oracle: Oracle, rows: PtrArray, wrong: BoolArray | None = None) -> tuple[FloatArray, FloatArray]:
        """What slacks are at least and at most; fills ``wrong``: whether sets found without the loss are wrong."""
        problem, memory = self.problem, self.fit.memory
        scores = np.empty((len(rows), problem.columns.n_columns))
        self.weights.scores(rows, scores)
        rewards = scores.copy()
        problem.add_loss(rows, rewards)
        true = problem.true_sums(rows, rewards)
        _, value, bound = problem.solved(oracle, rewards, memory, rows)
        if wrong is not None:
            answers = oracle if problem.answers is None else problem.answers
            wrong[rows] = problem.differ(rows, problem.solved(answers, scores + problem.offsets)[0])
        return value - true, bound - true

    def errors(self, wrong: BoolArray) -> int:
        """How many label sets are wrong; ``wrong`` says which, if each was queried."""
        return round(float(wrong.sum()))

    def stages(self, wrong: BoolArray) -> tuple[list[Stage], list[Stage]]:
        """What a certificate queries, and what in the end: sweeps bound nearly as well as all oracles but the last."""
        others = range(self.first_stage + 1, self.n_stages)
        first = Stage(self.query(self.first_stage, wrong), whole=True, anyway=self.fit.memory is not None)
        last = [Stage(self.query(stage), doubted=True) for stage in others[-1:]]
        if self.fit.memory is None:
            return [first, *(Stage(self.query(stage)) for stage in others[:-1])], last
        much, more = (partial(self.bounded, self.problem.oracle.renewal(sweeps)) for sweeps in self.tuning.renewed)
        return [first, Stage(much, whole=True), Stage(more, modest=True)], last

    def bound(self, penalty_value: float, dual_value: float) -> tuple[Bounds, BoolArray]:
        """Bounds of the slacks of the weights as they are, and which sets found without the loss are wrong ones."""
        wrong = np.zeros(self.problem.n_samples, dtype=bool)
        bounds = Bounds(self.costs, penalty_value, dual_value, self.tol, self.chunk, self.team, self.tuning)
        bounds.tighten(self.stages(wrong)[0])
        return bounds, wrong

    # -- certificates --------------------------------------------------------------------------------------------------

    def measured(self) -> tuple[Certificate, int]:
        self.rebuild()
        of_dual, stored = self.norms, self.norms.stored
        self.bounds, wrong = self.bound(self.upper(stored), self.least_dual())
        last = self.stages(wrong)[1]
        self.tried = self.relaxation is not None and self._is_loose()
        if not self.tried:
            self.bounds.tighten(last)
            return self.bounds.proved, self.errors(wrong)
        run = self.relaxed_run()
        relaxed, other = self.relaxed(run)
        if relaxed.gap > self.tol:  # see what can be proved of the weights as they were
            self.rebuild()
            self.bounds.tighten(last)
            if self.bounds.proved.gap <= relaxed.gap:
                return self.bounds.proved, self.errors(wrong)
            run.rebuild()
        self.fit.detached, self.norms = True, of_dual._replace(stored=run.norms.stored)
        return relaxed, self.errors(other)

    def _is_loose(self) -> bool:
        """Whether bounds are what is left to do, and a relaxation may make them close: near by it gained nothing."""
        most = min(self.tuning.ready * self.tol, self.tuning.again * self.fit.no_gain)
        return self.bounds.at_least.gap <= most and not self.bounds.settled

    def relaxed_run(self) -> SetCertificate[S]:
        """A run of the relaxed problem from the marginals that the dual variables are, on the same weights."""
        raise NotImplementedError  # of runs that have a relaxation

    def relaxed(self, run: SetCertificate[S]) -> tuple[Certificate, BoolArray]:
        """Go on to other weights near by, for which bounds are closer; their gap, and which sets are wrong.

        Bounds are those of the linear relaxation, whose objective has its smallest value elsewhere. Steps of its own
        dual method go there, from the marginals that the dual variables are; some samples are enough, since it is by
        what all of them share that bounds are too large. These weights are as good as any: the lower bound that they
        are compared with is that of the exact problem.
        """
        before, how = self.bounds.proved, self.tuning
        tolerance = how.of_gap * (before.primal - before.dual) / float(self.costs.sum())
        order = run.fit.rng.permutation(np.flatnonzero(self.costs > 0))[: how.relaxed]
        for lo in range(0, len(order), how.relaxed_batch):
            samples = order[lo : lo + how.relaxed_batch]
            points, batch = run.propose(samples, tolerance), self.weights.batch(samples)
            updates, _ = run.improve(samples, points, batch.gram, tolerance)
            batch.apply(updates, self.team)
        run.rebuild()
        bounds, wrong = self.bound(self.upper(run.norms.stored), before.dual)
        self.fit.no_gain = self.bounds.at_least.gap if bounds.proved.gap > self.tol else np.inf
        return bounds.proved, wrong

    def reported(self) -> tuple[float, bool]:
        # bounds do not become better with the weights: the gap that is seen has to make up for what they are too large
        # by. If it cannot, it is to fall much at least, since nearly the same weights would be queried again
        tol, how, proved = self.tol, self.tuning, self.fit.certificate.gap
        seen, least = self.bounds.seen, self.bounds.at_least.gap
        needed = max(seen - (proved - tol), how.hope * seen)
        if self.relaxation is not None and not self.tried:
            needed = max(needed, how.ready * tol)
        gap = max(least if least > tol else 0.0, tol * seen / max(needed, 1e-300))
        return gap, proved <= (1.0 + how.loose) * least

    def try_certificate(self) -> None:
        fit = self.fit
        fit.exact = True
        super().try_certificate()
        missed = self.bounds.at_least.gap - self.bounds.seen
        if self.converged or fit.stage == self.n_stages - 1:
            return
        if missed > self.bounds.seen or fit.ratio == self.tuning.most_estimate:  # more than is left to learn from it
            fit.stage += 1
            fit.ratio = 1.0  # what was learned of one does not hold for the next


class Stage(NamedTuple):
    """One oracle, and when it is queried."""

    query: Query
    whole: bool = False  # for all samples that matter at once
    anyway: bool = False  # the next one is queried even if the gap is known to be too large
    modest: bool = False  # only if bounds need to become a little better
    doubted: bool = False  # it takes long: only as long as it seems to lead to a proof


class Bounds:
    """What is known of the slacks ξ_i of some weights.

    The quickest oracle is queried for all samples, the next for those with the loosest bounds; and so on, unless
    the gap is known to be small enough, or too large, or the last oracle does not bound much better.

    ``penalty_value`` is that of the weights and what is to be added for rounding, ``dual_value`` that of any dual
    variables. A thread queries ``chunk`` samples at a time.
    """

    def __init__(
        self, costs: FloatArray, penalty_value: float, dual_value: float, tol: float, chunk: int, team: Team,
        tuning: SetTuning,
    ) -> None:  # fmt: skip
        self.costs, self.penalty_value, self.dual_value, self.tol = costs, penalty_value, dual_value, tol
        self.chunk, self.team, self.tuning = chunk, team, tuning
        n = len(costs)
        self.least, self.most = np.zeros(n), np.full(n, np.inf)  # the slacks
        self.rows: PtrArray = np.arange(n)  # whose bounds matter
        self.seen = np.inf  # the gap by what the first oracle found

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

    @property
    def loose(self) -> FloatArray:
        """What the bounds leave open, in units of the objective."""
        return self.costs * (self.most - self.least)

    def tighten(self, stages: Iterable[Stage]) -> None:
        """Query, stage by stage, until the gap is settled; it may be already."""
        if self.seen < np.inf and self.settled:
            return
        for stage in stages:
            modest = self.tuning.modest * (self.most - self.least) if stage.modest else None
            if modest is not None and self.certificate(self.most - modest).gap > self.tol:
                continue
            self._one_stage(stage)
            if self.proved.gap <= self.tol or (self.settled and not stage.anyway):
                return
            loose = self.loose
            order = np.argsort(-loose, kind="stable")
            left = np.cumsum(loose[order][::-1])[::-1]  # what is left if all before are exact
            self.rows = order[left > self.tuning.loose * self.tol * self.at_least.primal]

    def _one_stage(self, stage: Stage) -> None:
        parts = np.array_split(self.rows, 1 if stage.whole else self.tuning.parts)
        if stage.doubted:  # few have to show whether to go on
            few = int(np.ceil(self.tuning.first_part * len(parts[0])))
            parts = [parts[0][:few], parts[0][few:], *parts[1:]]
        for p, some in enumerate(parts):
            before = self.loose[some].sum() if stage.doubted else 0.0  # at first, nothing is known
            self.team.chunks(len(some), self.chunk, partial(self._query, stage, some))
            self.seen = min(self.seen, self.at_least.gap)
            if self.settled:
                return
            if stage.doubted:  # if the bounds of the others become better as these have
                part = self.loose[some].sum() / before if before > 0 else 0.0
                others = self.loose[np.concatenate([self.rows[:0], *parts[p + 1 :]])].sum()
                if Certificate(self.proved.primal - (1.0 - part) * float(others), self.dual_value).gap > self.tol:
                    return

    def _query(self, stage: Stage, some: PtrArray, part: slice) -> None:
        rows = some[part]
        least, most = stage.query(rows)
        self.least[rows] = np.maximum(self.least[rows], least)
        self.most[rows] = np.maximum(np.minimum(self.most[rows], most), 0.0)
