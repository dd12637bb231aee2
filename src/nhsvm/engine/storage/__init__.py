"""Weights in training: the storages, each registered in one line, and which of them is taken for given samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.engine.protocols import Weights
from nhsvm.engine.storage.table import DenseWeights, SparseWeights, TableWeights, table_bytes
from nhsvm.registry import Family, Spec
from nhsvm.typing import DType, Matrix

__all__ = ["STORAGES", "in_rows", "make_table", "make_weights", "table_bytes"]
TABLE = 2**30  # bytes of the largest table that is taken where rows would do: beyond, most of it is zero and is read
Suits = Callable[[Matrix, int, DType, int | None], bool]


def in_rows(X: Matrix, n_columns: int, dtype: npt.DTypeLike, limit: int | None) -> bool:
    """Whether weights are kept in rows; dense samples have all features, so a table is all that there is."""
    if limit is None or not sp.issparse(X):
        return False
    return table_bytes(X.shape[1], n_columns, dtype) > min(TABLE, limit)


@dataclass(frozen=True)
class Storage(Spec):
    """A storage of weights; ``suits(X, n_columns, dtype, limit)`` says whether it is for these."""

    suits: Suits = lambda X, n_columns, dtype, limit: True


STORAGES: Family[Storage, type[Weights]] = Family(
    "storage",
    "nhsvm.engine.storage",
    [
        Storage("rows", "rows.RowWeights", "rows as long as they need to be", suits=in_rows),
        Storage("sparse table", "table.SparseWeights", "a row a feature", suits=lambda X, *_: sp.issparse(X)),
        Storage("dense table", "table.DenseWeights", "a row a column of U, for dense samples"),
    ],
)
"""The first one that suits is taken."""


def make_weights(X: Matrix, n_columns: int, bias: float, dtype: npt.DTypeLike | None, limit: int | None) -> Weights:
    """Weights of zero for samples.

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
    name = next(name for name, spec in STORAGES.specs.items() if spec.suits(X, n_columns, dtype, limit))
    return STORAGES[name].zeros(X, n_columns, bias, dtype, limit)


def make_table(
    X: Matrix, n_columns: int, bias: float, dtype: npt.DTypeLike | None, limit: int | None = None
) -> TableWeights:
    """Weights of zero as a table, or an error if that is too large."""
    kind = SparseWeights if sp.issparse(X) else DenseWeights
    return kind.zeros(X, n_columns, bias, dtype, limit)
