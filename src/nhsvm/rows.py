"""U in rows of any length, as a fitted model keeps it where a table of all features and nodes would be too large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.hierarchy.graph import IntArray, PtrArray

AnyFloats = npt.NDArray[Any]


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

    @property
    def arrays(self) -> tuple[Any, ...]:
        """(start, size, index, value, full), as kernels take them."""
        return self.start, self.size, self.index, self.value, self.full

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.constant.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """That of the table: one row more than there are features, for the constant one."""
        return len(self.start) + 1, len(self.constant)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.arrays, self.constant))

    def count_nonzero(self) -> int:
        """Weights that are not zero, the constant feature's included."""
        return sum(int(np.count_nonzero(array)) for array in (self.value, self.full, self.constant))

    def to_csc(self) -> sp.csc_array:
        """U without the constant feature as (n_columns, n_features)."""
        n_features, n_columns = self.shape[0] - 1, self.shape[1]
        sizes = np.where(self.size < 0, n_columns, self.size).astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        index, value = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self.dtype)
        for f in np.flatnonzero(self.size < 0):
            part = slice(indptr[f], indptr[f + 1])
            index[part], value[part] = np.arange(n_columns), self.full[self.start[f]]
        short = np.flatnonzero(self.size > 0)
        lengths = sizes[short]
        steps = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        to, source = np.repeat(indptr[short], lengths) + steps, np.repeat(self.start[short], lengths) + steps
        index[to], value[to] = self.index[source], self.value[source]
        made = sp.csc_array((value, index, indptr), shape=(n_columns, n_features))
        made.eliminate_zeros()
        made.sort_indices()
        return made

    def column(self, column: int) -> AnyFloats:
        """The weights of one column for every feature but the constant one."""
        out = np.zeros(self.shape[0] - 1, dtype=self.dtype)
        wide = np.flatnonzero(self.size < 0)
        out[wide] = self.full[self.start[wide], column]
        at = np.flatnonzero(self.index == column)
        short = np.flatnonzero(self.size > 0)
        order = short[np.argsort(self.start[short], kind="stable")]
        out[order[np.searchsorted(self.start[order], at, side="right") - 1]] = self.value[at]
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

    def fields(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, for a file."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def check(self) -> None:
        """Raise a ValueError unless kernels can read it: it may come from a file."""
        n, n_columns = len(self.start), len(self.constant)
        kinds = [array.dtype for array in (self.start, self.size)]
        if kinds != [np.int64, np.int32] or self.size.shape != (n,) or self.index.shape != self.value.shape:
            raise ValueError("rows of weights whose parts do not fit together")
        if self.index.dtype not in (np.uint16, np.uint32) or self.full.ndim != 2 or self.full.shape[1] != n_columns:
            raise ValueError("rows of weights of a kind that is not known")
        if not self.value.dtype == self.full.dtype == self.dtype or self.dtype not in (np.float32, np.float64):
            raise ValueError("rows of weights that are no floats, or of several precisions")
        length = np.where(self.size < 0, 1, self.size)
        room = np.where(self.size < 0, len(self.full), len(self.value))
        if n and ((self.start < 0) | (self.size < -1) | (self.start + length > room)).any():
            raise ValueError("rows of weights that reach beyond their end")
        if len(self.index) and int(self.index.max()) >= n_columns:
            raise ValueError("rows of weights of columns that do not exist")
