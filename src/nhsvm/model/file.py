"""The format of a model file: a JSON header and named arrays, written atomically and read through a memory map.

The header is that of a safetensors file, with one JSON document of ours in its metadata. Our document lists the arrays
(order, type, shape, checksum), and the safetensors header must say exactly what follows from that list. So one
checksum, over the document, covers all of the header.
"""

from __future__ import annotations

import itertools
import json
import mmap
import os
import stat
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from nhsvm._atomic import PathArg, write_file
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.model.checks import Arrays, Budget, Malformed, entry, expect, reading, shorten
from nhsvm.typing import JSON, Array, DType

_ALWAYS_VERIFIED = 2**20  # bytes: an array up to this size is checked on every load, which takes a millisecond
TEXT = "text/"  # arrays whose names begin so are decoded on every load, so they are checked whatever their size
_FOREIGN = {b"PK": "a zip archive (an .npz file?)", b"\x1f\x8b": "a gzip file"}
_FOREIGN |= {bytes([0x80, protocol]): "a pickle" for protocol in (2, 3, 4, 5)}
FORMAT = 3  # the newest that is read
MAX_HEADER = 100_000_000  # bytes; the safetensors library reads no longer one
_MAX_BYTES = 2**62  # of one array, so that no size overflows

_KINDS = {"F": ("f", (8, 4, 2)), "I": ("i", (8, 4, 2, 1)), "U": ("u", (8, 4, 2, 1))}
DTYPES: dict[str, DType] = {"BOOL": np.dtype("?")} | {
    f"{letter}{8 * size}": np.dtype(f"<{kind}{size}") for letter, (kind, sizes) in _KINDS.items() for size in sizes
}
"""What the header of a safetensors file calls the types of numbers."""
CODES = {dtype: code for code, dtype in DTYPES.items()}


def write_model(path: PathArg, header: Mapping[str, JSON], arrays: Arrays) -> None:
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
    entries = sorted((_described(name, array) for name, array in arrays.items()), key=storage_order)
    head = pack(header, entries)
    write_file(path, itertools.chain([head], (_stored(arrays[entry.name])[0].data for entry in entries)))


def read_model(
    path: PathArg, *, verify: bool = False, max_bytes: int | None = None
) -> tuple[dict[str, JSON], dict[str, Array]]:
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
) -> tuple[dict[str, JSON], dict[str, Array], Budget]:
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
        _verify((e for e in entries if verify or e.always_verified), arrays)
    return header, arrays, budget


def storable(array: object) -> bool:
    """Whether a file can hold an array of this type."""
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        return False
    return array.dtype.kind in "biuf" and array.dtype.newbyteorder("<") in CODES


def _described(name: str, array: Array) -> Entry:
    if not isinstance(name, str) or not name.isprintable() or name == "__metadata__":
        raise NHSVMError(f"an array in a model file cannot be called {name!r}")
    if not storable(array):
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise NHSVMError(
            f"array {name!r} is of type {kind}; a model file can hold arrays of bool, int8 to int64, uint8 to uint64 "
            "and float16 to float64"
        )
    stored, order = _stored(array)
    return Entry(name, CODES[stored.dtype], array.shape, order, zlib.crc32(stored.data))


def _stored(array: Array) -> tuple[Array, str]:
    """The same numbers as a contiguous little-endian array, and its order; copied only if they must be."""
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return array.T, "F"
    return np.require(array, requirements="C"), "C"


def _verify(entries: Iterable[Entry], arrays: Arrays) -> None:
    for one in entries:
        stored = arrays[one.name] if one.order == "C" else arrays[one.name].T
        if zlib.crc32(stored.data) != one.crc32:
            raise Malformed(
                f"the array {one.name!r} is damaged: its checksum does not fit; get the file again from where it came"
            )
        if one.code == "BOOL" and stored.size and stored.view(np.uint8).max() > 1:  # numpy takes it on trust
            raise Malformed(f"the array {one.name!r} of bools has other values than 0 and 1")


def _no_model(start: bytes, size: int) -> str:
    """Why a file cannot be one of ours, from its first bytes."""
    kind = _FOREIGN.get(start[:2])
    if kind:
        return f"not an nhsvm model; it begins like {kind}"
    if size < 8:
        return f"not an nhsvm model, or cut short: it has {size} bytes"
    length = int.from_bytes(start, "little")
    return f"not an nhsvm model, or cut short: it announces a header of {length} bytes, but has {size} bytes in all"


# -- the header -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One array: its name, safetensors type, shape, order of storage ("C" or "F") and the CRC-32 of its bytes."""

    name: str
    code: str
    shape: tuple[int, ...]
    order: str
    crc32: int

    @property
    def dtype(self) -> DType:
        return DTYPES[self.code]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def always_verified(self) -> bool:
        return self.nbytes <= _ALWAYS_VERIFIED or self.code == "BOOL" or self.name.startswith(TEXT)

    @property
    def stored_shape(self) -> list[int]:
        """Safetensors knows C order only: an array in Fortran order is stored as its transpose."""
        return list(self.shape if self.order == "C" else self.shape[::-1])

    def view(self, buffer: mmap.mmap, offset: int) -> Array:
        """The array inside a buffer, without copying."""
        stored: Array = np.ndarray(self.stored_shape, self.dtype, buffer, offset)
        return stored if self.order == "C" else stored.T


def pack(header: Mapping[str, JSON], entries: Sequence[Entry]) -> bytes:
    """All that stands before the data."""
    listing = [[e.name, e.code, list(e.shape), e.order, e.crc32] for e in entries]
    document = _dump({"header": dict(header), "arrays": listing})
    metadata = {"nhsvm_format": str(_format(header)), "nhsvm_crc32": _crc(document), "nhsvm": document}
    outer = json.dumps({"__metadata__": metadata, **_tensors(entries)}, ensure_ascii=False, separators=(",", ":"))
    raw = outer.encode()
    raw += b" " * (-len(raw) % 8)  # so that the data are aligned
    if len(raw) > MAX_HEADER:
        raise NHSVMError(f"the labels and settings of a model take {len(raw)} bytes; a file can hold {MAX_HEADER}")
    return len(raw).to_bytes(8, "little") + raw


def _format(header: Mapping[str, JSON]) -> int:
    """The oldest format that has what the header needs: packed weights came with 3, pipelines with 2."""
    state = header.get("state")
    if isinstance(state, dict) and "precision" in state:
        return 3
    return 2 if "steps" in header else 1


def unpack(raw: bytes, budget: Budget) -> tuple[dict[str, JSON], list[Entry]]:
    """What :func:`pack` was given, from its result without the first 8 bytes; every claim in it is checked."""
    budget.take(8 * len(raw), "its header")  # as text, with the document, which is a text of its own
    outer = expect(_load(raw, "its header", budget), dict, "its header")
    metadata = outer.pop("__metadata__", None)
    if not isinstance(metadata, dict) or "nhsvm_format" not in metadata:
        raise Malformed("not an nhsvm model, but another safetensors file")
    version = entry(metadata, "nhsvm_format", str)
    if not (version.isascii() and version.isdecimal() and len(version) < 10) or int(version) < 1:
        raise Malformed(f"its format version is damaged: {shorten(version)}")
    if int(version) > FORMAT:
        raise Malformed(
            f"written by a newer version of nhsvm (format {version}); this one reads up to {FORMAT}: update nhsvm"
        )
    text = entry(metadata, "nhsvm", str)
    if entry(metadata, "nhsvm_crc32", str) != _crc(text):
        raise Malformed("its header is damaged: the checksum does not fit; get the file again from where it came")
    document = expect(_load(text, "its JSON document", budget), dict, "its JSON document")
    header = entry(document, "header", dict)
    if int(version) != _format(header):  # no checksum covers it
        raise Malformed(f"its format version is damaged: it says {version}, but holds what is of {_format(header)}")
    entries = [_entry(item) for item in entry(document, "arrays", list)]
    for found in entries:
        if found.nbytes == 0:  # takes no bytes of the file, so the file does not bound its sides
            budget.take(prod(max(side, 1) for side in found.shape) * found.dtype.itemsize, f"the array {found.name!r}")
    if entries != sorted(entries, key=storage_order):
        raise Malformed("its list of arrays is damaged: they are not in their order, so some would not be aligned")
    if outer != _tensors(entries) or len(outer) != len(entries):
        raise Malformed("its header is damaged: the arrays in it are not those that its own list names")
    return header, entries


def storage_order(entry: Entry) -> tuple[int, str]:
    """The longest items first, which aligns every array; then by name, so that the same model gives the same bytes."""
    return -entry.dtype.itemsize, entry.name


def offsets(entries: Sequence[Entry]) -> list[int]:
    """Where each array begins, counted from the first; behind them, where the last one ends."""
    return list(itertools.accumulate((e.nbytes for e in entries), initial=0))


def _tensors(entries: Sequence[Entry]) -> dict[str, JSON]:
    """What a safetensors header says about the arrays."""
    ends = offsets(entries)
    return {
        e.name: {"dtype": e.code, "shape": e.stored_shape, "data_offsets": [begin, begin + e.nbytes]}
        for e, begin in zip(entries, ends, strict=False)
    }


def _entry(item: JSON) -> Entry:
    wrong = Malformed(f"its list of arrays is damaged: {shorten(item)}")
    if not isinstance(item, list) or [type(part) for part in item] != [str, str, list, str, int]:
        raise wrong
    name, code, shape, order, crc32 = item
    # numpy of before 2.0 knows at most 32 dimensions
    fine = code in DTYPES and order in ("C", "F") and len(shape) <= 32
    if not fine or any(type(size) is not int or size < 0 for size in shape):
        raise wrong
    if prod(max(size, 1) for size in shape) > _MAX_BYTES // 8:  # zeros aside, for numpy multiplies the rest
        raise wrong
    return Entry(name, code, tuple(shape), order, crc32)


def _dump(document: dict[str, JSON]) -> str:
    """As JSON, or an error if that would change anything."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, as file names may have: escape all that is not ASCII
            text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        if json.loads(text) != document:  # tuples, keys that are numbers, pairs of halves
            raise ValueError("it would come back changed; use only lists, objects whose keys are strings, and Unicode")
    except (TypeError, ValueError, RecursionError) as error:
        raise NHSVMError(f"the header of a model cannot be stored as JSON: {error}") from None
    return text


def _load(raw: bytes | str, what: str, budget: Budget) -> JSON:
    """Strict JSON: UTF-8, no NaN, no endless nesting."""
    try:
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        budget.take_json(text, what)
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{what} is not valid JSON ({error})") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _crc(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"
