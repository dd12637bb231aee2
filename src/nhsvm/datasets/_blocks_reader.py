"""The files of blocks as arrays that the system reads when they are used, and gives up when memory is short."""

from __future__ import annotations

import json
import mmap
import platform
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.datasets._blocks_format import NAMES, Header, Stored, file_name
from nhsvm.errors import FileFormatError, HierarchyError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.hashes import first_crowded

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
