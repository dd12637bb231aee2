"""``nhsvm predict``: labels for the samples of a file, as they come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nhsvm.cli._answers import Answers, Columns, Questions
from nhsvm.cli._config import ConfigFile
from nhsvm.cli._inputs import DataFile, FileFormat, SampleOptions, format_of, only_where, reader_of, takes
from nhsvm.cli._models import (
    JobsOption,
    LoadedModel,
    ModelFile,
    ModelOptions,
    check_features,
    check_reads,
    completed,
    inputs_of,
    like_of,
    load_model,
)
from nhsvm.cli._options import option
from nhsvm.cli._output import JsonFlag, check_distinct, check_writable, note, print_json
from nhsvm.cli._progress import Busy
from nhsvm.cli._writers import OutputFormat, check_safe, output_format, table_writer
from nhsvm.errors import DataError, OptionError

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset


@dataclass(frozen=True)
class AnswerOptions:
    """What to write of every sample, and where."""

    output: Annotated[str, typer.Option("--output", "-o", help="File to write; - is standard output.")] = "-"
    to: Annotated[OutputFormat | None, option("--to", help="Format of it.", default="by the ending; csv")] = None
    csv_safe: Annotated[
        bool, option("--csv-safe", help="In CSV, an apostrophe before cells that a spreadsheet would run as formulas.")
    ] = False
    top_k: Annotated[int | None, option(min=1, help="The best so many labels instead of the best.")] = None
    scores: Annotated[bool, option("--scores", help="Also the scores of labels.")] = False
    probabilities: Annotated[bool, option("--probabilities", help="Also the probabilities of labels.")] = False
    paths: Annotated[bool, option("--paths", help="Also the paths from the root to labels.")] = False
    partial: Annotated[
        float | None,
        option(metavar="THRESHOLD", help="Also the deepest node that is at least so probable."),
    ] = None
    beam: Annotated[
        int | None,
        option(min=1, help="Keep so many nodes a level: quicker, and perhaps not the best.", default="exact"),
    ] = None
    id_column: Annotated[str | None, option(metavar="COLUMN", help="Column of the data to write first.")] = None
    keep_columns: Annotated[bool, option("--keep-columns", help="Write all columns of the data.")] = False
    chunk: Annotated[int, typer.Option(min=1, help="Rows at work at a time.")] = 10_000


@takes(samples=SampleOptions, options=AnswerOptions, trust=ModelOptions)
def predict(
    model: ModelFile,
    data: DataFile,
    samples: SampleOptions,
    options: AnswerOptions,
    trust: ModelOptions,
    *,
    jobs: JobsOption = None,
    config: ConfigFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no closing line.")] = False,
    json: JsonFlag = False,
) -> None:
    """Label the samples of a data file with a model.

    Columns and features are those of the training data unless options say otherwise. Labels are not looked at.

    Rows are read, labelled and written some at a time, in their order.

    Example: nhsvm predict papers.nhsvm new.csv --top-k 3 -o labels.csv

    Example: zcat logs.jsonl.gz | nhsvm predict model.nhsvm - --format jsonl --paths | head
    """
    if json and options.output == "-":
        raise OptionError("--json takes standard output, so give a file: -o labels.csv")
    check_writable(options.output)
    check_distinct(options.output, model, data, config)
    check_safe(options.csv_safe, output_format(options.output, options.to))
    loaded = load_model(model, trust, jobs)
    questions = Questions(
        options.top_k, options.scores, options.probabilities, options.paths, options.partial, options.beam
    )
    answers = Answers(loaded, questions)
    source = Source(loaded, data, samples, options)
    width = None if options.top_k is None else min(options.top_k, len(loaded.svm.classes_))
    joined_by = loaded.note.get("label_separator", ";")
    start, n_samples = perf_counter(), 0
    busy = Busy(f"reading {data}", quiet=quiet or options.output == "-")  # rows on a terminal are progress enough
    table = table_writer(options.output, options.to, joined_by=joined_by, width=width, safe=options.csv_safe)
    with busy, table as writer:
        for part in source:
            n_samples += part.n_samples
            writer.write(_beside(part, answers.columns(inputs_of(loaded, part)), options))
            busy(f"{n_samples:,} samples labelled", source.share)
        if not n_samples:
            raise DataError(f"no sample has {' and '.join(samples.where or ())}")
    _close(n_samples, perf_counter() - start, source.skipped, options.output, quiet=quiet, json=json)


class Source:
    """The samples of a file as a model needs them, some at a time."""

    def __init__(self, loaded: LoadedModel, file: str, samples: SampleOptions, options: AnswerOptions) -> None:
        samples = completed(loaded, file, samples)
        kind = format_of(file, samples)
        check_reads(loaded, kind, samples)
        extra: Any = "*" if options.keep_columns else [options.id_column] if options.id_column else ()
        self._loaded, self._file, self._samples = loaded, file, samples
        self._reader, self._settings = reader_of(kind, file, samples, None, like=like_of(loaded, kind), extra=extra)
        self._whole = kind is FileFormat.arff
        self._size = options.chunk
        self.skipped: Any = None
        self.share: float | None = None

    def __iter__(self) -> Iterator[Dataset]:
        from nhsvm.datasets import read_chunks

        if self._whole:
            dataset = self._reader(self._file, **self._settings)
            self.skipped = dataset.skipped
            yield self._checked(dataset)
            return
        chunks = read_chunks(self._reader, self._file, self._size, **self._settings)
        for part in chunks:
            found, self.share = self._checked(part), chunks.share
            if found.n_samples:
                yield found
        self.skipped = chunks.skipped

    def _checked(self, dataset: Dataset) -> Dataset:
        check_features(self._loaded, self._file, dataset)
        return only_where(dataset, self._samples, may_be_empty=True)


def _beside(part: Dataset, answers: Columns, options: AnswerOptions) -> Columns:
    """Columns of the data, then answers: one that has the name of the former gets ``predicted_`` before it."""
    kept = {name: column for name, column in part.extra.items() if options.keep_columns or name == options.id_column}
    return kept | {f"predicted_{name}" if name in kept else name: column for name, column in answers.items()}


def _close(n_samples: int, seconds: float, skipped: Any, output: str, *, quiet: bool, json: bool) -> None:
    count = 0 if skipped is None else skipped.count
    if json:
        print_json({"samples": n_samples, "seconds": seconds, "skipped": count, "file": output})
    elif not quiet and output != "-":
        note(f"{n_samples:,} samples labelled in {seconds:.1f} s: {output}")
    if count:
        note(str(skipped))
