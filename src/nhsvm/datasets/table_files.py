"""CSV, TSV, JSON Lines and Parquet files: a reader and the records of each."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Unpack

from nhsvm.datasets.base import Dataset
from nhsvm.datasets.files import LONGEST, AnyPath, Trouble, checked_encoding, checked_path, lines, opened, shown
from nhsvm.datasets.tables import Records, Table, TableOptions
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.registry import Declared, Option


class LineOptions(TableOptions, total=False):
    """Those of text files."""

    encoding: Annotated[str, Option("utf-8", "str", "Of the file.")]


class CsvOptions(LineOptions, total=False):
    """Those of CSV files."""

    columns: Annotated[
        Sequence[str] | None,
        Option(None, "list of str, optional", "Names of all columns, for a file that does not begin with them."),
    ]
    delimiter: Annotated[
        str | None,
        Option(None, "str, optional", "By default a tab in ``.tsv`` and ``.tab`` files, else a comma."),
    ]
    quotes: Annotated[
        bool | None,
        Option(None, "bool, optional", 'Whether ``"`` encloses cells. By default unless the delimiter is a tab.'),
    ]


CSV = Declared(CsvOptions, label_type=Option(str, "{str, int}, optional", "Of ``label``."))
JSONL = Declared(
    LineOptions,
    text=Option(
        None,
        "str or list of str",
        'Field of text; of several, each is a line of the text. Without text and features it is ``"text"``.',
    ),
    label=Option(
        "labels",
        "str or None",
        "Field of the labels, unless ``path`` or ``levels`` is given. None reads samples without labels.",
    ),
)
PARQUET = Declared(TableOptions)


@CSV
def read_csv(file: AnyPath, **options: Unpack[CsvOptions]) -> Dataset:
    r"""Samples in a CSV or TSV file; gzipped too.

    Parameters
    ----------
    file : path
        ``-`` is standard input, of all readers but that of Parquet files.
    {options}

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = "title,topic\nOn quarks,Science > Physics\nOn cells,Science > Biology\nOn law,Law\n"
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "papers.csv"
    ...     _ = file.write_text(text)
    ...     data = read_csv(file, text="title", path="topic")
    >>> data.y.tolist()
    ['Science > Physics', 'Science > Biology', 'Law']
    >>> print(data.hierarchy.draw())
    Science
    ├── Science > Physics
    └── Science > Biology
    Law
    """
    table, records = csv_records(file, **CSV.complete("read_csv", options))
    return table.read(records)


def csv_records(file: AnyPath, **options: Unpack[CsvOptions]) -> tuple[Table, Records]:
    """The options of :func:`read_csv`, checked, and its records, yet to be read."""
    source, trouble = checked_path(file), Trouble(checked_path(file), options["on_error"])
    delimiter, columns, quotes = options["delimiter"], options["columns"], options["quotes"]
    delimiter = _delimiter(source) if delimiter is None else delimiter
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n ':
        raise OptionError(f"delimiter must be one character, no quote or blank, not {delimiter!r}")
    table = Table(trouble, options)
    names = None if columns is None else _checked_names(list(columns), source, None)
    if names is not None:
        table.see_columns(names)
        table.check_columns(names)
    quoted = delimiter != "\t" if quotes is None else quotes
    numbered = _Numbered(lines(source, checked_encoding(options["encoding"]), trouble))
    reader = csv.reader(
        numbered, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE, strict=True
    )
    return table, _LIMIT.while_reading(_csv_rows(reader, numbered, names, table, source, trouble), numbered)


def _delimiter(file: Path) -> str:
    endings = [ending.lower() for ending in file.suffixes if ending.lower() != ".gz"]
    return "\t" if endings and endings[-1] in (".tsv", ".tab") else ","


class _Numbered:
    """Lines of text, and the number of the first one since it was asked last: a quoted cell may go over several."""

    def __init__(self, source: Generator[tuple[int, str]]) -> None:
        self._source, self.first = source, 0

    def __iter__(self) -> _Numbered:
        return self

    def __next__(self) -> str:
        number, line = next(self._source)
        self.first = self.first or number
        return line

    def close(self) -> None:
        self._source.close()


def _csv_rows(
    reader: Any, numbered: _Numbered, names: list[str] | None, table: Table, file: Path, trouble: Trouble
) -> Generator[tuple[int, dict[str, Any]]]:
    while True:
        numbered.first = 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if names is None:
                raise FileFormatError(file, numbered.first, str(error)) from None
            trouble.report(numbered.first, str(error))
            continue
        if not cells:
            continue
        if names is None:
            names = _checked_names([cell.strip() for cell in cells], file, numbered.first)
            table.see_columns(names)
            table.check_columns(names, numbered.first)
        elif len(cells) != len(names):
            trouble.report(numbered.first, f"expected {len(names)} cells, not {len(cells)}")
        else:
            yield numbered.first, dict(zip(names, cells, strict=True))


def _checked_names(names: list[str], file: Path, line: int | None) -> list[str]:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FileFormatError(file, line, f"there are two columns {shown(twice)}")
    return names


class _FieldLimit:
    """The largest cell that the csv module takes is a setting of the whole process: raised while anyone reads."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = threading.Lock(), 0, 0

    def while_reading(self, records: Records, source: _Numbered) -> Records:
        with self._raised(), closing(source):
            yield from records

    @contextmanager
    def _raised(self) -> Iterator[None]:
        with self._lock:
            if not self._users:
                self._before = csv.field_size_limit(LONGEST)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    csv.field_size_limit(self._before)


_LIMIT = _FieldLimit()


# -- JSON Lines --------------------------------------------------------------------------------------------------------


@JSONL
def read_jsonl(file: AnyPath, **options: Unpack[LineOptions]) -> Dataset:
    r"""Samples in a JSON Lines file, an object a line; gzipped too.

    Labels are text or whole numbers, one or a list of them; paths are text, ``"Science > Physics"``, or a list of such.
    A feature is a number, or a list of as many numbers in every line (an embedding); null is a missing value.

    Parameters
    ----------
    file : path
    {options}

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = '{"text": "woof", "labels": ["dog", "pet"]}\n{"text": "rustle", "labels": ["oak"]}\n'
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "docs.jsonl"
    ...     _ = file.write_text(text)
    ...     data = read_jsonl(file)
    >>> data.texts, data.y
    (['woof', 'rustle'], [['dog', 'pet'], ['oak']])
    """
    table, records = jsonl_records(file, **JSONL.complete("read_jsonl", options))
    return table.read(records)


def jsonl_records(file: AnyPath, **options: Unpack[LineOptions]) -> tuple[Table, Records]:
    """The options of :func:`read_jsonl`, checked, and its records, yet to be read."""
    source, trouble = checked_path(file), Trouble(checked_path(file), options["on_error"])
    if options["label"] == "labels" and (options["path"] is not None or options["levels"] is not None):
        options["label"] = None
    if options["text"] is None and options["features"] is None:
        options["text"] = "text"
    table = Table(trouble, options)
    return table, _objects(source, checked_encoding(options["encoding"]), table, trouble)


def _objects(file: Path, encoding: str, table: Table, trouble: Trouble) -> Generator[tuple[int, dict[str, Any]]]:
    decoder = json.JSONDecoder(parse_constant=_refused)
    first = True
    with closing(lines(file, encoding, trouble)) as source:
        for number, line in source:
            if not line.strip():
                continue
            try:
                found = decoder.decode(line)
            except json.JSONDecodeError as error:
                trouble.report(number, f"not JSON: {error.msg} at character {error.pos + 1}")
                continue
            except (ValueError, RecursionError) as error:
                why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                trouble.report(number, f"not JSON: {why}")
                continue
            if not isinstance(found, dict):
                trouble.report(number, f"expected a JSON object, not {shown(line.strip())}")
                continue
            if first:
                table.see_columns(list(found))
                if not trouble.skipping:
                    table.check_columns(list(found), number)
            first = False
            yield number, found


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number; a missing value is null")


# -- Parquet, by polars ------------------------------------------------------------------------------------------------

_BATCH = 1 << 15  # rows


@PARQUET
def read_parquet(file: AnyPath, **options: Unpack[TableOptions]) -> Dataset:
    """Samples in a Parquet file; needs polars (``pip install 'nhsvm[tables]'``).

    Columns of lists are read as in :func:`read_jsonl`: several labels, or a vector of features. A missing value is null
    or NaN. Errors name the row, the first of which is 1.

    Parameters
    ----------
    file : path
    {options}

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import polars
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "docs.parquet"
    ...     polars.DataFrame({"text": ["woof", "rustle"], "label": ["dog", "oak"]}).write_parquet(file)
    ...     data = read_parquet(file, text="text", label="label")
    >>> data.y.tolist()
    ['dog', 'oak']
    """
    table, records = parquet_records(file, **PARQUET.complete("read_parquet", options))
    return table.read(records)


def parquet_records(file: AnyPath, **options: Unpack[TableOptions]) -> tuple[Table, Records]:
    """The options of :func:`read_parquet`, checked, and its records, yet to be read."""
    try:
        import polars
    except ImportError as error:
        raise ImportError("read_parquet() needs polars: pip install 'nhsvm[tables]'") from error
    source, trouble = checked_path(file), Trouble(checked_path(file), options["on_error"], unit="row")
    table = Table(trouble, options)
    return table, _parquet_rows(source, table, polars)


def _parquet_rows(file: Path, table: Table, polars: Any) -> Generator[tuple[int, dict[str, Any]]]:
    with opened(file), _blaming(file, polars):  # a missing or forbidden file is reported as for the other readers
        frame = polars.scan_parquet(file, glob=False)
        names = frame.collect_schema().names()
        table.see_columns(names)
        table.check_columns(names)
        n_rows = frame.select(polars.len()).collect().item()
    for start in range(0, n_rows, _BATCH):
        with _blaming(file, polars):
            batch = frame.select(table.columns).slice(start, _BATCH).collect()
        if batch.height != min(_BATCH, n_rows - start):
            raise FileFormatError(
                file, None, f"not a whole Parquet file: it has fewer rows than the {n_rows:,} it claims"
            )
        table.trouble.tell((start + batch.height) / n_rows)
        yield from enumerate(batch.iter_rows(named=True), start + 1)


@contextmanager
def _blaming(file: Path, polars: Any) -> Iterator[None]:
    try:
        yield
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException) as error:  # a panic is no Exception
        raise FileFormatError(file, None, f"not a whole Parquet file: {' '.join(str(error).split())[:200]}") from error
