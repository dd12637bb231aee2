"""Numbered features as columns of a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.datasets._dataset import Dataset
from nhsvm.errors import FileFormatError, OptionError

if TYPE_CHECKING:
    from nhsvm.datasets._sparse import SparseRows

_PART = 1 << 20
Ids = npt.NDArray[np.int64] | range


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise OptionError(f"dtype must be float32 or float64, not {dtype!r}")
    return found


def checked_like(like: Any) -> Dataset | None:
    if like is not None and not isinstance(like, Dataset):
        raise OptionError(f"like must be a Dataset, not a {type(like).__name__}")
    return like


def ids_of(like: Dataset) -> Ids:
    """The numbers of the features of a data set that came from such a file."""
    names: Any = like.feature_names
    if isinstance(names, range):
        return names
    if not isinstance(names, np.ndarray) or names.dtype.kind != "i":
        raise OptionError("like must be a Dataset of numbered features, as read_svmlight and read_lshtc give")
    return names


def seen(indices: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """All numbers that occur, ascending."""
    top = int(indices.max(initial=-1)) + 1
    if top > 8 * len(indices) + 1_000_000:  # a table of all numbers would be larger than the data
        return np.unique(indices).astype(np.int64)
    there = np.zeros(top, dtype=bool)
    for part in _parts(indices):
        there[part] = True
    return np.flatnonzero(there)


def as_matrix(rows: SparseRows, ids: Ids) -> sp.csr_matrix:
    """Columns in the order of ``ids`` (ascending); what is not among them is left out."""
    indices, data, indptr = rows.indices, rows.data, rows.indptr
    if isinstance(ids, range):
        if ids.start:
            indices -= np.int32(ids.start)
        inside = None if not len(indices) or _within(indices, len(ids)) else (indices >= 0) & (indices < len(ids))
    else:
        inside = renumber(indices, ids)
    if inside is not None:
        indptr = np.concatenate([[0], np.cumsum(inside)])[indptr]
        indices, data = indices[inside], data[inside]
    if len(indices) < 2**31:
        indptr = indptr.astype(np.int32)
    X = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, len(ids)), copy=False)
    X.has_sorted_indices = True
    return X


def _within(indices: npt.NDArray[np.int32], n: int) -> bool:
    return int(indices.min()) >= 0 and int(indices.max()) < n


def _parts(indices: npt.NDArray[np.int32]) -> Iterator[npt.NDArray[np.int32]]:
    """Views of a long array: numpy makes 64-bit copies of what it indexes with, and these are to be small."""
    return (indices[start : start + _PART] for start in range(0, len(indices), _PART))


def renumber(indices: npt.NDArray[np.int32], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_] | None:
    """Replace numbers by columns, in place; which of them have one, or None for all."""
    top = int(ids[-1]) if len(ids) else -1
    if top <= 8 * len(indices) + 1_000_000:
        column = np.full(top + 2, -1, dtype=np.int32)
        column[ids] = np.arange(len(ids), dtype=np.int32)
        for part in _parts(indices):
            part[:] = column[np.minimum(part, top + 1)]
    else:
        for part in _parts(indices):
            place = np.minimum(np.searchsorted(ids, part), len(ids) - 1)
            part[:] = np.where(ids[place] == part, place, -1)
    inside: npt.NDArray[np.bool_] = indices >= 0
    return None if inside.all() else inside


def numbered(zero_based: bool | str, n_features: int | None, rows: SparseRows, file: Any) -> range:
    """The numbers of all features of an svmlight file, with or without 0."""
    if zero_based == "auto":
        start = 0 if (rows.indices == 0).any() else 1
    else:
        start = 0 if zero_based else 1
        if start and (rows.indices == 0).any():
            raise FileFormatError(file, None, "there is a feature 0, so zero_based=False is not true")
    top = int(rows.indices.max(initial=start - 1)) + 1
    if n_features is None:
        return range(start, max(top, start))
    if top - start > n_features:
        raise FileFormatError(file, None, f"feature {top - 1} is beyond n_features={n_features} (counted from {start})")
    return range(start, start + n_features)


def check_count(n_features: int | None) -> None:
    if n_features is not None and (isinstance(n_features, bool) or not isinstance(n_features, (int, np.integer))):
        raise OptionError(f"n_features must be a whole number, not {n_features!r}")
    if n_features is not None and not 1 <= n_features < 2**31:
        raise OptionError(f"n_features must be from 1 to {2**31 - 1}, not {n_features}")
