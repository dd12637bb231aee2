"""What a solver is given, and what it gives back. Independent hinges have theirs in :mod:`nhsvm.engine.hinges`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from nhsvm.columns import Columns
from nhsvm.engine.certificate import of_sums, path_sums
from nhsvm.engine.protocols import DualBlock, Weights
from nhsvm.engine.storage import make_table, make_weights
from nhsvm.engine.storage.table import TableWeights
from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import Graph, Ragged
from nhsvm.objective import Certificate
from nhsvm.oracles.leaves import SingleLabel
from nhsvm.oracles.protocol import Memory, Oracle
from nhsvm.storage.samples import prepare
from nhsvm.threads import Team
from nhsvm.typing import Array, BoolArray, FloatArray, IntArray, Matrix, PtrArray, Record

if TYPE_CHECKING:
    from nhsvm.engine.dual.planes import Planes

Watch: TypeAlias = Callable[[Weights, Record], bool]
"""What looks at the weights, and the record, after every pass; True ends the run."""
CHUNK = 2**18
"""Scores (samples × columns) that a thread makes at a time where all samples are measured."""


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

    X: Matrix
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
        return replace(self._labelled(rows), X=prepare(self.X[rows]), costs=self.costs[rows])

    def _labelled(self, rows: PtrArray) -> Self:
        """The same with the labels of some of the samples only."""
        raise NotImplementedError

    def about(self) -> tuple[npt.ArrayLike, ...]:
        """What must be equal for dual variables to be reused."""
        raise NotImplementedError

    def resume(self, dual: Any, before: FloatArray) -> None:
        """Make dual variables of costs ``before`` fit for these costs; a sample that had none begins as at U = 0."""
        dual.warm_start(before, self.costs)

    def weights(self) -> Weights:
        """Weights of zero for these samples."""
        return make_weights(self.X, self.columns.n_columns, self.bias, self.dtype, self.memory)

    def table(self) -> TableWeights:
        """The same as a table, for solvers that change all of it."""
        return make_table(self.X, self.columns.n_columns, self.bias, self.dtype, self.memory)


@dataclass(frozen=True, kw_only=True)
class SingleLabelProblem(Problem):
    """One label a sample.

    Attributes
    ----------
    leaves : array of n_samples
        True leaf of every sample.
    oracle : SingleLabel
    """

    leaves: IntArray
    oracle: SingleLabel

    def _labelled(self, rows: PtrArray) -> Self:
        return replace(self, leaves=self.leaves[rows])

    def slacks(self, weights: Weights | None, team: Team) -> tuple[FloatArray, IntArray]:
        """(ξ_i, leaf with the highest score) of every sample, in double precision; without weights, at U = 0."""
        slack, best = np.empty(self.n_samples), np.empty(self.n_samples, dtype=np.int32)
        n_columns = self.columns.n_columns

        def work(part: slice) -> None:
            scores = np.zeros((part.stop - part.start, n_columns))
            if weights is not None:
                weights.scores(np.arange(part.start, part.stop), scores)
            self.oracle.slacks(scores, self.leaves[part], slack[part], best[part])

        team.chunks(self.n_samples, CHUNK // max(1, n_columns), work)
        return slack, best

    def slack_errors(self, lengths_squared: FloatArray, squared_norms: FloatArray) -> FloatArray:
        """What rounding makes ξ_i wrong by at most, for samples of these ‖x_i‖² and weights of these ‖U_n‖².

        A bracket has the scores of two paths, divided by the loss in Eq. 13, whose square is at least the smallest α.
        """
        columns = self.columns
        longest = 2.0 * float(path_sums(squared_norms, columns).max(initial=0.0))
        if self.oracle.normalized:
            used = columns.alpha[columns.alpha > 0]
            longest /= float(np.sqrt(used.min(initial=1.0))) * (1.0 - 1e-9)
        return of_sums(self.X, lengths_squared, longest, 0.0, 2.0 * columns.longest)

    def about(self) -> tuple[npt.ArrayLike, ...]:
        return (self.leaves,)

    def resume(self, dual: Planes, before: FloatArray) -> None:
        dual.describe(self.leaves, self.oracle)
        dual.warm_start(before, self.costs)


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
        Its first stages find label sets on the way. For certificates each next one is queried only for samples for
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

    def _labelled(self, rows: PtrArray) -> Self:
        return replace(self, truth=self.truth.rows(rows))

    def about(self) -> tuple[npt.ArrayLike, ...]:
        relaxed = self.answers is not None
        return ("label sets", *self.truth, self.columns.nodes, self.oracle.allow_empty, relaxed)

    def __post_init__(self) -> None:
        last = self.columns.paths.indptr[1:] - 1
        own = self.columns.paths.indices[last[self.columns.paths.sizes() > 0]]
        if len(np.unique(own)) < self.columns.n_leaves or np.isin(own, self.above.indices).any():
            raise OptionError("label sets need a weight α > 0 on every leaf, but a leaf has none; use other weights")

    @cached_property
    def nests(self) -> bool:
        """Whether no column has two next above."""
        return bool((self.above.sizes() <= 1).all())

    @cached_property
    def offsets(self) -> FloatArray:
        """``offset``, or zeros."""
        return np.zeros(self.columns.n_columns) if self.offset is None else self.offset

    def add_loss(self, samples: PtrArray, scores: Array) -> None:
        """Make rewards of scores, in place and in their precision: add what the loss adds to each."""
        scores += (self.loss_weights + self.offsets).astype(scores.dtype, copy=False)
        true = self.truth.rows(samples)
        scores[true.owners(), true.indices] -= 2.0 * self.loss_weights[true.indices]

    def first_slacks(self) -> FloatArray:
        """Upper bounds of ξ_i at U = 0, without the oracle: of every node as if it could be chosen alone."""
        extra = np.maximum(self.loss_weights + self.offsets, 0.0)
        missed = self.loss_weights - self.offsets  # a true node is worth −missed
        change = np.maximum(-missed, 0.0) - extra + missed
        true = np.bincount(self.truth.owners(), change[self.truth.indices], self.n_samples)
        return np.asarray(extra.sum() + true, np.float64)

    def solved(
        self, oracle: Oracle, rewards: FloatArray, memory: Memory | None = None, samples: PtrArray | None = None
    ) -> tuple[Array, FloatArray, FloatArray]:
        """Label sets, or points, as columns, their values and bounds; with a memory, it says which samples."""
        n = len(rewards)
        full = rewards
        if self.columns.n_columns < self.n_nodes:
            full = np.zeros((n, self.n_nodes))
            full[:, self.columns.nodes] = rewards
        chosen: Array = np.empty((n, self.n_nodes), oracle.dtype)
        value, bound = np.empty(n), np.empty(n)
        oracle.solve(full, chosen, value, bound, memory=memory, rows=None if memory is None else samples)
        return (chosen if full is rewards else np.ascontiguousarray(chosen[:, self.columns.nodes])), value, bound

    def differ(self, samples: PtrArray, chosen: Array) -> BoolArray:
        """Whether label sets, as columns, are not the true ones."""
        sizes = self.truth.rows(samples).sizes()
        return np.asarray((self.true_sums(samples, chosen) < sizes) | (chosen.sum(axis=1) > sizes))

    def true_sums(self, samples: PtrArray, values: Array) -> FloatArray:
        """Σ_{n∈y_i} of values of the columns, such as rewards."""
        true = self.truth.rows(samples)
        owners = true.owners()
        return np.bincount(owners, values[owners, true.indices], len(samples)).astype(np.float64)


@dataclass
class Solution:
    """What a solver gives back: U, its certificate, and what a warm start needs.

    Attributes
    ----------
    weights : Weights
        U.
    certificate : Certificate
        Primal and dual value, or estimates of them; the dual of a method without one is 0, a bound that always holds.
        Not a number if they have not been measured.
    history : list of dicts
        One a pass; ``certified`` says whether its values are exact or estimates made on the way.
    converged, interrupted : bool
    dual : DualBlock, optional
        Dual variables, for a warm start.
    alpha : array of n_columns, optional
        Weights α of the columns, if the solver has learned them.
    rounding : float
        Part of the gap that only allows for what double precision may be wrong by.
    certified : bool
        Whether the certificate is proved, and no estimate.
    stopped : bool
        Whoever watched the weights has ended the run.
    stagnant : bool
        Passes were given up, since at their pace they would have had to go on far beyond the limit.
    """

    weights: Weights
    certificate: Certificate
    history: list[Record] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    dual: DualBlock | None = None
    alpha: FloatArray | None = None
    rounding: float = 0.0
    certified: bool = True
    stopped: bool = False
    stagnant: bool = False


class Solver(ABC):
    """A way to solve problems; solvers of your own derive from it.

    Attributes
    ----------
    takes_sets, takes_hinges : bool
        Whether it solves problems of label sets, and those of :mod:`nhsvm.engine.hinges`.
    takes_rows : bool
        Whether it learns weights in rows too, and not only as a table.
    learns_weights : bool
        Whether it learns α.
    proves : bool
        Whether it goes on until the gap is ``tol``, from the dual variables that another solution left if it is given
        some, and can do without the proof.
    streams : bool
        Whether it can learn from one part of the data after the other: as a :class:`StreamingSolver`.
    """

    takes_sets: ClassVar[bool] = True
    takes_hinges: ClassVar[bool] = False
    takes_rows: ClassVar[bool] = True
    learns_weights: ClassVar[bool] = False
    proves: ClassVar[bool] = True
    streams: ClassVar[bool] = False

    @abstractmethod
    def solve(self, problem: Any, start: Any = None, /) -> Solution:
        """Solve it; ``start`` is what an earlier solution left for a warm start."""

    def watched(self, watch: Watch) -> Solver:
        """The same solver, which calls ``watch`` with weights and record after every pass, and ends if it says so."""
        raise OptionError(f"early_stopping needs a solver that can be watched, and {type(self).__name__} cannot")


class StreamingSolver(Solver):
    """One that can learn from one part of the data after the other."""

    streams = True

    @abstractmethod
    def begin(self, problem: Any, /) -> Any:
        """The state before the first part."""

    @abstractmethod
    def partial(self, problem: Any, state: Any, /) -> None:
        """Learn from one more part, which changes the state."""
