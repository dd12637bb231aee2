"""Files of sparse rows ``label[,label…] index:value …``: svmlight (LIBSVM), and those of the LSHTC challenges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.datasets import parsing
from nhsvm.datasets.base import Dataset, Growing, checked_dtype, checked_like, given_hierarchy
from nhsvm.datasets.files import AnyPath, Trouble, blocks, checked_path, finite, shown
from nhsvm.datasets.labels import Labels, check_label_type
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.hierarchy import Hierarchy


def read_svmlight(
    file: AnyPath,
    *,
    hierarchy: Hierarchy | AnyPath | None = None,
    drop_root: bool = False,
    label_type: type = int,
    multilabel: bool | None = None,
    labelled: bool | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    sort: bool = False,
    dtype: npt.DTypeLike = np.float64,
    like: Dataset | None = None,
    on_error: str = "raise",
) -> Dataset:
    r"""Samples in svmlight (LIBSVM) format: ``label[,label…] index:value index:value … # comment``; gzipped too.

    Parameters
    ----------
    file : path
    hierarchy : Hierarchy or path, optional
        Labels must be nodes of it. A file is read by ``Hierarchy.read``.
    drop_root : bool
        Leave out the root of the hierarchy if it has only one.
    label_type : {int, str}
        Labels are whole numbers, or names without blanks and commas.
    multilabel : bool, optional
        Give a list of labels for every sample. By default if any has two; only with True may a sample have none.
    labelled : bool, optional
        Whether rows begin with labels; by default as the first row does. False ignores labels that are there.
    n_features : int, optional
        Features there are, for files that do not have the last ones.
    zero_based : bool or "auto"
        Whether the first feature is 0 or 1. "auto": 0 if there is a feature 0.
    sort : bool
        Accept features in any order.
    dtype : {float64, float32}
        Of X.
    like : Dataset, optional
        Use the features, the hierarchy and the form of labels of this one, as for a test set. Features that it does
        not have are left out.
    on_error : {"raise", "skip"}
        Raise on a bad line, or leave it out and count it in ``Dataset.skipped``.

    Returns
    -------
    Dataset
        X is CSR. ``feature_names`` are the numbers of the features.

    Raises
    ------
    FileFormatError
        With the file, the line, and what was expected there.

    Notes
    -----
    Values must be finite. ``qid:…`` behind the labels is ignored.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "train.svm"
    ...     _ = file.write_text("4 1:0.5 3:2\n5,4 2:1e-3\n")
    ...     data = read_svmlight(file, hierarchy=Hierarchy.from_edges([(3, 4), (3, 5)]))
    >>> data.y, data.X.toarray().tolist()
    ([[4], [5, 4]], [[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]])
    """
    return SparseFile(read_svmlight, file, locals()).read()


def read_lshtc(
    file: AnyPath,
    hierarchy: Hierarchy | AnyPath | None = None,
    *,
    drop_root: bool = False,
    ignore: int | None = None,
    compact: bool = True,
    multilabel: bool | None = None,
    labelled: bool | None = None,
    dtype: npt.DTypeLike = np.float64,
    like: Dataset | None = None,
    on_error: str = "raise",
) -> Dataset:
    r"""Samples of an LSHTC challenge: ``label[, label…] feature:count feature:count …`` in any order; gzipped too.

    Parameters
    ----------
    file : path
    hierarchy : Hierarchy or path, optional
        ``cat_hier.txt``: a root-to-leaf path a line, or a ``parent child`` pair a line. Labels must be nodes of it.
    drop_root : bool
        Leave out the root of the hierarchy if it has only one.
    ignore : int, optional
        A feature to leave out. In the sets of 2010, feature 0 is an internal number of no meaning: ``ignore=0``.
    compact : bool
        Only features that occur become columns; otherwise all numbers up to the largest do.
    multilabel, labelled : bool, optional
        As in :func:`read_svmlight`. Test files without labels give ``y=None``; where they have a number without a
        meaning in their place, say ``labelled=False``.
    dtype : {float64, float32}
    like : Dataset, optional
        Use the features, the hierarchy and the form of labels of this one, as for a test set. Features that it does
        not have are left out.
    on_error : {"raise", "skip"}

    Returns
    -------
    Dataset
        X is CSR with sorted columns. ``feature_names`` are the numbers of the features, ``y`` whole numbers.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     _ = (folder / "cat_hier.txt").write_text("1 2 4\n1 2 5\n1 3\n")
    ...     _ = (folder / "train.txt").write_text("4 0:17 1177338:2 97353:1\n3 0:9 97353:4\n")
    ...     _ = (folder / "test.txt").write_text("0:3 97353:1 8:1\n")
    ...     train = read_lshtc(folder / "train.txt", folder / "cat_hier.txt", ignore=0)
    ...     test = read_lshtc(folder / "test.txt", ignore=0, like=train)
    >>> train.y, train.feature_names, train.X.toarray().tolist()
    (array([4, 3]), array([  97353, 1177338]), [[1.0, 2.0], [4.0, 0.0]])
    >>> test.X.toarray()
    array([[1., 0.]])
    """
    return SparseFile(read_lshtc, file, locals()).read()


_SETTLED: Mapping[Callable[..., Dataset], Mapping[str, Any]] = {
    read_svmlight: {"ignore": None, "compact": False},
    read_lshtc: {"label_type": int, "n_features": None, "zero_based": True, "sort": True},
}


class SparseFile:
    """A file of sparse rows and the options of its reader, checked; no row is read yet.

    Parameters
    ----------
    reader : function
        ``read_svmlight`` or ``read_lshtc``.
    file : path
    options : mapping
        All that the reader takes.

    Attributes
    ----------
    trouble : Trouble
    dtype : dtype
    ids : array or range, or None
        Numbers of the features that ``like`` has; None without it.
    hierarchy : Hierarchy or None
    """

    def __init__(self, reader: Callable[..., Dataset], file: AnyPath, options: Mapping[str, Any]) -> None:
        o = {**options, **_SETTLED[reader]}
        self.file, self.trouble = checked_path(file), Trouble(checked_path(file), o["on_error"])
        self.dtype, self.compact = checked_dtype(o["dtype"]), o["compact"]
        self._label_type, self._multilabel, self._labelled = o["label_type"], o["multilabel"], o["labelled"]
        self._zero_based, self._n_features = o["zero_based"], o["n_features"]
        self.ids: Ids | None = None
        check_label_type(self._label_type)
        check_count(self._n_features)
        if self._zero_based not in (True, False, "auto"):
            raise OptionError(f"zero_based must be True, False or 'auto', not {self._zero_based!r}")
        like, hierarchy = checked_like(o["like"]), o["hierarchy"]
        if like is not None:
            self.ids, self._n_features = ids_of(like), None
            hierarchy = like.hierarchy if hierarchy is None else hierarchy
            if self._multilabel is None and like.y is not None:
                self._multilabel = like.is_multilabel
        self.hierarchy = given_hierarchy(hierarchy, self._label_type, o["drop_root"])
        limit = None if self._n_features is None else self._n_features - (self._zero_based is True)
        self._rows = RowOptions(o["sort"], o["ignore"], limit, self.dtype)

    def read(self) -> Dataset:
        """All of it."""
        labels = self._labels(None)
        rows = read_rows(self.file, self._rows, labels, self.trouble)
        skipped = self.trouble.skipped(len(rows.indptr) - 1)
        ids: Any = self.ids
        if ids is None:
            ids = seen(rows.indices) if self.compact else self.numbered(rows)
        return Dataset(labels.result(), self.hierarchy, as_matrix(rows, ids), feature_names=ids, skipped=skipped)

    def parts(self) -> Iterator[tuple[SparseRows, Any]]:
        """Rows, and ``y`` of these, some megabytes at a time."""
        for rows, labels in iter_rows(self.file, self._rows, self._labels, self.trouble):
            yield rows, labels.result()

    def numbered(self, rows: SparseRows) -> range:
        """The numbers of all features, with those that do not occur, of rows where each that does occurs."""
        return numbered(self._zero_based, self._n_features, rows, self.file)

    def _labels(self, found: bool | None) -> Labels:
        labelled = found if self._labelled is None else self._labelled
        return Labels(self._label_type, self.hierarchy, self._multilabel, labelled, self.trouble)


# -- rows, a block of a file at a time ---------------------------------------------------------------------------------

_PROBLEMS = {
    parsing.LABEL: "expected a label",
    parsing.INDEX: "expected index:value",
    parsing.COLON: "expected index:value",
    parsing.NEGATIVE: "the index of a feature must be a whole number ≥ 0",
    parsing.LARGE: f"the index of a feature must be at most {parsing.LARGEST_INDEX}",
    parsing.UNSORTED: "indices must ascend, but a larger one comes before",
    parsing.TWICE: "this feature is given twice",
}
BadRows = dict[int, str]  # row -> reason, the first one found


@dataclass
class RowOptions:
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


def read_rows(file: Path, options: RowOptions, labels: Labels, trouble: Trouble) -> SparseRows:
    """Rows of a file; their labels go into ``labels``."""
    reader = _Reader(options, labels, trouble, parsing.SparseArrays.of(0))
    line = 1
    with closing(blocks(file)) as source:
        for block in source:
            line = reader.read(block, line)
    return SparseRows(reader.indptr.array(), reader.indices.array(), reader.data.array())


def iter_rows(
    file: Path, options: RowOptions, new_labels: Callable[[bool | None], Labels], trouble: Trouble
) -> Iterator[tuple[SparseRows, Labels]]:
    """The same, some megabytes at a time.

    Parameters
    ----------
    new_labels : function
        Of whether rows have labels: None, and when the first are read, what was found of them.
    """
    line, labels, scratch = 1, new_labels(None), parsing.SparseArrays.of(0)
    with closing(blocks(file, trouble=trouble)) as source:
        for block in source:
            reader = _Reader(options, labels, trouble, scratch)
            line = reader.read(block, line)
            if len(reader.indptr.array()) > 1:
                yield SparseRows(reader.indptr.array(), reader.indices.array(), reader.data.array()), labels
            labels, scratch = new_labels(labels.labelled), reader.scratch


class _Reader:
    def __init__(self, options: RowOptions, labels: Labels, trouble: Trouble, scratch: parsing.SparseArrays) -> None:
        self.options, self.labels, self.trouble = options, labels, trouble
        self.indptr = Growing(np.int64, [0])
        self.indices, self.data = Growing(np.int32), Growing(options.dtype)
        self.scratch = scratch

    def read(self, raw: bytes, line: int) -> int:
        """Take in a block that starts at this line; the line after it."""
        text = np.frombuffer(raw, dtype=np.uint8)
        if self.scratch.n_bytes < len(text):
            self.scratch = parsing.SparseArrays.of(len(text) + len(text) // 8)
        i, s = 0, self.scratch
        while i < len(text):
            n_rows, n_hard, n_hard_labels, i, n_lines, unsorted, status, wrong = parsing.sparse_rows_kernel(
                text, i, self.labels.names, self.options.sort, parsing.powers_of_five(), s
            )
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
            if status != parsing.DONE:
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
            bad.setdefault(self._row(k), f"{_PROBLEMS[parsing.TWICE]}: {self.indices[k]}")

    def check(self, options: RowOptions, bad: BadRows) -> None:
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


# -- numbered features as columns of a matrix --------------------------------------------------------------------------

_PART = 1 << 20
Ids = npt.NDArray[np.int64] | range


def ids_of(like: Dataset) -> Ids:
    """The numbers of the features of a data set that came from such a file."""
    names: Any = like.feature_names
    if isinstance(names, range):
        return names
    if not isinstance(names, np.ndarray) or names.dtype.kind != "i":
        raise OptionError("like must be a Dataset of numbered features, as read_svmlight and read_lshtc give")
    return names


def seen(indices: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """All numbers that occur, ascending."""
    top = int(indices.max(initial=-1)) + 1
    if top > 8 * len(indices) + 1_000_000:  # a table of all numbers would be larger than the data
        return np.unique(indices).astype(np.int64)
    there = np.zeros(top, dtype=bool)
    for part in _parts(indices):
        there[part] = True
    return np.flatnonzero(there)


def as_matrix(rows: SparseRows, ids: Ids) -> sp.csr_matrix:
    """Columns in the order of ``ids`` (ascending); what is not among them is left out."""
    indices, data, indptr = rows.indices, rows.data, rows.indptr
    if isinstance(ids, range):
        if ids.start:
            indices -= np.int32(ids.start)
        inside = None if not len(indices) or _within(indices, len(ids)) else (indices >= 0) & (indices < len(ids))
    else:
        inside = renumber(indices, ids)
    if inside is not None:
        indptr = np.concatenate([[0], np.cumsum(inside)])[indptr]
        indices, data = indices[inside], data[inside]
    if len(indices) < 2**31:
        indptr = indptr.astype(np.int32)
    X = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, len(ids)), copy=False)
    X.has_sorted_indices = True
    return X


def _within(indices: npt.NDArray[np.int32], n: int) -> bool:
    return int(indices.min()) >= 0 and int(indices.max()) < n


def _parts(indices: npt.NDArray[np.int32]) -> Iterator[npt.NDArray[np.int32]]:
    """Views of a long array: numpy makes 64-bit copies of what it indexes with, and these are to be small."""
    return (indices[start : start + _PART] for start in range(0, len(indices), _PART))


def renumber(indices: npt.NDArray[np.int32], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_] | None:
    """Replace numbers by columns, in place; which of them have one, or None for all."""
    top = int(ids[-1]) if len(ids) else -1
    if top <= 8 * len(indices) + 1_000_000:
        column = np.full(top + 2, -1, dtype=np.int32)
        column[ids] = np.arange(len(ids), dtype=np.int32)
        for part in _parts(indices):
            part[:] = column[np.minimum(part, top + 1)]
    else:
        for part in _parts(indices):
            place = np.minimum(np.searchsorted(ids, part), len(ids) - 1)
            part[:] = np.where(ids[place] == part, place, -1)
    inside: npt.NDArray[np.bool_] = indices >= 0
    return None if inside.all() else inside


def numbered(zero_based: bool | str, n_features: int | None, rows: SparseRows, file: Any) -> range:
    """The numbers of all features of an svmlight file, with or without 0."""
    if zero_based == "auto":
        start = 0 if (rows.indices == 0).any() else 1
    else:
        start = 0 if zero_based else 1
        if start and (rows.indices == 0).any():
            raise FileFormatError(file, None, "there is a feature 0, so zero_based=False is not true")
    top = int(rows.indices.max(initial=start - 1)) + 1
    if n_features is None:
        return range(start, max(top, start))
    if top - start > n_features:
        raise FileFormatError(file, None, f"feature {top - 1} is beyond n_features={n_features} (counted from {start})")
    return range(start, start + n_features)


def check_count(n_features: int | None) -> None:
    """Raise unless this is a number of features, or None."""
    if n_features is not None and (isinstance(n_features, bool) or not isinstance(n_features, (int, np.integer))):
        raise OptionError(f"n_features must be a whole number, not {n_features!r}")
    if n_features is not None and not 1 <= n_features < 2**31:
        raise OptionError(f"n_features must be from 1 to {2**31 - 1}, not {n_features}")
