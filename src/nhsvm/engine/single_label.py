"""Single labels: the dual variables are planes, and passes over the working set may be cheaper than over all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from nhsvm.engine.ascent import SWEEPS, Ascent, Dual
from nhsvm.engine.certificate import largest_primal, measure, slack_errors
from nhsvm.engine.dual.block import Paths
from nhsvm.engine.dual.planes import Batch, Planes
from nhsvm.engine.problem import SingleLabelProblem
from nhsvm.engine.samples import Updates
from nhsvm.engine.storage.addresses import KEPT
from nhsvm.objective import Certificate
from nhsvm.oracles.leaves import Proposals
from nhsvm.threads import Team
from nhsvm.typing import FloatArray

_FOCUS = 3  # passes over the samples with most of the gap, between two over all
_MOST = 200  # working-set passes between two full passes, at most
_IN_PARTS = 3  # the same where addresses have to be found; one after the first pass, whose planes are soon not all
_SETTLED = 0.08  # of the costs: a gap over the working set that the first pass leaves, since others are yet to be found
_LEFT = 0.2  # of the gap that the first of these met: enough
_NEW = 32  # labels a visit may add to those of a sample
_FEW = 8  # the same in a pass that is followed by many working-set passes
_TURNS = KEPT  # parts of the first pass; after each of them a working-set pass so far
_SCORES = 2**18  # scores (samples × columns) in one chunk of a search pass
Part = tuple[np.ndarray, Any]  # samples, and their addresses if they need any


class WorkingSetAscent(Ascent):
    """An ascent whose dual variables are planes.

    Attributes
    ----------
    fresh : bool
        The run began from nothing, not from the dual variables of another.
    kept : list of parts
        Samples whose addresses have been found in the first pass; valid until rows are made anew.
    settled : bool
        The last look at these, in the first pass, has met little.
    """

    state: Planes
    problem: SingleLabelProblem
    fresh: bool
    kept: list[Part]
    settled = False

    @property
    def paths(self) -> Paths:
        """Of the columns as they are now; weights α may be learned on the way."""
        return Paths.of(self.problem.columns, unscaled=not self.problem.oracle.normalized)

    def batch_of(self, samples: np.ndarray) -> Batch:
        """What steps need to know of some samples."""
        problem = self.problem
        return Batch(samples, problem.leaves[samples], problem.costs[samples], self.weights.squared_norms[samples])

    def keep(self, samples: np.ndarray) -> None:
        """Find the addresses of samples and keep them: of as many as have room at a time."""
        self.kept += islice(self.addresses(samples), 1)

    def revisit(self) -> float:
        """A pass over the samples whose addresses are kept, if it seems worth it; returns the gain of the dual."""
        if self.settled:
            return 0.0
        gaps, gain = self.over(self.used(self.kept), self.tolerance(*self.certificate))
        self.settled = _total(gaps) <= _SETTLED * self.cost(self.kept)
        return gain

    def cost(self, parts: list[Part]) -> float:
        """Σ C_i of some samples, which is about the largest gap that they could have."""
        return sum(float(self.costs[samples].sum()) for samples, _ in parts)

    def working_set_passes(self) -> None:
        """Working-set passes, until these are near their best."""
        primal_value, dual_value = self.certificate
        gap = primal_value - dual_value
        tolerance = 0.1 * max(self.options.tol * primal_value, 0.3 * gap) / float(self.costs.sum())
        enough = max(0.8 * self.options.tol * primal_value, 0.25 * gap)
        gain = self.rounds([(np.arange(len(self.costs)), None)], tolerance, enough, 0.0, _MOST)
        self.certificate = Certificate(primal_value, dual_value + gain)

    def passes_in_parts(self) -> None:
        """The same for weights in rows, some samples at a time."""
        primal_value, dual_value = self.certificate
        aim, most = 0.8 * self.options.tol * primal_value / float(self.costs.sum()), _IN_PARTS
        if self.fresh and len(self.history) == 1:
            aim, most = max(aim, _SETTLED), 1
        for parts in self.parts():
            tolerance = self.tolerance(primal_value, dual_value)
            dual_value += self.rounds(parts, tolerance, aim * self.cost(parts), _LEFT, most)
            parts.clear()  # room for the addresses of the next
        self.certificate = Certificate(max(primal_value, dual_value), dual_value)

    def tolerance(self, primal_value: float, dual_value: float) -> float:
        """A violation that matters to these, per unit of cost."""
        aim = max(self.options.tol * primal_value, 0.03 * (primal_value - dual_value))
        return 0.1 * aim / float(self.costs.sum())

    def parts(self) -> Iterator[list[Part]]:
        """All samples with planes: those with addresses that were kept, and then the others, some at a time.

        Nothing here holds on to addresses: whoever clears a list frees them.
        """
        others = self.state.count > 0
        for k in range(len(self.kept)):
            others[self.kept[k][0]] = False
        if self.kept:
            yield self.kept
        yield from map(_by_itself, self.addresses(self.rng.permutation(np.flatnonzero(others))))

    def addresses(self, samples: np.ndarray) -> Iterator[Part]:
        """Those of the samples that have planes, some at a time, and where they find their weights."""
        some = samples[self.state.count[samples] > 0]
        found: Iterator[Part] = self.weights.addresses(
            some, self.problem.leaves, self.state, self.problem.columns, self.team
        )
        return found

    def rounds(self, parts: list[Part], tolerance: float, enough: float, share: float, most: int) -> float:
        """Working-set passes, ``most`` of them over all samples and some over those with most of the gap.

        They end when the gap that is met is ``enough``, or this share of what was met at first. Returns the gain.
        """
        total = 0.0
        for k in range(most):
            parts = self.used(parts)
            gaps, gain = self.over(parts, tolerance)
            total += gain
            left = _total(gaps)
            enough = max(enough, share * left) if k == 0 else enough
            if left <= enough:
                break
            bar = 0.5 * left / sum(map(len, gaps))  # most of the gap is in few samples
            some = [(samples[met > bar], addresses) for (samples, addresses), met in zip(parts, gaps, strict=True)]
            for _ in range(_FOCUS):
                gaps, gain = self.over(some, tolerance)
                total += gain
                if _total(gaps) <= 0.5 * left:
                    break
        return total

    def used(self, parts: list[Part]) -> list[Part]:
        """The samples of these that have planes."""
        return [(samples[self.state.count[samples] > 0], addresses) for samples, addresses in parts]

    def over(self, parts: list[Part], tolerance: float) -> tuple[list[FloatArray], float]:
        """Block steps over the working set, part by part in random order; gaps as met, and the gain of the dual."""
        gaps, total = [np.empty(0)] * len(parts), 0.0
        for k in self.rng.permutation(len(parts)):
            samples, addresses = parts[k]
            gaps[k], gain = self.working_set_pass(samples, addresses, tolerance)
            total += gain
        return gaps, total

    def working_set_pass(self, samples: np.ndarray, addresses: Any, tolerance: float) -> tuple[FloatArray, float]:
        """Block steps over the working set of some samples; their gaps as met, and the gain of the dual."""
        order = self.rng.permutation(len(samples))
        met = np.empty(len(samples))
        batch = self.batch_of(samples[order])
        gain = self.weights.working_set_pass(batch, self.state.pool, self.paths, tolerance, met, addresses)
        gaps = np.empty(len(samples))
        gaps[order] = met
        return gaps, gain


def _by_itself(part: Part) -> list[Part]:
    return [part]


def _total(gaps: list[FloatArray]) -> float:
    return sum(float(met.sum()) for met in gaps)


class PlanesAscent(WorkingSetAscent):
    """Single labels: the dual variables are planes, and passes over their working set may be cheaper than over all."""

    first_batch, largest_batch = 64, 320

    def __init__(self, options: Dual, problem: SingleLabelProblem, planes: Planes | None, team: Team) -> None:
        self.problem = problem
        self.kept = []
        self.fresh = planes is None or not planes.n_planes
        state = Planes(problem.n_samples) if planes is None else planes
        super().__init__(options, problem.weights(), state, problem.costs, team)

    @property
    def started(self) -> bool:
        return self.state.n_planes > 0

    @property
    def opening(self) -> bool:
        """Whether this is the first pass of all, with weights in rows: what is found is soon out of date."""
        return bool(self.weights.needs_addresses) and self.fresh and not self.history

    def one_pass(self) -> None:
        if self.weights.working_set_is_cheap(self.state, self.problem.columns):
            self.search_pass()
            if self.certificate.gap > self.options.tol:
                self.working_set_passes()
        else:
            self.batch_pass()
            if self.weights.needs_addresses and self.certificate.gap > self.options.tol:
                self.passes_in_parts()

    def visits(self, batches: list[np.ndarray], tolerance: float) -> Iterator[tuple[np.ndarray, Any, float]]:
        """In the first pass, where addresses have to be found, also working-set passes so far."""
        since = 0
        for k, (samples, found, gain) in enumerate(super().visits(batches, tolerance), 1):
            if self.opening and _TURNS * k // len(batches) > _TURNS * (k - 1) // len(batches):
                self.keep(np.concatenate(batches[since:k]))
                since = k
                if k < len(batches):
                    gain += self.revisit()
            yield samples, found, gain

    def search_pass(self) -> None:
        """New planes for every sample, with the weights as they are, whose gap is thereby measured."""
        problem = self.problem
        dual_value = self.certificate.dual
        tolerance = 0.1 * (self.certificate.primal - dual_value) / float(problem.costs.sum())
        slack, wrong = 0.0, 0.0
        order = np.flatnonzero(problem.costs > 0)
        size = int(np.clip(_SCORES // max(1, self.weights.n_columns), 64, 4096))
        for lo in range(0, len(order), size):
            samples = order[lo : lo + size]
            found = self.propose(samples, tolerance, _FEW)
            more, errors = self.observed(samples, found)
            slack, wrong = slack + more, wrong + errors
            self.state.add(samples, found)
        self.estimate(dual_value, slack, wrong)

    def propose(self, samples: np.ndarray, tolerance: float, n_new: int | None = None) -> Proposals:
        """The planes of some samples and up to ``n_new`` more."""
        problem = self.problem
        if n_new is None:
            n_new = _FEW if self.opening else _NEW
        head = problem.columns.head if self.opening else 0  # labels may be chosen by less than all weights
        leaves, costs = problem.leaves[samples], problem.costs[samples]
        weights = self.weights
        scorer = weights.scorer(samples)
        start, count, leaf, weight = self.state.of(samples)
        found = Proposals.empty(len(samples), int(count.max()) + n_new)
        scores = np.empty((len(samples), weights.n_columns), dtype=weights.dtype)

        def work(lo: int, hi: int) -> None:
            part = slice(lo, hi)
            if head:
                weights.head_scores(samples[part], head, scores[part])
            else:
                scorer(lo, hi, scores)
            problem.oracle.propose(
                scores[part], leaves[part], costs[part], problem.oracle.losses(leaves[part]),
                (start[part], count[part], leaf, weight), n_new, tolerance, found.part(part),
            )  # fmt: skip
            if head:
                weights.add_tails(samples[part], leaves[part], problem.columns, found.part(part))

        self.team.split(len(samples), work)
        return found

    def improve(self, samples: np.ndarray, found: Proposals, gram: Any, tolerance: float) -> tuple[Updates, float]:
        return self.state.improve(self.batch_of(samples), found, gram, self.paths, tolerance, SWEEPS)

    def observed(self, samples: np.ndarray, found: Proposals) -> tuple[float, float]:
        return float(self.costs[samples] @ found.slack), int((found.best != self.problem.leaves[samples]).sum())

    def mass(self) -> float:
        return self.state.mass()

    def least_mass(self) -> float:
        return self.state.least_mass()

    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        return slack_errors(self.problem, self.weights.squared_norms, squared_norms)

    def coefficients(self) -> tuple[Updates, FloatArray]:
        leaves, columns = self.problem.leaves, self.problem.columns
        return self.state.coefficients(leaves, columns), self.state.doubt(leaves, self.lengths, columns)

    def rebuild(self) -> None:
        self.kept.clear()  # addresses in rows that are made anew
        super().rebuild()

    def measured(self) -> tuple[Certificate, int]:
        problem = self.problem
        self.rebuild()
        slack, best = measure(problem, self.weights, self.team)
        stored = self.norms.stored
        upper = self.largest_penalty(stored) + self.slack_error(stored)
        certificate = Certificate(largest_primal(upper, slack, problem.costs), self.least_dual())
        return certificate, int((best != problem.leaves).sum())


Dual.kinds[SingleLabelProblem] = PlanesAscent
