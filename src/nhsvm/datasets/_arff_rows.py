"""The data part of an HMC ARFF file, a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets import _rows
from nhsvm.datasets._arff_header import Header, unquoted
from nhsvm.datasets._files import Trouble, shown
from nhsvm.datasets._growing import Growing
from nhsvm.datasets._numbers import finite
from nhsvm.datasets._sets import LabelLists

_PROBLEMS = {
    _rows.FEW: "expected {n} cells between commas, but the line ends too early",
    _rows.MANY: "expected {n} cells between commas, but there are more",
    _rows.QUOTE: "a quote is not closed",
    _rows.SPARSE: "expected cells between commas: sparse rows in braces are not read",
}
Split = Callable[[bytes], tuple[str, ...]]


def read_cells(
    source: Iterator[bytes], header: Header, dtype: Any, split: Split, labels: LabelLists, trouble: Trouble
) -> npt.NDArray[Any]:
    """Features of all rows; their labels go into ``labels``."""
    reader = _Reader(header, dtype, split, labels, trouble)
    line = header.n_lines + 1
    for block in source:
        line = reader.read(block, line)
    return _expanded(reader.cells.array().reshape(-1, len(header.attributes)), header)


class _Reader:
    def __init__(self, header: Header, dtype: Any, split: Split, labels: LabelLists, trouble: Trouble) -> None:
        self.header, self.dtype, self.split, self.labels, self.trouble = header, dtype, split, labels, trouble
        self.cells = Growing(dtype)
        self._kinds, self._values = header.kinds, np.empty(0)

    def read(self, raw: bytes, line: int) -> int:
        """Take in a block that starts at this line; the line after it."""
        text = np.frombuffer(raw, dtype=np.uint8)
        width, n = len(self._kinds), len(text)
        if len(self._values) < n + width:  # a cell is at least one comma
            self._values = np.empty(n + width)
            self._hard, self._places = np.empty(3 * (n + width), dtype=np.int64), np.empty(n + 4, dtype=np.int64)
            self._lines = np.empty(n // 2 + 2, dtype=np.int64)
        i, values = 0, self._values
        while i < n:
            n_rows, n_hard, i, n_lines, status, wrong = _rows.dense_rows_kernel(
                text, i, self._kinds, *self.header.categories, _rows.powers_of_five(), values, values.view(np.uint64),
                self._places, self._hard, self._lines,
            )  # fmt: skip
            rows = values[: n_rows * width].reshape(n_rows, width)
            bad = self._resolve(raw, rows, self._hard[: 3 * n_hard].reshape(-1, 3))
            self._append(raw, rows, bad, line)
            line += n_lines
            if status != _rows.DONE:
                self.trouble.report(line, _PROBLEMS[status].format(n=width + 1))
                i, line = raw.index(b"\n", max(i, wrong)) + 1, line + 1
        return line

    def _resolve(self, raw: bytes, rows: npt.NDArray[np.float64], hard: npt.NDArray[np.int64]) -> dict[int, str]:
        """Cells that the kernel has left to Python: what is wrong with each row, if anything is."""
        bad: dict[int, str] = {}
        for k, begin, end in hard.tolist():
            row, column = divmod(k, len(self._kinds))
            attribute = self.header.attributes[column]
            token = raw[begin:end]
            cell = unquoted(token.decode("utf-8", "backslashreplace"))
            if attribute.categories is None:
                value, wanted = finite(cell), "a finite number or ?"
            else:
                value = float(attribute.categories.index(cell)) if cell in attribute.categories else None
                wanted = "one of " + shown(", ".join(attribute.categories)) + " or ?"
            if value is None:
                bad.setdefault(row, f"attribute {attribute.name!r}: expected {wanted}, not {shown(token)}")
            rows[row, column] = 0.0 if value is None else value
        largest = np.finfo(self.dtype).max
        if largest < np.finfo(np.float64).max:
            for row, column in np.argwhere(np.abs(rows) > largest).tolist():
                what = f"{rows[row, column]} is too large for {self.dtype.name}"
                bad.setdefault(row, f"attribute {self.header.attributes[column].name!r}: {what}")
        return bad

    def _append(self, raw: bytes, rows: npt.NDArray[np.float64], bad: dict[int, str], line: int) -> None:
        keep = np.ones(len(rows), dtype=bool)
        places = self._places[: 2 * len(rows)].reshape(-1, 2).tolist()
        for row, (begin, end) in enumerate(places):
            problem = bad.get(row) or self._take(raw[begin:end])
            if problem:
                self.trouble.report(line + int(self._lines[row]), problem)
                keep[row] = False
        self.cells.append((rows if keep.all() else rows[keep]).ravel())

    def _take(self, cell: bytes) -> str:
        try:
            found = self.split(cell)
        except UnicodeDecodeError as error:
            return f"not {error.encoding} text: {error.reason}"
        return self.labels.add(found)


def _expanded(cells: npt.NDArray[Any], header: Header) -> npt.NDArray[Any]:
    """Nominal attributes as a column of 0 and 1 for every category, missing if they are."""
    if all(a.categories is None for a in header.attributes):
        return cells
    X = np.empty((len(cells), len(header.feature_names)), dtype=cells.dtype)
    j = 0
    for column, attribute in zip(cells.T, header.attributes, strict=True):
        if attribute.categories is None:
            X[:, j] = column
            j += 1
            continue
        for c in range(len(attribute.categories)):
            X[:, j] = np.where(np.isnan(column), np.nan, column == c)
            j += 1
    return X
