"""Tables to files: CSV, TSV, JSON Lines and Parquet, some rows at a time."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Protocol

from nhsvm.cli._output import needs, output_file
from nhsvm.errors import OptionError

Columns = dict[str, list[Any]]
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # what OWASP lists; before some of them blanks are left out
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_DIGITS = 6  # of scores and probabilities in text


class OutputFormat(StrEnum):
    """Formats of tables that are written."""

    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"
    parquet = "parquet"


class Writer(Protocol):
    """Takes rows, as columns of the same names every time."""

    def write(self, columns: Columns) -> None:
        """Some more rows."""

    def finish(self) -> None:
        """No more will come."""


@contextmanager
def table_writer(
    path: str, format: OutputFormat | None, *, joined_by: str, width: int | None, safe: bool = False
) -> Iterator[Writer]:
    """A writer of a file, which takes its name when all is written; ``-`` is standard output.

    Parameters
    ----------
    path : str
    format : OutputFormat, optional
        By default the ending says it; of standard output CSV.
    joined_by : str
        Between the items of a list in a cell of a CSV file.
    width : int, optional
        Of lists that all have so many items, each becomes a column of a CSV file.
    safe : bool
        Write cells of a CSV file as :func:`harmless` makes them.
    """
    kind = output_format(path, format)
    if kind is OutputFormat.parquet:
        needs("polars", "tables", "writing Parquet files")
        if path == "-":
            raise OptionError("a Parquet file cannot be written to standard output; give its name")
    with output_file(path) as stream:
        writer: Writer
        if kind is OutputFormat.parquet:
            writer = _Parquet(stream)
        elif kind is OutputFormat.jsonl:
            writer = _Jsonl(stream)
        else:
            writer = _Csv(stream, "\t" if kind is OutputFormat.tsv else ",", joined_by, width, safe)
        yield writer
        writer.finish()


def check_safe(safe: bool, kind: OutputFormat) -> None:
    """An error for ``--csv-safe`` where there are no cells that a spreadsheet could run."""
    if safe and kind not in (OutputFormat.csv, OutputFormat.tsv):
        raise OptionError(f"--csv-safe is for CSV and TSV, not for {kind}")


def harmless(value: Any) -> Any:
    """A cell that spreadsheets show and do not run: with an apostrophe before what begins like a formula.

    Numbers stay as they are, also as text: -1 is no formula that could do anything.

    Examples
    --------
    >>> [harmless(value) for value in ("=cmd()", "@SUM(A1)", "-1+A1", "-1", "+2.5e-3", -0.5, "a=b")]
    ["'=cmd()", "'@SUM(A1)", "'-1+A1", '-1', '+2.5e-3', -0.5, 'a=b']
    """
    if isinstance(value, str) and value.startswith(_FORMULAS) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def output_format(path: str, format: OutputFormat | None) -> OutputFormat:
    """The format of a file to write."""
    if format is not None:
        return format
    if path == "-":
        return OutputFormat.csv
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in set(OutputFormat):
        raise OptionError(
            f"-o {path}: cannot tell the format from the name; say --to, one of {', '.join(OutputFormat)}"
        )
    return OutputFormat(ending)


def encoded(text: str) -> bytes:
    r"""UTF-8; half of a pair of surrogates, which has none, is escaped as in JSON.

    Examples
    --------
    >>> encoded("caf\u00e9 \ud800")
    b'caf\xc3\xa9 \\ud800'
    """
    return text.encode("utf-8", "backslashreplace")


class _Csv:
    def __init__(self, stream: IO[bytes], delimiter: str, joined_by: str, width: int | None, safe: bool) -> None:
        self._stream, self._delimiter, self._joined_by, self._width = stream, delimiter, joined_by, width
        self._made = harmless if safe else _as_it_is
        self._begun = False

    def write(self, columns: Columns) -> None:
        flat = self._flat(columns)
        head = [] if self._begun else [[self._made(name) for name in flat]]
        rows = [*head, *zip(*flat.values(), strict=True)]
        self._begun = True
        text = self._text(rows, csv.QUOTE_MINIMAL)
        if "\r" in text:  # an end of a line to readers, which the module does not quote before Python 3.13
            text = self._text(rows, csv.QUOTE_ALL)
        self._stream.write(encoded(text))

    def _text(self, rows: list[Any], quoting: Any) -> str:
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter, lineterminator="\n", quoting=quoting).writerows(rows)
        return text.getvalue()

    def finish(self) -> None:
        pass

    def _flat(self, columns: Columns) -> Columns:
        """Columns whose cells are no lists."""
        flat: Columns = {}
        for name, column in columns.items():
            if self._width is None or not _answers(column, self._width):
                flat[name] = [self._cell(value) for value in column]
                continue
            for k in range(self._width):
                flat[f"{_singular(name)}_{k + 1}"] = [self._cell(row[k]) for row in column]
        return flat

    def _cell(self, value: Any) -> Any:
        if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
            return self._joined_by.join(str(self._cell(item)) for item in value)  # each could become a cell elsewhere
        if isinstance(value, float):
            return f"{value:.{_DIGITS}g}"
        if isinstance(value, (list, dict, bool)):
            return json.dumps(value, ensure_ascii=False)
        return self._made(value)


def _as_it_is(value: Any) -> Any:
    return value


def _answers(column: list[Any], width: int) -> bool:
    return all(isinstance(value, list) and len(value) == width for value in column)


def _singular(name: str) -> str:
    return "probability" if name.endswith("probabilities") else name.removesuffix("s")


class _Jsonl:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, columns: Columns) -> None:
        lines = [
            json.dumps({name: _rounded(value) for name, value in zip(columns, row, strict=True)}, ensure_ascii=False)
            for row in zip(*columns.values(), strict=True)
        ]
        text = "".join(f"{line}\n" for line in lines)
        self._stream.write(encoded(text))

    def finish(self) -> None:
        pass


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    return [_rounded(item) for item in value] if isinstance(value, list) else value


class _Parquet:
    """Columns are kept until the end, since a Parquet file is written in one piece."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._columns = stream, Columns()

    def write(self, columns: Columns) -> None:
        for name, column in columns.items():
            self._columns.setdefault(name, []).extend(column)

    def finish(self) -> None:
        import polars

        made = io.BytesIO()  # polars writes to files past Python, and then has errors of its own for a full disk
        try:
            frame = polars.DataFrame(self._columns)
        except (TypeError, UnicodeEncodeError, polars.exceptions.PolarsError) as error:
            raise OptionError(f"these rows do not make a Parquet file: {' '.join(str(error).split())[:200]}") from error
        frame.write_parquet(made)
        self._stream.write(made.getbuffer())
