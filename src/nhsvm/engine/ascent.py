"""Block dual ascent with a certificate: the default solver.

The dual of :mod:`nhsvm.objective` has one block of variables a sample: its *planes*, wrong labels with a weight. Every
block step raises the dual. There are two kinds of rounds, and the one that reads less memory is taken.

*Batch pass*: all samples in random order, a batch at a time. (1) The batch is scored and the oracle names its most
violating labels, with the weights as they are; (2) the samples take their block steps in order, several sweeps, each
seeing the exact effect of the others through the inner products of the batch; (3) the weights take the sum of all
changes. Only the choice of labels is a batch old. (1) and (3) run on all threads.

*Search pass, then working-set passes*: the oracle adds violating labels for all samples, on all threads; then samples
take block steps over the planes they have, their *working set*, one after the other, each reading and changing only the
weights of its planes.

Weights in rows of any length have no quick way to a single weight. There, working-set passes follow a batch pass: the
addresses of the weights that they need are found once, for as many samples as memory has room for. In the first pass,
whose early steps are soon out of date, they also come in between, and labels are chosen by the weights that are quick
to read.

Results are the same, bit for bit, for any number of threads. The slacks that a pass meets estimate the gap (on large
DAGs some samples do, after the pass); when it seems small enough, the weights are rebuilt from the dual variables in
double precision and the exact oracle goes through all samples. The gap so found is the one that is reported, and that
ends the fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from nhsvm.engine.certificate import (
    gamma,
    largest_norms,
    largest_penalty,
    least_dual,
    lengths,
)
from nhsvm.engine.problem import Callback, Problem, Record, Solution
from nhsvm.engine.protocols import DualBlock, Weights
from nhsvm.engine.samples import Updates
from nhsvm.objective import Certificate, penalty
from nhsvm.threads import Team
from nhsvm.typing import FloatArray

SWEEPS = 5  # over the samples of a batch
_IDLE = 10  # passes without progress after which single precision is given up
_HOPE = 10.0  # times the gap to prove: if steps resolve no less of the dual, no passes will make up for it


class Norms(NamedTuple):
    """‖U_n‖² of every column.

    Attributes
    ----------
    exact : array of n_columns
        As the dual variables make it, in double precision.
    stored : array of n_columns
        As the weights are stored.
    most : array of n_columns
        What ``exact`` is at most, without rounding.
    """

    exact: FloatArray
    stored: FloatArray
    most: FloatArray


class Options(Protocol):
    """What a run needs to know; see :class:`nhsvm.engine.Dual`."""

    @property
    def tol(self) -> float: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def callback(self) -> Callback | None: ...


class Ascent(ABC):
    """The state of the dual and what has been seen of the gap.

    Parameters
    ----------
    options : Options
    weights : Weights
        Zero.
    state : object
        The dual variables, with ``n_planes``.
    costs : array of n_samples
    team : Team

    Attributes
    ----------
    norms : Norms
        Of the last certificate.
    learned_alpha : array of n_columns, optional
        Weights α, if they are learned.
    detached : bool
        The weights are not those that the dual variables make.
    rounding : float
        Part of the last certificate's gap that only allows for rounding.
    """

    first_batch, largest_batch = 128, 256
    least_step = 1e-13  # of C_i: dual variables below that are rounded to 0 by steps
    most_ratio = 1.0
    norms: Norms
    learned_alpha: FloatArray | None = None
    detached = False
    rounding = 0.0
    problem: Any
    state: DualBlock

    def __init__(self, options: Options, weights: Weights, state: DualBlock, costs: FloatArray, team: Team) -> None:
        self.options, self.weights, self.state, self.costs, self.team = options, weights, state, costs, team
        self.began = perf_counter()
        self.rng = np.random.default_rng(options.seed)
        self.history: list[Record] = []
        self.certified = False
        self.ratio = 0.4  # of the certified gap to the estimate of the pass before; learned
        self.misses, self.missed = 0, np.inf
        self.least, self.idle = np.inf, 0
        self.certificate = Certificate(float(costs.sum()), 0.0)

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return perf_counter() - self.began

    @property
    def converged(self) -> bool:
        return self.certified and self.certificate.gap <= self.options.tol

    @property
    def goal(self) -> float:
        """The gap to prove."""
        return self.options.tol

    @property
    def hopeless(self) -> bool:
        """Whether the last certificate was as good as double precision can make it, and not good enough."""
        return self.certified and not self.converged and self.rounding > self.goal

    @property
    @abstractmethod
    def started(self) -> bool:
        """Whether the dual variables are not those of U = 0."""

    @abstractmethod
    def one_pass(self) -> None:
        """A pass, or passes, over the data; leaves an estimate in ``certificate``."""

    @abstractmethod
    def propose(self, samples: np.ndarray, tolerance: float) -> Any:
        """What the oracle says of a batch, with the weights as they are; on all threads."""

    @abstractmethod
    def improve(self, samples: np.ndarray, found: Any, gram: Any, tolerance: float) -> tuple[Updates, float]:
        """Block steps of a batch: the change of U and the gain of the dual."""

    @abstractmethod
    def observed(self, samples: np.ndarray, found: Any) -> tuple[float, float]:
        """(Σ C_i ξ_i, errors) of a batch as they were before its steps; NaN for errors that were not counted."""

    @abstractmethod
    def mass(self) -> float:
        """Σ a_iy Δ(y, y_i)."""

    @abstractmethod
    def least_mass(self) -> float:
        """The same, and no more than it is without rounding."""

    @abstractmethod
    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        """What rounding makes the slacks of samples wrong by at most, with weights of these ‖U_n‖²."""

    @abstractmethod
    def coefficients(self) -> tuple[Updates, FloatArray]:
        """α_n β_in of all samples, and what rounding may have done to them beyond a relative error.

        The latter is α_n Σ_i |β̂_in − β_in| ‖x_i‖ for every column. Dual variables may change, within rounding.
        """

    def rebuild(self) -> None:
        """Make U anew from the dual variables, in double precision; leaves ``norms``."""
        coefficients, doubt = self.coefficients()
        exact, stored = self.weights.rebuild(coefficients, self.team)
        most = largest_norms(exact, coefficients, self.lengths, doubt, self.weights.n_features)
        self.norms = Norms(exact, stored, most)
        self.detached = False

    @property
    def lengths(self) -> FloatArray:
        """‖x_i‖ of every sample."""
        return lengths(self.weights.squared_norms)

    def least_dual(self) -> float:
        """The dual, no more than it is without rounding."""
        excess = self.state.excess(self.costs)
        return least_dual(self.largest_penalty(self.norms.most, 0), self.least_mass(), excess)

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
        alpha = self.problem.columns.alpha
        norms = self.largest_penalty(most, 0) - penalty(exact, alpha)
        taken = self.slack_error(stored) + norms + self.mass() - self.least_mass()
        return min(1.0, taken / certificate.primal) if certificate.primal > 0 else 0.0

    @abstractmethod
    def measured(self) -> tuple[Certificate, int]:
        """Rebuild U from the dual variables and measure primal and dual exactly; and the number of errors."""

    def run(self) -> None:
        """Passes until the certificate says so."""
        if self.started:
            self.certify()
            if not self.converged:
                self.history.clear()
        while not self.converged and len(self.history) < self.options.max_iter:
            if self.weights.grown or self.detached:  # not after the pass: a certificate makes them anew in any case
                self.rebuild()
            self.one_pass()
            self.history[-1]["seconds"] = self.seconds  # with passes that came after the estimate
            if self.certificate.gap * self.ratio <= self.options.tol:
                self.try_certificate()
            elif self.stalled():
                self.idle = 0
                if self.weights.dtype == np.float32:
                    self.go_double()
                elif self.unresolved() > _HOPE * self.goal:
                    self.certify()
                    self.rounding = max(self.rounding, self.unresolved())
                elif self.slack_share() > self.goal:
                    self.certify()
            if self.hopeless:
                break
            if self.options.callback is not None and self.options.callback(self.history[-1]):
                break

    def batch_pass(self) -> None:
        """Samples once each; leaves an estimate in ``certificate``."""
        total = max(float(self.costs.sum()), np.finfo(np.float64).tiny)
        primal_value, dual_value = self.certificate
        aim = max(0.2 * self.options.tol * primal_value, 0.1 * (primal_value - dual_value))
        tolerance = aim / total  # a violation that matters, per unit of cost
        visited, slack = self.visited()
        order, wrong = self.rng.permutation(visited), 0.0
        size = self.batch_size()
        batches = [order[lo : lo + size] for lo in range(0, len(order), size)]
        for samples, found, gain in self.visits(batches, tolerance):
            more, errors = self.observed(samples, found)
            slack, wrong, dual_value = slack + more, wrong + errors, dual_value + gain
        self.estimate(dual_value, slack, wrong)

    def visited(self) -> tuple[np.ndarray, float]:
        """The samples that a batch pass visits, and Σ C_i ξ_i of the others as they were last observed."""
        return np.flatnonzero(self.costs > 0), 0.0

    def visits(self, batches: list[np.ndarray], tolerance: float) -> Iterator[tuple[np.ndarray, Any, float]]:
        """Batch by batch: the samples, what was found of them before their steps, and the gain of the dual by these."""
        ready: Callable[[], Any] | None = None
        for k, samples in enumerate(batches):
            found = self.propose(samples, tolerance)
            batch = self.weights.batch(samples) if ready is None else ready()
            if k + 1 < len(batches):  # another thread prepares the next while this one takes the steps
                ready = self.team.ahead(partial(self.weights.batch, batches[k + 1]))
            updates, gain = self.improve(samples, found, batch.gram, tolerance)
            self.apply(batch, updates)
            yield samples, found, gain

    def apply(self, batch: Any, updates: Updates) -> None:
        """Change U as the steps of a batch say."""
        batch.apply(updates, self.team)
        if self.weights.overfull:
            self.rebuild()

    def estimate(self, dual_value: float, slack: float, wrong: float) -> None:
        """Note what a pass has observed."""
        self.certificate = Certificate(max(self.mass() - dual_value + slack, dual_value), dual_value)
        self.certified = False
        self.record(wrong)

    def batch_size(self) -> int:
        """Small at first, when labels go stale quickly, and on small data."""
        largest = self.largest_batch if self.history else self.first_batch
        return int(np.clip(len(self.costs) // 16, 16, largest))

    def try_certificate(self) -> None:
        """Certify; if the estimate was wrong, learn by how much, and go to double precision if it is wrong again."""
        estimate = self.certificate.gap
        self.certify()
        if self.converged:
            return
        gap, exact = self.reported()
        self.ratio = float(np.clip(gap / max(estimate, 1e-300), 0.1, self.most_ratio))
        self.misses += exact and gap > 0.9 * self.missed  # one that falls is not held up by rounding
        self.missed = gap
        if self.misses == 3 and self.weights.dtype == np.float32:
            self.go_double()

    def reported(self) -> tuple[float, bool]:
        """What the last certificate tells about the gap, and whether that is all there is to know."""
        return self.certificate.gap, True

    def stalled(self) -> bool:
        """Whether precision may be the limit: the estimate, which has its noise, has not fallen for some passes."""
        if self.certificate.gap < 0.9 * self.least:
            self.least, self.idle = self.certificate.gap, 0
        else:
            self.idle += 1
        return self.idle >= _IDLE

    def slack_share(self) -> float:
        """What a certificate for the weights as they are would allow for the rounding of slacks."""
        allowed = self.slack_error(self.weights.column_norms())
        return allowed / self.certificate.primal if self.certificate.primal > 0 else 0.0

    def unresolved(self) -> float:
        """Dual variables that steps take for zero, next to the largest C_i, as a part of the dual; 1 if they are more.

        A sample that needs no more than that never moves, however much its slack costs.
        """
        least = self.least_step * float(self.costs.max(initial=0.0))
        return min(1.0, least / self.certificate.dual) if self.certificate.dual > 0 else 0.0

    def go_double(self) -> None:
        """Weights in double precision from now on."""
        self.weights = self.weights.double()
        self.certify()

    def certify(self) -> None:
        """The exact gap of the weights as they are stored."""
        self.certificate, wrong = self.measured()
        self.rounding = self.share_of_rounding(self.certificate)
        self.certified = True
        if not self.history:  # the dual variables that were given are good enough as they are
            self.record(wrong)
        errors = wrong / max(1, len(self.costs))
        self.history[-1].update(self.values(), seconds=self.seconds, training_error=errors, certified=True)

    def values(self) -> Record:
        return {"primal": self.certificate.primal, "dual": self.certificate.dual, "gap": self.certificate.gap}

    def record(self, wrong: float) -> None:
        self.history.append(
            {
                "iteration": len(self.history) + 1,
                "seconds": self.seconds,
                **self.values(),
                "training_error": wrong / max(1, len(self.costs)),
                "planes": self.state.n_planes,
                "certified": False,
            }
        )


@dataclass(frozen=True)
class Dual:
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
        Prove the gap where passes end before ``tol`` is reached. Without it, the certificate is then not a number,
        unless the last pass has tried one. A run that goes on from dual variables begins with a certificate in any
        case, and one that is interrupted ends with one, since weights are made anew.
    """

    tol: float = 1e-3
    max_iter: int = 1000
    n_threads: int = 1
    seed: int = 0
    callback: Callback | None = None
    certify: bool = True

    kinds: ClassVar[dict[type[Problem], Callable[..., Ascent]]] = {}  # runs, by the problems that they solve

    def solve(self, problem: Problem, state: Any = None) -> Solution:
        """Solve from the given dual variables (``planes`` of a solution), which are changed, or from zero."""
        with Team(self.n_threads) as team:
            ascent = self._ascent(problem, state, team)
            interrupted = False
            try:
                ascent.run()
                if self.certify and not ascent.certified:
                    ascent.certify()
                elif not ascent.certified and ascent.weights.bulky:
                    ascent.rebuild()
            except KeyboardInterrupt:
                interrupted = True
                ascent.certify()
        certificate = ascent.certificate if ascent.certified else Certificate(np.nan, np.nan)
        return Solution(
            ascent.weights, certificate, ascent.history, ascent.converged, interrupted, ascent.state,
            ascent.learned_alpha, ascent.rounding if ascent.certified else 0.0,
        )  # fmt: skip

    def _ascent(self, problem: Problem, state: Any, team: Team) -> Ascent:
        """One run, ready to begin."""
        return self.kinds[type(problem)](self, problem, state, team)
