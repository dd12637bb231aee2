"""Kernels that are being compiled: counted, timed, and said to who waits for them.

The first fit after installation compiles for some seconds. Who sits at a terminal is told so, once a process and not
before a second has gone by; commands show it in their bars. A program whose messages go to a file or a pipe gets no
line that it has not asked for: ``verbose`` asks for it, and with ``NHSVM_QUIET`` set nobody gets one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

COMPILING = "compiling, once after installation"
QUIET = "NHSVM_QUIET"
"""Environment variable: if it is set and not empty, nobody is told."""

_WORTH_A_WORD = 1.0  # seconds of compilation

Listener = Callable[[int, bool], None]
"""Called with the number of kernels compiled so far, and whether another one is being compiled now."""


class Compilations:
    """What has been compiled and found in one process.

    Attributes
    ----------
    kernels : int
        Compiled, once for each types of their arguments.
    seconds : float
        Spent on that, or on waiting for another process that compiled.
    files : dict of Path to int
        Machine code that was kept or found, and its bytes.
    """

    def __init__(self) -> None:
        self.kernels, self.seconds = 0, 0.0
        self.files: dict[Path, int] = {}
        self._begun: dict[Hashable, float] = {}
        self._listeners: list[Listener] = []
        self._said = False

    def begin(self, kernel: Hashable) -> None:
        """A kernel is not on disk."""
        self._begun[kernel] = perf_counter()
        self._tell(True)

    def end(self, kernel: Hashable, *, compiled: bool) -> None:
        """It has been compiled, or has been found after all."""
        self.seconds += perf_counter() - self._begun.pop(kernel, perf_counter())
        self.kernels += compiled
        self._tell(False)

    def _tell(self, busy: bool) -> None:
        if self.seconds < _WORTH_A_WORD or os.environ.get(QUIET):
            return
        if self._listeners:
            self._listeners[-1](self.kernels, busy)
        elif sys.stderr is not None and sys.stderr.isatty():
            self.say(self.kernels, busy)

    def say(self, kernels: int, busy: bool) -> None:
        """A listener: a line on standard error, once."""
        if busy and not self._said:
            self._said = True
            print(f"{COMPILING} ...", file=sys.stderr, flush=True)

    @contextmanager
    def told(self, listener: Listener) -> Iterator[None]:
        """Within it, ``listener`` is told, and nobody else."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)


COMPILATIONS = Compilations()
"""Those of this process: kernels are compiled by one thread at a time, whichever fit needs them."""
