"""U as it is kept once it is learned: what every storage answers, a table, rows, and either in less precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import OptionError
from nhsvm.storage.samples import Entries, prepare
from nhsvm.typing import Array, DType, IntArray, PtrArray

PRECISIONS = ("float16", "int8")
ROWS = "rows/"  # before the names of the arrays of rows in a file
_BLOCK = 2**22  # weights that are looked at, or made, together
_CHUNK = 1024  # samples that are turned into another precision at a time
_HALF = 15  # the largest weight of a feature is just below 2 to this power: far from both ends of half precision
_TINY = 2.0**-14  # smaller halves have fewer digits and are slow to read; they are 1e-9 of the feature's largest
_BYTE = 127

Scorer = Callable[[PtrArray, Array], None]
"""``scorer(rows, out)`` fills ``out[t]`` with the scores of sample ``rows[t]``, summed in the precision of ``out``."""


class Lists(NamedTuple):
    """Columns and weights of every feature, one after the other; and the weights of the constant feature."""

    indptr: PtrArray
    column: Array
    value: Array
    constant: Array


class Stored(Protocol):
    """What follows from the other answers of a storage; its base."""

    @property
    def n_features(self: Weights) -> int:
        """Without the constant one."""
        return self.shape[0 if self.by_feature else 1] - 1

    @property
    def n_columns(self: Weights) -> int:
        return self.shape[1 if self.by_feature else 0]

    @property
    def nbytes(self: Weights) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    @property
    def precision(self: Weights) -> str:
        """The type that weights are stored in; "float16" and "int8" are those of packed ones."""
        return str(self.dtype)

    @property
    def table(self) -> Table | None:
        """U itself, where it is a table of full precision."""
        return None


class Weights(Stored, Protocol):
    """U, read-only: a weight for every feature and column, and for the constant feature, which is the last."""

    @property
    def shape(self) -> tuple[int, int]:
        """Of the array that is stored, or stands for what is: (features, columns), or the other way round."""

    @property
    def by_feature(self) -> bool:
        """Whether the first side of ``shape`` are features."""

    @property
    def dtype(self) -> DType:
        """What scores are computed in, unless samples need more."""

    @property
    def takes_dense(self) -> bool:
        """Whether dense samples are multiplied by a table; otherwise they are made sparse."""

    @property
    def constant(self) -> Array:
        """The weights of the constant feature."""

    def count_nonzero(self) -> int:
        """Weights that are not zero, the constant feature's included."""

    def widened(self) -> Table | StoredRows:
        """The same in single precision or more."""

    def to_array(self) -> Array | sp.csc_array:
        """U without the constant feature as (n_columns, n_features); sparse where a table would be too large."""

    def column(self, column: int) -> Array:
        """The weights of one column for every feature but the constant one."""

    def block(self, features: IntArray, columns: IntArray) -> Array:
        """The weights of some features (rows) and columns."""

    def lists(self) -> Lists:
        """The weights that are not zero."""

    def dense_table(self) -> Array:
        """U as (n_columns, n_features + 1), for products with dense samples; only where ``takes_dense``."""

    def plain(self, X: sp.csr_array, bias: float) -> tuple[sp.csr_array, Table | StoredRows, float]:
        """Samples, weights and the value of the constant feature such that scores are plain sums of products."""

    def arrays(self) -> dict[str, Array]:
        """What a file holds, by name."""


class Exact(Stored, Protocol):
    """A base of storages of full precision: nothing has to be multiplied."""

    def widened(self) -> Self:
        return self

    def plain(self, X: sp.csr_array, bias: float) -> tuple[sp.csr_array, Self, float]:
        return X, self, bias


# -- a table -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table(Exact):
    """U as an array.

    Attributes
    ----------
    values : array
        (n_features + 1, n_columns) if ``by_feature``, as sparse samples are learned from and scored with; else
        (n_columns, n_features + 1), for dense ones.
    by_feature : bool
    """

    values: Array
    by_feature: bool

    takes_dense = True

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_columns = self.values.shape
        return n_rows, n_columns

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def table(self) -> Table:
        return self

    @property
    def constant(self) -> Array:
        last: Array = self.features_first()[-1]
        return last

    def count_nonzero(self) -> int:
        return int(np.count_nonzero(self.values))

    def to_array(self) -> Array:
        """U without the constant feature as (n_columns, n_features), a view."""
        return self.dense_table()[:, :-1]

    def column(self, column: int) -> Array:
        return self.features_first()[:-1, column]

    def block(self, features: IntArray, columns: IntArray) -> Array:
        return self.features_first()[np.ix_(features, columns)]

    def lists(self) -> Lists:
        table = self.features_first()
        counts, index, value = [np.zeros(1, np.int64)], [], []
        step = max(1, _BLOCK // max(1, table.shape[1]))
        for lo in range(0, len(table) - 1, step):
            part = table[lo : min(lo + step, len(table) - 1)]
            row, column = np.nonzero(part)
            counts.append(np.bincount(row, minlength=len(part)))
            index.append(column.astype(np.uint32))
            value.append(part[row, column])
        return Lists(np.cumsum(np.concatenate(counts)), np.concatenate(index), np.concatenate(value), table[-1].copy())

    def dense_table(self) -> Array:
        """U as (n_columns, n_features + 1), a view."""
        return self.values.T if self.by_feature else self.values

    def scorer(self, X: sp.csr_array, bias: float) -> Scorer:
        """Scores of sparse samples."""
        from nhsvm.storage.kernels import table_kernel

        samples, values = Entries.of(prepare(X)), np.ascontiguousarray(self.features_first())
        return lambda rows, out: table_kernel(rows, samples, values, float(bias), out)

    def as_rows(self) -> StoredRows:
        """The same as rows that are all full; nothing is copied if rows are features."""
        values = np.ascontiguousarray(self.features_first())
        n = len(values) - 1
        start, size = np.arange(n), np.full(n, -1, np.int32)
        return StoredRows(start, size, np.zeros(0, np.uint16), np.zeros(0, values.dtype), values[:-1], values[-1])

    def largest(self) -> Array:
        """The largest absolute weight of every feature, the constant one the last."""
        found: Array = np.abs(self.values).max(axis=1 if self.by_feature else 0, initial=0.0)
        return found

    def scaled(self, use: Callable[[Array, Array], Array], scale: Array, dtype: npt.DTypeLike) -> Table:
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

    def arrays(self) -> dict[str, Array]:
        return {"values": self.values}

    def features_first(self) -> Array:
        """U as (n_features + 1, n_columns), a view."""
        return self.values if self.by_feature else self.values.T


def dense_scores(X: Array, table: Array, bias: float, rows: PtrArray, out: Array) -> None:
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


# -- rows --------------------------------------------------------------------------------------------------------------


class WeightRows(NamedTuple):
    """Weights in rows, as kernels read them: see :class:`StoredRows`."""

    start: PtrArray
    size: IntArray
    column: Array  # its ``index``
    value: Array
    full: Array
    constant: Array


@dataclass(frozen=True, eq=False)
class StoredRows(Exact):
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
    index: Array
    value: Array
    full: Array
    constant: Array

    by_feature = True
    takes_dense = False

    @classmethod
    def from_lists(cls, indptr: PtrArray, index: IntArray, value: Array, constant: Array) -> StoredRows:
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
    def for_kernels(self) -> WeightRows:
        return WeightRows(self.start, self.size, self.index, self.value, self.full, self.constant)

    @property
    def dtype(self) -> DType:
        return self.constant.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """That of the table: one row more than there are features, for the constant one."""
        return len(self.start) + 1, len(self.constant)

    def count_nonzero(self) -> int:
        return sum(int(np.count_nonzero(array)) for array in (self.value, self.full, self.constant))

    def scaled(self, use: Callable[[Array, Array], Array], scale: Array, dtype: npt.DTypeLike) -> StoredRows:
        """``use(weights, scales of their features)`` of all parts, which is of that type."""
        value = use(self.value, scale[self.owners()]).astype(dtype, copy=False)
        full = use(self.full, scale[self.full_owners()][:, None]).astype(dtype, copy=False)
        constant = use(self.constant, scale[-1:]).astype(dtype, copy=False)
        return replace(self, value=value, full=full, constant=constant)

    def viewed(self, dtype: npt.DTypeLike) -> StoredRows:
        """The same bits as another type of the same size."""
        value, full, constant = (part.view(dtype) for part in (self.value, self.full, self.constant))
        return replace(self, value=value, full=full, constant=constant)

    def owners(self) -> IntArray:
        """The feature of every entry of short rows."""
        found = np.zeros(len(self.value), dtype=np.int32)
        _, places, owners = self._entries()
        found[places] = owners
        return found

    def full_owners(self) -> IntArray:
        """The feature of every full row."""
        found = np.zeros(len(self.full), dtype=np.int32)
        wide = np.flatnonzero(self.size < 0)
        found[self.start[wide]] = wide
        return found

    def largest(self) -> Array:
        """The largest absolute weight of every feature, the constant one the last."""
        found = np.zeros(len(self.start) + 1, dtype=self.dtype)
        np.maximum.at(found, self.owners(), np.abs(self.value))
        np.maximum.at(found, self.full_owners(), np.abs(self.full).max(axis=1, initial=0.0))
        found[-1] = np.abs(self.constant).max(initial=0.0)
        return found

    def _entries(self) -> tuple[PtrArray, PtrArray, PtrArray]:
        """Of the entries of short rows, in the order of features: number in the row, place, and feature."""
        short = np.flatnonzero(self.size > 0)
        lengths = self.size[short].astype(np.int64)
        steps = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return steps, np.repeat(self.start[short], lengths) + steps, np.repeat(short, lengths)

    def to_array(self) -> sp.csc_array:
        """U without the constant feature as (n_columns, n_features)."""
        n_features, n_columns = self.n_features, self.n_columns
        sizes = np.where(self.size < 0, n_columns, self.size).astype(np.int64)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        index, value = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], self.dtype)
        for f in np.flatnonzero(self.size < 0):
            part = slice(indptr[f], indptr[f + 1])
            index[part], value[part] = np.arange(n_columns), self.full[self.start[f]]
        steps, places, owners = self._entries()
        to = indptr[owners] + steps
        index[to], value[to] = self.index[places], self.value[places]
        made = sp.csc_array((value, index, indptr), shape=(n_columns, n_features))
        made.eliminate_zeros()
        made.sort_indices()
        return made

    def column(self, column: int) -> Array:
        out = np.zeros(self.n_features, dtype=self.dtype)
        wide = np.flatnonzero(self.size < 0)
        out[wide] = self.full[self.start[wide], column]
        _, places, owners = self._entries()
        at = self.index[places] == column
        out[owners[at]] = self.value[places[at]]
        return out

    def block(self, features: IntArray, columns: IntArray) -> Array:
        out = np.zeros((len(features), len(columns)), dtype=self.dtype)
        for k, f in enumerate(np.asarray(features).tolist()):
            start, size = int(self.start[f]), int(self.size[f])
            if size < 0:
                out[k] = self.full[start][columns]
                continue
            row = np.zeros(self.n_columns, dtype=self.dtype)
            row[self.index[start : start + size]] = self.value[start : start + size]
            out[k] = row[columns]
        return out

    def lists(self) -> Lists:
        found = self.to_array()
        return Lists(found.indptr.astype(np.int64), found.indices, found.data, self.constant)

    def dense_table(self) -> Array:
        """There is none; see ``takes_dense``."""
        raise NotImplementedError("weights in rows are not multiplied by dense samples")

    def scorer(self, X: sp.csr_array, bias: float) -> Scorer:
        """Scores of sparse samples."""
        from nhsvm.storage.kernels import rows_kernel

        samples, weights = Entries.of(prepare(X)), self.for_kernels
        return lambda rows, out: rows_kernel(rows, samples, weights, float(bias), out.shape[1], out)

    def as_rows(self) -> StoredRows:
        """These."""
        return self

    def arrays(self) -> dict[str, Array]:
        return {ROWS + field.name: getattr(self, field.name) for field in fields(self)}


# -- less precision ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Packed(Stored):
    """U_nf = scale_f · code_fn, with codes of one or two bytes.

    Attributes
    ----------
    codes : Table or StoredRows
        Of float16 or int8.
    scale : float32 array of n_features + 1
        Powers of two for float16, whose codes have all digits of half precision.
    """

    codes: Table | StoredRows
    scale: npt.NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape

    @property
    def by_feature(self) -> bool:
        return self.codes.by_feature

    @property
    def dtype(self) -> DType:
        """What scores are computed in."""
        return np.dtype(np.float32)

    @property
    def precision(self) -> str:
        """What weights are stored in."""
        return self.codes.precision

    @property
    def takes_dense(self) -> bool:
        return self.codes.takes_dense

    @property
    def constant(self) -> Array:
        wide: Array = self.codes.constant.astype(np.float32) * self.scale[-1]
        return wide

    def count_nonzero(self) -> int:
        """Weights that are not zero."""
        return self.codes.count_nonzero()

    def widened(self) -> Table | StoredRows:
        """The same in single precision."""
        return self.codes.scaled(lambda part, scale: part.astype(np.float32) * scale, self.scale, np.float32)

    def to_array(self) -> Array | sp.csc_array:
        """U in single precision, without the constant feature, as (n_columns, n_features)."""
        return self.widened().to_array()

    def column(self, column: int) -> Array:
        wide: Array = self.codes.column(column).astype(np.float32) * self.scale[:-1]
        return wide

    def block(self, features: IntArray, columns: IntArray) -> Array:
        found = self.codes.block(features, columns)
        wide: Array = found.astype(np.float32) * self.scale[features][:, None]
        return wide

    def lists(self) -> Lists:
        return self.widened().lists()

    def dense_table(self) -> Array:
        """U in single precision as (n_columns, n_features + 1)."""
        return self.widened().dense_table()

    def plain(self, X: sp.csr_array, bias: float) -> tuple[sp.csr_array, Table | StoredRows, float]:
        """Samples times the scales, and codes as kernels take them: a large model is not copied.

        Those of float16 are the bits of halves, as uint16: numba has no half precision on processors.
        """
        scaled = sp.csr_array((X.data * self.scale[X.indices], X.indices, X.indptr), shape=X.shape)
        codes = self.codes.viewed(np.uint16) if self.precision == "float16" else self.codes
        return scaled, codes, bias * float(self.scale[-1])

    def arrays(self) -> dict[str, Array]:
        return {"scale": self.scale} | self.codes.arrays()


def pack(weights: Weights, precision: str) -> Weights:
    """Weights in less room; those that are packed already are widened first, unless they are what is asked for.

    Parameters
    ----------
    weights : Table, StoredRows or Packed
    precision : {"float16", "int8"}

    Raises
    ------
    OptionError
        For another precision, or weights out of the range of single precision.
    """
    if precision not in PRECISIONS:
        raise OptionError(f"precision must be one of {PRECISIONS}, or None for that of the model, not {precision!r}")
    if weights.precision == precision:
        return weights
    full = weights.widened()
    scale = _scales(full.largest(), precision)

    def code(part: Array, factors: Array) -> Array:
        exact = np.divide(part, factors, out=np.zeros(part.shape, part.dtype), where=factors > 0)
        if precision == "int8":
            return np.rint(exact).astype(np.int8)
        return np.where(np.abs(exact) < _TINY, 0.0, exact).astype(np.float16)

    return Packed(full.scaled(code, scale, precision), scale)


def _scales(largest: Array, precision: str) -> npt.NDArray[np.float32]:
    """What the codes of every feature are multiplied by."""
    if precision == "int8":
        exact = largest.astype(np.float64) / _BYTE
    else:
        exact = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - _HALF), 0.0)
    with np.errstate(over="ignore", under="ignore"):
        scale = exact.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(scale) | ((scale < np.finfo(np.float32).tiny) & (largest > 0)))
    if len(bad):
        raise OptionError(
            f"precision={precision!r} is for weights between about 1e-30 and 1e+30, but the largest of feature "
            f"{bad[0]} is {largest[bad[0]]:.3g}: scale the features, or keep the precision"
        )
    return scale
