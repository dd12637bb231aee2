"""What a solver is given to learn from label sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.columns import Columns
from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import FloatArray, Graph, PtrArray, Ragged
from nhsvm.oracles.protocol import Oracle
from nhsvm.solvers._memory import Weights, make_weights
from nhsvm.storage.samples import prepare


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
        Leaves must have a column each.
    above : Ragged
        For every column the columns next above, see :func:`nhsvm.columns.column_parents`.
    oracle : Oracle
        Its first stages find label sets on the way. For certificates each next one is asked only about samples for
        which the last was not good enough.
    loss_weights : array of n_columns
        w_n of the loss Σ_n w_n 1[n in one of y, y_i]; nodes that are no columns have none.
    n_nodes : int
        Of the graph that the oracle knows.
    bias : float
        Value of the constant feature, 0 for none.
    dtype : dtype, optional
        Precision of the weights; that of X by default.
    offset : array of n_columns, optional
        Added to the score of every column.
    answers : Oracle, optional
        Finds label sets where ``oracle`` finds points of a relaxation, float64 in place of 0 and 1; errors are counted
        with it. The problem that is solved is then that of the relaxation.
    graph : Graph, optional
        The hierarchy, for solvers that learn α.
    memory : int, optional
        Bytes that weights may take; without a limit they are a table.
    """

    X: Any
    truth: Ragged
    costs: FloatArray
    columns: Columns
    above: Ragged
    oracle: Oracle
    loss_weights: FloatArray
    n_nodes: int
    bias: float = 1.0
    dtype: npt.DTypeLike | None = None
    offset: FloatArray | None = None
    answers: Oracle | None = None
    graph: Graph | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        last = self.columns.paths.indptr[1:] - 1
        own = self.columns.paths.indices[last[self.columns.paths.sizes() > 0]]
        if len(np.unique(own)) < self.columns.n_leaves or np.isin(own, self.above.indices).any():
            raise OptionError("label sets need a weight α > 0 on every leaf, but a leaf has none; use other weights")

    @property
    def n_samples(self) -> int:
        return len(self.costs)

    def part(self, rows: PtrArray) -> SetProblem:
        """The same of some of the samples."""
        return replace(self, X=prepare(self.X[rows]), truth=self.truth.rows(rows), costs=self.costs[rows])

    def weights(self) -> Weights:
        """Weights of zero for these samples."""
        return make_weights(self.X, self.columns.n_columns, self.bias, self.dtype, self.memory)

    @cached_property
    def offsets(self) -> FloatArray:
        """``offset``, or zeros."""
        return np.zeros(self.columns.n_columns) if self.offset is None else self.offset

    def rewards(self, samples: np.ndarray, scores: npt.NDArray[Any]) -> FloatArray:
        """Scores of the columns plus what the loss adds to each."""
        out = np.array(scores, np.float64)
        self.add_loss(samples, out)
        return out

    def add_loss(self, samples: np.ndarray, scores: npt.NDArray[Any]) -> None:
        """Make rewards of scores, in place and in their precision."""
        scores += (self.loss_weights + self.offsets).astype(scores.dtype, copy=False)
        true = self.truth.rows(samples)
        scores[true.owners(), true.indices] -= 2.0 * self.loss_weights[true.indices]

    def first_slacks(self) -> FloatArray:
        """Upper bounds of ξ_i at U = 0, without asking the oracle: of every node as if it could be chosen alone."""
        extra = np.maximum(self.loss_weights + self.offsets, 0.0)
        missed = self.loss_weights - self.offsets  # a true node is worth −missed
        change = np.maximum(-missed, 0.0) - extra + missed
        owners = self.truth.owners()
        true = np.bincount(owners, weights=change[self.truth.indices], minlength=self.n_samples)
        return np.asarray(extra.sum() + true, np.float64)

    def asked(
        self, oracle: Oracle, rewards: FloatArray, **remembered: Any
    ) -> tuple[npt.NDArray[Any], FloatArray, FloatArray]:
        """Label sets, or points, as columns, their values and bounds; ``remembered`` goes to the oracle."""
        n = len(rewards)
        full = rewards
        if self.columns.n_columns < self.n_nodes:
            full = np.zeros((n, self.n_nodes))
            full[:, self.columns.nodes] = rewards
        chosen: npt.NDArray[Any] = np.empty((n, self.n_nodes), oracle.dtype)
        value, bound = np.empty(n), np.empty(n)
        oracle.solve(full, chosen, value, bound, **remembered)
        return (chosen if full is rewards else np.ascontiguousarray(chosen[:, self.columns.nodes])), value, bound

    def differ(self, samples: np.ndarray, chosen: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Whether label sets, as columns, are not the true ones."""
        true = self.truth.rows(samples)
        owners = true.owners()
        right = np.bincount(owners, weights=chosen[owners, true.indices], minlength=len(samples))
        wrong: npt.NDArray[np.bool_] = (right < true.sizes()) | (chosen.sum(axis=1) > true.sizes())
        return wrong

    def true_rewards(self, samples: np.ndarray, rewards: FloatArray) -> FloatArray:
        """Σ_{n∈y_i} of the rewards."""
        true = self.truth.rows(samples)
        owners = true.owners()
        sums = np.bincount(owners, weights=rewards[owners, true.indices], minlength=len(samples)).astype(np.float64)
        return sums
