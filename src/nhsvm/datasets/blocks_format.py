"""What a folder of blocks holds: files of plain numbers, files of names, and a header that lists them.

The header is written last and has a checksum of its own, so a folder without a good header is not taken for data.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm._atomic import NewFolder
from nhsvm.errors import DataError, FileFormatError, LabelError, OptionError
from nhsvm.hierarchy import Hierarchy

HEADER = "header.json"
_FORMAT = "nhsvm blocks"
VERSION = 1
_LONGEST = 10_000_000  # bytes of a header: it has no names and no numbers of samples
LABEL_KINDS = ("none", "one", "sets")
FEATURE_KINDS = ("none", "range", "numbers", "names")

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
NAMES = "names.json"  # labels, nodes and features that have names
STEPS = "steps.nhsvm"  # how features were made, in the words of the program that made them
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
    note: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Stored] = field(default_factory=dict)

    def arrays(self) -> dict[str, tuple[str, int | None]]:
        """Type and length of every file of numbers that must be there; None is any length."""
        lengths: dict[str, tuple[str, int | None]] = {}
        if self.nnz is None:
            lengths["values"] = float_type(self.dtype), self.n_rows * self.n_features
        else:
            lengths = {"indptr": (_TYPES["indptr"], self.n_rows + 1), "indices": (_TYPES["indices"], self.nnz)}
            lengths["data"] = float_type(self.dtype), self.nnz
        if self.labels != "none":
            lengths["label_codes"] = _TYPES["label_codes"], self.n_labels
        if self.labels == "sets":
            lengths["label_indptr"] = _TYPES["label_indptr"], self.n_rows + 1
        if self.features == "numbers":
            lengths["feature_numbers"] = _TYPES["feature_numbers"], self.n_features
        if self.hierarchy:
            lengths |= {"parent": (_TYPES["parent"], None), "child": (_TYPES["child"], None)}
        return lengths

    def has_names(self) -> bool:
        return self.labels != "none" or self.hierarchy or self.features == "names"

    @property
    def nbytes(self) -> int:
        """Of all files but the header."""
        return sum(stored.bytes for stored in self.files.values())


def type_of(name: str, dtype: str) -> str:
    """The type of the numbers in a file."""
    return _TYPES.get(name) or float_type(dtype)


def float_type(dtype: str) -> str:
    """The type of features as it is on disk."""
    return "<f4" if dtype == "float32" else "<f8"


def file_name(name: str, kind: str) -> str:
    """The file of an array.

    Examples
    --------
    >>> file_name("indices", "<i4")
    'indices.i32'
    """
    return f"{name}.{kind[1]}{8 * int(kind[2])}"


def packed(header: Header) -> bytes:
    """The content of the header's file."""
    content = asdict(header)
    outer = {"format": _FORMAT, "version": VERSION, "crc32": checksum(content), "content": content}
    return json.dumps(outer, indent=1).encode() + b"\n"


def checksum(content: Mapping[str, Any]) -> int:
    """Of a header."""
    return zlib.crc32(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def is_ours(folder: Path) -> bool:
    """Whether a folder has a header of this format, good or damaged; it may then be replaced."""
    try:
        with (folder / HEADER).open("rb") as stream:
            return _FORMAT.encode() in stream.read(_LONGEST)
    except OSError:
        return False


def read_header(folder: Path) -> Header:
    """The header of a folder of blocks.

    Raises
    ------
    FileFormatError
        If it is missing, damaged, of a newer version, or does not say what it must.
    """
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
    outer = _json(raw, file)
    if outer.get("format") != _FORMAT:
        raise FileFormatError(file, None, "not the header of a folder of blocks")
    if outer.get("version") != VERSION:
        found = str(outer.get("version"))[:20]
        raise FileFormatError(
            file, None, f"blocks of version {found}, and this nhsvm reads version {VERSION}; convert the data again"
        )
    content = outer.get("content")
    if not isinstance(content, dict) or checksum(content) != outer.get("crc32"):
        raise FileFormatError(file, None, "damaged: its checksum does not fit; convert the data again")
    return _header(content, file)


def _json(raw: bytes, file: Path) -> dict[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FileFormatError(file, None, "damaged: not a JSON object; convert the data again")
    return found


def _header(content: Mapping[str, Any], file: Path) -> Header:
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
        raise FileFormatError(file, None, f"damaged: {problem}; convert the data again")
    return header


def _problems(header: Header) -> Iterator[str]:
    counts = (header.n_rows, header.n_features, header.n_labels, header.first_feature, header.nnz or 0)
    if not all(0 <= count < 2**62 for count in counts) or header.n_features >= 2**31:
        yield "a count is out of range"
    if header.dtype not in ("float32", "float64") or header.labels not in LABEL_KINDS:
        yield "an unknown type of values or labels"
    if header.features not in FEATURE_KINDS or header.label_dtype not in ("int64", "object"):
        yield "an unknown type of features or labels"
    if header.labels == "one" and header.n_labels != header.n_rows:
        yield "not one label a sample"
    wanted = {file_name(name, kind): (kind, length) for name, (kind, length) in header.arrays().items()}
    for name, (kind, length) in wanted.items():
        stored = header.files.get(name)
        size = np.dtype(kind).itemsize
        if stored is None or stored.bytes % size or (length is not None and stored.bytes != length * size):
            yield f"{name} is not listed, or with another length"
    if header.files.keys() - {*wanted, NAMES, STEPS} or header.has_names() != (NAMES in header.files):
        yield "other files are listed than there must be"


# -- the folder --------------------------------------------------------------------------------------------------------


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the folder in an error of the disk."""
    try:
        yield
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror or error}; nothing of it is kept") from error


def new_folder(path: Path, *, force: bool = False) -> NewFolder:
    """A folder that gets its name when it is complete; with ``force`` it replaces blocks that are there."""
    return NewFolder(path, partial(check_target, path, force=force), replace=force)


def check_target(path: Path, *, force: bool) -> None:
    """An error if a folder of blocks cannot be written; nothing is touched."""
    if not path.name:
        raise OptionError(f"{str(path)!r} is no name for a folder of blocks")
    if path.is_symlink() or (path.exists() and not (path.is_dir() and (is_ours(path) or not any(path.iterdir())))):
        raise OptionError(f"{path} exists and is not a folder of blocks: choose another name")
    if path.exists() and not force:
        raise OptionError(f"{path} exists already; choose another name, or replace it: --force, in Python force=True")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"{path} cannot be written: there is no folder {path.absolute().parent}")
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise OptionError(f"{path} cannot be written: permission denied in {path.absolute().parent}")


# -- labels as numbers and a table of names ----------------------------------------------------------------------------

Codes = npt.NDArray[np.int32]


def storable(label: Hashable) -> str | int:
    """A label as JSON has it: text or a whole number."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, (int, np.integer)) and not isinstance(label, (bool, np.bool_)):
        return int(label)
    raise LabelError(f"blocks hold labels that are text or whole numbers, not {label!r}, a {type(label).__name__}")


class LabelTable:
    """Numbers labels in the order in which they come.

    Examples
    --------
    >>> table = LabelTable()
    >>> table.take(["dog", "cat", "dog"]), table.take([["oak"], ["cat", "dog"]])
    ((array([0, 1, 0], dtype=int32), array([1, 1, 1])), (array([2, 1, 0], dtype=int32), array([1, 2])))
    >>> table.names, table.kind
    (['dog', 'cat', 'oak'], 'sets')
    """

    def __init__(self) -> None:
        self._code: dict[Hashable, int] = {}
        self.names: list[str | int] = []
        self.kind: str | None = None
        self.dtype = "object"

    def take(self, y: Any) -> tuple[Codes, npt.NDArray[np.int64]]:
        """(codes of all labels, labels of every sample) of ``y`` as in a ``Dataset``."""
        if y is None or self.kind == "none":
            if (y is None) != (self.kind in (None, "none")):
                raise DataError("some parts of the data have labels, and others have none")
            self.kind = "none"
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        if isinstance(y, list) and any(isinstance(labels, list) for labels in y):
            self.kind = "sets"
            flat = list(chain.from_iterable(y))
            sizes = np.fromiter(map(len, y), dtype=np.int64, count=len(y))
        else:
            if self.kind is None:
                self.kind = "one"
                self.dtype = "int64" if isinstance(y, np.ndarray) and y.dtype.kind == "i" else "object"
            flat, sizes = y, np.ones(len(y), dtype=np.int64)
        return self._codes(flat), sizes

    def _codes(self, flat: Any) -> Codes:
        if isinstance(flat, np.ndarray) and flat.dtype.kind == "i":
            distinct, places = np.unique(flat, return_inverse=True)
            return self._numbered(distinct.tolist())[places]
        return self._numbered(flat)

    def _numbered(self, labels: Iterable[Hashable]) -> Codes:
        found = []
        for label in labels:
            code = self._code.get(label)
            if code is None:
                name = storable(label)
                code = self._code.setdefault(name, len(self.names))
                self.names.append(name)
            found.append(code)
        return np.array(found, dtype=np.int32)


def hierarchy_parts(hierarchy: Hierarchy) -> tuple[list[str | int], Codes, Codes]:
    """(names of the nodes by number, parents, children)."""
    parent, child = hierarchy.graph.edges()
    return [storable(node) for node in hierarchy.nodes], parent.astype(np.int32), child.astype(np.int32)


def labels_of(kind: str, dtype: str, names: list[str | int], codes: Any, indptr: Any) -> Any:
    """``y`` of a data set: an array of labels, or a list of lists."""
    table = np.empty(len(names), dtype=object)
    table[:] = names
    if dtype == "int64" and kind == "one":
        if not all(type(name) is int and -(2**63) <= name < 2**63 for name in names):
            raise LabelError("labels of the type int64 that are no whole numbers of 64 bits")
        table = table.astype(np.int64)
    if kind == "one":
        return table[codes]
    flat, ends = table[codes].tolist(), indptr.tolist()
    return [flat[a:b] for a, b in pairwise(ends)]
