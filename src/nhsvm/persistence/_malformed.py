"""How decoders, which do not know the file, report to the reader, which does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any, TypeVar

from nhsvm.errors import FileFormatError, UntrustedPatternError

JSON = Any  # None, bool, int, float, str, list of JSON, dict of str to JSON
MAX_DEPTH = 64  # of containers in a label or value; far below the recursion limit, however it is encoded

T = TypeVar("T")


class Malformed(Exception):  # noqa: N818 - a message to the reader, which raises FileFormatError
    """What is wrong with a part of a file."""


class Untrusted(Malformed):
    """A regular expression that the user has not said to trust."""


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    """Name the file in whatever is found wrong with it."""
    try:
        yield
    except Untrusted as error:
        raise UntrustedPatternError(fspath(path), None, str(error)) from None
    except Malformed as error:
        raise FileFormatError(fspath(path), None, str(error)) from error.__cause__


def expect(value: JSON, kind: type[T], what: str) -> T:
    """``value`` itself, if it is exactly of that type (a bool is no int here)."""
    if type(value) is not kind:
        raise Malformed(f"{what} should be of type {kind.__name__}, but is {shorten(value)}")
    return value


def entry(mapping: dict[str, JSON], key: str, kind: type[T]) -> T:
    """An entry that has to be there, of that type."""
    if key not in mapping:
        raise Malformed(f"the entry {key!r} is missing from its header")
    return expect(mapping[key], kind, f"the entry {key!r} of its header")


def shorten(value: object) -> str:
    """A ``repr`` that fits into a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
