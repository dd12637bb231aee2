"""U as a table of all features and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.storage.rows import StoredRows
from nhsvm.storage.samples import prepare
from nhsvm.storage.weights import Floats, Lists, Scorer
from nhsvm.typing import IntArray

_BLOCK = 2**22  # weights that are looked at, or made, together
_CHUNK = 1024  # samples that are turned into another precision at a time


@dataclass(frozen=True, eq=False)
class Table:
    """U as an array.

    Attributes
    ----------
    values : array
        (n_features + 1, n_columns) if ``by_feature``, as sparse samples are learned from and scored with; else
        (n_columns, n_features + 1), for dense ones.
    by_feature : bool
    """

    values: Floats
    by_feature: bool

    takes_dense = True

    @property
    def n_features(self) -> int:
        return int(self.values.shape[0 if self.by_feature else 1]) - 1

    @property
    def n_columns(self) -> int:
        return int(self.values.shape[1 if self.by_feature else 0])

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_columns = self.values.shape
        return n_rows, n_columns

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def precision(self) -> str:
        return str(self.dtype)

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    @property
    def table(self) -> Table:
        return self

    @property
    def constant(self) -> Floats:
        return self.values[-1] if self.by_feature else self.values[:, -1]

    def count_nonzero(self) -> int:
        """Weights that are not zero, the constant feature's included."""
        return int(np.count_nonzero(self.values))

    def to_array(self) -> Floats:
        """U without the constant feature as (n_columns, n_features), a view."""
        return self.values[:-1].T if self.by_feature else self.values[:, :-1]

    def widened(self) -> Table:
        """The table itself."""
        return self

    def column(self, column: int) -> Floats:
        """The weights of one column for every feature but the constant one."""
        return self.values[:-1, column] if self.by_feature else self.values[column, :-1]

    def block(self, features: IntArray, columns: IntArray) -> Floats:
        """The weights of some features (rows) and columns."""
        return self._features_first()[np.ix_(features, columns)]

    def lists(self) -> Lists:
        """The weights that are not zero."""
        table = self._features_first()
        counts, index, value = [np.zeros(1, np.int64)], [], []
        step = max(1, _BLOCK // max(1, table.shape[1]))
        for lo in range(0, len(table) - 1, step):
            part = table[lo : min(lo + step, len(table) - 1)]
            row, column = np.nonzero(part)
            counts.append(np.bincount(row, minlength=len(part)))
            index.append(column.astype(np.uint32))
            value.append(part[row, column])
        return Lists(np.cumsum(np.concatenate(counts)), np.concatenate(index), np.concatenate(value), table[-1].copy())

    def dense_table(self) -> Floats:
        """U as (n_columns, n_features + 1), a view."""
        return self.values.T if self.by_feature else self.values

    def plain(self, X: sp.csr_array, bias: float) -> tuple[sp.csr_array, Table, float]:
        """What is given: nothing has to be multiplied."""
        return X, self, bias

    def scorer(self, X: sp.csr_array, bias: float) -> Scorer:
        """Scores of sparse samples."""
        from nhsvm.storage.kernels import table_kernel

        X = prepare(X)
        values = np.ascontiguousarray(self.values if self.by_feature else self.values.T)

        def scores(rows: npt.NDArray[np.int64], out: Floats) -> None:
            table_kernel(rows, X.indptr, X.indices, X.data, values, float(bias), out)

        return scores

    def as_rows(self) -> StoredRows:
        """The same as rows that are all full; nothing is copied if rows are features."""
        values = np.ascontiguousarray(self.values if self.by_feature else self.values.T)
        n = len(values) - 1
        start, size = np.arange(n), np.full(n, -1, np.int32)
        return StoredRows(start, size, np.zeros(0, np.uint16), np.zeros(0, values.dtype), values[:-1], values[-1])

    def largest(self) -> Floats:
        """The largest absolute weight of every feature, the constant one the last."""
        found: Floats = np.abs(self.values).max(axis=1 if self.by_feature else 0, initial=0.0)
        return found

    def scaled(self, use: Callable[[Floats, Floats], Floats], scale: Floats, dtype: npt.DTypeLike) -> Table:
        """``use(weights, scales of their features)`` of all parts, as a table of that type."""
        made = np.empty(self.values.shape, np.dtype(dtype), order="C")
        step = max(1, _BLOCK // max(1, self.values.shape[1]))
        for lo in range(0, len(made), step):
            part = slice(lo, lo + step)
            made[part] = use(self.values[part], scale[part, None] if self.by_feature else scale[None])
        return Table(made, self.by_feature)

    def viewed(self, dtype: npt.DTypeLike) -> Table:
        """The same bits as another type of the same size."""
        return Table(self.values.view(dtype), self.by_feature)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a file holds, by name."""
        return {"values": self.values}

    def _features_first(self) -> Floats:
        return self.values if self.by_feature else self.values.T


def dense_scores(X: Floats, table: Floats, bias: float, rows: npt.NDArray[np.int64], out: Floats) -> None:
    """``out[t] = U x`` for the dense samples ``rows``; summed in the precision of ``out``, or of X if that is higher.

    Parameters
    ----------
    X : array of (n_samples, n_features)
    table : array of (n_columns, n_features + 1)
        U, with the weights of the constant feature at the end.
    bias : float
        Value of the constant feature.
    rows : array of sample numbers
    out : array of (len(rows), n_columns)
    """
    dtype = np.promote_types(X.dtype, out.dtype)  # to turn the weights into it is less work than X
    coef = table[:, :-1].T.astype(dtype, copy=False)
    for lo in range(0, len(rows), _CHUNK):
        some = rows[lo : lo + _CHUNK]
        in_order = bool((np.diff(some) == 1).all())  # needs no copy
        part = X[some[0] : some[-1] + 1] if in_order else X[some]
        np.matmul(part.astype(dtype, copy=False), coef, out=out[lo : lo + _CHUNK], casting="same_kind")
    out += table[:, -1].astype(dtype, copy=False) * dtype.type(bias)
