"""What a fit will need, before it is begun."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.errors import MemoryWarning, OptionError
from nhsvm.estimators._options import streams
from nhsvm.estimators._problem import LearningProblem
from nhsvm.hierarchy import Hierarchy
from nhsvm.sizes import readable_bytes, two_sizes

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
        X; of sparse samples only the row pointers are copied.
    table : int
        Weights as a table of all features and nodes.
    weights : int
        Weights as they will be kept: the table, or rows as long as they need to be.
    dual : int
        Dual variables; with weights in rows, also where samples with one label find those that they need.
    limit : int
        What weights may take.
    only_table : bool
        Whether rows are out of the question: with dense samples, and with ``solver="sgd"``.
    """

    samples: int
    table: int
    weights: int
    dual: int
    limit: int
    only_table: bool = False

    @property
    def total(self) -> int:
        """What the fit takes beside the samples."""
        return self.weights + self.dual

    @property
    def fits(self) -> bool:
        """Whether the weights are expected to stay within their limit."""
        return self.weights <= self.limit

    def __str__(self) -> str:
        kind = "a table" if self.weights == self.table else f"rows; a table would take {readable_bytes(self.table)}"
        weights, limit = two_sizes(self.weights, self.limit)
        sparse = ", or sparse samples and solver='dual'" if self.only_table else ""
        advice = f"; this does not fit: use fewer features, or a higher memory_limit{sparse}"
        return (
            f"weights {weights} ({kind}) of {limit} allowed, dual variables {readable_bytes(self.dual)}, beside "
            f"{readable_bytes(self.samples)} of samples{'' if self.fits else advice}"
        )


def estimate_memory(X: Any, y: Any, hierarchy: Hierarchy | None = None, *, model: Any = None) -> MemoryEstimate:
    """About how much memory a fit will take.

    Parameters
    ----------
    X : array-like or sparse matrix of (n_samples, n_features)
    y : labels or label sets, as for ``fit``
    hierarchy : Hierarchy, optional
    model : estimator, optional
        Its weights scheme, tolerance, solver and ``memory_limit`` count; ``NHSVM(hierarchy)`` by default. Of a
        pipeline give the last step, and X as that gets it.

    Returns
    -------
    MemoryEstimate

    Notes
    -----
    How many weights will not be zero is known only afterwards. Here every sample is taken to hold 12 wrong labels, any
    of all leaves. Four fits of generated texts (docs/results/scale.md) took 0.7 to 1.35 times the ``total``; the last
    is with label sets on a DAG of 50,000 nodes, whose search and certificates need room too.

    Raises
    ------
    OptionError
        If the model is not an estimator of nhsvm.

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
    from nhsvm.estimators._base import HierarchicalSVM
    from nhsvm.estimators.nhsvm import NHSVM

    model = NHSVM(hierarchy) if model is None else model
    if not isinstance(model, HierarchicalSVM):
        raise OptionError(
            f"model must be an estimator of nhsvm, such as NHSVM(hierarchy), not a {type(model).__name__}"
        )
    return estimate_of(copy(model).make_problem(X, y), model)


def estimate_of(problem: LearningProblem, model: Any) -> MemoryEstimate:
    """About how much memory it takes an estimator to learn from what it has made of X and y."""
    from nhsvm.engine.storage import in_rows, table_bytes
    from nhsvm.engine.storage.addresses import ADDRESS_BYTES, KEPT

    solved, by_parts = problem.solved, streams(model)
    X, columns, dtype, limit = solved.X, solved.columns, np.dtype(solved.dtype), solved.memory
    table = table_bytes(X.shape[1], columns.n_columns, dtype)
    only_table = not sp.issparse(X) or by_parts
    weights, dual = table, 0 if by_parts else _ROOM * _LABELS * _PLANE * X.shape[0]
    if not only_table and in_rows(X, columns.n_columns, dtype, limit):
        weights = _rows_bytes(X, columns, dtype)
        if not problem.has_sets:
            dual += min(KEPT * ADDRESS_BYTES, int(X.nnz * _touched(columns)) * _index_bytes(columns))
    samples = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) if sp.issparse(X) else X.nbytes
    return MemoryEstimate(int(samples), table, weights, dual, limit, only_table)


def warn_if_tight(problem: Any) -> None:
    """A warning where weights in rows are expected to need more than they may take, which shows late otherwise.

    Parameters
    ----------
    problem : Problem, SetProblem or IndependentProblem
    """
    from nhsvm.engine.storage import in_rows

    X, columns, limit = problem.X, problem.columns, problem.memory
    dtype = np.dtype(problem.dtype or X.dtype)
    if not in_rows(X, columns.n_columns, dtype, limit):
        return
    expected = _rows_bytes(X, columns, dtype)
    if expected > limit:
        needed, allowed = two_sizes(expected, limit)
        warnings.warn(
            f"weights are expected to take about {needed}, and {allowed} are allowed: the fit may end in a "
            "MemoryLimitError; raise memory_limit, or use fewer features",
            MemoryWarning,
            stacklevel=3,
        )


def _touched(columns: Columns) -> float:
    """Columns on the paths of a sample's labels."""
    return _LABELS * float(columns.paths.sizes().mean())


def _index_bytes(columns: Columns) -> int:
    return 2 if columns.n_columns <= 2**16 else 4


def _counts(indices: Any) -> Any:
    """How often every feature occurs that does, without a table of features that is larger than the data."""
    if int(indices.max(initial=0)) > 8 * len(indices) + 1_000_000:
        return np.unique(indices, return_counts=True)[1]
    found = np.bincount(indices)
    return found[found > 0]


def _rows_bytes(X: Any, columns: Columns, dtype: np.dtype[Any]) -> int:
    """Bytes of weights in rows: a feature that many samples hold meets most nodes, a rare one few.

    Of labels drawn at random, a node has none below it with the chance (1 − its share of the leaves)^labels.
    """
    held, rows = np.unique(_counts(X.indices), return_counts=True)
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
