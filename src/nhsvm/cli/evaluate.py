"""``nhsvm evaluate``: how good a model is on labelled data, as tables, JSON or an HTML page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nhsvm.cli.inputs import DataFile, LabelOptions, SampleOptions
from nhsvm.cli.models import JobsOption, LoadedModel, ModelFile, TrustOptions, load_model, read_labelled
from nhsvm.cli.options import ConfigFile, JsonFlag, option
from nhsvm.cli.output import broken, check_writable, needs, note, print_json, writing
from nhsvm.cli.predict import check_measure
from nhsvm.cli.terminal import Busy
from nhsvm.errors import OptionError

if TYPE_CHECKING:
    from nhsvm.report import Evaluation

_CONFUSIONS = 50  # pairs of labels on the page, at the least


@dataclass(frozen=True)
class ReportOptions:
    """What to show, and the page to write."""

    report: Path | None = option(metavar="FILE", help="Also write one HTML page: report.html.")
    title: str | None = option(help="Heading of the page.")
    metrics: str | None = option(metavar="A,B,...", help="Only these measures, by their names in --json.")
    for_measure: str | None = option(
        metavar="MEASURE", help="Judge predictions that are made for this measure.", shown="best score"
    )
    branches: int = option(min=0, default=15, help="Inner nodes to show, those with the most samples first.")
    confusions: int = option(min=0, default=15, help="Confused pairs of labels to show.")
    id_column: str | None = option(metavar="COLUMN", help="What samples are called in the report.")

    def check(self, *inputs: str | Path | None) -> None:
        """An error if the page cannot be written; before any work."""
        if self.title is not None and (self.report is None or not self.title.strip()):
            raise OptionError("--title is the heading of the page: give some text, and --report FILE")
        if self.report is None:
            return
        if str(self.report) == "-":
            raise OptionError("--report needs the name of a file, such as report.html")
        needs("jinja2", "report", "--report")
        check_writable(self.report, *inputs, what="--report")


def evaluate(
    model: ModelFile,
    data: DataFile,
    samples: SampleOptions,
    labels: LabelOptions,
    trust: TrustOptions,
    options: ReportOptions,
    *,
    jobs: JobsOption = None,
    config: ConfigFile = None,
    json: JsonFlag = False,
) -> None:
    """Compare what a model predicts with the labels of a data file.

    Shows all measures, by depth and by branch, and the labels that are confused most. Columns and features are those of
    the training data unless options say otherwise. Labels that training has not seen are counted.

    Example: nhsvm evaluate papers.nhsvm test.csv --report report.html

    Example: zcat test.jsonl.gz | nhsvm evaluate model.nhsvm - --format jsonl --metrics accuracy,hierarchical_f1
    """
    options.check(model, data, labels.hierarchy, config)
    loaded = load_model(model, trust, jobs)
    wanted = _wanted(options.metrics, loaded)
    if options.for_measure is not None:
        check_measure(loaded.svm.model_, options.for_measure)
    extra = [] if options.id_column is None else [options.id_column]
    with Busy(f"reading {data}", quiet=json):
        dataset, inputs, y = read_labelled(loaded, data, samples, labels, extra=extra)
    if dataset.skipped.count:
        note(str(dataset.skipped))
    from nhsvm.report import evaluate as evaluated

    with Busy("predicting and counting", quiet=json):
        found = evaluated(
            loaded.model,
            inputs,
            y,
            hierarchy=None if labels.hierarchy is None else dataset.hierarchy,
            texts=dataset.texts,
            ids=None if options.id_column is None else dataset.extra[options.id_column],
            for_measure=options.for_measure,
            confusions=max(options.confusions, 0 if options.report is None else _CONFUSIONS),
        )
    if options.report is not None:
        from nhsvm.report import write_report

        with writing(options.report):
            write_report(found, options.report, options.title)
    if json:
        metrics = {name: found.metrics[name] for name in wanted if name in found.metrics}
        report = None if options.report is None else str(options.report)
        print_json(found.to_dict() | {"metrics": metrics, "report": report})
    else:
        _show(found, wanted, options.branches, options.confusions)
    if options.report is not None:
        note(f"report: {options.report}")


def _wanted(metrics: str | None, loaded: LoadedModel) -> list[str]:
    """Names of the measures to show."""
    from nhsvm.report.answers import take_apart
    from nhsvm.report.measures import fitting

    parts = take_apart(loaded.model)
    known = fitting("sets" if parts.has_sets else "single", probabilities=parts.has_probabilities)
    if metrics is None:
        return known
    wanted = [name.strip() for name in metrics.split(",")]
    for name in wanted:
        if name not in known:
            raise OptionError(f"--metrics: this model has no measure {name!r}; it has {', '.join(known)}")
    return wanted


def _show(found: Evaluation, wanted: Sequence[str], branches: int, confusions: int) -> None:
    from nhsvm.report.measures import MEASURES, measure, number, percent, sentences

    typer.echo(broken(" ".join(sentences(found))))
    for line in found.notes:
        typer.echo(broken(f"Note: {line}"))
    values = [(n, measure(n, found.metrics[n]), MEASURES[n].meaning) for n in wanted if n in found.metrics]
    _table("Measures", ("measure", "value", "meaning"), values, texts=(0, 2))
    rows: list[Sequence[str]] = [
        (str(d.depth), number(d.nodes), number(d.samples), percent(d.accuracy), percent(d.f1), number(d.first_errors))
        for d in found.depths
    ]
    _table("By depth", ("depth", "nodes", "samples", "all right", "F1", "first wrong here"), rows)
    nodes, kind = found.nodes, "accuracy" if found.kind == "single" else "found"
    shares = (nodes.accuracy, nodes.f1, nodes.recall, nodes.leaving)
    rows = [
        (nodes.name[i], number(nodes.samples[i]), *(percent(share[i]) for share in shares))
        for i in found.branches()[:branches].tolist()
    ]
    head: Sequence[str] = ("branch", "samples", kind, "F1", "stay", "errors that leave")
    _table(_some("Branches", len(rows), len(found.branches())), head, rows, texts=(0,))
    rows = [
        (c.true, c.predicted, number(c.count), percent(c.share), number(c.distance))
        for c in found.confusions[:confusions]
    ]
    head = ("true", "predicted", "times", "of this label", "distance")
    _table(_some("Most confused", len(rows), found.n_confusions), head, rows, texts=(0, 1))


def _some(title: str, shown: int, total: int) -> str:
    return title if shown == total else f"{title} ({shown} of {total:,})"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[int] = ()) -> None:
    """A table in colours on a terminal, in aligned columns elsewhere; nothing if it has no rows."""
    if not rows:
        return
    if sys.stdout.isatty():
        _rich_table(title, head, rows, texts)
        return
    width = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    typer.echo(f"\n{title}")
    for row in (head, *rows):
        cells = [
            cell.ljust(w) if k in texts else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, width, strict=True))
        ]
        typer.echo("  ".join(["", *cells]).rstrip())


def _rich_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[int]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, name in enumerate(head):
        table.add_column(name, justify="left" if k in texts else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # labels are no markup
    Console().print(table)
