"""Data files on the command line: the options that say how to read one, and the reading."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from nhsvm.cli.options import option
from nhsvm.cli.output import needs
from nhsvm.errors import DataError, OptionError

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset
    from nhsvm.datasets.chunks import Chunks
    from nhsvm.hierarchy import Hierarchy
    from nhsvm.typing import Options

# -- options -----------------------------------------------------------------------------------------------------------


FileFormat: TypeAlias = Literal["svmlight", "lshtc", "arff", "csv", "tsv", "jsonl", "parquet", "blocks"]
LabelType: TypeAlias = Literal["str", "int"]
DataFile = Annotated[
    str, typer.Argument(metavar="DATA", help="Data file, gzipped or not; - is standard input (with --format).")
]
_sample = partial(option, panel="Samples")
_label = partial(option, panel="Labels")


@dataclass(frozen=True)
class SampleOptions:
    """Where the samples of a file are; None (or empty) is what was not said."""

    format: FileFormat | None = _sample(
        metavar="NAME", help="svmlight, lshtc, arff, csv, tsv, jsonl, parquet, blocks.", shown="by the ending"
    )
    text: list[str] | None = _sample(metavar="COLUMN", help="Column of text; may be repeated.", shown="text, in JSONL")
    features: list[str] | None = _sample(metavar="COLUMN", help="Column of numbers; may be repeated, or e0..e99.")
    where: list[str] | None = _sample(metavar="COLUMN=VALUE", help="Only rows with this value; may be repeated.")
    columns: str | None = _sample(metavar="A,B,...", help="Names of all columns of a CSV file without a header.")
    delimiter: str | None = _sample(help="Between the cells of a CSV file.", shown="by the format")
    encoding: str | None = _sample(help="Text encoding.", shown="utf-8")
    ignore_feature: int | None = _sample(metavar="NUMBER", help="LSHTC: a feature to leave out; 0 in the sets of 2010.")
    any_order: bool | None = _sample("--any-order", help="svmlight: features may be in any order.")
    on_error: Literal["stop", "skip"] = _sample(
        help="Bad rows: stop, or skip and count them.", default="stop", shown="stop"
    )

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """``--where`` as pairs of column and value."""
        pairs = []
        for given in self.where or ():
            column, sign, value = given.partition("=")
            if not sign or not column:
                raise OptionError(f"--where must be COLUMN=VALUE, such as split=train, not {given!r}")
            pairs.append((column, value))
        return pairs


@dataclass(frozen=True)
class LabelOptions:
    """Where the labels are and what they mean; None (or empty) is what was not said."""

    label: str | None = _label(metavar="COLUMN", help="Column of labels.", shown="labels, in JSONL")
    path: str | None = _label(metavar="COLUMN", help='Column of paths such as "Science > Physics".')
    level: list[str] | None = _label(metavar="COLUMN", help="Column of one level, from the top; repeated for each.")
    hierarchy: Path | None = _label(
        metavar="FILE", help="Hierarchy: cat_hier.txt, parent-child TSV or CSV, JSON; .gz too."
    )
    separator: str | None = _label(help="Between the parts of a path.", shown='" > "')
    label_separator: str | None = _label(help="Between several labels in a cell.")
    last_part: bool | None = _label("--last-part", help="A label is the last part of its path, not all of it.")
    label_type: LabelType | None = _label(help="Labels are text or whole numbers.", shown="by the format")
    multilabel: bool | None = _label(
        "--multilabel/--single-label", help="Whether samples have sets of labels.", shown="if any has two"
    )
    drop_root: bool | None = _label("--drop-root", help="Leave out the only root of the hierarchy.")
    drop_implied: bool | None = _label("--drop-implied", help="Leave out labels above others of a sample.")

    @property
    def is_placed(self) -> bool:
        """Whether it is said which columns have the labels."""
        return self.label is not None or self.path is not None or bool(self.level)


# -- reading -----------------------------------------------------------------------------------------------------------

_READERS: dict[FileFormat, tuple[str, tuple[str, ...]]] = {  # in nhsvm.datasets, and endings of files
    "svmlight": ("read_svmlight", (".svm", ".svmlight", ".libsvm")),
    "lshtc": ("read_lshtc", (".txt", ".lshtc")),
    "arff": ("read_hmc_arff", (".arff",)),
    "csv": ("read_csv", (".csv",)),
    "tsv": ("read_csv", (".tsv", ".tab")),
    "jsonl": ("read_jsonl", (".jsonl", ".ndjson")),
    "parquet": ("read_parquet", (".parquet",)),
    "blocks": ("open_blocks", (".blocks",)),
}
_BY_ENDING = {ending: kind for kind, (_, endings) in _READERS.items() for ending in endings}
_OF_TABLES = (  # in the order in which they are refused
    "text", "features", "where", "columns", "delimiter", "encoding", "label", "path", "level", "last_part", "separator",
    "label_separator", "drop_implied",
)  # fmt: skip
_RANGE = re.compile(r"(.*?)(\d+)\.\.(.*?)(\d+)")
_MAX_RANGE = 1_000_000


@dataclass(frozen=True)
class Source:
    """A data file, and how it is read. Methods raise an NHSVMError for options that do not fit, and for bad files."""

    file: str
    """``-`` is standard input."""
    samples: SampleOptions
    labels: LabelOptions | None = None
    """None reads samples only, and ignores labels."""
    like: Dataset | None = None
    """The training set of this one: features, hierarchy and form of labels will be the same."""
    hierarchy: Hierarchy | None = None
    """Instead of a file in ``labels``."""
    extra: Sequence[str] | str = ()
    """Further columns of a table to keep; "*" for all."""

    @cached_property
    def kind(self) -> FileFormat:
        """The format: what the options say, else by the ending."""
        if self.samples.format is not None:
            return self.samples.format
        formats = ", ".join(_READERS)
        if self.file == "-":
            raise OptionError(f"say --format for standard input: one of {formats}")
        endings = [ending.lower() for ending in Path(self.file).suffixes if ending.lower() != ".gz"]
        found = _BY_ENDING.get(endings[-1] if endings else "")
        if found is None:
            raise OptionError(f"{self.file}: cannot tell the format from the name; say --format, one of {formats}")
        return found

    @property
    def is_table(self) -> bool:
        """Whether there are named columns."""
        return self.kind in ("csv", "tsv", "jsonl", "parquet")

    @property
    def is_numbered(self) -> bool:
        """Whether features have numbers for names."""
        return self.kind in ("svmlight", "lshtc")

    @property
    def has_texts(self) -> bool:
        """Whether samples are texts, and perhaps features beside them."""
        by_default = self.kind == "jsonl" and not self.samples.features
        return self.is_table and (bool(self.samples.text) or by_default)

    @property
    def reader(self) -> Callable[..., Dataset]:
        """The function in :mod:`nhsvm.datasets` that reads the file."""
        from nhsvm import datasets

        found: Callable[..., Dataset] = getattr(datasets, _READERS[self.kind][0])
        return found

    def read(self) -> Dataset:
        """All of the file, but for what ``--where`` leaves out."""
        return self.kept(self.reader(self.file, **self.settings()))

    def chunks(self, n_rows: int) -> Chunks | _Whole:
        """The file some rows at a time, as far as the format allows it; ``--where`` is up to the caller."""
        from nhsvm.datasets import read_chunks

        if self.kind == "arff":
            return _Whole(self.reader(self.file, **self.settings()))
        return read_chunks(self.reader, self.file, n_rows, **self.settings())

    def kept(self, dataset: Dataset, *, may_be_empty: bool = False) -> Dataset:
        """The samples that ``--where`` asks for."""
        pairs = self.samples.conditions
        if not pairs:
            return dataset
        shown = {column: list(map(_as_typed, dataset.extra[column])) for column, _ in pairs}
        rows = [k for k in range(dataset.n_samples) if all(shown[column][k] == value for column, value in pairs)]
        if not rows and not may_be_empty:
            raise self.nothing_kept()
        y, X, texts = dataset.y, dataset.X, dataset.texts
        return replace(
            dataset,
            y=y if y is None else [y[k] for k in rows] if isinstance(y, list) else y[rows],
            X=None if X is None else X[rows],
            texts=None if texts is None else [texts[k] for k in rows],
            extra={name: [column[k] for k in rows] for name, column in dataset.extra.items()},
        )

    def nothing_kept(self) -> DataError:
        """The error for conditions that no sample meets."""
        return DataError(f"no sample has {' and '.join(self.samples.where or ())}")

    def settings(self) -> Options:
        """Options of the reader; an error for those of the command line that are for other formats."""
        kind = self.kind
        if kind == "blocks":
            return self._of_blocks()
        settings: Options = {"on_error": "skip" if self.samples.on_error == "skip" else "raise"}
        settings["like"] = self.like
        if self.is_table:
            settings |= self._of_table()
        else:
            self._refuse_columns()
            settings |= self._of_arff() if kind == "arff" else self._of_numbered()
        if kind == "parquet":
            needs("polars", "tables", "reading Parquet files")
            if self.file == "-":
                raise OptionError("a Parquet file cannot be read from standard input; give its name")
        return settings

    def _of_table(self) -> Options:
        kind, samples = self.kind, self.samples
        text, features = samples.text or None, expanded(samples.features or ())
        if not text and not features:
            if kind != "jsonl":
                raise OptionError("say where the samples are: --text COLUMN, or --features COLUMN")
            text = ["text"]
        extra: Sequence[str] | str = self.extra
        if not isinstance(extra, str):
            extra = list(dict.fromkeys([*extra, *(column for column, _ in samples.conditions)]))
        settings: Options = {"text": text, "features": features or None, "extra": extra}
        if kind != "parquet":
            settings["encoding"] = samples.encoding or "utf-8"
        if kind in ("csv", "tsv"):
            names = None if samples.columns is None else [name.strip() for name in samples.columns.split(",")]
            tab = "\t" if kind == "tsv" else ","
            settings |= {"columns": names, "delimiter": samples.delimiter or tab}
        elif samples.columns is not None or samples.delimiter is not None:
            raise OptionError(f"--columns and --delimiter are for CSV files, not for {kind}")
        self._refuse_numbered(f", not for {kind}")
        return settings | self._labels_of_table()

    def _labels_of_table(self) -> Options:
        labels, kind = self.labels, self.kind
        if labels is None:
            return {"label": None}
        label = labels.label
        if not labels.is_placed:
            if kind != "jsonl":
                raise OptionError(
                    "say where the labels are: --label COLUMN, --path COLUMN, or --level COLUMN for each level"
                )
            label = "labels"
        return {
            "label": label,
            "path": labels.path,
            "levels": labels.level or None,
            "separator": labels.separator or " > ",
            "label_separator": labels.label_separator,
            "qualified": not labels.last_part,
            "drop_implied": bool(labels.drop_implied),
            **self._labels(labels, str if kind in ("csv", "tsv") else None),
        }

    def _labels(self, labels: LabelOptions, label_type: type | None) -> Options:
        """Options of labels that most readers have; of a type unless another one is said."""
        return {
            "label_type": {None: label_type, "str": str, "int": int}[labels.label_type],
            "hierarchy": labels.hierarchy if self.hierarchy is None else self.hierarchy,
            "drop_root": bool(labels.drop_root),
            "multilabel": labels.multilabel,
        }

    def _of_numbered(self) -> Options:
        """Options of the readers of svmlight and LSHTC files."""
        settings: Options = {"labelled": False} if self.labels is None else self._labels(self.labels, int)
        if self.kind == "lshtc":
            if settings.pop("label_type", int) is not int:
                raise OptionError(
                    "labels of LSHTC files are whole numbers; for names say --format svmlight --any-order"
                )
            return settings | {"ignore": self.samples.ignore_feature}
        if self.samples.ignore_feature is not None:
            raise OptionError("--ignore-feature is for LSHTC files")
        return settings | {"sort": bool(self.samples.any_order)}

    def _of_arff(self) -> Options:
        labels, encoding = self.labels, self.samples.encoding
        self._refuse_numbered(", not for arff")
        if labels is not None and (labels.hierarchy is not None or labels.label_type is not None):
            raise OptionError("an ARFF file has its own hierarchy and labels: leave out --hierarchy and --label-type")
        # samples without labels are fine where labels are not asked for
        settings: Options = {"multilabel": True if labels is None else labels.multilabel}
        return settings | ({} if encoding is None else {"encoding": encoding})

    def _of_blocks(self) -> Options:
        self._refuse_columns()
        self._refuse_numbered(": give them to convert")
        if self.labels is None:
            return {"labelled": False, "like": self.like}
        if self.labels.label_type is not None:
            raise OptionError("blocks know what their labels are: give --label-type to convert")
        settings = self._labels(self.labels, None)
        del settings["label_type"]
        return settings | {"like": self.like}

    def _refuse_numbered(self, but: str) -> None:
        if self.samples.ignore_feature is not None or self.samples.any_order is not None:
            raise OptionError(f"--ignore-feature and --any-order are for files of numbered features{but}")

    def _refuse_columns(self) -> None:
        """An error for options that name columns, of a file that has none."""
        given = vars(self.samples) | ({} if self.labels is None else vars(self.labels))
        if self.kind == "arff":
            given["encoding"] = None  # which is not only for tables
        name = next((name for name in _OF_TABLES if given.get(name)), None)
        if name is not None:
            flag = name.replace("_", "-")
            raise OptionError(f"--{flag} is for CSV, TSV, JSONL and Parquet files, not for {self.kind}")
        if self.extra:
            raise OptionError(f"columns can be kept of CSV, TSV, JSONL and Parquet files, not of {self.kind}")


class _Whole:
    """A file that cannot be read a part at a time, as its only part."""

    share = None

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self.skipped = dataset, dataset.skipped

    def __iter__(self) -> Iterator[Dataset]:
        yield self._dataset


def expanded(names: Iterable[str]) -> list[str]:
    """Names of columns, with ranges written out.

    Examples
    --------
    >>> expanded(["size", "e0..e3"])
    ['size', 'e0', 'e1', 'e2', 'e3']
    """
    found: list[str] = []
    for name in names:
        match = _RANGE.fullmatch(name)
        if match is None or match[3] not in ("", match[1]):
            found.append(name)
            continue
        first, last = int(match[2]), int(match[4])
        if not 0 <= last - first < _MAX_RANGE:
            raise OptionError(f"--features {name}: the first number must not be above the last, nor far below it")
        width = len(match[2]) if match[2].startswith("0") and len(match[2]) == len(match[4]) else 0
        found += [f"{match[1]}{number:0{width}d}" for number in range(first, last + 1)]
    return found


def _as_typed(value: object) -> str:
    """A cell as one would type it."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
