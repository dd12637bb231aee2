"""Files of sparse rows ``label[,label…] index:value …``, a block at a time: what svmlight and LSHTC files share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.datasets import _rows
from nhsvm.datasets._files import Trouble, blocks, shown
from nhsvm.datasets._growing import Growing
from nhsvm.datasets._labels import Labels
from nhsvm.datasets._numbers import finite

_PROBLEMS = {
    _rows.LABEL: "expected a label",
    _rows.INDEX: "expected index:value",
    _rows.COLON: "expected index:value",
    _rows.NEGATIVE: "the index of a feature must be a whole number ≥ 0",
    _rows.LARGE: f"the index of a feature must be at most {_rows.LARGEST_INDEX}",
    _rows.UNSORTED: "indices must ascend, but a larger one comes before",
    _rows.TWICE: "this feature is given twice",
}
BadRows = dict[int, str]  # row -> reason, the first one found


@dataclass
class Options:
    """How rows are read.

    Attributes
    ----------
    sort : bool
        Whether indices may come in any order.
    ignore : int or None
        A feature to leave out.
    limit : int or None
        The largest index allowed.
    dtype : of the values
    """

    sort: bool
    ignore: int | None
    limit: int | None
    dtype: Any


@dataclass
class SparseRows:
    """All rows of a file: CSR arrays, with the indices of the file as columns."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    data: npt.NDArray[Any]


def read_rows(file: Path, options: Options, labels: Labels, trouble: Trouble) -> SparseRows:
    """Rows of a file; their labels go into ``labels``."""
    reader = _Reader(options, labels, trouble)
    line = 1
    with closing(blocks(file)) as source:
        for block in source:
            line = reader.read(block, line)
    return SparseRows(reader.indptr.array(), reader.indices.array(), reader.data.array())


def iter_rows(
    file: Path, options: Options, new_labels: Callable[[bool | None], Labels], trouble: Trouble
) -> Iterator[tuple[SparseRows, Labels]]:
    """The same, some megabytes at a time.

    Parameters
    ----------
    new_labels : function
        Of whether rows have labels: None, and when the first are read, what was found of them.
    """
    line, labels, scratch = 1, new_labels(None), _Scratch(0)
    with closing(blocks(file, trouble=trouble)) as source:
        for block in source:
            reader = _Reader(options, labels, trouble, scratch)
            line = reader.read(block, line)
            if len(reader.indptr.array()) > 1:
                yield SparseRows(reader.indptr.array(), reader.indices.array(), reader.data.array()), labels
            labels, scratch = new_labels(labels.labelled), reader.scratch


class _Scratch:
    """Arrays for the kernel to fill, kept from block to block; memory that is never touched costs nothing."""

    def __init__(self, n: int) -> None:
        # a feature is at least " 1:1", a label "1,", a row "1\n"
        self.n = n
        self.indptr, self.label_ptr, self.row_line = (np.empty(n // 2 + 2, dtype=np.int64) for _ in range(3))
        self.indices, self.values = np.empty(n // 3 + 2, dtype=np.int32), np.empty(n // 3 + 2)
        self.labels, self.hard = np.empty(n + 4, dtype=np.int64), np.empty(n + 4, dtype=np.int64)
        self.hard_labels = np.empty(n // 2 + 2, dtype=np.int64)


class _Reader:
    def __init__(self, options: Options, labels: Labels, trouble: Trouble, scratch: _Scratch | None = None) -> None:
        self.options, self.labels, self.trouble = options, labels, trouble
        self.indptr = Growing(np.int64, [0])
        self.indices, self.data = Growing(np.int32), Growing(options.dtype)
        self.scratch = scratch or _Scratch(0)

    def read(self, raw: bytes, line: int) -> int:
        """Take in a block that starts at this line; the line after it."""
        text = np.frombuffer(raw, dtype=np.uint8)
        if self.scratch.n < len(text):
            self.scratch = _Scratch(len(text) + len(text) // 8)
        i, s = 0, self.scratch
        while i < len(text):
            n_rows, n_hard, n_hard_labels, i, n_lines, unsorted, status, wrong = _rows.sparse_rows_kernel(
                text, i, self.labels.names, self.options.sort, _rows.powers_of_five(), s.indptr, s.indices, s.values,
                s.values.view(np.uint64), s.label_ptr, s.labels, s.hard, s.hard_labels, s.row_line,
            )  # fmt: skip
            n, m = s.indptr[n_rows], s.label_ptr[n_rows]
            block = _Block(raw, s.indptr[: n_rows + 1], s.indices[:n], s.values[:n], line + s.row_line[:n_rows])
            bad: BadRows = {}
            block.resolve(s.hard[: 3 * n_hard].reshape(-1, 3), bad)
            if unsorted:
                block.sort(bad)
            block.check(self.options, bad)
            self.labels.take(
                raw, s.label_ptr[: n_rows + 1], s.labels[: 2 * m].reshape(-1, 2), s.hard_labels[:n_hard_labels], bad
            )
            self._append(block, bad)
            line += n_lines
            if status != _rows.DONE:
                i = self._report(raw, i, line, status, wrong)
                line += 1
        return line

    def _append(self, block: _Block, bad: BadRows) -> None:
        for row in sorted(bad):
            self.trouble.report(int(block.lines[row]), bad[row])
        keep = np.ones(len(block.lines), dtype=bool)
        keep[list(bad)] = False
        sizes, indices, values = block.kept(keep, self.options.ignore)
        self.indptr.append(int(self.indptr.last()) + np.cumsum(sizes))
        self.indices.append(indices)
        self.data.append(values)
        self.labels.keep(keep)

    def _report(self, raw: bytes, i: int, line: int, status: int, wrong: int) -> int:
        """Say what is wrong with the line at ``i``; where the next one begins."""
        end = raw.index(b"\n", i)
        token = raw[wrong:end].split(None, 1)[:1]
        self.trouble.report(line, f"{_PROBLEMS[status]}: {shown(token[0]) if token else 'the line ends'}")
        return end + 1


@dataclass
class _Block:
    raw: bytes
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    lines: npt.NDArray[np.int64]

    def resolve(self, hard: npt.NDArray[np.int64], bad: BadRows) -> None:
        """Numbers that the kernel has left to Python."""
        for k, begin, end in hard.tolist():
            token = self.raw[begin:end].partition(b"#")[0]
            value = finite(token.decode("latin-1"))
            if value is None:
                what = f"feature {self.indices[k]}: expected a finite number, not {shown(token)}"
                bad.setdefault(self._row(k), what)
            self.values[k] = 0.0 if value is None else value

    def _row(self, k: Any) -> int:
        return int(np.searchsorted(self.indptr, k, side="right")) - 1

    def sort(self, bad: BadRows) -> None:
        """Put the indices of every row in order."""
        rows = sp.csr_matrix((self.values, self.indices, self.indptr), copy=False)
        rows.sort_indices()
        self.values, self.indices = rows.data, rows.indices
        same = self.indices[1:] == self.indices[:-1]
        same[self.indptr[1:-1][(self.indptr[1:-1] > 0) & (self.indptr[1:-1] < len(self.indices))] - 1] = False
        for k in np.flatnonzero(same):
            bad.setdefault(self._row(k), f"{_PROBLEMS[_rows.TWICE]}: {self.indices[k]}")

    def check(self, options: Options, bad: BadRows) -> None:
        if options.limit is not None:
            for k in np.flatnonzero(self.indices > options.limit):
                bad.setdefault(self._row(k), f"feature {self.indices[k]} is beyond n_features")
        largest = np.finfo(options.dtype).max
        if largest < np.finfo(np.float64).max:
            for k in np.flatnonzero(np.abs(self.values) > largest):
                bad.setdefault(
                    self._row(k), f"feature {self.indices[k]}: {self.values[k]} is too large for {options.dtype.name}"
                )

    def kept(self, keep: npt.NDArray[np.bool_], ignore: int | None) -> tuple[Any, Any, Any]:
        """Sizes of the rows to keep, their indices and values."""
        sizes = np.diff(self.indptr)
        chosen = None if keep.all() else np.repeat(keep, sizes)
        if ignore is not None:
            others = self.indices != ignore
            if not others.all():
                chosen = others if chosen is None else chosen & others
                starts = np.concatenate([[0], np.cumsum(others)])[self.indptr]
                sizes = np.diff(starts)
        if chosen is None:
            return sizes, self.indices, self.values
        return sizes[keep], self.indices[chosen], self.values[chosen]
