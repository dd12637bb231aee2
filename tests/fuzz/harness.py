"""Many small cases in child processes: each with a limit of time and of memory, and with bounds checks in kernels.

A case is a number. It passes if it ends with a result or an :class:`NHSVMError` of one sentence; any other exception, a
crash, a hang, or more memory than is proportionate to its files is a failure, and its number makes it happen again.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import FrameType

TESTS = Path(__file__).resolve().parents[1]
CACHE = TESTS.parent / ".fuzz_cache"  # kernels with bounds checks: compiled once, apart from those without
SECONDS = 5.0  # of the processor, for a case
SILENCE = 120.0  # of the processor, without a word from a child: compiled code that does not come back
WARM_UP = 900.0  # the same while kernels are compiled
ASLEEP = 1200.0  # on the clock: a child that does nothing at all
LONGEST = 1000  # characters of a message
CAP = 2 << 30  # bytes of memory that a child may take beyond what it has once it is warm
FREE, FACTOR = 64 << 20, 100  # bytes of memory that a case may take, and how many for each byte of its files

Case = Callable[[int, Path], str]


class TooSlow(BaseException):
    """Not an Exception: nothing on the way is to take it for its own."""


@dataclass
class Outcomes:
    """What the cases ended with."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    @property
    def n_cases(self) -> int:
        return self.counts.total()

    def __str__(self) -> str:
        parts = [f"{count:,} {what}" for what, count in self.counts.most_common()]
        return f"{self.n_cases:,} cases: {', '.join(parts)}"


def environment() -> dict[str, str]:
    """Of a child: bounds checks, one thread, no pages of memory set aside for threads that are never used."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        **one,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_OPT": "0",  # compiling takes half as long, and kernels have little to do
        "NUMBA_CACHE_DIR": str(CACHE),
        "MALLOC_ARENA_MAX": "1",
    }


def run_all(module: str, cases: Sequence[int], processes: int = 1) -> Outcomes:
    """Run cases of ``module``, which has a function ``run_case(number, folder)`` and one ``warm_up(folder)``."""
    found = Outcomes()
    children = [_Child(module, cases[k::processes]) for k in range(processes) if len(cases[k::processes])]
    try:
        while children:
            ready, _, _ = select.select([child.stream for child in children], [], [], 10)
            for child in list(children):
                silent = child.stream not in ready
                if (not silent or child.is_stuck()) and not child.hear(found, silent):
                    children.remove(child)
                    child.close()
    finally:
        for child in children:
            child.end()
            child.close()
    return found


class _Child:
    """A process with some cases to run; a new one takes over after a crash."""

    def __init__(self, module: str, cases: Sequence[int]) -> None:
        self._module, self._left = module, list(cases)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close
        self._start()

    def _start(self) -> None:
        self.warming_up, self._heard, self._used_before = True, time.monotonic(), 0.0
        command = [sys.executable, "-m", "fuzz.harness", self._module]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment(), cwd=TESTS
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stream = self._process.stdout
        self._process.stdin.write(json.dumps(self._left).encode() + b"\n")
        self._process.stdin.close()

    def is_stuck(self) -> bool:
        """Whether it has worked for long without a word; a busy machine is no reason."""
        used = _processor_time(self._process.pid) - self._used_before
        return used > (WARM_UP if self.warming_up else SILENCE) or time.monotonic() - self._heard > ASLEEP

    def hear(self, found: Outcomes, silent: bool) -> bool:
        """Take in what the child says; whether there is more to come."""
        line = b"" if silent else self.stream.readline()
        self._heard, self._used_before = time.monotonic(), _processor_time(self._process.pid)
        if line and self.warming_up:
            self.warming_up = False
            return True
        if not line:
            self.end()
            if self.warming_up:  # no case is to blame
                raise RuntimeError(f"{self._module} cannot even begin\n{self._last_words()}")
            if self._left:
                code = "hangs in compiled code" if silent else f"crashed: exit code {self._process.returncode}"
                self._note(found, self._left.pop(0), "crash", f"{code}\n{self._last_words()}")
            if self._left:
                self._start()
            return bool(self._left)
        number, kind, text = json.loads(line)
        assert number == self._left.pop(0)
        self._note(found, number, kind, text)
        return True

    def _note(self, found: Outcomes, number: int, kind: str, text: str) -> None:
        found.counts[kind] += 1
        if kind not in ("result", "refused"):
            found.failures[number] = text

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-2000:].decode("utf-8", "backslashreplace")

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self.stream.close()

    def close(self) -> None:
        """No more of its last words are wanted."""
        self._errors.close()


def _processor_time(pid: int) -> float:
    """Seconds that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(module_name: str) -> None:
    """A child: cases come in on standard input, and outcomes go out, a line each."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that is printed on the way is an outcome
    module = import_module(module_name)
    cases = json.loads(sys.stdin.readline())
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _too_slow)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "warm").mkdir()
        module.warm_up(root / "warm")
        _limit_memory()
        out.write("ready\n")
        out.flush()
        for number in cases:
            folder = root / str(number)
            folder.mkdir()
            kind, text = outcome(module.run_case, number, folder)
            shutil.rmtree(folder)
            out.write(json.dumps([number, kind, text]) + "\n")
            out.flush()


def outcome(run: Case, number: int, folder: Path) -> tuple[str, str]:
    """("result", what it was), ("refused", the message), or (what went wrong, where)."""
    from nhsvm.errors import NHSVMError

    try:
        with _limit_of_time():
            text = run(number, folder)
    except NHSVMError as error:
        message = str(error)
        if not message.strip() or len(message) > LONGEST:
            return "bad message", f"{len(message)} characters: {message[:300]}"
        return "refused", f"{type(error).__name__}: {message}"
    except TooSlow:
        return "too slow", traceback.format_exc()[-2000:]
    except MemoryError:
        return "too much memory", traceback.format_exc()[-2000:]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what the case ended with
        return f"raised {type(error).__name__}", traceback.format_exc()[-2000:]
    return "result", text


@contextlib.contextmanager
def memory_for(n_bytes: int, free: int = FREE) -> Iterator[None]:
    """Room for what files of so many bytes may take; a call for more fails."""
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_used() + free + FACTOR * n_bytes, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))


def _limit_memory() -> None:
    """Whatever a case does, it leaves memory to others."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_used() + CAP, most))


def _used() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


@contextlib.contextmanager
def _limit_of_time() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _too_slow(_: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("numba.core"):  # compiled once, and not the case's fault
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            return
        frame = frame.f_back
    raise TooSlow


if __name__ == "__main__":
    main(sys.argv[1])
