"""U in rows of any length, as a fitted model keeps it where a table of all features and nodes would be too large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.storage.samples import prepare
from nhsvm.storage.weights import Lists, Scorer
from nhsvm.typing import IntArray, PtrArray

AnyFloats = npt.NDArray[Any]
ROWS = "rows/"  # before the names of the arrays in a file


@dataclass(frozen=True, eq=False)
class StoredRows:
    """U, feature-major: a row a feature, *short* (columns and values) or *full* (a value for every column).

    Attributes
    ----------
    start : array of n_features
        First entry of a short row, or number of a full row.
    size : array of n_features
        Entries of a short row; −1 for a full one.
    index, value : arrays of n_entries
        Columns and weights of short rows.
    full : array of (n_full, n_columns)
    constant : array of n_columns
        The row of the constant feature.
    """

    start: PtrArray
    size: IntArray
    index: npt.NDArray[Any]
    value: AnyFloats
    full: AnyFloats
    constant: AnyFloats

    by_feature = True
    takes_dense = False
    table = None

    @classmethod
    def from_lists(cls, indptr: PtrArray, index: IntArray, value: AnyFloats, constant: AnyFloats) -> StoredRows:
        """Rows from the columns and weights of every feature, one after the other; full where that takes less room."""
        n_columns = len(constant)
        index = index.astype(np.uint16 if n_columns <= 2**16 else np.uint32, copy=False)
        sizes = np.diff(indptr)
        wide = sizes * (index.itemsize + value.itemsize) > n_columns * value.itemsize
        inside = np.repeat(wide, sizes)
        full = np.zeros((int(wide.sum()), n_columns), dtype=value.dtype)
        full[np.repeat(np.arange(len(full)), sizes[wide]), index[inside]] = value[inside]
        short = np.where(wide, 0, sizes)
        start = np.where(wide, np.cumsum(wide) - 1, np.cumsum(short) - short)
        size = np.where(wide, -1, short).astype(np.int32)
        return cls(start.astype(np.int64), size, index[~inside], value[~inside], full, constant)

    @classmethod
    def largest_of(cls, lists: Lists, least: float) -> StoredRows:
        """Rows of the weights whose absolute value is at least a number; all those of the constant feature."""
        indptr, index, value, constant = lists
        keep = np.abs(value) >= least
        return cls.from_lists(np.concatenate([[0], np.cumsum(keep)])[indptr], index[keep], value[keep], constant)

    @property
    def parts(self) -> tuple[Any, ...]:
        """(start, size, index, value, full), as kernels take them."""
        return self.start, self.size, self.index, self.value, self.full

    @property
    def n_features(self) -> int:
        return len(self.start)

    @property
    def n_columns(self) -> int:
        return len(self.constant)

    @property
    def precision(self) -> str:
        return str(self.dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.constant.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """That of the table: one row more than there are features, for the constant one."""
        return len(self.start) + 1, len(self.constant)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.parts, self.constant))

    def count_nonzero(self) -> int:
        """Weights that are not zero, the constant feature's included."""
        return sum(int(np.count_nonzero(array)) for array in (self.value, self.full, self.constant))

    def scaled(self, use: Callable[[AnyFloats, AnyFloats], AnyFloats], scale: AnyFloats, dtype: Any) -> StoredRows:
        """``use(weights, scales of their features)`` of all parts, which is of that type."""
        parts = {
            "value": use(self.value, scale[self.owners()]),
            "full": use(self.full, scale[self.full_owners()][:, None]),
            "constant": use(self.constant, scale[-1:]),
        }
        return replace(self, **{name: part.astype(dtype, copy=False) for name, part in parts.items()})

    def viewed(self, dtype: npt.DTypeLike) -> StoredRows:
        """The same bits as another type of the same size."""
        return replace(
            self, value=self.value.view(dtype), full=self.full.view(dtype), constant=self.constant.view(dtype)
        )

    def owners(self) -> IntArray:
        """The feature of every entry of short rows."""
        found = np.zeros(len(self.value), dtype=np.int32)
        _, source, lengths = self._entries()
        found[source] = np.repeat(np.flatnonzero(self.size > 0), lengths)
        return found

    def full_owners(self) -> IntArray:
        """The feature of every full row."""
        found = np.zeros(len(self.full), dtype=np.int32)
        wide = np.flatnonzero(self.size < 0)
        found[self.start[wide]] = wide
        return found

    def largest(self) -> AnyFloats:
        """The largest absolute weight of every feature, the constant one the last."""
        found = np.zeros(len(self.start) + 1, dtype=self.dtype)
        np.maximum.at(found, self.owners(), np.abs(self.value))
        np.maximum.at(found, self.full_owners(), np.abs(self.full).max(axis=1, initial=0.0))
        found[-1] = np.abs(self.constant).max(initial=0.0)
        return found

    def _entries(self) -> tuple[PtrArray, PtrArray, PtrArray]:
        """Of the entries of short rows, in the order of features: number in the row, place; and lengths of the rows."""
        short = np.flatnonzero(self.size > 0)
        lengths = self.size[short].astype(np.int64)
        steps = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return steps, np.repeat(self.start[short], lengths) + steps, lengths

    def to_array(self) -> sp.csc_array:
        """U without the constant feature as (n_columns, n_features)."""
        n_features, n_columns = self.shape[0] - 1, self.shape[1]
        sizes = np.where(self.size < 0, n_columns, self.size).astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        index, value = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self.dtype)
        for f in np.flatnonzero(self.size < 0):
            part = slice(indptr[f], indptr[f + 1])
            index[part], value[part] = np.arange(n_columns), self.full[self.start[f]]
        short = np.flatnonzero(self.size > 0)
        steps, source, lengths = self._entries()
        to = np.repeat(indptr[short], lengths) + steps
        index[to], value[to] = self.index[source], self.value[source]
        made = sp.csc_array((value, index, indptr), shape=(n_columns, n_features))
        made.eliminate_zeros()
        made.sort_indices()
        return made

    def widened(self) -> StoredRows:
        """These."""
        return self

    def column(self, column: int) -> AnyFloats:
        """The weights of one column for every feature but the constant one."""
        out = np.zeros(self.shape[0] - 1, dtype=self.dtype)
        wide = np.flatnonzero(self.size < 0)
        out[wide] = self.full[self.start[wide], column]
        _, places, lengths = self._entries()
        at = self.index[places] == column
        out[np.repeat(np.flatnonzero(self.size > 0), lengths)[at]] = self.value[places[at]]
        return out

    def block(self, features: IntArray, columns: IntArray) -> AnyFloats:
        """The weights of some features (rows) and columns."""
        out = np.zeros((len(features), len(columns)), dtype=self.dtype)
        for k, f in enumerate(np.asarray(features).tolist()):
            start, size = int(self.start[f]), int(self.size[f])
            if size < 0:
                out[k] = self.full[start][columns]
                continue
            row = np.zeros(self.shape[1], dtype=self.dtype)
            row[self.index[start : start + size]] = self.value[start : start + size]
            out[k] = row[columns]
        return out

    def lists(self) -> Lists:
        """The weights that are not zero."""
        found = self.to_array()
        return Lists(found.indptr.astype(np.int64), found.indices, found.data, self.constant)

    def dense_table(self) -> AnyFloats:
        """There is none; see ``takes_dense``."""
        raise NotImplementedError("weights in rows are not multiplied by dense samples")

    def plain(self, X: sp.csr_array, bias: float) -> tuple[sp.csr_array, StoredRows, float]:
        """What is given: nothing has to be multiplied."""
        return X, self, bias

    def scorer(self, X: sp.csr_array, bias: float) -> Scorer:
        """Scores of sparse samples."""
        from nhsvm.storage.kernels import rows_kernel

        X = prepare(X)

        def scores(rows: npt.NDArray[np.int64], out: AnyFloats) -> None:
            samples = X.indptr, X.indices, X.data
            rows_kernel(rows, *samples, *self.parts, self.constant, float(bias), out.shape[1], out)

        return scores

    def as_rows(self) -> StoredRows:
        """These."""
        return self

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a file holds, by name."""
        return {ROWS + field.name: getattr(self, field.name) for field in fields(self)}
