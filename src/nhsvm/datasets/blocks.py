"""Data on disk that estimators learn from without reading it into memory."""

from __future__ import annotations

import json
import mmap
import platform
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm._atomic import was_begun
from nhsvm.datasets.base import Dataset, checked_like, given_hierarchy, unknown, whole_number
from nhsvm.datasets.blocks_format import NAMES, STEPS, Header, Stored, file_name, labels_of, read_header
from nhsvm.datasets.files import AnyPath, checked_path
from nhsvm.errors import DataError, FileFormatError, HierarchyError, LabelError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.hashes import first_crowded


def open_blocks(
    path: AnyPath,
    hierarchy: Hierarchy | AnyPath | None = None,
    *,
    drop_root: bool = False,
    multilabel: bool | None = None,
    labelled: bool | None = None,
    like: Dataset | None = None,
    verify: bool = True,
) -> Dataset:
    """Blocks as a data set whose features stay on disk.

    ``X`` is a CSR array, or an array, over memory-mapped files. Estimators use it as it is: what they read is in memory
    only as long as there is room. It may be written to, but the files stay as they are.

    Parameters
    ----------
    path : path
        A folder that :func:`convert_to_blocks`, :func:`write_blocks` or ``nhsvm convert`` has written.
    hierarchy : Hierarchy or path, optional
        In place of the one in the folder; labels must be its nodes.
    drop_root : bool
        Leave out the root of the hierarchy if it has only one.
    multilabel : bool, optional
        Give lists of labels, or one label a sample; by default as they were written.
    labelled : bool, optional
        False leaves labels where they are.
    like : Dataset, optional
        An error unless the features are those of this one.
    verify : bool
        Read all files once and compare them with their checksums. Without it, opening takes milliseconds, and only the
        names and sizes are checked.

    Returns
    -------
    Dataset

    Raises
    ------
    FileFormatError
        With the file that is missing, damaged, cut short, or of a newer version.
    """
    folder, like = checked_path(path), checked_like(like)
    reader = Reader(folder, _header_of(folder), verify=verify)
    names, h = reader.feature_names(), reader.header
    if like is not None:
        _check_features(folder, names, h.n_features, like)
    y: Any = None
    label_names: list[Any] = []
    if h.labels != "none" and labelled is not False:
        label_names, codes, indptr = reader.labels()
        try:
            y = labels_of(h.labels, h.label_dtype, label_names, codes, indptr)
        except LabelError as error:
            raise FileFormatError(folder, None, f"damaged: {error}; convert the data again") from None
        y = _in_form(y, multilabel, folder)
    known = reader.hierarchy() if hierarchy is None else _replacement(hierarchy, label_names)
    known = given_hierarchy(known, None, drop_root)
    if known is not None and y is not None and (hierarchy is not None or drop_root):
        stray = next((name for name in label_names if name not in known), None)
        if stray is not None:
            raise LabelError(f"{folder}: {unknown(stray, known, brief=False)}")
    return Dataset(y, known, reader.X(), feature_names=names)


def _header_of(folder: Path) -> Header:
    if not folder.exists():
        begun = "; it was begun and not finished: convert the data again" if was_begun(folder) else ""
        raise FileFormatError(folder, None, f"cannot be read: No such file or directory{begun}")
    return read_header(folder)


def _replacement(hierarchy: Any, names: list[Any]) -> Hierarchy | None:
    return given_hierarchy(hierarchy, int if names and all(isinstance(name, int) for name in names) else str, False)


def _check_features(folder: Path, names: Any, n_features: int, like: Dataset) -> None:
    wanted: Any = like.feature_names
    if wanted is None and like.X is not None:
        same = like.X.shape[1] == n_features
    else:
        same = wanted is None or (names is not None and np.array_equal(np.asarray(names), np.asarray(wanted)))
    if not same:
        raise DataError(
            f"{folder}: the features are not those of the training data; convert the file again, with --like and the "
            "blocks that were trained on (in Python: like=)"
        )


def _in_form(y: Any, multilabel: bool | None, folder: Path) -> Any:
    """Labels or label lists, as asked for."""
    is_sets = isinstance(y, list)
    if multilabel is None or multilabel == is_sets:
        return y
    if multilabel:
        return [[label] for label in y.tolist()]
    several = next((k for k, labels in enumerate(y) if len(labels) != 1), None)
    if several is not None:
        raise LabelError(f"{folder}: expected one label a sample, but sample {several} has {len(y[several])}")
    found = np.empty(len(y), dtype=object)
    found[:] = [labels[0] for labels in y]
    return found


def iter_blocks(data: Dataset | AnyPath, rows: int = 10_000) -> Iterator[tuple[Any, Any]]:
    """Samples and labels some at a time, for ``partial_fit``.

    Parameters
    ----------
    data : Dataset or path
        What :func:`open_blocks` gives, or takes. For several passes open it once.
    rows : int
        Samples of a part.

    Yields
    ------
    X : csr_array or array
        Of at most so many rows, over the same files.
    y : array, list of lists, or None

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nhsvm import NHSVM
    >>> from nhsvm.datasets import make_unbalanced, write_blocks
    >>> made = make_unbalanced(500, 10, random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     _ = write_blocks(made, Path(folder) / "made.blocks")
    ...     data = open_blocks(Path(folder) / "made.blocks")
    ...     model = NHSVM(data.hierarchy, solver="sgd", random_state=0)
    ...     for _ in range(3):
    ...         for X, y in iter_blocks(data, 100):
    ...             _ = model.partial_fit(X, y, classes=np.unique(data.y))
    ...     bool(model.score(data.X, data.y) > 0.9)
    True
    """
    rows = whole_number(rows, "rows")
    opened = data if isinstance(data, Dataset) else open_blocks(data)
    if opened.X is None:
        raise OptionError("these samples have no features")
    for start in range(0, opened.n_samples, rows):
        stop = min(start + rows, opened.n_samples)
        yield _rows_of(opened.X, start, stop), None if opened.y is None else opened.y[start:stop]


def _rows_of(X: Any, start: int, stop: int) -> Any:
    if isinstance(X, np.ndarray):
        return X[start:stop]
    begin, end = int(X.indptr[start]), int(X.indptr[stop])
    indptr = X.indptr[start : stop + 1] - X.indptr[start]
    return csr(X.data[begin:end], X.indices[begin:end], indptr, (stop - start, X.shape[1]))


def block_parts(path: AnyPath, size: int, tell: Callable[[float], None], **options: Any) -> Iterator[Dataset]:
    """The same as data sets, for :func:`nhsvm.datasets.read_chunks`; ``tell`` is given the share up to their end."""
    whole = open_blocks(path, **options)
    n_rows = 0
    for X, y in iter_blocks(whole, size):
        n_rows += X.shape[0]
        tell(n_rows / whole.n_samples)
        yield replace(whole, X=X, y=y)


def read_note(path: AnyPath) -> dict[str, Any]:
    """The note that was kept with some blocks."""
    return _header_of(checked_path(path)).note


def stored_steps(path: AnyPath) -> Path | None:
    """The file, found whole, that says how the features of some blocks were made; None if there is none."""
    folder = checked_path(path)
    stored = _header_of(folder).files.get(STEPS)
    if stored is not None:
        check_sum(folder / STEPS, stored)
    return None if stored is None else folder / STEPS


# -- files as arrays that the system reads when they are used, and gives up when memory is short -----------------------

_PART = 1 << 22  # bytes looked at at a time
# Linux counts a private mapping that may be written to as memory in full, even if nobody writes, and so refuses a file
# larger than memory. With this flag it does not. Python has its name from 3.13 on.
_MACHINES = ("x86_64", "aarch64")
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if platform.machine() in _MACHINES else 0)

AnyArray = npt.NDArray[Any]


def mapped(file: Path, kind: str, stored: Stored) -> AnyArray:
    """A file as an array, without reading it.

    It may be written to, since kernels are compiled for such arrays; what is written stays in memory and never reaches
    the file.
    """
    with _opened(file) as stream:
        size = file.stat().st_size
        if size != stored.bytes:
            what = "cut short" if size < stored.bytes else "too long"
            raise FileFormatError(file, None, f"{what}: {size} bytes instead of {stored.bytes}; convert the data again")
        if not size:
            return np.zeros(0, dtype=np.dtype(kind).newbyteorder("="))
        if sys.platform == "linux":
            options = {"flags": mmap.MAP_PRIVATE | _NORESERVE, "prot": mmap.PROT_READ | mmap.PROT_WRITE}
            memory = mmap.mmap(stream.fileno(), 0, **options)
        else:
            memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    found: AnyArray = np.frombuffer(memory, dtype=kind)
    return found.astype(np.dtype(kind).newbyteorder("="), copy=False)


def _opened(file: Path) -> Any:
    try:
        return file.open("rb")
    except FileNotFoundError:
        raise FileFormatError(file, None, "is missing; convert the data again") from None
    except OSError as error:
        raise FileFormatError(file, None, f"cannot be read: {error.strerror or error}") from error


def check_sum(file: Path, stored: Stored) -> None:
    """Read a file once, and raise unless it is as it was written."""
    crc = 0
    with _opened(file) as stream:
        while part := stream.read(_PART):
            crc = zlib.crc32(part, crc)
    if crc != stored.crc32:
        raise FileFormatError(file, None, "damaged: its checksum does not fit; convert the data again")


class Reader:
    """A folder of blocks whose header has been read; every array is opened when it is asked for.

    Parameters
    ----------
    folder : Path
    header : Header
    verify : bool
        Read all of a file first, and compare it with its checksum.
    """

    def __init__(self, folder: Path, header: Header, *, verify: bool) -> None:
        self.folder, self.header, self._verify = folder, header, verify
        self._names: dict[str, Any] = {}
        if header.has_names():
            self._names = self._read_names()

    def array(self, name: str) -> AnyArray:
        kind, _ = self.header.arrays()[name]
        file = self.folder / file_name(name, kind)
        stored = self.header.files[file.name]
        found = mapped(file, kind, stored)
        if self._verify or name in ("parent", "child"):
            check_sum(file, stored)
        return found

    def X(self) -> Any:
        """The samples: a CSR array or an array, backed by the files."""
        h = self.header
        if h.nnz is None:
            return self.array("values").reshape(h.n_rows, h.n_features)
        indptr, indices, data = self.array("indptr"), self.array("indices"), self.array("data")
        file = self.folder / "indptr.i64"
        if indptr[0] != 0 or indptr[-1] != h.nnz or (np.diff(indptr) < 0).any():
            raise FileFormatError(file, None, "damaged: rows do not follow each other; convert the data again")
        if self._verify:
            self._check_indices(indptr, indices)
        return csr(data, indices, indptr, (h.n_rows, h.n_features))

    def _check_indices(self, indptr: AnyArray, indices: AnyArray) -> None:
        """Kernels do not look whether a column exists, and take rows to be sorted."""
        file = self.folder / "indices.i32"
        for start in range(0, len(indices), _PART):
            part = indices[start : start + _PART + 1]
            if part.min() < 0 or part.max() >= self.header.n_features:
                raise FileFormatError(file, None, "damaged: a feature that does not exist; convert the data again")
            falls = np.flatnonzero(part[1:] <= part[:-1]) + start + 1  # only where a row begins
            if (indptr[np.searchsorted(indptr, falls)] != falls).any():
                raise FileFormatError(file, None, "damaged: a row is not sorted; convert the data again")

    def labels(self) -> tuple[list[Any], AnyArray, AnyArray | None]:
        """(names, codes, first code of every sample); the last is None for one label a sample."""
        names, codes = self._list("labels"), self.array("label_codes")
        file = self.folder / "label_codes.i32"
        if len(codes) and (codes.min() < 0 or codes.max() >= len(names)):
            raise FileFormatError(file, None, "damaged: a label that does not exist; convert the data again")
        if self.header.labels == "one":
            return names, codes, None
        indptr = self.array("label_indptr")
        if indptr[0] != 0 or indptr[-1] != len(codes) or (np.diff(indptr) < 0).any():
            file = self.folder / "label_indptr.i64"
            raise FileFormatError(file, None, "damaged: samples do not follow each other; convert the data again")
        return names, codes, indptr

    def feature_names(self) -> Any:
        """A range, an array of numbers, an array of names, or None."""
        h = self.header
        if h.features == "range":
            return range(h.first_feature, h.first_feature + h.n_features)
        if h.features == "numbers":
            return self.array("feature_numbers")
        if h.features == "names":
            names = self._list("features")
            if len(names) != h.n_features:
                raise FileFormatError(self.folder / NAMES, None, "damaged: another number of features")
            found = np.empty(len(names), dtype=object)
            found[:] = names
            return found
        return None

    def hierarchy(self) -> Hierarchy | None:
        if not self.header.hierarchy:
            return None
        nodes, parent, child = self._list("nodes"), np.array(self.array("parent")), np.array(self.array("child"))
        ends = np.concatenate([parent, child])
        if len(parent) == len(child) and not (len(ends) and (ends.min() < 0 or ends.max() >= len(nodes))):
            try:
                return Hierarchy(nodes, parent, child)
            except HierarchyError as error:
                raise FileFormatError(self.folder, None, f"damaged: its hierarchy is wrong: {error}") from None
        raise FileFormatError(self.folder, None, "damaged: an edge of its hierarchy joins no nodes")

    def _list(self, key: str) -> list[Any]:
        found = self._names.get(key)
        if not isinstance(found, list) or not all(type(name) in (str, int) for name in found):
            raise FileFormatError(self.folder / NAMES, None, f"damaged: no list of {key}; convert the data again")
        crowded = first_crowded(found)
        if crowded:
            raise FileFormatError(self.folder / NAMES, None, crowded)
        return found

    def _read_names(self) -> dict[str, Any]:
        file = self.folder / NAMES
        stored = self.header.files[NAMES]
        with _opened(file) as stream:
            raw = stream.read()
        if len(raw) != stored.bytes or zlib.crc32(raw) != stored.crc32:
            raise FileFormatError(file, None, "damaged: its checksum does not fit; convert the data again")
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise FileFormatError(file, None, "damaged: not a JSON object; convert the data again")
        return found


def csr(data: AnyArray, indices: AnyArray, indptr: AnyArray, shape: tuple[int, int]) -> sp.csr_array:
    """A CSR array of these very arrays, known to be sorted and without duplicates.

    Row pointers are int32 where that is enough: scipy, given two types of integers, would copy all indices.
    """
    made = sp.csr_array(shape, dtype=data.dtype)
    narrow = np.int32 if len(data) < 2**31 else np.int64
    made.data, made.indices, made.indptr = data, indices, indptr.astype(narrow)
    made.has_sorted_indices = made.has_canonical_format = True
    return made
