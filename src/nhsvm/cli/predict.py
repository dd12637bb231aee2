"""``nhsvm predict``: labels for the samples of a file, as they come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from nhsvm.cli.inputs import DataFile, SampleOptions
from nhsvm.cli.models import JobsOption, LoadedModel, ModelFile, TrustOptions, load_model, source_for
from nhsvm.cli.options import ConfigFile, CsvSafeFlag, JsonFlag, option
from nhsvm.cli.output import (
    Columns,
    OutputFormat,
    add_rows,
    as_json,
    check_safe,
    check_writable,
    note,
    output_format,
    print_json,
    table_writer,
)
from nhsvm.cli.terminal import Busy
from nhsvm.errors import OptionError

if TYPE_CHECKING:
    from nhsvm.hierarchy import Hierarchy
    from nhsvm.model import Model
    from nhsvm.typing import Label, Matrix, MatrixLike

_NUMBERS = 2**24  # scores of classes at work at a time


@dataclass(frozen=True)
class AnswerOptions:
    """What to write of every sample, and where."""

    output: str = option("--output", "-o", default="-", help="File to write; - is standard output.")
    to: OutputFormat | None = option("--to", help="Format of it.", shown="by the ending; csv")
    csv_safe: CsvSafeFlag = False
    top_k: int | None = option(min=1, help="Return the k best labels.")
    scores: bool = option("--scores", default=False, help="Also the scores of labels.")
    probabilities: bool = option("--probabilities", default=False, help="Also the probabilities of labels.")
    paths: bool = option("--paths", default=False, help="Also the paths from the root to labels.")
    partial: float | None = option(metavar="THRESHOLD", help="Also the deepest node that is at least so probable.")
    for_measure: str | None = option(
        metavar="MEASURE", help="The labels with its best expected value, such as hierarchical_f1.", shown="best score"
    )
    beam: int | None = option(min=1, help="Beam width: faster, approximate.", shown="exact")
    id_column: str | None = option(metavar="COLUMN", help="Column of the data to write first.")
    keep_columns: bool = option("--keep-columns", default=False, help="Write all columns of the data.")
    chunk: int = option(min=1, default=10_000, help="Rows per batch.")


def predict(
    model: ModelFile,
    data: DataFile,
    samples: SampleOptions,
    options: AnswerOptions,
    trust: TrustOptions,
    *,
    jobs: JobsOption = None,
    config: ConfigFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no closing line.")] = False,
    json: JsonFlag = False,
) -> None:
    """Label the samples of a data file with a model.

    Columns and features are those of the training data unless options say otherwise. Labels are ignored.

    Rows are read, labelled and written some at a time, in their order.

    Example: nhsvm predict papers.nhsvm new.csv --top-k 3 -o labels.csv

    Example: zcat logs.jsonl.gz | nhsvm predict model.nhsvm - --format jsonl --paths | head
    """
    if json and options.output == "-":
        raise OptionError("--json takes standard output, so give a file: -o labels.csv")
    check_writable(options.output, model, data, config)
    check_safe(options.csv_safe, output_format(options.output, options.to))
    loaded = load_model(model, trust, jobs)
    answers = Answers(loaded, options)
    extra = "*" if options.keep_columns else [options.id_column] if options.id_column else ()
    source = source_for(loaded, data, samples, extra=extra)
    source.settings()  # errors about options
    width = None if options.top_k is None else min(options.top_k, len(loaded.svm.classes_))
    joined_by = loaded.note.get("label_separator", ";")
    start, n_samples = perf_counter(), 0
    busy = Busy(f"reading {data}", quiet=quiet or options.output == "-")  # rows on a terminal are progress enough
    table = table_writer(options.output, options.to, joined_by=joined_by, width=width, safe=options.csv_safe)
    with busy, table as write:
        chunks = source.chunks(options.chunk)
        for dataset in chunks:
            loaded.check_features(data, dataset)
            part = source.kept(dataset, may_be_empty=True)
            if not part.n_samples:
                continue
            n_samples += part.n_samples
            kept = {
                name: column for name, column in part.extra.items() if options.keep_columns or name == options.id_column
            }
            found = answers.columns(loaded.inputs_of(part))
            write(kept | {f"predicted_{name}" if name in kept else name: found[name] for name in found})
            busy(f"{n_samples:,} samples labelled", chunks.share)
        if not n_samples:
            raise source.nothing_kept()
    seconds, skipped = perf_counter() - start, chunks.skipped
    if json:
        print_json({"samples": n_samples, "seconds": seconds, "skipped": skipped.count, "file": options.output})
    elif not quiet and options.output != "-":
        note(f"{n_samples:,} samples labelled in {seconds:.1f} s: {options.output}")
    if skipped.count:
        note(str(skipped))


class Answers:
    """Answers of a model, as columns: lists of a value, or of a list of values, for every sample."""

    def __init__(self, loaded: LoadedModel, options: AnswerOptions) -> None:
        self._loaded, self._ask, self._svm = loaded, options, loaded.svm
        model = self._svm.model_
        has_probabilities = self._svm.probability and model.has_probabilities
        if (options.probabilities or options.partial is not None) and not has_probabilities:
            raise OptionError("the model has no probabilities; train it with --probability")
        if options.partial is not None and loaded.is_multilabel:
            raise OptionError("--partial is for models with one label a sample")
        if options.partial is not None and not 0 < options.partial <= 1:
            raise OptionError(f"--partial must be above 0 and at most 1, not {options.partial:g}")
        if options.beam is not None and options.top_k is not None:
            raise OptionError("--beam finds one label, and --top-k asks for several: leave one of them out")
        if options.for_measure is not None and (options.beam is not None or options.top_k is not None):
            other = "--top-k" if options.beam is None else "--beam"
            raise OptionError(f"--for-measure and {other} choose labels in different ways: leave one of them out")
        if options.for_measure is not None:
            check_measure(model, options.for_measure)
        if options.beam is not None:
            model.check_beam(options.beam)

    def columns(self, inputs: MatrixLike) -> Columns:
        """All answers for some samples."""
        n_samples = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)  # texts are a list
        step = max(1, _NUMBERS // len(self._svm.classes_))
        found: Columns = {}
        if self._ask.for_measure is None:
            for start in range(0, n_samples, step):
                X = self._loaded.transformed(inputs[start : start + step])
                add_rows(found, self._part(X, self._chosen(X)))
        else:  # some measures are of all samples together
            X = self._loaded.transformed(inputs)
            chosen = self._chosen(X)
            for start in range(0, n_samples, step):
                add_rows(found, self._part(X[start : start + step], chosen[start : start + step]))
        return found

    def _part(self, X: Matrix, chosen: list[list[int]]) -> Columns:
        many = self._ask.top_k is not None or self._loaded.is_multilabel
        classes = self._svm.classes_.tolist()
        shown = [as_json(label) for label in classes]

        columns = {"label": [[shown[k] for k in row] for row in chosen]}
        if self._ask.paths:
            columns["path"] = [[self._path(classes[k]) for k in row] for row in chosen]
        if self._ask.scores:
            scores = self._scores(X)
            columns["score"] = [scores[i, row].tolist() for i, row in enumerate(chosen)]
        if self._ask.probabilities:
            proba = self._svm.predict_proba(X)
            columns["probability"] = [proba[i, row].tolist() for i, row in enumerate(chosen)]
        if many:
            found: Columns = {_plural(name): column for name, column in columns.items()}
        else:
            found = {name: [row[0] for row in column] for name, column in columns.items()}
        if self._ask.partial is not None:
            nodes = self._svm.predict_partial(X, self._ask.partial).tolist()
            found["partial"] = [as_json(node) for node in nodes]
            if self._ask.paths:
                found["partial_path"] = [None if node is None else self._path(node) for node in nodes]
        return found

    def _chosen(self, X: Matrix) -> list[list[int]]:
        """Positions of the labels to give in ``classes_``."""
        if self._ask.top_k is not None:
            labels = self._svm.predict_topk(X, self._ask.top_k)
            return [[self._position(label) for label in row] for row in labels.tolist()]
        sets = self._svm.model_.sets
        found = self._svm.predict(X, beam=self._ask.beam, for_measure=self._ask.for_measure)
        if sets is None:
            return [[self._position(label)] for label in found.tolist()]
        if sets.form == "sparse":
            return [row.indices.tolist() for row in found.tocsr()]
        if sets.form == "dense":
            return [row.nonzero()[0].tolist() for row in found]
        return [sorted(map(self._position, labels)) for labels in found]

    @cached_property
    def _position(self) -> Callable[[Label], int]:
        return {label: k for k, label in enumerate(self._svm.classes_.tolist())}.__getitem__

    def _scores(self, X: Matrix) -> Matrix:
        """Of all classes, also where there are two."""
        from nhsvm.estimators.options import n_threads

        if self._loaded.is_multilabel:
            return self._svm.decision_function(X)
        return self._svm.model_.class_scores(X, n_threads=n_threads(self._svm.n_jobs))

    @cached_property
    def _path(self) -> Callable[[Label], str]:
        hierarchy, separator = self._svm.hierarchy_, self._loaded.note.get("separator", " > ")
        return cache(lambda label: _path_of(hierarchy, label, separator))


def check_measure(model: Model, name: str) -> None:
    """An error that speaks of the command line unless the model can aim at that measure."""
    from nhsvm.model.decisions import measure_names

    if not model.has_probabilities:
        raise OptionError("--for-measure needs probabilities, and the model has none; train it with --probability")
    names = measure_names(sets=model.sets is not None)
    if name not in names:
        raise OptionError(f"--for-measure: this model has no measure {name!r}; it has {', '.join(names)}")


def _plural(name: str) -> str:
    return "probabilities" if name == "probability" else f"{name}s"


def _path_of(hierarchy: Hierarchy, label: Label, separator: str) -> str:
    """The way from the root to a label, as text; in a DAG, of several parents the first."""
    graph, nodes = hierarchy.graph, hierarchy.nodes
    number = hierarchy.number(label)
    parts = [str(label)]
    while len(above := graph.parents.row(number)):
        number = int(min(above))
        if not parts[0].startswith(f"{nodes[number]}{separator}"):  # labels that are paths already
            parts.insert(0, str(nodes[number]))
    return separator.join(parts)
