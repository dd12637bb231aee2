"""Label sets for samples on a large DAG, of which nothing is remembered: by the leaves that could be of use.

All that is done beyond scores and one look at every node depends on the number of these leaves, so nothing here makes a
table of label sets, and rewards are looked at while they are still near: some samples at a time go all the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.hierarchy.graph import FloatArray, PtrArray
from nhsvm.oracles.dag.candidate_search import CandidateSearch, Rooms
from nhsvm.oracles.dag.candidates import LeafCandidates, Lists
from nhsvm.oracles.protocol import check_finite
from nhsvm.solvers._levels import Levels, Making
from nhsvm.solvers._memory import Weights
from nhsvm.solvers._set_problem import SetProblem
from nhsvm.threads import Team

# budget and precision of searches with bounds, and whether they branch
_EFFORTS = (5_000, 1e-3, False), (50_000, 1e-4, False), (700_000, 1e-6, True)
_USEFUL = 64  # leaves that a sample may gain in a visit far away, where all leaves are worth a bit
_COUNTED = 32  # of so many samples, one is asked whether its label set is right
_AT_A_TIME = 16  # of these


class LeafSearch:
    """What is asked of samples.

    Parameters
    ----------
    problem : SetProblem
    few : LeafCandidates
        Of the columns.

    Attributes
    ----------
    oracles : tuple
        The quickest first; the first one's bounds say little.
    """

    def __init__(self, problem: SetProblem, few: LeafCandidates) -> None:
        self.problem, self.few = problem, few
        rooms: Rooms = {}
        self.oracles: tuple[LeafCandidates | CandidateSearch, ...] = (
            few,
            *(CandidateSearch(few, *effort, rooms) for effort in _EFFORTS),
        )

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
            leaves = self.few.graph.leaf_of[self.problem.truth.row(samples[t])]
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
                    true = self.few.graph.leaf_of[self.problem.truth.row(samples[t])]
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
        See :meth:`nhsvm.solvers._sparse.SparseWeights.batch`.
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
