"""Cells of a record as text, numbers and labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nhsvm.datasets._files import shown
from nhsvm.datasets._numbers import finite

if TYPE_CHECKING:
    from nhsvm.datasets._table import Labelling

Record = Mapping[str, Any]
_INT = (int, np.integer)
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


class BadCell(Exception):  # noqa: N818 - never leaves the readers
    """What is wrong with a record."""


def text_of(record: Record, names: Sequence[str]) -> str:
    """Text, that of several columns on a line each."""
    parts = [record.get(name) for name in names]
    for name, part in zip(names, parts, strict=True):
        if not isinstance(part, str):
            raise BadCell(f"expected text in {name!r}, not {_what(record, name)}")
    return parts[0] if len(parts) == 1 else "\n".join(parts)  # type: ignore[return-value, arg-type]


def numbers_of(record: Record, names: Sequence[str], width: dict[str, int], dtype: Any) -> list[float]:
    """Features; a list counts for as many as it is long, and is as long in every record."""
    found: list[float] = []
    for name in names:
        if name not in record:
            raise BadCell(f"no {name!r} (null stands for a missing value)")
        value = record[name]
        size = len(value) if isinstance(value, (list, tuple)) else -1
        if width.setdefault(name, size) != size:
            wanted = "one number" if width[name] < 0 else f"a list of {width[name]} numbers"
            raise BadCell(f"expected {wanted} in {name!r}, not {_what(record, name)}")
        if size < 0:
            found.append(_number(value, record, name))
        else:
            found += [_number(item, record, name) for item in value]
    if dtype == np.float32 and any(abs(value) > _LARGEST_SINGLE for value in found):
        raise BadCell("a number too large for float32")
    return found


def _number(value: Any, record: Record, name: str) -> float:
    if value is None or value == "":
        return math.nan
    number = finite(value.strip()) if isinstance(value, str) else _as_float(value)
    if number is None:
        raise BadCell(f"expected a finite number, or nothing, in {name!r}, not {_what(record, name)}")
    return number


def _as_float(value: Any) -> float | None:
    if not isinstance(value, (bool, int, float, np.number)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isinf(number) else number


def labels_of(record: Record, labelling: Labelling) -> list[Any]:
    """Labels, or the paths that stand for them, of a record."""
    if labelling.levels:
        return _levels(record, labelling.levels)
    name = labelling.label if labelling.path is None else labelling.path
    assert name is not None
    value = record.get(name)
    if isinstance(value, str) and labelling.label_separator is not None:
        value = [part for part in value.split(labelling.label_separator) if part.strip()]
    items = value if isinstance(value, (list, tuple)) else [] if value is None or value == "" else [value]
    if labelling.path is not None:
        return [_path(item, labelling, record, name) for item in items]
    return [_label(item, labelling, record, name) for item in items]


def _levels(record: Record, names: Sequence[str]) -> list[tuple[str, ...]]:
    parts = ["" if record.get(name) is None else str(record[name]).strip() for name in names]
    while parts and not parts[-1]:
        parts.pop()
    if not all(parts):
        gap = names[parts.index("")]
        raise BadCell(f"expected a label in {gap!r}, since there is one on a level below")
    return [tuple(parts)] if parts else []


def _path(item: Any, labelling: Labelling, record: Record, name: str) -> tuple[str, ...]:
    if isinstance(item, str):
        item = [part.strip() for part in item.split(labelling.separator.strip())]
    if not isinstance(item, (list, tuple)) or not item or not all(isinstance(p, str) and p for p in item):
        wanted = f"a path such as {shown(labelling.separator.join(['a', 'b']))}"
        raise BadCell(f"expected {wanted} in {name!r}, not {_what(record, name)}")
    return tuple(item)


def _label(item: Any, labelling: Labelling, record: Record, name: str) -> Any:
    if isinstance(item, str):
        item = item.strip()
    elif not isinstance(item, _INT) or isinstance(item, bool):
        raise BadCell(f"expected a label in {name!r}, text or a whole number, not {_what(record, name)}")
    if labelling.label_type is int and isinstance(item, str):
        try:
            return int(item)
        except ValueError:
            raise BadCell(f"expected a whole number as label in {name!r}, not {shown(item)}") from None
    return str(item) if labelling.label_type is str else item


def _what(record: Record, name: str) -> str:
    """The value of a cell as it is named in a message."""
    if name not in record:
        return "a record without it"
    value = record[name]
    return "null" if value is None else shown(value) if isinstance(value, str) else shown(value)[1:-1]
