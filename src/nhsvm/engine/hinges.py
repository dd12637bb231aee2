"""Independent hinges at all leaves, tied by the hierarchy: HR-SVM's recursive regularisation on the dual method.

    min_U  ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i Σ_l max(0, 1 − y_il s_i(l)),   s_i(l) = Σ_{n∈Ā(l)} U_n·x_i,

with y_il = 1 for the labels of sample i and −1 for all other leaves. On a tree, w_l = Σ_{n∈Ā(l)} U_n and U_n = w_n −
w_parent(n), so that with α = 1 the penalty is the ½ Σ_n ‖w_n − w_parent(n)‖² of Gopal and Yang. Its dual has one number
b_il ∈ [0, C_i] for each sample and leaf, and U_n = α_n V_n, V_n = Σ_i x_i Σ_{l below n} y_il b_il:

    max_b  Σ_il b_il − ½ Σ_n α_n ‖V_n‖².

A node counts once for every leaf below it; that is the difference to label sets, where it counts once.

References
----------
S. Gopal, Y. Yang (2013). Recursive regularization for large-scale classification with hierarchical and graphical
dependencies. KDD.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from nhsvm.engine.ascent import KINDS, Ascent, Coefficients, Dual, FitState, Mass, PassTuning
from nhsvm.engine.certificate import of_sums, path_sums
from nhsvm.engine.dual.block import Sweeps
from nhsvm.engine.dual.boxes import Boxes, candidates_kernel, hinges_kernel
from nhsvm.engine.problem import CHUNK, Problem
from nhsvm.engine.samples import Updates
from nhsvm.hierarchy.graph import Ragged
from nhsvm.objective import Certificate
from nhsvm.oracles.leaves import Proposals, leaf_scores
from nhsvm.typing import Array, BoolArray, FloatArray, PtrArray


class Hinges(NamedTuple):
    """What counts as found: the leaf of the highest score, or all leaves with a positive one.

    Attributes
    ----------
    single : bool
        One label a sample.
    allow_empty : bool
        A label set may be empty; if not, the leaf of the highest score is always in it.
    """

    single: bool
    allow_empty: bool = False


class Measured(NamedTuple):
    """The hinges of some samples."""

    slack: FloatArray  # their sum
    active: PtrArray  # how many are above 0
    wrong: BoolArray  # whether the labels found are not the true ones

    @classmethod
    def empty(cls, n: int) -> Measured:
        return cls(np.empty(n), np.empty(n, np.int64), np.empty(n, dtype=bool))

    def part(self, which: slice) -> Measured:
        """The same of some of the samples, as views."""
        return Measured._make(array[which] for array in self)


@dataclass(frozen=True, kw_only=True)
class HingeProblem(Problem):
    """A hinge at every leaf: ξ_i = Σ_l max(0, 1 − y_il s_i(l)).

    Attributes
    ----------
    truth : Ragged
        Positions of the leaves that are labels of every sample.
    oracle : Hinges
    """

    truth: Ragged
    oracle: Hinges

    def _labelled(self, rows: PtrArray) -> Self:
        return replace(self, truth=self.truth.rows(rows))

    def about(self) -> tuple[npt.ArrayLike, ...]:
        return ("hinges", *self.truth, self.columns.nodes)  # not what counts as found

    @cached_property
    def path_sums(self) -> FloatArray:
        """Σ_{n∈Ā(l)} α_n of every leaf: the curvature of b_il, for a sample of length one."""
        paths = self.columns.paths
        return np.bincount(paths.owners(), self.columns.alpha[paths.indices], self.columns.n_leaves).astype(np.float64)

    def measure(self, samples: PtrArray, scores: Array, out: Measured) -> Array:
        """The scores of all leaves, from those of the columns, and the hinges of samples."""
        by_leaf = np.empty((len(samples), self.columns.n_leaves), dtype=scores.dtype)
        leaf_scores(self.columns, scores, by_leaf)
        hinges_kernel(by_leaf, samples, *self.truth, *self.oracle, *out)
        return by_leaf


@dataclass(frozen=True)
class HingeTuning(PassTuning):
    """Constants of independent hinges; set by trial, without a record."""

    # hinges do not compete for a sample's C, so leaves found before a batch stay useful: batches are large at once
    smallest_batch: int = 256
    first_batch: int = 256
    sweeps: int = 100  # over the samples of a batch, at most
    slow: float = 0.02  # of what the sweeps over a batch have gained: one that gains less is the last
    least_step: float = 0.0  # no dual variable is rounded to 0
    new: int = 64  # leaves that a visit may add to those of a sample, beside the true ones


@dataclass
class HingeFit(FitState[Boxes]):
    """The state of a run on independent hinges."""

    active: int = 0  # hinges above 0, when last counted


class Found(NamedTuple):
    """What is known of a batch before its steps."""

    leaves: Proposals
    hinges: Measured


class HingeAscent(Ascent[HingeProblem, Boxes, Found]):
    """The dual variables are numbers in boxes; every pass is over batches."""

    tuning: HingeTuning = HingeTuning()
    fit: HingeFit

    @classmethod
    def first_fit(cls, options: Dual, problem: HingeProblem, dual: Boxes | None) -> HingeFit:
        boxes = Boxes(problem.n_samples) if dual is None else dual
        first = Certificate(float(problem.costs.sum()) * problem.columns.n_leaves, 0.0)
        rng, every = np.random.default_rng(options.seed), problem.n_samples * problem.columns.n_leaves
        return HingeFit(boxes, problem.weights(), rng, first, started=boxes.n_planes > 0, active=every)

    def one_pass(self) -> None:
        """A batch pass; a violation that does not matter is shared by the leaves that make up a sample's gap."""
        self.share = max(1.0, (self.fit.active + self.dual.n_planes) / self.problem.n_samples)
        self.fit.active = 0
        self.batch_pass()

    def propose(self, samples: PtrArray, tolerance: float) -> Found:
        problem, n, n_leaves = self.problem, len(samples), self.problem.columns.n_leaves
        n_true = problem.truth.indptr[samples + 1] - problem.truth.indptr[samples]
        width = min(n_leaves, int((self.dual.count[samples] + n_true).max()) + self.tuning.new)
        found = Found(Proposals.empty(n, width), Measured.empty(n))
        scorer = self.weights.scorer(samples)
        scores = np.empty((n, self.weights.n_columns), dtype=self.weights.dtype)
        pool, n_new, least = self.dual.pool, min(self.tuning.new, n_leaves), tolerance / self.share

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            rows = slice(lo, hi)
            by_leaf = problem.measure(samples[rows], scores[rows], found.hinges.part(rows))
            candidates_kernel(by_leaf, samples[rows], problem.truth, pool, n_new, least, found.leaves.part(rows))

        self.team.split(n, work)
        return found

    def improve(self, samples: PtrArray, found: Found, gram: Array, tolerance: float) -> tuple[Updates, float]:
        norms, sweeps = self.weights.squared_norms[samples], Sweeps(self.tuning.sweeps, self.tuning.slow)
        return self.dual.step(samples, found.leaves, self.problem, norms, gram, tolerance / self.share, sweeps)

    def observed(self, samples: PtrArray, found: Found) -> tuple[float, float]:
        slack, active, wrong = found.hinges
        self.fit.active += int(active.sum())
        return float(self.costs[samples] @ slack), int(wrong.sum())

    def mass(self) -> float:
        return self.dual.mass()

    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        columns = self.problem.columns
        every = float(path_sums(squared_norms, columns).sum())
        terms = 2.0 * columns.n_leaves + columns.longest
        return of_sums(self.problem.X, self.weights.squared_norms, 3.0 * every, 3.0 * columns.n_leaves, terms)

    def coefficients(self) -> Coefficients:
        columns, none, boxes = self.problem.columns, np.empty(0, np.int32), self.dual
        updates, doubt = boxes.coefficients(none, columns), boxes.doubt(none, self.lengths, columns)
        return Coefficients(updates, doubt, Mass(boxes.mass(), boxes.least_mass()))

    def measured(self) -> tuple[Certificate, int]:
        self.rebuild()
        problem, hinges = self.problem, Measured.empty(self.problem.n_samples)

        def work(part: slice) -> None:
            rows = np.arange(part.start, part.stop)
            scores = np.empty((len(rows), problem.columns.n_columns))
            self.weights.scores(rows, scores)
            problem.measure(rows, scores, hinges.part(part))

        self.team.chunks(problem.n_samples, CHUNK // max(1, problem.columns.n_columns), work)
        self.fit.active = int(hinges.active.sum())
        return self.proved(hinges.slack), int(hinges.wrong.sum())


KINDS[HingeProblem] = lambda problem, options: HingeAscent
