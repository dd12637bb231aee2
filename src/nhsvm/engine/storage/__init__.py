"""Which kind of weights, by the memory that there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.engine.protocols import Weights
from nhsvm.engine.storage.rows import RowWeights
from nhsvm.engine.storage.table import DenseWeights, SparseWeights
from nhsvm.errors import MemoryLimitError
from nhsvm.sizes import two_sizes

TABLE = 2**30  # bytes of the largest table that is taken where rows would do: beyond, most of it is zero and is read
ADDRESS = 32  # bytes for a feature whose weights are kept in a row: where it lies, how long it is, and room to make it


def make_weights(X: Any, n_columns: int, bias: float, dtype: Any, limit: int | None) -> Weights:
    """Weights of zero for samples: a table of all features and columns, or rows as long as they need to be.

    Parameters
    ----------
    X : csr_array or array
    n_columns : int
    bias : float
    dtype : dtype or None
        That of X, if None.
    limit : int or None
        Bytes that weights may take; None is no limit, and a table.
    """
    dtype = np.dtype(dtype or X.dtype)
    if limit is not None and in_rows(X, n_columns, dtype, limit):
        _check_addresses(X.shape[1], limit)
        return RowWeights(X, n_columns, bias, dtype, limit)
    return make_table(X, n_columns, bias, dtype, limit)


def in_rows(X: Any, n_columns: int, dtype: Any, limit: int) -> bool:
    """Whether weights are kept in rows; dense samples have all features, so a table is all that there is."""
    return sp.issparse(X) and table_bytes(X.shape[1], n_columns, dtype) > min(TABLE, limit)


def _check_addresses(n_features: int, limit: int) -> None:
    """An error if only to say where the row of every feature lies, of those that never occur too, takes too much."""
    if n_features * ADDRESS > limit:
        needed, allowed = two_sizes(n_features * ADDRESS, limit)
        raise MemoryLimitError(
            f"{n_features:,} features need {needed} even if their weights are zero, but {allowed} may be used; "
            "leave out features that do not occur, as read_lshtc does, or raise memory_limit"
        )


def make_table(
    X: Any, n_columns: int, bias: float, dtype: Any, limit: int | None = None
) -> SparseWeights | DenseWeights:
    """Weights of zero as a table, or an error if that is too large."""
    dtype = np.dtype(dtype or X.dtype)
    need = table_bytes(X.shape[1], n_columns, dtype)
    if limit is not None and need > limit:
        needed, allowed = two_sizes(need, limit)
        raise MemoryLimitError(
            f"a table of weights for {X.shape[1]:,} features and {n_columns:,} nodes needs {needed}, but {allowed} may "
            "be used; raise memory_limit, use fewer features, or give sparse samples and solver='dual', which keeps "
            "only the weights that are not zero"
        )
    kind = SparseWeights if sp.issparse(X) else DenseWeights
    return kind.zeros(X, n_columns, bias, dtype)


def table_bytes(n_features: int, n_columns: int, dtype: Any) -> int:
    """Bytes of a table of weights, the constant feature's included."""
    return (n_features + 1) * n_columns * int(np.dtype(dtype).itemsize)
