"""Pipelines of transformers and an estimator, in a model file."""

from __future__ import annotations

from typing import Any

from nhsvm.errors import OptionError
from nhsvm.persistence._kinds import KINDS
from nhsvm.persistence._malformed import JSON, Malformed, entry, expect, shorten
from nhsvm.persistence.checks import check_step_names
from nhsvm.persistence.steps import StepDecoder, StepEncoder
from nhsvm.persistence.values import Encoder


def is_pipeline(model: Any) -> bool:
    """Whether a model is a pipeline of scikit-learn, and no subclass."""
    from sklearn.pipeline import Pipeline

    return type(model) is Pipeline


def steps_of(pipeline: Any, encoder: Encoder) -> dict[str, JSON]:
    """What a file says of a pipeline: the names of its steps, and all of them but the estimator."""
    from sklearn.utils.validation import check_is_fitted

    for name, value in vars(pipeline).items():
        if name not in ("steps", "verbose") and value is not None:
            raise OptionError(f"the pipeline cannot be saved: {name} is {shorten(value)}, and must be None")
    steps = StepEncoder(encoder)
    parts = []
    for name, step in pipeline.steps[:-1]:
        where = f"step {name!r} of the pipeline"
        if type(step).__name__ in KINDS and KINDS[type(step).__name__].shapes:
            check_is_fitted(step)
        parts.append([name, steps.encode(step, where)])
    return {"steps": parts, "last_step": pipeline.steps[-1][0], "pipeline": {"verbose": bool(pipeline.verbose)}}


def pipeline_of(header: dict[str, JSON], steps: StepDecoder, estimator: Any) -> Any:
    """The pipeline that ends in an estimator; raises :class:`Malformed` if its parts do not fit together."""
    from sklearn.pipeline import Pipeline

    parts: list[tuple[str, Any]] = []
    for item in entry(header, "steps", list):
        if not isinstance(item, list) or len(item) != 2:
            raise Malformed(f"a step is damaged: {shorten(item)}")
        parts.append((expect(item[0], str, "the name of a step"), steps.decode(item[1])))
    parts.append((entry(header, "last_step", str), estimator))
    verbose = entry(entry(header, "pipeline", dict), "verbose", bool)
    check_step_names(name for name, _ in parts)
    _check_chain([step for _, step in parts])
    return Pipeline(parts, verbose=verbose)


def _check_chain(steps: list[Any]) -> None:
    """What comes out of a step goes into the next one: as many features, and sparse only where that can be."""
    n_features, sparse = None, False
    for position, step in enumerate(steps):
        name = type(step).__name__
        kind = KINDS.get(name)
        if kind is not None and kind.reads_text:
            if position:
                raise Malformed(f"a {name} reads texts, and must be the first step")
        elif n_features is not None and step.n_features_in_ != n_features:
            raise Malformed(f"{n_features} features go into a {name}, which has learned from {step.n_features_in_}")
        if kind is not None:
            if sparse and kind.dense_only(step):
                raise Malformed(f"sparse features go into a {name}, which takes dense ones with its options")
            n_features, sparse = kind.n_out(step), sparse if kind.gives == "same" else kind.gives == "sparse"
