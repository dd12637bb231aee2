"""Blocks, written a part at a time."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.datasets.base import Dataset, Skipped
from nhsvm.datasets.blocks_format import (
    HEADER,
    NAMES,
    STEPS,
    Header,
    LabelTable,
    Stored,
    file_name,
    hierarchy_parts,
    new_folder,
    packed,
    type_of,
    writing,
)
from nhsvm.datasets.files import AnyPath, checked_path
from nhsvm.errors import DataError, OptionError
from nhsvm.hierarchy import Hierarchy


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

    @classmethod
    def of(cls, path: Path, header: Header, **more: Any) -> Converted:
        """What a header says was written, and what else is known."""
        return cls(path, header.n_rows, header.n_features, header.nnz, header.nbytes, **more)


def write_blocks(
    data: Dataset | Iterable[Dataset],
    to: AnyPath,
    *,
    force: bool = False,
    note: Mapping[str, Any] | None = None,
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
    names: Any = first.X.shape[1] if first.feature_names is None else first.feature_names
    last = first
    with Writer(target, dtype, force=force) as writer:
        writer.add(first.X, first.y)
        for last in parts:
            if last.X is None or last.X.shape[1] != first.X.shape[1]:
                raise DataError("the parts of the data do not have the same features")
            writer.add(last.X, last.y)
        header = writer.finish(names, last.hierarchy, note, steps)
        return Converted.of(target, header, removed=writer.removed)


# -- a folder in the making --------------------------------------------------------------------------------------------

_PART = 1 << 20  # numbers that are rewritten at a time
_RESERVE = 1 << 20  # bytes of a disk that are left free


class _File:
    """Numbers in a file, appended to; knows the checksum of what it holds."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        self.kind = type_of(name, dtype)
        self.name = file_name(name, self.kind)
        self._path = folder / self.name
        self._stream: IO[bytes] = self._path.open("xb")
        self.bytes, self._crc = 0, 0

    def append(self, array: npt.NDArray[Any]) -> None:
        raw = np.ascontiguousarray(array, dtype=self.kind).reshape(-1).view(np.uint8).data
        self._stream.write(raw)
        self.bytes += len(raw)
        self._crc = zlib.crc32(raw, self._crc)

    def rewrite(self, change: Callable[[npt.NDArray[Any]], None]) -> None:
        """Change all numbers in place, some at a time."""
        self._stream.flush()
        self._crc = 0
        step = _PART * np.dtype(self.kind).itemsize
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

    Parameters
    ----------
    path : Path
    dtype : dtype
        float32 or float64.
    force : bool
        Replace blocks that are there.
    expected_rows : int or None
        About how many samples will come, for an early word on a disk that is too small.
    """

    def __init__(self, path: Path, dtype: Any, *, force: bool = False, expected_rows: int | None = None) -> None:
        self.path, self._dtype = path, np.dtype(dtype).name
        self._expected = expected_rows
        self._new = new_folder(path, force=force)
        self._files: dict[str, _File] = {}
        self._labels = LabelTable()
        self.n_rows, self.nnz, self._n_labels = 0, 0, 0
        self._width: int | None = None  # of dense samples

    def __enter__(self) -> Writer:
        with writing(self.path):
            self._new.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            for file in self._files.values():
                with suppress(OSError):  # of what is left in a buffer, on a full disk; those that are kept are closed
                    file.close()
        finally:
            self._new.__exit__(*exception)

    @property
    def removed(self) -> int:
        """Folders of earlier attempts that were removed."""
        return self._new.removed

    def add(self, X: Any, y: Any) -> None:
        """Append samples and their labels, as in a ``Dataset``."""
        if sp.issparse(X):
            X = sp.csr_array(X)
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            self.add_rows(X.indptr, X.indices, X.data, y)
            return
        if self.nnz or "indptr" in self._files or self._width not in (None, X.shape[1]):
            raise DataError("the parts of the data do not have the same features")
        self._width = int(X.shape[1])
        self._add({"values": X}, X.shape[0], y)

    def add_rows(self, indptr: Any, indices: Any, data: Any, y: Any) -> None:
        """Append sparse rows, with sorted and distinct indices, and their labels."""
        if self._width is not None:
            raise DataError("the parts of the data do not have the same features")
        first = [] if self.n_rows else [np.zeros(1, np.int64)]
        ends = np.concatenate([*first, np.asarray(indptr[1:], dtype=np.int64) + self.nnz])
        self.nnz += int(indptr[-1])
        self._add({"indptr": ends, "indices": indices, "data": data}, len(indptr) - 1, y)

    def _add(self, arrays: dict[str, Any], n_rows: int, y: Any) -> None:
        codes, sizes = self._labels.take(y)
        if y is not None and len(sizes) != n_rows:
            raise DataError(f"{n_rows} samples, but labels of {len(sizes)}")
        first = [] if self.n_rows else [np.zeros(1, np.int64)]
        arrays |= {"label_codes": codes, "label_indptr": np.concatenate([*first, self._n_labels + np.cumsum(sizes)])}
        self._check_space(sum(array.size * _width_of(name, self._dtype) for name, array in arrays.items()), n_rows)
        with writing(self.path):
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

    def _file(self, name: str) -> _File:
        if name not in self._files:
            self._files[name] = _File(self._new.folder, name, self._dtype)
        return self._files[name]

    def change_indices(self, change: Callable[[npt.NDArray[Any]], None]) -> None:
        """Change the numbers of features, some at a time; they stay in order and distinct."""
        with writing(self.path):
            self._file("indices").rewrite(change)

    def finish(
        self,
        features: Any,
        hierarchy: Hierarchy | None,
        note: Mapping[str, Any] | None = None,
        steps: Callable[[Path], None] | None = None,
    ) -> Header:
        """Write what is left and give the folder its name.

        Parameters
        ----------
        features : int, range, array of numbers, or array of names
            How many columns there are, or what they are called.
        hierarchy : Hierarchy or None
        note : JSON, optional
        steps : function, optional
            Writes a file that says how the features were made, and has it on disk when it returns.
        """
        names: dict[str, Any] = {}
        with writing(self.path):
            kind, first, n_features = self._features(features, names)
            if hierarchy is not None:
                names["nodes"], parent, child = hierarchy_parts(hierarchy)
                self._file("parent").append(parent)
                self._file("child").append(child)
            labels = self._labels.kind or "none"
            if labels != "none":
                names["labels"] = self._labels.names
            kept = self._kept(labels)
            files = {file.name: file.stored() for file in kept}
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
            self._write(HEADER, packed(header))  # the last: without it, nothing is taken for data
            self._new.complete()
        return header

    def _kept(self, labels: str) -> list[_File]:
        """The files that go into the header; the others are removed."""
        needless = {"none": ("label_codes", "label_indptr"), "one": ("label_indptr",), "sets": ()}[labels]
        for name in needless:
            self._files[name].close()
            (self._new.folder / self._files[name].name).unlink()
        return [file for name, file in self._files.items() if name not in needless]

    def _features(self, features: Any, names: dict[str, Any]) -> tuple[str, int, int]:
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


def _width_of(name: str, dtype: str) -> int:
    return int(np.dtype(type_of(name, dtype)).itemsize)
