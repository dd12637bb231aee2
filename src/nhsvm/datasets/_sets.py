"""Labels of samples, one list after the other: checked, without those implied, in the form estimators take."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from nhsvm.datasets._files import Trouble
from nhsvm.datasets._hierarchies import unknown
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.hashes import Hashes, too_many

Label = Hashable


class LabelLists:
    """Collects label lists; equal ones are kept once.

    Parameters
    ----------
    hierarchy : Hierarchy or None
        Labels must be its nodes. None: whatever comes is a label.
    multilabel : bool or None
        Whether samples have lists of labels; None: if any has two. Only with True may a list be empty.
    drop_implied : bool
        Leave out labels above others of the same sample.
    """

    def __init__(
        self, hierarchy: Hierarchy | None, multilabel: bool | None, drop_implied: bool, trouble: Trouble
    ) -> None:
        self._hierarchy, self._multilabel, self._drop = hierarchy, multilabel, drop_implied
        self._brief = trouble.skipping
        self._number: dict[tuple[Label, ...], int] = {}
        self._lists: list[tuple[Label, ...]] = []
        self._samples: list[int] = []
        self._hashes, self._labels = Hashes(), set[Label]()
        self._above: dict[Label, frozenset[Label]] = {}

    def add(self, labels: Sequence[Label]) -> str:
        """Take in the labels of a sample, or say why not."""
        key = tuple(labels)
        number = self._number.get(key)
        if number is None:
            problem = self._crowded(key) or self._problem(key)
            if problem:
                return problem
            kept = self._lowest(tuple(dict.fromkeys(key)))
            if self._multilabel is False and len(kept) > 1:
                return f"expected one label, not {len(kept)}"
            number = self._number[key] = len(self._lists)
            self._lists.append(kept)
        self._samples.append(number)
        return ""

    def _crowded(self, labels: tuple[Label, ...]) -> str:
        """Labels and lists of them are kept in dictionaries."""
        if all(type(label) is str for label in labels):
            return ""
        for label in labels:
            if label not in self._labels:
                if self._hashes.crowded(label):
                    return too_many(label)
                self._labels.add(label)
        return too_many(labels) if self._hashes.crowded(labels) else ""

    def _problem(self, labels: tuple[Label, ...]) -> str:
        if not labels and self._multilabel is not True:
            return "expected a label (multilabel=True allows for none)"
        if self._hierarchy is not None:
            for label in labels:
                if label not in self._hierarchy:
                    return unknown(label, self._hierarchy, self._brief)
        return ""

    def _lowest(self, labels: tuple[Label, ...]) -> tuple[Label, ...]:
        if not self._drop or len(labels) < 2 or self._hierarchy is None:
            return labels
        implied: set[Label] = set()
        for label in labels:
            if label not in self._above:
                self._above[label] = self._hierarchy.ancestors(label)
            implied |= self._above[label]
        return tuple(label for label in labels if label not in implied)

    def result(self, hierarchy: Hierarchy | None = None) -> Any:
        """``y``: an array of labels, or a list of lists; the hierarchy, if it was made of these labels."""
        if self._hierarchy is None and hierarchy is not None:
            self._hierarchy = hierarchy
            self._lists = [self._lowest(labels) for labels in self._lists]
        several = self._multilabel
        if several is None:
            several = any(len(labels) != 1 for labels in self._lists)
        if several:
            return [list(self._lists[k]) for k in self._samples]
        names = np.empty(len(self._lists), dtype=object)
        names[:] = [labels[0] for labels in self._lists]
        return names[self._samples]
