"""What the parts of the engine ask of each other: storages of weights, batches of samples, and dual variables.

Anything that keeps one of these works with all that keep the others. What a storage cannot do, or need not, it says by
an attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from nhsvm.columns import Columns
from nhsvm.engine.samples import Samples, Scorer, Updates
from nhsvm.oracles.leaves import Proposals
from nhsvm.threads import Team
from nhsvm.typing import FloatArray, IntArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine.dual.block import Paths, Steps
    from nhsvm.engine.dual.planes import Batch, Planes, Pool

Numbers = npt.NDArray[np.int64]


class SampleBatch(Protocol):
    """Samples that change the weights together."""

    @property
    def gram(self) -> npt.NDArray[Any]:
        """Inner products of the samples."""

    def apply(self, updates: Updates, team: Team) -> None:
        """U_n += coefficient · x_t for every update."""


class Weights(Protocol):
    """U, of given samples: kept by tables and by rows, see :mod:`nhsvm.engine.storage`.

    Attributes
    ----------
    needs_addresses : bool
        A weight by itself can be read only once :meth:`addresses` has found it.
    grown : bool
        Making it anew would free much memory.
    overfull : bool
        It takes more memory than it may; making it anew may help.
    bulky : bool
        There is no room for a copy of what is learned, unless it was just made anew.
    """

    needs_addresses: bool
    bias: float
    n_samples: int
    n_features: int

    @property
    def grown(self) -> bool: ...
    @property
    def overfull(self) -> bool: ...
    @property
    def bulky(self) -> bool: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def squared_norms(self) -> FloatArray:
        """‖x_i‖² of every sample."""

    def entries(self) -> Samples:
        """The samples, as kernels read them."""

    def scores(self, rows: Numbers, out: npt.NDArray[Any]) -> None:
        """``out[t] = U x`` for the samples ``rows``; summed in the precision of ``out``."""

    def scorer(self, rows: Numbers) -> Scorer:
        """``scorer(lo, hi, out)`` fills ``out[lo:hi]`` with the scores of the samples ``rows[lo:hi]``."""

    def head_scores(self, rows: Numbers, head: int, out: npt.NDArray[Any]) -> None:
        """Scores that may leave out, of columns from ``head`` on, what takes long to read."""

    def add_tails(self, rows: Numbers, leaves: IntArray, columns: Columns, found: Proposals) -> None:
        """Make the values of labels exact that were proposed by :meth:`head_scores` up to ``columns.head``."""

    def batch(self, rows: Numbers) -> SampleBatch:
        """Samples that change the weights together; does not read the weights."""

    def working_set_is_cheap(self, planes: Planes, columns: Columns) -> bool:
        """Whether reading only the columns of the working set is much less work than reading them all."""

    def column_cost(self) -> float:
        """Time to read one column by itself, in units of one among all columns."""

    def addresses(
        self, samples: PtrArray, leaves: IntArray, planes: Planes, columns: Columns, team: Team
    ) -> Iterator[tuple[PtrArray, Any]]:
        """Some samples at a time, and where they find the weights of their planes, if addresses are needed."""

    def working_set_pass(
        self, batch: Batch, pool: Pool, paths: Paths, tolerance: float, gaps: FloatArray, addresses: Any
    ) -> float:
        """Block steps over the working set, one sample after the other; returns the gain of the dual."""

    def rebuild(self, updates: Updates, team: Team) -> tuple[FloatArray, FloatArray]:
        """U from nothing, in double precision; ‖U_n‖² of the sums, and of the sums as stored."""

    def column_norms(self) -> FloatArray:
        """‖U_n‖² of every column."""

    def rescale(self, factors: FloatArray) -> None:
        """Multiply U_n of every column by a factor."""

    def double(self) -> Self:
        """The same in double precision; weights start at zero."""

    def intercept(self) -> npt.NDArray[Any]:
        """What the constant feature adds to the score of every column."""

    def learned(self) -> Any:
        """U as a model keeps it."""


class DualBlock(Protocol):
    """The dual variables of samples, of any kind: they can be scaled, and made fit for other costs."""

    @property
    def n_planes(self) -> int:
        """Numbers that are kept."""

    def excess(self, costs: FloatArray) -> float:
        """By how much of C_i the dual variables of a sample exceed it at most."""

    def rescale(self, factors: FloatArray) -> None:
        """Multiply all variables of every sample."""

    def warm_start(self, before: FloatArray, now: FloatArray) -> None:
        """Make these variables fit for other costs."""


class SetBlock(DualBlock, Protocol):
    """Node marginals of samples with label sets: laid out for the steps of a batch, and stored again."""

    def layout(self, samples: PtrArray, rewards: FloatArray, chosen: npt.NDArray[Any], team: Team) -> Any:
        """The variables of some samples with those of the label sets found, ready for steps."""

    def steps(self, layout: Any, costs: FloatArray, norms: FloatArray, alpha: FloatArray, allow_empty: bool) -> Steps:
        """Block steps on a layout."""

    def keep(self, samples: PtrArray, layout: Any) -> None:
        """Store what steps have made of a layout."""

    def settle(self, costs: FloatArray, allow_empty: bool) -> None:
        """Make the variables feasible as they stand, whatever rounding has left."""

    def beta(self, costs: FloatArray) -> Updates:
        """β_in of all samples."""
