"""``nhsvm tune``: try parameters on held-out samples, and write the model with the best."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nhsvm.cli._blocks_steps import refuse_made
from nhsvm.cli._config import ConfigFile
from nhsvm.cli._estimators import ModelOptions, make_estimator
from nhsvm.cli._features import FeatureOptions, make_steps
from nhsvm.cli._inputs import DataFile, FileFormat, LabelOptions, SampleOptions, format_of, read_data, takes
from nhsvm.cli._interrupt import INTERRUPTED
from nhsvm.cli._models import note_of
from nhsvm.cli._output import (
    JsonFlag,
    as_typed,
    broken,
    check_distinct,
    check_model_path,
    check_writable,
    needs,
    note,
    output_file,
    print_json,
    writing,
)
from nhsvm.cli._progress import Busy, bar, fitting
from nhsvm.cli._tune_options import FixedOptions, TriedOptions, grid_of, seconds_of
from nhsvm.cli._writers import encoded, harmless
from nhsvm.errors import DataError, OptionError
from nhsvm.sizes import readable_bytes

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset
    from nhsvm.model_selection import Trial, Tuning

_TABLES = (".csv", ".json")
_PICTURES = (".png", ".svg", ".pdf")


@takes(samples=SampleOptions, labels=LabelOptions, features=FeatureOptions, tried=TriedOptions, fixed=FixedOptions)
def tune(
    data: DataFile,
    samples: SampleOptions,
    labels: LabelOptions,
    features: FeatureOptions,
    tried: TriedOptions,
    fixed: Any,
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            show_default="accuracy",
            help="Score on held-out samples, such as hierarchical_f1; repeated, the first decides.",
        ),
    ] = None,
    test_size: Annotated[float, typer.Option(help="Share of samples to hold out.")] = 0.2,
    validation: Annotated[
        str | None, typer.Option(metavar="FILE", show_default=False, help="Score these samples instead.")
    ] = None,
    search_tol: Annotated[float, typer.Option(help="Gap of the fits of the search.")] = 0.01,
    patience: Annotated[
        int, typer.Option(min=0, help="End a path of C after so many clearly lower scores; 0 tries all.")
    ] = 2,
    time_budget: Annotated[
        str | None, typer.Option(metavar="TIME", show_default=False, help="For the search: 90s, 10m, 1h30m.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "--out", "-o", help="Model file to write.")] = Path("model.nhsvm"),
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="Also write all fits: .csv or .json.")
    ] = None,
    csv_safe: Annotated[
        bool,
        typer.Option("--csv-safe", help="In CSV, an apostrophe before cells that a spreadsheet would run as formulas."),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", show_default=False, help="Also draw them: .png, .svg or .pdf.")
    ] = None,
    config: ConfigFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    json: JsonFlag = False,
) -> None:
    """Try parameters on held-out samples, learn from all with the best, and write that model.

    Lists of values are separated by commas, and all combinations are tried, each along a path of C.

    Ctrl-C ends the search and keeps the best so far.

    Example: nhsvm tune papers.csv --text title --path topic --weights maxmin,power --rho 2,4 --plot tune.png
    """
    options: dict[str, Any] = {
        "time_budget": seconds_of(time_budget),
        "patience": patience or None,
        "search_tol": search_tol,
    }
    options |= grid_of(tried, fixed.model) | {"scoring": metric or None, "test_size": test_size}
    if csv_safe and (table is None or table.suffix.lower() != ".csv"):
        raise OptionError("--csv-safe is for --table with a name that ends in .csv")
    _check_files(output, table, plot, (data, validation, labels.hierarchy, config))
    fixed_options = ModelOptions(**vars(fixed))
    make_estimator(fixed_options, None)
    with Busy(f"reading {data}", quiet=quiet):
        dataset = read_data(data, samples, labels)
    if format_of(data, samples) is FileFormat.blocks:
        refuse_made(data)
    if dataset.skipped.count:
        note(str(dataset.skipped))
    if validation is not None:
        held_out = read_data(validation, samples, labels, like=dataset, hierarchy=dataset.hierarchy)
        options["validation"] = _inputs(held_out)
    model = _estimator(fixed_options, features, dataset)
    found = _search(model, dataset, options | {"random_state": fixed.seed}, quiet=quiet)
    _write(found, note_of(data, samples, labels, dataset), output, table, plot, safe=csv_safe)
    if json:
        print_json(_result(found, output))
    else:
        table_of_fits, _, summary = str(found).partition("\n\n")
        typer.echo(f"{table_of_fits}\n\n{broken(summary)}")
        typer.echo(f"model: {output}, {readable_bytes(output.stat().st_size)}")
    if found.interrupted:
        note(f"interrupted: {output} has the best model of those that had been tried")
        raise typer.Exit(INTERRUPTED)


def _check_files(output: Path, table: Path | None, plot: Path | None, inputs: Sequence[str | Path | None]) -> None:
    """Errors about files to write, before any work."""
    check_model_path(output)
    check_distinct(output, *inputs)
    for path, name, endings in ((table, "--table", _TABLES), (plot, "--plot", _PICTURES)):
        if path is not None:
            check_writable(path, name)
            check_distinct(path, *inputs, what=name)
            if path.suffix.lower() not in endings:
                raise OptionError(f"{name} {path}: the name must end in {', '.join(endings)}")
    if plot is not None:
        needs("matplotlib", "plot", "--plot")


def _estimator(options: ModelOptions, features: FeatureOptions, dataset: Dataset) -> Any:
    from sklearn.pipeline import Pipeline

    estimator = make_estimator(options, dataset.hierarchy)
    steps = make_steps(features, dataset)
    return Pipeline([*steps, ("svm", estimator)]) if steps else estimator


def _inputs(dataset: Dataset) -> tuple[Any, Any]:
    """(samples, labels)."""
    if dataset.y is None:
        raise DataError("no labels to learn from; say where they are, as with --label COLUMN")
    return (dataset.X if dataset.texts is None else dataset.texts), dataset.y


def _search(model: Any, dataset: Dataset, options: dict[str, Any], *, quiet: bool) -> Tuning:
    """The search and the refit, also of what an interrupted search has found."""
    from sklearn.exceptions import ConvergenceWarning

    from nhsvm.model_selection import refit_best, tune

    X, y = _inputs(dataset)
    try:
        with _Progress(quiet) as progress:
            found = tune(model, X, y, refit=False, progress=progress, **options)
    except KeyboardInterrupt:
        note("interrupted before a fit had come to its end: nothing is written")
        raise typer.Exit(INTERRUPTED) from None
    if found.interrupted:
        note("interrupted: now learning from all samples with the best so far (Ctrl-C again ends that too)")
    with warnings.catch_warnings(record=True) as caught, Busy("learning from all samples with the best", quiet=quiet):
        warnings.simplefilter("always", ConvergenceWarning)
        found = refit_best(found, model, X, y)
    for warning in caught:
        note(as_typed(str(warning.message)))
    return found


def _write(
    found: Tuning, about: dict[str, Any], output: Path, table: Path | None, plot: Path | None, *, safe: bool
) -> None:
    """All files, each of them whole or not at all."""
    from nhsvm.model import save

    if table is not None:
        text = _csv(found, safe=safe) if table.suffix.lower() == ".csv" else _json(found)
        with output_file(table) as stream:
            stream.write(encoded(text))
    if plot is not None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 5), layout="constrained")
        FigureCanvasAgg(figure)
        found.plot(figure.subplots())
        with output_file(plot) as stream:
            figure.savefig(stream, format=plot.suffix.lower()[1:], dpi=150)
    with writing(output):
        save(found.model, output, note=about)


def _csv(found: Tuning, *, safe: bool) -> str:
    import csv
    import io

    rows, text = found.rows(), io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    made = harmless if safe else (lambda value: value)
    writer.writerows({name: made(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _json(found: Tuning) -> str:
    import json

    from nhsvm.cli._output import as_json

    return json.dumps(as_json(found.rows()), ensure_ascii=False, indent=1) + "\n"


def _result(found: Tuning, output: Path) -> dict[str, Any]:
    best = next(row for row in found.rows() if row["best"])
    return {
        "best": best,
        "metric": found.scoring,
        "score": found.best_score,
        "edge": found.edge,
        "held_out": found.n_held_out,
        "fits": found.rows(),
        "not_tried": [{**one.shown, "C": one.C, "reason": one.reason} for one in found.untried],
        "left_out": [{"setting": setting, "reason": reason} for setting, reason in found.plan.refused],
        "interrupted": found.interrupted,
        "file": str(output),
        "bytes": output.stat().st_size,
    }


class _Progress:
    """A bar on a terminal, a line a fit elsewhere; the ``progress`` of a search."""

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._bar, self._task = quiet, None, None  # type: bool, Any, Any

    def __enter__(self) -> _Progress:
        if not self._quiet and sys.stderr.isatty():
            self._bar = bar()
            self._task = self._bar.add_task("trying", total=None, gap="")
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, trial: Trial, made: int, planned: int) -> None:
        text = f"{made}/{planned}  {trial.line(next(iter(trial.scores)))}"
        if self._bar is not None:
            shown = fitting(text, self._bar.console.width)
            self._bar.update(self._task, completed=made, total=planned, gap=shown)
        elif not self._quiet:
            note(text)
