"""Data files a part at a time: as data sets, and poured into blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets.arff import read_hmc_arff
from nhsvm.datasets.base import Dataset, Skipped, checked_dtype, whole_number
from nhsvm.datasets.blocks import block_parts, open_blocks
from nhsvm.datasets.blocks_writer import Converted, Writer
from nhsvm.datasets.files import BLOCK, STDIN, AnyPath, Trouble, checked_path
from nhsvm.datasets.sparse_rows import (
    SparseFile,
    SparseRows,
    as_matrix,
    read_lshtc,
    read_svmlight,
    renumber,
)
from nhsvm.datasets.table_files import csv_records, jsonl_records, parquet_records, read_csv, read_jsonl, read_parquet
from nhsvm.errors import DataError, OptionError
from nhsvm.hierarchy import Hierarchy

_TABLES: dict[Callable[..., Dataset], Any] = {
    read_csv: csv_records,
    read_jsonl: jsonl_records,
    read_parquet: parquet_records,
}


class Chunks:
    """The parts of a file; iterate once.

    Attributes
    ----------
    skipped : Skipped
        What has been left out up to now.
    share : float or None
        How much of the file has been read up to now; None if that is not known, as of a pipe.
    """

    def __init__(self, parts: Iterator[Dataset], trouble: Trouble) -> None:
        self._parts, self._trouble = parts, trouble

    def __iter__(self) -> Iterator[Dataset]:
        n_samples = 0
        for part in self._parts:
            n_samples += part.n_samples
            yield part
        self._trouble.skipped(n_samples)  # an error if there were none at all

    @property
    def skipped(self) -> Skipped:
        return self._trouble.skipped(1)

    @property
    def share(self) -> float | None:
        return self._trouble.share


def read_chunks(reader: Callable[..., Dataset], file: AnyPath, size: int = 10_000, **options: Any) -> Chunks:
    r"""A data file as data sets of some samples each, in their order.

    Parameters
    ----------
    reader : function
        ``read_csv``, ``read_jsonl``, ``read_parquet``, ``read_svmlight``, ``read_lshtc`` or ``open_blocks``.
    file : path
        ``-`` is standard input.
    size : int
        Records of a part. A part of an svmlight or LSHTC file has some 4 MB of text instead.
    **options
        Of the reader. svmlight and LSHTC files need ``like``, since a part does not show all features. Where labels are
        read, say ``multilabel`` and ``hierarchy``, since a part does not show all labels either.

    Returns
    -------
    Chunks
        Nothing is read before it is iterated.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from nhsvm.datasets import read_csv
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "docs.csv"
    ...     _ = file.write_text("text\nwoof\nmiaow\nrustle\n")
    ...     [part.texts for part in read_chunks(read_csv, file, 2, text="text")]
    [['woof', 'miaow'], ['rustle']]
    """
    size = whole_number(size, "size")
    if reader is open_blocks:
        trouble = Trouble(checked_path(file), "raise")
        return Chunks(block_parts(file, size, trouble.tell, **options), trouble)
    if reader not in _TABLES and reader not in (read_svmlight, read_lshtc):
        name = getattr(reader, "__name__", repr(reader))
        why = ": an ARFF file is read as a whole" if reader is read_hmc_arff else ""
        raise OptionError(f"read_chunks cannot use {name}{why}")
    given = signature(reader).bind(file, **options)
    given.apply_defaults()
    if reader in _TABLES:
        table, records = _TABLES[reader](**given.arguments)
        return Chunks(table.parts(records, size), table.trouble)
    source = SparseFile(reader, file, given.arguments)
    if source.ids is None:
        raise OptionError("parts of a file of numbered features need like=, the data set whose features they have")
    return Chunks(_sparse_parts(source, source.ids), source.trouble)


def _sparse_parts(source: SparseFile, ids: Any) -> Iterator[Dataset]:
    for rows, y in source.parts():
        skipped = source.trouble.skipped(1)
        yield Dataset(y, source.hierarchy, as_matrix(rows, ids), feature_names=ids, skipped=skipped)


# -- into blocks -------------------------------------------------------------------------------------------------------


Each = Callable[[Dataset], Dataset]
Progress = Callable[[int, float | None], None]
ROWS = 2_000  # records at a time: those of a table are lists of Python objects for a while
_LARGEST = 2**31


def convert_to_blocks(
    reader: Callable[..., Dataset],
    file: AnyPath,
    to: AnyPath,
    /,
    *,
    force: bool = False,
    each: Each | None = None,
    note: Mapping[str, Any] | None = None,
    steps: Callable[[Path], None] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Converted:
    r"""A data file as a folder of blocks; a few megabytes of it are in memory at a time.

    Parameters
    ----------
    reader : function
        ``read_svmlight``, ``read_lshtc``, ``read_parquet``, ``read_csv`` or ``read_jsonl``; also ``read_hmc_arff``,
        which reads the whole file first.
    file : path
    to : path
        Folder to write, such as ``train.blocks``. It is there when it is complete, and not before.
    force : bool
        Replace blocks that are there.
    each : function, optional
        Of tables: makes another ``Dataset`` of every part, such as one with fewer samples.
    note : dict, optional
        JSON to keep with the data; see :func:`nhsvm.datasets.blocks.read_note`.
    steps : function, optional
        Given a path, writes a file to keep with the data: how ``each`` has made the features.
    progress : function, optional
        Called with the number of samples written so far, and the share of the file that has been read (None where that
        is not known, as of a pipe).
    **options
        Of the reader.

    Returns
    -------
    Converted

    Raises
    ------
    NHSVMError
        A child of it: for options, for whatever is wrong with the file, and for a disk that is full.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nhsvm.datasets import open_blocks, read_lshtc
    >>> with TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     _ = (folder / "train.txt").write_text("4 1177338:2 97353:1\n3 97353:4\n")
    ...     done = convert_to_blocks(read_lshtc, folder / "train.txt", folder / "train.blocks")
    ...     data = open_blocks(folder / "train.blocks")
    >>> done.n_samples, done.n_features, done.nnz
    (2, 2, 3)
    >>> data.y, data.feature_names, data.X.toarray().tolist()
    (array([4, 3]), array([  97353, 1177338]), [[1.0, 2.0], [4.0, 0.0]])
    """
    source, target = _source_of(reader, file, options, each), checked_path(to)
    expected = expected_rows(reader, checked_path(file))
    with Writer(target, source.dtype, force=force, expected_rows=expected) as writer:
        outcome = source.pour(writer, progress or (lambda n_rows, share: None))
        header = writer.finish(outcome.features, outcome.hierarchy, note, steps)
        return Converted.of(target, header, skipped=outcome.skipped, removed=writer.removed)


@dataclass
class _Outcome:
    """What only the last sample tells: features, hierarchy, and what was left out."""

    features: Any
    hierarchy: Hierarchy | None
    skipped: Skipped


class _Numbered:
    """An svmlight or LSHTC file; options are checked, and nothing is read yet."""

    def __init__(self, source: SparseFile) -> None:
        self._source, self.dtype = source, source.dtype

    def pour(self, writer: Writer, progress: Progress) -> _Outcome:
        """Everything into a writer."""
        source, found = self._source, _Seen()
        for part, y in source.parts():
            if source.ids is None:
                found.add(part.indices)
                writer.add_rows(part.indptr, part.indices, part.data, y)
            else:
                writer.add(as_matrix(part, source.ids), y)
            progress(writer.n_rows, source.trouble.share)
        skipped = source.trouble.skipped(writer.n_rows)
        ids = self._features(found.numbers(), writer) if source.ids is None else source.ids
        return _Outcome(ids, source.hierarchy, skipped)

    def _features(self, numbers: npt.NDArray[np.int64], writer: Writer) -> Any:
        """The features, now that all numbers are known; what was written gets the right columns."""
        if self._source.compact:
            if len(numbers) and numbers[-1] >= len(numbers):  # there are gaps
                writer.change_indices(lambda part: _discard(renumber(part, numbers)))
            return numbers
        ids = self._source.numbered(SparseRows(np.zeros(1, np.int64), numbers.astype(np.int32), np.zeros(0)))
        if ids.start:
            writer.change_indices(lambda part: _discard(np.subtract(part, ids.start, out=part)))
        return ids


def _discard(_: Any) -> None:
    """For functions that change what they are given and also give something back."""


class _Seen:
    """Which numbers of features occur; memory that is never touched costs nothing."""

    def __init__(self) -> None:
        self._there = np.zeros(0, dtype=bool)

    def add(self, indices: npt.NDArray[np.int32]) -> None:
        top = int(indices.max(initial=-1)) + 1
        if top > len(self._there):
            grown = np.zeros(min(max(top, 2 * len(self._there)), _LARGEST), dtype=bool)
            grown[: len(self._there)] = self._there
            self._there = grown
        self._there[indices] = True

    def numbers(self) -> npt.NDArray[np.int64]:
        """All of them, ascending."""
        return np.flatnonzero(self._there)


class _Tabular:
    """A table, or an ARFF file, which is read as a whole; options are checked, and nothing is read yet.

    Parameters
    ----------
    reader : function
    file : Path
    options : of the reader
    each : function or None
        Makes something else of every part: fewer samples, or features of texts.
    """

    def __init__(self, reader: Any, file: Path, options: dict[str, Any], each: Each | None) -> None:
        self.dtype = checked_dtype(options["dtype"])
        self._each = each
        if options.get("text") and each is None:
            raise OptionError("blocks hold features, not texts: make features of them first, as nhsvm convert does")
        in_parts = options.get("drop_implied") and options.get("hierarchy") is None and options.get("like") is None
        if in_parts and not options.get("qualified", True):
            raise OptionError(
                "drop_implied needs a hierarchy here: labels that are the last part of their path may come below each "
                "other later in the file; give hierarchy= (--hierarchy)"
            )
        self._chunks: Any
        if reader is read_hmc_arff:
            self._chunks = _Whole(lambda: reader(file, **{k: v for k, v in options.items() if k != "file"}))
        else:
            self._chunks = read_chunks(reader, file, ROWS, **{k: v for k, v in options.items() if k != "file"})

    def pour(self, writer: Writer, progress: Progress) -> _Outcome:
        """Everything into a writer."""
        names: Any = None
        hierarchy = None
        for read in self._chunks:
            hierarchy = read.hierarchy  # of paths, it grows with every part
            part = read if self._each is None else self._each(read)
            if not part.n_samples:
                continue
            if part.X is None:
                raise DataError("blocks hold features, and these samples have none")
            names = part.X.shape[1] if part.feature_names is None else part.feature_names
            writer.add(part.X, part.y)
            progress(writer.n_rows, self._chunks.share)
        if names is None:
            raise DataError("no samples are left")
        return _Outcome(names, hierarchy, self._chunks.skipped)


class _Whole:
    """A file that is read at once, as if it came in parts."""

    def __init__(self, read: Callable[[], Dataset]) -> None:
        self._read, self.skipped = read, Skipped()
        self.share: float | None = None

    def __iter__(self) -> Iterator[Dataset]:
        found = self._read()
        self.skipped, self.share = found.skipped, 1.0
        yield found


def _source_of(reader: Any, file: Any, options: dict[str, Any], each: Each | None) -> _Numbered | _Tabular:
    """A file to pour into blocks; an error for options that do not go together, before anything is read."""
    if reader not in (read_svmlight, read_lshtc, read_hmc_arff, read_csv, read_jsonl, read_parquet):
        name = getattr(reader, "__name__", repr(reader))
        raise OptionError(f"convert_to_blocks cannot use {name}; write_blocks takes the data set that it gives")
    given = signature(reader).bind(file, **options)
    given.apply_defaults()
    if reader in (read_svmlight, read_lshtc):
        if each is not None:
            raise OptionError("each is for tables, not for files of numbered features")
        return _Numbered(SparseFile(reader, file, given.arguments))
    return _Tabular(reader, checked_path(file), given.arguments, each)


def expected_rows(reader: Any, file: Path) -> int | None:
    """About how many samples a file has, by its size and the lengths of its first lines; None if nothing tells."""
    if file == STDIN or reader is read_hmc_arff or not file.is_file():
        return None
    if reader is read_parquet:
        return _rows_of_parquet(file)
    try:
        with file.open("rb") as stream:
            start = stream.read(BLOCK)
    except OSError:  # the reader says what is wrong with it
        return None
    lines = 0 if start.startswith(b"\x1f\x8b") else start.count(b"\n")
    return lines * file.stat().st_size // len(start) if lines else None


def _rows_of_parquet(file: Path) -> int | None:
    import polars

    try:
        return int(polars.scan_parquet(file, glob=False).select(polars.len()).collect().item())
    except (
        OSError,
        polars.exceptions.PolarsError,
        polars.exceptions.PanicException,
    ):  # the reader says what is wrong with it
        return None
