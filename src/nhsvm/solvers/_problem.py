"""What a solver is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy.typing as npt

from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import FloatArray, Graph, IntArray, PtrArray
from nhsvm.losses import LossRows
from nhsvm.objective import Certificate
from nhsvm.solvers._memory import Weights, make_table, make_weights
from nhsvm.storage.samples import prepare

Record = dict[str, Any]
Callback = Callable[[Record], Any]


class Oracle(Protocol):
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


@dataclass(frozen=True)
class Problem:
    """min_U ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i(U); see :mod:`nhsvm.objective`.

    Attributes
    ----------
    X : csr_array or array
        As :func:`prepare` makes it.
    leaves : array of n_samples
        True leaf of every sample.
    costs : array of n_samples
        C_i ≥ 0.
    columns : Columns
    oracle : Oracle
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
    leaves: IntArray
    costs: FloatArray
    columns: Columns
    oracle: Oracle
    bias: float = 1.0
    dtype: npt.DTypeLike | None = None
    graph: Graph | None = None
    memory: int | None = None

    @property
    def n_samples(self) -> int:
        return len(self.leaves)

    def part(self, rows: PtrArray) -> Problem:
        """The same of some of the samples."""
        return replace(self, X=prepare(self.X[rows]), leaves=self.leaves[rows], costs=self.costs[rows])

    def weights(self) -> Weights:
        """Weights of zero for these samples."""
        return make_weights(self.X, self.columns.n_columns, self.bias, self.dtype, self.memory)

    def table(self) -> Any:
        """The same as a table, for solvers that change all of it."""
        return make_table(self.X, self.columns.n_columns, self.bias, self.dtype, self.memory)


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
