"""What a solver is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from nhsvm.columns import Columns
from nhsvm.engine.dual.boxes import hinges_kernel
from nhsvm.engine.protocols import Weights
from nhsvm.engine.storage import make_table, make_weights
from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import Graph, Ragged
from nhsvm.losses import LossRows
from nhsvm.objective import Certificate
from nhsvm.oracles.protocol import Oracle
from nhsvm.storage.samples import prepare
from nhsvm.typing import BoolArray, FloatArray, IntArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine.dual.planes import Planes

Record = dict[str, Any]
Callback = Callable[[Record], Any]


class SingleLabelOracle(Protocol):
    """What a solver asks about labels; see :class:`nhsvm.oracles.SingleLabel`."""

    normalized: bool

    def loss_rows(self, leaves: IntArray) -> tuple[FloatArray, IntArray]: ...

    def losses(self, leaves: IntArray) -> LossRows: ...

    def slacks(self, node_scores: Any, leaves: IntArray, slack: FloatArray, best: IntArray) -> None: ...

    def propose(
        self,
        node_scores: Any,
        leaves: IntArray,
        costs: FloatArray,
        losses: LossRows,
        planes: tuple[PtrArray, IntArray, IntArray, FloatArray],
        n_new: int,
        tolerance: float,
        out: Any,
    ) -> None: ...


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


@dataclass(frozen=True, kw_only=True)
class Problem:
    """min_U ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i(U); see :mod:`nhsvm.objective`. The kinds differ in what ξ_i is.

    Attributes
    ----------
    X : csr_array or array
        As :func:`prepare` makes it.
    costs : array of n_samples
        C_i ≥ 0.
    columns : Columns
    bias : float
        Value of the constant feature, 0 for none.
    dtype : dtype, optional
        Precision of the weights; that of X by default.
    graph : Graph, optional
        The hierarchy, for solvers that learn α.
    memory : int, optional
        Bytes that weights may take; without a limit they are a table.
    """

    X: Any
    costs: FloatArray
    columns: Columns
    bias: float = 1.0
    dtype: npt.DTypeLike | None = None
    graph: Graph | None = None
    memory: int | None = None

    @property
    def n_samples(self) -> int:
        return len(self.costs)

    def part(self, rows: PtrArray) -> Self:
        """The same of some of the samples."""
        return replace(self, X=prepare(self.X[rows]), costs=self.costs[rows], **self._labels_of(rows))

    def _labels_of(self, rows: PtrArray) -> dict[str, Any]:
        """The fields that know the labels of samples, for some of these."""
        raise NotImplementedError

    def about(self) -> tuple[npt.ArrayLike, ...]:
        """What dual variables are about: those of a problem with an equal one can be gone on from."""
        raise NotImplementedError

    def resumed(self, state: Any, before: FloatArray) -> bool:
        """Make dual variables of costs ``before`` fit for this problem; whether they can be gone on from."""
        if ((self.costs > 0) & ~(before > 0)).any():  # a sample that cost nothing has no label sets to go on from
            return False
        state.warm_start(before, self.costs)
        return True

    def weights(self) -> Weights:
        """Weights of zero for these samples."""
        return make_weights(self.X, self.columns.n_columns, self.bias, self.dtype, self.memory)

    def table(self) -> Any:
        """The same as a table, for solvers that change all of it."""
        return make_table(self.X, self.columns.n_columns, self.bias, self.dtype, self.memory)


@dataclass(frozen=True, kw_only=True)
class SingleLabelProblem(Problem):
    """One label a sample.

    Attributes
    ----------
    leaves : array of n_samples
        True leaf of every sample.
    oracle : SingleLabelOracle
    """

    leaves: IntArray
    oracle: SingleLabelOracle

    def _labels_of(self, rows: PtrArray) -> dict[str, Any]:
        return {"leaves": self.leaves[rows]}

    def about(self) -> tuple[npt.ArrayLike, ...]:
        return (self.leaves,)

    def resumed(self, state: Planes, before: FloatArray) -> bool:
        state.describe(self.leaves, self.oracle)
        state.warm_start(before, self.costs)
        return True


@dataclass(frozen=True, kw_only=True)
class LabelSetProblem(Problem):
    """A set of labels a sample; every leaf must have a column.

    Attributes
    ----------
    truth : Ragged
        Columns of the closure of every sample's labels, ascending.
    above : Ragged
        For every column the columns next above, see :func:`nhsvm.columns.column_parents`.
    oracle : Oracle
        Its first stages find label sets on the way. For certificates each next one is queried only about samples for
        which the last was not good enough.
    loss_weights : array of n_columns
        w_n of the loss Σ_n w_n 1[n in one of y, y_i]; nodes that are no columns have none.
    n_nodes : int
        Of the graph that the oracle knows.
    offset : array of n_columns, optional
        Added to the score of every column.
    answers : Oracle, optional
        Finds label sets where ``oracle`` finds points of a relaxation, float64 in place of 0 and 1; errors are counted
        with it. The problem that is solved is then that of the relaxation.
    """

    truth: Ragged
    above: Ragged
    oracle: Oracle
    loss_weights: FloatArray
    n_nodes: int
    offset: FloatArray | None = None
    answers: Oracle | None = None

    def _labels_of(self, rows: PtrArray) -> dict[str, Any]:
        return {"truth": self.truth.rows(rows)}

    def about(self) -> tuple[npt.ArrayLike, ...]:
        relaxed = self.answers is not None
        return ("label sets", *self.truth, self.columns.nodes, self.oracle.allow_empty, relaxed)

    def __post_init__(self) -> None:
        last = self.columns.paths.indptr[1:] - 1
        own = self.columns.paths.indices[last[self.columns.paths.sizes() > 0]]
        if len(np.unique(own)) < self.columns.n_leaves or np.isin(own, self.above.indices).any():
            raise OptionError("label sets need a weight α > 0 on every leaf, but a leaf has none; use other weights")

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


@dataclass(frozen=True, kw_only=True)
class HingeProblem(Problem):
    """A hinge at every leaf: ξ_i = Σ_l max(0, 1 − y_il s_i(l)); see :mod:`nhsvm.engine.hinges`.

    Attributes
    ----------
    truth : Ragged
        Positions of the leaves that are labels of every sample.
    oracle : Hinges
    """

    truth: Ragged
    oracle: Hinges

    def _labels_of(self, rows: PtrArray) -> dict[str, Any]:
        return {"truth": self.truth.rows(rows)}

    def about(self) -> tuple[npt.ArrayLike, ...]:
        return ("hinges", *self.truth, self.columns.nodes, self.oracle.allow_empty)

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


@dataclass
class Solution:
    """A model with its proof.

    Attributes
    ----------
    weights : Weights
        U.
    certificate : Certificate
        Primal and dual value; the dual of a method without one is 0, a bound that always holds. Not a number if nobody
        has measured them.
    history : list of dicts
        One a pass; ``certified`` says whether its values are exact or estimates made on the way.
    converged, interrupted : bool
    planes : Planes, Marginals or None
        Dual variables, for a warm start.
    alpha : array of n_columns, optional
        Weights α of the columns, if the solver has learned them.
    rounding : float
        Part of the gap that only allows for what double precision may be wrong by.
    """

    weights: Weights
    certificate: Certificate
    history: list[Record] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    planes: Any = None
    alpha: FloatArray | None = None
    rounding: float = 0.0


class Solver(Protocol):
    """A way to solve problems; the state is what a solution has left to go on from."""

    def solve(self, problem: Any, state: Any = ..., /) -> Solution: ...


@runtime_checkable
class StreamingSolver(Solver, Protocol):
    """One that can learn from one part of the data after the other."""

    def begin(self, problem: Any, /) -> Any:
        """The state before the first part."""

    def partial(self, problem: Any, state: Any, /) -> None:
        """Learn from one more part, which changes the state."""
