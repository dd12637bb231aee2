"""Block dual ascent with a certificate: the default solver.

The dual of a problem has one block of variables a sample, and every block step raises it. What the variables are
depends on the kind of problem: planes, node marginals, levels of leaves, or numbers in boxes (``dual/``).
:mod:`nhsvm.engine.single_label`, :mod:`nhsvm.engine.label_sets`, :mod:`nhsvm.engine.leaf_search` and
:mod:`nhsvm.engine.hinges` say how each kind is solved; :mod:`nhsvm.engine.alternating` learns weights α as well.

All kinds have the *batch pass*: all samples in random order, a batch at a time. (1) The batch is scored and the oracle
names its most violating labels, with the weights as they are; (2) the samples take their block steps in order, several
sweeps, each seeing the exact effect of the others through the inner products of the batch; (3) the weights take the sum
of all changes. Only the choice of labels is a batch old. (1) and (3) run on all threads.

Results are the same, bit for bit, for any number of threads. The slacks that a pass observes estimate the gap (on large
DAGs some samples do, after the pass). When it seems small enough, the weights are rebuilt from the dual variables in
double precision and the exact oracle goes through all samples. The gap so found is the one that is reported, and that
ends the fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from nhsvm.engine.certificate import gamma, largest_norms, largest_penalty, largest_primal, least_dual
from nhsvm.engine.dual.plane_step import LEAST_STEP
from nhsvm.engine.problem import Problem, Solution, Solver, Watch
from nhsvm.engine.protocols import DualBlock, SampleBatch, Weights
from nhsvm.engine.samples import Updates
from nhsvm.objective import Certificate, penalty
from nhsvm.threads import Team
from nhsvm.typing import Array, Callback, FloatArray, PtrArray, Record

if TYPE_CHECKING:
    from nhsvm.engine.alternating import LearnedAlpha

P = TypeVar("P", bound=Problem)
Block = TypeVar("Block", bound=DualBlock)
Found = TypeVar("Found")
"""What is known of a batch before its steps."""
Visit: TypeAlias = tuple[PtrArray, Found, float]
"""Samples, what was found of them before their steps, and the gain of the dual by these."""
Run: TypeAlias = "Ascent[Any, Any, Any]"
Part = tuple[PtrArray, object]
"""Samples (or their positions), and the addresses of their weights if they need any."""


@dataclass(frozen=True)
class PassTuning:
    """Constants of every run. Where no record of ``docs/decisions`` is named, they were set by trial, without one."""

    first_batch: int = 128  # samples of a batch in the first pass, when labels go stale quickly, at most
    largest_batch: int = 256  # samples of a batch later, at most
    smallest_batch: int = 16  # samples of a batch, at least
    batches: int = 16  # of a pass, at least, unless they would be smaller than that
    sweeps: int = 5  # over the samples of a batch
    least_step: float = LEAST_STEP  # of C_i: dual variables below that are rounded to 0 by steps
    of_tolerance: float = 0.2  # violations that do not matter make up so much of the gap to reach,
    of_gap: float = 0.1  # or so much of the gap that there is
    estimate: float = 0.4  # certified gap, in units of the estimate of the pass before; the first guess
    most_estimate: float = 1.0  # the same, at most
    least_estimate: float = 0.1  # and at least
    progress: float = 0.9  # of the gap before: one that is smaller than that has fallen
    misses: int = 3  # certificates without progress after which single precision is given up
    idle: int = 10  # passes without progress after which single precision is given up
    unresolved: float = 10.0  # gaps to prove: if steps resolve no less of the dual, no passes will make up for it
    patience: int = 100  # passes before a fit is given up,
    hopeless: int = 1000  # which it is if at its pace it would take five times as many as it may, or as these
    beyond: float = 5.0


class Norms(NamedTuple):
    """‖U_n‖² of every column."""

    exact: FloatArray  # as the dual variables make it, in double precision
    stored: FloatArray  # as the weights are stored
    most: FloatArray  # what ``exact`` is at most, without rounding


class Mass(NamedTuple):
    """Σ a_iy Δ(y, y_i)."""

    value: float
    least: float  # no more than it is without rounding


class Coefficients(NamedTuple):
    """What dual variables make of the samples."""

    updates: Updates  # α_n β_in of all samples
    doubt: FloatArray  # α_n Σ_i |β̂_in − β_in| ‖x_i‖ of every column: what rounding may add to their relative errors
    mass: Mass


@dataclass
class FitState(Generic[Block]):
    """All of a run that one pass leaves to the next: beside problem and options, what a checkpoint has to keep."""

    dual: Block  # the dual variables
    weights: Weights  # those that these make, up to rounding, unless ``detached``
    rng: np.random.Generator  # of the order of samples
    certificate: Certificate  # the last one, or what the pass since has observed
    started: bool  # the run began from dual variables that were given, which are not those of U = 0
    history: list[Record] = field(default_factory=list)  # one a pass
    certified: bool = False  # ``certificate`` is proved
    rounding: float = 0.0  # part of the last proved gap that only allows for rounding
    detached: bool = False  # the weights are not those that the dual variables make
    ratio: float = PassTuning.estimate  # of the certified gap to the estimate of the pass before; learned
    misses: int = 0  # certificates that gained nothing
    missed: float = np.inf  # the gap of the last one
    least: float = np.inf  # the smallest estimate
    idle: int = 0  # passes since
    aim: float = 1.0  # part of the tolerance that passes aim at
    alpha: LearnedAlpha | None = None  # weights α, if they are learned
    stopped: bool = False  # whoever watches the weights has ended the run
    spent: float = 0.0  # seconds that passes have taken, as they are counted for the end game
    ended: bool = False  # the end game has been played
    stagnant: bool = False  # given up


class Ascent(ABC, Generic[P, Block, Found]):
    """One run: passes over the samples of a problem, from :meth:`first_fit` on, and what is proved of them."""

    tuning: PassTuning = PassTuning()
    norms: Norms  # of the last certificate
    certified_mass: Mass  # the same

    def __init__(self, options: Dual, problem: P, fit: FitState[Block], team: Team) -> None:
        self.options, self.problem, self.fit, self.team = options, problem, fit, team
        self.dual, self.costs = fit.dual, problem.costs
        self.began = perf_counter()

    @classmethod
    @abstractmethod
    def first_fit(cls, options: Dual, problem: P, dual: Block | None) -> FitState[Block]:
        """What a run begins with: from the given dual variables, which are changed, or from those of U = 0."""

    @property
    def weights(self) -> Weights:
        return self.fit.weights

    @property
    def tol(self) -> float:
        """The gap that passes aim at; the one to prove is that of the options."""
        return self.options.tol * self.fit.aim

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return perf_counter() - self.began

    @property
    def converged(self) -> bool:
        """Whether the gap is small enough: as it is proved, or estimated by a pass if nothing is to be proved."""
        known = self.fit.certified or not self.options.certify
        return bool(self.fit.history) and known and self.fit.certificate.gap <= self.options.tol

    @property
    def hopeless(self) -> bool:
        """Whether the last certificate was as good as double precision can make it, and not good enough."""
        return self.fit.certified and not self.converged and self.fit.rounding > self.options.tol

    # -- what a kind of problem says -----------------------------------------------------------------------------------

    def one_pass(self) -> None:
        """A pass, or passes, over the data; leaves an estimate in ``fit.certificate``."""
        self.batch_pass()

    @abstractmethod
    def propose(self, samples: PtrArray, tolerance: float) -> Found:
        """What the oracle says of a batch, with the weights as they are; on all threads."""

    @abstractmethod
    def improve(self, samples: PtrArray, found: Found, gram: Array, tolerance: float) -> tuple[Updates, float]:
        """Block steps of a batch: the change of U and the gain of the dual."""

    @abstractmethod
    def observed(self, samples: PtrArray, found: Found) -> tuple[float, float]:
        """(Σ C_i ξ_i, errors) of a batch as they were before its steps; NaN for errors that were not counted."""

    @abstractmethod
    def mass(self) -> float:
        """Σ a_iy Δ(y, y_i)."""

    @abstractmethod
    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        """What rounding makes the slacks of samples wrong by at most, with weights of these ‖U_n‖²."""

    @abstractmethod
    def coefficients(self) -> Coefficients:
        """What the dual variables make of the samples; they may change, within rounding."""

    @abstractmethod
    def measured(self) -> tuple[Certificate, int]:
        """Rebuild U from the dual variables and measure primal and dual exactly; and the number of errors."""

    # -- the run -------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Passes until the certificate says so."""
        fit, callback = self.fit, self.options.callback
        if fit.started and self.options.certify:
            self.certify()
            if not self.converged:
                fit.history.clear()
        elif fit.started:
            self.resume()
        while not self.converged and len(fit.history) < self.options.max_iter:
            if self.weights.grown or fit.detached:  # not after the pass: a certificate makes them anew in any case
                self.rebuild()
            self.one_pass()
            fit.history[-1]["seconds"] = self.seconds  # with passes that came after the estimate
            if self.options.certify and fit.certificate.gap * fit.ratio <= self.tol:
                self.try_certificate()
            elif self.ends_sooner():
                self.end_game()
            elif self.stalled():
                self.leave_stall()
            fit.stopped = self.options.watch is not None and self.options.watch(self.weights, fit.history[-1])
            fit.stagnant = not self.converged and self.stagnates()
            told = callback is not None and callback(fit.history[-1])
            if self.hopeless or fit.stagnant or fit.stopped or told:
                break

    def batch_pass(self) -> None:
        """Samples once each; leaves an estimate in ``fit.certificate``."""
        total = max(float(self.costs.sum()), np.finfo(np.float64).tiny)
        primal_value, dual_value = self.fit.certificate
        how = self.tuning
        aim = max(how.of_tolerance * self.tol * primal_value, how.of_gap * (primal_value - dual_value))
        tolerance = aim / total  # a violation that matters, per unit of cost
        visited, slack = self.visited()
        order, size = self.fit.rng.permutation(visited), self.batch_size()
        batches = [order[lo : lo + size] for lo in range(0, len(order), size)]
        self.estimate(self.visits(batches, tolerance), slack)

    def visited(self) -> tuple[PtrArray, float]:
        """The samples that a batch pass visits, and Σ C_i ξ_i of the others as they were last observed."""
        return np.flatnonzero(self.costs > 0), 0.0

    def visits(self, batches: list[PtrArray], tolerance: float) -> Iterator[Visit[Found]]:
        """Proposals and block steps, batch by batch."""
        ready: Callable[[], SampleBatch] | None = None
        for k, samples in enumerate(batches):
            found = self.propose(samples, tolerance)
            batch = self.weights.batch(samples) if ready is None else ready()
            if k + 1 < len(batches):  # another thread prepares the next while this one takes the steps
                ready = self.team.ahead(partial(self.weights.batch, batches[k + 1]))
            updates, gain = self.improve(samples, found, batch.gram, tolerance)
            self.apply(batch, updates)
            yield samples, found, gain

    def apply(self, batch: SampleBatch, updates: Updates) -> None:
        """Change U as the steps of a batch say."""
        batch.apply(updates, self.team)
        if self.weights.overfull:
            self.rebuild()

    def batch_size(self) -> int:
        """Small at first, when labels go stale quickly, and on small data."""
        how = self.tuning
        largest = how.largest_batch if self.fit.history else how.first_batch
        return int(np.clip(len(self.costs) // how.batches, how.smallest_batch, largest))

    def estimate(self, visits: Iterable[Visit[Found]], slack: float = 0.0) -> None:
        """Note what is observed on these visits, beside the slack of samples that are not visited."""
        wrong, dual_value = 0.0, self.fit.certificate.dual
        for samples, found, gain in visits:
            more, errors = self.observed(samples, found)
            slack, wrong, dual_value = slack + more, wrong + errors, dual_value + gain
        self.fit.certificate = Certificate(max(self.mass() - dual_value + slack, dual_value), dual_value)
        self.fit.certified = False
        self.record(wrong)

    # -- where passes hardly help ------------------------------------------------------------------------------------

    def ends_sooner(self) -> bool:
        """Whether there is a method for small problems that would take much less time than passes at their pace."""
        return False

    def end_game(self) -> None:
        """Take the dual variables that such a method finds, and certify."""
        raise NotImplementedError(f"{type(self).__name__} has no end game")

    def passes_left(self) -> float:
        """How many more passes it takes to the gap to prove, at their pace."""
        values = [(record["primal"], record["dual"]) for record in self.fit.history]
        return passes_left(values, self.tol / self.fit.ratio)

    def stagnates(self) -> bool:
        """Whether passes would have to go on far beyond the limit."""
        how, n_passes = self.tuning, len(self.fit.history)
        if not how.patience <= n_passes < self.options.max_iter:
            return False
        return self.passes_left() > how.beyond * max(self.options.max_iter, how.hopeless)

    # -- certificates --------------------------------------------------------------------------------------------------

    def try_certificate(self) -> None:
        """Certify; if the estimate was wrong, learn by how much, and go to double precision if it is wrong again."""
        fit, how, estimate = self.fit, self.tuning, self.fit.certificate.gap
        self.certify()
        if self.converged:
            return
        gap, exact = self.reported()
        fit.ratio = float(np.clip(gap / max(estimate, 1e-300), how.least_estimate, how.most_estimate))
        fit.misses += exact and gap > how.progress * fit.missed  # one that falls is not held up by rounding
        fit.missed = gap
        if fit.misses == how.misses and self.weights.dtype == np.float32:
            self.go_double()

    def reported(self) -> tuple[float, bool]:
        """What the last certificate says of the gap, and whether that is all there is to know."""
        return self.fit.certificate.gap, True

    def stalled(self) -> bool:
        """Whether precision may be the limit: the estimate, which has its noise, has not fallen for some passes."""
        fit = self.fit
        if fit.certificate.gap < self.tuning.progress * fit.least:
            fit.least, fit.idle = fit.certificate.gap, 0
        else:
            fit.idle += 1
        return fit.idle >= self.tuning.idle

    def leave_stall(self) -> None:
        """Go to double precision; or, if the weights have it, certify where no pass is worth its time."""
        self.fit.idle = 0
        if self.weights.dtype == np.float32:
            self.go_double()
        elif self.unresolved() > self.tuning.unresolved * self.options.tol:
            self.certify()
            self.fit.rounding = max(self.fit.rounding, self.unresolved())
        elif self.fit.certificate.primal > 0:
            allowed = self.slack_error(self.weights.column_norms())  # by a certificate for the weights as they are
            if allowed / self.fit.certificate.primal > self.options.tol:
                self.certify()

    def unresolved(self) -> float:
        """Dual variables that steps take for zero, next to the largest C_i, as a part of the dual; 1 if they are more.

        A sample that needs no more than that never moves, however much its slack costs.
        """
        least, dual_value = self.tuning.least_step * float(self.costs.max(initial=0.0)), self.fit.certificate.dual
        return min(1.0, least / dual_value) if dual_value > 0 else 0.0

    def go_double(self) -> None:
        """Weights in double precision from now on."""
        self.fit.weights = self.weights.double()
        self.certify()

    def certify(self) -> None:
        """The exact gap of the weights as they are stored."""
        fit = self.fit
        fit.certificate, wrong = self.measured()
        fit.rounding = self.share_of_rounding(fit.certificate)
        fit.certified = True
        if not fit.history:  # the dual variables that were given are good enough as they are
            self.record(wrong)
        errors = wrong / max(1, len(self.costs))
        fit.history[-1].update(self.values(), seconds=self.seconds, training_error=errors, certified=True)

    def values(self) -> Record:
        return {**self.fit.certificate._asdict(), "gap": self.fit.certificate.gap}

    def record(self, wrong: float) -> None:
        self.fit.history.append(
            {
                "iteration": len(self.fit.history) + 1,
                "seconds": self.seconds,
                **self.values(),
                "training_error": wrong / max(1, len(self.costs)),
                "planes": self.dual.n_planes,
                "certified": False,
            }
        )

    def resume(self) -> None:
        """U of the dual variables that were given, with their dual; the primal is that of U = 0, which bounds it."""
        self.rebuild()
        self.fit.certificate = Certificate(self.fit.certificate.primal, max(0.0, self.least_dual()))

    # -- primal and dual, with what rounding may have done to them -----------------------------------------------------

    def rebuild(self) -> None:
        """Make U anew from the dual variables, in double precision; leaves ``norms`` and ``certified_mass``."""
        updates, doubt, self.certified_mass = self.coefficients()
        exact, stored = self.weights.rebuild(updates, self.team)
        most = largest_norms(exact, updates, self.lengths, doubt, self.weights.n_features)
        self.norms = Norms(exact, stored, most)
        self.fit.detached = False

    @property
    def lengths(self) -> FloatArray:
        """‖x_i‖ of every sample."""
        return np.sqrt(self.weights.squared_norms)

    def proved(self, slacks: FloatArray) -> Certificate:
        """Primal and dual of the weights that were just rebuilt, from the slacks of all samples."""
        return Certificate(largest_primal(self.upper(self.norms.stored), slacks, self.costs), self.least_dual())

    def upper(self, squared_norms: FloatArray) -> float:
        """The penalty of weights, and what rounding may have taken from their slacks."""
        return self.largest_penalty(squared_norms) + self.slack_error(squared_norms)

    def least_dual(self) -> float:
        """The dual, no more than it is without rounding."""
        most, least = self.largest_penalty(self.norms.most, 0), self.certified_mass.least
        return least_dual(most, least, self.dual.excess(self.costs))

    def largest_penalty(self, squared_norms: FloatArray, n_features: int | None = None) -> float:
        """½ Σ_n ‖U_n‖²/α_n, no less than it is without rounding."""
        terms = self.weights.n_features if n_features is None else n_features
        return largest_penalty(squared_norms, self.problem.columns.alpha, terms)

    def slack_error(self, squared_norms: FloatArray) -> float:
        """What rounding makes Σ_i C_i ξ_i wrong by at most."""
        errors = self.slack_errors(squared_norms)
        return float(self.costs @ errors) * (1.0 + gamma(float(len(errors) + 8)))

    def share_of_rounding(self, certificate: Certificate) -> float:
        """The part of a gap that only allows for rounding: in slacks, in ‖U_n‖ and in the sum of losses."""
        exact, stored, most = self.norms
        norms = self.largest_penalty(most, 0) - penalty(exact, self.problem.columns.alpha)
        mass, least = self.certified_mass
        taken = self.slack_error(stored) + norms + mass - least
        return min(1.0, taken / certificate.primal) if certificate.primal > 0 else 0.0


def passes_left(values: Sequence[tuple[float, float]], goal: float) -> float:
    """How many more passes it takes to a gap, at the fastest pace that the later half of the passes so far shows.

    One pace is that of log(primal/dual), which is the gap where that is small; near a gap of 1 it shows how the dual
    grows. It is taken to fall by a constant factor. Gaps are estimates and have their noise, so the smallest so far are
    compared, and medians. The other pace is that of the dual, which grows steadily while one sample after the other
    takes its time: it need not grow by more than the gap.

    Parameters
    ----------
    values : list of (primal, dual)
        Of every pass.
    goal : float
    """
    gaps = np.array([Certificate(*pair).gap for pair in values])
    ratios = -np.log1p(-np.clip(gaps, 0.0, 1.0 - 1e-16))
    n, half, quarter = len(ratios), len(ratios) // 2, len(ratios) // 4
    least = float(ratios.min(initial=np.inf))
    if least <= goal:
        return 0.0
    if quarter == 0:
        return np.inf
    smallest = np.log(ratios[:half].min() / least) / (n - half)
    medians = np.log(np.median(ratios[half : n - quarter]) / np.median(ratios[n - quarter :])) / (0.5 * (n - half))
    pace = max(float(smallest), float(medians))
    falls = float(np.log(least / goal)) / pace if pace > 0.0 else np.inf
    (upper, lower), grown = values[-1], (values[-1][1] - values[half - 1][1]) / (n - half)
    return min(falls, (upper - lower) / grown if grown > 0.0 else np.inf)


@dataclass(frozen=True)
class Focus:
    """How long working-set passes go on."""

    enough: float  # gap at which they end
    most: int  # passes over all samples
    focused: int  # passes over the samples with most of the gap, between two over all
    left: float = 0.5  # these end when no more of the gap over all is left
    share: float = 0.0  # of the gap that the first pass observes: enough, too
    slow: float = -np.inf  # a pass that gains no more is the last


def focused_passes(
    visit: Callable[[list[Part]], tuple[list[Part], list[FloatArray], float]],
    every: Callable[[], list[Part]],
    focus: Focus,
) -> float:
    """Working-set passes over all samples, and between them over those with most of the gap; the gain of the dual.

    ``visit`` gives samples in the order of the gaps that it has observed, these gaps, and its gain.
    """
    total, enough = 0.0, focus.enough
    for k in range(focus.most):
        parts, gaps, gain = visit(every())
        total += gain
        left = _sum(gaps)
        if k == 0 and focus.share:
            enough = max(enough, focus.share * left)
        if left <= enough or gain <= focus.slow:
            break
        bar = 0.5 * left / sum(map(len, gaps))  # most of the gap is in few samples
        parts = [(samples[mine > bar], addresses) for (samples, addresses), mine in zip(parts, gaps, strict=True)]
        for _ in range(focus.focused):
            _, gaps, gain = visit(parts)
            total += gain
            if _sum(gaps) <= focus.left * left:
                break
    return total


def _sum(gaps: list[FloatArray]) -> float:
    return sum(float(observed.sum()) for observed in gaps)


@dataclass(frozen=True)
class Dual(Solver):
    """Block dual ascent.

    Parameters
    ----------
    tol : float
        Stop at a certified relative gap of this size.
    max_iter : int
        Passes over the data, at most.
    n_threads : int
        Results do not depend on it.
    seed : int
        Of the order of samples.
    callback : callable, optional
        Called with the record of every pass; a true result ends the fit.
    certify : bool
        Prove the gap, also where passes end before ``tol`` is reached. Without it, passes end where the gap that they
        estimate is at most ``tol``, and the certificate is that estimate, unless precision made a proof necessary; and
        a run that goes on from dual variables begins with a pass, not with a certificate. One that is interrupted ends
        with a certificate in any case, since weights are made anew.
    watch : callable, optional
        Called with the weights as they are, and the record, after every pass and before ``callback``; a true result
        ends the fit.
    """

    tol: float = 1e-3
    max_iter: int = 1000
    n_threads: int = 1
    seed: int = 0
    callback: Callback | None = None
    certify: bool = True
    watch: Watch | None = None

    takes_hinges = True

    def solve(self, problem: Problem, dual: DualBlock | None = None) -> Solution:
        """Solve from the given dual variables (``dual`` of a solution), which are changed, or from zero."""
        with Team(self.n_threads) as team:
            ascent = self.begin(problem, dual, team)
            fit, interrupted = ascent.fit, False
            try:
                ascent.run()
                if self.certify and not fit.certified:
                    ascent.certify()
                elif not fit.certified:
                    fit.history[-1].update(ascent.values())  # after steps that came after the estimate
                    if ascent.weights.bulky:
                        ascent.rebuild()
            except KeyboardInterrupt:
                interrupted = True
                ascent.certify()
        return Solution(
            fit.weights, fit.certificate, fit.history, ascent.converged, interrupted, fit.dual,
            fit.alpha.learned if fit.alpha else None, fit.rounding if fit.certified else 0.0, fit.certified,
            fit.stopped, fit.stagnant,
        )  # fmt: skip

    def watched(self, watch: Watch) -> Dual:
        return replace(self, watch=watch)

    def begin(self, problem: Problem, dual: DualBlock | None, team: Team) -> Run:
        """One run, before its first pass."""
        kind = self.kind_of(problem)
        return kind(self, problem, kind.first_fit(self, problem, dual), team)

    def kind_of(self, problem: Problem) -> type[Run]:
        """How a problem is solved."""
        from nhsvm.engine import leaf_search, single_label  # noqa: F401 - each says how its kind of problem is solved

        return KINDS[type(problem)](problem, self)

    def rough(self, gap: float) -> bool:
        """Whether an estimated gap of this or more will do: nothing is to be proved, and weights α are given."""
        return not self.certify and self.tol >= gap and not self.learns_weights


KINDS: dict[type[Problem], Callable[..., type[Run]]] = {}
"""How a problem of each kind is solved, by a solver with these options."""
