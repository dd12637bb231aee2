"""Labels of samples, checked, in the form that estimators take: of lists, or of places in the text of sparse rows."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets.base import Growing, unknown
from nhsvm.datasets.files import Trouble, shown
from nhsvm.errors import OptionError
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


# -- labels in the text of sparse rows ---------------------------------------------------------------------------------

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}(\.0*)?")
_INT64 = np.iinfo(np.int64)
Ints = npt.NDArray[np.int64]


def check_label_type(label_type: type) -> None:
    """Raise unless labels are to be whole numbers or names."""
    if label_type not in (int, str):
        raise OptionError(f"label_type must be int or str, not {label_type!r}")


class Labels:
    """Collects the labels of rows, block by block.

    Parameters
    ----------
    label_type : int or str
    hierarchy : Hierarchy or None
        Labels must be its nodes.
    multilabel : bool or None
        Whether samples have lists of labels; None: if any has two. Only with True may a list be empty.
    labelled : bool or None
        Whether there are labels; None: if the first row has one.
    """

    def __init__(
        self,
        label_type: type,
        hierarchy: Hierarchy | None,
        multilabel: bool | None,
        labelled: bool | None,
        trouble: Trouble,
    ) -> None:
        check_label_type(label_type)
        self._is_int, self._hierarchy, self._multilabel = label_type is int, hierarchy, multilabel
        self._labelled, self._ignored, self._brief = labelled, labelled is False, trouble.skipping
        self._codes, self._sizes = Growing(np.int64), Growing(np.int32)
        self._code: dict[bytes, int] = {}  # of names
        self._known = None if hierarchy is None else _whole_numbers(hierarchy)
        self._block: tuple[Ints, Ints] = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    @property
    def labelled(self) -> bool | None:
        """Whether rows have labels, once that is known."""
        return self._labelled

    @property
    def names(self) -> bool:
        """Whether the kernel is to say where labels stand instead of what they are."""
        return not self._is_int or self._ignored

    def take(self, raw: bytes, ptr: Ints, places: Ints, hard: Ints, bad: dict[int, str]) -> None:
        """Labels of the rows of a block, and what is wrong with them; see ``sparse_rows_kernel``."""
        sizes = np.diff(ptr)
        if self._labelled is None and len(sizes):
            self._labelled = bool(sizes[0]) or self._multilabel is True
        if not self._labelled:
            for row in [] if self._ignored else np.flatnonzero(sizes):
                bad.setdefault(int(row), "a label, where the first row has none")
            self._block = np.zeros(len(sizes), np.int64), np.zeros(0, np.int64)
            return
        self._count(sizes, bad)
        row_of = np.repeat(np.arange(len(sizes)), sizes)
        if self._is_int:
            codes = places[:, 0].copy()
            for k in hard.tolist():
                codes[k] = self._whole(raw[places[k, 0] : places[k, 1]], int(row_of[k]), bad)
            self._check_known(codes, row_of, bad)
        else:
            codes = self._named(raw, places, row_of, bad)
        self._block = sizes, codes

    def _count(self, sizes: Ints, bad: dict[int, str]) -> None:
        if self._multilabel is not True:
            for row in np.flatnonzero(sizes == 0):
                bad.setdefault(int(row), "expected a label (multilabel=True allows for none)")
        if self._multilabel is False:
            for row in np.flatnonzero(sizes > 1):
                bad.setdefault(int(row), f"expected one label, not {sizes[row]}")

    def _whole(self, token: bytes, row: int, bad: dict[int, str]) -> int:
        """A label that the kernel does not take for a whole number: 1.0 is one."""
        text = token.decode("utf-8", "backslashreplace")
        value = int(text.partition(".")[0]) if _WHOLE.fullmatch(text) else None
        if value is None or not _INT64.min <= value <= _INT64.max:
            hint = "" if self._brief else " (label_type=str reads names)"
            bad.setdefault(row, f"expected a whole number as label, not {shown(text)}{hint}")
            return 0
        return value

    def _check_known(self, codes: Ints, row_of: Ints, bad: dict[int, str]) -> None:
        if self._known is None or self._hierarchy is None or not len(codes):
            return
        if len(self._known):
            found = self._known[np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)] == codes
        else:
            found = np.zeros(len(codes), dtype=bool)
        for k in np.flatnonzero(~found):
            if int(row_of[k]) not in bad:
                bad[int(row_of[k])] = unknown(int(codes[k]), self._hierarchy, self._brief or bool(bad))

    def _named(self, raw: bytes, places: Ints, row_of: Ints, bad: dict[int, str]) -> Ints:
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

    def keep(self, rows: npt.NDArray[np.bool_]) -> None:
        """Store the labels of these rows of the last block."""
        sizes, codes = self._block
        if not rows.all():
            codes = codes[np.repeat(rows, sizes)]
            sizes = sizes[rows]
        self._sizes.append(sizes)
        self._codes.append(codes)

    def result(self) -> Any:
        """``y``: labels, lists of labels, or None."""
        if not self._labelled:
            return None
        codes, sizes = self._codes.array(), self._sizes.array()
        several = bool((sizes != 1).any()) if self._multilabel is None else self._multilabel
        if self._is_int:
            labels: Any = codes
        else:
            names = np.array([*(name.decode("utf-8") for name in self._code), None], dtype=object)[:-1]
            labels = names[codes]
        if not several:
            return labels
        flat, ends = labels.tolist(), np.concatenate([[0], np.cumsum(sizes)]).tolist()
        return [list(dict.fromkeys(flat[a:b])) for a, b in pairwise(ends)]


def _whole_numbers(hierarchy: Hierarchy) -> Ints:
    numbers = [n for n in hierarchy.nodes if isinstance(n, (int, np.integer)) and _INT64.min <= n <= _INT64.max]
    return np.unique(np.array(numbers, dtype=np.int64))
