"""Label sets for samples on a large DAG, or in a rough fit, of which nothing is remembered: by candidate leaves.

Beyond scores and one visit of every node, the work depends on the number of these leaves. So nothing here makes a table
of label sets, and rewards are read while they are still near: some samples at a time go all the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest

import numpy as np

from nhsvm.engine.ascent import KINDS, Dual, Run, Visit
from nhsvm.engine.dual.block import follow
from nhsvm.engine.dual.levels import LayoutInParts, Levels
from nhsvm.engine.label_sets import DagAscent, TreeAscent
from nhsvm.engine.problem import LabelSetProblem
from nhsvm.engine.protocols import SampleBatch
from nhsvm.engine.set_certificate import Query, SetFit, SetFound, SetTuning
from nhsvm.objective import Certificate
from nhsvm.oracles.dag.candidate_search import CandidateSearch, Rooms
from nhsvm.oracles.dag.candidates import LeafCandidates, Lists
from nhsvm.oracles.protocol import check_finite
from nhsvm.threads import Team
from nhsvm.typing import Array, BoolArray, FloatArray, IntArray, PtrArray


@dataclass(frozen=True)
class LeafTuning(SetTuning):
    """Constants of large DAGs. Numbers name the records of ``docs/decisions`` with what was measured."""

    finds: float = 0.2  # gap down to which putting in single leaves finds enough [113]
    useful: int = 64  # leaves that a sample may gain in a visit far away, where all leaves are worth a bit [113]
    # budget and precision of searches with bounds, and whether they branch [113]
    stages: tuple[tuple[int, float, bool], ...] = (
        (5_000, 1e-3, False),
        (50_000, 1e-4, False),
        (700_000, 1e-6, True),
    )
    at_a_time: int = 16  # samples that are queried together [113]
    counted: int = 32  # of so many samples, one is queried for whether its label set is right [113]
    sampled: int = 8192  # samples that the gap is estimated from [114]
    many: int = 4  # times as many samples there have to be for that
    close: float = 2.0  # times the tolerance: estimates from which on that is done [114]
    falls: float = 0.9  # of the gap when a certificate was postponed: it is postponed again only if no more is left
    settled: float = 0.12  # gap from which on samples may be left out of a pass [129]
    rest: float = 0.1  # of the gap that samples had when they were last visited: upper bound of those left out [129]
    rough: float = 0.25  # a fit is rough if nothing is to be proved and a gap of so much, or more, will do [081];
    rough_sweeps: int = 2  # over the samples of a batch, then [081]


@dataclass
class LeafFit(SetFit[Levels]):
    """The state of a run on a large DAG; of every sample, what was observed when it was last visited."""

    last_slack: FloatArray = field(default_factory=lambda: np.empty(0))  # C ξ
    last_gap: FloatArray = field(default_factory=lambda: np.empty(0))  # its part of the gap
    left_out: BoolArray = field(default_factory=lambda: np.empty(0, bool))  # it was not in the last pass
    provable: float = 0.0  # gap that a certificate would prove, as far as some samples show; 0 if none were queried
    postponed: float = np.inf  # the gap when a certificate was last postponed for that


class LeafAscent(DagAscent):
    """On a large DAG: sets are found, and bounded, by candidate leaves."""

    tuning: LeafTuning = LeafTuning()
    fit: LeafFit

    def __init__(self, options: Dual, problem: LabelSetProblem, fit: LeafFit, team: Team) -> None:
        super().__init__(options, problem, fit, team)
        if options.rough(self.tuning.rough):
            self.tuning = replace(self.tuning, sweeps=self.tuning.rough_sweeps)
        self.few, rooms = self.dual.few, Rooms()
        searches = (CandidateSearch(self.few, *stage, rooms) for stage in self.tuning.stages)
        # the quickest first; the first one's bounds say little
        self.searches: tuple[LeafCandidates | CandidateSearch, ...] = self.few, *searches

    @classmethod
    def first_fit(cls, options: Dual, problem: LabelSetProblem, dual: Levels | None) -> LeafFit:
        slack, gap = np.zeros((2, problem.n_samples))
        left_out = np.zeros(problem.n_samples, bool)
        return LeafFit(**vars(super().first_fit(options, problem, dual)) | {
            "last_slack": slack, "last_gap": gap, "left_out": left_out, "memory": None
        })  # fmt: skip

    @property
    def n_stages(self) -> int:
        return len(self.searches)

    @property
    def first_stage(self) -> int:
        return max(self.fit.stage, 1)  # a few leaves alone bound badly

    @property
    def chunk(self) -> int:
        return self.tuning.at_a_time

    # -- passes --------------------------------------------------------------------------------------------------------

    def one_pass(self) -> None:
        self.fit.provable = 0.0
        if self.fit.certificate.gap <= self.tuning.finds:  # one leaf after the other, most sets are missed
            self.fit.stage = max(self.fit.stage, 1)
        super().one_pass()

    def batch_pass(self) -> None:
        super().batch_pass()
        if self.fit.stage > 0 and self.options.certify:
            self.sample_gap()

    def visited(self) -> tuple[PtrArray, float]:
        """Near the optimum of a large problem, not those that had next to no gap; but none is left out twice."""
        fit, (every, _) = self.fit, super().visited()
        if fit.certificate.gap > self.tuning.settled or not fit.last_gap.any():
            return every, 0.0
        order = every[np.argsort(fit.last_gap[every], kind="stable")]
        gaps = np.cumsum(fit.last_gap[order])
        settled = order[gaps < self.tuning.rest * gaps[-1]]
        settled = settled[~fit.left_out[settled]]
        fit.left_out[:] = False
        fit.left_out[settled] = True
        return every[~fit.left_out[every]], float(fit.last_slack[settled].sum())

    def visits(self, batches: list[PtrArray], tolerance: float) -> Iterator[Visit[SetFound]]:
        """The next samples are queried, part by part, while this thread takes the steps of a batch.

        So label sets are those of weights a batch older, which matters in the first pass; gradients follow.
        """
        if not self.fit.history or not batches:
            yield from super().visits(batches, tolerance)
            return
        here, updates = NextBatch(self, batches[0], batches[0][:0]), None
        self.team.each(here.n, here.work)
        for samples, following in zip_longest(batches, batches[1:]):
            found = SetFound(here.pending.joined(), here.slack)
            if updates is not None:
                follow(found.layout, updates, here.products, self.weights.n_columns)
            ahead = NextBatch(self, samples if following is None else following, samples)
            with self.team.meanwhile(0 if following is None else ahead.n, ahead.work):
                updates, gain = self.improve(samples, found, here.batch.gram, tolerance)
            self.apply(here.batch, updates)
            here = ahead
            yield samples, found, gain

    def propose(self, samples: PtrArray, tolerance: float) -> SetFound:
        pending, slack = self.layout(samples)
        self.team.each(len(pending.parts), pending.work)
        return SetFound(pending.joined(), slack)

    def layout(self, samples: PtrArray) -> tuple[LayoutInParts, FloatArray]:
        """Samples with the label sets that the search in use finds, ready for steps; and their slacks.

        Both are still to be filled in, by the work of the former.
        """
        slack, stage = np.empty(len(samples)), self.fit.stage
        useful_leaves = self.tuning.useful

        def made(some: slice) -> list[Array]:
            mine = samples[some]
            rewards = np.empty((len(mine), self.weights.n_columns), self.weights.dtype)
            self.weights.scores(mine, rewards)
            self.problem.add_loss(mine, rewards)
            useful, use_of = self.few.ranked(rewards, useful_leaves if stage == 0 else None)
            rising = self.dual.rising(mine, rewards, useful)
            if stage > 0:
                useful = self.few.narrowed(useful, use_of, useful_leaves, rising)
            put, value, _ = self.searches[stage].found(rewards, useful)
            slack[some] = value - self.problem.true_sums(mine, rewards)
            put = self._or_truth(mine, put, slack[some])
            return self.dual.part(mine, rewards, rising, put)

        return LayoutInParts(len(samples), made), slack

    def _or_truth(self, samples: PtrArray, put: Lists, slack: FloatArray) -> Lists:
        """The true label sets, where worse ones were found."""
        worse = np.flatnonzero(slack < 0.0)
        if not len(worse):
            return put
        lists = np.split(put[1], put[0][1:-1])
        for t in worse.tolist():
            lists[t] = self.true_leaves(samples[t])
        slack[worse] = 0.0
        return np.concatenate([[0], np.cumsum([len(one) for one in lists])]), np.concatenate(lists)

    def true_leaves(self, sample: int) -> IntArray:
        """The leaves that are labels of a sample."""
        leaves = self.few.graph.leaf_of[self.problem.truth.row(sample)]
        return leaves[leaves >= 0]

    def note_gaps(self, samples: PtrArray, gaps: FloatArray) -> None:
        self.fit.last_gap[samples] = gaps

    def observed(self, samples: PtrArray, found: SetFound) -> tuple[float, float]:
        self.fit.last_slack[samples] = self.costs[samples] * found.slack
        return super().observed(samples, found)

    # -- certificates --------------------------------------------------------------------------------------------------

    def query(self, stage: int, wrong: BoolArray | None = None) -> Query:
        return partial(self.bounded_by, stage)

    def bounded_by(self, stage: int, samples: PtrArray) -> tuple[FloatArray, FloatArray]:
        """What slacks are at least, and at most."""
        rewards, value, bound = self._searched(samples, stage)
        true = self.problem.true_sums(samples, rewards)
        return value - true, bound - true

    def gaps(self, samples: PtrArray, stage: int) -> tuple[FloatArray, FloatArray]:
        """The parts of the gap that samples have, C_i max_y r(y) − r·z_i, at least and at most."""
        rewards, value, bound = self._searched(samples, stage)
        held = self.dual.held(samples)
        owners = np.repeat(np.arange(len(samples)), np.diff(held.indptr))
        worth = np.bincount(owners, held.values * rewards[owners, held.columns], minlength=len(samples))
        return self.costs[samples] * value - worth, self.costs[samples] * bound - worth

    def _searched(self, samples: PtrArray, stage: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rewards, in double precision; what the best sets are worth at least, and at most."""
        rewards = np.empty((len(samples), self.weights.n_columns))
        self.weights.scores(samples, rewards)
        self.problem.add_loss(samples, rewards)
        check_finite(rewards, np.abs(rewards).sum(axis=1))
        useful, use_of = self.few.ranked(rewards)
        none = np.zeros(len(samples) + 1, np.int64), np.empty(0, np.int32)
        first = self.few.narrowed(useful, use_of, self.tuning.useful, none)
        _, value, bound = self.searches[stage].found(rewards, useful, first)
        return rewards, value, bound

    def errors(self, wrong: BoolArray) -> int:
        """How many label sets, found quickly and without the loss, are wrong; all, by some of the samples."""
        samples = np.arange(0, self.problem.n_samples, self.tuning.counted)
        wrong = np.zeros(len(samples), bool)

        def work(part: slice) -> None:
            scores = np.empty((part.stop - part.start, self.weights.n_columns), self.weights.dtype)
            self.weights.scores(samples[part], scores)
            scores += self.problem.offsets.astype(scores.dtype)
            (indptr, leaves), _, _ = self.few.found(scores, self.few.useful(scores))
            for t, mine in enumerate(np.split(leaves, indptr[1:-1]), part.start):
                wrong[t] = not np.array_equal(np.sort(self.true_leaves(samples[t])), mine)

        self.team.chunks(len(samples), self.tuning.at_a_time, work)
        return round(float(wrong.mean()) * self.problem.n_samples) if len(wrong) else 0

    def sample_gap(self) -> None:
        """Near the end, estimate the gap anew, for the weights as they are now, by some of the samples.

        What a pass has observed are slacks of the weights on the way; at its end the gap is less, at times by a third.
        What the oracle that a certificate queries first proves of these samples shows whether it would succeed: it
        takes as long as a pass.
        """
        fit, how, every = self.fit, self.tuning, np.flatnonzero(self.costs > 0)
        if len(every) < how.many * how.sampled or fit.certificate.gap * fit.ratio > how.close * self.tol:
            return
        some = np.sort(fit.rng.choice(every, how.sampled, replace=False))
        least, most = np.empty((2, len(some)))

        def work(part: slice) -> None:
            least[part], most[part] = self.gaps(some[part], fit.stage)

        self.team.chunks(len(some), how.at_a_time, work)
        dual_value, error = fit.certificate.dual, float(most.std()) / len(some) ** 0.5
        seen, provable = (len(every) * max(0.0, gap) for gap in (float(least.mean()), float(most.mean()) + error))
        fit.certificate = Certificate(dual_value + seen, dual_value)
        fit.provable = Certificate(dual_value + provable, dual_value).gap
        fit.history[-1].update(self.values())

    def try_certificate(self) -> None:
        # not without hope; but when little is left to learn, oracles that take longer have to prove what these do not
        fit, how, gap = self.fit, self.tuning, self.fit.certificate.gap
        if fit.provable > self.tol and how.ready * self.tol < gap <= how.falls * fit.postponed:
            fit.postponed = gap
            return
        super().try_certificate()


class NextBatch:
    """A batch on the way to its steps, in ``n`` parts that threads share: first its lists, then its samples."""

    batch: SampleBatch
    products: Array  # inner products of its samples with those of the batch before

    def __init__(self, run: LeafAscent, samples: PtrArray, before: PtrArray) -> None:
        self.weights, self.samples, self.before = run.weights, samples, before
        self.pending, self.slack = run.layout(samples)
        self.n = 1 + len(self.pending.parts)

    def work(self, k: int) -> None:
        """One of the parts."""
        if k > 0:
            self.pending.work(k - 1)
            return
        self.batch = self.weights.batch(self.samples)
        both, n = np.concatenate([self.before, self.samples]), len(self.before)
        self.products = self.weights.batch(both).gram[n:, :n]


def kind_of(problem: LabelSetProblem, options: Dual) -> type[Run]:
    """How a problem of label sets is solved; far from the optimum a memory is not worth its time."""
    if problem.answers is None and problem.nests:
        return TreeAscent
    oracle, rough = problem.oracle, options.rough(LeafAscent.tuning.rough)
    if oracle.leaf_candidates is None or (oracle.remembers(problem.n_samples) and not rough):
        return DagAscent
    return LeafAscent


KINDS[LabelSetProblem] = kind_of
