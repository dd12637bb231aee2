"""Data files a part at a time: as data sets, and poured into blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from inspect import signature
from pathlib import Path

from nhsvm.datasets.arff import ArffFile, read_hmc_arff
from nhsvm.datasets.blocks import block_parts, open_blocks
from nhsvm.datasets.blocks_writer import Converted, Writer
from nhsvm.datasets.dataset import AnyPath, Dataset, FeatureNames, Skipped, whole_number
from nhsvm.datasets.files import ReadLog, Source, checked_path
from nhsvm.datasets.sparse_rows import lshtc_file, read_lshtc, read_svmlight, svmlight_file
from nhsvm.datasets.table_files import CsvTable, JsonTable, ParquetTable, read_csv, read_jsonl, read_parquet
from nhsvm.errors import DataError, OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.typing import JSON, Options

Reader = Callable[..., Dataset]
Each = Callable[[Dataset], Dataset]
Progress = Callable[[int, float | None], None]
ROWS = 2_000  # records at a time: those of a table are lists of Python objects for a while
SOURCES: dict[Reader, Callable[[AnyPath, Options], Source]] = {
    read_csv: CsvTable,
    read_hmc_arff: ArffFile,
    read_jsonl: JsonTable,
    read_lshtc: lshtc_file,
    read_parquet: ParquetTable,
    read_svmlight: svmlight_file,
}


def source_of(reader: Reader, file: AnyPath, options: Options, needed_by: str, advice: str = "") -> Source:
    """What a reader would read, with its options checked."""
    if reader not in SOURCES:
        name = getattr(reader, "__name__", repr(reader))
        raise OptionError(f"{needed_by} cannot use {name}{advice}")
    given = signature(reader).bind(file, **options)
    given.apply_defaults()
    return SOURCES[reader](file, given.arguments)


class Chunks:
    """The parts of a file; iterate once.

    Attributes
    ----------
    skipped : Skipped
        What has been left out up to now.
    share : float or None
        How much of the file has been read up to now; None if that is not known, as of a pipe.
    """

    def __init__(self, parts: Iterator[Dataset], log: ReadLog) -> None:
        self._parts, self._log = parts, log

    def __iter__(self) -> Iterator[Dataset]:
        n_samples = 0
        for part in self._parts:
            n_samples += part.n_samples
            yield part
        self._log.skipped(n_samples)  # an error if there were none at all

    @property
    def skipped(self) -> Skipped:
        return self._log.skipped(1)

    @property
    def share(self) -> float | None:
        return self._log.share


def read_chunks(reader: Reader, file: AnyPath, size: int = 10_000, **options: object) -> Chunks:
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
        log = ReadLog(checked_path(file), "raise")
        return Chunks(block_parts(file, size, log.tell, options), log)
    source = source_of(reader, file, options, "read_chunks")
    if problem := source.why_no_parts():
        raise OptionError(problem)
    return Chunks(source.parts(size), source.log)


def convert_to_blocks(
    reader: Reader,
    file: AnyPath,
    to: AnyPath,
    /,
    *,
    force: bool = False,
    each: Each | None = None,
    note: Mapping[str, JSON] | None = None,
    steps: Callable[[Path], None] | None = None,
    progress: Progress | None = None,
    **options: object,
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
    advice = "; write_blocks takes the data set that it gives"
    source = source_of(reader, file, options, "convert_to_blocks", advice)
    if problem := source.why_no_blocks(each is not None):
        raise OptionError(problem)
    target = checked_path(to)
    hierarchy: Hierarchy | None = None
    names: FeatureNames = None
    n_columns = -1
    with Writer(target, source.dtype, force=force, expected_rows=source.expected_rows()) as writer:
        chunks = Chunks(source.parts(ROWS), source.log)
        for read in chunks:
            hierarchy = read.hierarchy  # of paths, it grows with every part
            part = read if each is None else each(read)
            if not part.n_samples:
                continue
            if part.X is None:
                raise DataError("blocks hold features, and these samples have none")
            names, n_columns = part.feature_names, part.X.shape[1]
            writer.add(part.X, part.y)
            if progress is not None:
                progress(writer.n_rows, chunks.share)
        if n_columns < 0:
            raise DataError("no samples are left")
        columns, change = source.columns(n_columns if names is None else names)
        if change is not None:
            writer.change_indices(change)
        return replace(writer.finish(columns, hierarchy, note, steps), skipped=chunks.skipped)
