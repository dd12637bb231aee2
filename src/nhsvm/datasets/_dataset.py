"""What every reader and generator gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.hierarchy import Hierarchy


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

    y: Any
    hierarchy: Hierarchy | None
    X: sp.csr_matrix | npt.NDArray[Any] | None = None
    texts: list[str] | None = None
    feature_names: npt.NDArray[Any] | None = None
    extra: Mapping[str, list[Any]] = field(default_factory=dict)
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
            what.append(f"{self.X.shape[1]:,} features ({self._kind()})")
        what.append(self._labels())
        what.append("no hierarchy" if self.hierarchy is None else repr(self.hierarchy))
        if self.skipped.count:
            what.append(f"{self.skipped.count:,} skipped")
        return f"Dataset({', '.join(what)})"

    def _kind(self) -> str:
        assert self.X is not None
        return f"{'sparse' if sp.issparse(self.X) else 'dense'} {np.dtype(self.X.dtype).name}"

    def _labels(self) -> str:
        if self.y is None:
            return "no labels"
        if not self.is_multilabel:
            return "one label each"
        return f"{sum(map(len, self.y)) / max(len(self.y), 1):.2f} labels on average"
