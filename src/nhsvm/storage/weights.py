"""The protocol of storages: what everything above asks of U."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.typing import IntArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.storage.rows import StoredRows
    from nhsvm.storage.table import Table

Floats = npt.NDArray[Any]
Scorer = Callable[[npt.NDArray[np.int64], Floats], None]
"""``scorer(rows, out)`` fills ``out[t]`` with the scores of sample ``rows[t]``, summed in the precision of ``out``."""


class Lists(NamedTuple):
    """Columns and weights of every feature, one after the other; and the weights of the constant feature."""

    indptr: PtrArray
    column: npt.NDArray[Any]
    value: Floats
    constant: Floats


class Weights(Protocol):
    """U, read-only: a weight for every feature and column, and for the constant feature, which is the last."""

    @property
    def n_features(self) -> int:
        """Without the constant one."""

    @property
    def n_columns(self) -> int: ...

    @property
    def shape(self) -> tuple[int, int]:
        """Of the array that is stored, or stands for what is: (features, columns), or the other way round."""

    @property
    def by_feature(self) -> bool:
        """Whether the first side of ``shape`` are features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """What scores are computed in, unless samples need more."""

    @property
    def precision(self) -> str:
        """The type that weights are stored in; "float16" and "int8" are those of packed ones."""

    @property
    def nbytes(self) -> int: ...

    @property
    def takes_dense(self) -> bool:
        """Whether dense samples are multiplied by a table; otherwise they are made sparse."""

    @property
    def table(self) -> Table | None:
        """U itself, where it is a table of full precision."""

    @property
    def constant(self) -> Floats:
        """The weights of the constant feature."""

    def count_nonzero(self) -> int:
        """Weights that are not zero, the constant feature's included."""

    def widened(self) -> Table | StoredRows:
        """The same in single precision or more."""

    def to_array(self) -> Floats | sp.csc_array:
        """U without the constant feature as (n_columns, n_features); sparse where a table would be too large."""

    def column(self, column: int) -> Floats:
        """The weights of one column for every feature but the constant one."""

    def block(self, features: IntArray, columns: IntArray) -> Floats:
        """The weights of some features (rows) and columns."""

    def lists(self) -> Lists:
        """The weights that are not zero."""

    def dense_table(self) -> Floats:
        """U as (n_columns, n_features + 1), for products with dense samples; only where ``takes_dense``."""

    def plain(self, X: sp.csr_array, bias: float) -> tuple[sp.csr_array, Table | StoredRows, float]:
        """Samples, weights and the value of the constant feature such that scores are plain sums of products."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a file holds, by name."""
