"""Samples in the one form that kernels are compiled for, and what values they may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import DataError
from nhsvm.typing import Array, IntArray, Matrix, MatrixLike, PtrArray

LARGEST = 1e100  # of a feature: squares and their sums must be far from the limits of double precision
SINGLE_LARGEST = 1e12  # the same for single precision
_FLOATS = (np.float32, np.float64)
_NO_LISTS = np.zeros(0, np.int64), np.zeros(0, np.int32)  # dense samples need no lists of features


class Entries(NamedTuple):
    """Samples as kernels read them; dense ones have ``data`` of two dimensions and no lists of features.

    Which of the two it is, is settled when a kernel is compiled: of ``data`` that is an argument of its own.
    """

    indptr: PtrArray
    indices: IntArray
    data: Array

    @classmethod
    def of(cls, X: Matrix) -> Entries:
        """Those of samples that :func:`prepare` has made."""
        return cls(X.indptr, X.indices, X.data) if sp.issparse(X) else cls(*_NO_LISTS, X)


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples that have been checked: finite numbers in a CSR array or a 2-D array of floats, with inner indices.

    Attributes
    ----------
    X : csr_array or array of (n_samples, n_features)
    """

    X: Matrix

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @classmethod
    def checked(cls, X: MatrixLike | Samples, n_features: int) -> Samples:
        """Samples for a model of so many features; those that are checked already are not checked again.

        Raises
        ------
        DataError
            For another number of features, and for what is no matrix of finite numbers.
        """
        if isinstance(X, Samples):
            found = X
        elif sp.issparse(X):
            check_indices(X)
            rows = sp.csr_array(X)
            found = cls(rows if rows.dtype in _FLOATS else rows.astype(np.float64))
        else:
            try:
                dense = np.asarray(X)
                found = cls(dense if dense.dtype in _FLOATS else dense.astype(np.float64, casting="same_kind"))
            except (TypeError, ValueError) as error:
                raise DataError(f"X is no matrix of numbers: {error}") from error
        if found.X.ndim != 2 or found.X.shape[1] != n_features:
            raise DataError(f"X has the shape {found.X.shape}, but the model was trained with {n_features} features")
        if found is not X:
            if not within(found.X, np.inf):  # NaN too
                raise DataError("X has values that are no numbers (NaN); drop or impute such samples")
            if not within(found.X, LARGEST):
                raise too_large(found.X)
        return found


def prepare(X: MatrixLike, dtype: npt.DTypeLike | None = None) -> Matrix:
    """Samples in the one form that kernels are compiled for; what already has it is not copied.

    Sparse: CSR without duplicates, sorted, int64 row pointers and int32 indices. Dense: C order. float32 and float64
    stay what they are, unless a dtype is asked for.
    """
    dtype = dtype or (X.dtype if X.dtype in (np.float32, np.float64) else np.float64)
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=dtype)
    X = sp.csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()  # never the caller's own arrays
        X.sum_duplicates()
    data = X.data.astype(dtype, copy=False)
    made = sp.csr_array(X.shape, dtype=data.dtype)  # given all of these, it would make both kinds of indices alike
    made.data, made.indices = data, X.indices.astype(np.int32, copy=False)
    made.indptr = X.indptr.astype(np.int64, copy=False)
    return made


def check_indices(X: Matrix) -> None:
    """Indices of sparse samples are inside; scipy takes them on trust, and so do kernels."""
    if X.format not in ("csr", "csc"):  # others are converted, and made anew
        return
    n_rows, n_columns = X.shape if X.format == "csr" else X.shape[::-1]
    ends = X.indptr
    if len(ends) != n_rows + 1 or ends[0] != 0 or (ends[1:] < ends[:-1]).any():
        raise DataError(f"X is a damaged {X.format} matrix: its indptr does not count up from 0")
    indices = X.indices[: ends[-1]]
    if len(indices) < ends[-1] or len(X.data) < ends[-1]:
        raise DataError(f"X is a damaged {X.format} matrix: its indptr goes beyond its indices")
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= n_columns):
        bad = int(np.flatnonzero((indices < 0) | (indices >= n_columns))[0])
        raise DataError(f"X is a damaged {X.format} matrix: index {indices[bad]} is outside of 0 .. {n_columns - 1}")


def too_large(X: Matrix) -> DataError:
    """Values that cannot be computed with."""
    return DataError(f"X has values up to {magnitude(X):.2g}, too large to compute with: scale the features")


def magnitude(X: Matrix) -> float:
    """The largest absolute value of some samples."""
    values = X.data if sp.issparse(X) else X
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def within(X: Matrix, limit: float) -> bool:
    """Whether no value of some samples is larger than ``limit``."""
    values = X.data if sp.issparse(X) else X
    flat = values.ravel(order="K")
    if np.may_share_memory(flat, values):  # no copy: the length of all of it bounds the largest, in one look
        with np.errstate(over="ignore"):
            if float(np.dot(flat, flat)) <= limit**2:
                return True
    return magnitude(X) <= limit


def precise_enough(X: Matrix, bias: float) -> bool:
    """Whether sums of squares of these samples stay far from the limits of single precision."""
    return bias <= SINGLE_LARGEST and within(X, SINGLE_LARGEST)
