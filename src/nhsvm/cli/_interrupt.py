"""Ctrl-C that does not get lost, and other signals that ask a program to end and do as Ctrl-C does."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SOON = 0.01  # seconds until the next try
INTERRUPTED = 128 + signal.SIGINT  # exit code of commands that were asked to end, whoever asked

# what Python does with a signal if nobody has changed it
_DEFAULTS: dict[Any, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
if hasattr(signal, "SIGHUP"):
    _DEFAULTS[signal.SIGHUP] = signal.SIG_DFL  # nohup ignores it, and so it stays


class Heard:
    """The first signal that has come, if any.

    Attributes
    ----------
    number : int or None
    """

    def __init__(self) -> None:
        self.number: int | None = None

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
    replaced: dict[Any, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number, default in _DEFAULTS.items():
            if signal.getsignal(number) == default:
                replaced[number] = signal.signal(number, heard.hear)
    try:
        yield heard
    finally:
        for number, default in replaced.items():
            signal.signal(number, default)


def _again(number: int) -> None:
    time.sleep(_SOON)
    _thread.interrupt_main(signal.Signals(number))
