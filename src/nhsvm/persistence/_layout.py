"""The header of a model file: that of a safetensors file, with one JSON document of ours in its metadata.

Our document lists the arrays (order, type, shape, checksum), and the safetensors header must say exactly what follows
from that list. So one checksum, over the document, covers all of the header.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from mmap import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import NHSVMError
from nhsvm.persistence._malformed import JSON, Malformed, entry, expect, shorten
from nhsvm.persistence.checks import Budget

FORMAT = 3  # the newest that is read
MAX_HEADER = 100_000_000  # bytes; the safetensors library reads no longer one
_MAX_BYTES = 2**62  # of one array, so that no size overflows

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"),
    "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
CODES = {dtype: code for code, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Entry:
    """One array: its name, safetensors type, shape, order of storage ("C" or "F") and the CRC-32 of its bytes."""

    name: str
    code: str
    shape: tuple[int, ...]
    order: str
    crc32: int

    @property
    def dtype(self) -> np.dtype[Any]:
        return DTYPES[self.code]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def stored_shape(self) -> list[int]:
        """Safetensors knows C order only: an array in Fortran order is stored as its transpose."""
        return list(self.shape if self.order == "C" else self.shape[::-1])

    def view(self, buffer: mmap, offset: int) -> npt.NDArray[Any]:
        """The array inside a buffer, without copying."""
        stored: npt.NDArray[Any] = np.ndarray(self.stored_shape, self.dtype, buffer, offset)
        return stored if self.order == "C" else stored.T


def pack(header: Mapping[str, JSON], entries: Sequence[Entry]) -> bytes:
    """All that stands before the data."""
    listing = [[e.name, e.code, list(e.shape), e.order, e.crc32] for e in entries]
    document = _dump({"header": dict(header), "arrays": listing})
    metadata = {
        "nhsvm_format": str(_format(header)),
        "nhsvm_crc32": _crc(document),
        "nhsvm": document,
    }
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
    _check_format(version)
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
    return list(accumulate((e.nbytes for e in entries), initial=0))


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
    if code not in DTYPES or order not in ("C", "F") or len(shape) > 32:
        raise wrong
    if any(type(size) is not int or size < 0 for size in shape):
        raise wrong
    if prod(max(size, 1) for size in shape) > _MAX_BYTES // 8:  # zeros aside, for numpy multiplies the rest
        raise wrong
    return Entry(name, code, tuple(shape), order, crc32)


def _check_format(text: str) -> None:
    if not (text.isascii() and text.isdecimal() and len(text) < 10) or int(text) < 1:
        raise Malformed(f"its format version is damaged: {shorten(text)}")
    if int(text) > FORMAT:
        raise Malformed(
            f"written by a newer version of nhsvm (format {text}); this one reads up to {FORMAT}: update nhsvm"
        )


def _dump(document: dict[str, JSON]) -> str:
    """As JSON, or an error if that would change anything."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        if not _is_unicode(text):  # half of a surrogate pair, as file names may have: escape all that is not ASCII
            text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        if json.loads(text) != document:  # tuples, keys that are numbers, pairs of halves
            raise ValueError("it would come back changed; use only lists, objects whose keys are strings, and Unicode")
    except (TypeError, ValueError, RecursionError) as error:
        raise NHSVMError(f"the header of a model cannot be stored as JSON: {error}") from None
    return text


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
