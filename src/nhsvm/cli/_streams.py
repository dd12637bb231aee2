"""Standard output and standard error that end well where they are closed, full, or read by nobody any more."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

import nhsvm.errors
from nhsvm.cli._output import as_typed, note

_ESCAPED = "backslashreplace"  # of text that no encoding has: half of a pair of surrogates, or é in ASCII


class OutputError(Exception):
    """Standard output, or a pipe that is written to, takes no more; no OSError, since those are of files with names.

    Attributes
    ----------
    is_pipe : bool
        Whether it is a pipe whose reader has gone.
    """

    def __init__(self, problem: str, *, is_pipe: bool = False) -> None:
        super().__init__(problem)
        self.is_pipe = is_pipe

    @classmethod
    def of(cls, error: OSError) -> OutputError:
        """The same as what the system says."""
        problem = f"standard output: {error.strerror or error}"
        return cls(problem, is_pipe=error.errno == errno.EPIPE)


class _Output(io.FileIO):
    """Standard output. After it is lost, what is left in buffers vanishes, which would be told again at the exit."""

    _is_lost = False

    def write(self, data: Any, /) -> Any:
        if self._is_lost:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._is_lost = True
            raise OutputError.of(error) from error


class _NoOutput(io.RawIOBase):
    """Standard output that was closed before the start."""

    _is_told = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if not self._is_told:
            self._is_told = True
            raise OutputError("standard output is closed; -o names a file, where a command has it")
        return len(data)


class _Messages(io.FileIO):
    """Standard error. What nobody can read is lost, and the work goes on, as after a terminal has been closed."""

    def write(self, data: Any, /) -> Any:
        try:
            return super().write(data)
        except OSError:
            return len(data)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Within it, writing to standard output raises :class:`OutputError`, and to standard error nothing.

    Text is escaped where it cannot be encoded. Streams of other kinds, such as those of tests, only get that.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    if None in before:
        _fill_gaps()
    with ExitStack() as opened:
        if sys.stdin is None:
            sys.stdin = opened.enter_context(open(os.devnull, encoding="utf-8"))
        sys.stdout = _text(_NoOutput()) if sys.stdout is None else _over(sys.stdout, _Output)
        if sys.stderr is None:
            sys.stderr = opened.enter_context(open(os.devnull, "w", encoding="utf-8"))
        else:
            sys.stderr = _over(sys.stderr, _Messages)
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def _fill_gaps() -> None:
    """Open all that is closed of 0, 1 and 2, so that no file gets the number of a standard stream."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)


def _over(stream: TextIO, kind: type[io.FileIO]) -> TextIO:
    binary = getattr(stream, "buffer", None)
    raw = getattr(binary, "raw", binary)  # with python -u there is no buffer between
    if not isinstance(stream, io.TextIOWrapper) or type(raw) is not io.FileIO:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ESCAPED)
        return stream
    stream.flush()
    return _text(kind(raw.fileno(), "wb", closefd=False), stream.encoding, line_buffering=stream.line_buffering)


def _text(raw: io.RawIOBase, encoding: str = "utf-8", **options: Any) -> TextIO:
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, _ESCAPED, **options)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Within it, the library's own warnings are a line on standard error, without a place in a source file."""
    with warnings.catch_warnings():
        elsewhere = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if category.__module__ == nhsvm.errors.__name__:
                note(as_typed(str(message)))
            else:
                elsewhere(message, category, *place, **more)

        warnings.showwarning = show
        yield
