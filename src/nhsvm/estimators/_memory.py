"""How much memory weights may take, and an estimate of what a fit will need."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from nhsvm.errors import OptionError

SHARE = 0.6  # of the free memory, for weights
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# of a container: folder, files with its limit and what it uses, and how memory.stat calls pages of files not in use
_CONTAINERS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def allowed_bytes(memory_limit: Any) -> int:
    """Bytes that weights may take: what is asked for, or a share of what is free."""
    return int(SHARE * free_memory()) if memory_limit is None else parsed(memory_limit)


def parsed(memory_limit: Any, name: str = "memory_limit") -> int:
    """Bytes, given as a number or as text such as "6 GB" or "500MiB".

    Raises
    ------
    OptionError
        If it is neither.
    """
    problem = OptionError(f'{name} must be None, a number of bytes, or text such as "6 GB", not {memory_limit!r}')
    if isinstance(memory_limit, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?I?)B?\s*", memory_limit.upper())
        if found is None or found[2] not in _UNITS:
            raise problem
        try:
            size = float(found[1]) * _UNITS[found[2]]
        except ValueError as error:
            raise problem from error
    elif isinstance(memory_limit, bool) or not hasattr(memory_limit, "__float__"):
        raise problem
    else:
        size = float(memory_limit)
    if not 0 < size < float("inf"):
        raise problem
    return int(size)


def free_memory() -> int:
    """Bytes that can be had without swapping, as far as the system tells; a container's limit counts too."""
    free = _available()
    for folder, limit, used, files in _CONTAINERS:
        most, now = _number(Path(folder, limit)), _number(Path(folder, used))
        if most is not None and now is not None and most < 2**60:
            spare = _entry(Path(folder, "memory.stat"), files)  # given up as soon as somebody needs it
            free = min(free, max(0, most - max(0, now - spare)))
    return free


def _available() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:  # not Linux
        pass
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names:  # of all there is, half may be free
        return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE")) // 2
    return 4 * 2**30  # a guess, where a system does not tell


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file, or "max": no limit
        return None


def _entry(path: Path, name: str) -> int:
    """A number in a file of names and numbers, or 0."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:  # no such file
        return 0
    found = [re.fullmatch(rf"{name} (\d+)", line) for line in lines]
    return next((int(entry[1]) for entry in found if entry), 0)
