"""Structure-aware damage: of bytes, of lines and of what stands between separators; of arrays and of JSON."""

from __future__ import annotations

import copy
import gzip
import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

# what readers have stumbled over, here or elsewhere
NUMBERS = [
    b"0", b"-0", b"-1", b"1", b"00", b"+3", b"1.0", b"1.5", b"1e3", b"1e999", b"-1e-999", b"nan", b"inf", b"-Infinity",
    b"2147483646", b"2147483647", b"2147483648", b"-2147483649", b"4294967295", b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775809", b"2305843009213693951", b"18446744073709551616",
    b"1" * 30, b"9" * 400, b"7" * 5000, b"1_000", b"0x10", b"1e", b".", b".5", b"5.", b"\xd9\xa3",
]  # fmt: skip
WORDS = [
    b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc3", b"\xe2\x80\xa8", b"\x0b", b"\x0c", b"\x1c",
    b"\x85", b"\r", b"\r\n", b"\n", b"\n\n\n", b"\t", b" ", b"  ", b",", b";", b":", b"@", b"/", b"?", b"#", b"%", b"'",
    b'"', b'""', b"\\", b"\\'", b"{", b"}", b"[", b"]", b"[]", b"{}", b"<", b">", b"&", b"&amp;", b"&#0;", b"&x;",
    b"null", b"true", b"None", b"NaN", b"\\ud800", b"\\u0000", b"root", b"@DATA\n", b"@ATTRIBUTE", b"numeric",
    b"hierarchical", b"qid:3", b" > ", b"a" * 2000, "é".encode() * 600, b"\x1f\x8b\x08", b"]]>", b"<![CDATA[", b"<!--",
    b'<?xml version="1.0" encoding="utf-16"?>', b'encoding="utf-7"', b'<!DOCTYPE a [<!ENTITY x "y">]>',
]  # fmt: skip
_TOKEN = re.compile(rb"[^\s,:;/@<>=\"'{}\[\]]+")


class Mutator:
    """Changes made with the random numbers of one case."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self._bytes: list[Callable[[bytes], bytes]] = [
            self._replace_token, self._replace_token, self._replace_token, self._insert_word, self._insert_word,
            self._flip, self._cut, self._drop, self._copy, self._swap_lines, self._drop_line, self._copy_line,
            self._join_lines, self._repeat,
        ]  # fmt: skip

    def nasty(self) -> bytes:
        return self.rng.choice(NUMBERS if self.rng.random() < 0.5 else WORDS)

    def text(self, raw: bytes) -> bytes:
        """A file of text, with nothing or a few things wrong."""
        for _ in range(self.rng.choice((0, 1, 1, 1, 2, 3, 6))):
            raw = self.rng.choice(self._bytes)(raw)
        return raw

    def packed(self, raw: bytes) -> bytes:
        """The same as a gzip file, which may be damaged itself."""
        packed = gzip.compress(raw, 1, mtime=0)
        return self.binary(packed) if self.rng.random() < 0.5 else packed

    def binary(self, raw: bytes) -> bytes:
        """A file whose bytes have no lines."""
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            raw = self.rng.choice((self._flip, self._flip, self._overwrite, self._cut, self._drop, self._copy))(raw)
        return raw

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def _place(self, raw: bytes) -> int:
        return self.rng.randrange(len(raw) + 1)

    def _span(self, raw: bytes, most: int = 40) -> tuple[int, int]:
        start = self._place(raw)
        return start, min(len(raw), start + self.rng.randrange(1, most))

    def _replace_token(self, raw: bytes) -> bytes:
        found = list(_TOKEN.finditer(raw))
        if not found:
            return self._insert_word(raw)
        chosen = self.rng.choice(found)
        other = self.rng.choice(found)[0] if self.rng.random() < 0.3 else self.nasty()
        return raw[: chosen.start()] + other + raw[chosen.end() :]

    def _insert_word(self, raw: bytes) -> bytes:
        place = self._place(raw)
        return raw[:place] + self.nasty() + raw[place:]

    def _flip(self, raw: bytes) -> bytes:
        if not raw:
            return raw
        changed = bytearray(raw)
        changed[self.rng.randrange(len(raw))] ^= 1 << self.rng.randrange(8)
        return bytes(changed)

    def _overwrite(self, raw: bytes) -> bytes:
        start, stop = self._span(raw, 9)
        fill = self.rng.choice((b"\x00", b"\xff", b"\x7f", b"\x80"))
        return raw[:start] + fill * (stop - start) + raw[stop:]

    def _cut(self, raw: bytes) -> bytes:
        return raw[: self._place(raw)]

    def _drop(self, raw: bytes) -> bytes:
        start, stop = self._span(raw)
        return raw[:start] + raw[stop:]

    def _copy(self, raw: bytes) -> bytes:
        start, stop = self._span(raw)
        place = self._place(raw)
        return raw[:place] + raw[start:stop] + raw[place:]

    def _repeat(self, raw: bytes) -> bytes:
        """Something short many times: what is quadratic shows."""
        start, stop = self._span(raw, 12)
        times = self.rng.choice((20, 300, 3000, 20_000))
        return raw[:stop] + raw[start:stop] * times + raw[stop:]

    # -- lines ---------------------------------------------------------------------------------------------------------

    def _line(self, raw: bytes) -> tuple[list[bytes], int]:
        lines = raw.split(b"\n")
        return lines, self.rng.randrange(len(lines))

    def _swap_lines(self, raw: bytes) -> bytes:
        lines, i = self._line(raw)
        j = self.rng.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
        return b"\n".join(lines)

    def _drop_line(self, raw: bytes) -> bytes:
        lines, i = self._line(raw)
        del lines[i]
        return b"\n".join(lines)

    def _copy_line(self, raw: bytes) -> bytes:
        lines, i = self._line(raw)
        lines[i:i] = [lines[i]] * self.rng.choice((1, 1, 3, 1000))
        return b"\n".join(lines)

    def _join_lines(self, raw: bytes) -> bytes:
        lines, i = self._line(raw)
        lines[i : i + 2] = [b" ".join(lines[i : i + 2])]
        return b"\n".join(lines)

    # -- arrays and JSON -----------------------------------------------------------------------------------------------

    def array(self, array: Any) -> Any:
        """Numbers of an array changed, taken out or put in."""
        array = array.copy()
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            if not len(array) or self.rng.random() < 0.15:
                array = np.resize(array, max(0, len(array) + self.rng.choice((-2, -1, 1, 2, 50))))
                continue
            array[self.rng.randrange(len(array))] = self._item(array)
        return array

    def _item(self, array: Any) -> Any:
        if array.dtype.kind == "f":
            return self.rng.choice((np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, 5e-324, 3.4e38, -1.0))
        info, near = np.iinfo(array.dtype), int(self.rng.choice(array.tolist()))
        chosen = self.rng.choice(
            (-1, 0, 1, 2, len(array), near, near + 1, near - 1, info.max, info.min, info.max - 1, info.max // 2 + 1)
        )
        return max(info.min, min(info.max, chosen))

    def json(self, value: Any) -> Any:
        """A value of JSON with a few parts replaced by others."""
        value = copy.deepcopy(value)
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            value = self._json(value)
        return value

    def _json(self, value: Any) -> Any:
        if isinstance(value, (dict, list)) and value and self.rng.random() < 0.85:
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            key = self.rng.choice(keys)
            what = self.rng.random()
            if what < 0.1:
                del value[key]
            elif what < 0.15 and isinstance(value, dict):
                value[self.rng.choice(("", "x", "dtype", "\ud800"))] = self._leaf()
            elif what < 0.2 and isinstance(value, list):
                value.extend([value[key]] * self.rng.choice((1, 5, 2000)))
            elif what < 0.3:
                value[key] = value[self.rng.choice(keys)]
            else:
                value[key] = self._json(value[key])
            return value
        return self._leaf(value)

    def _leaf(self, near: Any = None) -> Any:
        if isinstance(near, int) and self.rng.random() < 0.5:
            return near + self.rng.choice((-1, 1, 8, -8, 2**31, 2**63))
        deep: Any = []
        for _ in range(self.rng.choice((1, 400, 900))):
            deep = [deep]
        return self.rng.choice(
            (None, True, False, 0, -1, 1, 2, 7, 2**31 - 1, 2**31, 2**62, 2**63, 2**64, 10**400, 1.5, 1e308,
             float("nan"), float("inf"), "", "x", "\ud800", "\x00", "a" * 3000, "float64", [], {}, [1], [[]],
             {"bytes": 0, "crc32": 0}, {"a": 1}, deep)
        )  # fmt: skip
