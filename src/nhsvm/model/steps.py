"""Fitted transformers of scikit-learn and of nhsvm, and pipelines of them, as JSON and arrays, and back.

A transformer that comes from a file is checked by :func:`check_step` and never tried: loading runs nothing of a file.
scikit-learn is imported only for a file that has such steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from nhsvm.errors import OptionError
from nhsvm.model.checks import (
    JSON,
    MOST_FEATURES,
    MOST_N_GRAM,
    Budget,
    Malformed,
    Untrusted,
    check_names,
    check_options,
    check_step_names,
    check_words,
    entry,
    expect,
    shorten,
    whole,
)
from nhsvm.model.file import TEXT
from nhsvm.model.values import NUMPY, Decoder, Encoder, NotStorable, decode_array, encode_array, group

_LARGEST = 1e100  # of a fitted number: as of a feature
_TEXT = "sklearn.feature_extraction.text"
_SCALERS = "sklearn.preprocessing"
_VOCABULARIES = ("vocabulary", "vocabulary_")
_LONGEST_PATTERN = 10_000  # characters of a regular expression
PATTERNS = (
    None,
    r"(?u)\b\w\w+\b",
)  # that need no trust: none, and the one that scikit-learn has unless told otherwise
Arrays = dict[str, npt.NDArray[Any]]


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
        Further fitted values, for which a :class:`StepDecoder` has rules.
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


# -- pipelines --------------------------------------------------------------------------------------------------------


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


# -- transformers -----------------------------------------------------------------------------------------------------


class StepEncoder:
    """Turns transformers into JSON; arrays go to an :class:`Encoder`, those of vocabularies under names of their own.

    Parameters
    ----------
    values : Encoder
    """

    def __init__(self, values: Encoder) -> None:
        self._values, self._n_words = values, 0

    def encode(self, step: Any, where: str) -> dict[str, JSON]:
        """One transformer; an :class:`OptionError` says what about it a file cannot hold.

        Parameters
        ----------
        step : transformer
        where : str
            How to call it in messages.
        """
        name = type(step).__name__
        if name not in KINDS or type(step) is not class_of(name):
            raise OptionError(
                f"{where} is a {type(step).__module__}.{name}; a model file can hold {', '.join(KINDS)}, and then one "
                "of the estimators of nhsvm"
            )
        kind, params = KINDS[name], step.get_params(deep=False)
        fitted = {key: value for key, value in vars(step).items() if key not in params and key not in IGNORED}
        for key in fitted:
            if key not in kind.shapes and key not in kind.others:
                raise OptionError(f"{where} cannot be saved: a model file has no place for {key!r} of a {name}")
        _check_saved(name, params, where)
        return {
            "kind": name,
            "params": {key: self._value(key, params[key], f"{where} cannot be saved: parameter") for key in params},
            "fitted": {
                key: self._value(key, fitted[key], f"{where} cannot be saved: fitted") for key in sorted(fitted)
            },
        }

    def _value(self, key: str, value: Any, where: str) -> JSON:
        if isinstance(value, type) and value in NUMPY.values():
            return {"type": np.dtype(value).name}
        if isinstance(value, np.dtype) and value.name in NUMPY:
            return {"dtype": value.name}
        if key in _VOCABULARIES and isinstance(value, dict) and (words := ordered(value)) is not None:
            return {"vocabulary": self._words(words)}
        if key in _VOCABULARIES and type(value) is list and all(type(word) is str for word in value):
            return {"words": self._words(value)}
        if type(value).__name__ == "TfidfTransformer":
            return {"step": self.encode(value, f"{where} {key!r}")}
        if isinstance(value, np.ndarray) and value.dtype == object:
            return {"names": encode_array(value)}
        try:
            return {"value": self._values.encode(value)}
        except NotStorable as reason:
            raise OptionError(f"{where} {key!r} is {shorten(value)}, but {reason}") from None

    def _words(self, words: list[str]) -> str:
        prefix = f"{TEXT}{self._n_words}/"
        self._n_words += 1
        self._values.arrays |= {prefix + key: array for key, array in pack_words(words).items()}
        return prefix


def _check_saved(name: str, params: Mapping[str, Any], where: str) -> None:
    problem = _param_problem(params) or _pattern_problem(params.get("token_pattern"))
    if problem is not None:
        raise OptionError(f"{where} cannot be saved: {problem}")
    try:
        check_params(name, params)
    except Malformed as error:
        raise OptionError(f"{where} cannot be saved: {error}") from None


def _param_problem(params: Mapping[str, Any]) -> str | None:
    """What a file must not ask of a transformer: running code, or opening other files."""
    for name, value in params.items():
        if callable(value) and not (name == "dtype" and value in NUMPY.values()):
            return f"{name} is a function, and a model file holds no code; use the options that scikit-learn names"
    if params.get("input", "content") != "content":
        return f"input={params['input']!r} would open files; texts must be given as they are, input='content'"
    if params.get("add_indicator"):
        return "add_indicator=True is not supported"
    return None


def _pattern_problem(pattern: Any) -> str | None:
    if pattern is None:
        return None
    if type(pattern) is not str or len(pattern) > _LONGEST_PATTERN:
        return f"token_pattern must be text of at most {_LONGEST_PATTERN} characters, not {shorten(pattern)}"
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"token_pattern is no regular expression: {error}"
    return None


class StepDecoder:
    """Turns the JSON of a :class:`StepEncoder` into transformers again; whatever is wrong is :class:`Malformed`.

    Parameters
    ----------
    values : Decoder
    arrays : mapping of str to array
    trust_patterns : bool
        Accept regular expressions that are not scikit-learn's own; others are not even compiled.
    """

    def __init__(
        self, values: Decoder, arrays: Mapping[str, npt.NDArray[Any]], *, trust_patterns: bool = False
    ) -> None:
        self._values, self._arrays, self._trust = values, arrays, trust_patterns

    def decode(self, part: JSON, nested: bool = False) -> Any:
        """One transformer."""
        content = expect(part, dict, "a step")
        name = entry(content, "kind", str)
        if name not in KINDS or (nested and name != "TfidfTransformer"):
            raise Malformed(f"it has a step of kind {shorten(name)}; this version of nhsvm knows {', '.join(KINDS)}")
        kind = KINDS[name]
        params = {key: self._value(value) for key, value in entry(content, "params", dict).items()}
        fitted = {key: self._value(value) for key, value in entry(content, "fitted", dict).items()}
        problem = _param_problem(params) or self._pattern_problem(name, params.get("token_pattern"))
        if problem is None:
            problem = next((f"{key!r} is no fitted value" for key in fitted if key not in _known(kind)), None)
        if problem is not None:
            raise Malformed(f"a {name}: {problem}")
        try:
            return _made(name, kind, params, fitted)
        except Malformed as error:
            raise Malformed(f"its parts do not make a {name}: {error}") from None
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise Malformed(f"its parts do not make a {name}: {type(error).__name__}: {shorten(str(error))}") from error

    def _pattern_problem(self, name: str, pattern: Any) -> str | None:
        """A regular expression is used only if somebody trusts it: some take forever on some texts, or to compile."""
        if pattern in PATTERNS:
            return None
        if not self._trust and type(pattern) is str:
            raise Untrusted(
                f"its {name} splits texts by the regular expression {shorten(pattern)}, which is not scikit-learn's "
                "own, and an expression can take forever on some texts; if you trust whoever made the file, load it "
                "with trust_patterns=True (--trust-patterns)"
            )
        return _pattern_problem(pattern)

    def _value(self, value: JSON) -> Any:
        if not isinstance(value, dict) or len(value) != 1:
            raise Malformed(f"{shorten(value)} is no value of a step")
        [(tag, content)] = value.items()
        if tag in ("type", "dtype"):
            kind = NUMPY.get(expect(content, str, "the type of numbers"))
            if kind is None:
                raise Malformed(f"{shorten(content)} is no type of numbers")
            return kind if tag == "type" else np.dtype(kind)
        if tag in ("vocabulary", "words"):
            words = unpack_words(
                group(self._arrays, expect(content, str, "the name of a vocabulary")), self._values.budget
            )
            return words if tag == "words" else numbered(words)
        if tag == "step":
            return self.decode(content, nested=True)
        if tag == "names":
            return decode_array(expect(content, dict, "a list of names"), self._values.budget)
        if tag == "value":
            return self._values.decode(content)
        raise Malformed(f"{shorten(value)} is no value of a step")


def _known(kind: Kind) -> set[str]:
    return {*kind.shapes, *kind.others}


def _made(name: str, kind: Kind, params: dict[str, Any], fitted: dict[str, Any]) -> Any:
    """A transformer of its parts; Malformed, or an error of scikit-learn's own checks, if they do not fit."""
    from joblib import cpu_count

    check_params(name, params)
    if params.get("n_jobs") is not None:  # scikit-learn begins as many threads as it is told
        params = {**params, "n_jobs": min(params["n_jobs"], cpu_count())}
    step = class_of(name)(**params)
    if hasattr(step, "_parameter_constraints"):
        step._validate_params()
    else:
        step._check_options()  # a transformer of nhsvm
    for key, value in fitted.items():
        setattr(step, key, value)
    if kind.reads_text:
        step._stop_words_id = id(step.stop_words)  # were looked at when it was fitted: no warning again
    check_step(step, kind)
    return step


# -- vocabularies -----------------------------------------------------------------------------------------------------


def pack_words(words: Sequence[str]) -> Arrays:
    """Words as two arrays.

    Examples
    --------
    >>> pack_words(["dog", "é"])
    {'utf8': array([100, 111, 103, 195, 169], dtype=uint8), 'ends': array([3, 5])}
    """
    raw = [word.encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([len(word) for word in raw], dtype=np.int64)
    return {"utf8": np.frombuffer(b"".join(raw), dtype=np.uint8), "ends": ends}


def unpack_words(arrays: Mapping[str, npt.NDArray[Any]], budget: Budget) -> list[str]:
    """The words again; raises :class:`Malformed` for arrays that are none."""
    utf8, ends = check_words(arrays, budget)
    raw = utf8.tobytes()
    try:
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends.tolist()])]
    except UnicodeDecodeError as error:
        raise Malformed(f"a term of a vocabulary is not UTF-8: {error.reason}") from None


def ordered(vocabulary: Mapping[Any, Any]) -> list[str] | None:
    """The terms of a vocabulary by their numbers, or None if it has others than text and the numbers from 0."""
    found: list[Any] = [None] * len(vocabulary)
    for term, number in vocabulary.items():
        if type(term) is not str or not isinstance(number, (int, np.integer)) or not 0 <= number < len(found):
            return None
        found[number] = term
    return None if any(term is None for term in found) else found


def numbered(words: Sequence[str]) -> dict[str, int]:
    """A vocabulary of distinct terms."""
    found = {word: number for number, word in enumerate(words)}
    if len(found) < len(words):
        raise Malformed("a term stands twice in a vocabulary")
    return found
