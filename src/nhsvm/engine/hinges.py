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

from typing import Any, NamedTuple

import numpy as np

from nhsvm.engine.ascent import Ascent, Dual, Options
from nhsvm.engine.certificate import largest_primal, of_sums, path_sums
from nhsvm.engine.dual.boxes import (
    Boxes,
    candidates_kernel,
)
from nhsvm.engine.problem import HingeProblem, Measured
from nhsvm.engine.samples import Updates
from nhsvm.objective import Certificate
from nhsvm.oracles.leaves import Proposals, leaf_scores
from nhsvm.threads import Team
from nhsvm.typing import FloatArray

_NEW = 64  # leaves that a visit may add to those of a sample, beside the true ones
_BATCH = 256  # samples
_SCORES = 2**18  # scores (samples × columns) in one chunk of a certificate


class Found(NamedTuple):
    """What is known of a batch before its steps."""

    leaves: Proposals
    hinges: Measured


class HingeAscent(Ascent):
    """The dual variables are numbers in boxes; every pass is over batches."""

    state: Boxes
    least_step = 0.0  # none is rounded to 0

    def __init__(self, options: Options, problem: HingeProblem, state: Boxes | None, team: Team) -> None:
        self.problem = problem
        super().__init__(
            options, problem.weights(), Boxes(problem.n_samples) if state is None else state, problem.costs, team
        )
        self.certificate = Certificate(float(problem.costs.sum()) * problem.columns.n_leaves, 0.0)
        self.active = problem.n_samples * problem.columns.n_leaves

    @property
    def started(self) -> bool:
        return self.state.n_planes > 0

    def one_pass(self) -> None:
        """A batch pass; a violation that does not matter is shared by the leaves that make up a sample's gap."""
        self.share = max(1.0, (self.active + self.state.n_planes) / self.problem.n_samples)
        self.active = 0
        self.batch_pass()

    def batch_size(self) -> int:
        """As many as there are: hinges do not compete for a sample's C, so leaves found before a batch stay useful."""
        return _BATCH

    def propose(self, samples: np.ndarray, tolerance: float) -> Found:
        problem, state, n = self.problem, self.state, len(samples)
        n_leaves = problem.columns.n_leaves
        n_true = problem.truth.indptr[samples + 1] - problem.truth.indptr[samples]
        width = min(n_leaves, int((state.count[samples] + n_true).max()) + _NEW)
        found = Found(Proposals.empty(n, width), Measured.empty(n))
        scorer = self.weights.scorer(samples)
        scores = np.empty((n, self.weights.n_columns), dtype=self.weights.dtype)
        n_new = min(_NEW, n_leaves)

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            rows = slice(lo, hi)
            by_leaf = np.empty((hi - lo, n_leaves), dtype=scores.dtype)
            leaf_scores(problem.columns, scores[rows], by_leaf)
            problem.measure(samples[rows], by_leaf, found.hinges.part(rows))
            leaves = found.leaves.part(rows)
            candidates_kernel(by_leaf, samples[rows], problem.truth, state.pool, n_new, tolerance / self.share, leaves)

        self.team.split(n, work)
        return found

    def improve(self, samples: np.ndarray, found: Found, gram: Any, tolerance: float) -> tuple[Updates, float]:
        norms = self.weights.squared_norms[samples]
        return self.state.step(samples, found.leaves, self.problem, norms, gram, tolerance / self.share)

    def observed(self, samples: np.ndarray, found: Found) -> tuple[float, float]:
        slack, active, wrong = found.hinges
        self.active += int(active.sum())
        return float(self.costs[samples] @ slack), int(wrong.sum())

    def mass(self) -> float:
        return self.state.mass()

    def least_mass(self) -> float:
        return self.state.least_mass()

    def slack_errors(self, squared_norms: FloatArray) -> FloatArray:
        columns = self.problem.columns
        every = float(path_sums(squared_norms, columns).sum())
        terms = 2.0 * columns.n_leaves + columns.longest
        return of_sums(self.problem.X, self.weights.squared_norms, 3.0 * every, 3.0 * columns.n_leaves, terms)

    def coefficients(self) -> tuple[Updates, FloatArray]:
        columns, none = self.problem.columns, np.empty(0, np.int32)
        return self.state.coefficients(none, columns), self.state.doubt(none, self.lengths, columns)

    def measured(self) -> tuple[Certificate, int]:
        self.rebuild()
        stored = self.norms.stored
        hinges = self._hinges()
        self.active = int(hinges.active.sum())
        upper = self.largest_penalty(stored) + self.slack_error(stored)
        certificate = Certificate(largest_primal(upper, hinges.slack, self.costs), self.least_dual())
        return certificate, int(hinges.wrong.sum())

    def _hinges(self) -> Measured:
        """Of every sample, in double precision."""
        problem, n, columns = self.problem, self.problem.n_samples, self.problem.columns
        found = Measured.empty(n)
        step = max(1, _SCORES // max(1, columns.n_columns))

        def work(lo: int, hi: int) -> None:
            for start in range(lo * step, min(n, hi * step), step):
                rows = np.arange(start, min(n, start + step))
                scores, by_leaf = np.empty((len(rows), columns.n_columns)), np.empty((len(rows), columns.n_leaves))
                self.weights.scores(rows, scores)
                leaf_scores(columns, scores, by_leaf)
                problem.measure(rows, by_leaf, found.part(slice(start, start + len(rows))))

        self.team.split(-(-n // step), work)
        return found


Dual.kinds[HingeProblem] = HingeAscent
