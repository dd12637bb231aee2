"""What all workers share: reading the task, trying settings, timing the final fit. Needs numpy and scipy only.

A worker is started by ``run.py`` in its peer's own environment, once to try settings and once, in a fresh process, to
fit with the chosen one. It never sees the labels of the test samples: predictions are judged by ``run.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

THREADS = int(os.environ.get("PEER_THREADS", "2"))
C_GRID = tuple({"C": c} for c in (1.0, 0.3, 3.0, 0.1, 10.0, 0.03))  # from the default outwards


@dataclass(frozen=True)
class Part:
    """Samples: features, label numbers (None for the test part), and their texts as lines of words."""

    name: str
    X: Any
    y: Any
    lines: list[str] | None

    def rows(self, name: str, chosen: Any) -> Part:
        lines = None if self.lines is None else [self.lines[i] for i in chosen]
        return Part(name, self.X[chosen], self.y[chosen], lines)


class Task:
    """One data set as ``prepare.py`` stored it."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self.scratch = folder, scratch
        self.facts = json.loads((folder / "facts.json").read_text())
        self.classes = np.array(self.facts["classes"])

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def part(self, name: str) -> Part:
        """``"train"`` or ``"test"``, whole."""
        dense = self.folder / f"X_{name}.npy"
        X = np.load(dense) if dense.exists() else sp.load_npz(self.folder / f"X_{name}.npz").tocsr()
        y = np.load(self.folder / "y_train.npy") if name == "train" else None
        words = self.folder / f"words_{name}.txt"
        lines = words.read_text(encoding="utf-8").split("\n") if words.exists() else None
        return Part(name, X, y, lines)

    def split(self) -> tuple[Part, Part]:
        """What settings are fitted to, and what they are judged by: the same samples for every peer."""
        whole = self.part("train")
        numbers = (np.load(self.folder / f"{name}_rows.npy") for name in ("fit", "valid"))
        return tuple(whole.rows(name, rows) for name, rows in zip(("fit", "valid"), numbers, strict=True))


class Peer:
    """A way to learn: the subclass in ``worker_NAME.py`` says how."""

    packages: tuple[str, ...] = ()
    grid: tuple[dict[str, Any], ...] = C_GRID

    def __init__(self, task: Task, model: str) -> None:
        self.task, self.model = task, model

    def prepare(self, part: Part) -> Any:
        """The samples in the form that the peer takes; not timed."""
        return part

    def warm_up(self, data: Any) -> None:
        """What a process needs once, such as compiled kernels; not timed."""

    def fit(self, data: Any, setting: dict[str, Any]) -> Any:
        raise NotImplementedError

    def predict(self, model: Any, data: Any) -> Any:
        """Label numbers."""
        raise NotImplementedError

    def save(self, model: Any, folder: Path) -> None:
        raise NotImplementedError


def cpu_seconds() -> float:
    """Of all threads of this process and of the children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def resident() -> tuple[float, float]:
    """Megabytes in use now, and at the most since the last reset; of Linux, since ru_maxrss starts at the parent's."""
    text = Path("/proc/self/status").read_text()
    lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    now, most = (int(lines[key].split()[0]) * 1024 / 1e6 for key in ("VmRSS", "VmHWM"))
    return now, most


@contextmanager
def timed(record: dict[str, Any], name: str) -> Iterator[None]:
    """Seconds on the clock and of the processor, and the megabytes that were added at the most."""
    with suppress(OSError):  # not allowed here: then the peak of loading is part of the figure
        Path("/proc/self/clear_refs").write_text("5")
    before, _ = resident()
    wall, cpu = time.perf_counter(), cpu_seconds()
    yield
    record[f"{name}_wall"], record[f"{name}_cpu"] = time.perf_counter() - wall, cpu_seconds() - cpu
    _, most = resident()
    record[f"{name}_added_mb"], record[f"{name}_peak_mb"] = most - before, most


def tune(peer: Peer, budget: float, out: Path) -> None:
    """Try the settings in order until all are tried or the budget (seconds of the processor) is spent."""
    fit_part, valid_part = peer.task.split()
    fit_data, valid_data = peer.prepare(fit_part), peer.prepare(valid_part)
    peer.warm_up(fit_data)
    began = cpu_seconds()
    with out.open("w") as file:
        for setting in peer.grid:
            if cpu_seconds() - began > budget:
                break
            record: dict[str, Any] = {"setting": setting}
            try:
                with timed(record, "fit"):
                    model = peer.fit(fit_data, setting)
                found = np.asarray(peer.predict(model, valid_data))
                record["valid_accuracy"] = float((found == valid_part.y).mean())
            except RuntimeError as problem:  # fastText's way to say that the steps were too long
                record |= {"valid_accuracy": 0.0, "error": str(problem)}
            file.write(json.dumps(record) + "\n")
            file.flush()  # what is done counts, should this process be ended


def final(peer: Peer, setting: dict[str, Any], out: Path) -> None:
    """Fit to all training samples, predict the test samples, store the model, and say what it took."""
    train, test = peer.prepare(peer.task.part("train")), peer.prepare(peer.task.part("test"))
    peer.warm_up(train)
    record: dict[str, Any] = {"setting": setting, "load": os.getloadavg()[0]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with timed(record, "fit"):
            model = peer.fit(train, setting)
    record["warnings"] = sorted({found.category.__name__ for found in caught})
    with timed(record, "predict"):
        found = np.asarray(peer.predict(model, test))
    folder = peer.task.scratch / "model"
    folder.mkdir(parents=True, exist_ok=True)
    peer.save(model, folder)
    record["model_mb"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    record["versions"] = {"Python": platform.python_version()} | {name: version(name) for name in peer.packages}
    np.save(peer.task.scratch / "predicted.npy", found.astype(np.int64))
    out.write_text(json.dumps(record))


def main(kind: type[Peer]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=300.0)
    parser.add_argument("--setting", help="JSON; the final fit with it, instead of trying settings")
    parser.add_argument("--limit", type=int, default=3600, help="processor seconds after which this process is ended")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CPU, (options.limit, options.limit + 60))
    peer = kind(Task(options.task, options.scratch), options.model)
    if options.setting is None:
        tune(peer, options.budget, options.out)
    else:
        final(peer, json.loads(options.setting), options.out)
