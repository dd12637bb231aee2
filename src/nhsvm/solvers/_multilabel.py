"""The dual method for samples with several labels: the same passes, with node marginals as dual variables.

Only trees, where the block step is exact; see :mod:`nhsvm.solvers._marginals`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import FloatArray, Ragged
from nhsvm.objective import Certificate, dual, penalty, primal
from nhsvm.solvers._ascent import SWEEPS, Ascent, Options
from nhsvm.solvers._dense import DenseWeights
from nhsvm.solvers._marginals import Active, Marginals
from nhsvm.solvers._problem import Weights
from nhsvm.solvers._sparse import SparseWeights
from nhsvm.solvers._threads import Team
from nhsvm.solvers._updates import Updates

_SCORES = 2**18  # scores (samples × nodes) in one chunk of a certificate


class SetOracle(Protocol):
    """The best label set under node rewards; see :class:`nhsvm.oracles.TreeMultilabel`."""

    allow_empty: bool

    def solve(self, rewards: FloatArray, chosen: Any, value: FloatArray, bound: FloatArray) -> None: ...


@dataclass(frozen=True)
class SetProblem:
    """min_U ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i(U) over label sets; see :mod:`nhsvm.objective`.

    Attributes
    ----------
    X : csr_array or array
        As :func:`nhsvm.solvers.prepare` makes it.
    truth : Ragged
        Columns of the closure of every sample's labels, ascending.
    costs : array of n_samples
        C_i ≥ 0.
    columns : Columns
        Of a tree whose leaves have a column each.
    oracle : SetOracle
    loss_weights : array of n_columns
        w_n of the loss Σ_n w_n 1[n in one of y, y_i]; nodes that are no columns have none.
    n_nodes : int
        Of the graph that the oracle knows.
    bias : float
        Value of the constant feature, 0 for none.
    dtype : dtype, optional
        Precision of the weights; that of X by default.
    """

    X: Any
    truth: Ragged
    costs: FloatArray
    columns: Columns
    oracle: SetOracle
    loss_weights: FloatArray
    n_nodes: int
    bias: float = 1.0
    dtype: npt.DTypeLike | None = None

    @property
    def n_samples(self) -> int:
        return len(self.costs)

    def weights(self) -> Weights:
        """Weights of zero for these samples."""
        kind = SparseWeights if sp.issparse(self.X) else DenseWeights
        return kind.zeros(self.X, self.columns.n_columns, self.bias, self.dtype)

    def rewards(self, samples: np.ndarray, scores: npt.NDArray[Any], *, loss: bool = True) -> FloatArray:
        """Scores of the columns plus what the loss adds to each."""
        out = scores.astype(np.float64)
        if loss:
            out += self.loss_weights
            true = self.truth.rows(samples)
            out[true.owners(), true.indices] -= 2.0 * self.loss_weights[true.indices]
        return out

    def best(self, rewards: FloatArray) -> tuple[npt.NDArray[np.uint8], FloatArray]:
        """The best label sets, as columns, and upper bounds of their values."""
        n = len(rewards)
        full = rewards
        if self.columns.n_columns < self.n_nodes:
            full = np.zeros((n, self.n_nodes))
            full[:, self.columns.nodes] = rewards
        chosen, value, bound = np.empty((n, self.n_nodes), np.uint8), np.empty(n), np.empty(n)
        self.oracle.solve(full, chosen, value, bound)
        return (chosen if full is rewards else np.ascontiguousarray(chosen[:, self.columns.nodes])), bound

    def true_rewards(self, samples: np.ndarray, rewards: FloatArray) -> FloatArray:
        """Σ_{n∈y_i} of the rewards."""
        true = self.truth.rows(samples)
        owners = true.owners()
        sums = np.bincount(owners, weights=rewards[owners, true.indices], minlength=len(samples)).astype(np.float64)
        return sums


class Found(NamedTuple):
    """What is known of a batch before its steps."""

    active: Active
    slack: FloatArray


class SetAscent(Ascent):
    """Label sets on a tree: the dual variables are node marginals."""

    state: Marginals

    def __init__(self, options: Options, problem: SetProblem, state: Marginals | None, team: Team) -> None:
        self.problem = problem
        self._started = state is not None
        made = Marginals(problem.truth, problem.costs) if state is None else state
        super().__init__(options, problem.weights(), made, problem.costs, team)
        self.certificate = Certificate(float(problem.costs @ self._slacks()[0]), 0.0)

    @property
    def started(self) -> bool:
        return self._started

    def one_pass(self) -> None:
        self.batch_pass()

    def propose(self, samples: np.ndarray, tolerance: float) -> Found:
        problem, n = self.problem, len(samples)
        scorer = self.weights.scorer(samples)
        scores = np.empty((n, self.weights.n_columns), dtype=self.weights.values.dtype)
        rewards, chosen = np.empty(scores.shape), np.empty(scores.shape, np.uint8)
        slack = np.empty(n)

        def work(lo: int, hi: int) -> None:
            scorer(lo, hi, scores)
            part = slice(lo, hi)
            rewards[part] = problem.rewards(samples[part], scores[part])
            chosen[part], bound = problem.best(rewards[part])
            slack[part] = bound - problem.true_rewards(samples[part], rewards[part])

        self.team.split(n, work)
        return Found(self.state.active(samples, rewards, chosen, problem.columns), slack)

    def improve(self, samples: np.ndarray, found: Found, gram: Any, tolerance: float) -> tuple[Updates, float]:
        problem = self.problem
        return self.state.improve(
            samples, problem.costs[samples], self.weights.squared_norms[samples], found.active, gram, problem.columns,
            problem.oracle.allow_empty, tolerance, SWEEPS,
        )  # fmt: skip

    def met(self, samples: np.ndarray, found: Found) -> tuple[float, float]:
        # the best sets without the loss are looked for by certificates only, so errors are not known
        return float(self.costs[samples] @ found.slack), np.nan

    def mass(self) -> float:
        return self.state.loss(self.problem.truth, self.costs, self.problem.loss_weights)

    def measured(self) -> tuple[Certificate, int]:
        alpha = self.problem.columns.alpha
        coefficients = self.state.coefficients(self.problem.truth, self.costs, alpha)
        exact, stored = self.weights.rebuild(coefficients, self.team)
        slack, wrong = self._slacks()
        certificate = Certificate(
            primal(penalty(stored, alpha), slack, self.costs), dual(penalty(exact, alpha), self.mass())
        )
        return certificate, int(wrong.sum())

    def _slacks(self) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """ξ_i, by upper bounds if the oracle has no more, and whether the best set without the loss is a wrong one."""
        problem, n = self.problem, self.problem.n_samples
        slack, wrong = np.empty(n), np.empty(n, dtype=bool)
        step = max(1, _SCORES // problem.n_nodes)

        def work(lo: int, hi: int) -> None:
            for start in range(lo * step, min(n, hi * step), step):
                rows = np.arange(start, min(n, start + step))
                part = slice(start, start + len(rows))
                scores = np.empty((len(rows), problem.columns.n_columns))
                self.weights.scores(rows, scores)
                rewards = problem.rewards(rows, scores)
                slack[part] = problem.best(rewards)[1] - problem.true_rewards(rows, rewards)
                best = problem.best(scores)[0]
                true = problem.truth.rows(rows)
                right = np.bincount(true.owners(), weights=best[true.owners(), true.indices], minlength=len(rows))
                sizes = true.sizes()
                wrong[part] = (right < sizes) | (best.sum(axis=1) > sizes)

        self.team.split(-(-n // step), work)
        return np.maximum(slack, 0.0), wrong
