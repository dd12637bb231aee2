"""The dual method for samples with several labels: the same passes, with node marginals as dual variables.

:class:`TreeAscent` has :mod:`nhsvm.engine.dual.marginals`, :class:`DagAscent` :mod:`nhsvm.engine.dual.levels`;
:mod:`nhsvm.engine.leaf_search` has a third, for large DAGs. Where reading the weights of a working set is much cheaper
than reading all, and on DAGs, where the oracle takes most of the time, passes without the oracle come in between.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Generic

import numpy as np

from nhsvm.engine.ascent import Coefficients, Dual, Focus, Mass, Part, Visit, focused_passes
from nhsvm.engine.certificate import gamma, of_sums
from nhsvm.engine.dual.block import Layout, Steps, loss_terms
from nhsvm.engine.dual.level_step import SETTLE, USED
from nhsvm.engine.dual.levels import Levels
from nhsvm.engine.dual.marginals import Marginals
from nhsvm.engine.problem import LabelSetProblem
from nhsvm.engine.samples import Updates
from nhsvm.engine.set_certificate import S, SetCertificate, SetFit, SetFound, SetTuning
from nhsvm.objective import Certificate
from nhsvm.threads import Team
from nhsvm.typing import Array, FloatArray, PtrArray


class SetAscent(SetCertificate[S], Generic[S]):
    """Label sets: the dual variables are node marginals, kept in one way on trees and in another on DAGs."""

    @classmethod
    def first_fit(cls, options: Dual, problem: LabelSetProblem, dual: S | None) -> SetFit[S]:
        given = dual is not None
        return SetFit(
            cls.first_dual(problem) if dual is None else dual,
            problem.weights(),
            np.random.default_rng(options.seed),
            Certificate(float(problem.costs @ problem.first_slacks()), 0.0),
            started=given,
            memory=problem.oracle.memory(problem.n_samples),
            exact=given,
        )

    @staticmethod
    @abstractmethod
    def first_dual(problem: LabelSetProblem) -> S:
        """The dual variables of U = 0."""

    # -- passes that query the oracle ----------------------------------------------------------------------------------

    @property
    def near(self) -> float:
        """Gap from which on all samples can be queried with the same weights."""
        return self.tuning.nearer if self.fit.memory is None else self.tuning.near

    @property
    def target(self) -> float:
        """The gap to go for: less than the tolerance if estimates have turned out too small."""
        return self.tol / max(1.0, self.fit.ratio)

    def one_pass(self) -> None:
        self.fit.exact |= self.fit.certificate.gap <= self.near
        if self.fit.history and self.working_set_is_cheap():  # before, the first label sets of all would be the same
            self.search_pass()
        else:
            self.batch_pass()

    def working_set_is_cheap(self) -> bool:
        """Whether reading the columns of working sets is much less work than reading all, and querying the oracle."""
        if self.fit.certificate.gap > self.near and not self.tuning.measure_gap:
            return False  # far away, label sets for the weights of a moment ago are not what the weights of now need
        read = self.weights.n_columns * self.tuning.oracle + self.tuning.overhead
        return self.weights.column_cost() * self.dual.n_planes < self.problem.n_samples * read

    def rewards(self, samples: PtrArray) -> FloatArray:
        """What every column is worth to samples, with the weights as they are; on all threads."""
        scorer = self.weights.scorer(samples)
        scores = np.empty((len(samples), self.weights.n_columns), dtype=self.weights.dtype)
        rewards = np.empty(scores.shape)

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            rewards[lo:hi] = scores[lo:hi]
            self.problem.add_loss(samples[lo:hi], rewards[lo:hi])

        self.team.split(len(samples), work)
        return rewards

    def propose(self, samples: PtrArray, tolerance: float) -> SetFound:
        problem, fit, rewards = self.problem, self.fit, self.rewards(samples)
        by_memory = fit.memory is not None and not fit.exact
        oracle = problem.oracle.renewal(0) if by_memory else self.oracles[fit.stage]
        chosen: Array = np.empty(rewards.shape, problem.oracle.dtype)
        slack = np.empty(len(samples))

        def work(lo: int, hi: int) -> None:
            part = slice(lo, hi)
            chosen[part], value, _ = problem.solved(oracle, rewards[part], fit.memory, samples[part])
            slack[part] = value - problem.true_sums(samples[part], rewards[part])

        self.team.split(len(samples), work)
        worse = np.flatnonzero(slack < 0.0)  # a quick oracle has found worse sets than the true ones
        true = problem.truth.rows(samples[worse])
        chosen[worse] = 0
        chosen[worse[true.owners()], true.indices] = 1
        slack[worse] = 0.0
        return SetFound(self.dual.layout(samples, rewards, chosen, self.team), slack)

    def steps(self, samples: PtrArray, layout: Layout) -> Steps:
        """Block steps of some samples."""
        costs, norms = self.costs[samples], self.weights.squared_norms[samples]
        return Steps(layout, costs, norms, self.problem.columns.alpha, self.problem.oracle.allow_empty)

    def improve(self, samples: PtrArray, found: SetFound, gram: Array, tolerance: float) -> tuple[Updates, float]:
        steps, every = self.steps(samples, found.layout), np.arange(len(samples))
        updates, gaps, gain = steps.run(every, gram, tolerance, self.tuning.sweeps)
        self.dual.keep(samples, found.layout)
        self.note_gaps(samples, gaps)
        return updates, gain

    def note_gaps(self, samples: PtrArray, gaps: FloatArray) -> None:
        """Keep the gaps that the steps of a batch have observed, if they are needed."""

    def observed(self, samples: PtrArray, found: SetFound) -> tuple[float, float]:
        # the best sets without the loss are found by certificates only, so errors are not known
        return float((self.costs[samples] * found.slack).sum()), np.nan

    # -- passes over the working set -----------------------------------------------------------------------------------

    def search_pass(self) -> None:
        """Label sets for every sample, with the weights as they are; then working-set passes."""
        samples, layouts = np.flatnonzero(self.costs > 0), list[Layout]()
        size = max(self.tuning.few, self.tuning.all_scores // self.weights.n_columns)

        def visits() -> Iterator[Visit[SetFound]]:
            for lo in range(0, len(samples), size):
                found = self.propose(samples[lo : lo + size], 0.0)
                layouts.append(found.layout)
                yield samples[lo : lo + size], found, 0.0

        self.estimate(visits())
        primal_value, dual_value = self.fit.certificate
        gap = primal_value - dual_value
        if gap > self.target * primal_value:
            layout = layouts[0]
            if len(layouts) > 1:  # one is large enough to take as long to copy as to make
                layout = type(layout)(*(np.concatenate(arrays) for arrays in zip(*layouts, strict=True)))
            gained = self.working_set_passes(samples, layout, gap)
            self.fit.certificate = Certificate(primal_value, dual_value + gained)

    def working_set_passes(self, samples: PtrArray, layout: Layout, gap: float) -> float:
        """Working-set passes, until these are near their best; returns the gain of the dual."""
        how, target = self.tuning, self.target * self.fit.certificate.primal
        tolerance = how.finer * max(target, how.share * gap) / float(self.costs.sum())
        steps = self.steps(samples, layout)
        steps.part = USED
        base = self.problem.loss_weights[layout.column] * (1.0 - 2.0 * layout.own)
        base += self.problem.offsets[layout.column]

        def visit(parts: list[Part]) -> tuple[list[Part], list[FloatArray], float]:
            order = self.fit.rng.permutation(parts[0][0])
            gaps, gain = self.working_set_pass(steps, samples, base, tolerance, order)
            return [(order, None)], [gaps], gain

        enough = max(how.enough_of_target * target, how.enough * gap) if how.measure_gap else -np.inf
        focus = Focus(enough, how.passes, how.focused, left=how.left, slow=how.slow * gap)
        gained = focused_passes(visit, lambda: [(np.arange(len(samples)), None)], focus)
        self.dual.keep(samples, layout)
        return gained

    def working_set_pass(
        self, steps: Steps, samples: PtrArray, base: FloatArray, tolerance: float, order: PtrArray
    ) -> tuple[FloatArray, float]:
        """Block steps over the working set of some samples, by position; (gaps observed, gain of the dual)."""
        observed, gained = [], 0.0
        for lo in range(0, len(order), self.tuning.few):
            which = order[lo : lo + self.tuning.few]
            steps.score(which, samples, base, self.weights, self.team)
            batch = self.weights.batch(samples[which])
            updates, gaps, gain = steps.run(which, batch.gram, tolerance, self.tuning.few_sweeps)
            batch.apply(updates, self.team)
            observed.append(gaps)
            gained += gain
        return np.concatenate(observed), gained

    # -- certificates --------------------------------------------------------------------------------------------------

    def mass(self) -> float:
        return self.mass_of(self.dual.beta(self.costs)).value

    def mass_of(self, beta: Updates) -> Mass:
        """Σ a_iy Δ(y, y_i) of these β_in."""
        losses = loss_terms(beta, self.problem.loss_weights, self.problem.offsets)
        total = float(np.sum(losses))
        return Mass(total, total - gamma(float(len(losses) + 8)) * float(np.sum(np.abs(losses))))

    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        problem, (scores, constants) = self.problem, self.sizes(squared_norms)
        errors = of_sums(problem.X, self.weights.squared_norms, scores, constants, 2.0 * problem.columns.n_columns)
        return errors + problem.oracle.tolerance * (self.lengths * scores + constants)

    def sizes(self, squared_norms: FloatArray) -> tuple[float, float]:
        """Σ ‖U_n‖ of the columns whose scores a slack adds up, and Σ |constants|."""
        problem = self.problem
        if problem.columns.n_leaves == 1 and not problem.oracle.allow_empty:
            return 0.0, 0.0  # there is one label set, and nothing to compare it with
        scores = 2.0 * float(np.sqrt(squared_norms).sum())
        return scores, 2.0 * float(problem.loss_weights.sum() + np.abs(problem.offsets).sum())

    def coefficients(self) -> Coefficients:
        alpha = self.problem.columns.alpha
        self.dual.settle(self.costs, self.problem.oracle.allow_empty)
        beta = self.dual.beta(self.costs)
        updates = Updates(beta.indptr, beta.columns, alpha[beta.columns] * beta.values)
        return Coefficients(updates, np.zeros(len(alpha)), self.mass_of(beta))


class TreeAscent(SetAscent[Marginals]):
    """Where no column has two next above, on a tree as a rule: steps measure what is left to gain."""

    tuning: SetTuning = SetTuning(oracle=1, passes=50, focused=5, measure_gap=True)

    @staticmethod
    def first_dual(problem: LabelSetProblem) -> Marginals:
        return Marginals(problem.truth, problem.costs, problem.above)


class DagAscent(SetAscent[Levels]):
    """On a DAG: the oracle takes most of the time, and steps do not measure what is left to gain."""

    def __init__(self, options: Dual, problem: LabelSetProblem, fit: SetFit[Levels], team: Team) -> None:
        super().__init__(options, problem, fit, team)
        if fit.memory is not None:
            self.relaxation = problem.oracle.relaxation()
        # steps change the weights, and so what was observed; where it is good enough, none are taken. A certificate
        # before a relaxation is worth a try would gain nothing
        if not fit.history:
            fit.ratio = 1.0 if self.relaxation is None else 1.0 / self.tuning.ready

    @staticmethod
    def first_dual(problem: LabelSetProblem) -> Levels:
        return Levels(
            problem.truth, problem.costs, problem.columns, problem.above,
            allow_empty=problem.oracle.allow_empty, whole=problem.answers is not None,
        )  # fmt: skip

    def working_set_passes(self, samples: PtrArray, layout: Layout, gap: float) -> float:
        gained = super().working_set_passes(samples, layout, gap)
        return gained if self.dual.whole else gained + self.settle_pass()

    def settle_pass(self) -> float:
        """Raise the levels of leaves that are not in use, with weights as they are now; the gain.

        Working-set passes change the weights for others too: a little for each sample, but for all of them.
        """
        gained = 0.0
        order = self.fit.rng.permutation(np.flatnonzero(self.costs > 0))
        size = self.batch_size()
        for lo in range(0, len(order), size):
            samples = order[lo : lo + size]
            rewards = self.rewards(samples)
            none: Array = np.zeros(rewards.shape, self.problem.oracle.dtype)
            layout = self.dual.layout(samples, rewards, none, self.team)
            steps = self.steps(samples, layout)
            steps.part = SETTLE
            batch = self.weights.batch(samples)
            updates, _, gain = steps.run(np.arange(len(samples)), batch.gram, 0.0, 1)
            self.dual.keep(samples, layout)
            batch.apply(updates, self.team)
            gained += gain
        return gained

    def relaxed_run(self) -> DagAscent:
        assert self.relaxation is not None
        problem = replace(self.problem, oracle=self.relaxation, answers=self.problem.oracle)
        dual = self.first_dual(problem)
        dual.assign(self.dual.held())
        rng = np.random.default_rng(self.options.seed)
        fit = SetFit(dual, self.weights, rng, self.fit.certificate, started=True)
        return DagAscent(self.options, problem, fit, self.team)
