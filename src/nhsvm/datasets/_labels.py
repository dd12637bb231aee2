"""Labels of sparse rows: from places in the text to what estimators take."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets._files import Trouble, shown
from nhsvm.datasets._growing import Growing
from nhsvm.datasets._hierarchies import unknown
from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}(\.0*)?")
_INT64 = np.iinfo(np.int64)
Ints = npt.NDArray[np.int64]


def check_label_type(label_type: type) -> None:
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
