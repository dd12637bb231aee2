"""What commands write: results to standard output, all else to standard error, files and tables all or nothing."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import stat
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, TypeAlias, get_args

import typer

from nhsvm._atomic import new_file
from nhsvm.errors import OptionError

if TYPE_CHECKING:
    from nhsvm.typing import JSON

Columns: TypeAlias = "dict[str, list[JSON]]"

# -- standard output and standard error --------------------------------------------------------------------------------


def note(text: str) -> None:
    """A line on standard error, beside the result."""
    typer.echo(text, err=True)


# advice in the words of Python, and in those of the command line
_AS_TYPED = {
    "encoding=...": "--encoding ...",
    "label_type=str": "--label-type str",
    "multilabel=True": "--multilabel",
    "memory_limit": "--memory-limit",
    "min_df of the vectorizer": "--min-df",
    "n_jobs": "--jobs",
    "certify=False": "--no-certify",
    "solver='dual'": "--solver dual",
    "solver='sgd'": "--solver sgd",
}


def as_typed(text: str) -> str:
    """Words of the library in those of the command line; not in quotes, names of files and longer words.

    Examples
    --------
    >>> as_typed("memory_limit must be a size; my/memory_limit.csv:3: unknown label 'memory_limit'")
    "--memory-limit must be a size; my/memory_limit.csv:3: unknown label 'memory_limit'"
    """
    for python, typed in _AS_TYPED.items():
        text = re.sub(rf"(?<![\w'\"./\\-]){re.escape(python)}(?![\w'\"/\\-]|\.\w)", typed, text)
    return text


def broken(text: str) -> str:
    """Lines broken between words where a terminal is too narrow for them; as they are elsewhere.

    What goes on in the next line begins below the last column of the first, if there are columns.
    """
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(_broken(line, width) if len(line) > width else line for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    columns = [found.end() for found in re.finditer(r" {2,}", line[: width * 2 // 3])]
    below = " " * (columns[-1] if columns else 0)
    return textwrap.fill(line, width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


def print_json(result: Mapping[str, object]) -> None:
    """One JSON object on standard output; numbers that JSON does not have are null."""
    typer.echo(json.dumps(as_json(result), ensure_ascii=False))


def as_json(value: object) -> JSON:
    """Plain JSON of mappings, sequences, sets, numpy arrays and scalars; everything else as text.

    Examples
    --------
    >>> import numpy as np
    >>> as_json({"gap": np.float32(0.5), "best": math.inf, 3: ("a", np.arange(2))})
    {'gap': 0.5, 'best': None, '3': ['a', [0, 1]]}
    """
    if hasattr(value, "tolist"):  # of numpy, which is not imported here
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((as_json(item) for item in value), key=str)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)


# -- files -------------------------------------------------------------------------------------------------------------


def check_writable(path: str | Path, *inputs: str | Path | None, what: str = "-o") -> None:
    """An error if a file cannot be written, or would overwrite one that is read; nothing is touched."""
    if str(path) == "-":
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise OptionError(f"{what} {path} is a folder: give the name of a file in it")
    if target.exists() and not os.access(target, os.W_OK):
        raise OptionError(f"{what} {path} cannot be written: permission denied")
    if not target.parent.is_dir():
        raise OptionError(f"{what} {path} cannot be written: there is no folder {target.parent}")
    if not target.exists() and not os.access(target.parent, os.W_OK | os.X_OK):
        raise OptionError(f"{what} {path} cannot be written: permission denied in {target.parent}")
    for given in inputs:
        if given is not None and Path(given).exists() and target.exists() and os.path.samefile(given, target):
            raise OptionError(f"{what} {path} would overwrite the file that is read: choose another name")


def check_model_path(path: Path, *inputs: str | Path | None) -> None:
    """The same for a model file, which is never written to a device, a pipe or standard output."""
    if str(path) == "-":
        raise OptionError("a model cannot be written to standard output: give the name of a file")
    check_writable(path, *inputs)
    if path.exists() and not path.is_file():
        raise OptionError(f"-o {path} is not a regular file: choose another name for the model")


@contextmanager
def output_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write bytes to, which takes its name when it is complete; ``-`` is standard output.

    After an error there is no file, or still the old one. What is no regular file, such as a pipe, is written to as it
    is. An error of the disk is an OptionError that names the file.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check_writable(path)
    target = Path(os.path.realpath(path))
    with writing(path):
        if target.exists() and not stat.S_ISREG(os.stat(target).st_mode):
            with target.open("wb") as stream:
                yield stream
            return
        with new_file(path) as stream:
            yield stream


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Name the file in an error of the disk."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise OptionError(f"{path} cannot be written: {error.strerror or error}") from error


def needs(module: str, extra: str, what: str) -> None:
    """An error if an optional part is not installed."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise OptionError(f"{what} needs {module}: pip install 'nhsvm[{extra}]'")


# -- tables ------------------------------------------------------------------------------------------------------------

_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # what OWASP lists; before some of them blanks are left out
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_DIGITS = 6  # of scores and probabilities in text


OutputFormat: TypeAlias = Literal["csv", "tsv", "jsonl", "parquet"]
"""Of tables."""


@contextmanager
def table_writer(
    path: str, format: OutputFormat | None, *, joined_by: str, width: int | None, safe: bool = False
) -> Iterator[Callable[[Columns], None]]:
    """A function that adds rows to a file, which takes its name when all is written; ``-`` is standard output.

    Rows are columns of the same names every time. In CSV, the items of a list are ``joined_by`` a text; where lists all
    have ``width`` items, each becomes a column. ``safe`` cells are those that :func:`harmless` makes.
    """
    kind = output_format(path, format)
    if kind == "parquet":
        needs("polars", "tables", "writing Parquet files")
        if path == "-":
            raise OptionError("a Parquet file cannot be written to standard output; give its name")
    with output_file(path) as stream:
        if kind == "parquet":  # which is written in one piece
            columns: Columns = {}
            yield partial(add_rows, columns)
            stream.write(_parquet(columns))
        elif kind == "jsonl":
            yield lambda columns: _write_jsonl(stream, columns)
        else:
            yield _Csv(stream, "\t" if kind == "tsv" else ",", joined_by, width, safe).write


def add_rows(columns: Columns, more: Columns) -> None:
    """Add rows to columns."""
    for name, column in more.items():
        columns.setdefault(name, []).extend(column)


def output_format(path: str, format: OutputFormat | None) -> OutputFormat:
    """The format of a file to write."""
    if format is not None:
        return format
    if path == "-":
        return "csv"
    formats: tuple[OutputFormat, ...] = get_args(OutputFormat)
    for kind in formats:
        if Path(path).suffix.lower() == f".{kind}":
            return kind
    raise OptionError(f"-o {path}: cannot tell the format from the name; say --to, one of {', '.join(formats)}")


def check_safe(safe: bool, kind: OutputFormat) -> None:
    """An error for ``--csv-safe`` where there are no cells that a spreadsheet could run."""
    if safe and kind not in ("csv", "tsv"):
        raise OptionError(f"--csv-safe is for CSV and TSV, not for {kind}")


def harmless(value: JSON) -> JSON:
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
        self._made: Callable[[JSON], JSON] = harmless if safe else lambda value: value
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

    def _text(self, rows: Iterable[Iterable[JSON]], quoting: Literal[0, 1]) -> str:
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter, lineterminator="\n", quoting=quoting).writerows(rows)
        return text.getvalue()

    def _flat(self, columns: Columns) -> Columns:
        """Columns whose cells are no lists."""
        flat: Columns = {}
        for name, column in columns.items():
            width = self._width
            if width is None or not all(isinstance(value, list) and len(value) == width for value in column):
                flat[name] = [self._cell(value) for value in column]
                continue
            one = "probability" if name.endswith("probabilities") else name.removesuffix("s")
            for k in range(width):
                flat[f"{one}_{k + 1}"] = [self._cell(row[k]) for row in column]
        return flat

    def _cell(self, value: JSON) -> JSON:
        if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
            return self._joined_by.join(str(self._cell(item)) for item in value)  # each could become a cell elsewhere
        if isinstance(value, float):
            return f"{value:.{_DIGITS}g}"
        if isinstance(value, (list, dict, bool)):
            return json.dumps(value, ensure_ascii=False)
        return self._made(value)


def _write_jsonl(stream: IO[bytes], columns: Columns) -> None:
    for row in zip(*columns.values(), strict=True):
        line = {name: _rounded(value) for name, value in zip(columns, row, strict=True)}
        stream.write(encoded(f"{json.dumps(line, ensure_ascii=False)}\n"))


def _rounded(value: JSON) -> JSON:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _parquet(columns: Columns) -> memoryview:
    """The bytes of a file: polars writes to files past Python, and then has errors of its own for a full disk."""
    import polars

    made = io.BytesIO()
    try:
        frame = polars.DataFrame(columns)
    except (TypeError, UnicodeEncodeError, polars.exceptions.PolarsError) as error:
        raise OptionError(f"these rows do not make a Parquet file: {' '.join(str(error).split())[:200]}") from error
    frame.write_parquet(made)
    return made.getbuffer()
