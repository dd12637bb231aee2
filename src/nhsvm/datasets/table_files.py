"""CSV, TSV, JSON Lines and Parquet files: a reader and the records of each."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from types import ModuleType
from typing import Annotated, Literal, NoReturn, Unpack

from nhsvm.datasets.dataset import AnyPath, Dataset
from nhsvm.datasets.files import LONGEST, checked_encoding, lines, opened, shown
from nhsvm.datasets.tables import Records, Table, TableOptions
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.registry import Declared, Option
from nhsvm.typing import Options


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
    return CsvTable(file, CSV.complete("read_csv", options)).read()


class CsvTable(Table):
    """A file for :func:`read_csv`, yet to be read."""

    def __init__(self, file: AnyPath, options: Options) -> None:
        super().__init__(file, options)
        self._delimiter, self._quotes, columns = options["delimiter"], options["quotes"], options["columns"]
        self._encoding = checked_encoding(options["encoding"])
        if self._delimiter is None:
            endings = [ending.lower() for ending in self.file.suffixes if ending.lower() != ".gz"]
            self._delimiter = "\t" if endings and endings[-1] in (".tsv", ".tab") else ","
        if not isinstance(self._delimiter, str) or len(self._delimiter) != 1 or self._delimiter in '"\r\n ':
            raise OptionError(f"delimiter must be one character, no quote or blank, not {self._delimiter!r}")
        if self._quotes is None:
            self._quotes = self._delimiter != "\t"
        self._names = None if columns is None else self._checked(list(columns), None)

    def _checked(self, names: list[str], line: int | None) -> list[str]:
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise FileFormatError(self.file, line, f"there are two columns {shown(twice)}")
        self.see_columns(names, line)
        return names

    def records(self) -> Records:
        with _LIMIT.raised(), closing(lines(self.file, self._encoding, self.log)) as source:
            first, names = 0, self._names  # line of a record: a quoted cell may go over several

            def text() -> Iterator[str]:
                nonlocal first
                for number, line in source:
                    first = first or number
                    yield line

            quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self._quotes else csv.QUOTE_NONE
            reader = csv.reader(text(), delimiter=self._delimiter, quoting=quoting, strict=True)
            while True:
                first = 0
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    if names is None:
                        raise FileFormatError(self.file, first, str(error)) from None
                    self.log.report(first, str(error))
                    continue
                if not cells:
                    continue
                if names is None:
                    names = self._checked([cell.strip() for cell in cells], first)
                elif len(cells) != len(names):
                    self.log.report(first, f"expected {len(names)} cells, not {len(cells)}")
                else:
                    yield first, dict(zip(names, cells, strict=True))


class _FieldLimit:
    """The largest cell that the csv module takes is a setting of the whole process: raised while anyone reads."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = threading.Lock(), 0, 0

    @contextmanager
    def raised(self) -> Iterator[None]:
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
    return JsonTable(file, JSONL.complete("read_jsonl", options)).read()


class JsonTable(Table):
    """A file for :func:`read_jsonl`, yet to be read."""

    def __init__(self, file: AnyPath, options: Options) -> None:
        if options["label"] == "labels" and (options["path"] is not None or options["levels"] is not None):
            options = options | {"label": None}
        if options["text"] is None and options["features"] is None:
            options = options | {"text": "text"}
        super().__init__(file, options)
        self._encoding = checked_encoding(options["encoding"])

    def records(self) -> Records:
        decoder, first = json.JSONDecoder(parse_constant=_refuse), True
        with closing(lines(self.file, self._encoding, self.log)) as source:
            for number, line in source:
                if not line.strip():
                    continue
                try:
                    found = decoder.decode(line)
                except json.JSONDecodeError as error:
                    self.log.report(number, f"not JSON: {error.msg} at character {error.pos + 1}")
                    continue
                except (ValueError, RecursionError) as error:
                    why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                    self.log.report(number, f"not JSON: {why}")
                    continue
                if not isinstance(found, dict):
                    self.log.report(number, f"expected a JSON object, not {shown(line.strip())}")
                    continue
                if first:
                    self.see_columns(list(found), number, check=not self.log.skipping)
                first = False
                yield number, found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number; a missing value is null")


# -- Parquet, by polars ------------------------------------------------------------------------------------------------

BATCH = 1 << 15  # rows


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
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "docs.parquet"
    ...     polars.DataFrame({"text": ["woof", "rustle"], "label": ["dog", "oak"]}).write_parquet(file)
    ...     data = read_parquet(file, text="text", label="label")
    >>> data.y.tolist()
    ['dog', 'oak']
    """
    return ParquetTable(file, PARQUET.complete("read_parquet", options)).read()


class ParquetTable(Table):
    """A file for :func:`read_parquet`, yet to be read."""

    def __init__(self, file: AnyPath, options: Options) -> None:
        try:
            import polars
        except ImportError as error:
            raise ImportError("read_parquet() needs polars: pip install 'nhsvm[tables]'") from error
        self._polars: ModuleType = polars
        super().__init__(file, options, unit="row")

    def records(self) -> Records:
        with opened(self.file), self._blaming():  # a missing or forbidden file is reported as for the other readers
            frame = self._polars.scan_parquet(self.file, glob=False)
            self.see_columns(frame.collect_schema().names())
            n_rows = frame.select(self._polars.len()).collect().item()
        for start in range(0, n_rows, BATCH):
            with self._blaming():
                batch = frame.select(self.columns_needed).slice(start, BATCH).collect()
            if batch.height != min(BATCH, n_rows - start):
                problem = f"not a whole Parquet file: it has fewer rows than the {n_rows:,} it claims"
                raise FileFormatError(self.file, None, problem)
            self.log.tell((start + batch.height) / n_rows)
            yield from enumerate(batch.iter_rows(named=True), start + 1)

    def expected_rows(self) -> int | None:
        if not self.file.is_file():
            return None
        try:
            with self._blaming():
                frame = self._polars.scan_parquet(self.file, glob=False)
                return int(frame.select(self._polars.len()).collect().item())
        except (OSError, FileFormatError):  # whoever reads it says what is wrong with it
            return None

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        broken = self._polars.exceptions.PolarsError, self._polars.exceptions.PanicException
        try:
            yield
        except broken as error:  # a panic is no Exception
            problem = f"not a whole Parquet file: {' '.join(str(error).split())[:200]}"
            raise FileFormatError(self.file, None, problem) from error
