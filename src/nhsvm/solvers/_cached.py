"""Passes over the planes in use: what sparse and dense weights share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import FloatArray, IntArray, PtrArray
from nhsvm.solvers._block import cached_kernel
from nhsvm.solvers._planes import Planes
from nhsvm.storage.table import Table

_OVERHEAD = 100  # time that a batch spends on a sample beside its columns, in units of one column


class CachedPasses(ABC):
    """A base of weights that know their samples."""

    n_samples: int
    n_columns: int
    bias: float
    values: npt.NDArray[Any]
    squared_norms: FloatArray
    grown = overfull = bulky = False  # a table has the size it has
    placed = False  # a weight is found without looking for it

    @abstractmethod
    def learned(self) -> Table:
        """U as a model keeps it."""

    @abstractmethod
    def entries(self) -> tuple[Any, Any, Any]:
        """(indptr, indices, data) of the samples."""

    @abstractmethod
    def apart(self) -> float:
        """Time to read one column by itself, in units of one among all columns."""

    def cheap(self, planes: Planes, columns: Columns) -> bool:
        """Whether reading only the columns of planes in use is much less work than reading them all."""
        if not planes.n_planes:  # the first labels of all samples would be the same
            return False
        used = columns.paths.sizes()[planes.leaf[planes.flat()[1]]].sum() + self.n_samples
        return bool(self.apart() * used < self.n_samples * (self.n_columns + _OVERHEAD))

    def places(self, *_: Any) -> Iterator[tuple[PtrArray, None]]:
        """Nothing: no passes are to follow a batch pass."""
        return iter(())

    def cached_pass(
        self,
        samples: PtrArray,
        leaves: IntArray,
        costs: FloatArray,
        pool: tuple[Any, ...],
        columns: Columns,
        unscaled: bool,
        tolerance: float,
        gaps: FloatArray,
        places: None = None,
    ) -> float:
        """Block steps over the planes in use, one sample after the other; returns the gain of the dual."""
        return float(
            cached_kernel(
                samples, leaves, costs, self.squared_norms, *pool, *self.entries(), self.bias, self.values,
                *columns.paths, columns.alpha, columns.nests and unscaled, tolerance, gaps,
            )
        )  # fmt: skip
