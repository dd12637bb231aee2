"""Making blocks: of data files, and of data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nhsvm.datasets._blocks_convert import Each, Progress, expected_rows, source_of
from nhsvm.datasets._blocks_format import Header
from nhsvm.datasets._blocks_writer import Writer
from nhsvm.datasets._dataset import Dataset, Skipped
from nhsvm.datasets._files import AnyPath, checked_path
from nhsvm.errors import DataError


@dataclass(frozen=True)
class Converted:
    """What a conversion has written.

    Attributes
    ----------
    path : Path
    n_samples, n_features : int
    nnz : int or None
        Entries of a sparse matrix; None for a dense one.
    nbytes : int
        Of all files.
    skipped : Skipped
    removed : int
        Folders that earlier attempts had left behind, and that were removed.
    """

    path: Path
    n_samples: int
    n_features: int
    nnz: int | None
    nbytes: int
    skipped: Skipped = field(default_factory=Skipped)
    removed: int = 0


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
    source, target = source_of(reader, file, options, each), checked_path(to)
    expected = expected_rows(reader, checked_path(file))
    with Writer(target, source.dtype, force=force, expected_rows=expected) as writer:
        outcome = source.pour(writer, progress or (lambda n_rows, share: None))
        header = writer.finish(outcome.features, outcome.hierarchy, note, steps)
        return _converted(target, header, outcome.skipped, writer.removed)


def write_blocks(
    data: Dataset | Iterable[Dataset],
    to: AnyPath,
    *,
    force: bool = False,
    note: Mapping[str, Any] | None = None,
    steps: Callable[[Path], None] | None = None,
) -> Converted:
    """Data sets as one folder of blocks, for :func:`nhsvm.datasets.open_blocks`.

    Parameters
    ----------
    data : Dataset, or Datasets one after the other
        With X. The columns of all are those of the first, and so is the type of its values; the hierarchy is that of
        the last.
    to : path
    force : bool
        Replace blocks that are there.
    note : dict, optional
        JSON to keep with the data.
    steps : function, optional
        Given a path, writes a file to keep with the data: how the features were made.

    Returns
    -------
    Converted

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nhsvm.datasets import make_unbalanced, open_blocks
    >>> data = make_unbalanced(50, 5, random_state=0)
    >>> with TemporaryDirectory() as folder:
    ...     _ = write_blocks(data, Path(folder) / "made.blocks")
    ...     again = open_blocks(Path(folder) / "made.blocks")
    >>> bool((again.X == data.X).all()), again.hierarchy == data.hierarchy
    (True, True)
    """
    target, parts = checked_path(to), iter([data] if isinstance(data, Dataset) else data)
    first = next(parts, None)
    if first is None or first.X is None:
        raise DataError("blocks hold samples with features, and there are none")
    dtype = first.X.dtype if first.X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    names: Any = first.X.shape[1] if first.feature_names is None else first.feature_names
    last = first
    with Writer(target, dtype, force=force) as writer:
        writer.add(first.X, first.y)
        for last in parts:
            if last.X is None or last.X.shape[1] != first.X.shape[1]:
                raise DataError("the parts of the data do not have the same features")
            writer.add(last.X, last.y)
        header = writer.finish(names, last.hierarchy, note, steps)
        return _converted(target, header, Skipped(), writer.removed)


def _converted(path: Path, header: Header, skipped: Skipped, removed: int) -> Converted:
    return Converted(path, header.n_rows, header.n_features, header.nnz, header.nbytes, skipped, removed)
