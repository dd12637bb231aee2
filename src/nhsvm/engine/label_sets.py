"""The dual method for samples with several labels: the same passes, with node marginals as dual variables.

:class:`TreeAscent` has :mod:`nhsvm.engine.dual.marginals`, :class:`DagAscent` :mod:`nhsvm.engine.dual.levels`;
:mod:`nhsvm.engine.leaf_search` has a third, for large DAGs. Where reading the weights of a working set is much cheaper
than reading all, and on DAGs, where the oracle takes most of the time, passes without the oracle come in between.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.engine.ascent import SWEEPS, Options
from nhsvm.engine.certificate import gamma, of_sums
from nhsvm.engine.dual.block import Steps, loss_terms
from nhsvm.engine.dual.level_step import SETTLE, USED
from nhsvm.engine.dual.levels import Levels
from nhsvm.engine.dual.marginals import Marginals
from nhsvm.engine.problem import LabelSetProblem
from nhsvm.engine.protocols import SetBlock, Weights
from nhsvm.engine.samples import Updates
from nhsvm.engine.set_certificate import READY, SetCertificate
from nhsvm.hierarchy.graph import Ragged
from nhsvm.objective import Certificate
from nhsvm.oracles.protocol import Oracle
from nhsvm.threads import Team
from nhsvm.typing import FloatArray

_ALL_SCORES = 2**23  # scores (samples × columns) in a batch of a search
_ORACLE = 100  # time of a DAG's oracle, in units of reading the weights of all columns once
_OVERHEAD = 100  # time that a batch spends on a sample beside its columns, in units of one column
_NEAR = 0.35  # gap from which on all samples can be asked about with the same weights, on a DAG
_NEARER = 0.05  # the same where nothing is remembered
_MOST = 50  # working-set passes between two that ask the oracle, at most
_UNTOLD = 4  # the same on a DAG, where steps do not tell what is left to gain; more lower the primal no further
_FOCUS = 5  # passes over the samples with most of the gap, between two over all
_SLOW = 0.005  # of the gap: a pass that gains less is the last
_FEW = 64  # samples of a batch in such a pass
_SWEEPS = 2  # over them
_SEARCHED = 4e-12  # of all rewards: how near to each other a DAG's oracle takes two label sets for equal, and rounding


def is_forest(above: Ragged) -> bool:
    """Whether no column has two next above."""
    return bool((above.sizes() <= 1).all())


class Found(NamedTuple):
    """What is known of a batch before its steps."""

    layout: Any  # a Layout
    slack: FloatArray


class SetAscent(SetCertificate):
    """Label sets: the dual variables are node marginals, kept in one way on trees and in another on DAGs.

    Parameters
    ----------
    options, problem, team
    state : dual variables, optional
        To go on from.
    weights : Weights, optional
        Zero, unless they are those that ``state`` makes.

    Attributes
    ----------
    recalled : object, optional
        What the oracle knows of every sample from the last time, if it can make use of that.
    near : float
        Gap from which on all samples can be asked about with the same weights.
    """

    state: SetBlock

    def __init__(
        self, options: Options, problem: LabelSetProblem, state: Any, team: Team, weights: Weights | None = None
    ) -> None:
        self.problem = problem
        self._started = state is not None
        made = self.first_state(problem) if state is None else state
        super().__init__(options, problem.weights() if weights is None else weights, made, problem.costs, team)
        self.recalled = memory_of(problem)
        self.renewal = None if self.recalled is None else problem.oracle.renewal
        self.near = _NEARER if self.renewal is None else _NEAR
        self.oracles = problem.oracle.stages
        self.exact_oracle = state is not None  # the oracle itself is asked, from now on
        self.certificate = Certificate(float(problem.costs @ problem.first_slacks()), 0.0)

    @staticmethod
    @abstractmethod
    def first_state(problem: LabelSetProblem) -> SetBlock:
        """The dual variables of U = 0."""

    @abstractmethod
    def working_set_is_cheap(self) -> bool:
        """Whether reading the columns of working sets is much less work than reading all, and asking the oracle."""

    @abstractmethod
    def improve_working_set(
        self, one: Callable[[np.ndarray], tuple[FloatArray, float]], steps: Steps, gap: float
    ) -> float:
        """Working-set passes, each of which is ``one(order)``; the gain."""

    @property
    def started(self) -> bool:
        return self._started

    def one_pass(self) -> None:
        self.exact_oracle |= self.certificate.gap <= self.near
        if (
            self.history and self.working_set_is_cheap()
        ):  # before, the first label sets of all samples would be the same
            self.search_pass()
        else:
            self.batch_pass()

    @property
    def aim(self) -> float:
        """The gap to go for: less than is asked for if estimates have turned out too small."""
        return self.options.tol / max(1.0, self.ratio)

    def search_pass(self) -> None:
        """Label sets for every sample, with the weights as they are; then working-set passes."""
        dual_value = self.certificate.dual
        samples = np.flatnonzero(self.costs > 0)
        slack, parts = 0.0, []
        size = max(_FEW, _ALL_SCORES // self.weights.n_columns)
        for lo in range(0, len(samples), size):
            some = samples[lo : lo + size]
            found = self.propose(some, 0.0)
            slack += self.observed(some, found)[0]
            parts.append(found.layout)
        self.estimate(dual_value, slack, np.nan)
        primal_value, dual_value = self.certificate
        gap = primal_value - dual_value
        if gap > self.aim * primal_value:
            layout = parts[0]
            if len(parts) > 1:  # one is large enough to take as long to copy as to make
                layout = layout._make(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            gained = self.working_set_passes(samples, layout, gap)
            self.certificate = Certificate(primal_value, dual_value + gained)

    def working_set_passes(self, samples: np.ndarray, layout: Any, gap: float) -> float:
        """Working-set passes, until these are near their best; returns the gain of the dual."""
        target = self.aim * self.certificate.primal
        tolerance = 0.1 * max(target, 0.3 * gap) / float(self.costs.sum())
        steps = self.steps(samples, layout)
        base = self.problem.loss_weights[layout.column] * (1.0 - 2.0 * layout.own)
        base += self.problem.offsets[layout.column]
        gained = self.improve_working_set(partial(self.working_set_pass, steps, samples, base, tolerance), steps, gap)
        self.state.keep(samples, layout)
        return gained

    def rewards(self, samples: np.ndarray, out: FloatArray) -> None:
        """What every column is worth to samples, with the weights as they are; on all threads."""
        scorer = self.weights.scorer(samples)
        scores = np.empty(out.shape, dtype=self.weights.dtype)

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            out[lo:hi] = self.problem.rewards(samples[lo:hi], scores[lo:hi])

        self.team.split(len(samples), work)

    def working_set_pass(
        self, steps: Steps, samples: np.ndarray, base: FloatArray, tolerance: float, order: np.ndarray
    ) -> tuple[FloatArray, float]:
        """Block steps over the working set of some samples, by position; (gaps as met, gain of the dual)."""
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
        problem, n = self.problem, len(samples)
        scorer = self.weights.scorer(samples)
        scores = np.empty((n, self.weights.n_columns), dtype=self.weights.dtype)
        rewards = np.empty(scores.shape)
        chosen: npt.NDArray[Any] = np.empty(scores.shape, problem.oracle.dtype)
        slack = np.empty(n)

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            part = slice(lo, hi)
            rewards[part] = problem.rewards(samples[part], scores[part])
            oracle = self.oracles[self.stage]
            if self.renewal is not None and not self.exact_oracle:
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
        return Steps(layout, costs, norms, self.problem.columns.alpha, self.problem.oracle.allow_empty)

    def improve(self, samples: np.ndarray, found: Found, gram: Any, tolerance: float) -> tuple[Updates, float]:
        updates, _, gain = self.step(samples, found, gram, tolerance)
        return updates, gain

    def step(self, samples: np.ndarray, found: Found, gram: Any, tolerance: float) -> tuple[Updates, FloatArray, float]:
        """Block steps of a batch: the change of U, the gaps that were met, and the gain of the dual."""
        updates, gaps, gain = self.steps(samples, found.layout).run(np.arange(len(samples)), gram, tolerance, SWEEPS)
        self.state.keep(samples, found.layout)
        return updates, gaps, gain

    def observed(self, samples: np.ndarray, found: Found) -> tuple[float, float]:
        # the best sets without the loss are looked for by certificates only, so errors are not known
        return float((self.costs[samples] * found.slack).sum()), np.nan

    def mass(self) -> float:
        return float(np.sum(self._losses()))

    def least_mass(self) -> float:
        losses = self._losses()
        return float(np.sum(losses)) - gamma(float(len(losses) + 8)) * float(np.sum(np.abs(losses)))

    def _losses(self) -> FloatArray:
        """What Σ a_iy Δ(y, y_i) is the sum of."""
        return loss_terms(self.state.beta(self.costs), self.problem.loss_weights, self.problem.offsets)

    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        problem, (scores, constants) = self.problem, self.sizes(squared_norms)
        return of_sums(problem.X, self.weights.squared_norms, scores, constants, 2.0 * problem.columns.n_columns)

    def sizes(self, squared_norms: FloatArray) -> tuple[float, float]:
        """Σ ‖U_n‖ of the columns whose scores a slack adds up, and Σ |constants|."""
        problem = self.problem
        if problem.columns.n_leaves == 1 and not problem.oracle.allow_empty:
            return 0.0, 0.0  # there is one label set, and nothing to compare it with
        scores = 2.0 * float(np.sqrt(squared_norms).sum())
        return scores, 2.0 * float(problem.loss_weights.sum() + np.abs(problem.offsets).sum())

    def coefficients(self) -> tuple[Updates, FloatArray]:
        alpha = self.problem.columns.alpha
        self.state.settle(self.costs, self.problem.oracle.allow_empty)
        indptr, columns, values = self.state.beta(self.costs)
        return Updates(indptr, columns, alpha[columns] * values), np.zeros(len(alpha))


class TreeAscent(SetAscent):
    """On a tree: the oracle is a dynamic programme, and steps tell what is left to gain."""

    state: Marginals

    @staticmethod
    def first_state(problem: LabelSetProblem) -> Marginals:
        return Marginals(problem.truth, problem.costs, problem.above)

    def working_set_is_cheap(self) -> bool:
        read = self.weights.n_columns + _OVERHEAD
        return self.weights.column_cost() * self.state.n_planes < self.problem.n_samples * read

    def improve_working_set(
        self, one: Callable[[np.ndarray], tuple[FloatArray, float]], steps: Steps, gap: float
    ) -> float:
        """Passes over all samples, and between them over those with most of the gap; the gain."""
        target, gained = self.aim * self.certificate.primal, 0.0
        for _ in range(_MOST):
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


class DagAscent(SetAscent):
    """On a DAG: the oracle takes most of the time, and steps do not tell what is left to gain."""

    state: Levels

    def __init__(
        self, options: Options, problem: LabelSetProblem, state: Any, team: Team, weights: Weights | None = None
    ) -> None:
        super().__init__(options, problem, state, team, weights)
        self.ratio = 1.0  # steps change the weights, and so what was observed; where it is good enough, none are taken
        if self.recalled is not None:
            self.relaxation = problem.oracle.relaxation()
        if self.relaxation is not None:
            self.ratio = 1.0 / READY  # a certificate before a relaxation is worth a try would be in vain

    @staticmethod
    def first_state(problem: LabelSetProblem) -> Levels:
        return Levels(
            problem.truth, problem.costs, problem.columns, problem.above,
            allow_empty=problem.oracle.allow_empty, whole=problem.answers is not None,
        )  # fmt: skip

    def working_set_is_cheap(self) -> bool:
        if self.certificate.gap > self.near:
            return False  # far away, label sets for the weights of a moment ago are not what the weights of now need
        read = self.weights.n_columns * _ORACLE + _OVERHEAD
        return self.weights.column_cost() * self.state.n_planes < self.problem.n_samples * read

    def improve_working_set(
        self, one: Callable[[np.ndarray], tuple[FloatArray, float]], steps: Any, gap: float
    ) -> float:
        """Working-set passes; the gain."""
        steps.part = USED
        gained = 0.0
        for _ in range(_UNTOLD):
            gain = one(self.rng.permutation(len(steps.costs)))[1]
            gained += gain
            if gain <= _SLOW * gap:
                break
        return gained

    def working_set_passes(self, samples: np.ndarray, layout: Any, gap: float) -> float:
        gained = super().working_set_passes(samples, layout, gap)
        return gained if self.state.whole else gained + self.settle_pass()

    def settle_pass(self) -> float:
        """Raise the levels of leaves that are not in use, with weights as they are now; the gain.

        Working-set passes change the weights for others too: a little for each sample, but for all of them.
        """
        gained = 0.0
        order = self.rng.permutation(np.flatnonzero(self.costs > 0))
        size = self.batch_size()
        for lo in range(0, len(order), size):
            samples = order[lo : lo + size]
            rewards = np.empty((len(samples), self.weights.n_columns))
            self.rewards(samples, rewards)
            none: npt.NDArray[Any] = np.zeros(rewards.shape, self.problem.oracle.dtype)
            layout: Any = self.state.layout(samples, rewards, none, self.team)
            steps: Any = self.steps(samples, layout)
            steps.part = SETTLE
            batch = self.weights.batch(samples)
            updates, _, gain = steps.run(np.arange(len(samples)), batch.gram, 0.0, 1)
            self.state.keep(samples, layout)
            batch.apply(updates, self.team)
            gained += gain
        return gained

    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        errors = super().slack_errors(squared_norms)
        if is_forest(self.problem.above):  # of a relaxation: its oracle is no search
            return errors
        scores, constants = self.sizes(squared_norms)
        return errors + _SEARCHED * (self.lengths * scores + constants)

    def relaxed_run(self, relaxation: Oracle) -> DagAscent:
        problem = replace(self.problem, oracle=relaxation, answers=self.problem.oracle)
        state = self.first_state(problem)
        state.assign(self.state.held())
        return DagAscent(self.options, problem, state, self.team, self.weights)


def memory_of(problem: LabelSetProblem) -> Any:
    """Room for what the oracle remembers of samples; None if it remembers nothing."""
    return problem.oracle.memory(problem.n_samples)
