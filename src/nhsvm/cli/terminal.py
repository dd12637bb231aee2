"""A command in its terminal: standard streams that are closed or full, signals that end it, and progress."""

from __future__ import annotations

import _thread
import errno
import io
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import nhsvm.errors
from nhsvm.cli.output import as_typed, note
from nhsvm.compilation import COMPILATIONS, COMPILING

if TYPE_CHECKING:
    from typing import Self

    from _typeshed import ReadableBuffer
    from rich.progress import Progress, TaskID

    from nhsvm.model_selection import Trial
    from nhsvm.typing import Record

# -- standard streams --------------------------------------------------------------------------------------------------

_ESCAPED = "backslashreplace"  # of text that no encoding has: half of a pair of surrogates, or é in ASCII


class OutputError(Exception):
    """Standard output, or a pipe that is written to, takes no more; no OSError, since those are of files with names."""

    is_pipe = False
    """Whether it is a pipe whose reader has gone."""

    @classmethod
    def of(cls, error: OSError) -> OutputError:
        """The same as what the system says."""
        lost = cls(f"standard output: {error.strerror or error}")
        lost.is_pipe = error.errno == errno.EPIPE
        return lost


class _Output(io.FileIO):
    """Standard output. Once it is lost, buffered text is dropped, or it would raise again at exit."""

    _is_lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        if self._is_lost:
            return memoryview(data).nbytes
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

    def write(self, data: ReadableBuffer, /) -> int:
        if not self._is_told:
            self._is_told = True
            raise OutputError("standard output is closed; -o names a file, where a command has it")
        return memoryview(data).nbytes


class _Messages(io.FileIO):
    """Standard error. What nobody can read is lost, and the work goes on, as after a terminal has been closed."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


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
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    raw = getattr(stream.buffer, "raw", stream.buffer)  # with python -u there is no buffer between
    if type(raw) is not io.FileIO:
        stream.reconfigure(errors=_ESCAPED)
        return stream
    stream.flush()
    return _text(kind(raw.fileno(), "wb", closefd=False), stream.encoding, stream.line_buffering)


def _text(raw: io.RawIOBase, encoding: str = "utf-8", line_buffering: bool = False) -> TextIO:
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, _ESCAPED, line_buffering=line_buffering)


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


# -- Ctrl-C, and other signals that ask a program to end and do as Ctrl-C does -----------------------------------------

_SOON = 0.01  # seconds until the next try
INTERRUPTED = 128 + signal.SIGINT  # exit code of commands that were asked to end, whoever asked

# what Python does with a signal if nobody has changed it
_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
if sys.platform != "win32":
    _DEFAULTS[signal.SIGHUP] = signal.SIG_DFL  # nohup ignores it, and so it stays


class Heard:
    """The first signal that has come, if any."""

    number: int | None = None

    @property
    def code(self) -> int:
        """The exit code that says so."""
        return INTERRUPTED if self.number is None else 128 + self.number

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, but not where Python would drop it: there, a moment later."""
        self.number = number if self.number is None else self.number
        inner = frame
        while inner is not None:
            module = inner.f_globals.get("__name__") or ""
            if inner.f_code.co_name == "__del__" or module.partition(".")[0] == "llvmlite":
                # takes no lock, unlike threading, which may be what was interrupted
                _thread.start_new_thread(_again, (number,))
                return
            inner = inner.f_back
        signal.default_int_handler(number, frame)


@contextmanager
def interrupts_heard() -> Iterator[Heard]:
    """Within it, SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, but not where Python would drop the exception.

    Those are ``__del__`` and functions that LLVM calls while compiled code is loaded: it prints "Exception ignored"
    there and goes on, without an object file that was to be kept perhaps. The interrupt is raised a moment later
    instead. Other handlers, and signals that are ignored, are left alone.
    """
    heard = Heard()
    with ExitStack() as restored:
        if threading.current_thread() is threading.main_thread():
            for number, default in _DEFAULTS.items():
                before = signal.getsignal(number)
                if before == default:
                    signal.signal(number, heard.hear)
                    restored.callback(signal.signal, number, before)
        yield heard


def _again(number: int) -> None:
    time.sleep(_SOON)
    _thread.interrupt_main(signal.Signals(number))


# -- progress ----------------------------------------------------------------------------------------------------------

_BETWEEN = 2.0  # seconds between two plain lines
_BESIDE = 38  # columns of a bar's description, of the shortest bar, of the times and of the blanks between them


class _Progress:
    """Something that moves on standard error if that is a terminal, unless it is to be ``quiet``; a context.

    While kernels are compiled it says so: in its bar, or else in a line, once.
    """

    bar: Progress | None = None
    _task: TaskID

    def __init__(self, what: str, total: float | None = None, *, quiet: bool = False) -> None:
        self._what, self._total, self.quiet = what, total, quiet
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty():
            self._start(self._first(), self._what, self._total)
        self._open.enter_context(COMPILATIONS.told(self._compiling))
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()
        if self.bar is not None:
            self.bar.stop()

    def _compiling(self, kernels: int, busy: bool) -> None:
        if self.bar is not None:
            description = f"{COMPILING}: {kernels} done" if busy else self._what
            self.bar.update(self._task, description=description)
        elif not self.quiet:
            COMPILATIONS.say(kernels, busy)

    def _first(self) -> Progress:
        return bar()

    def _start(self, bar: Progress, what: str, total: float | None) -> None:
        self.bar, self._task = bar, bar.add_task(what, total=total, gap="")
        bar.start()


class FitProgress(_Progress):
    """The callback of an estimator: a bar with the time left on a terminal, plain lines elsewhere.

    The logarithm of the gap has a way to go from the first one to ``tol``. Of ``folds``, further fits, there are no
    records. Without ``proves``, a fit is done where its estimate is small enough.

    Examples
    --------
    >>> progress = FitProgress(tol=0.01, max_iter=100, folds=0, quiet=True)
    >>> with progress:
    ...     for gap in (1.0, 0.1, 0.01):
    ...         progress({"iteration": 1, "gap": gap, "seconds": 1.0, "certified": True})
    ...         print(round(progress.share, 1))
    0.0
    0.5
    1.0
    """

    def __init__(self, tol: float, max_iter: int, folds: int = 0, *, proves: bool = True, quiet: bool = False) -> None:
        super().__init__("training", 1.0, quiet=quiet)
        self._tol, self._max_iter, self._folds, self._proves = tol, max_iter, folds, proves
        self._first_gap: float | None = None
        self._last = -math.inf
        self.share = 0.0

    def __call__(self, record: Record) -> None:
        """Take in the record of a pass; those of fits that only choose options say what these try."""
        if "trying" in record:
            if self.bar is not None:
                text = f"C={record['trying']['C']:.3g}, pass {record['iteration']}"
                self.bar.update(self._task, gap=text, description="trying")
            return
        gap, done = float(record["gap"]), False
        if math.isfinite(gap):
            gap = min(max(gap, self._tol), 1.0)
            self._first_gap = gap if self._first_gap is None else self._first_gap
            whole = math.log(self._first_gap / self._tol) if self._first_gap > self._tol else 0.0
            self.share = max(self.share, math.log(self._first_gap / gap) / whole if whole else 1.0)
            done = gap <= self._tol and bool(record["certified"] or not self._proves)
        self.share = max(self.share, record["iteration"] / self._max_iter)
        about = "" if record["certified"] else "about "  # an estimate
        if self.bar is not None:
            self._what = f"{self._folds} more fits on folds" if done and self._folds else "training"
            text = f"pass {record['iteration']}, gap {about}{record['gap']:.1e}"
            self.bar.update(self._task, completed=self.share, gap=text, description=self._what)
        elif not self.quiet and (done or record["seconds"] - self._last >= _BETWEEN):
            self._last = record["seconds"]
            note(f"pass {record['iteration']}, {record['seconds']:.1f} s, gap {about}{record['gap']:.2e}")


class SearchProgress(_Progress):
    """The ``progress`` of a search: a bar on a terminal, a line a fit elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__("trying", quiet=quiet)

    def __call__(self, trial: Trial, made: int, planned: int) -> None:
        text = f"{made}/{planned}  {trial.line(next(iter(trial.scores)))}"
        if self.bar is not None:
            shown = fitting(text, self.bar.console.width)
            self.bar.update(self._task, completed=made, total=planned, gap=shown)
        elif not self.quiet:
            note(text)


class Busy(_Progress):
    """What is being done and for how long, on a terminal; a bar with the time left once it is told how much is done."""

    _has_share = False

    def _first(self) -> Progress:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
        return Progress(*columns, console=Console(stderr=True), transient=True)

    def __call__(self, what: str, share: float | None = None) -> None:
        """Say something else from now on, and how much has been done."""
        if self.bar is None:
            return
        if share is None:
            self._what = what
            self.bar.update(self._task, description=what)
            return
        if not self._has_share:
            self._has_share, self._what = True, ""
            self.bar.stop()
            self._start(bar(), "", 1.0)
        self.bar.update(self._task, completed=share, gap=fitting(what, self.bar.console.width))


def fitting(text: str, width: int) -> str:
    """As much of a text as a terminal has room for beside a bar.

    Examples
    --------
    >>> fitting("3/6  weights=maxmin  C=10", 60)
    '3/6  weights=maxmin  …'
    """
    room = max(1, width - _BESIDE)
    return text if len(text) <= room else text[: room - 1] + "…"


def bar() -> Progress:
    """A bar with a text, the time gone and the time left; a narrow terminal has a shorter bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column

    columns = [
        TextColumn("{task.description}"),
        BarColumn(table_column=Column(min_width=8)),
        TextColumn("{task.fields[gap]}", markup=False),
        TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True)),
        TextColumn("left", table_column=Column(min_width=4, no_wrap=True)),
        TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
    ]
    return Progress(*columns, console=Console(stderr=True), transient=True)
