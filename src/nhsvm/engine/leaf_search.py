"""Label sets for samples on a large DAG, of which nothing is remembered: by the leaves that could be of use.

All that is done beyond scores and one look at every node depends on the number of these leaves, so nothing here makes a
table of label sets, and rewards are looked at while they are still near: some samples at a time go all the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.engine.ascent import Dual, Options
from nhsvm.engine.dual.block import follow
from nhsvm.engine.dual.levels import LayoutInParts, Levels
from nhsvm.engine.label_sets import DagAscent, Found, SetAscent, TreeAscent, is_forest, memory_of
from nhsvm.engine.problem import LabelSetProblem
from nhsvm.engine.protocols import Weights
from nhsvm.engine.samples import Updates
from nhsvm.engine.set_certificate import AT_A_TIME, READY
from nhsvm.objective import Certificate
from nhsvm.oracles.dag.candidate_search import CandidateSearch, Rooms
from nhsvm.oracles.dag.candidates import LeafCandidates, Lists
from nhsvm.oracles.protocol import check_finite
from nhsvm.threads import Team
from nhsvm.typing import FloatArray, PtrArray

_FINDS = 0.2  # gap down to which putting in single leaves finds enough, where nothing is remembered
_SAMPLED, _MANY = 8192, 4  # samples that the gap is estimated by, where there are so many times as many
_FALLS = 0.9  # of the gap when a certificate was put off: it is put off again only if there is no more left
_CLOSE = 2.0  # times the tolerance: estimates from which on that is done
_SETTLED = 0.12  # gap from which on samples may be left out of a pass, there too
_REST = 0.1  # of the gap that samples had when they were last visited: what those left out had at most
# budget and precision of searches with bounds, and whether they branch
_STAGES = (5_000, 1e-3, False), (50_000, 1e-4, False), (700_000, 1e-6, True)
_USEFUL = 64  # leaves that a sample may gain in a visit far away, where all leaves are worth a bit
_COUNTED = 32  # of so many samples, one is asked whether its label set is right
_AT_A_TIME = 16  # of these


class LeafAscent(DagAscent):
    """On a large DAG: sets are found, and bounded, by the leaves that could be of use.

    Attributes
    ----------
    search : LeafSearch
    provable : float
        The gap that a certificate would prove, as far as some samples tell; 0 if none were asked.
    postponed : float
        The gap when a certificate was last put off for that.
    last_slack, last_gap : arrays of n_samples
        C ξ and the part of the gap, as they were when the sample was last visited.
    left_out : array of n_samples
        Samples that were not in the last pass.
    """

    provable, postponed = 0.0, np.inf
    chunk = AT_A_TIME

    def __init__(
        self, options: Options, problem: LabelSetProblem, state: Any, team: Team, weights: Weights | None = None
    ) -> None:
        super().__init__(options, problem, state, team, weights)
        self.search = LeafSearch(problem, self.state.few)
        self.oracles = self.search.oracles
        self.last_slack, self.last_gap = np.zeros((2, problem.n_samples))
        self.left_out = np.zeros(problem.n_samples, bool)

    @property
    def first_stage(self) -> int:
        return max(self.stage, 1)  # a few leaves alone bound badly

    def one_pass(self) -> None:
        self.provable = 0.0
        if self.certificate.gap <= _FINDS:  # one leaf after the other, most sets are missed
            self.stage = max(self.stage, 1)
        super().one_pass()

    def batch_pass(self) -> None:
        super().batch_pass()
        if self.stage > 0:
            self.sample_gap()

    def sample_gap(self) -> None:
        """Near the end, estimate the gap anew, for the weights as they are now, by some of the samples.

        What a pass has observed are slacks of the weights on the way; at its end the gap is less, at times by a third.
        What the oracle that a certificate asks first proves of these samples tells whether it would succeed: it takes
        as long as a pass.
        """
        every = np.flatnonzero(self.costs > 0)
        if len(every) < _MANY * _SAMPLED or self.certificate.gap * self.ratio > _CLOSE * self.options.tol:
            return
        some = np.sort(self.rng.choice(every, _SAMPLED, replace=False))
        least, most = np.empty((2, len(some)))

        def work(k: int) -> None:
            part = slice(k * AT_A_TIME, (k + 1) * AT_A_TIME)
            least[part], most[part] = self.search.gaps(some[part], self.stage, self.weights, self.state)

        self.team.each(-(-len(some) // AT_A_TIME), work)
        dual_value, error = self.certificate.dual, float(most.std()) / len(some) ** 0.5
        seen, provable = (len(every) * max(0.0, gap) for gap in (float(least.mean()), float(most.mean()) + error))
        self.certificate = Certificate(dual_value + seen, dual_value)
        self.provable = Certificate(dual_value + provable, dual_value).gap
        self.history[-1].update(self.values())

    def try_certificate(self) -> None:
        # not in vain; but when little is left to learn, oracles that take longer have to prove what these do not
        tol, gap = self.options.tol, self.certificate.gap
        if self.provable > tol and READY * tol < gap <= _FALLS * self.postponed:
            self.postponed = gap
            return
        super().try_certificate()

    def visited(self) -> tuple[np.ndarray, float]:
        """Near the optimum of a large problem, not those that had next to no gap; but none is left out twice."""
        every, _ = super().visited()
        if self.certificate.gap > _SETTLED or not self.last_gap.any():
            return every, 0.0
        order = every[np.argsort(self.last_gap[every], kind="stable")]
        gaps = np.cumsum(self.last_gap[order])
        settled = order[gaps < _REST * gaps[-1]]
        settled = settled[~self.left_out[settled]]
        self.left_out[:] = False
        self.left_out[settled] = True
        return every[~self.left_out[every]], float(self.last_slack[settled].sum())

    def visits(self, batches: list[np.ndarray], tolerance: float) -> Iterator[tuple[np.ndarray, Found, float]]:
        """Where samples are looked at part by part, the next ones are while this thread takes the steps of a batch.

        So label sets are those of weights a batch older, which matters in the first pass; gradients follow.
        """
        if not self.history or not batches:
            yield from super().visits(batches, tolerance)
            return
        search, weights, state, team = self.search, self.weights, self.state, self.team
        here, updates = NextBatch(search, batches[0], batches[0][:0], self.stage, weights, state), None
        team.each(here.n, here.work)
        for samples, following in zip_longest(batches, batches[1:]):
            found = Found(here.pending.joined(), here.slack)
            if updates is not None:
                follow(found.layout, updates, here.products, weights.n_columns)
            if following is None:
                updates, gain = self.improve(samples, found, here.batch.gram, tolerance)
                self.apply(here.batch, updates)
            else:
                ahead = NextBatch(search, following, samples, self.stage, weights, state)
                with team.meanwhile(ahead.n, ahead.work):
                    updates, gain = self.improve(samples, found, here.batch.gram, tolerance)
                self.apply(here.batch, updates)
                here = ahead
            yield samples, found, gain

    def propose(self, samples: np.ndarray, tolerance: float) -> Found:
        pending, slack = self.search.layout(samples, self.stage, self.weights, self.state)
        self.team.each(len(pending.parts), pending.work)
        return Found(pending.joined(), slack)

    def step(self, samples: np.ndarray, found: Found, gram: Any, tolerance: float) -> tuple[Updates, FloatArray, float]:
        updates, gaps, gain = super().step(samples, found, gram, tolerance)
        self.last_gap[samples] = gaps
        return updates, gaps, gain

    def observed(self, samples: np.ndarray, found: Found) -> tuple[float, float]:
        self.last_slack[samples] = self.costs[samples] * found.slack
        return super().observed(samples, found)

    def ask(self, rows: np.ndarray, oracle: Any, wrong: np.ndarray | None) -> tuple[FloatArray, FloatArray]:
        return self.search.bounded(rows, self.oracles.index(oracle), self.weights)

    def errors(self, wrong: np.ndarray) -> int:
        return round(self.search.errors(self.weights, self.team))


class LeafSearch:
    """What is asked of samples.

    Parameters
    ----------
    problem : LabelSetProblem
    few : LeafCandidates
        Of the columns.

    Attributes
    ----------
    oracles : tuple
        The quickest first; the first one's bounds say little.
    """

    def __init__(self, problem: LabelSetProblem, few: LeafCandidates) -> None:
        self.problem, self.few = problem, few
        rooms: Rooms = {}
        searches = (CandidateSearch(few, *stage, rooms) for stage in _STAGES)
        self.oracles: tuple[LeafCandidates | CandidateSearch, ...] = few, *searches

    def layout(
        self, samples: PtrArray, stage: int, weights: Weights, state: Levels
    ) -> tuple[LayoutInParts, FloatArray]:
        """Samples with the label sets that one of the oracles finds, ready for steps; and their slacks.

        Both are still to be filled in, by the work of the former.
        """
        slack = np.empty(len(samples))
        limit = _USEFUL if stage == 0 else None

        def made(some: slice) -> list[npt.NDArray[Any]]:
            mine = samples[some]
            rewards = np.empty((len(mine), weights.n_columns), weights.dtype)
            weights.scores(mine, rewards)
            self.problem.add_loss(mine, rewards)
            useful, use_of = self.few.ranked(rewards, limit)
            rising = state.rising(mine, rewards, useful)
            if stage > 0:
                useful = self.few.narrowed(useful, use_of, _USEFUL, rising)
            put, value, _ = self.oracles[stage].found(rewards, useful)
            slack[some] = value - self.problem.true_rewards(mine, rewards)
            put = self._or_truth(mine, put, slack[some])
            return state.part(mine, rewards, rising, put)

        return LayoutInParts(len(samples), made), slack

    def _or_truth(self, samples: PtrArray, put: Lists, slack: FloatArray) -> Lists:
        """The true label sets, where worse ones were found."""
        worse = np.flatnonzero(slack < 0.0)
        if not len(worse):
            return put
        lists = np.split(put[1], put[0][1:-1])
        for t in worse.tolist():
            leaves = self.few.graph.leaf_of[self.problem.truth.row(samples[t])]
            lists[t] = leaves[leaves >= 0]
        slack[worse] = 0.0
        return np.concatenate([[0], np.cumsum([len(one) for one in lists])]), np.concatenate(lists)

    def bounded(self, samples: PtrArray, stage: int, weights: Weights) -> tuple[FloatArray, FloatArray]:
        """What slacks are at least, and at most."""
        rewards, value, bound = self._asked(samples, stage, weights)
        true = self.problem.true_rewards(samples, rewards)
        return value - true, bound - true

    def gaps(
        self, samples: PtrArray, stage: int, weights: Weights, state: Levels
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """The parts of the gap that samples have, C_i max_y r(y) − r·z_i, at least and at most."""
        rewards, value, bound = self._asked(samples, stage, weights)
        held = state.held(samples)
        owners = np.repeat(np.arange(len(samples)), np.diff(held.indptr))
        worth = np.bincount(owners, held.values * rewards[owners, held.columns], minlength=len(samples))
        costs = self.problem.costs[samples]
        return costs * value - worth, costs * bound - worth

    def _asked(self, samples: PtrArray, stage: int, weights: Weights) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rewards, in double precision; what the best sets are worth at least, and at most."""
        rewards = np.empty((len(samples), weights.n_columns))
        weights.scores(samples, rewards)
        self.problem.add_loss(samples, rewards)
        check_finite(rewards, np.abs(rewards).sum(axis=1))
        useful, use_of = self.few.ranked(rewards)
        none = np.zeros(len(samples) + 1, np.int64), np.empty(0, np.int32)
        _, value, bound = self.oracles[stage].found(rewards, useful, self.few.narrowed(useful, use_of, _USEFUL, none))
        return rewards, value, bound

    def errors(self, weights: Weights, team: Team) -> float:
        """How many label sets, found quickly and without the loss, are wrong; all, by some of the samples."""
        samples = np.arange(0, self.problem.n_samples, _COUNTED)
        wrong = np.zeros(len(samples), bool)

        parts = [slice(lo, min(len(samples), lo + _AT_A_TIME)) for lo in range(0, len(samples), _AT_A_TIME)]

        def work(lo: int, hi: int) -> None:
            for some in parts[lo:hi]:
                scores = np.empty((some.stop - some.start, weights.n_columns), weights.dtype)
                weights.scores(samples[some], scores)
                scores += self.problem.offsets.astype(scores.dtype)
                (indptr, leaves), _, _ = self.few.found(scores, self.few.useful(scores))
                for t in range(some.start, some.stop):
                    true = self.few.graph.leaf_of[self.problem.truth.row(samples[t])]
                    mine = leaves[indptr[t - some.start] : indptr[t - some.start + 1]]
                    wrong[t] = not np.array_equal(np.sort(true[true >= 0]), mine)

        team.split(len(parts), work)
        return float(wrong.mean()) * self.problem.n_samples if len(wrong) else 0.0


class NextBatch:
    """A batch on the way to its steps, in parts that threads share: its lists, then its samples, some at a time.

    Parameters
    ----------
    search : LeafSearch
    samples, before : arrays
        Of the batch, and of the one before it.
    stage, weights, state : see :meth:`LeafSearch.layout`

    Attributes
    ----------
    n : int
        Number of parts.
    pending, slack : see :meth:`LeafSearch.layout`
    batch : object
        See :meth:`nhsvm.engine.storage.table.SparseWeights.batch`.
    products : array
        Inner products of its samples with those of the batch before.
    """

    batch: Any
    products: npt.NDArray[Any]

    def __init__(
        self, search: LeafSearch, samples: PtrArray, before: PtrArray, stage: int, weights: Weights, state: Levels
    ) -> None:
        self.weights, self.samples, self.before = weights, samples, before
        self.pending, self.slack = search.layout(samples, stage, weights, state)
        self.n = 1 + len(self.pending.parts)

    def work(self, k: int) -> None:
        """One of the parts."""
        if k > 0:
            self.pending.work(k - 1)
            return
        self.batch = self.weights.batch(self.samples)
        both, n = np.concatenate([self.before, self.samples]), len(self.before)
        self.products = self.weights.batch(both).gram[n:, :n]


def kind_of(problem: LabelSetProblem) -> type[SetAscent]:
    """How a problem of label sets is solved."""
    if problem.answers is None and is_forest(problem.above):
        return TreeAscent
    return LeafAscent if problem.oracle.leaf_candidates is not None and memory_of(problem) is None else DagAscent


def set_ascent(options: Options, problem: LabelSetProblem, state: Any, team: Team) -> SetAscent:
    """A run on label sets, ready to begin."""
    return kind_of(problem)(options, problem, state, team)


Dual.kinds[LabelSetProblem] = set_ascent
