"""Ctrl-C that does not get lost."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SOON = 0.01  # seconds until the next try


@contextmanager
def interrupts_heard() -> Iterator[None]:
    """Within it, SIGINT raises KeyboardInterrupt as ever, but not where Python would drop the exception.

    Those are ``__del__`` and functions that LLVM calls while compiled code is loaded: it prints "Exception ignored"
    there and goes on, without an object file that was to be kept perhaps. The interrupt is raised a moment later
    instead. Other handlers, and SIGINT that is ignored, are left alone.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _raise_where_heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _raise_where_heard(number: int, frame: FrameType | None) -> None:
    inner = frame
    while inner is not None:
        module = inner.f_globals.get("__name__") or ""
        if inner.f_code.co_name == "__del__" or module.partition(".")[0] == "llvmlite":
            _thread.start_new_thread(_again, ())  # takes no lock, unlike threading, which may be what was interrupted
            return
        inner = inner.f_back
    signal.default_int_handler(number, frame)


def _again() -> None:
    time.sleep(_SOON)
    _thread.interrupt_main()
