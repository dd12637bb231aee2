"""Records with named values, from whatever file, as a data set: what CSV, JSON Lines and Parquet share."""

from __future__ import annotations

import math
from abc import abstractmethod
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt

from nhsvm.datasets.dataset import AnyPath, Dataset, given_hierarchy, objects, without_root
from nhsvm.datasets.files import Source, blaming, finite, shown
from nhsvm.datasets.labels import LabelLists
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.registry import Option
from nhsvm.typing import JSON, Array, DType, Label, Options

FREE_NAMES, LEVELS = 2**26, 100
"""Characters that names of nodes may have in any case, and how many for each character of the paths."""
Names = str | Sequence[str] | None
Record = Mapping[str, JSON]
Records = Generator[tuple[int, Record], None, None]  # line or row, values


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


class Table(Source):
    """A file of records, and what has been read of it."""

    def __init__(self, file: AnyPath, options: Options, unit: str = "line") -> None:
        super().__init__(file, options, unit)
        o = options
        self.text, self.features, self.extra = _names(o["text"]), _names(o["features"]), _names(o["extra"])
        self.labelling = Labelling(o)
        if not self.text and not self.features:
            raise OptionError("say where the samples are: text=, or features=, the name of a column or a list of names")
        self._drop_root, self._drop_implied = o["drop_root"], o["drop_implied"]
        self._known = given_hierarchy(o["hierarchy"], o["label_type"], self._drop_root)
        if self._known is None and self.like is not None:
            self._known = self.like.hierarchy
        self._grows = o["hierarchy"] is None and self.like is None
        self._width = dict[str, int]()
        self._forget()

    @abstractmethod
    def records(self) -> Records:
        """The records of the file and their lines, or rows; it is closed with them."""

    @property
    def columns_needed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.text, *self.features, *self.labelling.columns, *self.extra)))

    def _forget(self) -> None:
        """Be ready for the first, or the next, samples."""
        self._labels = LabelLists(self._known, self.multilabel, self._drop_implied, self.log)
        self._texts, self._values, self._n = list[str](), array("d"), 0
        self._extra: dict[str, list[JSON]] = {name: [] for name in self.extra}

    def see_columns(self, available: Sequence[str], line: int | None = None, check: bool = True) -> None:
        """Say which columns there are, for ``extra="*"``, and see, before any work, that all are there."""
        if self.extra == ("*",):
            self.extra = tuple(available)
            self._forget()
        missing = [name for name in self.columns_needed if name not in available]
        if missing and check:
            there = ", ".join(map(repr, available[:20])) + (", ..." if len(available) > 20 else "")
            raise FileFormatError(self.file, line, f"no column {missing[0]!r}; there are {there}")

    def read(self) -> Dataset:
        with closing(self.records()) as records:  # a file must not stay open until an error is forgotten
            self._take(records)
        return self._result()

    def parts(self, size: int) -> Iterator[Dataset]:
        with closing(self.records()) as records:
            while found := list(islice(records, size)):
                self._take(found)
                if self._n:
                    yield self._result()
                    self._forget()

    def why_no_blocks(self, changed: bool) -> str:
        if self.text and not changed:
            return "blocks hold features, not texts: make features of them first, as nhsvm convert does"
        if self._drop_implied and self._grows and not self.labelling.qualified:
            return (
                "drop_implied needs a hierarchy here: labels that are the last part of their path may come below each "
                "other later in the file; give hierarchy= (--hierarchy)"
            )
        return ""

    def _take(self, records: Iterable[tuple[int, Record]]) -> None:
        for number, record in records:
            try:
                self._add(record)
            except BadCell as problem:
                self.log.report(number, str(problem))

    def _add(self, record: Record) -> None:
        text = text_of(record, self.text) if self.text else ""
        values = numbers_of(record, self.features, self._width, self.dtype) if self.features else ()
        if self.labelling.columns:
            problem = self._labels.add(self.labelling.labels_of(record))
            if problem:
                raise BadCell(problem)
        if self.text:
            self._texts.append(text)
        self._values.extend(values)
        for name, column in self._extra.items():
            column.append(record.get(name))
        self._n += 1

    def _result(self) -> Dataset:
        skipped = self.log.skipped(self._n)
        hierarchy = self._known
        if hierarchy is None and self.labelling.is_path:
            hierarchy = self.labelling.hierarchy(self.file)
            hierarchy = without_root(hierarchy) if self._drop_root else hierarchy
        y = self._labels.result(hierarchy) if self.labelling.columns else None
        X, names = None, None
        if self.features:
            X = np.frombuffer(self._values, dtype=np.float64).reshape(self._n, -1).astype(self.dtype, copy=False)
            names = self._feature_names()
        texts = self._texts if self.text else None
        return Dataset(y, hierarchy, X, texts, names, self._extra, skipped)

    def _feature_names(self) -> Array:
        names: list[str] = []
        for name in self.features:
            width = self._width.get(name, -1)
            names += [name] if width < 0 else [f"{name}[{k}]" for k in range(width)]
        wanted = None if self.like is None else self.like.feature_names
        if wanted is not None and list(wanted) != names:
            raise FileFormatError(self.file, None, "the features are not those of like")
        return objects(names)


def _names(given: Names) -> tuple[str, ...]:
    names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise OptionError(f"expected the name of a column or a list of different names, not {given!r}")
    return names


# -- labels of records -------------------------------------------------------------------------------------------------


class Labelling:
    """Where labels are and what they mean, as :func:`nhsvm.datasets.read_csv` says it, and the paths that came."""

    def __init__(self, o: Options) -> None:
        self._label, self._path, self._levels = o["label"], o["path"], _names(o["levels"])
        self._separator, self._label_separator = o["separator"], o["label_separator"]
        self.qualified, self._label_type = o["qualified"], o["label_type"]
        if self._label_type not in (None, int, str):
            raise OptionError(f"label_type must be int, str or None, not {self._label_type!r}")
        if (self._label is not None) + (self._path is not None) + bool(self._levels) > 1:
            raise OptionError("give one of label, path and levels, not several")
        if not all(separator is None or separator.strip() for separator in (self._separator, self._label_separator)):
            raise OptionError("separators must be more than blanks")
        self.columns = tuple(name for name in (self._label, self._path, *self._levels) if name is not None)
        self.is_path = self._label is None and bool(self.columns)
        self._paths: dict[tuple[str, ...], None] = {}
        self._characters = self._of_names = 0  # of all paths, and at most of the names of all nodes on them
        self._known: dict[str, tuple[Label, ...]] = {}  # labels in a cell: found once, however often it comes

    def labels_of(self, record: Record) -> tuple[Label, ...]:
        """Labels of a record, or the names of the paths that stand for them."""
        cell = record.get(self.columns[0]) if len(self.columns) == 1 else None
        known = self._known.get(cell) if isinstance(cell, str) else None
        if known is None:
            if self._levels:
                known = tuple(map(self._named, self._path_over_levels(record)))
            else:
                read = self._of_path if self.is_path else self._of_label
                known = tuple(read(item, record) for item in self._items(record))
            if isinstance(cell, str):
                self._known[cell] = known
        return known

    def _items(self, record: Record) -> Sequence[JSON]:
        """What stands in the cell of labels, or of paths."""
        value = record.get(self.columns[0])
        if isinstance(value, str) and self._label_separator is not None:
            value = [part for part in value.split(self._label_separator) if part.strip()]
        return value if isinstance(value, (list, tuple)) else [] if value is None or value == "" else [value]

    def _path_over_levels(self, record: Record) -> list[tuple[str, ...]]:
        parts = ["" if record.get(name) is None else str(record[name]).strip() for name in self._levels]
        while parts and not parts[-1]:
            parts.pop()
        if not all(parts):
            gap = self._levels[parts.index("")]
            raise BadCell(f"expected a label in {gap!r}, since there is one on a level below")
        return [tuple(parts)] if parts else []

    def _of_path(self, item: JSON, record: Record) -> str:
        if isinstance(item, str):
            item = [part.strip() for part in item.split(self._separator.strip())]
        if not isinstance(item, (list, tuple)) or not item or not all(isinstance(p, str) and p for p in item):
            wanted = f"a path such as {shown(self._separator.join(['a', 'b']))}"
            raise BadCell(f"expected {wanted} in {self._path!r}, not {_what(record, self._path)}")
        return self._named(tuple(item))

    def _named(self, path: tuple[str, ...]) -> str:
        """The label that a path stands for."""
        if not self.qualified:
            self._paths[path] = None
            return path[-1]
        name = str(self._separator.join(path))
        if path not in self._paths:
            self._characters += len(name)
            self._of_names += len(path) * len(name)
            if self._of_names > FREE_NAMES + LEVELS * self._characters:
                raise BadCell(
                    f"a path of {len(path):,} levels: every node on it has the whole path as its name, which takes too "
                    "much memory; use qualified=False, or shorter paths"
                )
            self._paths[path] = None
        return name

    def _of_label(self, item: JSON, record: Record) -> Label:
        name = self._label
        if isinstance(item, str):
            item = item.strip()
        elif not isinstance(item, (int, np.integer)) or isinstance(item, bool):
            raise BadCell(f"expected a label in {name!r}, text or a whole number, not {_what(record, name)}")
        if self._label_type is int and isinstance(item, str):
            try:
                return int(item)
            except ValueError:
                raise BadCell(f"expected a whole number as label in {name!r}, not {shown(item)}") from None
        return str(item) if self._label_type is str else item

    def hierarchy(self, file: Path) -> Hierarchy:
        """That of all paths that samples have."""
        sep = self._separator
        with blaming(file):
            if self.qualified:
                steps = (tuple(sep.join(p[: k + 1]) for k in range(len(p))) for p in self._paths)
                return Hierarchy.from_paths(steps)
            edges = dict.fromkeys(edge for p in self._paths for edge in pairwise(p))
            return Hierarchy.from_edges(edges, nodes=dict.fromkeys(p[0] for p in self._paths))


# -- cells -------------------------------------------------------------------------------------------------------------

_LARGEST_SINGLE = float(np.finfo(np.float32).max)


class BadCell(Exception):  # noqa: N818 - never leaves the readers
    """What is wrong with a record."""


def text_of(record: Record, names: Sequence[str]) -> str:
    """Text, that of several columns on a line each."""
    parts = list[str]()
    for name in names:
        part = record.get(name)
        if not isinstance(part, str):
            raise BadCell(f"expected text in {name!r}, not {_what(record, name)}")
        parts.append(part)
    return "\n".join(parts)


def numbers_of(record: Record, names: Sequence[str], width: dict[str, int], dtype: DType) -> list[float]:
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
        found += [_number(item, record, name) for item in ([value] if size < 0 else value)]
    if dtype == np.float32 and any(abs(value) > _LARGEST_SINGLE for value in found):
        raise BadCell("a number too large for float32")
    return found


def _number(value: JSON, record: Record, name: str) -> float:
    if value is None or value == "":
        return math.nan
    number = None
    if isinstance(value, str):
        number = finite(value.strip())
    elif isinstance(value, (bool, int, float, np.number)):
        with suppress(OverflowError):  # of a whole number
            number = float(value)
    if number is None or math.isinf(number):
        raise BadCell(f"expected a finite number, or nothing, in {name!r}, not {_what(record, name)}")
    return number


def _what(record: Record, name: str) -> str:
    """The value of a cell as it is named in a message."""
    if name not in record:
        return "a record without it"
    value = record[name]
    return "null" if value is None else shown(value) if isinstance(value, str) else shown(value)[1:-1]
