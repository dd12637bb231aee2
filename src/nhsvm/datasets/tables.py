"""Records with named values, from whatever file, as a data set: what CSV, JSON Lines and Parquet share."""

from __future__ import annotations

import math
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Annotated, Any, TypedDict

import numpy as np
import numpy.typing as npt

from nhsvm.datasets.base import Dataset, checked_dtype, checked_like, given_hierarchy, without_root
from nhsvm.datasets.files import AnyPath, Trouble, finite, shown
from nhsvm.datasets.labels import LabelLists
from nhsvm.errors import CycleError, FileFormatError, HierarchyError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.registry import Option

Names = str | Sequence[str] | None
Records = Generator[tuple[int, Mapping[str, Any]], None, None]  # line or row, values


class TableOptions(TypedDict, total=False):
    """What the readers of tables of every format take by name; each option is declared here, once."""

    text: Annotated[
        Names, Option(None, "str or list of str", "Column of text; of several, each is a line of the text.")
    ]
    features: Annotated[
        Names,
        Option(None, "str or list of str", "Columns of numbers; an empty cell, or null, is a missing value, NaN."),
    ]
    label: Annotated[str | None, Option(None, "str, optional", "Column of labels, for use with a hierarchy.")]
    path: Annotated[
        str | None,
        Option(
            None,
            "str, optional",
            "Column of paths, such as ``Science > Physics``, that are labels and make up the hierarchy.",
        ),
    ]
    levels: Annotated[
        Names,
        Option(
            None,
            "list of str, optional",
            "Columns, one a level from the top: together a path. The last ones may be empty.",
        ),
    ]
    hierarchy: Annotated[
        Hierarchy | AnyPath | None,
        Option(
            None, "Hierarchy or path, optional", "Labels must be nodes of it. A file is read by ``Hierarchy.read``."
        ),
    ]
    drop_root: Annotated[bool, Option(False, "bool", "Leave out the root of the hierarchy if it has only one.")]
    separator: Annotated[
        str,
        Option(
            " > ", "str", "Between the parts of a path, in the file (blanks around it do not matter) and in labels."
        ),
    ]
    label_separator: Annotated[
        str | None, Option(None, "str, optional", "Between several labels, or paths, in a cell.")
    ]
    qualified: Annotated[
        bool,
        Option(
            True,
            "bool",
            "A label is its whole path: ``Books > Other`` and ``Toys > Other`` are two. With False it is the last "
            "part.",
        ),
    ]
    label_type: Annotated[
        type | None,
        Option(None, "{str, int}, optional", "Of ``label``. By default labels are what they are in the file."),
    ]
    multilabel: Annotated[
        bool | None,
        Option(
            None,
            "bool, optional",
            "Give a list of labels for every sample. By default if any has two; only with True may a sample have none.",
        ),
    ]
    drop_implied: Annotated[bool, Option(False, "bool", "Leave out labels that are above others of the same sample.")]
    extra: Annotated[
        Names,
        Option(None, "str or list of str", 'Further columns to keep, in ``Dataset.extra``; ``"*"`` keeps all.'),
    ]
    dtype: Annotated[npt.DTypeLike, Option(np.float64, "{float64, float32}", "Of X.")]
    like: Annotated[
        Dataset | None,
        Option(
            None,
            "Dataset, optional",
            "Use the hierarchy and the form of labels of this one, as for a test set; features must have the same "
            "names.",
        ),
    ]
    on_error: Annotated[
        str,
        Option(
            "raise",
            '{"raise", "skip"}',
            "Raise on a bad record, or leave it out and count it in ``Dataset.skipped``.",
        ),
    ]


@dataclass(frozen=True)
class Labelling:
    """Where labels are and what they mean; see ``read_csv``."""

    label: str | None
    path: str | None
    levels: tuple[str, ...]
    separator: str
    label_separator: str | None
    qualified: bool
    label_type: type | None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in (self.label, self.path) if name is not None) + self.levels

    @property
    def is_path(self) -> bool:
        return self.path is not None or bool(self.levels)


class Table:
    """The options of a reader, checked, and what has been read."""

    def __init__(self, trouble: Trouble, options: TableOptions) -> None:
        o = options
        self.trouble, self.dtype, self._drop_root = trouble, checked_dtype(o["dtype"]), o["drop_root"]
        self.text, self.features, self.extra = _names(o["text"]), _names(o["features"]), _names(o["extra"])
        self.labelling = Labelling(
            o["label"], o["path"], _names(o["levels"]), o["separator"], o["label_separator"], o["qualified"],
            o["label_type"],
        )  # fmt: skip
        if o["label_type"] not in (None, int, str):
            raise OptionError(f"label_type must be int, str or None, not {o['label_type']!r}")
        if (o["label"] is not None) + (o["path"] is not None) + bool(o["levels"]) > 1:
            raise OptionError("give one of label, path and levels, not several")
        if not all(separator is None or separator.strip() for separator in (o["separator"], o["label_separator"])):
            raise OptionError("separators must be more than blanks")
        if not self.text and not self.features:
            raise OptionError("say where the samples are: text=, or features=, the name of a column or a list of names")
        self._like, multilabel = checked_like(o["like"]), o["multilabel"]
        self._known = given_hierarchy(o["hierarchy"], o["label_type"], self._drop_root)
        if self._like is not None:
            self._known = self._like.hierarchy if self._known is None else self._known
            multilabel = self._like.is_multilabel if multilabel is None and self._like.y is not None else multilabel
        self._multilabel, self._drop_implied = multilabel, o["drop_implied"]
        self._paths: dict[tuple[str, ...], None] = {}
        self._cells: dict[str, tuple[Any, ...]] = {}
        self._width = dict[str, int]()
        self._forget()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are needed."""
        return tuple(dict.fromkeys((*self.text, *self.features, *self.labelling.columns, *self.extra)))

    def _forget(self) -> None:
        """Be ready for the first, or the next, samples."""
        self._labels = LabelLists(self._known, self._multilabel, self._drop_implied, self.trouble)
        self._texts, self._values, self._n = list[str](), array("d"), 0
        self._extra: dict[str, list[Any]] = {name: [] for name in self.extra}

    def see_columns(self, available: Sequence[str]) -> None:
        """Say which columns there are, for ``extra="*"``."""
        if self.extra == ("*",):
            self.extra = tuple(available)
            self._forget()

    def check_columns(self, available: Sequence[str], line: int | None = None) -> None:
        """See, before any work, that all columns are there."""
        missing = [name for name in self.columns if name not in available]
        if missing:
            there = ", ".join(map(repr, available[:20])) + (", ..." if len(available) > 20 else "")
            raise FileFormatError(self.trouble.file, line, f"no column {missing[0]!r}; there are {there}")

    def read(self, records: Records) -> Dataset:
        with closing(records):  # a file must not stay open until an error is forgotten
            self._take(records)
        return self._result()

    def parts(self, records: Records, size: int) -> Iterator[Dataset]:
        """The same, at most so many records at a time."""
        with closing(records):
            while found := list(islice(records, size)):
                self._take(found)
                if self._n:
                    yield self._result()
                    self._forget()

    def _take(self, records: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
        for number, record in records:
            try:
                self._add(record)
            except BadCell as problem:
                self.trouble.report(number, str(problem))

    def _add(self, record: Mapping[str, Any]) -> None:
        text = record.get(self.text[0]) if len(self.text) == 1 else None
        if self.text and not isinstance(text, str):
            text = text_of(record, self.text)
        values = numbers_of(record, self.features, self._width, self.dtype) if self.features else ()
        if self.labelling.columns:
            problem = self._labels.add(self._labels_of(record))
            if problem:
                raise BadCell(problem)
        if isinstance(text, str):
            self._texts.append(text)
        self._values.extend(values)
        for name, column in self._extra.items():
            column.append(record.get(name))
        self._n += 1

    def _labels_of(self, record: Mapping[str, Any]) -> tuple[Any, ...]:
        """Labels of a record; what a cell of text stands for is found once, however often it comes."""
        cell = record.get(self.labelling.columns[0]) if len(self.labelling.columns) == 1 else None
        known = self._cells.get(cell) if isinstance(cell, str) else None
        if known is None:
            found = labels_of(record, self.labelling)
            known = tuple(map(self._named, found) if self.labelling.is_path else found)
            if isinstance(cell, str):
                self._cells[cell] = known
        return known

    def _named(self, path: tuple[str, ...]) -> str:
        """The label that a path stands for."""
        name = self.labelling.separator.join(path) if self.labelling.qualified else path[-1]
        self._paths[path] = None
        return name

    def _result(self) -> Dataset:
        skipped = self.trouble.skipped(self._n)
        hierarchy = self._known
        if hierarchy is None and self.labelling.is_path:
            hierarchy = self._from_paths()
        y = self._labels.result(hierarchy) if self.labelling.columns else None
        X, names = None, None
        if self.features:
            X = np.frombuffer(self._values, dtype=np.float64).reshape(self._n, -1).astype(self.dtype, copy=False)
            names = np.array([*self._feature_names(), None], dtype=object)[:-1]
            self._check_like(names)
        texts = self._texts if self.text else None
        return Dataset(y, hierarchy, X, texts, names, self._extra, skipped)

    def _feature_names(self) -> list[str]:
        names: list[str] = []
        for name in self.features:
            width = self._width.get(name, -1)
            names += [name] if width < 0 else [f"{name}[{k}]" for k in range(width)]
        return names

    def _check_like(self, names: npt.NDArray[Any]) -> None:
        wanted = None if self._like is None else self._like.feature_names
        if wanted is not None and list(wanted) != names.tolist():
            raise FileFormatError(self.trouble.file, None, "the features are not those of like")

    def _from_paths(self) -> Hierarchy:
        """The hierarchy of all paths that samples have."""
        sep = self.labelling.separator
        try:
            if self.labelling.qualified:
                steps = (tuple(sep.join(p[: k + 1]) for k in range(len(p))) for p in self._paths)
                hierarchy = Hierarchy.from_paths(steps)
            else:
                hierarchy = Hierarchy.from_edges(
                    dict.fromkeys(edge for p in self._paths for edge in pairwise(p)),
                    nodes=dict.fromkeys(p[0] for p in self._paths),
                )
        except CycleError as error:
            raise CycleError(error.cycle, str(self.trouble.file)) from None
        except HierarchyError as error:
            raise FileFormatError(self.trouble.file, None, error.problem) from None
        return without_root(hierarchy) if self._drop_root else hierarchy


def _names(given: Names) -> tuple[str, ...]:
    names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise OptionError(f"expected the name of a column or a list of different names, not {given!r}")
    return names


# -- cells -------------------------------------------------------------------------------------------------------------

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
