"""Block dual ascent with a certificate: the default solver.

The dual of :mod:`nhsvm.objective` has one block of variables a sample: its *planes*, wrong labels with a weight. Every
block step raises the dual. There are two kinds of rounds, and the one that reads less memory is taken.

*Batch pass*: all samples in random order, a batch at a time. (1) The batch is scored and the oracle names its most
violating labels, with the weights as they are; (2) the samples take their block steps in order, several sweeps, each
seeing the exact effect of the others through the inner products of the batch; (3) the weights take the sum of all
changes. Only the choice of labels is a batch old. (1) and (3) run on all threads.

*Search pass, then cached passes*: the oracle adds violating labels for all samples, on all threads; then samples take
block steps over the planes they have, one after the other, each reading and changing only the weights of its planes.

Weights in rows of any length have no quick way to a single weight. There, cached passes follow a batch pass: the places
of the weights that they need are found once, for as many samples as memory has room for. In the first pass, whose early
steps are soon out of date, they also come in between, and labels are chosen by the weights that are quick to read.

Results are the same, bit for bit, for any number of threads. The slacks that a pass meets estimate the gap (on large
DAGs some samples do, after the pass); when it seems small enough, the weights are rebuilt from the dual variables in
double precision and the exact oracle goes through all samples. The gap so found is the one that is reported, and that
ends the fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.objective import Certificate
from nhsvm.oracles.leaves import Proposals
from nhsvm.solvers._ascent import SWEEPS, Ascent
from nhsvm.solvers._in_use import InUse
from nhsvm.solvers._measure import measure, slack_errors
from nhsvm.solvers._multilabel import SetAscent
from nhsvm.solvers._places import KEPT
from nhsvm.solvers._planes import Batch, Planes
from nhsvm.solvers._problem import Callback, Problem, Solution
from nhsvm.solvers._rounding import largest_primal
from nhsvm.solvers._set_problem import SetProblem
from nhsvm.solvers._updates import Updates
from nhsvm.threads import Team

_NEW = 32  # labels a visit may add to those of a sample
_FEW = 8  # the same in a pass that is followed by many passes over the planes in use
_TURNS = KEPT  # parts of the first pass; after each of them a pass over the planes in use so far
_SCORES = 2**18  # scores (samples × columns) in one chunk of a search pass


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

    def solve(self, problem: Problem | SetProblem, state: Any = None) -> Solution:
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
            ascent.weights, certificate, ascent.history, ascent.converged, interrupted, ascent.state, ascent.shipped,
            ascent.rounding if ascent.certified else 0.0,
        )  # fmt: skip

    def _ascent(self, problem: Problem | SetProblem, state: Any, team: Team) -> Ascent:
        """One run, ready to begin."""
        if isinstance(problem, SetProblem):
            return SetAscent(self, problem, state, team)
        return PlanesAscent(self, problem, state, team)


class PlanesAscent(InUse):
    """Single labels: the dual variables are planes, and passes over those in use may be cheaper than over all."""

    first_batch, largest_batch = 64, 320

    def __init__(self, options: Dual, problem: Problem, planes: Planes | None, team: Team) -> None:
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
        return bool(self.weights.placed) and self.fresh and not self.history

    def one_pass(self) -> None:
        if self.weights.cheap(self.state, self.problem.columns):
            self.search_pass()
            if self.certificate.gap > self.options.tol:
                self.cached_passes()
        else:
            self.batch_pass()
            if self.weights.placed and self.certificate.gap > self.options.tol:
                self.placed_passes()

    def visits(self, batches: list[np.ndarray], tolerance: float) -> Iterator[tuple[np.ndarray, Any, float]]:
        """In the first pass, where places have to be found, also passes over the planes in use so far."""
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
            more, errors = self.met(samples, found)
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
        weights: Any = self.weights
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
        problem = self.problem
        leaves, costs, norms = problem.leaves[samples], problem.costs[samples], self.weights.squared_norms[samples]
        batch = Batch(samples, leaves, costs, norms, not problem.oracle.normalized)
        return self.state.improve(batch, found, gram, problem.columns, tolerance, SWEEPS)

    def met(self, samples: np.ndarray, found: Proposals) -> tuple[float, float]:
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
        self.kept.clear()  # places in rows that are made anew
        super().rebuild()

    def measured(self) -> tuple[Certificate, int]:
        problem = self.problem
        self.rebuild()
        slack, best = measure(problem, self.weights, self.team)
        stored = self.norms.stored
        upper = self.largest_penalty(stored) + self.slack_error(stored)
        certificate = Certificate(largest_primal(upper, slack, problem.costs), self.least_dual())
        return certificate, int((best != problem.leaves).sum())
