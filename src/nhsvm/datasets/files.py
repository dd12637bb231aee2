"""Data files, plain or gzipped, whole or in parts: as lines of text, or as rows that a kernel parses."""

from __future__ import annotations

import codecs
import gzip
import io
import math
import os
import re
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from nhsvm.datasets.dataset import AnyPath, Dataset, FeatureNames, Skipped, checked_dtype, checked_like
from nhsvm.errors import CycleError, FileFormatError, HierarchyError, OptionError
from nhsvm.typing import Array, ByteArray, DType, Options

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK = 1 << 22  # bytes read at a time
LONGEST = 1 << 28  # bytes of a line: what is longer is no text file, and must not fill the memory
_SHOWN = 10
_GZIP = b"\x1f\x8b"
STDIN = Path("-")


class ReadLog:
    """How reading a file goes: a bad sample is an error, or is counted and perhaps named; how much has been read."""

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


class Source(ABC):
    """A data file and the options of its reader, which are checked; nothing of the file is read yet.

    Attributes
    ----------
    file : Path
    log : ReadLog
    dtype : dtype
        Of the features.
    like : Dataset or None
        Whose features, hierarchy and form of labels the samples get.
    multilabel : bool or None
        Whether samples have lists of labels; None: if any has two.
    """

    def __init__(self, file: AnyPath, options: Options, unit: str = "line") -> None:
        self.file = checked_path(file)
        self.log = ReadLog(self.file, options["on_error"], unit)
        self.dtype: DType = checked_dtype(options["dtype"])
        self.like = checked_like(options["like"])
        self.multilabel: bool | None = options["multilabel"]
        if self.multilabel is None and self.like is not None and self.like.y is not None:
            self.multilabel = self.like.is_multilabel

    @abstractmethod
    def read(self) -> Dataset:
        """All samples."""

    @abstractmethod
    def parts(self, size: int) -> Iterator[Dataset]:
        """The same, at most so many samples, or some megabytes of text, at a time."""

    def why_no_parts(self) -> str:
        """Why the file cannot be read in parts; "" if it can."""
        return ""

    def why_no_blocks(self, changed: bool) -> str:
        """Why samples cannot become blocks, perhaps as something else (``changed``); "" if they can."""
        return ""

    def columns(self, names: FeatureNames | int) -> tuple[FeatureNames | int, Callable[[Array], object] | None]:
        """When all parts have been read: names of the columns, or their number, and what changes those of the parts.

        ``names`` are those of the last part. The change, if there is one, is made in place.
        """
        return names, None

    def expected_rows(self) -> int | None:
        """About how many samples there are, by the size and the lengths of the first lines; None if nothing tells."""
        if self.file == STDIN or not self.file.is_file():
            return None
        try:
            with self.file.open("rb") as stream:
                start = stream.read(BLOCK)
        except OSError:  # whoever reads it says what is wrong with it
            return None
        lines = 0 if start.startswith(_GZIP) else start.count(b"\n")
        return lines * self.file.stat().st_size // len(start) if lines else None


class RowReader(ABC):
    """Rows that a kernel parses, in blocks of whole lines."""

    def __init__(self, log: ReadLog, dtype: DType) -> None:
        self.log, self.dtype = log, dtype

    def read(self, raw: bytes, line: int) -> int:
        """Take in a block whose first line has this number; the number of the line after it."""
        text, i = np.frombuffer(raw, dtype=np.uint8), 0
        while i < len(text):
            i, line, problem = self.parse(raw, text, i, line)
            if problem:
                self.log.report(line, problem)
                i, line = raw.index(b"\n", i) + 1, line + 1
        return line

    @abstractmethod
    def parse(self, raw: bytes, text: ByteArray, i: int, line: int) -> tuple[int, int, str]:
        """Rows from ``i`` on, up to the end or the first that is wrong: where that is, its line, and what is wrong."""

    def too_large(self, values: Array) -> list[int]:
        """Positions of the values that are too large for single precision, if that is asked for."""
        if self.dtype != np.float32:
            return []
        found: list[int] = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max).tolist()
        return found


@contextmanager
def opened(path: Path, log: ReadLog | None = None) -> Iterator[IO[bytes]]:
    """A file to read bytes from, unpacked if its first bytes say gzip, whatever it is called; - is standard input."""
    raw: IO[bytes]
    try:
        with path.open("rb") if path != STDIN else nullcontext(sys.stdin.buffer) as raw:
            if log is not None and path.is_file():
                log.watch(raw)
            start = raw.read(2)
            if raw.seekable():
                raw.seek(-len(start), io.SEEK_CUR)
            else:
                raw = io.BufferedReader(_Again(start, raw), BLOCK)
            if start == _GZIP:
                with io.BufferedReader(gzip.GzipFile(fileobj=raw), BLOCK) as stream:
                    yield stream
            else:
                yield raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileFormatError(path, None, f"not a whole gzip file: {error}") from error
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror or error}") from error


class _Again(io.RawIOBase):
    """A stream whose first bytes were read already, as of a pipe, where one cannot go back."""

    def __init__(self, start: bytes, stream: IO[bytes]) -> None:
        self._start, self._stream = start, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        n = len(memoryview(buffer))
        data = self._start or self._stream.read(n)
        found, self._start = data[:n], data[n:]
        memoryview(buffer)[: len(found)] = found
        return len(found)


@contextmanager
def blaming(file: Path, line: int | None = None) -> Iterator[None]:
    """Name the file, and the line, in an error about the hierarchy that it describes."""
    try:
        yield
    except CycleError as error:
        raise CycleError(error.cycle, str(file)) from None
    except HierarchyError as error:
        raise FileFormatError(file, line, error.problem) from None


def checked_path(file: AnyPath) -> Path:
    """The path of a file; nothing is opened."""
    if not isinstance(file, (str, PathLike)):
        raise OptionError(f"expected the path of a file, not {file!r}")
    return Path(file)


def blocks(file: Path, log: ReadLog | None = None) -> Generator[bytes]:
    """The bytes of a file, some whole lines at a time; the last line gets an end if it has none."""
    with opened(file, log) as stream:
        rest, line = b"", 1
        for data in iter(lambda: stream.read(BLOCK), b""):
            whole = rest + data
            end = whole.rfind(b"\n") + 1
            rest = whole[end:]
            if len(rest) > LONGEST:
                raise _endless(file, line + whole.count(b"\n"))
            if end:
                yield whole[:end]
                line += whole.count(b"\n", 0, end)
        if rest:
            yield rest + b"\n"


def lines(file: Path, encoding: str, log: ReadLog) -> Generator[tuple[int, str]]:
    """The lines of a text file and their numbers; a line that does not decode is a bad sample."""
    encoding, number = checked_encoding(encoding), 0
    with opened(file, log) as stream:
        while line := stream.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                raise _endless(file, number)
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError as error:
                hint = "; say encoding=... if it is another" if encoding.lower().startswith("utf") else ""
                log.report(number, f"not {encoding} text: {error.reason} at byte {error.start} of the line", hint)
                continue
            yield number, text.removeprefix("\ufeff") if number == 1 else text


def _endless(file: Path, line: int) -> FileFormatError:
    return FileFormatError(file, line, f"longer than {LONGEST:,} bytes: this does not look like text")


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


def shown(token: object, limit: int = 60) -> str:
    """A piece of a file as it is named in a message."""
    text = token[: limit + 1].decode("utf-8", "backslashreplace") if isinstance(token, bytes) else str(token)
    return repr(text if len(text) <= limit else text[:limit] + "…")


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
