"""``nhsvm train``: from a data file to a model file."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from nhsvm.cli.inputs import DataFile, LabelOptions, SampleOptions, Source
from nhsvm.cli.models import PrecisionOption, note_of
from nhsvm.cli.options import ConfigFile, JsonFlag, QuietFlag
from nhsvm.cli.output import as_typed, check_model_path, note, print_json, writing
from nhsvm.cli.pipeline import (
    Auto,
    EstimatorOptions,
    FeatureOptions,
    described,
    fitted,
    make_estimator,
    make_steps,
    read_steps,
    summary,
    with_steps,
)
from nhsvm.cli.terminal import INTERRUPTED, Busy, FitProgress
from nhsvm.errors import MemoryWarning, OptionError
from nhsvm.sizes import readable_bytes

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset
    from nhsvm.pipelines import Steps
    from nhsvm.typing import Estimator, Record

MUCH = 2 * 10**9  # bytes that one should know of beforehand, even if no progress is to be shown


def train(
    data: DataFile,
    samples: SampleOptions,
    labels: LabelOptions,
    features: FeatureOptions,
    options: EstimatorOptions,
    *,
    auto: Annotated[
        bool, typer.Option("--auto", help="Choose C on held-out samples, and what else is chosen so.")
    ] = False,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Score by which --auto chooses.", show_default="accuracy; example_jaccard"),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")] = Path("model.nhsvm"),
    precision: PrecisionOption = None,
    config: ConfigFile = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Learn from a data file and write a model file.

    Texts become features by a vectoriser that is part of the model.

    Ctrl-C ends training and keeps the best model so far.

    Example: nhsvm train papers.csv --text title --path topic -o papers.nhsvm
    """
    check_model_path(output, data, labels.hierarchy, config)
    if metric is not None and not auto:
        raise OptionError("--metric is what --auto chooses by: give --auto too, or leave it out")
    chosen_by = Auto(metric) if auto else None
    make_estimator(options, None, chosen_by)  # so that options that do not go together are found before any work
    source = Source(data, samples, labels)
    with Busy(f"reading {data}", quiet=quiet):
        dataset = source.read()
    if dataset.skipped.count:
        note(str(dataset.skipped))
    before = read_steps(data) if source.kind == "blocks" else []
    model, result, interrupted = _fit(dataset, features, options, chosen_by, quiet=quiet, before=before)
    from nhsvm.model import save

    with writing(output):
        save(model, output, note=note_of(source, dataset), precision=precision)
    result |= {"file": str(output), "bytes": output.stat().st_size, "skipped": dataset.skipped.count}
    if json:
        print_json(result)
    else:
        _show(result)
    if interrupted:
        note(f"interrupted: {output} has the model as it was then, with the gap shown")
        raise typer.Exit(INTERRUPTED)


def _fit(
    dataset: Dataset,
    features: FeatureOptions,
    options: EstimatorOptions,
    auto: Auto | None,
    *,
    quiet: bool,
    before: Steps,
) -> tuple[Estimator, Record, bool]:
    """A fitted model, what is to be said of it, and whether the user has interrupted it.

    ``before`` are fitted transformers that have made the features already, and that are to be a part of the model.
    """
    from sklearn.exceptions import ConvergenceWarning

    from nhsvm.estimators.memory import estimate_of
    from nhsvm.estimators.scales import about_scales

    steps = make_steps(features, dataset)
    if before and steps:
        raise OptionError("these blocks have features that convert has made: leave out --transform and --missing")
    start = perf_counter()
    with Busy("making features", quiet=quiet):
        X = fitted(steps, dataset)
    made = perf_counter() - start
    estimator = make_estimator(options, dataset.hierarchy, auto)
    refits = auto is None and isinstance(estimator.cv, int) and (estimator.probability or estimator.offsets)
    folds = estimator.cv if refits else 0
    problem = estimator.make_problem(X, dataset.y)
    chosen = problem.chosen
    progress = FitProgress(chosen.tol, estimator.max_iter, folds, proves=chosen.certify, quiet=quiet)
    estimator.set_params(callback=progress)
    estimate = estimate_of(problem, estimator if auto is None else estimator.plain())
    if not quiet or estimate.total > MUCH or not estimate.fits:
        note(as_typed(f"memory needed: {estimate}"))
    uneven = None if quiet else about_scales(problem.solved, None)
    if uneven:
        note(as_typed(uneven))
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught, progress:
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("always", MemoryWarning)
        estimator.fit_problem(problem)
    seconds = perf_counter() - start
    found = {} if auto is None else _chosen(estimator)
    if auto is not None:
        estimator = estimator.best_estimator_
    estimator.set_params(callback=None)
    known = () if estimate.fits else (MemoryWarning,)  # the estimate has said it
    said = [str(warning.message) for warning in caught if not issubclass(warning.category, known)]
    for text in dict.fromkeys(said):
        note(as_typed(text))
    steps = [*before, *steps]
    last = estimator.history_[-1] if estimator.history_ else {}
    error = last["training_error"] if last.get("certified") else None  # others are of weights on the way
    result = {
        "model": described(options),
        "samples": dataset.n_samples,
        "multilabel": dataset.is_multilabel,
        "features": X.shape[1],
        "transformers": summary(steps),
        "classes": len(estimator.classes_),
        "nodes": estimator.hierarchy_.n_nodes,
        "passes": estimator.n_iter_,
        "objective": estimator.objective_,
        "C": estimator.C_,
        "gap": estimator.gap_,
        "certified": estimator.certified_,
        "training_accuracy": None if error is None or math.isnan(error) else 1.0 - error,
        "feature_seconds": made,
        "seconds": seconds,
        "expected_bytes": estimate.total,
    } | found
    return with_steps(steps, estimator), result, estimator.interrupted_


def _chosen(estimator: Estimator) -> Record:
    """What an estimator has tried and chosen."""
    columns = estimator.cv_results_
    rows = zip(columns["params"], columns["mean_test_score"], columns["n_passes"], strict=True)
    return {
        "chosen": estimator.best_params_,
        "metric": estimator.scoring_,
        "score": estimator.best_score_,
        "held_out": estimator.n_held_out_,
        "tried": [{**params, "score": score, "passes": passes} for params, score, passes in rows],
    }


def _told(result: Record) -> str:
    """What was chosen, if anything was."""
    if "chosen" not in result:
        return ""
    shown = (
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in result["chosen"].items()
    )
    samples = "1 held-out sample" if result["held_out"] == 1 else f"{result['held_out']:,} held-out samples"
    return f" {' '.join(shown)}, chosen by {result['metric']} on {samples}"


def _tried(result: Record) -> list[str]:
    """What was tried, a line each, the best with a star."""
    names = list(result["chosen"])
    rows = [["", *names, result["metric"], "passes"]]
    for one in result["tried"]:
        best = all(one[name] == result["chosen"][name] for name in names)
        shown = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in map(one.get, names)]
        rows.append(["*" if best else "", *shown, f"{one['score']:.4f}", f"{one['passes']}"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]


def _show(result: Record) -> None:
    gap = f"{100 * result['gap']:.2g}" if result["gap"] < 0.99 else f"{100 * result['gap']:.0f}"  # not 1e+02
    value = f"{result['objective']:.4g}" if result["objective"] < 1000 else f"{result['objective']:,.0f}"
    sets = ", several labels each" if result["multilabel"] else ""
    for k, line in enumerate(_tried(result) if "tried" in result else ()):
        typer.echo(f"{'' if k else 'tried':<10} {line}")
    lines = {
        "samples": f"{result['samples']:,}{sets}",
        "features": f"{result['features']:,} ({result['transformers']})",
        "labels": f"{result['classes']:,} in a hierarchy of {result['nodes']:,} nodes",
        "model": f"{result['model']}{_told(result)}",
        "training": f"{result['passes']:,} pass{'' if result['passes'] == 1 else 'es'}, {result['seconds']:.1f} s",
        "objective": (
            f"{value}, within {gap} % of optimal ({'proved' if result['certified'] else 'estimated'})"
            if math.isfinite(result["gap"])
            else "not measured"
        ),
    }
    if result["training_accuracy"] is not None:
        lines["accuracy"] = f"{result['training_accuracy']:.2%} on the training data"
    lines["file"] = f"{result['file']}, {readable_bytes(result['bytes'])}"
    for name, text in lines.items():
        typer.echo(f"{name:<10} {text}")
