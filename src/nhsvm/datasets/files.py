"""Files as blocks of whole lines or as lines of text; plain or gzipped, with every slip named."""

from __future__ import annotations

import codecs
import gzip
import io
import math
import os
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any

from nhsvm.datasets.base import Skipped
from nhsvm.errors import FileFormatError, OptionError

BLOCK = 1 << 22  # bytes read at a time
LONGEST = 1 << 28  # bytes of a line: what is longer is no text file, and must not fill the memory
_SHOWN = 10
_GZIP = b"\x1f\x8b"
STDIN = Path("-")
AnyPath = str | PathLike[str]


class Trouble:
    """What to do about a bad sample: raise, or count it and say of the first few what was wrong."""

    def __init__(self, file: Path, on_error: str, unit: str = "line") -> None:
        if on_error not in ("raise", "skip"):
            raise OptionError(f"on_error must be 'raise' or 'skip', not {on_error!r}")
        self.file, self.skipping, self._unit = file, on_error == "skip", unit
        self._count, self._first = 0, list[tuple[int, str]]()
        self._share: Callable[[], float] | None = None

    def report(self, line: int, reason: str, hint: str = "") -> None:
        """Raise, or note that the sample in this line is left out; a hint is for those who can mend the file."""
        if not self.skipping:
            if self._unit != "line":
                raise FileFormatError(self.file, None, f"{self._unit} {line}: {reason}{hint}")
            raise FileFormatError(self.file, line, reason + hint)
        self._count += 1
        if len(self._first) < _SHOWN:
            self._first.append((line, reason))

    def watch(self, raw: IO[bytes]) -> None:
        """Say from now on how much of a file has been read, as long as it is open."""
        size = os.fstat(raw.fileno()).st_size
        self._share = lambda: 1.0 if raw.closed or not size else raw.tell() / size

    def tell(self, share: float) -> None:
        """Say how much has been read, for what is not read as a stream of bytes."""
        self._share = lambda: share

    @property
    def share(self) -> float | None:
        """How much of the file has been read; None if nobody knows, as of a pipe."""
        return None if self._share is None else self._share()

    def skipped(self, n_samples: int) -> Skipped:
        """What was left out, once all has been read; an error if nothing is left."""
        skipped = Skipped(self._count, tuple(self._first))
        if not n_samples:
            why = f": {skipped}" if self._count else ": the file is empty"
            raise FileFormatError(self.file, None, f"no samples{why}")
        return skipped


@contextmanager
def opened(path: Path, trouble: Trouble | None = None) -> Iterator[IO[bytes]]:
    """A file to read bytes from, unpacked if its first bytes say gzip, whatever it is called; - is standard input."""
    try:
        with _raw(path) as raw:
            if trouble is not None and path.is_file():
                trouble.watch(raw)
            start = raw.read(2)
            packed = start == _GZIP
            if raw.seekable():
                raw.seek(-len(start), io.SEEK_CUR)
            else:
                raw = io.BufferedReader(_Again(start, raw), BLOCK)
            if packed:
                with io.BufferedReader(gzip.GzipFile(fileobj=raw), BLOCK) as stream:
                    yield stream
            else:
                yield raw
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile):
            raise FileFormatError(path, None, f"not a whole gzip file: {error}") from error
        raise FileFormatError(path, None, f"cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise FileFormatError(path, None, f"not a whole gzip file: {error}") from error


@contextmanager
def _raw(path: Path) -> Iterator[Any]:
    if path != STDIN:
        with path.open("rb") as stream:
            yield stream
        return
    yield sys.stdin.buffer


class _Again(io.RawIOBase):
    """A stream whose first bytes were read already, as of a pipe, where one cannot go back."""

    def __init__(self, start: bytes, stream: IO[bytes]) -> None:
        self._start, self._stream = start, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._start or self._stream.read(len(buffer))
        found, self._start = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)


def checked_path(file: AnyPath) -> Path:
    """The path of a file; nothing is opened."""
    if not isinstance(file, (str, PathLike)):
        raise OptionError(f"expected the path of a file, not {file!r}")
    return Path(file)


def blocks(file: Path, size: int | None = None, trouble: Trouble | None = None) -> Generator[bytes]:
    """The bytes of a file, some whole lines at a time; the last line gets an end if it has none."""
    size = BLOCK if size is None else size
    with opened(file, trouble) as stream:
        rest, line = b"", 1
        for data in iter(lambda: stream.read(size), b""):
            whole = rest + data
            end = whole.rfind(b"\n") + 1
            rest = whole[end:]
            if len(rest) > LONGEST:
                line += whole.count(b"\n")
                raise FileFormatError(file, line, f"longer than {LONGEST:,} bytes: this does not look like text")
            if end:
                yield whole[:end]
                line += whole.count(b"\n", 0, end)
        if rest:
            yield rest + b"\n"


def lines(file: Path, encoding: str, trouble: Trouble) -> Generator[tuple[int, str]]:
    """The lines of a text file and their numbers; a line that does not decode is a bad sample."""
    encoding = checked_encoding(encoding)
    with opened(file, trouble) as stream:
        for number, line in enumerate(_split(stream, file), 1):
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError as error:
                hint = "; say encoding=... if it is another" if encoding.lower().startswith("utf") else ""
                trouble.report(number, f"not {encoding} text: {error.reason} at byte {error.start} of the line", hint)
                continue
            yield number, text.removeprefix("\ufeff") if number == 1 else text


def _split(stream: IO[bytes], file: Path) -> Iterator[bytes]:
    number = 0
    while line := stream.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise FileFormatError(file, number, f"longer than {LONGEST:,} bytes: this does not look like text")
        yield line


def checked_encoding(encoding: str) -> str:
    """An encoding in which an end of line is the one byte that lines are told apart by."""
    try:
        if codecs.lookup(encoding).name == "utf-8-sig":
            return "utf-8"  # without the mark, which is left out anyway
        fits = codecs.encode("\n", encoding) == b"\n"
    except (LookupError, TypeError):
        raise OptionError(f"unknown encoding {encoding!r}") from None
    if not fits:
        raise OptionError(f"encoding {encoding!r} cannot be read a line at a time; convert the file to utf-8")
    return encoding


def shown(token: Any, limit: int = 60) -> str:
    """A piece of a file as it is named in a message."""
    text = token[: limit + 1].decode("utf-8", "backslashreplace") if isinstance(token, bytes) else str(token)
    return repr(text if len(text) <= limit else text[:limit] + "…")


# -- single numbers ----------------------------------------------------------------------------------------------------

_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # float() would also take 1_000 and nan


def finite(text: str) -> float | None:
    """A finite decimal number, or None.

    Examples
    --------
    >>> finite("1e-3"), finite("1_000"), finite("nan"), finite("1e999")
    (0.001, None, None, None)
    """
    value = float(text) if _FLOAT.fullmatch(text) else math.nan
    return value if math.isfinite(value) else None
