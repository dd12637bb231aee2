"""What the parts of the engine ask of each other: storages of weights, batches of samples, and dual variables.

Anything that keeps one of these works with all that keep the others. What a storage need not do has a default here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from nhsvm.columns import Columns
from nhsvm.engine.samples import Updates
from nhsvm.hierarchy.graph import Ragged
from nhsvm.oracles.leaves import Proposals
from nhsvm.storage import Weights as Learned
from nhsvm.storage.samples import Entries
from nhsvm.threads import Team
from nhsvm.typing import Array, DType, FloatArray, IntArray, Matrix, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine.dual.block import Layout, Paths, Rounds
    from nhsvm.engine.dual.planes import Batch, Planes, Pool

Scorer = Callable[[int, int, Array], None]
_OVERHEAD = 100  # time that a batch spends on a sample beside its columns, in units of one column


class SampleBatch(Protocol):
    """Samples that change the weights together."""

    @property
    def gram(self) -> Array:
        """Inner products of the samples."""

    def apply(self, updates: Updates, team: Team) -> None:
        """U_n += coefficient · x_t for every update; the same bits for any number of threads."""


class Weights(Protocol):
    """U, of given samples; storages are registered in :mod:`nhsvm.engine.storage`.

    Attributes
    ----------
    bias : float
        Value of the constant feature, 0 for none.
    needs_addresses : bool
        A weight by itself can be read only once :meth:`addresses` has found it.
    """

    bias: float
    n_samples: int
    n_features: int
    needs_addresses: bool = False

    @classmethod
    def zeros(cls, X: Matrix, n_columns: int, bias: float, dtype: DType, limit: int | None) -> Self:
        """U = 0 for samples, or a MemoryLimitError if that is too large."""

    @property
    def n_columns(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def squared_norms(self) -> FloatArray:
        """‖x_i‖² of every sample, the constant feature included."""

    def entries(self) -> Entries:
        """The samples, as kernels read them."""

    def scores(self, rows: PtrArray, out: Array) -> None:
        """``out[t] = U x`` for the samples ``rows``; summed in the precision of ``out``."""

    def batch(self, rows: PtrArray) -> SampleBatch:
        """Samples that change the weights together; does not read the weights."""

    def column_cost(self) -> float:
        """Time to read one column by itself, in units of one among all columns; infinite if there is no quick way."""

    def rebuild(self, updates: Updates, team: Team) -> tuple[FloatArray, FloatArray]:
        """U_n = Σ_t coefficient · x_t from nothing, in double precision, over all samples.

        Returns
        -------
        exact, stored : arrays of n_columns
            ‖U_n‖² of the sums, and of the sums as stored, which differ when the weights are float32.
        """

    def column_norms(self) -> FloatArray:
        """‖U_n‖² of every column."""

    def rescale(self, factors: FloatArray) -> None:
        """Multiply U_n of every column by a factor."""

    def double(self) -> Self:
        """The same in double precision; weights start at zero."""

    def learned(self) -> Learned:
        """U as a model keeps it; these weights may be zero afterwards."""

    # what holds for a storage that does not say otherwise

    @property
    def grown(self) -> bool:
        """Whether making it anew would free much memory."""
        return False

    @property
    def overfull(self) -> bool:
        """Whether it takes more memory than it may; making it anew may help."""
        return False

    @property
    def bulky(self) -> bool:
        """Whether there is no room for a copy of what is learned, unless it was just made anew."""
        return False

    def scorer(self, rows: PtrArray) -> Scorer:
        """``scorer(lo, hi, out)`` fills ``out[lo:hi]`` with the scores of the samples ``rows[lo:hi]``."""
        return lambda lo, hi, out: self.scores(rows[lo:hi], out[lo:hi])

    def head_scores(self, rows: PtrArray, head: int, out: Array) -> None:
        """Scores that may leave out, of columns from ``head`` on, what takes long to read."""
        self.scores(rows, out)

    def column_scores(self, which: PtrArray, samples: PtrArray, columns: Ragged, base: FloatArray, out: Array) -> None:
        """Of each of the samples ``samples[which]`` its row of ``columns``: scores plus ``base``, into ``out``.

        Both are aligned with ``columns.indices``. Asked of storages whose :meth:`column_cost` is finite.
        """
        raise NotImplementedError(f"{type(self).__name__} does not read columns by themselves")

    def working_set_pass(
        self, batch: Batch, pool: Pool, paths: Paths, tolerance: float, gaps: FloatArray, addresses: object
    ) -> float:
        """Block steps over the working set, one sample after the other; returns the gain of the dual.

        Asked of storages that need addresses.
        """
        raise NotImplementedError(f"{type(self).__name__} needs no addresses")

    def working_set_passes(
        self, rounds: Rounds, rng: np.random.Generator, batch: Batch, pool: Pool, paths: Paths, tolerance: float
    ) -> tuple[float, int, bool]:
        """Such passes over all samples, which are all in the batch; (gain of the dual, visits, no more are needed).

        Asked of storages whose :meth:`column_cost` is finite.
        """
        raise NotImplementedError(f"{type(self).__name__} does not read columns by themselves")

    def add_tails(self, rows: PtrArray, leaves: IntArray, columns: Columns, found: Proposals) -> None:
        """Make the values of labels exact that were proposed by :meth:`head_scores` up to ``columns.head``."""
        return

    def working_set_is_cheap(self, planes: Planes, columns: Columns) -> bool:
        """Whether reading only the columns of the working set is much less work than reading them all."""
        if not planes.n_planes:  # the first labels of all samples would be the same
            return False
        used = columns.paths.sizes()[planes.leaf[planes.flat()[1]]].sum() + self.n_samples
        return bool(self.column_cost() * used < self.n_samples * (self.n_columns + _OVERHEAD))

    def addresses(
        self, samples: PtrArray, leaves: IntArray, planes: Planes, columns: Columns, team: Team
    ) -> Iterator[tuple[PtrArray, object]]:
        """Some samples at a time, and where they find the weights of their planes, if addresses are needed."""
        return iter(())


class DualBlock(Protocol):
    """The dual variables of samples, of any kind; block steps are those of each kind."""

    @property
    def n_planes(self) -> int:
        """Numbers that are kept."""

    def excess(self, costs: FloatArray) -> float:
        """By how much of C_i the dual variables of a sample exceed it at most."""

    def warm_start(self, before: FloatArray, now: FloatArray) -> None:
        """Make these variables fit for other costs."""


class SetBlock(DualBlock, Protocol):
    """Node marginals of samples with label sets: laid out for the steps of a batch, and stored again."""

    def layout(self, samples: PtrArray, rewards: FloatArray, chosen: Array, team: Team) -> Layout:
        """The variables of some samples with those of the label sets found, ready for steps.

        ``rewards`` are the gradients of the columns, ``chosen`` is what the oracle has found.
        """

    def keep(self, samples: PtrArray, layout: Any) -> None:
        """Store what steps have made of a layout of its own kind."""

    def settle(self, costs: FloatArray, allow_empty: bool) -> None:
        """Make the variables feasible as they stand, whatever rounding has left."""

    def beta(self, costs: FloatArray) -> Updates:
        """β_in of all samples."""
