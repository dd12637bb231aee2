"""The best label as far as a search down the tree finds it, which keeps a few nodes a level."""

from __future__ import annotations

from typing import Any

import numpy as np

from nhsvm.columns import Columns
from nhsvm.estimators._chunks import Learned, as_sparse, scoring_precision, unpacked
from nhsvm.estimators._options import n_threads
from nhsvm.hierarchy.graph import IntArray
from nhsvm.packed import Packed
from nhsvm.rows import StoredRows


def beam_leaves(X: Any, learned: Learned, columns: Columns, width: int, n_jobs: int | None) -> IntArray:
    """The best leaf of every sample that is below one of the ``width`` best nodes of every level.

    Levels are those of columns: nodes without weight are passed through. Only the weights of nodes next below those
    that are kept are read, but of rows that are not full all, which is no more work.

    Parameters
    ----------
    X : csr_array or array
    learned : Learned
    columns : Columns
        Of a tree.
    width : int
    n_jobs : int or None
    """
    from nhsvm.engine.samples import prepare
    from nhsvm.oracles._beam import beam_kernel, column_tree
    from nhsvm.threads import Team

    values, by_feature, bias = learned
    dtype = scoring_precision(X, learned)
    X = as_sparse(X)
    if isinstance(values, Packed):
        X, values, bias = unpacked(X, values, bias)
    if not isinstance(values, StoredRows):
        values = _as_rows(np.ascontiguousarray(values if by_feature else values.T))
    X = prepare(X)
    tree = column_tree(columns)
    out = np.empty(X.shape[0], dtype=np.int32)
    room = min(width, columns.n_columns)

    def work(lo: int, hi: int) -> None:
        beam_kernel(
            lo, hi, X.indptr, X.indices, X.data, *values.arrays, values.constant, bias, *tree, room,
            np.zeros(columns.n_columns, dtype), out,
        )  # fmt: skip

    with Team(n_threads(n_jobs)) as team:
        team.split(X.shape[0], work)
    return out


def _as_rows(table: Any) -> StoredRows:
    """A table as rows that are all full; nothing is copied."""
    n = len(table) - 1
    start, size = np.arange(n), np.full(n, -1, np.int32)
    return StoredRows(start, size, np.zeros(0, np.uint16), np.zeros(0, table.dtype), table[:-1], table[-1])
