"""Results on disk: what is done is not done again."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


class Records:
    """A JSON file of sets and their cells, read and replaced whenever a cell is done: two runs may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sets = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def describe(self, set_name: str, **facts: Any) -> None:
        """Say what a set is, and what machine it is measured on."""
        self._change(set_name, facts, {})

    def cell(self, set_name: str, name: str) -> Cell:
        return dict(self.sets[set_name]["cells"].get(name, {}))

    def store(self, set_name: str, name: str, cell: Cell) -> None:
        self._change(set_name, {}, {name: cell})

    def _change(self, set_name: str, facts: dict[str, Any], cells: dict[str, Cell]) -> None:
        self.sets = self._read()
        found = self.sets.setdefault(set_name, {"cells": {}})
        found.update(facts)
        found["cells"].update(cells)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(f".{os.getpid()}.new")
        fresh.write_text(json.dumps(self.sets, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        fresh.replace(self.path)


def machine(threads: int) -> dict[str, str]:
    """What times depend on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "threads": str(threads),
        "scikit-learn": version("scikit-learn"),
    }
