"""The header of an HMC ARFF file: attributes, and the hierarchy that the class attribute lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nhsvm.datasets import _rows
from nhsvm.datasets._files import shown
from nhsvm.errors import CycleError, FileFormatError, HierarchyError
from nhsvm.hierarchy import Hierarchy

_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(.*)", re.IGNORECASE | re.DOTALL)
_CELL = re.compile(r"\s*('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^,]*?)\s*()(?:,|$)")
_NUMBERS = ("numeric", "real", "integer")


@dataclass(frozen=True)
class Attribute:
    """A feature; ``categories`` is None for a number."""

    name: str
    categories: tuple[str, ...] | None


@dataclass(frozen=True)
class Header:
    """What stands before @DATA.

    Attributes
    ----------
    attributes : features in the order of the columns
    entries : the items of the class attribute
    line : where that stands
    n_lines : lines of the header, the one with @DATA included
    """

    attributes: tuple[Attribute, ...]
    entries: tuple[str, ...]
    line: int
    n_lines: int

    @property
    def kinds(self) -> npt.NDArray[np.int64]:
        """NUMERIC, or the number of the nominal attribute."""
        nominal = np.array([a.categories is not None for a in self.attributes], dtype=bool)
        return np.where(nominal, np.cumsum(nominal) - 1, _rows.NUMERIC).astype(np.int64)

    @cached_property
    def categories(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """The arrays ``ptr``, ``starts`` and ``categories`` of the kernel."""
        of_each = [a.categories for a in self.attributes if a.categories is not None]
        raw = [name.encode() for names in of_each for name in names]
        ptr, starts = (np.concatenate([[0], np.cumsum([len(x) for x in xs])]) for xs in (of_each, raw))
        return ptr.astype(np.int64), starts.astype(np.int64), np.frombuffer(b"".join(raw) + b"\n", dtype=np.uint8)

    @property
    def feature_names(self) -> list[str]:
        """``name``, or ``name=category`` for each category of a nominal attribute."""
        return [
            name
            for a in self.attributes
            for name in ([a.name] if a.categories is None else [f"{a.name}={c}" for c in a.categories])
        ]


def parse_header(file: Path, text: str) -> Header:
    """A header; ``text`` ends before @DATA."""
    attributes: list[Attribute] = []
    entries: tuple[str, ...] | None = None
    class_line = 0
    rows = text.split("\n")
    for number, raw in enumerate(rows, 1):
        line = raw.strip()
        if not line or line.startswith("%") or line.lower().startswith("@relation"):
            continue
        found = _ATTRIBUTE.fullmatch(line)
        if found is None:
            raise FileFormatError(file, number, f"expected @RELATION, @ATTRIBUTE name type or @DATA, not {shown(line)}")
        if entries is not None:
            raise FileFormatError(file, number, "the hierarchical class attribute must be the last one")
        name, kind = unquoted(found[1]), found[2].strip()
        if kind.lower().startswith("hierarchical"):
            entries, class_line = _entries(file, number, kind[len("hierarchical") :]), number
        else:
            attributes.append(Attribute(name, _categories(file, number, name, kind)))
    if entries is None:
        raise FileFormatError(file, None, "no class attribute: expected @ATTRIBUTE class hierarchical a,a/b,...")
    return Header(tuple(attributes), entries, class_line, len(rows))


def unquoted(cell: str) -> str:
    """A name or value without the quotes around it."""
    if len(cell) >= 2 and cell[0] == cell[-1] and cell[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", cell[1:-1])
    return cell


def _categories(file: Path, line: int, name: str, kind: str) -> tuple[str, ...] | None:
    if kind.lower() in _NUMBERS:
        return None
    if not (kind.startswith("{") and kind.endswith("}")):
        wanted = "numeric, real, integer, {a,b,...} or hierarchical"
        raise FileFormatError(file, line, f"attribute {name!r}: expected {wanted}, not {shown(kind)}")
    cells = tuple(map(unquoted, _cells(kind[1:-1])))
    if not all(cells) or len(set(cells)) < len(cells):
        raise FileFormatError(file, line, f"attribute {name!r}: expected different categories, not {shown(kind)}")
    return cells


def _cells(text: str) -> list[str]:
    """What stands between commas that are not quoted."""
    found, i = [], -1
    while i < len(text):
        cell = _CELL.match(text, i + 1)
        assert cell is not None  # it matches anything up to a comma
        found.append(cell[1])
        i = cell.end(2)
    return found


def _entries(file: Path, line: int, text: str) -> tuple[str, ...]:
    entries = tuple(entry.strip() for entry in text.split(","))
    for entry in entries:
        if not entry or not all(entry.split("/")):
            raise FileFormatError(file, line, f"expected classes such as a/b between commas, not {shown(entry)}")
    return entries


def hierarchy_of(header: Header, file: Path, classes: str) -> tuple[Hierarchy, bool]:
    """The hierarchy, and whether it was listed as parent/child pairs."""
    pairs = classes == "pairs" or (classes == "auto" and _look_like_pairs(header.entries))
    steps: dict[str, None] = {}
    edges: dict[tuple[str, str], None] = {}
    for entry in header.entries:
        parts = entry.split("/")
        if pairs and len(parts) != 2:
            raise FileFormatError(file, header.line, f"expected parent/child pairs, not {shown(entry)}")
        path = parts if pairs else ["/".join(parts[: k + 1]) for k in range(len(parts))]
        steps[path[0]] = None
        edges.update(dict.fromkeys(pairwise(path)))
    try:
        return Hierarchy.from_edges(edges, nodes=steps), pairs
    except CycleError as error:
        raise CycleError(error.cycle, str(file)) from None
    except HierarchyError as error:
        raise FileFormatError(file, header.line, error.problem) from None


def _look_like_pairs(entries: tuple[str, ...]) -> bool:
    """Two names each, from an artificial root on; paths list what is above a class as well, alone."""
    return all(entry.count("/") == 1 for entry in entries) and any(e.startswith("root/") for e in entries)
