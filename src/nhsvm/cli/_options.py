"""Options that say how to read a data file, in two groups; see :mod:`nhsvm.cli._inputs`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer


class FileFormat(StrEnum):
    """Formats of data files; by default the ending of the name says it (``.gz`` aside)."""

    svmlight = "svmlight"
    lshtc = "lshtc"
    arff = "arff"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"
    blocks = "blocks"

    @property
    def is_table(self) -> bool:
        """Whether there are named columns."""
        return self in (FileFormat.csv, FileFormat.tsv, FileFormat.jsonl, FileFormat.parquet)

    @property
    def is_numbered(self) -> bool:
        """Whether features have numbers for names."""
        return self in (FileFormat.svmlight, FileFormat.lshtc)


class LabelType(StrEnum):
    """What labels are: text, or whole numbers."""

    str = "str"
    int = "int"


class OnError(StrEnum):
    """What to do about a bad row."""

    stop = "stop"
    skip = "skip"


DataFile = Annotated[
    str, typer.Argument(metavar="DATA", help="Data file, gzipped or not; - is standard input (with --format).")
]


def option(*names: str, default: str = "", **settings: Any) -> Any:
    """An option that is None unless it is given; ``default`` says in words what happens then."""
    return typer.Option(*names, show_default=default or False, **settings)


_sample = partial(option, rich_help_panel="Samples")
_label = partial(option, rich_help_panel="Labels")


@dataclass(frozen=True)
class SampleOptions:
    """Where the samples of a file are; None (or empty) is what was not said."""

    format: Annotated[
        FileFormat | None,
        _sample(
            metavar="NAME", help="svmlight, lshtc, arff, csv, tsv, jsonl, parquet, blocks.", default="by the ending"
        ),
    ] = None
    text: Annotated[
        list[str] | None,
        _sample(metavar="COLUMN", help="Column of text; may be repeated.", default="text, in JSONL"),
    ] = None
    features: Annotated[
        list[str] | None,
        _sample(metavar="COLUMN", help="Column of numbers; may be repeated, or e0..e99."),
    ] = None
    where: Annotated[
        list[str] | None,
        _sample(metavar="COLUMN=VALUE", help="Only rows with this value; may be repeated."),
    ] = None
    columns: Annotated[
        str | None,
        _sample(metavar="A,B,...", help="Names of all columns of a CSV file without a header."),
    ] = None
    delimiter: Annotated[str | None, _sample(help="Between the cells of a CSV file.", default="by the format")] = None
    encoding: Annotated[str | None, _sample(help="Of text.", default="utf-8")] = None
    ignore_feature: Annotated[
        int | None,
        _sample(metavar="NUMBER", help="LSHTC: a feature to leave out; 0 in the sets of 2010."),
    ] = None
    any_order: Annotated[bool | None, _sample("--any-order", help="svmlight: features may be in any order.")] = None
    on_error: Annotated[OnError, _sample(help="Bad rows: stop, or skip and count them.", default="stop")] = OnError.stop


@dataclass(frozen=True)
class LabelOptions:
    """Where the labels are and what they mean; None (or empty) is what was not said."""

    label: Annotated[
        str | None,
        _label(metavar="COLUMN", help="Column of labels.", default="labels, in JSONL"),
    ] = None
    path: Annotated[
        str | None,
        _label(metavar="COLUMN", help='Column of paths such as "Science > Physics".'),
    ] = None
    level: Annotated[
        list[str] | None,
        _label(metavar="COLUMN", help="Column of one level, from the top; repeated for each."),
    ] = None
    hierarchy: Annotated[
        Path | None,
        _label(metavar="FILE", help="Hierarchy: cat_hier.txt, parent-child TSV or CSV, JSON; .gz too."),
    ] = None
    separator: Annotated[str | None, _label(help="Between the parts of a path.", default='" > "')] = None
    label_separator: Annotated[str | None, _label(help="Between several labels in a cell.")] = None
    last_part: Annotated[
        bool | None,
        _label("--last-part", help="A label is the last part of its path, not all of it."),
    ] = None
    label_type: Annotated[
        LabelType | None,
        _label(help="Labels are text or whole numbers.", default="by the format"),
    ] = None
    multilabel: Annotated[
        bool | None,
        _label("--multilabel/--single-label", help="Whether samples have sets of labels.", default="if any has two"),
    ] = None
    drop_root: Annotated[bool | None, _label("--drop-root", help="Leave out the only root of the hierarchy.")] = None
    drop_implied: Annotated[
        bool | None,
        _label("--drop-implied", help="Leave out labels above others of a sample."),
    ] = None
