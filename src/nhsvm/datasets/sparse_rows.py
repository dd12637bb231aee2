"""Files of sparse rows ``label[,label…] index:value …``: svmlight (LIBSVM), and those of the LSHTC challenges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.datasets import parsing
from nhsvm.datasets.dataset import AnyPath, Dataset, FeatureNames, Growing, given_hierarchy, whole_number
from nhsvm.datasets.files import RowReader, Source, blocks, finite, shown
from nhsvm.datasets.labels import BadRows, RowLabels
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.typing import Array, BoolArray, ByteArray, FloatArray, IntArray, LabelsLike, Matrix, Options, PtrArray


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
    return svmlight_file(file, locals()).read()


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
    return lshtc_file(file, locals()).read()


def svmlight_file(file: AnyPath, options: Options) -> SparseFile:
    """A file for :func:`read_svmlight`, yet to be read."""
    return SparseFile(file, {**options, "ignore": None, "compact": False})


def lshtc_file(file: AnyPath, options: Options) -> SparseFile:
    """A file for :func:`read_lshtc`, yet to be read."""
    return SparseFile(file, {**options, "label_type": int, "n_features": None, "zero_based": True, "sort": True})


class SparseFile(Source):
    """A file of sparse rows, whose options are those of both readers together.

    ``ids`` are the numbers of the features that ``like`` has (None without it), ``limit`` is the largest one allowed.
    """

    def __init__(self, file: AnyPath, options: Options) -> None:
        super().__init__(file, options)
        self.sort, self.ignore, self._compact = options["sort"], options["ignore"], options["compact"]
        self._zero_based, self._n_features = options["zero_based"], options["n_features"]
        if self._n_features is not None:
            whole_number(self._n_features, "n_features", 1, 2**31 - 1)
        if self._zero_based not in (True, False, "auto"):
            raise OptionError(f"zero_based must be True, False or 'auto', not {self._zero_based!r}")
        self.ids: FeatureNames = None
        hierarchy, label_type = options["hierarchy"], options["label_type"]
        if self.like is not None:
            self.ids, self._n_features = ids_of(self.like), None
            hierarchy = self.like.hierarchy if hierarchy is None else hierarchy
        self.hierarchy = given_hierarchy(hierarchy, label_type, options["drop_root"])
        self.limit = None if self._n_features is None else self._n_features - (self._zero_based is True)
        self.labels = RowLabels(label_type, self.hierarchy, self.multilabel, options["labelled"], self.log)
        self._occurs = np.zeros(0, dtype=bool)

    def read(self) -> Dataset:
        [(indptr, indices, data, y)] = self._rows(whole=True)
        skipped = self.log.skipped(len(indptr) - 1)
        ids = self.ids
        if ids is None:
            ids = seen(indices) if self._compact else self._numbered(indices)
        return Dataset(y, self.hierarchy, as_matrix(indptr, indices, data, ids), feature_names=ids, skipped=skipped)

    def parts(self, size: int) -> Iterator[Dataset]:
        """Some megabytes of text at a time; without ``like``, columns are the numbers of the file."""
        for indptr, indices, data, y in self._rows(whole=False):
            ids = self.ids
            if ids is None:
                ids = range(self._note(indices))
            X, skipped = as_matrix(indptr, indices, data, ids), self.log.skipped(1)
            yield Dataset(y, self.hierarchy, X, feature_names=ids, skipped=skipped)

    def _rows(self, whole: bool) -> Iterator[tuple[PtrArray, IntArray, Array, LabelsLike]]:
        reader, line = _Reader(self), 1
        with closing(blocks(self.file, self.log)) as source:
            for block in source:
                line = reader.read(block, line)
                if reader.n_rows and not whole:
                    yield reader.taken()
        if whole:
            yield reader.taken()

    def why_no_parts(self) -> str:
        need = "parts of a file of numbered features need like=, the data set whose features they have"
        return need if self.ids is None else ""

    def why_no_blocks(self, changed: bool) -> str:
        return "each is for tables, not for files of numbered features" if changed else ""

    def columns(self, names: FeatureNames | int) -> tuple[FeatureNames | int, Callable[[Array], object] | None]:
        if self.ids is not None:
            return self.ids, None
        numbers = np.flatnonzero(self._occurs)
        if self._compact:
            has_gaps = len(numbers) and numbers[-1] >= len(numbers)
            return numbers, (lambda part: renumber(part, numbers)) if has_gaps else None
        ids = self._numbered(numbers)
        return ids, (lambda part: np.subtract(part, ids.start, out=part)) if ids.start else None

    def _note(self, indices: IntArray) -> int:
        """Note which features occur, in a table: memory that is never touched costs nothing. One more than the last."""
        top = int(indices.max(initial=-1)) + 1
        if top > len(self._occurs):
            grown = np.zeros(min(max(top, 2 * len(self._occurs)), parsing.LARGEST_INDEX + 1), dtype=bool)
            grown[: len(self._occurs)] = self._occurs
            self._occurs = grown
        self._occurs[indices] = True
        return top

    def _numbered(self, indices: Array) -> range:
        """The numbers of all features, with those that do not occur, and with or without 0."""
        if self._zero_based == "auto":
            start = 0 if (indices == 0).any() else 1
        else:
            start = 0 if self._zero_based else 1
            if start and (indices == 0).any():
                raise FileFormatError(self.file, None, "there is a feature 0, so zero_based=False is not true")
        top, n = int(indices.max(initial=start - 1)) + 1, self._n_features
        if n is None:
            return range(start, max(top, start))
        if top - start > n:
            problem = f"feature {top - 1} is beyond n_features={n} (counted from {start})"
            raise FileFormatError(self.file, None, problem)
        return range(start, start + n)


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


class _Reader(RowReader):
    """Rows of a file as CSR arrays, with the indices of the file as columns."""

    def __init__(self, source: SparseFile) -> None:
        super().__init__(source.log, source.dtype)
        self._source, self._scratch = source, parsing.SparseArrays.of(0)
        self._clear()

    def _clear(self) -> None:
        self._indptr, self.n_rows = Growing(np.int64, [0]), 0
        self._indices, self._data = Growing(np.int32), Growing(self.dtype)

    def taken(self) -> tuple[PtrArray, IntArray, Array, LabelsLike]:
        """indptr, indices, values and ``y`` of the rows since the last call."""
        found = self._indptr.array(), self._indices.array(), self._data.array(), self._source.labels.result()
        self._clear()
        return found

    def parse(self, raw: bytes, text: ByteArray, i: int, line: int) -> tuple[int, int, str]:
        if self._scratch.n_bytes < len(text):
            self._scratch = parsing.SparseArrays.of(len(text) + len(text) // 8)
        s, source, labels = self._scratch, self._source, self._source.labels
        n_rows, n_hard, n_hard_labels, i, n_lines, unsorted, status, wrong = parsing.sparse_rows_kernel(
            text, i, labels.names, source.sort, parsing.powers_of_five(), s
        )
        n, m = s.indptr[n_rows], s.label_ptr[n_rows]
        block = _Block(raw, s.indptr[: n_rows + 1], s.indices[:n], s.values[:n])
        bad: BadRows = {}
        block.resolve(s.hard[: 3 * n_hard].reshape(-1, 3), bad)
        if unsorted:
            block.sort(bad)
        if source.limit is not None:
            for k in np.flatnonzero(block.indices > source.limit).tolist():
                bad.setdefault(block.row(k), f"feature {block.indices[k]} is beyond n_features")
        for k in self.too_large(block.values):
            problem = f"feature {block.indices[k]}: {block.values[k]} is too large for {self.dtype.name}"
            bad.setdefault(block.row(k), problem)
        found = labels.take(
            raw, s.label_ptr[: n_rows + 1], s.labels[: 2 * m].reshape(-1, 2), s.hard_labels[:n_hard_labels], bad
        )
        for row in sorted(bad):
            self.log.report(line + int(s.row_line[row]), bad[row])
        keep = np.ones(n_rows, dtype=bool)
        keep[list(bad)] = False
        sizes, indices, values = block.kept(keep, source.ignore)
        self._indptr.append(self._indptr.last() + np.cumsum(sizes))
        self._indices.append(indices)
        self._data.append(values)
        self.n_rows += len(sizes)
        labels.keep(*found, keep)
        if status == parsing.DONE:
            return i, line + n_lines, ""
        token = raw[wrong : raw.index(b"\n", i)].split(None, 1)[:1]
        return i, line + n_lines, f"{_PROBLEMS[status]}: {shown(token[0]) if token else 'the line ends'}"


@dataclass
class _Block:
    raw: bytes
    indptr: PtrArray
    indices: IntArray
    values: FloatArray

    def row(self, k: int) -> int:
        return int(np.searchsorted(self.indptr, k, side="right")) - 1

    def resolve(self, hard: PtrArray, bad: BadRows) -> None:
        """Numbers that the kernel has left to Python."""
        for k, begin, end in hard.tolist():
            token = self.raw[begin:end].partition(b"#")[0]
            value = finite(token.decode("latin-1"))
            if value is None:
                what = f"feature {self.indices[k]}: expected a finite number, not {shown(token)}"
                bad.setdefault(self.row(k), what)
            self.values[k] = 0.0 if value is None else value

    def sort(self, bad: BadRows) -> None:
        """Put the indices of every row in order."""
        rows = sp.csr_matrix((self.values, self.indices, self.indptr), copy=False)
        rows.sort_indices()
        self.values, self.indices = rows.data, rows.indices
        same = self.indices[1:] == self.indices[:-1]
        same[self.indptr[1:-1][(self.indptr[1:-1] > 0) & (self.indptr[1:-1] < len(self.indices))] - 1] = False
        for k in np.flatnonzero(same).tolist():
            bad.setdefault(self.row(k), f"{_PROBLEMS[parsing.TWICE]}: {self.indices[k]}")

    def kept(self, keep: BoolArray, ignore: int | None) -> tuple[PtrArray, IntArray, FloatArray]:
        """Sizes of the rows to keep, their indices and values."""
        sizes = np.diff(self.indptr)
        chosen = None if keep.all() else np.repeat(keep, sizes)
        if ignore is not None:
            others = self.indices != ignore
            if not others.all():
                chosen = others if chosen is None else chosen & others
                sizes = np.diff(np.concatenate([[0], np.cumsum(others)])[self.indptr])
        if chosen is None:
            return sizes, self.indices, self.values
        return sizes[keep], self.indices[chosen], self.values[chosen]


# -- numbered features as columns of a matrix --------------------------------------------------------------------------

_PART = 1 << 20  # indices


def ids_of(like: Dataset) -> Array | range:
    """The numbers of the features of a data set that came from such a file."""
    names = like.feature_names
    if isinstance(names, range) or (isinstance(names, np.ndarray) and names.dtype.kind == "i"):
        return names
    raise OptionError("like must be a Dataset of numbered features, as read_svmlight and read_lshtc give")


def seen(indices: IntArray) -> PtrArray:
    """All numbers that occur, ascending."""
    top = int(indices.max(initial=-1)) + 1
    if top > 8 * len(indices) + 1_000_000:  # a table of all numbers would be larger than the data
        return np.unique(indices).astype(np.int64)
    there = np.zeros(top, dtype=bool)
    for part in _parts(indices):
        there[part] = True
    return np.flatnonzero(there)


def as_matrix(indptr: PtrArray, indices: IntArray, data: Array, ids: Array | range) -> Matrix:
    """Columns in the order of ``ids`` (ascending); what is not among them is left out."""
    inside: BoolArray | None
    if isinstance(ids, range):
        if ids.start:
            indices -= np.int32(ids.start)
        is_within = not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < len(ids))
        inside = None if is_within else (indices >= 0) & (indices < len(ids))
    else:
        inside = renumber(indices, ids)
    if inside is not None:
        indptr = np.concatenate([[0], np.cumsum(inside)])[indptr]
        indices, data = indices[inside], data[inside]
    narrow = indptr.astype(np.int32) if len(indices) < 2**31 else indptr
    X = sp.csr_matrix((data, indices, narrow), shape=(len(indptr) - 1, len(ids)), copy=False)
    X.has_sorted_indices = True
    return X


def _parts(indices: IntArray) -> Iterator[IntArray]:
    """Views of a long array: numpy makes 64-bit copies of what it indexes with, and these are to be small."""
    return (indices[start : start + _PART] for start in range(0, len(indices), _PART))


def renumber(indices: IntArray, ids: Array) -> BoolArray | None:
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
    inside = indices >= 0
    return None if inside.all() else inside
