"""Data files of every format, poured into blocks some samples at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.datasets._blocks_writer import Writer
from nhsvm.datasets._dataset import Dataset, Skipped
from nhsvm.datasets._features import as_matrix, check_count, checked_dtype, checked_like, ids_of, numbered, renumber
from nhsvm.datasets._files import BLOCK, STDIN, Trouble, checked_path
from nhsvm.datasets._hierarchies import given_hierarchy
from nhsvm.datasets._labels import Labels, check_label_type
from nhsvm.datasets._sparse import Options, SparseRows, iter_rows
from nhsvm.datasets.chunks import read_chunks
from nhsvm.datasets.delimited import read_csv
from nhsvm.datasets.hmc_arff import read_hmc_arff
from nhsvm.datasets.jsonl import read_jsonl
from nhsvm.datasets.lshtc import read_lshtc
from nhsvm.datasets.parquet import read_parquet
from nhsvm.datasets.svmlight import read_svmlight
from nhsvm.errors import DataError, OptionError
from nhsvm.hierarchy import Hierarchy

Each = Callable[[Dataset], Dataset]
Progress = Callable[[int, float | None], None]
_ROWS = 2_000  # records at a time: those of a table are lists of Python objects for a while
_LARGEST = 2**31


@dataclass
class Outcome:
    """What only the last sample tells: features, hierarchy, and what was left out."""

    features: Any
    hierarchy: Hierarchy | None
    skipped: Skipped


class Numbered:
    """An svmlight or LSHTC file; options are checked, and nothing is read yet."""

    def __init__(self, reader: Any, file: Path, options: dict[str, Any]) -> None:
        self._file, self._options = file, options
        self._is_lshtc = reader is read_lshtc
        self._trouble = Trouble(file, options["on_error"])
        self.dtype = checked_dtype(options["dtype"])
        self._label_type = options.get("label_type", int)
        check_label_type(self._label_type)
        check_count(options.get("n_features"))
        if options.get("zero_based", "auto") not in (True, False, "auto"):
            raise OptionError(f"zero_based must be True, False or 'auto', not {options['zero_based']!r}")
        like, hierarchy, self._multilabel = checked_like(options["like"]), options["hierarchy"], options["multilabel"]
        self._ids: Any = None
        if like is not None:
            self._ids, hierarchy = ids_of(like), like.hierarchy if hierarchy is None else hierarchy
            if self._multilabel is None and like.y is not None:
                self._multilabel = like.is_multilabel
        self._known = given_hierarchy(hierarchy, self._label_type, options["drop_root"])

    def pour(self, writer: Writer, progress: Progress) -> Outcome:
        """Everything into a writer."""
        given, seen = self._options, _Seen()
        zero_based, n_features = given.get("zero_based", "auto"), given.get("n_features")
        limit = None if n_features is None or self._ids is not None else n_features - (zero_based is True)
        rows = Options(self._is_lshtc or given["sort"], given.get("ignore"), limit, self.dtype)
        for part, labels in iter_rows(self._file, rows, self._new_labels, self._trouble):
            if self._ids is None:
                seen.add(part.indices)
                writer.add_rows(part.indptr, part.indices, part.data, labels.result())
            else:
                writer.add(as_matrix(part, self._ids), labels.result())
            progress(writer.n_rows, self._trouble.share)
        skipped = self._trouble.skipped(writer.n_rows)
        ids = self._ids if self._ids is not None else self._found(seen.numbers(), writer)
        return Outcome(ids, self._known, skipped)

    def _new_labels(self, found: bool | None) -> Labels:
        labelled = found if self._options["labelled"] is None else self._options["labelled"]
        return Labels(self._label_type, self._known, self._multilabel, labelled, self._trouble)

    def _found(self, numbers: npt.NDArray[np.int64], writer: Writer) -> Any:
        """The features, now that all numbers are known; what was written gets the right columns."""
        if self._options.get("compact"):
            if len(numbers) and numbers[-1] >= len(numbers):  # there are gaps
                writer.change_indices(lambda part: _discard(renumber(part, numbers)))
            return numbers
        zero_based = True if self._is_lshtc else self._options["zero_based"]
        occurring = SparseRows(np.zeros(1, np.int64), numbers.astype(np.int32), np.zeros(0))
        ids = numbered(zero_based, self._options.get("n_features"), occurring, self._file)
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


class Tabular:
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
            self._chunks = read_chunks(reader, file, _ROWS, **{k: v for k, v in options.items() if k != "file"})

    def pour(self, writer: Writer, progress: Progress) -> Outcome:
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
        return Outcome(names, hierarchy, self._chunks.skipped)


class _Whole:
    """A file that is read at once, as if it came in parts."""

    def __init__(self, read: Callable[[], Dataset]) -> None:
        self._read, self.skipped = read, Skipped()
        self.share: float | None = None

    def __iter__(self) -> Iterator[Dataset]:
        found = self._read()
        self.skipped, self.share = found.skipped, 1.0
        yield found


def source_of(reader: Any, file: Any, options: dict[str, Any], each: Each | None) -> Numbered | Tabular:
    """A file to pour into blocks; an error for options that do not go together, before anything is read."""
    if reader not in (read_svmlight, read_lshtc, read_hmc_arff, read_csv, read_jsonl, read_parquet):
        name = getattr(reader, "__name__", repr(reader))
        raise OptionError(f"convert_to_blocks cannot use {name}; write_blocks takes the data set that it gives")
    given = signature(reader).bind(file, **options)
    given.apply_defaults()
    if reader in (read_svmlight, read_lshtc):
        if each is not None:
            raise OptionError("each is for tables, not for files of numbered features")
        return Numbered(reader, checked_path(file), given.arguments)
    return Tabular(reader, checked_path(file), given.arguments, each)


def expected_rows(reader: Any, file: Path) -> int | None:
    """About how many samples a file has, by its size and the lengths of its first lines; None if nothing tells."""
    if file == STDIN or reader is read_hmc_arff or not file.is_file():
        return None
    if reader is read_parquet:
        return _parquet_rows(file)
    try:
        with file.open("rb") as stream:
            start = stream.read(BLOCK)
    except OSError:  # the reader says what is wrong with it
        return None
    lines = 0 if start.startswith(b"\x1f\x8b") else start.count(b"\n")
    return lines * file.stat().st_size // len(start) if lines else None


def _parquet_rows(file: Path) -> int | None:
    import polars

    try:
        return int(polars.scan_parquet(file, glob=False).select(polars.len()).collect().item())
    except (
        OSError,
        polars.exceptions.PolarsError,
        polars.exceptions.PanicException,
    ):  # the reader says what is wrong with it
        return None
