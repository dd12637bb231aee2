"""CSV, TSV, JSON Lines and Parquet files: a reader and the records of each."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets.base import Dataset
from nhsvm.datasets.files import LONGEST, AnyPath, Trouble, checked_encoding, checked_path, lines, opened, shown
from nhsvm.datasets.tables import Names, Records, Table
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.hierarchy import Hierarchy


def read_csv(
    file: AnyPath,
    *,
    text: Names = None,
    features: Names = None,
    label: str | None = None,
    path: str | None = None,
    levels: Names = None,
    hierarchy: Hierarchy | AnyPath | None = None,
    drop_root: bool = False,
    separator: str = " > ",
    label_separator: str | None = None,
    qualified: bool = True,
    label_type: type | None = str,
    multilabel: bool | None = None,
    drop_implied: bool = False,
    extra: Names = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    quotes: bool | None = None,
    dtype: npt.DTypeLike = np.float64,
    encoding: str = "utf-8",
    like: Dataset | None = None,
    on_error: str = "raise",
) -> Dataset:
    r"""Samples in a CSV or TSV file; gzipped too.

    Parameters
    ----------
    file : path
        ``-`` is standard input, of all readers but that of Parquet files.
    text : str or list of str
        Column of text; of several, each is a line of the text.
    features : str or list of str
        Columns of numbers; an empty cell is a missing value, NaN.
    label : str, optional
        Column of labels, for use with a hierarchy.
    path : str, optional
        Column of paths, such as ``Science > Physics``, that are labels and make up the hierarchy.
    levels : list of str, optional
        Columns, one a level from the top: together a path. The last ones may be empty.
    hierarchy : Hierarchy or path, optional
        Labels must be nodes of it. A file is read by ``Hierarchy.read``.
    drop_root : bool
        Leave out the root of the hierarchy if it has only one.
    separator : str
        Between the parts of a path, in the file (blanks around it do not matter) and in labels.
    label_separator : str, optional
        Between several labels, or paths, in a cell.
    qualified : bool
        A label is its whole path: ``Books > Other`` and ``Toys > Other`` are two. With False it is the last part.
    label_type : {str, int}, optional
        Of ``label``.
    multilabel : bool, optional
        Give a list of labels for every sample. By default if any has two; only with True may a sample have none.
    drop_implied : bool
        Leave out labels that are above others of the same sample.
    extra : str or list of str
        Further columns to keep, in ``Dataset.extra``; ``"*"`` keeps all.
    columns : list of str, optional
        Names of all columns, for a file that does not begin with them.
    delimiter : str, optional
        By default a tab in ``.tsv`` and ``.tab`` files, else a comma.
    quotes : bool, optional
        Whether ``"`` encloses cells. By default unless the delimiter is a tab.
    dtype : {float64, float32}
    encoding : str
    like : Dataset, optional
        Use the hierarchy and the form of labels of this one, as for a test set; features must have the same names.
    on_error : {"raise", "skip"}

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
    table, records = csv_records(**locals())
    return table.read(records)


def csv_records(
    file: AnyPath,
    *,
    columns: Sequence[str] | None,
    delimiter: str | None,
    quotes: bool | None,
    encoding: str,
    on_error: str,
    **options: Any,
) -> tuple[Table, Records]:
    """The options of :func:`read_csv`, checked, and its records, yet to be read."""
    source, trouble = checked_path(file), Trouble(checked_path(file), on_error)
    delimiter = _delimiter(source) if delimiter is None else delimiter
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n ':
        raise OptionError(f"delimiter must be one character, no quote or blank, not {delimiter!r}")
    table = Table(trouble, **options)
    names = None if columns is None else _checked_names(list(columns), source, None)
    if names is not None:
        table.see_columns(names)
        table.check_columns(names)
    quoted = delimiter != "\t" if quotes is None else quotes
    numbered = _Numbered(lines(source, checked_encoding(encoding), trouble))
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


def read_jsonl(
    file: AnyPath,
    *,
    text: Names = None,
    features: Names = None,
    label: str | None = "labels",
    path: str | None = None,
    levels: Names = None,
    hierarchy: Hierarchy | AnyPath | None = None,
    drop_root: bool = False,
    separator: str = " > ",
    label_separator: str | None = None,
    qualified: bool = True,
    label_type: type | None = None,
    multilabel: bool | None = None,
    drop_implied: bool = False,
    extra: Names = None,
    dtype: npt.DTypeLike = np.float64,
    encoding: str = "utf-8",
    like: Dataset | None = None,
    on_error: str = "raise",
) -> Dataset:
    r"""Samples in a JSON Lines file, an object a line; gzipped too.

    Labels are text or whole numbers, one or a list of them; paths are text, ``"Science > Physics"``, or a list of such.
    A feature is a number, or a list of as many numbers in every line (an embedding); null is a missing value.

    Parameters
    ----------
    file : path
    text, features, path, levels, extra
        Names of fields; see :func:`read_csv`. Without text and features, ``"text"`` is the text.
    label : str or None
        Field of the labels, unless ``path`` or ``levels`` is given. None reads samples without labels.
    hierarchy, drop_root, separator, label_separator, qualified, multilabel, drop_implied, dtype, like, on_error
        See :func:`read_csv`.
    label_type : {int, str}, optional
        By default labels are what they are in the file.
    encoding : str

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
    table, records = jsonl_records(**locals())
    return table.read(records)


def jsonl_records(file: AnyPath, *, encoding: str, on_error: str, **options: Any) -> tuple[Table, Records]:
    """The options of :func:`read_jsonl`, checked, and its records, yet to be read."""
    source, trouble = checked_path(file), Trouble(checked_path(file), on_error)
    if options["label"] == "labels" and (options["path"] is not None or options["levels"] is not None):
        options["label"] = None
    if options["text"] is None and options["features"] is None:
        options["text"] = "text"
    table = Table(trouble, **options)
    return table, _objects(source, checked_encoding(encoding), table, trouble)


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


def read_parquet(
    file: AnyPath,
    *,
    text: Names = None,
    features: Names = None,
    label: str | None = None,
    path: str | None = None,
    levels: Names = None,
    hierarchy: Hierarchy | AnyPath | None = None,
    drop_root: bool = False,
    separator: str = " > ",
    label_separator: str | None = None,
    qualified: bool = True,
    label_type: type | None = None,
    multilabel: bool | None = None,
    drop_implied: bool = False,
    extra: Names = None,
    dtype: npt.DTypeLike = np.float64,
    like: Dataset | None = None,
    on_error: str = "raise",
) -> Dataset:
    """Samples in a Parquet file; needs polars (``pip install 'nhsvm[tables]'``).

    Columns of lists are read as in :func:`read_jsonl`: several labels, or a vector of features. A missing value is null
    or NaN.

    Parameters
    ----------
    file : path
    text, features, label, path, levels, hierarchy, drop_root, separator, label_separator, qualified, multilabel
        See :func:`read_csv`.
    label_type : {int, str}, optional
        By default labels are what they are in the file.
    drop_implied, extra, dtype, like, on_error
        See :func:`read_csv`. Errors name the row, the first of which is 1.

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
    table, records = parquet_records(**locals())
    return table.read(records)


def parquet_records(file: AnyPath, *, on_error: str, **options: Any) -> tuple[Table, Records]:
    """The options of :func:`read_parquet`, checked, and its records, yet to be read."""
    try:
        import polars
    except ImportError as error:
        raise ImportError("read_parquet() needs polars: pip install 'nhsvm[tables]'") from error
    source, trouble = checked_path(file), Trouble(checked_path(file), on_error, unit="row")
    table = Table(trouble, **options)
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
