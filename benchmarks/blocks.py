"""Memory and time of learning from blocks beside learning from a file that is read into memory.

    python benchmarks/blocks.py --rows 100000 --entries 200

Every line is a process of its own. Memory is what a process has for itself at its peak (``RssAnon``, looked at every
five milliseconds), beyond what it has after its imports; pages of files, which the system takes back when memory is
short, are not in it. Time is processor time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from quick import parsed

FEATURES = 50_000
CLASSES = 10


def make(file: Path, rows: int, entries: int) -> None:
    """An svmlight file of counts: features come by Zipf's law, and every tenth of them more often in one class."""
    rng = np.random.default_rng(0)
    chances = 1.0 / np.arange(1, FEATURES + 1)
    sums = np.cumsum(chances / chances.sum())
    with file.open("w") as stream:
        for _ in range(rows):
            label = int(rng.integers(CLASSES))
            found = np.searchsorted(sums, rng.random(2 * entries))
            own = rng.random(len(found)) < 0.1
            found[own] = found[own] // CLASSES * CLASSES + label
            found = np.unique(rng.permutation(np.unique(found))[:entries]) + 1
            counts = rng.integers(1, 4, len(found))
            stream.write(f"{label} ")
            stream.write(" ".join(f"{f}:{c}" for f, c in zip(found.tolist(), counts.tolist(), strict=True)) + "\n")


def own_memory() -> int:
    """Bytes that this process has for itself."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon"))


class Peak:
    """The most memory while something is done."""

    def __enter__(self) -> Peak:
        self._start = self._most = own_memory()
        self._over, self._time = threading.Event(), time.process_time()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self._most = max(self._most, own_memory())

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()
        print(max(self._most, own_memory()) - self._start, time.process_time() - self._time)


def run(job: str, file: Path) -> None:
    """One job, in this process."""
    from nhsvm import FlatSVM
    from nhsvm.datasets import convert_to_blocks, open_blocks, read_svmlight

    blocks = file.with_suffix(".blocks")
    model = FlatSVM(C=1e-3, tol=0.1, n_jobs=1, random_state=0)
    small = file.with_suffix(".small.svm")
    small.write_text("1 1:1 2:1\n2 1:1 3:1\n" * 20)
    data = read_svmlight(small)
    model.fit(data.X, data.y)  # imports, and kernels that are compiled once
    with Peak():
        if job == "convert":
            convert_to_blocks(read_svmlight, file, blocks)
            return
        data = read_svmlight(file) if job == "memory" else open_blocks(blocks)
        model.fit(data.X, data.y)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--entries", type=int, default=200)
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    given = parsed(parser, rows=200, entries=20)
    if given.job:
        run(given.job[0], Path(given.job[1]))
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "made.svm"
        make(file, given.rows, given.entries)
        print(f"text {file.stat().st_size / 1e6:,.0f} MB", flush=True)
        for job in ("convert", "memory", "blocks"):
            command = [sys.executable, __file__, "--job", job, str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            memory, seconds = map(float, done.stdout.split())
            print(f"{job:8} {memory / 1e6:8,.0f} MB {seconds:6.1f} s", flush=True)
        size = sum(part.stat().st_size for part in file.with_suffix(".blocks").iterdir())
        print(f"blocks {size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
