"""Labels of samples, checked, in the form that estimators take: of lists, or of places in the text of sparse rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nhsvm.datasets.dataset import Growing, objects, split, unknown
from nhsvm.datasets.files import ReadLog, shown
from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.hashes import Hashes, too_many
from nhsvm.typing import BoolArray, Label, LabelsLike, PtrArray

BadRows = dict[int, str]  # row of a block -> what is wrong with it, the first thing that was found
_NO_LABEL = "expected a label (multilabel=True allows for none)"


class LabelLists:
    """Collects label lists; equal ones are kept once. Without a hierarchy, whatever comes is a label.

    ``multilabel`` says whether samples have lists of labels; None: if any has two. Only with True may a list be empty.
    """

    def __init__(self, hierarchy: Hierarchy | None, multilabel: bool | None, drop_implied: bool, log: ReadLog) -> None:
        self._hierarchy, self._multilabel, self._drop = hierarchy, multilabel, drop_implied
        self._brief = log.skipping
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
            return _NO_LABEL
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

    def result(self, hierarchy: Hierarchy | None = None) -> LabelsLike:
        """``y``: an array of labels, or a list of lists; the hierarchy, if it was made of these labels."""
        if self._hierarchy is None and hierarchy is not None:
            self._hierarchy = hierarchy
            self._lists = [self._lowest(labels) for labels in self._lists]
        several = self._multilabel
        if several is None:
            several = any(len(labels) != 1 for labels in self._lists)
        if several:
            return [list(self._lists[k]) for k in self._samples]
        return objects([labels[0] for labels in self._lists])[self._samples]


# -- labels in the text of sparse rows ---------------------------------------------------------------------------------

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}(\.0*)?")
_INT64 = np.iinfo(np.int64)


class RowLabels:
    """Collects the labels of rows, block by block; ``labelled=None``: there are labels if the first row has one."""

    def __init__(
        self,
        label_type: type,
        hierarchy: Hierarchy | None,
        multilabel: bool | None,
        labelled: bool | None,
        log: ReadLog,
    ) -> None:
        if label_type not in (int, str):
            raise OptionError(f"label_type must be int or str, not {label_type!r}")
        self._is_int, self._hierarchy, self._multilabel = label_type is int, hierarchy, multilabel
        self._labelled, self._ignored, self._brief = labelled, labelled is False, log.skipping
        nodes = () if hierarchy is None else hierarchy.nodes
        numbers = [n for n in nodes if isinstance(n, (int, np.integer)) and _INT64.min <= n <= _INT64.max]
        self._known = np.unique(np.array(numbers, dtype=np.int64))
        self._clear()

    def _clear(self) -> None:
        self._codes, self._sizes = Growing(np.int64), Growing(np.int32)
        self._code: dict[bytes, int] = {}  # of names

    @property
    def names(self) -> bool:
        """Whether the kernel is to say where labels stand instead of what they are."""
        return not self._is_int or self._ignored

    def take(
        self, raw: bytes, ptr: PtrArray, places: PtrArray, hard: PtrArray, bad: BadRows
    ) -> tuple[PtrArray, PtrArray]:
        """Labels of the rows of a block (how many each, and all of them); see ``sparse_rows_kernel``."""
        sizes = np.diff(ptr)
        if self._labelled is None and len(sizes):
            self._labelled = bool(sizes[0]) or self._multilabel is True
        if not self._labelled:
            for row in [] if self._ignored else np.flatnonzero(sizes):
                bad.setdefault(int(row), "a label, where the first row has none")
            return np.zeros(len(sizes), np.int64), np.zeros(0, np.int64)
        if self._multilabel is not True:
            for row in np.flatnonzero(sizes == 0):
                bad.setdefault(int(row), _NO_LABEL)
        if self._multilabel is False:
            for row in np.flatnonzero(sizes > 1):
                bad.setdefault(int(row), f"expected one label, not {sizes[row]}")
        row_of = np.repeat(np.arange(len(sizes)), sizes)
        if not self._is_int:
            return sizes, self._named(raw, places, row_of, bad)
        codes = places[:, 0].copy()
        for k in hard.tolist():
            codes[k] = self._whole(raw[places[k, 0] : places[k, 1]], int(row_of[k]), bad)
        self._check_known(codes, row_of, bad)
        return sizes, codes

    def _whole(self, token: bytes, row: int, bad: BadRows) -> int:
        """A label that the kernel does not take for a whole number: 1.0 is one."""
        text = token.decode("utf-8", "backslashreplace")
        value = int(text.partition(".")[0]) if _WHOLE.fullmatch(text) else None
        if value is None or not _INT64.min <= value <= _INT64.max:
            hint = "" if self._brief else " (label_type=str reads names)"
            bad.setdefault(row, f"expected a whole number as label, not {shown(text)}{hint}")
            return 0
        return value

    def _check_known(self, codes: PtrArray, row_of: PtrArray, bad: BadRows) -> None:
        if self._hierarchy is not None:
            for k in np.flatnonzero(~np.isin(codes, self._known)):
                if int(row_of[k]) not in bad:
                    bad[int(row_of[k])] = unknown(int(codes[k]), self._hierarchy, self._brief or bool(bad))

    def _named(self, raw: bytes, places: PtrArray, row_of: PtrArray, bad: BadRows) -> PtrArray:
        codes = np.zeros(len(places), dtype=np.int64)
        for k, (begin, end) in enumerate(places.tolist()):
            name = raw[begin:end]
            code = self._code.get(name)
            if code is None:
                problem = self._problem(name)
                if problem:
                    bad.setdefault(int(row_of[k]), problem)
                    continue
                code = self._code.setdefault(name, len(self._code))
            codes[k] = code
        return codes

    def _problem(self, name: bytes) -> str:
        try:
            label = name.decode("utf-8")
        except UnicodeDecodeError:
            return f"not utf-8 text: {shown(name)}"
        if self._hierarchy is not None and label not in self._hierarchy:
            return unknown(label, self._hierarchy, self._brief)
        return ""

    def keep(self, sizes: PtrArray, codes: PtrArray, rows: BoolArray) -> None:
        """Store the labels of these rows of a block."""
        if not rows.all():
            codes, sizes = codes[np.repeat(rows, sizes)], sizes[rows]
        self._sizes.append(sizes)
        self._codes.append(codes)

    def result(self) -> LabelsLike:
        """``y`` of the rows since the last call: labels, lists of labels, or None."""
        codes, sizes, code = self._codes.array(), self._sizes.array(), self._code
        self._clear()
        if not self._labelled:
            return None
        several = bool((sizes != 1).any()) if self._multilabel is None else self._multilabel
        labels = codes if self._is_int else objects([name.decode("utf-8") for name in code])[codes]
        if not several:
            return labels
        ends = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        return [list(dict.fromkeys(part)) for part in split(labels.tolist(), ends)]
