"""Single labels: the dual variables of a sample are its *planes*, wrong labels with a weight.

There are two kinds of rounds, and the one that reads less memory is taken: the batch pass of
:mod:`nhsvm.engine.ascent`, or a *search pass, then working-set passes*. In these the oracle adds violating labels for
all samples, on all threads; then samples take block steps over the planes they have, their *working set*, one after the
other, each reading and changing only the weights of its planes.

Weights in rows of any length have no quick way to a single weight. There, working-set passes follow a batch pass: the
addresses of the weights that they need are found once, for as many samples as memory has room for. In the first pass,
whose early steps are soon out of date, working-set passes also come in between, and labels are chosen by the weights
that are quick to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
import scipy.sparse as sp

from nhsvm.engine.ascent import (
    KINDS,
    Ascent,
    Coefficients,
    Dual,
    FitState,
    Focus,
    Mass,
    Part,
    PassTuning,
    Visit,
    focused_passes,
)
from nhsvm.engine.dual.block import Paths, Rounds
from nhsvm.engine.dual.planes import Batch, Planes
from nhsvm.engine.end_game import END_GAME, EndGame, expected, play
from nhsvm.engine.problem import SingleLabelProblem
from nhsvm.engine.samples import Updates
from nhsvm.engine.storage.addresses import KEPT
from nhsvm.objective import Certificate
from nhsvm.oracles.leaves import Proposals
from nhsvm.threads import Team
from nhsvm.typing import Array, FloatArray, PtrArray


@dataclass(frozen=True)
class PlaneTuning(PassTuning):
    """Constants of single labels; set by trial, without a record."""

    first_batch: int = 64
    largest_batch: int = 320
    new: int = 32  # labels that a visit may add to those of a sample
    few: int = 8  # the same in a pass that is followed by many working-set passes
    scores: int = 2**18  # scores (samples × columns) in one chunk of a search pass
    chunk: tuple[int, int] = (64, 4096)  # samples in such a chunk, at least and at most
    passes: int = 200  # working-set passes between two search passes, at most
    visits: int = 2**18  # of samples in one call of a kernel, about; an interrupt waits for it to end
    passes_in_parts: int = 3  # the same where addresses have to be found; after the first pass one
    focused: int = 3  # passes over the samples with most of the gap, between two over all
    enough: float = 0.25  # of the gap that the search pass observes: no more need be left by working-set passes
    enough_of_tolerance: float = 0.8  # nor less than so much of the gap to reach
    left: float = 0.2  # of the gap that the first working-set pass in parts observes: enough
    finer: float = 0.1  # violations that do not matter in working-set passes make up so much of
    share: float = 0.3  # this share of the gap that there is, or of the gap to reach
    share_in_parts: float = 0.03  # the same where addresses have to be found
    turns: int = KEPT  # parts of the first pass with addresses; after each of them a working-set pass so far
    end: EndGame = END_GAME
    settled: float = 0.08  # of the costs: gap over the working set that the first pass leaves, as more is yet to come
    rough: float = 0.1  # a fit is rough if nothing is to be proved and a gap of so much, or more, will do [081],
    many: int = 8  # and if there are so many samples a leaf: fewer need most of the labels that it leaves out


ROUGH = PlaneTuning(new=6, few=6, first_batch=128, sweeps=3)
"""For a rough fit: labels that matter to it are among the first few of a visit [081]."""


class PlanesAscent(Ascent[SingleLabelProblem, Planes, Proposals]):
    """A run on single labels."""

    tuning: PlaneTuning = PlaneTuning()

    def __init__(self, options: Dual, problem: SingleLabelProblem, fit: FitState[Planes], team: Team) -> None:
        super().__init__(options, problem, fit, team)
        if self.rough:
            self.tuning = ROUGH
        self.kept: list[Part] = []  # whose addresses the first pass has found; valid until rows are made anew
        self.settled = False  # the last working-set pass over these, in the first pass, has observed little

    @classmethod
    def first_fit(cls, options: Dual, problem: SingleLabelProblem, dual: Planes | None) -> FitState[Planes]:
        planes = Planes(problem.n_samples) if dual is None else dual
        first = Certificate(float(problem.costs.sum()), 0.0)
        return FitState(
            planes, problem.weights(), np.random.default_rng(options.seed), first, started=planes.n_planes > 0
        )

    @property
    def rough(self) -> bool:
        """Whether the fit may end far from the optimum, where a few labels a visit are enough."""
        how, problem = self.tuning, self.problem
        many = problem.n_samples >= how.many * problem.columns.n_leaves
        return self.options.rough(how.rough) and many and not self.weights.needs_addresses

    @property
    def opening(self) -> bool:
        """Whether this is the first pass of all, with weights in rows: what is found is soon out of date."""
        return bool(self.weights.needs_addresses) and not self.fit.started and not self.fit.history

    @property
    def paths(self) -> Paths:
        """Of the columns as they are now; weights α may be learned on the way."""
        return Paths.of(self.problem.columns, unscaled=not self.problem.oracle.normalized)

    def batch_of(self, samples: PtrArray) -> Batch:
        """What steps need to know of some samples."""
        problem = self.problem
        return Batch(samples, problem.leaves[samples], problem.costs[samples], self.weights.squared_norms[samples])

    # -- passes over all samples ---------------------------------------------------------------------------------------

    def one_pass(self) -> None:
        end = self.tuning.end
        self.fit.spent += len(self.costs) * (end.visit + end.score * self.features * self.weights.n_columns)
        if self.weights.working_set_is_cheap(self.dual, self.problem.columns):
            self.search_pass()
            if self.fit.certificate.gap > self.tol:
                self.working_set_passes()
        else:
            self.batch_pass()
            if self.weights.needs_addresses and self.fit.certificate.gap > self.tol:
                self.passes_in_parts()

    def visits(self, batches: list[PtrArray], tolerance: float) -> Iterator[Visit[Proposals]]:
        """In the first pass, where addresses have to be found, also working-set passes so far."""
        since, turns = 0, self.tuning.turns
        for k, (samples, found, gain) in enumerate(super().visits(batches, tolerance), 1):
            if self.opening and turns * k // len(batches) > turns * (k - 1) // len(batches):
                some = np.concatenate(batches[since:k])
                self.kept += islice(self.addresses(some), 1)  # of as many samples as have room at a time
                since = k
                if k < len(batches):
                    gain += self.revisit()
            yield samples, found, gain

    def search_pass(self) -> None:
        """New planes for every sample, with the weights as they are, whose gap is thereby measured."""
        primal_value, dual_value = self.fit.certificate
        tolerance = self.tuning.of_gap * (primal_value - dual_value) / float(self.costs.sum())
        size = int(np.clip(self.tuning.scores // max(1, self.weights.n_columns), *self.tuning.chunk))
        order = np.flatnonzero(self.costs > 0)

        def visits() -> Iterator[Visit[Proposals]]:
            for lo in range(0, len(order), size):
                samples = order[lo : lo + size]
                found = self.propose(samples, tolerance, self.tuning.few)
                self.dual.add(samples, found)
                yield samples, found, 0.0

        self.estimate(visits())

    def propose(self, samples: PtrArray, tolerance: float, n_new: int | None = None) -> Proposals:
        """The planes of some samples and up to ``n_new`` more."""
        problem, weights = self.problem, self.weights
        if n_new is None:
            n_new = self.tuning.few if self.opening else self.tuning.new
        head = problem.columns.head if self.opening else 0  # labels may be chosen by less than all weights
        leaves, costs = problem.leaves[samples], problem.costs[samples]
        scorer = weights.scorer(samples)
        start, count, leaf, weight = self.dual.of(samples)
        found = Proposals.empty(len(samples), int(count.max()) + n_new)
        scores = np.empty((len(samples), weights.n_columns), dtype=weights.dtype)

        def work(lo: int, hi: int) -> None:
            part = slice(lo, hi)
            if head:
                weights.head_scores(samples[part], head, scores[part])
            else:
                scorer(lo, hi, scores)
            problem.oracle.propose(
                scores[part], leaves[part], costs[part], (start[part], count[part], leaf, weight),
                n_new, tolerance, found.part(part),
            )  # fmt: skip
            if head:
                weights.add_tails(samples[part], leaves[part], problem.columns, found.part(part))

        self.team.split(len(samples), work)
        return found

    def improve(self, samples: PtrArray, found: Proposals, gram: Array, tolerance: float) -> tuple[Updates, float]:
        return self.dual.improve(self.batch_of(samples), found, gram, self.paths, tolerance, self.tuning.sweeps)

    def observed(self, samples: PtrArray, found: Proposals) -> tuple[float, float]:
        return float(self.costs[samples] @ found.slack), int((found.best != self.problem.leaves[samples]).sum())

    # -- passes over the working set -----------------------------------------------------------------------------------

    def working_set_passes(self) -> None:
        """Working-set passes, until these are near their best."""
        how, (primal_value, dual_value) = self.tuning, self.fit.certificate
        gap = primal_value - dual_value
        tolerance = how.finer * max(self.tol * primal_value, how.share * gap) / float(self.costs.sum())
        enough = max(how.enough_of_tolerance * self.tol * primal_value, how.enough * gap)
        rounds = Rounds(how.passes, enough, how.focused, Focus.left)
        batch, gain, done = self.batch_of(np.arange(len(self.costs))), 0.0, False
        at_a_time = max(1, how.visits // ((1 + how.focused) * len(self.costs)))
        while rounds.most > 0 and not done:
            some = rounds._replace(most=min(at_a_time, rounds.most))
            more, n_visits, done = self.weights.working_set_passes(
                some, self.fit.rng, batch, self.dual.pool, self.paths, tolerance
            )
            gain += more
            self.fit.spent += n_visits * (how.end.visit + how.end.feature * self.features)
            rounds = rounds._replace(most=rounds.most - some.most)
        self.fit.certificate = Certificate(primal_value, dual_value + gain)

    def passes_in_parts(self) -> None:
        """The same for weights in rows, some samples at a time."""
        how, (primal_value, dual_value) = self.tuning, self.fit.certificate
        aim = how.enough_of_tolerance * self.tol * primal_value / float(self.costs.sum())
        most = how.passes_in_parts
        if not self.fit.started and len(self.fit.history) == 1:
            aim, most = max(aim, how.settled), 1
        for parts in self.parts():
            focus = Focus(aim * self.cost(parts), most, how.focused, share=how.left)
            dual_value += self.rounds(parts, self.tolerance(primal_value, dual_value), focus)
            parts.clear()  # room for the addresses of the next
        self.fit.certificate = Certificate(max(primal_value, dual_value), dual_value)

    def revisit(self) -> float:
        """A pass over the samples whose addresses are kept, if it seems worth it; returns the gain of the dual."""
        if self.settled:
            return 0.0
        gaps, gain = self.over(self.used(self.kept), self.tolerance(*self.fit.certificate))
        self.settled = sum(float(observed.sum()) for observed in gaps) <= self.tuning.settled * self.cost(self.kept)
        return gain

    def cost(self, parts: list[Part]) -> float:
        """Σ C_i of some samples, which is about the largest gap that they could have."""
        return sum(float(self.costs[samples].sum()) for samples, _ in parts)

    def tolerance(self, primal_value: float, dual_value: float) -> float:
        """A violation that matters to these, per unit of cost."""
        aim = max(self.tol * primal_value, self.tuning.share_in_parts * (primal_value - dual_value))
        return self.tuning.finer * aim / float(self.costs.sum())

    def parts(self) -> Iterator[list[Part]]:
        """All samples with planes: those with addresses that were kept, and then the others, some at a time.

        Nothing here holds on to addresses: clearing a list frees them.
        """
        others = self.dual.count > 0
        for k in range(len(self.kept)):
            others[self.kept[k][0]] = False
        if self.kept:
            yield self.kept
        yield from map(_by_itself, self.addresses(self.fit.rng.permutation(np.flatnonzero(others))))

    def addresses(self, samples: PtrArray) -> Iterator[Part]:
        """Those of the samples that have planes, some at a time, and where they find their weights."""
        some = samples[self.dual.count[samples] > 0]
        return self.weights.addresses(some, self.problem.leaves, self.dual, self.problem.columns, self.team)

    def rounds(self, parts: list[Part], tolerance: float, focus: Focus) -> float:
        """Working-set passes over some samples; returns the gain."""
        return focused_passes(lambda some: (some, *self.over(some, tolerance)), lambda: self.used(parts), focus)

    def used(self, parts: list[Part]) -> list[Part]:
        """The samples of these that have planes."""
        return [(samples[self.dual.count[samples] > 0], addresses) for samples, addresses in parts]

    def over(self, parts: list[Part], tolerance: float) -> tuple[list[FloatArray], float]:
        """Block steps over the working set, part by part in random order; gaps observed, and the gain of the dual."""
        gaps, total = [np.empty(0)] * len(parts), 0.0
        for k in self.fit.rng.permutation(len(parts)):
            samples, addresses = parts[k]
            gaps[k], gain = self.working_set_pass(samples, addresses, tolerance)
            total += gain
        return gaps, total

    def working_set_pass(self, samples: PtrArray, addresses: object, tolerance: float) -> tuple[FloatArray, float]:
        """Block steps over the working set of some samples; the gaps observed, and the gain of the dual."""
        order = self.fit.rng.permutation(len(samples))
        observed, gaps = np.empty((2, len(samples)))
        batch = self.batch_of(samples[order])
        gain = self.weights.working_set_pass(batch, self.dual.pool, self.paths, tolerance, observed, addresses)
        gaps[order] = observed
        return gaps, gain

    # -- the end game --------------------------------------------------------------------------------------------------

    @cached_property
    def features(self) -> float:
        """Of a sample, on average."""
        X = self.problem.X
        return X.nnz / max(1, X.shape[0]) if sp.issparse(X) else float(X.shape[1])

    def ends_sooner(self) -> bool:
        """By the time that passes have taken, and would take; both counted, not measured, so that fits are the same."""
        how, fit, n_passes = self.tuning.end, self.fit, len(self.fit.history)
        if fit.ended or n_passes < how.passes:
            return False
        needed = expected(self.problem, how)
        return needed <= fit.spent and how.worth * needed <= self.passes_left() * fit.spent / n_passes

    def end_game(self) -> None:
        fit = self.fit
        fit.ended = True
        played = play(self.problem, self.tol, self.tuning.end)
        if played.dual > fit.certificate.dual:
            self.dual.add(played.samples, played.planes)
            if self.weights.dtype == np.float32:
                fit.weights = self.weights.double()
            self.certify()

    # -- certificates --------------------------------------------------------------------------------------------------

    def mass(self) -> float:
        return self.dual.mass()

    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        return self.problem.slack_errors(self.weights.squared_norms, squared_norms)

    def coefficients(self) -> Coefficients:
        leaves, columns, planes = self.problem.leaves, self.problem.columns, self.dual
        updates, doubt = planes.coefficients(leaves, columns), planes.doubt(leaves, self.lengths, columns)
        return Coefficients(updates, doubt, Mass(planes.mass(), planes.least_mass()))

    def rebuild(self) -> None:
        self.kept.clear()  # addresses in rows that are made anew
        super().rebuild()

    def measured(self) -> tuple[Certificate, int]:
        self.rebuild()
        slack, best = self.problem.slacks(self.weights, self.team)
        return self.proved(slack), int((best != self.problem.leaves).sum())


def _by_itself(part: Part) -> list[Part]:
    return [part]


KINDS[SingleLabelProblem] = lambda problem, options: PlanesAscent
