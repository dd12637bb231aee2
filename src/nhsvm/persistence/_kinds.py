"""The transformers that a model file can hold: what is fitted in each, and how many features go in and come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

_TEXT = "sklearn.feature_extraction.text"
_SCALERS = "sklearn.preprocessing"


@dataclass(frozen=True)
class Kind:
    """A class of transformers.

    Attributes
    ----------
    module : str
        Where it is imported from, and from nowhere else.
    shapes : mapping of str to str
        Fitted arrays of numbers and their sides: n is the number of features that go in, k that of the others. An
        empty one is a single number. A value may be None, as scikit-learn has it for what an option switches off.
    others : tuple of str
        Further fitted values, for which :mod:`nhsvm.persistence.steps` has rules.
    n_out : function of a fitted transformer
        How many features come out.
    """

    module: str
    shapes: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ("n_features_in_", "feature_names_in_")
    n_out: Callable[[Any], int] = lambda step: int(step.n_features_in_)
    reads_text: bool = False


def _vocabulary_size(step: Any) -> int:
    return len(step.vocabulary_)


def _n_components(step: Any) -> int:
    return len(step.components_)


def _not_empty(step: Any) -> int:
    """Features that are missing in all samples are left out."""
    if step.keep_empty_features or step.strategy == "constant":
        return int(step.n_features_in_)
    return int((~np.isnan(step.statistics_)).sum())


_WORDS = ("vocabulary_", "fixed_vocabulary_")

KINDS = {
    "CountVectorizer": Kind(_TEXT, others=_WORDS, n_out=_vocabulary_size, reads_text=True),
    "TfidfVectorizer": Kind(_TEXT, others=(*_WORDS, "_tfidf"), n_out=_vocabulary_size, reads_text=True),
    "HashingVectorizer": Kind(_TEXT, others=(), n_out=lambda step: int(step.n_features), reads_text=True),
    "TfidfTransformer": Kind(_TEXT, {"idf_": "n"}),
    "BM25Transformer": Kind("nhsvm.features", {"idf_": "n", "average_length_": ""}),
    "Normalizer": Kind(_SCALERS),
    "StandardScaler": Kind(_SCALERS, {"mean_": "n", "var_": "n", "scale_": "n", "n_samples_seen_": "?"}),
    "MaxAbsScaler": Kind(_SCALERS, {"max_abs_": "n", "scale_": "n", "n_samples_seen_": "?"}),
    "MinMaxScaler": Kind(
        _SCALERS,
        dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), "n") | {"n_samples_seen_": "?"},
    ),
    "SimpleImputer": Kind(
        "sklearn.impute",
        {"statistics_": "n"},
        others=("n_features_in_", "feature_names_in_", "indicator_", "_fit_dtype", "_fill_dtype"),
        n_out=_not_empty,
    ),
    "TruncatedSVD": Kind(
        "sklearn.decomposition",
        {"components_": "kn", "explained_variance_": "k", "explained_variance_ratio_": "k", "singular_values_": "k"},
        n_out=_n_components,
    ),
    "Nystroem": Kind(
        "sklearn.kernel_approximation",
        {"components_": "kn", "component_indices_": "k", "normalization_": "kk"},
        others=("n_features_in_", "feature_names_in_", "_n_features_out"),
        n_out=_n_components,
    ),
}
"""What a file may name: nothing else is ever imported because a file says so."""

IGNORED = {"_stop_words_id", "stop_words_"}  # fitted values that say nothing about later samples


def class_of(name: str) -> Any:
    """The class of a kind."""
    return getattr(import_module(KINDS[name].module), name)


def shape_problem(step: Any, kind: Kind) -> str | None:
    """What is wrong with the fitted arrays of a transformer, or None."""
    sides: dict[str, int] = {}
    if hasattr(step, "n_features_in_"):
        sides["n"] = step.n_features_in_
    for name, shape in kind.shapes.items():
        value = getattr(step, name, None)
        if value is None or shape == "?":
            continue
        found = np.asarray(value)
        if found.dtype == object:  # as the imputer has a constant
            found = found.astype(np.float64)
        if found.dtype.kind not in "fiu" or found.ndim != len(shape):
            return f"{name} has the type {found.dtype} and the shape {found.shape}"
        for letter, size in zip(shape, found.shape, strict=True):
            if sides.setdefault(letter, size) != size:
                return f"{name} has the shape {found.shape}, which does not fit the others"
    return None
