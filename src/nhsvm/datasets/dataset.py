"""What readers and generators give back, and what their options are checked for."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from os import PathLike
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.errors import FileFormatError, HierarchyError, OptionError, UnknownLabelError
from nhsvm.hierarchy import Hierarchy
from nhsvm.typing import JSON, AnySeed, Array, DType, Label, LabelsLike, Matrix

T = TypeVar("T")
AnyPath: TypeAlias = str | PathLike[str]
FeatureNames: TypeAlias = Array | range | None


@dataclass(frozen=True)
class Skipped:
    """What a reader with ``on_error="skip"`` has left out.

    Attributes
    ----------
    count : int
        Samples left out.
    first : tuple of (int, str)
        Line (of a Parquet file: row) and reason of the first few.

    Examples
    --------
    >>> print(Skipped(2, ((3, "expected a label, not 'x'"), (9, "feature 7 is given twice"))))
    2 skipped; line 3: expected a label, not 'x'; line 9: feature 7 is given twice
    """

    count: int = 0
    first: tuple[tuple[int, str], ...] = ()

    def __str__(self) -> str:
        parts = [f"{self.count:,} skipped", *(f"line {line}: {reason}" for line, reason in self.first)]
        return "; ".join(parts + ["..."] * (len(self.first) < self.count))


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples, their labels and the hierarchy of these.

    Attributes
    ----------
    y : array of n_samples, list of n_samples lists, or None
        One label a sample, or the list of its labels; None for samples without labels. Estimators take either.
    hierarchy : Hierarchy or None
        None if there is none (a file of samples alone).
    X : CSR matrix, array or None
        Features, a row a sample. NaN in an array is a missing value.
    texts : list of str or None
        The text of every sample.
    feature_names : array of n_features, or None
        Names of the columns of X; for files of numbered features, their numbers.
    extra : dict of str to list
        Further columns that were asked for, such as a split.
    skipped : Skipped
        Samples that a reader has left out, and why.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat")])
    >>> Dataset(y=["dog", "cat"], hierarchy=h, texts=["woof", "miaow"])
    Dataset(2 samples with texts, one label each, Hierarchy(tree, 3 nodes, 2 leaves, 1 root, 2 levels))
    """

    y: LabelsLike
    hierarchy: Hierarchy | None
    X: Matrix | None = None
    texts: list[str] | None = None
    feature_names: FeatureNames = None
    extra: Mapping[str, list[JSON]] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=Skipped)

    @property
    def n_samples(self) -> int:
        if self.X is not None:
            return int(self.X.shape[0])
        return len(self.y if self.texts is None else self.texts)

    @property
    def is_multilabel(self) -> bool:
        """Whether ``y`` has lists of labels."""
        return isinstance(self.y, list) and any(isinstance(labels, list) for labels in self.y)

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        what = [f"{self.n_samples:,} samples" + (" with texts" if self.texts is not None else "")]
        if self.X is not None:
            kind = "sparse" if sp.issparse(self.X) else "dense"
            what.append(f"{self.X.shape[1]:,} features ({kind} {np.dtype(self.X.dtype).name})")
        what.append(self._labels())
        what.append("no hierarchy" if self.hierarchy is None else repr(self.hierarchy))
        if self.skipped.count:
            what.append(f"{self.skipped.count:,} skipped")
        return f"Dataset({', '.join(what)})"

    def _labels(self) -> str:
        if self.y is None:
            return "no labels"
        if not self.is_multilabel:
            return "one label each"
        return f"{sum(map(len, self.y)) / max(len(self.y), 1):.2f} labels on average"


# -- the hierarchy that comes with samples -----------------------------------------------------------------------------


def given_hierarchy(
    hierarchy: Hierarchy | AnyPath | None, label_type: type | None, drop_root: bool
) -> Hierarchy | None:
    """A hierarchy that was given as such, or as a file."""
    if isinstance(hierarchy, (str, PathLike)):
        try:
            hierarchy = Hierarchy.read(hierarchy, label_type=label_type)
        except OSError as error:
            raise FileFormatError(str(hierarchy), None, f"cannot be read: {error.strerror or error}") from error
    if hierarchy is not None and not isinstance(hierarchy, Hierarchy):
        raise OptionError(f"hierarchy must be a Hierarchy or the path of a file, not {hierarchy!r}")
    return without_root(hierarchy) if drop_root and hierarchy is not None else hierarchy


def without_root(hierarchy: Hierarchy) -> Hierarchy:
    """The hierarchy without its root, which is above every label and so tells none of them apart.

    Examples
    --------
    >>> h = Hierarchy.from_edges([("root", "animal"), ("root", "plant"), ("animal", "dog")])
    >>> without_root(h)
    Hierarchy(forest, 3 nodes, 2 leaves, 2 roots, 2 levels)
    """
    if len(hierarchy.roots) != 1:
        return hierarchy
    root = hierarchy.roots[0]
    if hierarchy.is_leaf(root):
        raise HierarchyError(f"the hierarchy has only one node, {root!r}, so it cannot be dropped as a root")
    edges = list(hierarchy.edges())
    return Hierarchy.from_edges([e for e in edges if e[0] != root], nodes=[c for p, c in edges if p == root])


def unknown(label: Label, hierarchy: Hierarchy, brief: bool) -> str:
    """What to say of a label that is not in the hierarchy; looking for similar ones takes its time."""
    return f"not in the hierarchy: {label!r}" if brief else str(UnknownLabelError([label], hierarchy.nodes))


# -- options -----------------------------------------------------------------------------------------------------------


def checked_dtype(dtype: npt.DTypeLike) -> DType:
    """The type of features: single or double precision."""
    try:
        found: DType = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise OptionError(f"dtype must be float32 or float64, not {dtype!r}")
    return found


def checked_like(like: Dataset | None) -> Dataset | None:
    """The data set whose form another one takes, if there is one."""
    if like is not None and not isinstance(like, Dataset):
        raise OptionError(f"like must be a Dataset, not a {type(like).__name__}")
    return like


def whole_number(value: int, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise OptionError(f"{name} must be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"from {least} to {most}"
        raise OptionError(f"{name} must be {limits}, not {value}")
    return int(value)


def number(value: float, name: str, least: float, most: float = np.inf) -> float:
    """A finite number in a range."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise OptionError(f"{name} must be a number, not {value!r}")
    if not (np.isfinite(value) and least <= value <= most):
        limits = f"at least {least}" if most == np.inf else f"from {least} to {most}"
        raise OptionError(f"{name} must be {limits}, not {value}")
    return float(value)


def generator(random_state: AnySeed) -> np.random.Generator:
    """A generator of random numbers; itself, if it is one."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise OptionError(
            f"random_state must be a whole number ≥ 0, a Generator or None, not {random_state!r}"
        ) from None


# -- arrays ------------------------------------------------------------------------------------------------------------


def objects(items: Collection[object]) -> Array:
    """An array of Python objects: labels that are tuples stay what they are, too."""
    found = np.empty(len(items), dtype=object)
    found[:] = list(items)
    return found


def split(flat: Sequence[T], ends: Iterable[int]) -> list[Sequence[T]]:
    """The parts of a list from each of ``ends`` to the next."""
    return [flat[a:b] for a, b in pairwise(ends)]


class Growing:
    """A one-dimensional array to append to: its pages are moved when it grows, where a list of parts is copied.

    Examples
    --------
    >>> found = Growing(np.int64, [3])
    >>> found.append([1, 4])
    >>> found.array()
    array([3, 1, 4])
    """

    def __init__(self, dtype: npt.DTypeLike, start: npt.ArrayLike = ()) -> None:
        self._dtype = np.dtype(dtype)
        self._numbers: array[float] = array(self._dtype.char)
        self.append(start)

    def append(self, items: npt.ArrayLike) -> None:
        self._numbers.frombytes(np.ascontiguousarray(items, self._dtype).view(np.uint8).data)

    def last(self) -> int:
        return int(self._numbers[-1])

    def array(self) -> Array:
        """The result; nothing is appended after."""
        return np.frombuffer(self._numbers, self._dtype)
