"""Sparse coefficients of samples on columns: what a pass changes, or what the dual variables amount to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nhsvm.hierarchy.graph import FloatArray, IntArray, PtrArray

Scorer = Callable[[int, int, Any], None]


class Updates(NamedTuple):
    """Sample t adds ``values[k] · x_t`` to U of column ``columns[k]``, for ``indptr[t] <= k < indptr[t + 1]``."""

    indptr: PtrArray
    columns: IntArray
    values: FloatArray
