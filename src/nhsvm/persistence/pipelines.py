"""Pipelines of transformers and an estimator, in a model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import OptionError
from nhsvm.persistence._kinds import KINDS
from nhsvm.persistence._malformed import JSON, Malformed, entry, expect, shorten
from nhsvm.persistence.steps import StepDecoder, StepEncoder
from nhsvm.persistence.values import Decoder, Encoder


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


def pipeline_of(
    header: dict[str, JSON], decoder: Decoder, arrays: Mapping[str, npt.NDArray[Any]], estimator: Any
) -> Any:
    """The pipeline that ends in an estimator; raises :class:`Malformed` if its parts do not fit together."""
    from sklearn.pipeline import Pipeline

    steps = StepDecoder(decoder, arrays)
    parts: list[tuple[str, Any]] = []
    for item in entry(header, "steps", list):
        if not isinstance(item, list) or len(item) != 2:
            raise Malformed(f"a step is damaged: {shorten(item)}")
        parts.append((expect(item[0], str, "the name of a step"), steps.decode(item[1])))
    parts.append((entry(header, "last_step", str), estimator))
    verbose = entry(entry(header, "pipeline", dict), "verbose", bool)
    _check_names([name for name, _ in parts])
    _check_chain([step for _, step in parts])
    return Pipeline(parts, verbose=verbose)


def _check_names(names: list[str]) -> None:
    """The rules of scikit-learn, which sees to them only when a pipeline is fitted."""
    if len(set(names)) < len(names) or any("__" in name or name in ("steps", "memory", "verbose") for name in names):
        raise Malformed(f"the names of its steps cannot be those of a pipeline: {shorten(names)}")


def _check_chain(steps: list[Any]) -> None:
    """What comes out of a step fits the next one, and all of them work."""
    n_features = None
    for position, step in enumerate(steps):
        kind = KINDS.get(type(step).__name__)
        name = type(step).__name__
        if kind is not None and kind.reads_text:
            if position:
                raise Malformed(f"a {name} reads texts, and must be the first step")
        elif n_features is not None and step.n_features_in_ != n_features:
            raise Malformed(f"{n_features} features go into a {name}, which has learned from {step.n_features_in_}")
        n_features = None if kind is None else kind.n_out(step)
    _check_works(steps[:-1])


def _check_works(steps: list[Any]) -> None:
    """Send one empty sample through all transformers."""
    if not steps:
        return
    reads_text = KINDS[type(steps[0]).__name__].reads_text
    X: Any = ["a b"] if reads_text else np.zeros((1, steps[0].n_features_in_))
    for step in steps:
        names = step.__dict__.pop("feature_names_in_", None)  # the sample has no names, which would be remarked upon
        try:
            with np.errstate(all="ignore"):
                X = step.transform(X)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            kind = type(step).__name__
            raise Malformed(f"its parts do not make a {kind}: {type(error).__name__}: {error}") from error
        if names is not None:
            step.feature_names_in_ = names
