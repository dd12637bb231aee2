"""Blocks, written a part at a time."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm._atomic import NewFolder
from nhsvm.datasets.blocks import FORMAT, HEADER, NAMES, STEPS, VERSION, Header, Stored, checksum, file_name, type_of
from nhsvm.datasets.dataset import AnyPath, Dataset, FeatureNames, Skipped
from nhsvm.datasets.files import checked_path
from nhsvm.errors import DataError, LabelError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.typing import JSON, Array, IntArray, Label, LabelsLike, Matrix, PtrArray


@dataclass(frozen=True)
class Converted:
    """What a conversion has written.

    Attributes
    ----------
    path : Path
    n_samples, n_features : int
    nnz : int or None
        Entries of a sparse matrix; None for a dense one.
    nbytes : int
        Of all files.
    skipped : Skipped
    removed : int
        Folders that earlier attempts had left behind, and that were removed.
    """

    path: Path
    n_samples: int
    n_features: int
    nnz: int | None
    nbytes: int
    skipped: Skipped = field(default_factory=Skipped)
    removed: int = 0


def write_blocks(
    data: Dataset | Iterable[Dataset],
    to: AnyPath,
    *,
    force: bool = False,
    note: Mapping[str, JSON] | None = None,
    steps: Callable[[Path], None] | None = None,
) -> Converted:
    """Data sets as one folder of blocks, for :func:`nhsvm.datasets.open_blocks`.

    Parameters
    ----------
    data : Dataset, or Datasets one after the other
        With X. The columns of all are those of the first, and so is the type of its values; the hierarchy is that of
        the last.
    to : path
    force : bool
        Replace blocks that are there.
    note : dict, optional
        JSON to keep with the data.
    steps : function, optional
        Given a path, writes a file to keep with the data: how the features were made.

    Returns
    -------
    Converted

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nhsvm.datasets import make_unbalanced, open_blocks
    >>> data = make_unbalanced(50, 5, random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     _ = write_blocks(data, Path(folder) / "made.blocks")
    ...     again = open_blocks(Path(folder) / "made.blocks")
    >>> bool((again.X == data.X).all()), again.hierarchy == data.hierarchy
    (True, True)
    """
    target, parts = checked_path(to), iter([data] if isinstance(data, Dataset) else data)
    first = next(parts, None)
    if first is None or first.X is None:
        raise DataError("blocks hold samples with features, and there are none")
    dtype = first.X.dtype if first.X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    names = first.X.shape[1] if first.feature_names is None else first.feature_names
    last = first
    with Writer(target, dtype, force=force) as writer:
        writer.add(first.X, first.y)
        for last in parts:
            if last.X is None or last.X.shape[1] != first.X.shape[1]:
                raise DataError("the parts of the data do not have the same features")
            writer.add(last.X, last.y)
        return writer.finish(names, last.hierarchy, note, steps)


# -- a folder in the making --------------------------------------------------------------------------------------------

PART = 1 << 20  # numbers that are rewritten at a time
_RESERVE = 1 << 20  # bytes of a disk that are left free
_LONGEST = 10_000_000  # bytes of a header


class NumberFile:
    """Numbers in a file, appended to; knows the checksum of what it holds."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        self.kind = type_of(name, dtype)
        self.name = file_name(name, self.kind)
        self._path = folder / self.name
        self._stream: IO[bytes] = self._path.open("xb")
        self.bytes, self._crc = 0, 0

    def append(self, array: Array) -> None:
        raw = np.ascontiguousarray(array, dtype=self.kind).reshape(-1).view(np.uint8).data
        self._stream.write(raw)
        self.bytes += len(raw)
        self._crc = zlib.crc32(raw, self._crc)

    def rewrite(self, change: Callable[[Array], object]) -> None:
        """Change all numbers in place, some at a time."""
        self._stream.flush()
        self._crc = 0
        step = PART * np.dtype(self.kind).itemsize
        with self._path.open("r+b") as stream:
            for start in range(0, self.bytes, step):
                stream.seek(start)
                raw = bytearray(min(step, self.bytes - start))
                stream.readinto(raw)
                part = np.frombuffer(raw, dtype=self.kind)
                change(part)
                stream.seek(start)
                stream.write(part.view(np.uint8).data)
                self._crc = zlib.crc32(part.view(np.uint8).data, self._crc)

    def stored(self) -> Stored:
        """What the header says of it; all of it is on disk then."""
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.close()
        return Stored(self.bytes, self._crc)

    def close(self) -> None:
        self._stream.close()


class Writer:
    """A folder of blocks in the making; use it as a context, in which :meth:`finish` ends it well.

    ``expected_rows`` says about how many samples will come, for an early word on a disk that is too small.
    """

    def __init__(
        self, path: Path, dtype: npt.DTypeLike, *, force: bool = False, expected_rows: int | None = None
    ) -> None:
        self.path, self._dtype = path, np.dtype(dtype).name
        self._expected = expected_rows
        self._new = new_folder(path, force=force)
        self._files: dict[str, NumberFile] = {}
        self._labels = LabelTable()
        self.n_rows, self.nnz, self._n_labels = 0, 0, 0
        self._width: int | None = None  # of dense samples; None for sparse ones

    def __enter__(self) -> Writer:
        with self._writing():
            self._new.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            for file in self._files.values():
                with suppress(OSError):  # of what is left in a buffer, on a full disk; those that are kept are closed
                    file.close()
        finally:
            self._new.__exit__(*exception)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Name the folder in an error of the disk."""
        try:
            yield
        except OSError as error:
            problem = f"{self.path} cannot be written: {error.strerror or error}; nothing of it is kept"
            raise OptionError(problem) from error

    def add(self, X: Matrix, y: LabelsLike) -> None:
        """Append samples and their labels, as in a ``Dataset``."""
        width = None if sp.issparse(X) else int(X.shape[1])
        if self._files and width != self._width:
            raise DataError("the parts of the data do not have the same features")
        self._width = width
        if width is not None:
            self._add({"values": X}, X.shape[0], y)
            return
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        ends = self._ends(X.indptr[1:], self.nnz)
        self.nnz += int(X.indptr[-1])
        self._add({"indptr": ends, "indices": X.indices, "data": X.data}, X.shape[0], y)

    def _ends(self, ends: Array, before: int) -> PtrArray:
        """Where the rows of a part end, counted from the first part, which begins with a 0."""
        found = ends.astype(np.int64) + before
        return found if self.n_rows else np.insert(found, 0, 0)

    def _add(self, arrays: dict[str, Array], n_rows: int, y: LabelsLike) -> None:
        codes, sizes = self._labels.take(y)
        if y is not None and len(sizes) != n_rows:
            raise DataError(f"{n_rows} samples, but labels of {len(sizes)}")
        arrays |= {"label_codes": codes, "label_indptr": self._ends(np.cumsum(sizes), self._n_labels)}
        n_bytes = sum(array.size * np.dtype(type_of(name, self._dtype)).itemsize for name, array in arrays.items())
        self._check_space(n_bytes, n_rows)
        with self._writing():
            for name, array in arrays.items():
                self._file(name).append(array)
        self.n_rows += n_rows
        self._n_labels += len(codes)

    def _check_space(self, n_bytes: int, n_rows: int) -> None:
        """An error before the disk is full: for this part, and for all that will come if that can be told."""
        free = shutil.disk_usage(self._new.folder).free
        wanted = n_bytes + _RESERVE
        if self._expected is not None and n_rows:
            wanted = max(wanted, n_bytes * max(self._expected, n_rows) // n_rows)
            self._expected = None  # told once, by the first part
        if wanted > free:
            raise OptionError(
                f"{self.path} needs about {wanted / 1e6:,.0f} MB more, but the disk has {free / 1e6:,.0f} MB free: "
                "make room, or choose a folder on another disk; nothing of it is kept"
            )

    def _file(self, name: str) -> NumberFile:
        if name not in self._files:
            self._files[name] = NumberFile(self._new.folder, name, self._dtype)
        return self._files[name]

    def change_indices(self, change: Callable[[Array], object]) -> None:
        """Change the numbers of features, some at a time; they stay in order and distinct."""
        with self._writing():
            self._file("indices").rewrite(change)

    def finish(
        self,
        features: FeatureNames | int,
        hierarchy: Hierarchy | None,
        note: Mapping[str, JSON] | None = None,
        steps: Callable[[Path], None] | None = None,
    ) -> Converted:
        """Write what is left and give the folder its name; ``steps`` has its file on disk when it returns."""
        names: dict[str, list[str | int]] = {}
        with self._writing():
            kind, first, n_features = self._features(features, names)
            if hierarchy is not None:
                parent, child = hierarchy.graph.edges()
                names["nodes"] = [storable(node) for node in hierarchy.nodes]
                self._file("parent").append(parent)
                self._file("child").append(child)
            labels = self._labels.kind or "none"
            if labels != "none":
                names["labels"] = self._labels.names
            self._remove({"none": ("label_codes", "label_indptr"), "one": ("label_indptr",), "sets": ()}[labels])
            files = {file.name: file.stored() for file in self._files.values()}
            if names:
                files[NAMES] = self._write(NAMES, json.dumps(names).encode())
            if steps is not None:
                steps(self._new.folder / STEPS)
                raw = (self._new.folder / STEPS).read_bytes()
                files[STEPS] = Stored(len(raw), zlib.crc32(raw))
            nnz = self.nnz if self._width is None else None
            header = Header(
                self.n_rows, n_features, nnz, self._dtype, labels, self._labels.dtype, kind, first,
                hierarchy is not None, self._n_labels, dict(note or {}), files,
            )  # fmt: skip
            content = asdict(header)
            outer = {"format": FORMAT, "version": VERSION, "crc32": checksum(content), "content": content}
            # the last: without it, nothing is taken for data
            self._write(HEADER, json.dumps(outer, indent=1).encode() + b"\n")
            self._new.complete()
        return Converted(self.path, self.n_rows, n_features, nnz, header.nbytes, removed=self._new.removed)

    def _remove(self, needless: Iterable[str]) -> None:
        for name in needless:
            file = self._files.pop(name)
            file.close()
            (self._new.folder / file.name).unlink()

    def _features(self, features: FeatureNames | int, names: dict[str, list[str | int]]) -> tuple[str, int, int]:
        if isinstance(features, int):
            return "none", 0, features
        if isinstance(features, range):
            return "range", features.start, len(features)
        found = np.asarray(features)
        if found.dtype.kind == "i":
            self._file("feature_numbers").append(found)
            return "numbers", 0, len(found)
        names["features"] = [str(name) for name in found.tolist()]
        return "names", 0, len(found)

    def _write(self, name: str, raw: bytes) -> Stored:
        with (self._new.folder / name).open("xb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        return Stored(len(raw), zlib.crc32(raw))


def new_folder(path: Path, *, force: bool = False) -> NewFolder:
    """A folder that gets its name when it is complete; with ``force`` it replaces blocks that are there."""
    return NewFolder(path, partial(check_target, path, force=force), replace=force)


def check_target(path: Path, *, force: bool) -> None:
    """An error if a folder of blocks cannot be written; nothing is touched."""
    if not path.name:
        raise OptionError(f"{str(path)!r} is no name for a folder of blocks")
    if path.is_symlink() or (path.exists() and not (path.is_dir() and (_is_ours(path) or not any(path.iterdir())))):
        raise OptionError(f"{path} exists and is not a folder of blocks: choose another name")
    if path.exists() and not force:
        raise OptionError(f"{path} exists already; choose another name, or replace it: --force, in Python force=True")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise OptionError(f"{path} cannot be written: there is no folder {parent}")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OptionError(f"{path} cannot be written: permission denied in {parent}")


def _is_ours(folder: Path) -> bool:
    """Whether a folder has a header of this format, good or damaged; it may then be replaced."""
    try:
        with (folder / HEADER).open("rb") as stream:
            return FORMAT.encode() in stream.read(_LONGEST)
    except OSError:
        return False


# -- labels as numbers and a table of names ----------------------------------------------------------------------------


def storable(label: Label) -> str | int:
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
        self._code: dict[Label, int] = {}
        self.names: list[str | int] = []
        self.kind: str | None = None
        self.dtype = "object"

    def take(self, y: LabelsLike) -> tuple[IntArray, PtrArray]:
        """(codes of all labels, labels of every sample) of ``y`` as in a ``Dataset``."""
        if y is None or self.kind == "none":
            if (y is None) != (self.kind in (None, "none")):
                raise DataError("some parts of the data have labels, and others have none")
            self.kind = "none"
            return np.zeros(0, np.int32), np.zeros(0, np.int64)
        if isinstance(y, list) and any(isinstance(labels, list) for labels in y):
            self.kind = "sets"
            return self._codes(chain.from_iterable(y)), np.fromiter(map(len, y), dtype=np.int64, count=len(y))
        is_numbers = isinstance(y, np.ndarray) and y.dtype.kind == "i"
        if self.kind is None:
            self.kind, self.dtype = "one", "int64" if is_numbers else "object"
        if is_numbers:
            distinct, places = np.unique(y, return_inverse=True)
            return self._codes(distinct.tolist())[places], np.ones(len(y), dtype=np.int64)
        return self._codes(y), np.ones(len(y), dtype=np.int64)

    def _codes(self, labels: Iterable[Label]) -> IntArray:
        found = []
        for label in labels:
            code = self._code.get(label)
            if code is None:
                name = storable(label)
                code = self._code.setdefault(name, len(self.names))
                self.names.append(name)
            found.append(code)
        return np.array(found, dtype=np.int32)
