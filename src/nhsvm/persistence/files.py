"""Model files: a JSON header and named arrays, written atomically and read through a memory map."""

from __future__ import annotations

import itertools
import mmap
import os
import stat
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm._atomic import write_file
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.persistence._layout import CODES, MAX_HEADER, Entry, offsets, pack, storage_order, unpack
from nhsvm.persistence._malformed import JSON, Malformed, reading
from nhsvm.persistence.checks import Budget

AnyArray = npt.NDArray[Any]
PathArg = str | os.PathLike[str]

_ALWAYS_VERIFIED = 2**20  # bytes: an array up to this size is checked on every load, which takes a millisecond
TEXT = "text/"  # arrays whose names begin so are decoded on every load, so they are checked whatever their size
_FOREIGN = {b"PK": "a zip archive (an .npz file?)", b"\x80\x02": "a pickle", b"\x80\x03": "a pickle"}
_FOREIGN |= {b"\x80\x04": "a pickle", b"\x80\x05": "a pickle", b"\x1f\x8b": "a gzip file"}


def write_model(path: PathArg, header: Mapping[str, JSON], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write a model file, all of it or nothing.

    After an error or a crash the old file is still there, untouched: see :func:`nhsvm._atomic.new_file`.

    Parameters
    ----------
    path : path
        A link is followed.
    header : mapping
        JSON: None, bool, int, finite float, str, lists and dicts with str keys of these.
    arrays : mapping of str to array
        float16/32/64, int8/16/32/64, uint8/16/32/64 or bool, of any shape. C- and Fortran-ordered arrays are written
        straight from memory; others are copied, one at a time.

    Raises
    ------
    NHSVMError
        For a header or an array that a file cannot hold, before anything is written.

    Notes
    -----
    The file is a valid safetensors file, and any safetensors reader sees the arrays (those in Fortran order as their
    transposes). The format is written here and not by that library because its writer does not wait for the disk,
    makes files that only their owner can read, and reports a full disk as an untyped error.
    """
    entries = sorted((_describe(name, array) for name, array in arrays.items()), key=storage_order)
    head = pack(header, entries)
    write_file(path, itertools.chain([head], (_stored(arrays[entry.name])[0].data for entry in entries)))


def read_model(
    path: PathArg, *, verify: bool = False, max_bytes: int | None = None
) -> tuple[dict[str, JSON], dict[str, AnyArray]]:
    """Read a model file; nothing in it is ever run.

    Parameters
    ----------
    path : path
    verify : bool
        Compare all data with their checksums, which reads the whole file. By default only the header and arrays of up
        to 1 MiB are compared, and large arrays are read when they are used.
    max_bytes : int, optional
        Memory that what is made of the file may take, beside the mapped file itself: by default 256 MiB and 64 times
        the size of the file.

    Returns
    -------
    header : dict
    arrays : dict of str to array
        Read-only, backed by the file. They stay valid when the file is replaced or deleted, as :func:`write_model`
        does, but not when it is overwritten in place.

    Raises
    ------
    FileFormatError
        If the file is damaged, cut short, from a newer version, or no model.
    """
    header, arrays, _ = read_parts(path, verify=verify, max_bytes=max_bytes)
    return header, arrays


def read_parts(
    path: PathArg, *, verify: bool = False, max_bytes: int | None = None
) -> tuple[dict[str, JSON], dict[str, AnyArray], Budget]:
    """As :func:`read_model`, and what is left of the memory that may be used for what is made of the file."""
    if max_bytes is not None and (type(max_bytes) is not int or max_bytes < 0):
        raise OptionError(f"max_bytes must be None or a whole number of bytes, not {max_bytes!r}")
    if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):  # opening a pipe would wait
        with reading(path):
            raise Malformed("not a regular file")
    with open(path, "rb") as file, reading(path):
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > min(size - 8, MAX_HEADER):
            raise Malformed(_no_model(start, size))
        budget = Budget(size, max_bytes)
        header, entries = unpack(file.read(length), budget)
        starts = [8 + length + offset for offset in offsets(entries)]
        if starts[-1] != size:
            what = f"cut short: {starts[-1] - size} bytes are missing" if size < starts[-1] else "too long"
            raise Malformed(f"the file is {what} (it should have {starts[-1]} bytes, and has {size})")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        arrays = {e.name: e.view(mapped, begin) for e, begin in zip(entries, starts, strict=False)}
        _verify((e for e in entries if verify or _always(e)), arrays)
    return header, arrays, budget


def storable(array: npt.NDArray[Any]) -> bool:
    """Whether a file can hold an array of this type."""
    plain = array.dtype.kind in "biuf" and array.dtype.newbyteorder("<") in CODES
    return plain and not isinstance(array, np.ma.MaskedArray)


def _describe(name: str, array: npt.NDArray[Any]) -> Entry:
    if not isinstance(name, str) or not name.isprintable() or name == "__metadata__":
        raise NHSVMError(f"an array in a model file cannot be called {name!r}")
    if not isinstance(array, np.ndarray) or not storable(array):
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise NHSVMError(
            f"array {name!r} is of type {kind}; a model file can hold arrays of bool, int8 to int64, uint8 to uint64 "
            "and float16 to float64"
        )
    stored, order = _stored(array)
    return Entry(name, CODES[stored.dtype], array.shape, order, zlib.crc32(stored.data))


def _stored(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], str]:
    """The same numbers as a contiguous little-endian array, and its order; copied only if they must be."""
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return array.T, "F"
    return np.require(array, requirements="C"), "C"


def _always(entry: Entry) -> bool:
    return entry.nbytes <= _ALWAYS_VERIFIED or entry.code == "BOOL" or entry.name.startswith(TEXT)


def _verify(entries: Iterable[Entry], arrays: Mapping[str, AnyArray]) -> None:
    for entry in entries:
        stored = arrays[entry.name] if entry.order == "C" else arrays[entry.name].T
        if zlib.crc32(stored.data) != entry.crc32:
            raise Malformed(
                f"the array {entry.name!r} is damaged: its checksum does not fit; get the file again from where it came"
            )
        if entry.code == "BOOL" and stored.size and stored.view(np.uint8).max() > 1:  # numpy takes it on trust
            raise Malformed(f"the array {entry.name!r} of bools has other values than 0 and 1")


def _no_model(start: bytes, size: int) -> str:
    """Why a file cannot be one of ours, from its first bytes."""
    kind = _FOREIGN.get(start[:2])
    if kind:
        return f"not an nhsvm model; it begins like {kind}"
    if size < 8:
        return f"not an nhsvm model, or cut short: it has {size} bytes"
    length = int.from_bytes(start, "little")
    return f"not an nhsvm model, or cut short: it announces a header of {length} bytes, but has {size} bytes in all"
