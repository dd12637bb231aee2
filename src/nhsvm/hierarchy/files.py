"""Hierarchies in files: LSHTC, edge tables, JSON; plain or gzipped."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path

from nhsvm.errors import FileFormatError, HierarchyError, OptionError
from nhsvm.hierarchy.build import EdgeArrays, check_label, edge_arrays, parent_arrays, path_arrays
from nhsvm.hierarchy.hashes import first_crowded
from nhsvm.typing import JSON, Label, LabelsLike

Rows = list[tuple[int, Sequence[Label]]]  # line number, cells
ToLabel = Callable[[JSON], Label]

_BY_ENDING = {".txt": "lshtc", ".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".json": "json"}
_HEADERS = (["parent", "child"], ["source", "target"], ["from", "to"])
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")  # int() would also take 1_000
FORMATS = ("lshtc", "tsv", "csv", "json")


def read_arrays(path: str | PathLike[str], format: str, label_type: type | None, allow_duplicates: bool) -> EdgeArrays:
    """Labels and edge arrays of a hierarchy file; see ``Hierarchy.read``."""
    file = Path(path)
    if format not in ("auto", *FORMATS):
        raise OptionError(f"format must be one of {['auto', *FORMATS]}, not {format!r}")
    if label_type not in (None, int, str):
        raise OptionError(f"label_type must be int, str or None, not {label_type!r}")
    guessed = format == "auto"
    format = _by_ending(file) if guessed else format
    text = _text(file)
    if guessed and format == "lshtc" and "\t" in next(io.StringIO(text, newline=""), ""):
        format = "tsv"
    if format == "json":
        found = _json(file, text, label_type, allow_duplicates)
    elif format == "lshtc":
        found = _lshtc(file, _typed(file, _words(text), label_type or int), allow_duplicates)
    else:
        rows = _table(file, text, "\t" if format == "tsv" else ",")
        found = _edges(file, _typed(file, rows, label_type or str), allow_duplicates)
    if not found[0]:
        raise FileFormatError(file, None, "an empty hierarchy: the file names no node")
    return found


def _by_ending(file: Path) -> str:
    endings = [s.lower() for s in file.suffixes if s.lower() != ".gz"]
    ending = endings[-1] if endings else ""
    if ending not in _BY_ENDING:
        file.stat()  # an error of its own if there is no such file
        raise FileFormatError(
            file,
            None,
            f"cannot tell the format from the ending {ending!r}; it must be one of {', '.join(_BY_ENDING)} "
            f"(.gz after it or not), or in Python pass format=, one of {', '.join(FORMATS)}",
        )
    return _BY_ENDING[ending]


def _text(file: Path) -> str:
    try:
        with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as stream:
            return stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FileFormatError(file, line, f"not UTF-8 text: {error.reason}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileFormatError(file, None, f"not a whole gzip file: {error}") from None


def _words(text: str) -> Rows:
    return [(n, line.split()) for n, line in enumerate(io.StringIO(text, newline=""), 1) if line.strip()]


def _table(file: Path, text: str, delimiter: str) -> Rows:
    """Two columns a line; blank lines and a header are skipped, blanks around a cell too."""
    rows: Rows = []
    step, first = 1, True
    for line, raw in _records(file, text, delimiter):
        cells = [cell.strip() for cell in raw]
        if not any(cells):
            continue
        if first:
            first, lowered = False, [cell.lower() for cell in cells]
            if lowered in _HEADERS:
                continue
            if lowered[::-1] in _HEADERS:  # child, parent
                step = -1
                continue
        if len(cells) != 2 or not all(cells):
            raise FileFormatError(file, line, f"expected two cells, parent and child, not {raw!r}")
        rows.append((line, cells[::step]))
    return rows


def _records(file: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Records and the lines they start on: a quoted cell may go over several."""
    # tab-separated files carry quotes as plain characters, as a rule
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL,
        strict=True,
    )
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise FileFormatError(file, line, str(error)) from None


def _typed(file: Path, rows: Rows, label_type: type) -> Rows:
    if label_type is str:
        return rows
    typed: Rows = []
    for number, cells in rows:
        try:
            typed.append((number, [_whole(cell) for cell in cells]))
        except HierarchyError as error:
            raise FileFormatError(file, number, f"{error} (label_type=str reads names)") from None
    return typed


def _whole(label: Label) -> int:
    text = str(label)
    if not _WHOLE.fullmatch(text):
        raise HierarchyError(f"{text!r} is not a whole number")
    return int(text)


def _lshtc(file: Path, rows: Rows, allow_duplicates: bool) -> EdgeArrays:
    """Pairs if every line has two labels, else root-to-leaf paths."""
    other = next((number for number, cells in rows if len(cells) != 2), None)
    if other is None:
        return _edges(file, rows, allow_duplicates)
    try:
        return _blaming_lines(file, rows, partial(path_arrays, qualified=False, allow_duplicates=allow_duplicates))
    except FileFormatError as error:
        why = f"read as root-to-leaf paths, since line {other} does not have two labels"
        raise FileFormatError(file, error.line, f"{error.problem} ({why})") from None


def _edges(file: Path, rows: Rows, allow_duplicates: bool) -> EdgeArrays:
    return _blaming_lines(file, rows, partial(edge_arrays, nodes=(), allow_duplicates=allow_duplicates))


def _blaming_lines(file: Path, rows: Rows, build: Callable[[Iterator[Sequence[Label]]], EdgeArrays]) -> EdgeArrays:
    try:
        return build(cells for _, cells in rows)
    except HierarchyError as error:
        line = None if error.item is None else rows[error.item][0]
        raise FileFormatError(file, line, error.problem) from None


def _json(file: Path, text: str, label_type: type | None, allow_duplicates: bool) -> EdgeArrays:
    try:
        content = json.loads(text, object_pairs_hook=_distinct, parse_int=_json_whole)
        return _json_arrays(content, partial(_json_label, label_type), allow_duplicates)
    except json.JSONDecodeError as error:
        raise FileFormatError(file, error.lineno, f"not JSON: {error.msg}") from None
    except RecursionError:
        raise FileFormatError(file, None, "nested too deeply; give edges instead") from None
    except HierarchyError as error:
        raise FileFormatError(file, None, str(error)) from None


def _distinct(pairs: list[tuple[Label, JSON]]) -> dict[Label, JSON]:
    """A JSON object; Python would keep the last of two equal names and say nothing."""
    crowded = first_crowded(name for name, _ in pairs)
    if crowded:
        raise HierarchyError(crowded)
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise HierarchyError(f"{twice!r} stands twice in the same object")
    return out


def _json_whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python has a limit, 4300 digits by default
        raise HierarchyError(f"a number of {len(text.lstrip('-'))} digits is too long; give it as text") from None


def _json_label(label_type: type | None, value: JSON) -> Label:
    if isinstance(value, (dict, list, bool)):
        raise HierarchyError(f"{value!r} cannot be a label")
    check_label(value)
    if label_type is int:
        return value if isinstance(value, int) else _whole(value)
    return str(value) if label_type is str else value


def _json_arrays(content: JSON, label: ToLabel, allow_duplicates: bool) -> EdgeArrays:
    if isinstance(content, list):
        return edge_arrays(_labelled(content, label), (), allow_duplicates)
    if not isinstance(content, Mapping):
        raise HierarchyError(f"expected an object or a list, not {content!r}")
    if any(isinstance(content.get(key), list) for key in ("edges", "nodes")):
        for key, value in content.items():
            if key not in ("edges", "nodes"):
                raise HierarchyError(f'unknown key {key!r}: next to a list of "edges" or "nodes" there can be no other')
            if not isinstance(value, list):
                raise HierarchyError(f'"{key}" must be a list, not {value!r}')
        edges, nodes = content.get("edges", []), content.get("nodes", [])
        return edge_arrays(_labelled(edges, label), map(label, nodes), allow_duplicates)
    if content and all(isinstance(below, Mapping) for below in content.values()):
        try:
            return edge_arrays(*_unnested(content, label), allow_duplicates=True)
        except HierarchyError as error:  # the file has no edges to count
            raise HierarchyError(error.problem) from None
    parents = _distinct([(label(c), _parents(p, label)) for c, p in content.items()])  # "1" and "01" may be one label
    return parent_arrays(parents)


def _labelled(pairs: list[JSON], label: ToLabel) -> Iterator[list[Label]]:
    for i, pair in enumerate(pairs):
        try:
            yield [label(x) for x in pair] if isinstance(pair, list) else pair
        except HierarchyError as error:
            raise HierarchyError(error.problem, "edge", i) from None


def _parents(given: JSON, label: ToLabel) -> LabelsLike:
    if isinstance(given, list):
        return [label(p) for p in given]
    return None if given is None else label(given)


def _unnested(tree: Mapping[str, JSON], label: ToLabel) -> tuple[list[tuple[Label, Label]], list[Label]]:
    """``{"root": {"leaf": {}}}`` as edges."""
    edges: list[tuple[Label, Label]] = []
    stack = [(label(name), below) for name, below in tree.items()]
    roots = dict(stack)
    while stack:
        parent, below = stack.pop()
        if not isinstance(below, Mapping):
            raise HierarchyError(f"expected an object below {parent!r}, not {below!r}")
        for name, further in below.items():
            child = label(name)
            if child in roots and child != parent:
                raise HierarchyError(f"contradictory: {child!r} is a root, and also stands below {parent!r}")
            edges.append((parent, child))
            stack.append((child, further))
    return edges, list(roots)
