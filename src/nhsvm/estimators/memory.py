"""How much memory weights may take, and an estimate of what a fit will need before it is begun."""

from __future__ import annotations

import os
import re
import warnings
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, SupportsFloat

import numpy as np
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.errors import MemoryWarning, OptionError
from nhsvm.estimators.options import solver_of
from nhsvm.hierarchy import Hierarchy
from nhsvm.sizes import readable_bytes, two_sizes
from nhsvm.typing import Estimator, IntArray, LabelsLike, MatrixLike, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine import Problem
    from nhsvm.estimators.problem import LearningProblem

SHARE = 0.6  # of the free memory, for weights
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# of a container: folder, files with its limit and what it uses, and how memory.stat calls pages of files not in use
CONTAINERS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


class EstimateSettings(NamedTuple):
    """Constants of the estimate."""

    labels: int = 12
    """Wrong labels that a sample holds on average at a gap of 1 %, measured on generated texts."""
    slack: float = 1.3
    """Rows are made anew when they take so many times what they need."""
    plane: int = 28
    """Bytes of one wrong label of a sample: leaf, weight, loss, scale."""
    room: int = 2
    """Places kept for each."""


EXPECTED = EstimateSettings()


# -- what there is -----------------------------------------------------------------------------------------------------


def allowed_bytes(memory_limit: object) -> int:
    """Bytes that weights may take: what is asked for, or a share of what is free."""
    return int(SHARE * free_memory()) if memory_limit is None else parsed(memory_limit)


def parsed(memory_limit: object, name: str = "memory_limit") -> int:
    """Bytes, given as a number or as text such as "6 GB" or "500MiB".

    Raises
    ------
    OptionError
        If it is neither.
    """
    problem = OptionError(f'{name} must be None, a number of bytes, or text such as "6 GB", not {memory_limit!r}')
    if isinstance(memory_limit, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?I?)B?\s*", memory_limit.upper())
        if found is None or found[2] not in _UNITS:
            raise problem
        try:
            size = float(found[1]) * _UNITS[found[2]]
        except ValueError as error:
            raise problem from error
    elif isinstance(memory_limit, bool) or not isinstance(memory_limit, SupportsFloat):
        raise problem
    else:
        size = float(memory_limit)
    if not 0 < size < float("inf"):
        raise problem
    return int(size)


def free_memory() -> int:
    """Bytes that can be had without swapping, as far as the system tells; a container's limit counts too."""
    free = _available()
    for folder, limit, used, files in CONTAINERS:
        most, now = _number(Path(folder, limit)), _number(Path(folder, used))
        if most is not None and now is not None and most < 2**60:
            spare = _number(Path(folder, "memory.stat"), f"{files} ") or 0  # given up as soon as somebody needs it
            free = min(free, max(0, most - max(0, now - spare)))
    return free


def _available() -> int:
    found = _number(Path("/proc/meminfo"), r"MemAvailable:\s*")
    if found is not None:
        return found * 1024
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names:  # of all there is, half may be free
        return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE")) // 2
    return 4 * 2**30  # a guess, where a system does not tell


def _number(path: Path, before: str = "") -> int | None:
    """The number at the beginning of a line of a file, after some text; None without such a file or line."""
    try:
        found = re.search(rf"^{before}(\d+)\b", path.read_text(encoding="ascii"), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return None if found is None else int(found[1])


# -- what a fit needs --------------------------------------------------------------------------------------------------


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


def estimate_memory(
    X: MatrixLike, y: LabelsLike, hierarchy: Hierarchy | None = None, *, model: Estimator = None
) -> MemoryEstimate:
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
    from nhsvm.estimators.base import HierarchicalSVM
    from nhsvm.estimators.presets import NHSVM

    model = NHSVM(hierarchy) if model is None else model
    if not isinstance(model, HierarchicalSVM):
        raise OptionError(
            f"model must be an estimator of nhsvm, such as NHSVM(hierarchy), not a {type(model).__name__}; of one that "
            "chooses C, give its plain()"
        )
    return estimate_of(copy(model).make_problem(X, y), model)


def estimate_of(problem: LearningProblem, model: Estimator) -> MemoryEstimate:
    """About how much memory it takes an estimator to learn from what it has made of X and y."""
    from nhsvm.engine.storage import table_bytes
    from nhsvm.engine.storage.addresses import ADDRESS_BYTES, KEPT

    solved, solver = problem.solved, solver_of(model)
    X, columns, limit = solved.X, solved.columns, solved.memory
    assert limit is not None  # estimators always have one
    table = table_bytes(X.shape[1], columns.n_columns, solved.dtype)
    rows = _rows_bytes(solved) if solver.takes_rows else None
    dual = EXPECTED.room * EXPECTED.labels * EXPECTED.plane * X.shape[0] if solver.proves else 0
    if rows is not None and not problem.labels.multilabel:
        on_paths = EXPECTED.labels * float(columns.paths.sizes().mean())  # columns on the paths of a sample's labels
        dual += min(KEPT * ADDRESS_BYTES, int(X.nnz * on_paths) * _index_bytes(columns))
    samples = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) if sp.issparse(X) else X.nbytes
    only_table = not sp.issparse(X) or not solver.takes_rows
    return MemoryEstimate(int(samples), table, table if rows is None else rows, dual, limit, only_table)


def warn_if_tight(problem: Problem) -> None:
    """A warning where weights in rows are expected to need more than they may take, which shows late otherwise."""
    expected, limit = _rows_bytes(problem), problem.memory
    if expected is not None and limit is not None and expected > limit:
        needed, allowed = two_sizes(expected, limit)
        warnings.warn(
            f"weights are expected to take about {needed}, and {allowed} are allowed: the fit may end in a "
            "MemoryLimitError; raise memory_limit, or use fewer features",
            MemoryWarning,
            stacklevel=3,
        )


def _rows_bytes(problem: Problem) -> int | None:
    """Bytes of weights in rows, if they will be kept so: a feature that many samples hold meets most nodes, a rare few.

    Of labels drawn at random, a node has none below it with the chance (1 − its share of the leaves)^labels.
    """
    from nhsvm.engine.storage import in_rows

    X, columns, dtype = problem.X, problem.columns, np.dtype(problem.dtype)
    if problem.memory is None or not in_rows(X, columns.n_columns, dtype, problem.memory):
        return None
    held, rows = np.unique(_counts(X.indices), return_counts=True)
    below, nodes = np.unique(np.bincount(columns.paths.indices, minlength=columns.n_columns), return_counts=True)
    drawn = held * (1.0 + EXPECTED.labels)  # a sample's own label, and others
    entries = np.zeros(len(held))
    for leaves, count in zip(below.tolist(), nodes.tolist(), strict=True):
        if leaves < columns.n_leaves:
            entries += count * -np.expm1(drawn * np.log1p(-leaves / columns.n_leaves))
        else:
            entries += count * (drawn > 0)
    n = columns.n_columns
    short = entries * (_index_bytes(columns) + dtype.itemsize) * EXPECTED.slack
    return int((rows * np.where(entries > 0.2 * n, n * dtype.itemsize, short)).sum())


def _index_bytes(columns: Columns) -> int:
    return 2 if columns.n_columns <= 2**16 else 4


def _counts(indices: IntArray) -> PtrArray:
    """How often every feature occurs that does, without a table of features that is larger than the data."""
    if int(indices.max(initial=0)) > 8 * len(indices) + 1_000_000:
        return np.unique(indices, return_counts=True)[1]
    found = np.bincount(indices)
    return found[found > 0]
