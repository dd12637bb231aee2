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

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import BoolArray, FloatArray, PtrArray, Ragged
from nhsvm.objective import Certificate
from nhsvm.oracles.leaves import Proposals, leaf_scores
from nhsvm.solvers._ascent import Ascent, Options
from nhsvm.solvers._carry import carried
from nhsvm.solvers._independent_step import (
    box_batch_kernel,
    candidates_kernel,
    drop_kernel,
    hinges_kernel,
    spread_kernel,
)
from nhsvm.solvers._memory import Weights, make_weights
from nhsvm.solvers._planes import Planes
from nhsvm.solvers._rounding import excess, largest_primal, of_sums, path_sums
from nhsvm.solvers._updates import Updates
from nhsvm.solvers.dual import Dual
from nhsvm.storage.samples import prepare
from nhsvm.threads import Team

_NEW = 64  # leaves that a visit may add to those of a sample, beside the true ones
_BATCH = 256  # samples
_SWEEPS = 100  # over them, at most
_SLOW = 0.02  # of what the sweeps over a batch have gained: one that gains less is the last
_SCORES = 2**18  # scores (samples × columns) in one chunk of a certificate


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


@dataclass(frozen=True)
class IndependentProblem:
    """min_U ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i Σ_l max(0, 1 − y_il s_i(l)).

    Attributes
    ----------
    X : csr_array or array
        As :func:`nhsvm.solvers.prepare` makes it.
    truth : Ragged
        Positions of the leaves that are labels of every sample.
    costs : array of n_samples
        C_i ≥ 0.
    columns : Columns
    oracle : Hinges
    bias : float
        Value of the constant feature, 0 for none.
    dtype : dtype, optional
        Precision of the weights; that of X by default.
    memory : int, optional
        Bytes that weights may take; without a limit they are a table.
    """

    X: Any
    truth: Ragged
    costs: FloatArray
    columns: Columns
    oracle: Hinges
    bias: float = 1.0
    dtype: npt.DTypeLike | None = None
    memory: int | None = None

    @property
    def n_samples(self) -> int:
        return len(self.costs)

    def part(self, rows: PtrArray) -> IndependentProblem:
        """The same of some of the samples."""
        return replace(self, X=prepare(self.X[rows]), truth=self.truth.rows(rows), costs=self.costs[rows])

    def weights(self) -> Weights:
        """Weights of zero for these samples."""
        return make_weights(self.X, self.columns.n_columns, self.bias, self.dtype, self.memory)

    @cached_property
    def path_sums(self) -> FloatArray:
        """Σ_{n∈Ā(l)} α_n of every leaf: the curvature of b_il, for a sample of length one."""
        paths = self.columns.paths
        return np.bincount(paths.owners(), self.columns.alpha[paths.indices], self.columns.n_leaves).astype(np.float64)

    def measure(self, samples: PtrArray, scores: npt.NDArray[Any], out: Measured) -> None:
        """The hinges of samples, from scores of leaves."""
        hinges_kernel(scores, samples, *self.truth, *self.oracle, *out)


class Measured(NamedTuple):
    """The hinges of some samples."""

    slack: FloatArray  # their sum
    active: npt.NDArray[np.int64]  # how many are above 0
    wrong: BoolArray  # whether the labels found are not the true ones

    @classmethod
    def empty(cls, n: int) -> Measured:
        return cls(np.empty(n), np.empty(n, np.int64), np.empty(n, dtype=bool))

    def part(self, which: slice) -> Measured:
        """The same of some of the samples, as views."""
        return Measured._make(array[which] for array in self)


class Found(NamedTuple):
    """What is known of a batch before its steps."""

    leaves: Proposals
    hinges: Measured


class Boxes(Planes):
    """b_il > 0 of all samples, in the lists that planes are kept in: ``scale`` is y_il, ``loss`` is 1."""

    def step(
        self, samples: PtrArray, found: Proposals, problem: IndependentProblem, norms: FloatArray, gram: Any,
        tolerance: float, sweeps: int = _SWEEPS, slow: float = _SLOW,
    ) -> tuple[Updates, float]:  # fmt: skip
        """Block steps for the samples of a batch, in order; returns the change of U and the gain of the dual."""
        columns, size = problem.columns, found.size
        room = min(columns.n_columns, int(size.sum(dtype=np.int64)) * columns.longest)
        corrections = np.empty((room, len(samples)), dtype=gram.dtype)
        before = found.weight.copy()
        gain = box_batch_kernel(
            problem.costs[samples], norms, found.leaf, found.weight, found.value, found.scale, size, before, gram,
            corrections, *columns.paths, columns.alpha, problem.path_sums, tolerance, sweeps, slow,
        )  # fmt: skip
        moved = (np.arange(before.shape[1]) < size[:, None]) & (found.weight != before)
        change = (found.weight[moved] - before[moved]) * found.scale[moved]
        updates = spread(moved.sum(axis=1), found.leaf[moved], change, columns)
        drop_kernel(found.leaf, found.weight, found.scale, size)
        self.add(samples, found)
        return updates, float(gain)

    def coefficients_of(self, columns: Columns) -> Updates:
        """α_n Σ_{l below n} y_il b_il of all samples."""
        at = self.flat()[1]
        return spread(self.count, self.leaf[at], self.weight[at] * self.scale[at], columns)

    def excess(self, costs: FloatArray) -> float:
        """By how much of C_i a dual variable exceeds it at most."""
        largest = np.zeros(len(self.count))
        np.maximum.at(largest, np.repeat(np.arange(len(self.count)), self.count), self.weight[self.flat()[1]])
        return excess(largest, costs, 1.0)

    def carry(self, before: FloatArray, now: FloatArray) -> None:
        """Make these variables of one path of C fit for the next costs, each by itself."""
        at = self.flat()[1]
        owner = np.repeat(np.arange(len(self.count)), self.count)
        factors = carried(self.weight[at], before[owner], now[owner])
        self.weight[at] = np.minimum(self.weight[at] * factors, now[owner])  # not beyond it by rounding either


def spread(sizes: npt.NDArray[Any], leaf: npt.NDArray[Any], amounts: FloatArray, columns: Columns) -> Updates:
    """Amounts on leaves, lists of these sizes one after the other, as α_n times their sums on columns."""
    indptr: PtrArray = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    most = np.bincount(owner, columns.paths.sizes()[leaf], len(sizes))
    room = int(np.minimum(most, columns.n_columns).sum())
    made = Updates(np.zeros(len(indptr), np.int64), np.empty(room, np.int32), np.empty(room))
    total = spread_kernel(indptr, leaf, amounts, *columns.paths, columns.alpha, *made)
    return Updates(made.indptr, made.columns[:total], made.values[:total])


class IndependentAscent(Ascent):
    """The dual variables are numbers in boxes; every pass is over batches."""

    state: Boxes
    least_step = 0.0  # none is rounded to 0

    def __init__(self, options: Options, problem: IndependentProblem, state: Boxes | None, team: Team) -> None:
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
        pool = state.start, state.count, state.leaf, state.weight, state.scale
        n_new = min(_NEW, n_leaves)

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            rows = slice(lo, hi)
            by_leaf = np.empty((hi - lo, n_leaves), dtype=scores.dtype)
            leaf_scores(problem.columns, scores[rows], by_leaf)
            problem.measure(samples[rows], by_leaf, found.hinges.part(rows))
            leaves = found.leaves.part(rows)[:6]
            candidates_kernel(by_leaf, samples[rows], *problem.truth, *pool, n_new, tolerance / self.share, *leaves)

        self.team.split(n, work)
        return found

    def improve(self, samples: np.ndarray, found: Found, gram: Any, tolerance: float) -> tuple[Updates, float]:
        norms = self.weights.squared_norms[samples]
        return self.state.step(samples, found.leaves, self.problem, norms, gram, tolerance / self.share)

    def met(self, samples: np.ndarray, found: Found) -> tuple[float, float]:
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
        return self.state.coefficients_of(columns), self.state.doubt(none, self.lengths, columns)

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


class IndependentDual(Dual):
    """Block dual ascent for independent hinges; options as :class:`nhsvm.solvers.Dual` has them."""

    @classmethod
    def like(cls, other: Dual) -> IndependentDual:
        """One with the options of another."""
        return cls(**{field.name: getattr(other, field.name) for field in fields(other)})

    def _ascent(self, problem: Any, state: Any, team: Team) -> Ascent:
        return IndependentAscent(self, problem, state, team)
