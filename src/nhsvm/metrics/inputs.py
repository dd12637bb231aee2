"""What measures are given (labels, label sets or a 0/1 matrix), as sparse matrices over nodes, and counts in them.

:class:`Pair` holds truth and prediction side by side; all measures of label sets are functions of its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from nhsvm.checks import a_hierarchy
from nhsvm.errors import DataError, LabelError, OptionError, UnknownLabelError
from nhsvm.hierarchy import Hierarchy, VirtualLeaf
from nhsvm.hierarchy.labels import samples
from nhsvm.sizes import is_number
from nhsvm.typing import BoolArray, FloatArray, IntArray, Label, LabelsLike, PtrArray, SampleWeights

Over = Literal["labels", "nodes"]
Roots = bool | Literal["auto"]
Function = TypeVar("Function", bound=Callable[..., object])
_TEXTS = {
    "{y}": """y_true, y_pred : labels, label sets, or 0/1 matrix
    One label a sample; or a set or list of labels a sample, which may be empty; or a dense or sparse matrix with a
    column for every label.""",
    "{over}": """over : {"labels", "nodes"}
    Y is the set of labels as given, or these with everything above them.""",
    "{roots}": """roots : "auto" or bool
    Whether roots count among the nodes. By default they do if there are several; the only root does not, since every
    label has it.""",
    "{given}": """labels : sequence of labels, optional
    What the columns of a matrix are; by default ``hierarchy.leaves``.
sample_weight : array of n_samples, optional""",
    "{unified view}": (
        "A. Kosmopoulos, I. Partalas, E. Gaussier, G. Paliouras, I. Androutsopoulos. Evaluation measures for\n"
        "   hierarchical classification: a unified view and novel approaches. "
        "Data Mining and Knowledge Discovery 29, 2015."
    ),
}


def documented(measure: Function) -> Function:
    """Write out what measures share in the documentation of one, such as the parameters ``{y}`` and ``{roots}``."""
    text = cleandoc(measure.__doc__ or "")
    for name, shared in _TEXTS.items():
        text = text.replace(name, shared)
    measure.__doc__ = text
    return measure


class Counts(NamedTuple):
    """|Y ∩ Ŷ|, |Y| and |Ŷ|, of every sample or of every column."""

    both: FloatArray
    true: FloatArray
    pred: FloatArray


@dataclass(frozen=True)
class Pair:
    """What was true and what was predicted: booleans over the nodes of the hierarchy, or those of them that count."""

    hierarchy: Hierarchy
    true: sp.csr_array
    pred: sp.csr_array
    weight: FloatArray
    named: IntArray | None  # nodes of the labels that the caller named

    def over(self, what: Over, roots: Roots) -> Pair:
        """The same pair with one column for each label, or for each node with its closures filled in."""
        choice("over", what, ("labels", "nodes"))
        counted = node_mask(self.hierarchy, roots)  # checks roots, which labels leave aside
        if what == "nodes":
            true, pred = (closures(y, self.hierarchy) for y in (self.true, self.pred))
        else:
            true, pred = self.true, self.pred
            counted = np.zeros(self.hierarchy.n_nodes, dtype=bool)
            counted[class_numbers(self.hierarchy) if self.named is None else self.named] = True
            counted[true.indices] = True
            counted[pred.indices] = True
        if not counted.all():
            true, pred = true[:, counted], pred[:, counted]
        return replace(self, true=true, pred=pred)

    @property
    def n_columns(self) -> int:
        return int(self.true.shape[1])

    def per_sample(self) -> Counts:
        """The sizes of every sample's sets."""
        common = self.true.multiply(self.pred).tocsr()
        return Counts(*(np.diff(y.indptr).astype(np.float64) for y in (common, self.true, self.pred)))

    def per_column(self) -> Counts:
        """The weighted number of samples that have each column."""
        common = self.true.multiply(self.pred).tocsr()
        return Counts(*(column_weights(y, self.weight) for y in (common, self.true, self.pred)))

    def mean(self, values: FloatArray) -> float:
        """The weighted mean over samples."""
        return float(np.average(values, weights=self.weight))

    def single(self, measure: str) -> tuple[IntArray, IntArray]:
        """Node numbers of the true and the predicted label of every sample, for measures that know no sets."""
        for y, name in ((self.true, "y_true"), (self.pred, "y_pred")):
            sizes = np.diff(y.indptr)
            for i in np.flatnonzero(sizes != 1)[:1]:
                raise LabelError(
                    f"{measure} compares one label with one, but sample {i} of {name} has {sizes[i]} labels"
                )
        return self.true.indices, self.pred.indices

    @property
    def is_single(self) -> bool:
        """Whether every sample has one true and one predicted label."""
        return all(bool((np.diff(y.indptr) == 1).all()) for y in (self.true, self.pred))


def make_pair(
    y_true: LabelsLike,
    y_pred: LabelsLike,
    hierarchy: Hierarchy,
    labels: Sequence[Label] | None,
    weight: SampleWeights,
) -> Pair:
    """Check and encode what every measure is given."""
    a_hierarchy(hierarchy)
    columns = None if labels is None else column_numbers(labels, hierarchy, "labels")
    true = indicators(y_true, hierarchy, columns, "y_true")
    pred = indicators(y_pred, hierarchy, columns, "y_pred")
    if true.shape[0] != pred.shape[0]:
        raise DataError(f"y_true has {true.shape[0]} samples, but y_pred {pred.shape[0]}")
    return Pair(hierarchy, true, pred, sample_weights(weight, true.shape[0]), columns)


def closures(y: sp.csr_array, hierarchy: Hierarchy) -> sp.csr_array:
    """Ā of the labels of every sample: each with everything above it."""
    indptr, indices = hierarchy.graph.ancestors
    above = sp.csr_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=(hierarchy.n_nodes,) * 2)
    found = sp.csr_array(y @ above)
    found.sort_indices()
    return found


def indicator(nodes: IntArray, indptr: PtrArray, n_nodes: int) -> sp.csr_array:
    """Booleans with ones at the given nodes of every sample."""
    found = sp.csr_array((np.ones(len(nodes), dtype=bool), nodes, indptr), shape=(len(indptr) - 1, n_nodes))
    found.sum_duplicates()  # a label named twice; sorts too
    return found


def by_level(hierarchy: Hierarchy) -> sp.csr_array:
    """``[n, k]`` when node n is at level k."""
    n, graph = hierarchy.n_nodes, hierarchy.graph
    return sp.csr_array((np.ones(n, dtype=bool), graph.level, np.arange(n + 1)), shape=(n, graph.n_levels))


def column_weights(y: sp.csr_array, weight: FloatArray) -> FloatArray:
    """For every column, the weight of the samples that have it."""
    found: FloatArray = np.bincount(y.indices, np.repeat(weight, np.diff(y.indptr)), y.shape[1]).astype(np.float64)
    return found


def node_mask(hierarchy: Hierarchy, roots: Roots) -> BoolArray:
    """Which nodes count: no virtual leaf, and the roots as told."""
    choice("roots", roots, ("auto", True, False))
    n_roots = hierarchy.graph.n_roots
    counted = ~hierarchy.is_virtual
    counted[:n_roots] = n_roots > 1 if roots == "auto" else roots
    return counted


def ratio(part: FloatArray, whole: FloatArray, other: FloatArray, zero_division: float) -> FloatArray:
    """The share part / whole; 0/0 is 1 if the other side is empty as well (they agree), else ``zero_division``."""
    empty = whole == 0
    values: FloatArray = part / np.where(empty, 1.0, whole)
    return np.where(empty, np.where(other == 0, 1.0, zero_division), values)


def sample_weights(given: SampleWeights, n_samples: int) -> FloatArray:
    """Finite weights ≥ 0, not all 0; ones if none are given."""
    if given is None:
        return np.ones(n_samples)
    try:
        weight = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("sample_weight must be numbers, one a sample") from None
    if weight.shape != (n_samples,):
        raise DataError(f"sample_weight must have one number a sample, {n_samples}, not shape {weight.shape}")
    bad = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if len(bad):
        raise DataError(f"sample_weight must be finite and ≥ 0, but sample {bad[0]} has {weight[bad[0]]}")
    if not weight.any():
        raise DataError("sample_weight is 0 for every sample")
    return weight


def indicators(y: LabelsLike, hierarchy: Hierarchy, columns: IntArray | None, name: str) -> sp.csr_array:
    """Booleans, ``[i, n]`` when sample i has label n: no stored zeros, ascending columns.

    A label on an inner node is that node, whether or not it has a virtual leaf.

    ``columns`` are the nodes of the columns of a matrix, None for the leaves; ``name`` is that of ``y`` in messages.
    """
    if sp.issparse(y) or getattr(y, "ndim", 1) > 1:
        return _from_matrix(y, hierarchy, columns, name)
    items = samples(y.tolist() if hasattr(y, "tolist") and getattr(y, "ndim", 1) == 1 else y)
    if not items:
        raise DataError(f"{name} has no samples")
    is_set = [_is_set(item, hierarchy) for item in items]
    if not any(is_set):
        sizes = np.ones(len(items), dtype=np.int64)
        numbers = _numbers(([item] for item in items), hierarchy, name)
    elif all(is_set):
        sizes = np.array([len(item) for item in items], dtype=np.int64)
        numbers = _numbers(items, hierarchy, name)
    else:
        one, several = is_set.index(False), is_set.index(True)
        raise LabelError(
            f"{name}: sample {one} has one label, {items[one]!r}, but sample {several} a set of labels, "
            f"{items[several]!r}; give every sample a set, or none"
        )
    return indicator(numbers, np.concatenate([[0], np.cumsum(sizes)]), hierarchy.n_nodes)


def column_numbers(labels: Sequence[Label], hierarchy: Hierarchy, name: str) -> IntArray:
    """Node numbers of the labels that name the columns of a matrix, all different."""
    given = samples(labels)
    numbers = _numbers([given], hierarchy, name, place="")
    distinct, times = np.unique(numbers, return_counts=True)
    if len(distinct) < len(numbers):
        twice = hierarchy.nodes[distinct[times > 1][0]]
        raise LabelError(f"{name} must be different from each other, but {twice!r} is there twice")
    return numbers


def class_numbers(hierarchy: Hierarchy) -> IntArray:
    """Node numbers of ``hierarchy.leaves``; in place of a virtual leaf, the node it stands for."""
    return hierarchy.numbers(list(hierarchy.leaves))


def _numbers(rows: Iterable[Iterable[Label]], hierarchy: Hierarchy, name: str, place: str = ", sample {}") -> IntArray:
    found: list[int] = []
    for i, row in enumerate(rows):
        for label in row:
            try:
                found.append(hierarchy.number(label.of if isinstance(label, VirtualLeaf) else label))
            except UnknownLabelError as error:
                raise UnknownLabelError(error.labels, text=f"{name}{place.format(i)}: {error}") from None
            except LabelError as error:
                raise LabelError(f"{name}{place.format(i)}: {error}") from None
    return np.array(found, dtype=np.int32)


def _from_matrix(y: LabelsLike, hierarchy: Hierarchy, columns: IntArray | None, name: str) -> sp.csr_array:
    given = y if sp.issparse(y) else np.asarray(y)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise LabelError(f"{name} must be labels, label sets or a 0/1 matrix, not {given.dtype} of shape {given.shape}")
    if columns is None:
        columns = class_numbers(hierarchy)
        if given.shape[1] != len(columns):
            raise LabelError(
                f"{name} has {given.shape[1]} columns, but the hierarchy {len(columns)} leaves: "
                "say with labels=... what the columns are"
            )
    elif given.shape[1] != len(columns):
        raise LabelError(f"{name} has {given.shape[1]} columns, but there are {len(columns)} labels")
    if not given.shape[0]:
        raise DataError(f"{name} has no samples")
    matrix = sp.csr_array(given, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    bad = np.flatnonzero(matrix.data != 1)
    if len(bad):
        sample = np.searchsorted(matrix.indptr, bad[0], side="right") - 1
        label = hierarchy.nodes[columns[matrix.indices[bad[0]]]]
        raise LabelError(f"{name}, sample {sample}: expected 0 or 1 for {label!r}, not {matrix.data[bad[0]]}")
    return indicator(columns[matrix.indices], matrix.indptr, hierarchy.n_nodes)


def _is_set(item: object, hierarchy: Hierarchy) -> bool:
    """A set, list or array; a tuple or frozenset too, unless it is itself a label."""
    if isinstance(item, (tuple, frozenset)):
        return item not in hierarchy
    return isinstance(item, (set, list)) or (isinstance(item, np.ndarray) and item.ndim > 0)


def choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise unless the value is among those allowed; True is not 1 here."""
    if not any(value is a or (type(value) is type(a) and value == a) for a in allowed):
        raise OptionError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def a_number(name: str, value: object, *, nan: bool = False) -> float:
    """``value`` as a float between 0 and 1."""
    if is_number(value) and (0 <= value <= 1 or (nan and np.isnan(value))):
        return float(value)
    raise OptionError(f"{name} must be a number from 0 to 1{' or nan' if nan else ''}, not {value!r}")


def positive(name: str, value: object) -> float:
    """``value`` as a finite float above 0."""
    if is_number(value) and 0 < value < np.inf:
        return float(value)
    raise OptionError(f"{name} must be a finite number above 0, not {value!r}")
