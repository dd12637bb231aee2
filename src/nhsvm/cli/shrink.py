"""``nhsvm shrink``: a smaller model file, and what that costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nhsvm.cli._inputs import LabelOptions, SampleOptions, takes
from nhsvm.cli._models import LoadedModel, ModelFile, ModelOptions, PrecisionOption, inputs_of, load_model, read_for
from nhsvm.cli._options import option
from nhsvm.cli._output import JsonFlag, check_distinct, check_model_path, print_json, writing
from nhsvm.errors import DataError, OptionError
from nhsvm.sizes import readable_bytes


@takes(samples=SampleOptions, labels=LabelOptions, trust=ModelOptions)
def shrink(
    model: ModelFile,
    samples: SampleOptions,
    labels: LabelOptions,
    trust: ModelOptions,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")],
    precision: PrecisionOption = None,
    prune: Annotated[
        float | None, option(metavar="SHARE", help="Drop this share of the weights, the smallest; 0.9 keeps a tenth.")
    ] = None,
    held_out: Annotated[
        str | None, option(metavar="DATA", help="Labelled data that were not learned from: says what it costs.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Write a model with fewer weights, or with weights of lower precision.

    With held-out data it says how many answers are right before and after, and how many are the same.

    Example: nhsvm shrink papers.nhsvm --prune 0.8 --precision int8 --held-out new.csv -o small.nhsvm
    """
    check_model_path(output)
    check_distinct(output, model, held_out)
    if precision is None and prune is None:
        raise OptionError("nothing to do: say --precision, --prune, or both")
    loaded = load_model(model, trust)
    data = None if held_out is None else _read(loaded, held_out, samples, labels)
    from nhsvm.estimators.pruning import prune as pruned
    from nhsvm.model import load, save

    smaller = loaded.model if prune is None else pruned(loaded.model, share=prune).model
    with writing(output):
        save(smaller, output, note=dict(loaded.note), precision=precision)
    result: dict[str, Any] = {
        "file": str(output),
        "bytes_before": model.stat().st_size,
        "bytes": output.stat().st_size,
    }
    if data is not None:
        from nhsvm.estimators.pruning import effect_of

        result["effect"] = effect_of(loaded.model, load(output, trust_patterns=True), *data)._asdict()
    if json:
        print_json(result)
    else:
        _show(result)


def _read(loaded: LoadedModel, file: str, samples: SampleOptions, labels: LabelOptions) -> tuple[Any, Any]:
    """Samples and labels."""
    dataset = read_for(loaded, file, samples, labels)
    if dataset.y is None:
        raise DataError(f"{file}: no labels to compare with; say where they are, as with --label COLUMN")
    return inputs_of(loaded, dataset), dataset.y


def _show(result: dict[str, Any]) -> None:
    before, after = (readable_bytes(result[name]) for name in ("bytes_before", "bytes"))
    typer.echo(f"{result['file']}: {after}, before {before}")
    if "effect" in result:
        found = result["effect"]
        typer.echo(
            f"of {found['n_samples']:,} held-out samples {found['after']:.2%} right, before {found['before']:.2%}; "
            f"{found['same']:.2%} answered alike"
        )
