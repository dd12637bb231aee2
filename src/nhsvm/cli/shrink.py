"""``nhsvm shrink``: a smaller model file, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nhsvm.cli.inputs import LabelOptions, SampleOptions
from nhsvm.cli.models import ModelFile, PrecisionOption, TrustOptions, load_model, read_labelled
from nhsvm.cli.options import JsonFlag, option
from nhsvm.cli.output import check_model_path, print_json, writing
from nhsvm.errors import OptionError
from nhsvm.sizes import readable_bytes


@dataclass(frozen=True)
class ShrinkOptions:
    """What becomes smaller, and the file to write."""

    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")]
    precision: PrecisionOption = None
    prune: float | None = option(
        metavar="SHARE", help="Drop this share of the weights, the smallest; 0.9 keeps a tenth."
    )
    held_out: str | None = option(metavar="DATA", help="Labelled data that were not learned from: says what it costs.")


def shrink(
    model: ModelFile,
    samples: SampleOptions,
    labels: LabelOptions,
    trust: TrustOptions,
    options: ShrinkOptions,
    *,
    json: JsonFlag = False,
) -> None:
    """Write a model with fewer weights, or with weights of lower precision.

    With held-out data it says how many answers are right before and after, and how many are the same.

    Example: nhsvm shrink papers.nhsvm --prune 0.8 --precision int8 --held-out new.csv -o small.nhsvm
    """
    output, held_out = options.output, options.held_out
    check_model_path(output, model, held_out)
    if options.precision is None and options.prune is None:
        raise OptionError("nothing to do: say --precision, --prune, or both")
    loaded = load_model(model, trust)
    data = None if held_out is None else read_labelled(loaded, held_out, samples, labels)
    from nhsvm.estimators.pruning import effect_of
    from nhsvm.estimators.pruning import prune as pruned
    from nhsvm.model import load, save

    smaller = loaded.model if options.prune is None else pruned(loaded.model, share=options.prune).model
    with writing(output):
        save(smaller, output, note=dict(loaded.note), precision=options.precision)
    before, after = model.stat().st_size, output.stat().st_size
    effect = None
    if data is not None:
        _, inputs, y = data
        effect = effect_of(loaded.model, load(output, trust_patterns=True), inputs, y)
    if json:
        costs = {} if effect is None else {"effect": effect._asdict()}
        print_json({"file": str(output), "bytes_before": before, "bytes": after, **costs})
        return
    typer.echo(f"{output}: {readable_bytes(after)}, before {readable_bytes(before)}")
    if effect is not None:
        typer.echo(
            f"{effect.n_samples:,} held-out samples: accuracy {effect.after:.2%}, before {effect.before:.2%}; "
            f"same predictions for {effect.same:.2%}"
        )
