"""Parquet files, by polars."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets._dataset import Dataset
from nhsvm.datasets._files import AnyPath, Trouble, checked_path, opened
from nhsvm.datasets._table import Names, Records, Table
from nhsvm.errors import FileFormatError
from nhsvm.hierarchy import Hierarchy

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
    table, records = prepared(**locals())
    return table.read(records)


def prepared(file: AnyPath, *, on_error: str, **options: Any) -> tuple[Table, Records]:
    """The options of :func:`read_parquet`, checked, and its records, yet to be read."""
    try:
        import polars
    except ImportError as error:
        raise ImportError("read_parquet() needs polars: pip install 'nhsvm[tables]'") from error
    source, trouble = checked_path(file), Trouble(checked_path(file), on_error, unit="row")
    table = Table(trouble, **options)
    return table, _rows(source, table, polars)


def _rows(file: Path, table: Table, polars: Any) -> Generator[tuple[int, dict[str, Any]]]:
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
