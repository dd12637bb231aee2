"""The transformers that a model file can hold: what is fitted in each, what goes in and what comes out.

A transformer that comes from a file is checked by :func:`check_step` and never tried: loading runs nothing of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from nhsvm.persistence._malformed import Malformed, expect, shorten
from nhsvm.persistence.checks import MOST_FEATURES, MOST_N_GRAM, check_names, check_options, whole

_LARGEST = 1e100  # of a fitted number: as of a feature
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
    reads_text : bool
    if_set : mapping of str to str
        Options, and the fitted value that each needs.
    dense_only : function of a fitted transformer
        Whether it cannot take sparse samples.
    gives : {"same", "sparse", "dense"}
        What comes out.
    passes_missing : bool
        A feature that is missing in all samples is learned as NaN.
    """

    module: str
    shapes: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ("n_features_in_", "feature_names_in_")
    n_out: Callable[[Any], int] = lambda step: int(step.n_features_in_)
    reads_text: bool = False
    if_set: Mapping[str, str] = field(default_factory=dict)
    dense_only: Callable[[Any], bool] = lambda step: False
    gives: str = "same"
    passes_missing: bool = False


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
    "CountVectorizer": Kind(_TEXT, others=_WORDS, n_out=_vocabulary_size, reads_text=True, gives="sparse"),
    "TfidfVectorizer": Kind(_TEXT, others=(*_WORDS, "_tfidf"), n_out=_vocabulary_size, reads_text=True, gives="sparse"),
    "HashingVectorizer": Kind(
        _TEXT, others=(), n_out=lambda step: int(step.n_features), reads_text=True, gives="sparse"
    ),
    "TfidfTransformer": Kind(_TEXT, {"idf_": "n"}, if_set={"use_idf": "idf_"}, gives="sparse"),
    "BM25Transformer": Kind("nhsvm.features", {"idf_": "n", "average_length_": ""}),
    "Normalizer": Kind(_SCALERS),
    "StandardScaler": Kind(
        _SCALERS,
        {"mean_": "n", "var_": "n", "scale_": "n", "n_samples_seen_": "?"},
        if_set={"with_mean": "mean_", "with_std": "scale_"},
        dense_only=lambda step: bool(step.with_mean),
        passes_missing=True,
    ),
    "MaxAbsScaler": Kind(_SCALERS, {"max_abs_": "n", "scale_": "n", "n_samples_seen_": "?"}, passes_missing=True),
    "MinMaxScaler": Kind(
        _SCALERS,
        dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), "n") | {"n_samples_seen_": "?"},
        dense_only=lambda step: True,
        passes_missing=True,
    ),
    "SimpleImputer": Kind(
        "sklearn.impute",
        {"statistics_": "n"},
        others=("n_features_in_", "feature_names_in_", "indicator_", "_fit_dtype", "_fill_dtype"),
        n_out=_not_empty,
        dense_only=lambda step: step.missing_values == 0,
        passes_missing=True,
    ),
    "TruncatedSVD": Kind(
        "sklearn.decomposition",
        {"components_": "kn", "explained_variance_": "k", "explained_variance_ratio_": "k", "singular_values_": "k"},
        n_out=_n_components,
        gives="dense",
    ),
    "Nystroem": Kind(
        "sklearn.kernel_approximation",
        {"components_": "kn", "component_indices_": "k", "normalization_": "kk"},
        others=("n_features_in_", "feature_names_in_", "_n_features_out"),
        n_out=_n_components,
        gives="dense",
    ),
}
"""What a file may name: nothing else is ever imported because a file says so."""

IGNORED = {"_stop_words_id", "stop_words_"}  # fitted values that say nothing about later samples


def class_of(name: str) -> Any:
    """The class of a kind."""
    return getattr(import_module(KINDS[name].module), name)


@cache
def _fitted_names(name: str) -> frozenset[str]:
    """What this version of scikit-learn learns in ``fit``: a file of another version may lack something."""
    sample: Any = ["a word"] if KINDS[name].reads_text else [[1.0, 2.0], [2.0, 3.0], [0.0, 1.0]]
    step = class_of(name)(**({"n_components": 1} if name in ("TruncatedSVD", "Nystroem") else {})).fit(sample)
    options = step.get_params(deep=False)
    return frozenset(key for key in vars(step) if key not in options and key not in IGNORED)


def check_params(name: str, params: Mapping[str, Any]) -> None:
    """Options of a transformer that its class does not look at itself, or only while it works."""
    check_options(params, f"a {name}")
    if "ngram_range" in params:
        check_n_grams(params["ngram_range"])
    if KINDS[name].reads_text and params.get("analyzer", "word") == "word" and params.get("token_pattern", "") is None:
        raise Malformed(f"a {name} that splits texts into words, but has no token_pattern")
    if "dtype" in params and np.dtype(params["dtype"]).kind not in "fiu":
        raise Malformed(f"a {name} that makes features of type {params['dtype']!r}")
    if params.get("kernel") == "precomputed":
        raise Malformed(f"a {name} with kernel='precomputed', which has no place in a pipeline")
    more = params.get("kernel_params")
    more = {} if more is None else expect(more, dict, "kernel_params")
    if not all(type(value) in (int, float) for value in more.values()):
        raise Malformed(f"a {name} with kernel_params that are no numbers: {shorten(more)}")
    for key in ("missing_values", "fill_value"):
        if type(params.get(key)) not in (int, float, type(None)):
            raise Malformed(f"a {name} with {key}={shorten(params[key])}, which is no number")


def check_n_grams(found: Any) -> None:
    """(shortest, longest) term, in words or letters."""
    if type(found) is not tuple or len(found) != 2 or any(type(size) is not int for size in found):
        raise Malformed(f"ngram_range should be two whole numbers, but is {shorten(found)}")
    if not 1 <= found[0] <= found[1] <= MOST_N_GRAM:
        raise Malformed(f"ngram_range should go from 1 to at most {MOST_N_GRAM}, but is {found}")


def check_step(step: Any, kind: Kind) -> None:
    """Fitted values of a transformer: all there, of types and shapes that fit each other."""
    name = type(step).__name__
    missing = _fitted_names(name) - vars(step).keys() - _unused(step, kind)
    if missing:
        raise Malformed(f"it lacks {min(missing)!r}, which a {name} has in this version of scikit-learn")
    if "n_features_in_" in kind.others:
        whole(step.n_features_in_, "n_features_in_", 1, MOST_FEATURES)
    has_words = "vocabulary_" in kind.others
    if has_words and (type(step.vocabulary_) is not dict or type(step.fixed_vocabulary_) is not bool):
        raise Malformed("the vocabulary is none")
    weights: Any = getattr(step, "_tfidf", None)
    if "_tfidf" in kind.others and (
        type(weights).__name__ != "TfidfTransformer" or weights.n_features_in_ != len(step.vocabulary_)
    ):
        raise Malformed("the weights of terms do not fit the vocabulary")
    for option, needed in kind.if_set.items():
        if getattr(step, option) and getattr(step, needed, None) is None:
            raise Malformed(f"{needed} is missing")
    if getattr(step, "indicator_", None) is not None:
        raise Malformed("indicator_ is not supported")
    for key in ("_fit_dtype", "_fill_dtype"):
        found = getattr(step, key, None)
        if found is not None and not (isinstance(found, np.dtype) and found.kind in "fiu"):
            raise Malformed(f"{key} is no type of numbers")
    if getattr(step, "feature_names_in_", None) is not None:
        check_names(step.feature_names_in_, "the names of features of a step", step.n_features_in_)
    _check_shapes(step, kind)
    if kind.n_out(step) < 1:
        raise Malformed("no feature comes out of it")


def _unused(step: Any, kind: Kind) -> set[str]:
    """Fitted values that may be missing, since the option that needs them is switched off."""
    return {needed for option, needed in kind.if_set.items() if not getattr(step, option)}


def _check_shapes(step: Any, kind: Kind) -> None:
    sides: dict[str, int] = {}
    if "n_features_in_" in kind.others:
        sides["n"] = step.n_features_in_
    for name, shape in kind.shapes.items():
        value = getattr(step, name, None)
        if value is None and (name in kind.if_set.values() or shape == "n"):
            continue
        found = np.asarray(value)
        if found.dtype == object:  # as the imputer has a constant
            found = _as_numbers(found, name)
        if found.dtype.kind not in "fiu" or (shape != "?" and found.ndim != len(shape)):
            raise Malformed(f"{name} has the type {found.dtype} and the shape {found.shape}")
        _check_range(found, name, may_be_missing=kind.passes_missing)
        if shape == "?":
            continue
        for letter, size in zip(shape, found.shape, strict=True):
            if sides.setdefault(letter, size) != size:
                raise Malformed(f"{name} has the shape {found.shape}, which does not fit the others")


def _check_range(found: Any, name: str, may_be_missing: bool) -> None:
    """Numbers with which samples stay finite: scikit-learn would complain of features that it has made itself."""
    sizes = np.abs(found.astype(np.float64, copy=False))
    fine = sizes <= _LARGEST
    if name == "scale_":  # samples are divided by it; zero stands for a feature that never changes
        fine &= (sizes == 0) | (sizes >= 1 / _LARGEST)
    if may_be_missing:
        fine |= np.isnan(sizes)
    if not fine.all():
        raise Malformed(f"{name} has numbers that are not finite, or too large or too small to compute with")


def _as_numbers(found: Any, name: str) -> Any:
    if any(type(value) not in (int, float) for value in found.ravel().tolist()):
        raise Malformed(f"{name} has the type object and the shape {found.shape}")
    try:
        return found.astype(np.float64)
    except OverflowError:
        raise Malformed(f"{name} has numbers that are too large") from None
