"""MATLAB files of version 7 or before.

scipy.io.loadmat takes lengths as they come: a damaged file can end the process, or ask for any amount of memory. This
reads what data sets are made of, arrays of numbers, text, cells and structures, with every length checked.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np

from nhsvm.datasets.files import opened
from nhsvm.errors import FileFormatError
from nhsvm.typing import Array

Variable: TypeAlias = "Array | str | list[Variable] | dict[str, Variable]"
"""Numbers, text, the items of a cell array, or a structure."""

_SWAPPED = {b"IM": "<", b"MI": ">"}  # the mark at the end of the header, and the order of bytes that it stands for
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
_MATRIX, _COMPRESSED = 14, 15
_CELLS, _STRUCTURES, _CHARACTERS = 1, 2, 4
_OF_NUMBERS = range(6, 16)  # classes of arrays
_DEEPEST = 20  # structures in structures
_GROWTH, _SPARE = 50, 1 << 20  # times its size that a compressed variable may have, and bytes beyond that


class _BadFile(Exception):  # noqa: N818 - never leaves this module
    """What is wrong with a file."""


def read_variable(file: Path, name: str) -> Variable:
    """A variable of a MATLAB file.

    Returns
    -------
    array, str or list
        Numbers in one dimension, in the order of the file; the letters of a text; the items of a cell array; or a dict
        for each structure.

    Raises
    ------
    FileFormatError
        If the file is damaged, or has no such variable.
    """
    with opened(file) as stream:
        raw = stream.read()
    try:
        return _variable(raw, name)
    except KeyError:
        raise FileFormatError(file, None, f"has no variable {name!r}") from None
    except (_BadFile, zlib.error) as error:
        raise FileFormatError(file, None, f"not a MATLAB file of version 7 or before: {error}") from None


def _variable(raw: bytes, name: str) -> Variable:
    order = _SWAPPED.get(raw[126:128])
    if order is None or raw[125 if order == "<" else 124] != 1:
        raise _BadFile("it does not begin like one")
    for kind, data in _elements(memoryview(raw)[128:], order):
        if kind == _COMPRESSED:
            kind, data = next(_elements(_unpacked(data), order), (0, data))
        if kind == _MATRIX:
            reader = _Matrix(data, order)
            if reader.name == name:
                return reader.value(0)
    raise KeyError(name)


def _unpacked(data: memoryview) -> memoryview:
    limit = _GROWTH * len(data) + _SPARE
    found = zlib.decompressobj().decompress(data, limit)
    if len(found) == limit:
        raise _BadFile(f"a variable takes more than {_GROWTH} times as much as its compressed form")
    return memoryview(found)


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Types and contents of what stands one after the other."""
    whole = "little" if order == "<" else "big"
    i = 0
    while i < len(data):
        if i + 8 > len(data):
            raise _BadFile("it is cut short")
        kind, size = (int.from_bytes(data[k : k + 4], whole) for k in (i, i + 4))  # type: ignore[arg-type]
        begin = i + 8
        if kind >> 16:  # a short one: its size is beside its type, and its content where the size is otherwise
            kind, size, begin = kind & 0xFFFF, kind >> 16, i + 4
        if begin + size > len(data) or (begin == i + 4 and size > 4):
            raise _BadFile("it is cut short")
        yield kind, data[begin : begin + size]
        i = begin + size if kind == _COMPRESSED else i + 8 if begin == i + 4 else begin + size + -size % 8


class _Matrix:
    """An array of MATLAB, which is a cell array, an array of structures and a text as well."""

    def __init__(self, data: memoryview, order: str) -> None:
        self._order, self._parts = order, _elements(data, order)
        self._is_empty = not len(data)  # a field that is not set
        self._kind, self.name, self._n = 0, "", 0
        if not self._is_empty:
            flags = self._numbers()
            sides = [int(side) for side in self._numbers()]
            if len(flags) < 1 or flags.dtype.kind not in "iu" or min(sides, default=0) < 0:
                raise _BadFile("an array without a type or a shape")
            self._kind, self._n = int(flags[0]) & 0xFF, math.prod(sides)
            self.name = self._next()[1].tobytes().decode("latin-1")

    def _next(self) -> tuple[int, memoryview]:
        found = next(self._parts, None)
        if found is None:
            raise _BadFile("an array is cut short")
        return found

    def _numbers(self) -> Array:
        kind, data = self._next()
        dtype = _NUMBERS.get(kind)
        if dtype is None or len(data) % int(dtype[1]):
            raise _BadFile("something else in place of numbers")
        return np.frombuffer(data, self._order + dtype)

    def value(self, depth: int) -> Variable:
        """What is in the array; see :func:`read_variable`."""
        if depth > _DEEPEST:
            raise _BadFile("structures are nested too deeply")
        if self._is_empty:
            return np.zeros(0)
        if self._kind == _STRUCTURES:
            return self._structures(depth)
        if self._kind == _CELLS:
            return [self._item(depth) for _ in range(self._n)]
        if self._kind == _CHARACTERS:
            return self._text()
        if self._kind not in _OF_NUMBERS:
            raise _BadFile(f"an array of class {self._kind}, which is not read")
        found = self._numbers()
        if len(found) != self._n:
            raise _BadFile("an array is not as long as its shape says")
        return found.astype(found.dtype.newbyteorder("="), copy=False)

    def _item(self, depth: int) -> Variable:
        kind, data = self._next()
        if kind != _MATRIX:
            raise _BadFile("something else in place of an array")
        return _Matrix(data, self._order).value(depth + 1)

    def _structures(self, depth: int) -> list[Variable]:
        length = self._numbers()
        raw = self._next()[1].tobytes()
        width = int(length[0]) if len(length) == 1 and length.dtype.kind in "iu" else 0
        if width < 1 or len(raw) % width:
            raise _BadFile("structures without names of fields")
        names = [raw[k : k + width].split(b"\0")[0].decode("latin-1") for k in range(0, len(raw), width)]
        if not names:  # nothing stands for each of them, so there may be as many as the file likes to say
            raise _BadFile("structures without fields")
        return [{name: self._item(depth) for name in names} for _ in range(self._n)]

    def _text(self) -> str:
        kind, data = self._next()
        if kind not in _TEXTS:
            raise _BadFile("something else in place of text")
        encoding = _TEXTS[kind]
        if encoding in ("utf-16", "utf-32"):
            encoding += "-le" if self._order == "<" else "-be"
        return data.tobytes().decode(encoding, "replace")
