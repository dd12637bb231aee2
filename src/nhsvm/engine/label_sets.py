"""The dual method for samples with several labels: the same passes, with node marginals as dual variables.

See :mod:`nhsvm.engine.dual.marginals` for trees and :mod:`nhsvm.engine.dual.levels` for DAGs. Where reading the weights
of nodes in use is much cheaper than reading all, and on DAGs, where the oracle takes most of the time, passes without
the oracle come in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.engine.ascent import SWEEPS, Dual, Options
from nhsvm.engine.certificate import gamma, of_sums
from nhsvm.engine.dual.block import Steps, follow, loss_terms
from nhsvm.engine.dual.level_step import SETTLE, USED
from nhsvm.engine.dual.levels import Levels, Making
from nhsvm.engine.dual.marginals import Marginals
from nhsvm.engine.problem import LabelSetProblem, SetOracle
from nhsvm.engine.samples import Updates
from nhsvm.engine.set_certificate import AT_A_TIME, READY, SetCertificate
from nhsvm.engine.storage import Weights
from nhsvm.hierarchy.graph import FloatArray, PtrArray, Ragged
from nhsvm.objective import Certificate
from nhsvm.oracles._arrays import check_finite
from nhsvm.oracles._dag_cores import DagCores, Rooms
from nhsvm.oracles._dag_few import DagFew, Lists
from nhsvm.threads import Team

_ALL_SCORES = 2**23  # scores (samples × columns) in a batch of a search
_ORACLE = 100  # time of a DAG's oracle, in units of reading the weights of all columns once
_OVERHEAD = 100  # time that a batch spends on a sample beside its columns, in units of one column
_NEAR = 0.35  # gap from which on all samples can be asked about with the same weights, on a DAG
_NEARER = 0.05  # the same where nothing is remembered
_FINDS = 0.2  # gap down to which putting in single leaves finds enough, where nothing is remembered
_SAMPLED, _MANY = 8192, 4  # samples that the gap is estimated by, where there are so many times as many
_FALLS = 0.9  # of the gap when a certificate was put off: it is put off again only if there is no more left
_CLOSE = 2.0  # times the tolerance: estimates from which on that is done
_SETTLED = 0.12  # gap from which on samples may be left out of a pass, there too
_REST = 0.1  # of the gap that samples had when they were last visited: what those left out had at most
_CACHED = 50  # passes over the cells in use between two that ask the oracle, at most
_UNTOLD = 4  # the same on a DAG, where steps do not tell what is left to gain; more lower the primal no further
_FOCUS = 5  # passes over the samples with most of the gap, between two over all
_SLOW = 0.005  # of the gap: a pass that gains less is the last
_FEW = 64  # samples of a batch in such a pass
_SWEEPS = 2  # over them
_SEARCHED = 4e-12  # of all rewards: how near to each other a DAG's oracle takes two label sets for equal, and rounding
# budget and precision of searches with bounds, and whether they branch
_EFFORTS = (5_000, 1e-3, False), (50_000, 1e-4, False), (700_000, 1e-6, True)
_USEFUL = 64  # leaves that a sample may gain in a visit far away, where all leaves are worth a bit
_COUNTED = 32  # of so many samples, one is asked whether its label set is right
_AT_A_TIME = 16  # of these


def _is_forest(above: Ragged) -> bool:
    """Whether no column has two next above."""
    return bool((above.sizes() <= 1).all())


def _first_state(problem: LabelSetProblem) -> Marginals | Levels:
    """The dual variables of U = 0."""
    first, above, relaxed = (problem.truth, problem.costs), problem.above, problem.answers is not None
    if _is_forest(above) and not relaxed:
        return Marginals(*first, above)
    return Levels(*first, problem.columns, above, allow_empty=problem.oracle.allow_empty, whole=relaxed)


class Found(NamedTuple):
    """What is known of a batch before its steps."""

    layout: Any  # a Layout
    slack: FloatArray


class SetAscent(SetCertificate):
    """Label sets: the dual variables are node marginals, on a DAG kept by levels."""

    def __init__(
        self, options: Options, problem: LabelSetProblem, state: Marginals | Levels | None, team: Team,
        weights: Weights | None = None,
    ) -> None:  # fmt: skip
        self.problem = problem
        self._started = state is not None
        made = _first_state(problem) if state is None else state
        super().__init__(options, problem.weights() if weights is None else weights, made, problem.costs, team)
        self.effort = 0  # the oracle in use
        self.provable = 0.0  # the gap that a certificate would prove, as far as some samples tell; 0 if none were asked
        self.put_off = np.inf  # the gap when a certificate was last put off for that
        if isinstance(made, Levels):
            self.ratio = 1.0  # steps change the weights, and so what was met; where it is good enough, none are taken
        # what the oracle knows of every sample from the last time, and how to renew that, if it can make use of it
        oracle: Any = problem.oracle
        self.recalled = oracle.memory(problem.n_samples) if hasattr(oracle, "memory") else None
        self.renewal = None if self.recalled is None else oracle.renewal
        self.relaxation = oracle.relaxed() if self.recalled is not None and isinstance(made, Levels) else None
        if self.relaxation is not None:
            self.ratio = 1.0 / READY  # a certificate before a relaxation is worth a try would be in vain
        self.near = _NEARER if self.renewal is None else _NEAR
        self.oracles = problem.oracles
        if self.recalled is None and isinstance(made, Levels) and hasattr(oracle, "few"):
            self.search = LeafSearch(problem, made.few)
            self.oracles = self.search.oracles
            # of every sample: C ξ and its part of the gap when it was last visited; not in the last pass
            self.last_slack, self.last_gap = np.zeros((2, problem.n_samples))
            self.left_out = np.zeros(problem.n_samples, bool)
        self.thorough = state is not None  # the oracle itself is asked, from now on
        self.certificate = Certificate(float(problem.costs @ problem.first_slacks()), 0.0)

    @property
    def started(self) -> bool:
        return self._started

    def one_pass(self) -> None:
        self.provable = 0.0
        self.thorough = self.thorough or self.certificate.gap <= self.near  # far away, single leaves find enough
        if self.search is not None and self.certificate.gap <= _FINDS:  # one leaf after the other, most sets are missed
            self.effort = max(self.effort, 1)
        if self._cached_is_cheap():
            self.search_pass()
        else:
            self.batch_pass()
            if self.search is not None and self.effort > 0:
                self.sample_gap(self.search)

    def sample_gap(self, search: LeafSearch) -> None:
        """Near the end, estimate the gap anew, for the weights as they are now, by some of the samples.

        What a pass has met are slacks of the weights on the way; at its end the gap is less, at times by a third. What
        the oracle that a certificate asks first proves of these samples tells whether it would succeed: it takes as
        long as a pass.
        """
        every = np.flatnonzero(self.costs > 0)
        if len(every) < _MANY * _SAMPLED or self.certificate.gap * self.ratio > _CLOSE * self.options.tol:
            return
        some = np.sort(self.rng.choice(every, _SAMPLED, replace=False))
        least, most = np.empty((2, len(some)))
        state = self.state
        assert isinstance(state, Levels)

        def work(k: int) -> None:
            part = slice(k * AT_A_TIME, (k + 1) * AT_A_TIME)
            least[part], most[part] = search.gaps(some[part], self.effort, self.weights, state)

        self.team.each(-(-len(some) // AT_A_TIME), work)
        dual_value, error = self.certificate.dual, float(most.std()) / len(some) ** 0.5
        seen, provable = (len(every) * max(0.0, gap) for gap in (float(least.mean()), float(most.mean()) + error))
        self.certificate = Certificate(dual_value + seen, dual_value)
        self.provable = Certificate(dual_value + provable, dual_value).gap
        self.history[-1].update(self.values())

    def try_certificate(self) -> None:
        # not in vain; but when little is left to learn, oracles that take longer have to prove what these do not
        tol, gap = self.options.tol, self.certificate.gap
        if self.provable > tol and READY * tol < gap <= _FALLS * self.put_off:
            self.put_off = gap
            return
        super().try_certificate()

    def visited(self) -> tuple[np.ndarray, float]:
        """Near the optimum of a large problem, not those that had next to no gap; but none is left out twice."""
        every, _ = super().visited()
        if self.search is None or self.certificate.gap > _SETTLED or not self.last_gap.any():
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
        if self.search is None or not self.history or not batches:
            yield from super().visits(batches, tolerance)
            return
        search, weights, state, team = self.search, self.weights, self.state, self.team
        assert isinstance(state, Levels)
        here, updates = Ahead(search, batches[0], batches[0][:0], self.effort, weights, state), None
        team.each(here.n, here.work)
        for samples, following in zip_longest(batches, batches[1:]):
            found = Found(here.making.joined(), here.slack)
            if updates is not None:
                follow(found.layout, updates, here.products, weights.n_columns)
            if following is None:
                updates, gain = self.improve(samples, found, here.batch.gram, tolerance)
                self.apply(here.batch, updates)
            else:
                ahead = Ahead(search, following, samples, self.effort, weights, state)
                with team.meanwhile(ahead.n, ahead.work):
                    updates, gain = self.improve(samples, found, here.batch.gram, tolerance)
                self.apply(here.batch, updates)
                here = ahead
            yield samples, found, gain

    @property
    def aim(self) -> float:
        """The gap to go for: less than is asked for if estimates have turned out too small."""
        return self.options.tol / max(1.0, self.ratio)

    def _cached_is_cheap(self) -> bool:
        """Whether reading the columns of nodes in use is much less work than reading all, and asking the oracle."""
        if not self.history:  # the first label sets of all samples would be the same
            return False
        if isinstance(self.state, Levels) and self.certificate.gap > self.near:
            return False  # far away, label sets for the weights of a moment ago are not what the weights of now need
        read = self.weights.n_columns * (_ORACLE if isinstance(self.state, Levels) else 1) + _OVERHEAD
        return self.weights.apart() * self.state.n_planes < self.problem.n_samples * read

    def search_pass(self) -> None:
        """Label sets for every sample, with the weights as they are; then passes over the variables in use."""
        dual_value = self.certificate.dual
        samples = np.flatnonzero(self.costs > 0)
        slack, parts = 0.0, []
        size = max(_FEW, _ALL_SCORES // self.weights.n_columns)
        for lo in range(0, len(samples), size):
            some = samples[lo : lo + size]
            found = self.propose(some, 0.0)
            slack += self.met(some, found)[0]
            parts.append(found.layout)
        self.estimate(dual_value, slack, np.nan)
        primal_value, dual_value = self.certificate
        gap = primal_value - dual_value
        if gap > self.aim * primal_value:
            layout = parts[0]
            if len(parts) > 1:  # one is large enough to take as long to copy as to make
                layout = layout._make(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            gained = self.cached_passes(samples, layout, gap)
            if isinstance(self.state, Levels) and not self.state.whole:
                gained += self.settle_pass()
            self.certificate = Certificate(primal_value, dual_value + gained)

    def cached_passes(self, samples: np.ndarray, layout: Any, gap: float) -> float:
        """Passes over the cells in use, until these are near their best; returns the gain of the dual."""
        target = self.aim * self.certificate.primal
        tolerance = 0.1 * max(target, 0.3 * gap) / float(self.costs.sum())
        steps = self.steps(samples, layout)
        base = self.problem.loss_weights[layout.column] * (1.0 - 2.0 * layout.own)
        base += self.problem.offsets[layout.column]
        passes = self.used_passes if isinstance(self.state, Levels) else self.focused_passes
        gained = passes(partial(self.cached_pass, steps, samples, base, tolerance), steps, gap)
        self.state.keep(samples, layout)
        return gained

    def focused_passes(self, one: Callable[[np.ndarray], tuple[FloatArray, float]], steps: Steps, gap: float) -> float:
        """Passes over all samples, and between them over those with most of the gap; the gain."""
        target, gained = self.aim * self.certificate.primal, 0.0
        for _ in range(_CACHED):
            order = self.rng.permutation(len(steps.costs))
            gaps, gain = one(order)
            gained += gain
            left = gaps.sum()
            if left <= max(0.8 * target, 0.15 * gap) or gain <= _SLOW * gap:
                break
            order = order[gaps > 0.5 * gaps.mean()]  # most of the gap is in few samples
            for _ in range(_FOCUS):
                gaps, gain = one(self.rng.permutation(order))
                gained += gain
                if gaps.sum() <= 0.3 * left:
                    break
        return gained

    def used_passes(self, one: Callable[[np.ndarray], tuple[FloatArray, float]], steps: Any, gap: float) -> float:
        """Passes over the levels in use; the gain."""
        steps.part = USED
        gained = 0.0
        for _ in range(_UNTOLD):
            gain = one(self.rng.permutation(len(steps.costs)))[1]
            gained += gain
            if gain <= _SLOW * gap:
                break
        return gained

    def settle_pass(self) -> float:
        """Raise the levels of leaves that are not in use, with weights as they are now; the gain.

        Passes over levels in use change the weights for others too: a little for each sample, but for all of them.
        """
        gained = 0.0
        order = self.rng.permutation(np.flatnonzero(self.costs > 0))
        size = self.batch_size()
        for lo in range(0, len(order), size):
            samples = order[lo : lo + size]
            rewards = np.empty((len(samples), self.weights.n_columns))
            self.rewards(samples, rewards)
            layout: Any = self.state.layout(samples, rewards, np.zeros(rewards.shape, self.problem.kind), self.team)
            steps: Any = self.steps(samples, layout)
            steps.part = SETTLE
            batch = self.weights.batch(samples)
            updates, _, gain = steps.run(np.arange(len(samples)), batch.gram, 0.0, 1)
            self.state.keep(samples, layout)
            batch.apply(updates, self.team)
            gained += gain
        return gained

    def rewards(self, samples: np.ndarray, out: FloatArray) -> None:
        """What every column is worth to samples, with the weights as they are; on all threads."""
        scorer = self.weights.scorer(samples)
        scores = np.empty(out.shape, dtype=self.weights.dtype)

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            out[lo:hi] = self.problem.rewards(samples[lo:hi], scores[lo:hi])

        self.team.split(len(samples), work)

    def cached_pass(
        self, steps: Steps, samples: np.ndarray, base: FloatArray, tolerance: float, order: np.ndarray
    ) -> tuple[FloatArray, float]:
        """Block steps over the cells in use of some samples, by position; (gaps as met, gain of the dual)."""
        weights = self.weights
        met, gained = [], 0.0
        for lo in range(0, len(order), _FEW):
            which = order[lo : lo + _FEW]
            steps.score(which, samples, base, weights, self.team)
            batch = weights.batch(samples[which])
            updates, gaps, gain = steps.run(which, batch.gram, tolerance, _SWEEPS)
            batch.apply(updates, self.team)
            met.append(gaps)
            gained += gain
        return np.concatenate(met), gained

    def propose(self, samples: np.ndarray, tolerance: float) -> Found:
        if self.search is not None and isinstance(self.state, Levels):
            making, slack = self.search.shelves(samples, self.effort, self.weights, self.state)
            self.team.each(len(making.parts), making.work)
            return Found(making.joined(), slack)
        problem, n = self.problem, len(samples)
        scorer = self.weights.scorer(samples)
        scores = np.empty((n, self.weights.n_columns), dtype=self.weights.dtype)
        rewards, chosen = np.empty(scores.shape), np.empty(scores.shape, problem.kind)
        slack = np.empty(n)

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            part = slice(lo, hi)
            rewards[part] = problem.rewards(samples[part], scores[part])
            oracle = self.oracles[self.effort]
            if self.renewal is not None and not self.thorough:
                oracle = self.renewal(0)
            chosen[part], value, _ = problem.asked(oracle, rewards[part], **self.remembered(samples[part]))
            slack[part] = value - problem.true_rewards(samples[part], rewards[part])
            self.or_truth(samples[part], chosen[part], slack[part])

        self.team.split(n, work)
        return Found(self.state.layout(samples, rewards, chosen, self.team), slack)

    def or_truth(self, samples: np.ndarray, chosen: npt.NDArray[Any], slack: FloatArray) -> None:
        """The true label sets, where an oracle that does not look long has found worse ones."""
        worse = np.flatnonzero(slack < 0.0)
        true = self.problem.truth.rows(samples[worse])
        chosen[worse] = 0
        chosen[worse[true.owners()], true.indices] = 1
        slack[worse] = 0.0

    def remembered(self, samples: np.ndarray) -> dict[str, Any]:
        """What to tell the oracle beside the rewards of samples."""
        return {} if self.recalled is None else {"memory": self.recalled, "rows": samples.astype(np.int64, copy=False)}

    def steps(self, samples: np.ndarray, layout: Any) -> Steps:
        """Block steps of some samples."""
        costs, norms = self.costs[samples], self.weights.squared_norms[samples]
        return self.state.steps(layout, costs, norms, self.problem.columns.alpha, self.problem.oracle.allow_empty)

    def improve(self, samples: np.ndarray, found: Found, gram: Any, tolerance: float) -> tuple[Updates, float]:
        steps = self.steps(samples, found.layout)
        updates, gaps, gain = steps.run(np.arange(len(samples)), gram, tolerance, SWEEPS)
        self.state.keep(samples, found.layout)
        if self.search is not None:
            self.last_gap[samples] = gaps
        return updates, gain

    def met(self, samples: np.ndarray, found: Found) -> tuple[float, float]:
        # the best sets without the loss are looked for by certificates only, so errors are not known
        slack = self.costs[samples] * found.slack
        if self.search is not None:
            self.last_slack[samples] = slack
        return float(slack.sum()), np.nan

    def mass(self) -> float:
        return float(np.sum(self._losses()))

    def least_mass(self) -> float:
        losses = self._losses()
        return float(np.sum(losses)) - gamma(float(len(losses) + 8)) * float(np.sum(np.abs(losses)))

    def _losses(self) -> FloatArray:
        """What Σ a_iy Δ(y, y_i) is the sum of."""
        return loss_terms(self.state.beta(self.costs), self.problem.loss_weights, self.problem.offsets)

    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        problem, lengths_squared = self.problem, self.weights.squared_norms
        scores = 2.0 * float(np.sqrt(squared_norms).sum())
        constants = 2.0 * float(problem.loss_weights.sum() + np.abs(problem.offsets).sum())
        errors = of_sums(problem.X, lengths_squared, scores, constants, 2.0 * problem.columns.n_columns)
        if _is_forest(problem.above):
            return errors
        return errors + _SEARCHED * (self.lengths * scores + constants)

    def coefficients(self) -> tuple[Updates, FloatArray]:
        alpha = self.problem.columns.alpha
        self.state.settle(self.costs, self.problem.oracle.allow_empty)
        indptr, columns, values = self.state.beta(self.costs)
        return Updates(indptr, columns, alpha[columns] * values), np.zeros(len(alpha))

    def relaxed_run(self, relaxation: SetOracle) -> SetAscent:
        problem = replace(self.problem, oracle=relaxation, answers=self.problem.oracle, quicker=())
        state, mine = _first_state(problem), self.state
        assert isinstance(state, Levels)
        assert isinstance(mine, Levels)
        state.hold(mine.held())
        return SetAscent(self.options, problem, state, self.team, self.weights)


Dual.kinds[LabelSetProblem] = SetAscent


class LeafSearch:
    """What is asked of samples.

    Parameters
    ----------
    problem : LabelSetProblem
    few : DagFew
        Of the columns.

    Attributes
    ----------
    oracles : tuple
        The quickest first; the first one's bounds say little.
    """

    def __init__(self, problem: LabelSetProblem, few: DagFew) -> None:
        self.problem, self.few = problem, few
        rooms: Rooms = {}
        self.oracles: tuple[DagFew | DagCores, ...] = few, *(DagCores(few, *effort, rooms) for effort in _EFFORTS)

    def shelves(self, samples: PtrArray, effort: int, weights: Weights, state: Levels) -> tuple[Making, FloatArray]:
        """Samples with the label sets that one of the oracles finds, ready for steps; and their slacks.

        Both are still to be filled in, by the work of the former.
        """
        slack = np.empty(len(samples))
        limit = _USEFUL if effort == 0 else None

        def made(some: slice) -> list[npt.NDArray[Any]]:
            mine = samples[some]
            rewards = np.empty((len(mine), weights.n_columns), weights.dtype)
            weights.scores(mine, rewards)
            self.problem.add_loss(mine, rewards)
            useful, use_of = self.few.ranked(rewards, limit)
            rising = state.rising(mine, rewards, useful)
            if effort > 0:
                useful = self.few.narrowed(useful, use_of, _USEFUL, rising)
            put, value, _ = self.oracles[effort].found(rewards, useful)
            slack[some] = value - self.problem.true_rewards(mine, rewards)
            put = self._or_truth(mine, put, slack[some])
            return state.part(mine, rewards, rising, put)

        return Making(len(samples), made), slack

    def _or_truth(self, samples: PtrArray, put: Lists, slack: FloatArray) -> Lists:
        """The true label sets, where worse ones were found."""
        worse = np.flatnonzero(slack < 0.0)
        if not len(worse):
            return put
        lists = np.split(put[1], put[0][1:-1])
        for t in worse.tolist():
            leaves = self.few.below.leaf_of[self.problem.truth.row(samples[t])]
            lists[t] = leaves[leaves >= 0]
        slack[worse] = 0.0
        return np.concatenate([[0], np.cumsum([len(one) for one in lists])]), np.concatenate(lists)

    def bounded(self, samples: PtrArray, effort: int, weights: Weights) -> tuple[FloatArray, FloatArray]:
        """What slacks are at least, and at most."""
        rewards, value, bound = self._asked(samples, effort, weights)
        true = self.problem.true_rewards(samples, rewards)
        return value - true, bound - true

    def gaps(
        self, samples: PtrArray, effort: int, weights: Weights, state: Levels
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """The parts of the gap that samples have, C_i max_y r(y) − r·z_i, at least and at most."""
        rewards, value, bound = self._asked(samples, effort, weights)
        held = state.held(samples)
        owners = np.repeat(np.arange(len(samples)), np.diff(held.indptr))
        worth = np.bincount(owners, held.values * rewards[owners, held.columns], minlength=len(samples))
        costs = self.problem.costs[samples]
        return costs * value - worth, costs * bound - worth

    def _asked(self, samples: PtrArray, effort: int, weights: Weights) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rewards, in double precision; what the best sets are worth at least, and at most."""
        rewards = np.empty((len(samples), weights.n_columns))
        weights.scores(samples, rewards)
        self.problem.add_loss(samples, rewards)
        check_finite(rewards, np.abs(rewards).sum(axis=1))
        useful, use_of = self.few.ranked(rewards)
        none = np.zeros(len(samples) + 1, np.int64), np.empty(0, np.int32)
        _, value, bound = self.oracles[effort].found(rewards, useful, self.few.narrowed(useful, use_of, _USEFUL, none))
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
                    true = self.few.below.leaf_of[self.problem.truth.row(samples[t])]
                    mine = leaves[indptr[t - some.start] : indptr[t - some.start + 1]]
                    wrong[t] = not np.array_equal(np.sort(true[true >= 0]), mine)

        team.split(len(parts), work)
        return float(wrong.mean()) * self.problem.n_samples if len(wrong) else 0.0


class Ahead:
    """A batch on the way to its steps, in parts that threads share: its lists, then its samples, some at a time.

    Parameters
    ----------
    search : LeafSearch
    samples, before : arrays
        Of the batch, and of the one before it.
    effort, weights, state : see :meth:`LeafSearch.shelves`

    Attributes
    ----------
    n : int
        Number of parts.
    making, slack : see :meth:`LeafSearch.shelves`
    batch : object
        See :meth:`nhsvm.engine.storage.table.SparseWeights.batch`.
    products : array
        Inner products of its samples with those of the batch before.
    """

    batch: Any
    products: npt.NDArray[Any]

    def __init__(
        self, search: LeafSearch, samples: PtrArray, before: PtrArray, effort: int, weights: Weights, state: Levels
    ) -> None:
        self.weights, self.samples, self.before = weights, samples, before
        self.making, self.slack = search.shelves(samples, effort, weights, state)
        self.n = 1 + len(self.making.parts)

    def work(self, k: int) -> None:
        """One of the parts."""
        if k > 0:
            self.making.work(k - 1)
            return
        self.batch = self.weights.batch(self.samples)
        both, n = np.concatenate([self.before, self.samples]), len(self.before)
        self.products = self.weights.batch(both).gram[n:, :n]
