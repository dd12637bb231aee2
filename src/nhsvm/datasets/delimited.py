"""CSV and TSV files."""

from __future__ import annotations

import csv
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._files import LONGEST, AnyPath, Trouble, checked_encoding, checked_path, lines, shown
from nhsvm.datasets._table import Names, Records, Table
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
    table, records = prepared(**locals())
    return table.read(records)


def prepared(
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
    return table, _LIMIT.while_reading(_records(reader, numbered, names, table, source, trouble), numbered)


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


def _records(
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
