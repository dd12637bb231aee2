"""Data on disk that estimators learn from without reading it into memory.

A folder of blocks holds files of plain numbers, a file of names, and a header that lists them. The header is written
last and has a checksum of its own, so a folder without a good header is not taken for data.
"""

from __future__ import annotations

import json
import mmap
import platform
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from nhsvm._atomic import was_begun
from nhsvm.datasets.dataset import (
    AnyPath,
    Dataset,
    FeatureNames,
    checked_like,
    given_hierarchy,
    objects,
    split,
    unknown,
    whole_number,
)
from nhsvm.datasets.files import checked_path
from nhsvm.errors import DataError, FileFormatError, HierarchyError, LabelError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.hashes import first_crowded
from nhsvm.typing import JSON, Array, IntArray, LabelsLike, Matrix, Options, PtrArray, Record


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
    stored = _Folder(folder, verify=verify)
    names = stored.feature_names()
    if like is not None:
        _check_features(folder, names, stored.header.n_features, like)
    y, label_names = (None, []) if labelled is False else stored.labels()
    y = _in_form(y, multilabel, folder)
    label_type = int if label_names and all(isinstance(name, int) for name in label_names) else str
    found = given_hierarchy(stored.hierarchy() if hierarchy is None else hierarchy, label_type, drop_root)
    if found is not None and y is not None and (hierarchy is not None or drop_root):
        stray = next((name for name in label_names if name not in found), None)
        if stray is not None:
            raise LabelError(f"{folder}: {unknown(stray, found, brief=False)}")
    return Dataset(y, found, stored.X(), feature_names=names)


def _check_features(folder: Path, names: FeatureNames, n_features: int, like: Dataset) -> None:
    wanted = like.feature_names
    if wanted is None and like.X is not None:
        same = like.X.shape[1] == n_features
    else:
        same = wanted is None or (names is not None and np.array_equal(np.asarray(names), np.asarray(wanted)))
    if not same:
        raise DataError(
            f"{folder}: the features are not those of the training data; convert the file again, with --like and the "
            "blocks that were trained on (in Python: like=)"
        )


def _in_form(y: LabelsLike, multilabel: bool | None, folder: Path) -> LabelsLike:
    """Labels or label lists, as asked for."""
    is_sets = isinstance(y, list)
    if y is None or multilabel is None or multilabel == is_sets:
        return y
    if multilabel:
        return [[label] for label in y.tolist()]
    several = next((k for k, labels in enumerate(y) if len(labels) != 1), None)
    if several is not None:
        raise LabelError(f"{folder}: expected one label a sample, but sample {several} has {len(y[several])}")
    return objects([labels[0] for labels in y])


def iter_blocks(data: Dataset | AnyPath, rows: int = 10_000) -> Iterator[tuple[Matrix, LabelsLike]]:
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


def _rows_of(X: Matrix, start: int, stop: int) -> Matrix:
    if isinstance(X, np.ndarray):
        return X[start:stop]
    begin, end = int(X.indptr[start]), int(X.indptr[stop])
    indptr = X.indptr[start : stop + 1] - X.indptr[start]
    return _csr(X.data[begin:end], X.indices[begin:end], indptr, (stop - start, X.shape[1]))


def block_parts(path: AnyPath, size: int, tell: Callable[[float], None], options: Options) -> Iterator[Dataset]:
    """The same as data sets, for :func:`nhsvm.datasets.read_chunks`; ``tell`` is given the share up to their end."""
    whole = open_blocks(path, **options)
    n_rows = 0
    for X, y in iter_blocks(whole, size):
        n_rows += X.shape[0]
        tell(n_rows / whole.n_samples)
        yield replace(whole, X=X, y=y)


def read_note(path: AnyPath) -> Record:
    """The note that was kept with some blocks."""
    return read_header(checked_path(path)).note


def stored_steps(path: AnyPath) -> Path | None:
    """The file, found whole, that says how the features of some blocks were made; None if there is none."""
    folder = checked_path(path)
    stored = read_header(folder).files.get(STEPS)
    if stored is None:
        return None
    check_sum(folder / STEPS, stored)
    return folder / STEPS


# -- the header --------------------------------------------------------------------------------------------------------

HEADER = "header.json"
NAMES = "names.json"  # labels, nodes and features that have names
STEPS = "steps.nhsvm"  # how features were made, in the words of the program that made them
FORMAT = "nhsvm blocks"
VERSION = 1
_LONGEST = 10_000_000  # bytes of a header: it has no names and no numbers of samples

# name of a file of numbers -> type of these; all little-endian
_TYPES = {
    "indptr": "<i8",
    "indices": "<i4",
    "label_indptr": "<i8",
    "label_codes": "<i4",
    "feature_numbers": "<i8",
    "parent": "<i4",
    "child": "<i4",
}
_ENTRIES: dict[str, type] = {
    **dict.fromkeys(("n_rows", "n_features", "first_feature", "n_labels"), int),
    **dict.fromkeys(("dtype", "labels", "label_dtype", "features"), str),
    **{"hierarchy": bool, "note": dict, "files": dict},
}


@dataclass(frozen=True)
class Stored:
    """A file of the folder: how many bytes it has, and the CRC-32 of these."""

    bytes: int
    crc32: int


@dataclass(frozen=True)
class Header:
    """What is in a folder of blocks.

    Attributes
    ----------
    n_rows, n_features : int
    nnz : int or None
        Entries of a sparse matrix; None for a dense one.
    dtype : {"float32", "float64"}
    labels : {"none", "one", "sets"}
        Whether samples have no labels, one each, or sets.
    label_dtype : {"int64", "object"}
        Of ``y``, where samples have one label each.
    features : {"none", "range", "numbers", "names"}
        What columns are called: nothing; numbers from ``first_feature`` on; other numbers; names.
    first_feature : int
    hierarchy : bool
    n_labels : int
        Labels of all samples together.
    note : dict
        What the program that wrote it wants to know again.
    files : dict of str to Stored
    """

    n_rows: int
    n_features: int
    nnz: int | None
    dtype: str
    labels: str
    label_dtype: str
    features: str
    first_feature: int
    hierarchy: bool
    n_labels: int
    note: Record = field(default_factory=dict)
    files: dict[str, Stored] = field(default_factory=dict)

    def lengths(self) -> dict[str, int | None]:
        """The files of numbers that must be there, and how many each has; None is any number."""
        found: dict[str, int | None]
        if self.nnz is None:
            found = {"values": self.n_rows * self.n_features}
        else:
            found = {"indptr": self.n_rows + 1, "indices": self.nnz, "data": self.nnz}
        if self.labels != "none":
            found["label_codes"] = self.n_labels
        if self.labels == "sets":
            found["label_indptr"] = self.n_rows + 1
        if self.features == "numbers":
            found["feature_numbers"] = self.n_features
        return found | ({"parent": None, "child": None} if self.hierarchy else {})

    @property
    def has_names(self) -> bool:
        return self.labels != "none" or self.hierarchy or self.features == "names"

    @property
    def nbytes(self) -> int:
        """Of all files but the header."""
        return sum(stored.bytes for stored in self.files.values())


def type_of(name: str, dtype: str) -> str:
    """The type of the numbers in a file, as it is on disk."""
    return _TYPES.get(name) or ("<f4" if dtype == "float32" else "<f8")


def file_name(name: str, kind: str) -> str:
    """The file of an array.

    Examples
    --------
    >>> file_name("indices", "<i4")
    'indices.i32'
    """
    return f"{name}.{kind[1]}{8 * int(kind[2])}"


def checksum(content: Mapping[str, JSON]) -> int:
    """Of a header."""
    return zlib.crc32(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def read_header(folder: Path) -> Header:
    """The header of a folder of blocks; an error if it is missing, damaged, or does not say what it must."""
    if not folder.exists():
        begun = "; it was begun and not finished: convert the data again" if was_begun(folder) else ""
        raise FileFormatError(folder, None, f"cannot be read: No such file or directory{begun}")
    file = folder / HEADER
    try:
        with file.open("rb") as stream:
            raw = stream.read(_LONGEST + 1)
    except FileNotFoundError:
        raise FileFormatError(folder, None, f"not a folder of blocks: it has no {HEADER}") from None
    except NotADirectoryError:
        raise FileFormatError(folder, None, "not a folder of blocks, but a file; nhsvm convert makes one") from None
    except OSError as error:
        raise FileFormatError(file, None, f"cannot be read: {error.strerror or error}") from error
    outer = _json_object(raw, file)
    if outer.get("format") != FORMAT:
        raise FileFormatError(file, None, "not the header of a folder of blocks")
    if outer.get("version") != VERSION:
        found = str(outer.get("version"))[:20]
        raise FileFormatError(
            file, None, f"blocks of version {found}, and this nhsvm reads version {VERSION}; convert the data again"
        )
    content = outer.get("content")
    if not isinstance(content, dict) or checksum(content) != outer.get("crc32"):
        raise _damaged(file, "its checksum does not fit")
    try:
        if any(type(content[name]) is not kind for name, kind in _ENTRIES.items()):
            raise TypeError
        listed = {name: Stored(**stored) for name, stored in content["files"].items()}
        if any(type(count) is not int for stored in listed.values() for count in (stored.bytes, stored.crc32)):
            raise TypeError
        header = Header(**{**content, "files": listed})
        problem = next(_problems(header), None)
    except (KeyError, TypeError, ValueError):
        problem = "entries are missing, or of another type"
    if problem is not None:
        raise _damaged(file, problem)
    return header


def _json_object(raw: bytes, file: Path) -> dict[str, JSON]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _damaged(file, "not a JSON object")
    return found


def _problems(header: Header) -> Iterator[str]:
    counts = (header.n_rows, header.n_features, header.n_labels, header.first_feature, header.nnz or 0)
    if not all(0 <= count < 2**62 for count in counts) or header.n_features >= 2**31:
        yield "a count is out of range"
    if header.dtype not in ("float32", "float64") or header.labels not in ("none", "one", "sets"):
        yield "an unknown type of values or labels"
    if header.features not in ("none", "range", "numbers", "names") or header.label_dtype not in ("int64", "object"):
        yield "an unknown type of features or labels"
    if header.labels == "one" and header.n_labels != header.n_rows:
        yield "not one label a sample"
    wanted = set()
    for array, length in header.lengths().items():
        kind = type_of(array, header.dtype)
        name, size = file_name(array, kind), np.dtype(kind).itemsize
        wanted.add(name)
        stored = header.files.get(name)
        if stored is None or stored.bytes % size or (length is not None and stored.bytes != length * size):
            yield f"{name} is not listed, or with another length"
    if header.files.keys() - {*wanted, NAMES, STEPS} or header.has_names != (NAMES in header.files):
        yield "other files are listed than there must be"


def _damaged(file: Path, problem: str) -> FileFormatError:
    return FileFormatError(file, None, f"damaged: {problem}; convert the data again")


# -- files as arrays that the system reads when they are used, and gives up when memory is short -----------------------

_PART = 1 << 22  # bytes looked at at a time
# Linux counts a private mapping that may be written to as memory in full, even if nobody writes, and so refuses a file
# larger than memory. With this flag it does not. Python has its name from 3.13 on.
_MACHINES = ("x86_64", "aarch64")
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if platform.machine() in _MACHINES else 0)


def mapped(file: Path, kind: str, stored: Stored) -> Array:
    """A file as an array, without reading it.

    It may be written to, since kernels are compiled for such arrays; what is written stays in memory and never reaches
    the file.
    """
    native = np.dtype(kind).newbyteorder("=")
    with _opened(file) as stream:
        size = file.stat().st_size
        if size != stored.bytes:
            what = "cut short" if size < stored.bytes else "too long"
            raise FileFormatError(file, None, f"{what}: {size} bytes instead of {stored.bytes}; convert the data again")
        if not size:
            return np.zeros(0, dtype=native)
        if sys.platform == "linux":
            flags, prot = mmap.MAP_PRIVATE | _NORESERVE, mmap.PROT_READ | mmap.PROT_WRITE
            memory = mmap.mmap(stream.fileno(), 0, flags=flags, prot=prot)
        else:
            memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    return np.frombuffer(memory, dtype=kind).astype(native, copy=False)


def _opened(file: Path) -> IO[bytes]:
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
        raise _damaged(file, "its checksum does not fit")


class _Folder:
    """A folder of blocks; every array is opened when it is asked for, and nothing unchecked reaches a kernel.

    With ``verify``, all of a file is read first and compared with its checksum.
    """

    def __init__(self, folder: Path, *, verify: bool) -> None:
        self._folder, self._verify = folder, verify
        self.header, self._names = read_header(folder), dict[str, JSON]()
        if self.header.has_names:
            file, stored = folder / NAMES, self.header.files[NAMES]
            with _opened(file) as stream:
                raw = stream.read()
            if len(raw) != stored.bytes or zlib.crc32(raw) != stored.crc32:
                raise _damaged(file, "its checksum does not fit")
            self._names = _json_object(raw, file)

    def _file(self, name: str) -> Path:
        return self._folder / file_name(name, type_of(name, self.header.dtype))

    def _array(self, name: str) -> Array:
        file = self._file(name)
        stored = self.header.files[file.name]
        found = mapped(file, type_of(name, self.header.dtype), stored)
        if self._verify or name in ("parent", "child"):
            check_sum(file, stored)
        return found

    def _ends(self, name: str, n: int, what: str) -> PtrArray:
        """Where rows end, or the labels of samples."""
        found = self._array(name)
        if found[0] != 0 or found[-1] != n or (np.diff(found) < 0).any():
            raise _damaged(self._file(name), f"{what} do not follow each other")
        return found

    def X(self) -> Matrix:
        """The samples: a CSR array or an array, backed by the files."""
        h = self.header
        if h.nnz is None:
            return self._array("values").reshape(h.n_rows, h.n_features)
        indices, data = self._array("indices"), self._array("data")
        indptr = self._ends("indptr", h.nnz, "rows")
        if self._verify:
            self._check_indices(indptr, indices)
        return _csr(data, indices, indptr, (h.n_rows, h.n_features))

    def _check_indices(self, indptr: PtrArray, indices: IntArray) -> None:
        """Kernels do not look whether a column exists, and take rows to be sorted."""
        for start in range(0, len(indices), _PART):
            part = indices[start : start + _PART + 1]
            if part.min() < 0 or part.max() >= self.header.n_features:
                raise _damaged(self._file("indices"), "a feature that does not exist")
            falls = np.flatnonzero(part[1:] <= part[:-1]) + start + 1  # only where a row begins
            if (indptr[np.searchsorted(indptr, falls)] != falls).any():
                raise _damaged(self._file("indices"), "a row is not sorted")

    def labels(self) -> tuple[LabelsLike, list[str | int]]:
        """``y`` of a data set (None, labels, or a list of lists), and the names of all labels."""
        h = self.header
        if h.labels == "none":
            return None, []
        names, codes = self._list("labels"), self._array("label_codes")
        if len(codes) and (codes.min() < 0 or codes.max() >= len(names)):
            raise _damaged(self._file("label_codes"), "a label that does not exist")
        table = objects(names)
        if h.labels == "sets":
            ends = self._ends("label_indptr", len(codes), "samples")
            return split(table[codes].tolist(), ends.tolist()), names
        if h.label_dtype == "int64":
            if not all(type(name) is int and -(2**63) <= name < 2**63 for name in names):
                raise _damaged(self._folder, "labels of the type int64 that are no whole numbers of 64 bits")
            table = table.astype(np.int64)
        return table[codes], names

    def feature_names(self) -> FeatureNames:
        h = self.header
        if h.features == "range":
            return range(h.first_feature, h.first_feature + h.n_features)
        if h.features == "numbers":
            return self._array("feature_numbers")
        if h.features == "none":
            return None
        names = self._list("features")
        if len(names) != h.n_features:
            raise _damaged(self._folder / NAMES, "another number of features")
        return objects(names)

    def hierarchy(self) -> Hierarchy | None:
        if not self.header.hierarchy:
            return None
        nodes, parent, child = self._list("nodes"), np.array(self._array("parent")), np.array(self._array("child"))
        ends = np.concatenate([parent, child])
        if len(parent) != len(child) or (len(ends) and (ends.min() < 0 or ends.max() >= len(nodes))):
            raise _damaged(self._folder, "an edge of its hierarchy joins no nodes")
        try:
            return Hierarchy(nodes, parent, child)
        except HierarchyError as error:
            raise _damaged(self._folder, f"its hierarchy is wrong: {error}") from None

    def _list(self, key: str) -> list[str | int]:
        found = self._names.get(key)
        if not isinstance(found, list) or not all(type(name) in (str, int) for name in found):
            raise _damaged(self._folder / NAMES, f"no list of {key}")
        crowded = first_crowded(found)
        if crowded:
            raise FileFormatError(self._folder / NAMES, None, crowded)
        return found


def _csr(data: Array, indices: IntArray, indptr: Array, shape: tuple[int, int]) -> sp.csr_array:
    """A CSR array of these very arrays, known to be sorted and without duplicates.

    Row pointers are int32 where that is enough: scipy, given two types of integers, would copy all indices.
    """
    made = sp.csr_array(shape, dtype=data.dtype)
    narrow = np.int32 if len(data) < 2**31 else np.int64
    made.data, made.indices, made.indptr = data, indices, indptr.astype(narrow)
    made.has_sorted_indices = made.has_canonical_format = True
    return made
