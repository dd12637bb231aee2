"""Data files a part at a time, for those that are larger than memory or never end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

from nhsvm.datasets import delimited, jsonl, parquet
from nhsvm.datasets._dataset import Dataset, Skipped
from nhsvm.datasets._features import as_matrix, checked_dtype, checked_like, ids_of
from nhsvm.datasets._files import AnyPath, Trouble, checked_path
from nhsvm.datasets._hierarchies import given_hierarchy
from nhsvm.datasets._labels import Labels
from nhsvm.datasets._options import whole_number
from nhsvm.datasets._sparse import Options, iter_rows
from nhsvm.datasets.blocks import block_parts, open_blocks
from nhsvm.datasets.hmc_arff import read_hmc_arff
from nhsvm.datasets.lshtc import read_lshtc
from nhsvm.datasets.svmlight import read_svmlight
from nhsvm.errors import OptionError

_TABLES: dict[Callable[..., Dataset], Any] = {
    delimited.read_csv: delimited.prepared,
    jsonl.read_jsonl: jsonl.prepared,
    parquet.read_parquet: parquet.prepared,
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
    trouble = Trouble(checked_path(file), given.arguments["on_error"])
    return Chunks(_sparse_parts(reader is read_lshtc, trouble, given.arguments), trouble)


def _sparse_parts(is_lshtc: bool, trouble: Trouble, options: dict[str, Any]) -> Iterator[Dataset]:
    like = checked_like(options["like"])
    if like is None:
        raise OptionError("parts of a file of numbered features need like=, the data set whose features they have")
    ids, hierarchy = ids_of(like), options["hierarchy"]
    label_type = options.get("label_type", int)
    known = given_hierarchy(like.hierarchy if hierarchy is None else hierarchy, label_type, options["drop_root"])
    dtype = checked_dtype(options["dtype"])
    rows = Options(is_lshtc or options["sort"], options.get("ignore"), None, dtype)

    def new_labels(found: bool | None) -> Labels:
        labelled = found if options["labelled"] is None else options["labelled"]
        return Labels(label_type, known, options["multilabel"], labelled, trouble)

    for part, labels in iter_rows(trouble.file, rows, new_labels, trouble):
        skipped = trouble.skipped(1)
        yield Dataset(labels.result(), known, as_matrix(part, ids), feature_names=ids, skipped=skipped)  # type: ignore[arg-type]
