"""Block dual ascent with a certificate: the default solver.

The dual of :mod:`nhsvm.objective` has one block of variables a sample: its *planes*, wrong labels with a weight. Every
block step raises the dual. There are two kinds of rounds, and the one that reads less memory is taken.

*Batch pass*: all samples in random order, a batch at a time. (1) The batch is scored and the oracle names its most
violating labels, with the weights as they are; (2) the samples take their block steps in order, several sweeps, each
seeing the exact effect of the others through the inner products of the batch; (3) the weights take the sum of all
changes. Only the choice of labels is a batch old. (1) and (3) run on all threads.

*Search pass, then cached passes*: the oracle adds violating labels for all samples, on all threads; then samples take
block steps over the planes they have, one after the other, each reading and changing only the weights of its planes.

Results are the same, bit for bit, for any number of threads. The slacks that a pass meets estimate the gap; when it
seems small enough, the weights are rebuilt from the dual variables in double precision and the exact oracle goes
through all samples. The gap so found is the one that is reported, and that ends the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.objective import Certificate, dual, penalty, primal
from nhsvm.oracles._proposals import Proposals
from nhsvm.solvers._planes import Batch, Planes
from nhsvm.solvers._problem import Callback, Problem, Record, Solution
from nhsvm.solvers._threads import Team

_BATCH = 256
_NEW = 32  # labels a visit may add to those of a sample
_FEW = 8  # the same in a search pass, which is followed by many passes over the planes in use
_SWEEPS = 5
_FOCUS = 5  # passes over the samples with most of the gap, between two over all
_CACHED = 200  # passes over the planes in use between two full passes, at most
_IDLE = 10  # passes without progress after which single precision is given up
_ROWS = 2**18  # scores (samples × columns) in one chunk of the certifying pass


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
    """

    tol: float = 1e-3
    max_iter: int = 1000
    n_threads: int = 1
    seed: int = 0
    callback: Callback | None = None

    def solve(self, problem: Problem, planes: Planes | None = None) -> Solution:
        """Solve from the given dual variables, which are changed, or from zero."""
        with Team(self.n_threads) as team:
            ascent = _Ascent(self, problem, planes, team)
            interrupted = False
            try:
                ascent.run()
            except KeyboardInterrupt:
                interrupted = True
            if interrupted or not ascent.certified:
                ascent.certify()
        return Solution(
            ascent.weights, ascent.certificate, ascent.history, ascent.converged, interrupted, ascent.planes
        )


class _Ascent:
    """One run: the state of the dual and what has been seen of the gap."""

    def __init__(self, options: Dual, problem: Problem, planes: Planes | None, team: Team) -> None:
        self.options, self.problem, self.team = options, problem, team
        self.began = perf_counter()
        self.rng = np.random.default_rng(options.seed)
        self.weights = problem.weights()
        self.planes = Planes(problem.n_samples) if planes is None else planes
        self.history: list[Record] = []
        self.certified = False
        self.ratio = 0.4  # of the certified gap to the estimate of the pass before; learned
        self.misses = 0
        self.least, self.idle = np.inf, 0
        self.certificate = Certificate(float(problem.costs.sum()), 0.0)
        if planes is not None and planes.n_planes:
            self.certify()

    @property
    def converged(self) -> bool:
        return self.certified and self.certificate.gap <= self.options.tol

    def run(self) -> None:
        """Passes until the certificate says so."""
        while not self.converged and len(self.history) < self.options.max_iter:
            if self.weights.cheap(self.planes, self.problem.columns):
                self.search_pass()
                if self.certificate.gap > self.options.tol:
                    self.cached_passes()
            else:
                self.batch_pass()
            if self.certificate.gap * self.ratio <= self.options.tol:
                self.try_certificate()
            elif self.stalled():
                self.go_double()
            if self.options.callback is not None and self.options.callback(self.history[-1]):
                break

    def batch_pass(self) -> None:
        """Every sample once; leaves an estimate in ``certificate``."""
        problem = self.problem
        total = max(float(problem.costs.sum()), np.finfo(np.float64).tiny)
        primal_value, dual_value = self.certificate
        aim = max(0.2 * self.options.tol * primal_value, 0.1 * (primal_value - dual_value))
        tolerance = aim / total  # a violation that matters, per unit of cost
        slack, wrong = 0.0, 0
        order = self.rng.permutation(np.flatnonzero(problem.costs > 0))
        size = self.batch_size()
        batches = [order[lo : lo + size] for lo in range(0, len(order), size)]
        ready: Callable[[], Any] | None = None
        for k, samples in enumerate(batches):
            found, leaves, costs = self.propose(samples, tolerance, _NEW)
            batch = self.weights.batch(samples) if ready is None else ready()
            if k + 1 < len(batches):  # another thread prepares the next while this one takes the steps
                ready = self.team.ahead(partial(self.weights.batch, batches[k + 1]))
            described = Batch(
                samples, leaves, costs, self.weights.squared_norms[samples], not problem.oracle.normalized
            )
            updates, gain = self.planes.improve(described, found, batch.gram, problem.columns, tolerance, _SWEEPS)
            batch.apply(updates, self.team)
            slack += float(costs @ found.slack)
            wrong += int((found.best != leaves).sum())
            dual_value += gain
        self.certificate = Certificate(max(self.planes.mass() - dual_value + slack, dual_value), dual_value)
        self.certified = False
        self.record(wrong)

    def search_pass(self) -> None:
        """New planes for every sample, with the weights as they are, whose gap is thereby measured."""
        problem = self.problem
        dual_value = self.certificate.dual
        tolerance = 0.1 * (self.certificate.primal - dual_value) / float(problem.costs.sum())
        slack, wrong = 0.0, 0
        order = np.flatnonzero(problem.costs > 0)
        size = int(np.clip(_ROWS // max(1, self.weights.n_columns), 64, 4096))
        for lo in range(0, len(order), size):
            samples = order[lo : lo + size]
            found, leaves, costs = self.propose(samples, tolerance, _FEW)
            slack += float(costs @ found.slack)
            wrong += int((found.best != leaves).sum())
            self.planes.add(samples, found)
        self.certificate = Certificate(max(self.planes.mass() - dual_value + slack, dual_value), dual_value)
        self.certified = False
        self.record(wrong)

    def cached_passes(self) -> None:
        """Passes over the planes in use, until these are near their best."""
        problem, planes = self.problem, self.planes
        primal_value, dual_value = self.certificate
        gap = primal_value - dual_value
        tolerance = 0.1 * max(self.options.tol * primal_value, 0.3 * gap) / float(problem.costs.sum())
        enough = max(0.8 * self.options.tol * primal_value, 0.15 * gap)
        for _ in range(_CACHED):
            samples = np.flatnonzero(planes.count > 0)
            gaps, gain = self.cached_pass(samples, tolerance)
            dual_value += gain
            left = gaps.sum()
            if left <= enough:
                break
            samples = samples[gaps > 0.5 * gaps.mean()]  # most of the gap is in few samples
            for _ in range(_FOCUS):
                gaps, gain = self.cached_pass(samples, tolerance)
                dual_value += gain
                if gaps.sum() <= 0.3 * left:
                    break
        self.certificate = Certificate(primal_value, dual_value)

    def cached_pass(self, samples: np.ndarray, tolerance: float) -> tuple[FloatArray, float]:
        """Block steps over the planes in use of some samples; their gaps as met, and the gain of the dual."""
        problem, planes = self.problem, self.planes
        order = self.rng.permutation(len(samples))
        met = np.empty(len(samples))
        unscaled = not problem.oracle.normalized
        gain = self.weights.cached_pass(
            samples[order], problem.leaves, problem.costs, planes.pool, problem.columns, unscaled, tolerance, met
        )
        gaps = np.empty(len(samples))
        gaps[order] = met
        return gaps, gain

    def batch_size(self) -> int:
        """Small at first, when labels go stale quickly, and on small data."""
        largest = _BATCH if self.history else _BATCH // 2
        return int(np.clip(self.problem.n_samples // 16, 16, largest))

    def propose(self, samples: np.ndarray, tolerance: float, n_new: int) -> tuple[Proposals, Any, Any]:
        """The planes of some samples and up to ``n_new`` more, with true leaves and costs."""
        problem = self.problem
        leaves, costs = problem.leaves[samples], problem.costs[samples]
        scorer = self.weights.scorer(samples)
        rows, which = problem.oracle.loss_rows(leaves)
        start, count, leaf, weight = self.planes.of(samples)
        found = Proposals.empty(len(samples), int(count.max()) + n_new)
        scores = np.empty((len(samples), self.weights.n_columns), dtype=self.weights.values.dtype)

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            part = slice(lo, hi)
            problem.oracle.propose(
                scores[part], leaves[part], costs[part], (rows, which[part]),
                (start[part], count[part], leaf, weight), n_new, tolerance, found.part(part),
            )  # fmt: skip

        self.team.split(len(samples), work)
        return found, leaves, costs

    def try_certificate(self) -> None:
        """Certify; if the estimate was wrong, learn by how much, and go to double precision if it is wrong again."""
        estimate = self.certificate.gap
        self.certify()
        if self.converged:
            return
        self.ratio = float(np.clip(self.certificate.gap / max(estimate, 1e-300), 0.1, 1.0))
        self.misses += 1
        if self.misses == 3 and self.weights.values.dtype == np.float32:
            self.go_double()

    def stalled(self) -> bool:
        """Whether single precision is the limit: the estimate, which has its noise, has not fallen for some passes."""
        if self.certificate.gap < 0.9 * self.least:
            self.least, self.idle = self.certificate.gap, 0
        else:
            self.idle += 1
        return self.idle >= _IDLE and self.weights.values.dtype == np.float32

    def go_double(self) -> None:
        """Weights in double precision from now on."""
        self.weights = self.weights.double()
        self.certify()

    def certify(self) -> None:
        """Rebuild U from the dual variables and measure primal and dual exactly."""
        problem, columns = self.problem, self.problem.columns
        exact, stored = self.weights.rebuild(self.planes.coefficients(problem.leaves, columns), self.team)
        slack = np.empty(problem.n_samples)
        best = np.empty(problem.n_samples, dtype=np.int32)
        step = max(1, _ROWS // max(1, columns.n_columns))
        n_chunks = -(-problem.n_samples // step)

        def measure(lo: int, hi: int) -> None:
            for k in range(lo, hi):
                part = np.arange(k * step, min(problem.n_samples, (k + 1) * step))
                scores = np.empty((len(part), columns.n_columns))
                self.weights.scores(part, scores)
                problem.oracle.slacks(
                    scores, problem.leaves[part], slack[part[0] : part[-1] + 1], best[part[0] : part[-1] + 1]
                )

        self.team.split(n_chunks, measure)
        self.certificate = Certificate(
            primal(penalty(stored, columns.alpha), slack, problem.costs),
            dual(penalty(exact, columns.alpha), self.planes.mass()),
        )
        self.certified = True
        if self.history:
            error = float(np.mean(best != problem.leaves))
            self.history[-1].update(self.values(), training_error=error, certified=True)

    def values(self) -> Record:
        return {"primal": self.certificate.primal, "dual": self.certificate.dual, "gap": self.certificate.gap}

    def record(self, wrong: int) -> None:
        self.history.append(
            {
                "iteration": len(self.history) + 1,
                "seconds": perf_counter() - self.began,
                **self.values(),
                "training_error": wrong / max(1, self.problem.n_samples),
                "planes": self.planes.n_planes,
                "certified": False,
            }
        )
