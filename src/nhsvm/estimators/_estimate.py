"""What a fit will need, before it is begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.columns import Columns, make_columns
from nhsvm.estimators._data import checked, same_length
from nhsvm.estimators._memory import allowed_bytes
from nhsvm.estimators._targets import Targets
from nhsvm.hierarchy import Hierarchy
from nhsvm.weights import node_weights

_LABELS = 12  # wrong labels that a sample holds on average at a gap of 1 %, measured on generated texts
_SLACK = 1.3  # rows are made anew when they take so many times what they need
_PLANE = 28  # bytes of one wrong label of a sample: leaf, weight, loss, scale
_ROOM = 2  # places kept for each


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes, about, that a fit takes.

    Attributes
    ----------
    samples : int
        X as it is given, which is not copied.
    table : int
        Weights as a table of all features and nodes.
    weights : int
        Weights as they will be kept: the table, or rows as long as they need to be.
    dual : int
        Dual variables; with weights in rows, also where samples with one label find those that they need.
    limit : int
        What weights may take.
    """

    samples: int
    table: int
    weights: int
    dual: int
    limit: int

    @property
    def total(self) -> int:
        """What the fit takes beside the samples."""
        return self.weights + self.dual

    @property
    def fits(self) -> bool:
        """Whether the weights are expected to stay within their limit."""
        return self.weights <= self.limit

    def __str__(self) -> str:
        kind = "a table" if self.weights == self.table else f"rows; a table would take {_size(self.table)}"
        verdict = "" if self.fits else "; this does not fit: use fewer features, or a higher memory_limit"
        return (
            f"weights {_size(self.weights)} ({kind}) of {_size(self.limit)} allowed, dual variables "
            f"{_size(self.dual)}, beside {_size(self.samples)} of samples{verdict}"
        )


def estimate_memory(X: Any, y: Any, hierarchy: Hierarchy | None = None, *, model: Any = None) -> MemoryEstimate:
    """About how much memory a fit will take.

    Parameters
    ----------
    X : array-like or sparse matrix of (n_samples, n_features)
    y : labels or label sets, as for ``fit``
    hierarchy : Hierarchy, optional
    model : estimator, optional
        Its weights scheme, tolerance and ``memory_limit`` count; ``NHSVM(hierarchy)`` by default.

    Returns
    -------
    MemoryEstimate

    Notes
    -----
    How many weights will not be zero is known only afterwards. Here every sample is taken to hold 12 wrong labels, any
    of all leaves, while those of documents are mostly near the true one: the estimate of rows is a high one.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from nhsvm import Hierarchy, estimate_memory
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> X = sp.random_array((1000, 50_000), density=0.001, format="csr", rng=0)
    >>> found = estimate_memory(X, ["dog", "cat", "oak", "dog"] * 250, h)
    >>> found.table, found.fits
    (1000020, True)
    """
    from nhsvm.estimators.nhsvm import NHSVM
    from nhsvm.solvers._memory import TABLE, table_bytes
    from nhsvm.solvers._places import KEPT, PLACES

    model = NHSVM(hierarchy) if model is None else model
    targets = model._encoded(y)
    X = checked(type(model)(), X, reset=True)
    same_length(X.shape[0], targets.n_samples)
    alpha = node_weights(targets.hierarchy, getattr(model, "weights", model._scheme))
    columns = make_columns(targets.hierarchy.graph, alpha)
    dtype = np.dtype(model._precision(X)[1])
    table = table_bytes(X.shape[1], columns.n_columns, dtype)
    limit = allowed_bytes(model.memory_limit)
    weights, dual = table, _ROOM * _LABELS * _PLANE * X.shape[0]
    if sp.issparse(X) and table > min(TABLE, limit):
        weights = _rows_bytes(X, columns, dtype)
        if isinstance(targets, Targets):
            dual += min(KEPT * PLACES, int(X.nnz * _touched(columns)) * _index_bytes(columns))
    samples = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) if sp.issparse(X) else X.nbytes
    return MemoryEstimate(int(samples), table, weights, dual, limit)


def _touched(columns: Columns) -> float:
    """Columns on the paths of a sample's labels."""
    return _LABELS * float(columns.paths.sizes().mean())


def _index_bytes(columns: Columns) -> int:
    return 2 if columns.n_columns <= 2**16 else 4


def _rows_bytes(X: Any, columns: Columns, dtype: np.dtype[Any]) -> int:
    """Bytes of weights in rows: a feature that many samples hold meets most nodes, a rare one few.

    Of labels drawn at random, a node has none below it with the chance (1 − its share of the leaves)^labels.
    """
    held, rows = np.unique(np.bincount(X.indices, minlength=X.shape[1]), return_counts=True)
    below, nodes = np.unique(np.bincount(columns.paths.indices, minlength=columns.n_columns), return_counts=True)
    drawn = held * (1.0 + _LABELS)  # a sample's own label, and others
    entries = np.zeros(len(held))
    for leaves, count in zip(below.tolist(), nodes.tolist(), strict=True):
        if leaves < columns.n_leaves:
            entries += count * -np.expm1(drawn * np.log1p(-leaves / columns.n_leaves))
        else:
            entries += count * (drawn > 0)
    n = columns.n_columns
    short = entries * (_index_bytes(columns) + dtype.itemsize) * _SLACK
    return int((rows * np.where(entries > 0.2 * n, n * dtype.itemsize, short)).sum())


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"
