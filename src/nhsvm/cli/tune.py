"""``nhsvm tune``: try parameters on held-out samples, and write the model with the best."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from nhsvm.cli.inputs import DataFile, LabelOptions, SampleOptions, Source
from nhsvm.cli.models import note_of
from nhsvm.cli.options import ConfigFile, CsvSafeFlag, JsonFlag, QuietFlag, option
from nhsvm.cli.output import (
    as_json,
    as_typed,
    broken,
    check_model_path,
    check_writable,
    encoded,
    harmless,
    needs,
    note,
    output_file,
    print_json,
    writing,
)
from nhsvm.cli.pipeline import (
    LOSS_NAMES,
    WEIGHTS,
    ChosenEstimator,
    FeatureOptions,
    ModelName,
    make_estimator,
    make_steps,
    refuse_made,
    with_declared_options,
    with_steps,
)
from nhsvm.cli.terminal import INTERRUPTED, Busy, SearchProgress
from nhsvm.errors import DataError, OptionError
from nhsvm.options import MARGINS
from nhsvm.sizes import readable_bytes

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset
    from nhsvm.model_selection import Tuning
    from nhsvm.typing import JSON, Estimator, LabelsLike, MatrixLike, Options, Record

_TABLES = (".csv", ".json")
_PICTURES = (".png", ".svg", ".pdf")

# -- options -----------------------------------------------------------------------------------------------------------

_TRIED = ("C", "weights", "rho", "directional", "total", "loss", "margin")
_tried = partial(option, panel="Tried")


@with_declared_options(but=_TRIED)
class FixedOptions(ChosenEstimator):
    """Options of the estimator that have one value."""


@dataclass(frozen=True)
class TriedOptions:
    """Values to try, separated by commas; all combinations are."""

    C: str | None = _tried("--C", "-C", metavar="A,B,...", help="Costs of errors.", shown="0.01,0.1,1,10,100")
    lam: str | None = _tried("--lambda", metavar="A,B,...", help="The paper's λ, instead of --C: C = 1/(2λ).")
    weights: str | None = _tried(metavar="A,B,...", help=f"Of nodes, for NHSVM: {', '.join(WEIGHTS)}.")
    rho: str | None = _tried(metavar="A,B,...", help="Of weights power: above 1.")
    directional: str | None = _tried(metavar="no,yes", help="Of weights power: they do not fall on the way down.")
    total: str | None = _tried(
        metavar="A,B,...", help="Largest sums of weights on a path; the least is 1 (LOW:HIGH for others)."
    )
    loss: str | None = _tried(metavar="A,B,...", help=f"{', '.join(LOSS_NAMES)}.")
    margin: str | None = _tried(metavar="A,B,...", help="Of NHSVM: loss, normalized.")
    also: list[str] | None = _tried(
        "--try", metavar="NAME=A,B,...", help="Any other parameter of the Python estimator; may be repeated."
    )
    paper: bool | None = _tried(
        "--paper", help="What the paper tries: ρ = 2, directional, max-min; both margins; its λ."
    )


@dataclass(frozen=True)
class SearchOptions:
    """How values are compared."""

    metric: list[str] | None = option(
        metavar="NAME",
        help="Score on held-out samples, such as hierarchical_f1; repeated, the first decides.",
        shown="accuracy",
    )
    test_size: float = option(default=0.2, help="Share of samples to hold out.")
    validation: str | None = option(metavar="FILE", help="Score these samples instead.")
    search_tol: float = option(default=0.01, help="Gap of the fits of the search.")
    patience: int = option(min=0, default=2, help="End a path of C after so many clearly lower scores; 0 tries all.")
    time_budget: str | None = option(metavar="TIME", help="For the search: 90s, 10m, 1h30m.")


@dataclass(frozen=True)
class FileOptions:
    """What to write."""

    output: Path = option("--output", "--out", "-o", default=Path("model.nhsvm"), help="Model file to write.")
    table: Path | None = option(metavar="FILE", help="Also write all fits: .csv or .json.")
    csv_safe: CsvSafeFlag = False
    plot: Path | None = option(metavar="FILE", help="Also draw them: .png, .svg or .pdf.")

    @property
    def has_csv(self) -> bool:
        return self.table is not None and self.table.suffix.lower() == ".csv"

    def check(self, *inputs: str | Path | None) -> None:
        """Errors about files to write, before any work."""
        check_model_path(self.output, *inputs)
        for path, name, endings in ((self.table, "--table", _TABLES), (self.plot, "--plot", _PICTURES)):
            if path is not None:
                check_writable(path, *inputs, what=name)
                if path.suffix.lower() not in endings:
                    raise OptionError(f"{name} {path}: the name must end in {', '.join(endings)}")
        if self.plot is not None:
            needs("matplotlib", "plot", "--plot")


# -- the command -------------------------------------------------------------------------------------------------------


def tune(
    data: DataFile,
    samples: SampleOptions,
    labels: LabelOptions,
    features: FeatureOptions,
    tried: TriedOptions,
    fixed: FixedOptions,
    how: SearchOptions,
    files: FileOptions,
    *,
    config: ConfigFile = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Try parameters on held-out samples, learn from all with the best, and write that model.

    Lists of values are separated by commas, and all combinations are tried, each along a path of C.

    Ctrl-C ends the search and keeps the best so far.

    Example: nhsvm tune papers.csv --text title --path topic --weights maxmin,power --rho 2,4 --plot tune.png
    """
    options: Options = {
        "time_budget": seconds_of(how.time_budget),
        "patience": how.patience or None,
        "search_tol": how.search_tol,
        "scoring": how.metric or None,
        "test_size": how.test_size,
        "random_state": fixed.seed,
        **_grid(tried, fixed.model),
    }
    if files.csv_safe and not files.has_csv:
        raise OptionError("--csv-safe is for --table with a name that ends in .csv")
    files.check(data, how.validation, labels.hierarchy, config)
    make_estimator(fixed, None)  # so that its errors come before any work; values to try need the labels
    source = Source(data, samples, labels)
    with Busy(f"reading {data}", quiet=quiet):
        dataset = source.read()
    if source.kind == "blocks":
        refuse_made(data)
    if dataset.skipped.count:
        note(str(dataset.skipped))
    if how.validation is not None:
        held_out = Source(how.validation, samples, labels, like=dataset, hierarchy=dataset.hierarchy).read()
        options["validation"] = _inputs(held_out)
    estimator = make_estimator(fixed, dataset.hierarchy)
    model = with_steps(make_steps(features, dataset), estimator)
    found = search(model, dataset, options, quiet=quiet)
    _write(found, files, note_of(source, dataset))
    if json:
        print_json(_result(found, files.output))
    else:
        table_of_fits, _, summary = str(found).partition("\n\n")
        typer.echo(f"{table_of_fits}\n\n{broken(summary)}")
        typer.echo(f"model: {files.output}, {readable_bytes(files.output.stat().st_size)}")
    if found.interrupted:
        note(f"interrupted: {files.output} has the best model of those that had been tried")
        raise typer.Exit(INTERRUPTED)


def _inputs(dataset: Dataset) -> tuple[MatrixLike, LabelsLike]:
    """(samples, labels)."""
    if dataset.y is None:
        raise DataError("no labels to learn from; say where they are, as with --label COLUMN")
    return (dataset.X if dataset.texts is None else dataset.texts), dataset.y


def search(model: Estimator, dataset: Dataset, options: Options, *, quiet: bool) -> Tuning:
    """The search and the refit, also of what an interrupted search has found."""
    from sklearn.exceptions import ConvergenceWarning

    from nhsvm.model_selection import refit_best, tune

    X, y = _inputs(dataset)
    try:
        with SearchProgress(quiet=quiet) as progress:
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


def _write(found: Tuning, files: FileOptions, about: Record) -> None:
    """All files, each of them whole or not at all."""
    from nhsvm.model import save

    if files.table is not None:
        text = _csv(found.rows(), safe=files.csv_safe) if files.has_csv else _json(found.rows())
        with output_file(files.table) as stream:
            stream.write(encoded(text))
    if files.plot is not None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 5), layout="constrained")
        FigureCanvasAgg(figure)
        found.plot(figure.subplots())
        with output_file(files.plot) as stream:
            figure.savefig(stream, format=files.plot.suffix.lower()[1:], dpi=150)
    with writing(files.output):
        save(found.model, files.output, note=about)


def _csv(rows: list[Record], *, safe: bool) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: harmless(value) if safe else value for name, value in row.items()} for row in rows)
    return text.getvalue()


def _json(rows: list[Record]) -> str:
    return json.dumps(as_json(rows), ensure_ascii=False, indent=1) + "\n"


def _result(found: Tuning, output: Path) -> Record:
    rows = found.rows()
    return {
        "best": next(row for row in rows if row["best"]),
        "metric": found.scoring,
        "score": found.best_score,
        "edge": found.edge,
        "held_out": found.n_held_out,
        "fits": rows,
        "not_tried": [{**one.shown, "C": one.C, "reason": one.reason} for one in found.untried],
        "left_out": [{"setting": setting, "reason": reason} for setting, reason in found.plan.refused],
        "interrupted": found.interrupted,
        "file": str(output),
        "bytes": output.stat().st_size,
    }


# -- values to try -----------------------------------------------------------------------------------------------------

Value = TypeVar("Value")


def _grid(tried: TriedOptions, model: ModelName) -> Options:
    """``grid``, ``C`` and ``lam`` of :func:`nhsvm.model_selection.tune`; a bad value is an error that names it."""
    grid: dict[str, Sequence[object]] = {}
    for name, parse in _PARSERS.items():
        given = getattr(tried, name)
        if given is not None:
            if name != "loss" and model != "NHSVM":
                raise OptionError(f"--{name} is for NHSVM, not for {model}")
            grid[name] = _parsed(f"--{name}", given, parse)
    for given in tried.also or ():
        name, sign, values = given.partition("=")
        if not sign or not name:
            raise OptionError(f"--try must be NAME=VALUE,VALUE, such as class_weight=none,balanced, not {given!r}")
        if name in _TRIED or name in grid:
            raise OptionError(f"--try {name} is given twice, or has an option of its own: --{name}")
        grid[name] = _parsed(f"--try {name}", values, _literal)
    if tried.paper and grid:
        raise OptionError(f"--paper says what is tried: leave out {', '.join(grid)}")
    return {
        "grid": "paper" if tried.paper else grid or None,
        "C": None if tried.C is None else _parsed("--C", tried.C, _number),
        "lam": None if tried.lam is None else _parsed("--lambda", tried.lam, _number),
    }


def seconds_of(text: str | None) -> float | None:
    """A time such as 90, 90s, 10m or 1h30m in seconds.

    Examples
    --------
    >>> seconds_of("90"), seconds_of("1h30m"), seconds_of("2.5m")
    (90.0, 5400.0, 150.0)
    """
    if text is None:
        return None
    number = r"(\d+(?:\.\d*)?)"
    match = re.fullmatch(f"(?:{number}h)?(?:{number}m)?(?:{number}s?)?", text.strip().lower())
    parts = ("0",) if match is None else match.groups()
    found = sum((float(part or 0) * unit for part, unit in zip(parts, (3600, 60, 1), strict=False)), 0.0)
    if not found > 0:
        raise OptionError(f"--time-budget must be a time such as 90s, 10m or 1h30m, not {text!r}")
    return found


def _parsed(name: str, given: str, parse: Callable[[str], Value]) -> list[Value]:
    try:
        return [parse(part.strip()) for part in given.split(",")]
    except ValueError as error:
        raise OptionError(f"{name} {given!r}: {error}") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


def _one_of(known: Sequence[str], text: str) -> str:
    if text not in known:
        raise ValueError(f"{text!r} is not one of {', '.join(known)}")
    return text


def _yes_or_no(text: str) -> bool:
    if text.lower() not in ("yes", "true", "no", "false"):
        raise ValueError(f"{text!r} is neither yes nor no")
    return text.lower() in ("yes", "true")


def _total(text: str) -> tuple[float, float]:
    low, sign, high = text.partition(":")
    return (_number(low), _number(high)) if sign else (1.0, _number(low))


def _literal(text: str) -> JSON:
    """A number, true, false, none, or text."""
    lowered = text.lower()
    if lowered == "none":
        return None
    try:
        return json.loads(lowered if lowered in ("true", "false") else text)
    except ValueError:
        return text


_PARSERS: dict[str, Callable[[str], object]] = {
    "weights": partial(_one_of, WEIGHTS),
    "rho": _number,
    "directional": _yes_or_no,
    "total": _total,
    "loss": partial(_one_of, LOSS_NAMES),
    "margin": partial(_one_of, MARGINS),
}
