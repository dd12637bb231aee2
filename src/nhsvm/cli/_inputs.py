"""Data files on the command line: the options that say how to read one, and the reading.

A command that reads data takes the options as groups, ready-made::

    @takes(samples=SampleOptions, labels=LabelOptions)
    def evaluate(model: ModelFile, data: DataFile, samples: SampleOptions, labels: LabelOptions) -> None:
        ...
        dataset = read_data(data, samples, labels)

``takes`` puts every field of the groups into the command line as an option and hands the command filled-in objects.
Modules of the command line import nothing heavy at their top: ``nhsvm --help`` has to be fast.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nhsvm.cli._groups import takes
from nhsvm.cli._options import DataFile, FileFormat, LabelOptions, LabelType, OnError, SampleOptions
from nhsvm.cli._output import needs
from nhsvm.errors import DataError, OptionError

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset
    from nhsvm.hierarchy import Hierarchy

__all__ = ["DataFile", "FileFormat", "LabelOptions", "LabelType", "OnError", "SampleOptions", "read_data", "takes"]

_RANGE = re.compile(r"(.*?)(\d+)\.\.(.*?)(\d+)")
_MAX_RANGE = 1_000_000


_BY_ENDING = {
    ".svm": FileFormat.svmlight,
    ".svmlight": FileFormat.svmlight,
    ".libsvm": FileFormat.svmlight,
    ".txt": FileFormat.lshtc,
    ".lshtc": FileFormat.lshtc,
    ".arff": FileFormat.arff,
    ".csv": FileFormat.csv,
    ".tsv": FileFormat.tsv,
    ".tab": FileFormat.tsv,
    ".jsonl": FileFormat.jsonl,
    ".ndjson": FileFormat.jsonl,
    ".parquet": FileFormat.parquet,
    ".blocks": FileFormat.blocks,
}


def format_of(file: str, samples: SampleOptions) -> FileFormat:
    """The format of a data file: what the options say, else by its ending."""
    if samples.format is not None:
        return samples.format
    if file == "-":
        raise OptionError(f"say --format for standard input: one of {', '.join(FileFormat)}")
    endings = [ending.lower() for ending in Path(file).suffixes if ending.lower() != ".gz"]
    found = _BY_ENDING.get(endings[-1] if endings else "")
    if found is None:
        raise OptionError(f"{file}: cannot tell the format from the name; say --format, one of {', '.join(FileFormat)}")
    return found


def read_data(
    file: str,
    samples: SampleOptions,
    labels: LabelOptions | None = None,
    *,
    like: Dataset | None = None,
    hierarchy: Hierarchy | None = None,
    extra: Sequence[str] | str = (),
) -> Dataset:
    """A data file as a :class:`nhsvm.datasets.Dataset`.

    Parameters
    ----------
    file : str
        ``-`` is standard input.
    samples : SampleOptions
    labels : LabelOptions, optional
        None reads samples only; labels that are there are not looked at.
    like : Dataset, optional
        The training set of this one: features, hierarchy and form of labels will be the same.
    hierarchy : Hierarchy, optional
        Instead of a file in ``labels``.
    extra : names of further columns to keep, or "*" for all
        Only of tables.

    Raises
    ------
    NHSVMError
        A child of it: for options that do not go together, and for whatever is wrong with the file.
    """
    kind = format_of(file, samples)
    reader, options = reader_of(kind, file, samples, labels, like=like, hierarchy=hierarchy, extra=extra)
    return only_where(reader(file, **options), samples)


def reader_of(
    kind: FileFormat,
    file: str,
    samples: SampleOptions,
    labels: LabelOptions | None,
    *,
    like: Dataset | None = None,
    hierarchy: Hierarchy | None = None,
    extra: Sequence[str] | str = (),
) -> tuple[Any, dict[str, Any]]:
    """The reader in :mod:`nhsvm.datasets` of a file, and its options; see :func:`read_data`."""
    from nhsvm import datasets

    if kind is FileFormat.blocks:
        return datasets.open_blocks, _blocks_options(samples, labels, like, hierarchy, extra)
    options: dict[str, Any] = {"on_error": "skip" if samples.on_error is OnError.skip else "raise", "like": like}
    if kind.is_table:
        options |= _table_options(kind, samples, labels, hierarchy, extra)
    else:
        _refuse_columns(kind, samples, labels, extra)
        options |= _other_options(kind, samples, labels, hierarchy)
    if kind is FileFormat.parquet:
        needs("polars", "tables", "reading Parquet files")
        if file == "-":
            raise OptionError("a Parquet file cannot be read from standard input; give its name")
    readers = {
        FileFormat.svmlight: datasets.read_svmlight,
        FileFormat.lshtc: datasets.read_lshtc,
        FileFormat.arff: datasets.read_hmc_arff,
        FileFormat.csv: datasets.read_csv,
        FileFormat.tsv: datasets.read_csv,
        FileFormat.jsonl: datasets.read_jsonl,
        FileFormat.parquet: datasets.read_parquet,
    }
    return readers[kind], options


def _table_options(
    kind: FileFormat,
    samples: SampleOptions,
    labels: LabelOptions | None,
    hierarchy: Hierarchy | None,
    extra: Sequence[str] | str,
) -> dict[str, Any]:
    text, features = samples.text or None, expanded(samples.features or ())
    if not text and not features:
        if kind is not FileFormat.jsonl:
            raise OptionError("say where the samples are: --text COLUMN, or --features COLUMN")
        text = ["text"]
    wanted = extra if isinstance(extra, str) else [*extra, *(column for column, _ in conditions(samples))]
    options: dict[str, Any] = {
        "text": text,
        "features": features or None,
        "extra": wanted if isinstance(wanted, str) else list(dict.fromkeys(wanted)),
    }
    if kind is not FileFormat.parquet:
        options["encoding"] = samples.encoding or "utf-8"
    if kind in (FileFormat.csv, FileFormat.tsv):
        names = None if samples.columns is None else [name.strip() for name in samples.columns.split(",")]
        options |= {"columns": names, "delimiter": samples.delimiter or ("\t" if kind is FileFormat.tsv else ",")}
    elif samples.columns is not None or samples.delimiter is not None:
        raise OptionError(f"--columns and --delimiter are for CSV files, not for {kind}")
    if samples.ignore_feature is not None or samples.any_order is not None:
        raise OptionError(f"--ignore-feature and --any-order are for files of numbered features, not for {kind}")
    return options | _table_labels(kind, labels, hierarchy)


def _table_labels(kind: FileFormat, labels: LabelOptions | None, hierarchy: Hierarchy | None) -> dict[str, Any]:
    if labels is None:
        return {"label": None}
    label = labels.label
    if label is None and labels.path is None and not labels.level:
        if kind is not FileFormat.jsonl:
            raise OptionError(
                "say where the labels are: --label COLUMN, --path COLUMN, or --level COLUMN for each level"
            )
        label = "labels"
    options = {
        "label": label,
        "path": labels.path,
        "levels": labels.level or None,
        "separator": labels.separator or " > ",
        "label_separator": labels.label_separator,
        "qualified": not labels.last_part,
        "drop_implied": bool(labels.drop_implied),
    }
    default = str if kind in (FileFormat.csv, FileFormat.tsv) else None
    return options | _common_labels(labels, hierarchy, default)


def _common_labels(labels: LabelOptions, hierarchy: Hierarchy | None, label_type: type | None) -> dict[str, Any]:
    kind = {None: label_type, LabelType.str: str, LabelType.int: int}[labels.label_type]
    return {
        "label_type": kind,
        "hierarchy": labels.hierarchy if hierarchy is None else hierarchy,
        "drop_root": bool(labels.drop_root),
        "multilabel": labels.multilabel,
    }


def _other_options(
    kind: FileFormat, samples: SampleOptions, labels: LabelOptions | None, hierarchy: Hierarchy | None
) -> dict[str, Any]:
    """Options of the readers of svmlight, LSHTC and ARFF files."""
    if kind is FileFormat.arff:
        return _arff_options(samples, labels)
    options: dict[str, Any] = {"labelled": False}
    if labels is not None:
        options = _common_labels(labels, hierarchy, int)
        if kind is FileFormat.lshtc and options.pop("label_type") is not int:
            raise OptionError("labels of LSHTC files are whole numbers; for names say --format svmlight --any-order")
    if kind is FileFormat.lshtc:
        return options | {"ignore": samples.ignore_feature}
    if samples.ignore_feature is not None:
        raise OptionError("--ignore-feature is for LSHTC files")
    return options | {"sort": bool(samples.any_order)}


def _arff_options(samples: SampleOptions, labels: LabelOptions | None) -> dict[str, Any]:
    if samples.ignore_feature is not None or samples.any_order is not None:
        raise OptionError("--ignore-feature and --any-order are for files of numbered features, not for arff")
    if labels is not None and (labels.hierarchy is not None or labels.label_type is not None):
        raise OptionError("an ARFF file has its own hierarchy and labels: leave out --hierarchy and --label-type")
    # samples without labels are fine where labels are not asked for
    options: dict[str, Any] = {"multilabel": True if labels is None else labels.multilabel}
    return options | ({} if samples.encoding is None else {"encoding": samples.encoding})


def _blocks_options(
    samples: SampleOptions,
    labels: LabelOptions | None,
    like: Dataset | None,
    hierarchy: Hierarchy | None,
    extra: Sequence[str] | str,
) -> dict[str, Any]:
    _refuse_columns(FileFormat.blocks, samples, labels, extra)
    if samples.ignore_feature is not None or samples.any_order is not None:
        raise OptionError("--ignore-feature and --any-order are for files of numbered features: give them to convert")
    if labels is None:
        return {"labelled": False, "like": like}
    if labels.label_type is not None:
        raise OptionError("blocks know what their labels are: give --label-type to convert")
    options = _common_labels(labels, hierarchy, None)
    return {name: options[name] for name in ("hierarchy", "drop_root", "multilabel")} | {"like": like}


def _refuse_columns(
    kind: FileFormat, samples: SampleOptions, labels: LabelOptions | None, extra: Sequence[str] | str
) -> None:
    """An error for options that name columns, of a file that has none."""
    given: dict[str, Any] = {"text": samples.text, "features": samples.features, "where": samples.where}
    given |= {"columns": samples.columns, "delimiter": samples.delimiter}
    if kind is not FileFormat.arff:
        given["encoding"] = samples.encoding
    if labels is not None:
        given |= {"label": labels.label, "path": labels.path, "level": labels.level, "last_part": labels.last_part}
        given |= {"separator": labels.separator, "label_separator": labels.label_separator}
        given |= {"drop_implied": labels.drop_implied}
    name = next((name for name, value in given.items() if value), None)
    if name is not None:
        raise OptionError(f"--{name.replace('_', '-')} is for CSV, TSV, JSONL and Parquet files, not for {kind}")
    if extra:
        raise OptionError(f"columns can be kept of CSV, TSV, JSONL and Parquet files, not of {kind}")


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


def conditions(samples: SampleOptions) -> list[tuple[str, str]]:
    """``--where`` as pairs of column and value."""
    pairs = [given.partition("=") for given in samples.where or ()]
    for (column, sign, _), given in zip(pairs, samples.where or (), strict=True):
        if not sign or not column:
            raise OptionError(f"--where must be COLUMN=VALUE, such as split=train, not {given!r}")
    return [(column, value) for column, _, value in pairs]


def only_where(dataset: Dataset, samples: SampleOptions, *, may_be_empty: bool = False) -> Dataset:
    """The samples that ``--where`` asks for."""
    pairs = conditions(samples)
    if not pairs:
        return dataset
    kept = [
        k for k in range(dataset.n_samples) if all(_shown(dataset.extra[column][k]) == value for column, value in pairs)
    ]
    if not kept and not may_be_empty:
        raise DataError(f"no sample has {' and '.join(samples.where or ())}")
    return subset(dataset, kept)


def _shown(value: Any) -> str:
    """A cell as one would type it."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def subset(dataset: Dataset, rows: Sequence[int]) -> Dataset:
    """Some samples of a data set, in this order."""
    y, texts = dataset.y, dataset.texts
    extra: Mapping[str, list[Any]] = {name: [column[k] for k in rows] for name, column in dataset.extra.items()}
    return replace(
        dataset,
        y=y if y is None else [y[k] for k in rows] if isinstance(y, list) else y[list(rows)],
        X=None if dataset.X is None else dataset.X[list(rows)],
        texts=None if texts is None else [texts[k] for k in rows],
        extra=extra,
    )
