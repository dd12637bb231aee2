"""Fitted transformers of scikit-learn and of nhsvm, and pipelines of them, as JSON and arrays, and back.

What a file may hold is one table, :data:`KINDS`. A transformer that comes from a file is checked by :func:`check_step`
and never tried: loading runs nothing of a file. scikit-learn is imported only for a file that has such steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import pairwise

import numpy as np

from nhsvm.errors import OptionError
from nhsvm.model.checks import (
    MOST_FEATURES,
    MOST_N_GRAM,
    Arrays,
    Budget,
    Malformed,
    Untrusted,
    check_names,
    check_options,
    check_words,
    entry,
    expect,
    shorten,
    whole,
)
from nhsvm.model.file import TEXT
from nhsvm.model.values import NUMPY, Decoder, Encoder, NotStorable, decode_array, encode_array, group
from nhsvm.pipelines import Steps, pipeline_parts
from nhsvm.storage.samples import LARGEST
from nhsvm.typing import JSON, Array, Estimator, Options

_LONGEST_PATTERN = 10_000  # characters of a regular expression
PATTERNS = (None, r"(?u)\b\w\w+\b")  # that need no trust: none, and the one that scikit-learn has unless told otherwise
_VOCABULARIES = ("vocabulary", "vocabulary_")
_IGNORED = {"_stop_words_id", "stop_words_"}  # fitted values that say nothing about later samples

# -- what a file may hold ----------------------------------------------------------------------------------------------

_TEXT = "sklearn.feature_extraction.text"
_SCALERS = "sklearn.preprocessing"
_FEATURES = {"n_features_in_": "number of features", "feature_names_in_": "names"}
_WORDS = {"vocabulary_": "vocabulary", "fixed_vocabulary_": "flag"}
_SEEN = {"n_samples_seen_": "?"}


@dataclass(frozen=True)
class Kind:
    """A class of transformers.

    Attributes
    ----------
    module : str
        Where it is imported from, and from nowhere else.
    fitted : mapping of str to str
        Fitted values, and what each has to be. Of arrays of numbers the sides: n is the number of features that go in,
        k that of the others, ? any; an empty text is a single number. Else a word of :func:`_check_value`.
    n_out : function of a fitted transformer
        How many features come out.
    reads_text : bool
    if_set : mapping of str to str
        Options, and the fitted value that each needs; this one may be None or missing without the option.
    dense_only : function of a fitted transformer
        Whether it cannot take sparse samples.
    gives : {"same", "sparse", "dense"}
        What comes out.
    passes_missing : bool
        A feature that is missing in all samples is learned as NaN.
    """

    module: str
    fitted: Mapping[str, str] = field(default_factory=lambda: _FEATURES)
    n_out: Callable[[Estimator], int] = lambda step: int(step.n_features_in_)
    reads_text: bool = False
    if_set: Mapping[str, str] = field(default_factory=dict)
    dense_only: Callable[[Estimator], bool] = lambda step: False
    gives: str = "same"
    passes_missing: bool = False

    @property
    def shapes(self) -> dict[str, str]:
        """Those of the fitted values that are numbers, and their sides."""
        return {key: rule for key, rule in self.fitted.items() if set(rule) <= set("nk?")}


def _texts(fitted: Mapping[str, str], n_out: Callable[[Estimator], int] = lambda step: len(step.vocabulary_)) -> Kind:
    return Kind(_TEXT, fitted, n_out, reads_text=True, gives="sparse")


def _components(module: str, fitted: dict[str, str]) -> Kind:
    return Kind(module, _FEATURES | {"components_": "kn"} | fitted, lambda step: len(step.components_), gives="dense")


def _imputed(step: Estimator) -> int:
    """Features that are missing in all samples are left out."""
    if step.keep_empty_features or step.strategy == "constant":
        return int(step.n_features_in_)
    return int((~np.isnan(step.statistics_)).sum())


KINDS = {
    "CountVectorizer": _texts(_WORDS),
    "TfidfVectorizer": _texts(_WORDS | {"_tfidf": "weights of terms"}),
    "HashingVectorizer": _texts({}, lambda step: int(step.n_features)),
    "TfidfTransformer": Kind(_TEXT, _FEATURES | {"idf_": "n"}, if_set={"use_idf": "idf_"}, gives="sparse"),
    "BM25Transformer": Kind("nhsvm.features", _FEATURES | {"idf_": "n", "average_length_": ""}),
    "Normalizer": Kind(_SCALERS),
    "StandardScaler": Kind(
        _SCALERS,
        _FEATURES | {"mean_": "n", "var_": "n", "scale_": "n"} | _SEEN,
        if_set={"with_mean": "mean_", "with_std": "scale_"},
        dense_only=lambda step: bool(step.with_mean),
        passes_missing=True,
    ),
    "MaxAbsScaler": Kind(_SCALERS, _FEATURES | {"max_abs_": "n", "scale_": "n"} | _SEEN, passes_missing=True),
    "MinMaxScaler": Kind(
        _SCALERS,
        _FEATURES | dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), "n") | _SEEN,
        dense_only=lambda step: True,
        passes_missing=True,
    ),
    "SimpleImputer": Kind(
        "sklearn.impute",
        _FEATURES | {"statistics_": "n", "indicator_": "none", "_fit_dtype": "dtype", "_fill_dtype": "dtype"},
        _imputed,
        dense_only=lambda step: step.missing_values == 0,
        passes_missing=True,
    ),
    "TruncatedSVD": _components(
        "sklearn.decomposition",
        dict.fromkeys(("explained_variance_", "explained_variance_ratio_", "singular_values_"), "k"),
    ),
    "Nystroem": _components(
        "sklearn.kernel_approximation",
        {"component_indices_": "k", "normalization_": "kk", "_n_features_out": "number of outputs"},
    ),
}
"""What a file may name: nothing else is ever imported because a file says so."""


def class_of(name: str) -> Estimator:
    """The class of a kind."""
    return getattr(import_module(KINDS[name].module), name)


@cache
def _fitted_names(name: str) -> frozenset[str]:
    """What this version of scikit-learn learns in ``fit``: a file of another version may lack something."""
    sample = ["a word"] if KINDS[name].reads_text else [[1.0, 2.0], [2.0, 3.0], [0.0, 1.0]]
    step = class_of(name)(**({"n_components": 1} if name in ("TruncatedSVD", "Nystroem") else {})).fit(sample)
    return frozenset(_fitted_values(step))


def _fitted_values(step: Estimator) -> dict[str, object]:
    options = step.get_params(deep=False)
    return {key: value for key, value in vars(step).items() if key not in options and key not in _IGNORED}


# -- checks ------------------------------------------------------------------------------------------------------------


def _check_harmless(name: str, params: Options, trust_patterns: bool) -> None:
    """What a file must not ask of a transformer: running code, opening other files, expressions that nobody trusts."""
    for key, value in params.items():
        if callable(value) and not (key == "dtype" and value in NUMPY.values()):
            raise Malformed(
                f"{key} is a function, and a model file holds no code; use the options that scikit-learn names"
            )
    if params.get("input", "content") != "content":
        raise Malformed(f"input={params['input']!r} would open files; texts must be given as they are, input='content'")
    if params.get("add_indicator"):
        raise Malformed("add_indicator=True is not supported")
    pattern = params.get("token_pattern")
    if pattern in PATTERNS:
        return
    if not trust_patterns and type(pattern) is str:  # some take forever on some texts, or to compile
        raise Untrusted(
            f"its {name} splits texts by the regular expression {shorten(pattern)}, which is not scikit-learn's own, "
            "and an expression can take forever on some texts; if you trust whoever made the file, load it with "
            "trust_patterns=True (--trust-patterns)"
        )
    if type(pattern) is not str or len(pattern) > _LONGEST_PATTERN:
        raise Malformed(f"token_pattern must be text of at most {_LONGEST_PATTERN} characters, not {shorten(pattern)}")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise Malformed(f"token_pattern is no regular expression: {error}") from None


def check_params(name: str, params: Options) -> None:
    """Options of a transformer that its class does not look at itself, or only while it works."""
    check_options(params, f"a {name}")
    if "ngram_range" in params:
        sizes = params["ngram_range"]
        if type(sizes) is not tuple or len(sizes) != 2 or any(type(size) is not int for size in sizes):
            raise Malformed(f"ngram_range should be two whole numbers, but is {shorten(sizes)}")
        if not 1 <= sizes[0] <= sizes[1] <= MOST_N_GRAM:
            raise Malformed(f"ngram_range should go from 1 to at most {MOST_N_GRAM}, but is {sizes}")
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


def check_step(step: Estimator, kind: Kind) -> None:
    """Fitted values of a transformer: all there, of types and shapes that fit each other."""
    name, found = type(step).__name__, vars(step)
    unused = {needed for option, needed in kind.if_set.items() if not found[option]}
    missing = _fitted_names(name) - found.keys() - unused
    if missing:
        raise Malformed(f"it lacks {min(missing)!r}, which a {name} has in this version of scikit-learn")
    for needed in kind.if_set.values():
        if needed not in unused and found.get(needed) is None:
            raise Malformed(f"{needed} is missing")
    for key in kind.fitted.keys() - kind.shapes.keys():
        _check_value(step, key, kind.fitted[key])
    sides: dict[str, int] = {}
    if "n_features_in_" in kind.fitted:
        sides["n"] = step.n_features_in_
    for key, shape in kind.shapes.items():
        value = found.get(key)
        if value is not None or (key not in unused and shape != "n"):
            _check_numbers(np.asarray(value), key, shape, sides, kind.passes_missing)
    if kind.n_out(step) < 1:
        raise Malformed("no feature comes out of it")


def _check_value(step: Estimator, key: str, rule: str) -> None:
    """A fitted value that is no array of numbers."""
    value = vars(step).get(key)
    if rule == "number of features":
        whole(value, key, 1, MOST_FEATURES)
    elif rule == "number of outputs":
        if whole(value, key, 1, MOST_FEATURES) != len(step.components_):
            raise Malformed(f"{key} is not the number of its components")
    elif rule in ("vocabulary", "flag"):
        if type(value) is not (dict if rule == "vocabulary" else bool):
            raise Malformed("the vocabulary is none")
    elif rule == "weights of terms":
        if type(value).__name__ != "TfidfTransformer" or step._tfidf.n_features_in_ != len(step.vocabulary_):
            raise Malformed("the weights of terms do not fit the vocabulary")
    elif value is None:
        return
    elif rule == "names":
        check_names(value, "the names of features of a step", step.n_features_in_)
    elif rule == "dtype":
        if not (isinstance(value, np.dtype) and value.kind in "fiu"):
            raise Malformed(f"{key} is no type of numbers")
    else:
        raise Malformed(f"{key} is not supported")


def _check_numbers(found: Array, name: str, shape: str, sides: dict[str, int], may_be_missing: bool) -> None:
    """An array of numbers with these sides, with which samples stay finite.

    scikit-learn would complain of features that it has made itself.
    """
    if found.dtype == object:  # as the imputer has a constant
        found = _as_numbers(found, name)
    if found.dtype.kind not in "fiu" or (shape != "?" and found.ndim != len(shape)):
        raise Malformed(f"{name} has the type {found.dtype} and the shape {found.shape}")
    sizes = np.abs(found.astype(np.float64, copy=False))
    fine = sizes <= LARGEST
    if name == "scale_":  # samples are divided by it; zero stands for a feature that never changes
        fine &= (sizes == 0) | (sizes >= 1 / LARGEST)
    if may_be_missing:
        fine |= np.isnan(sizes)
    if not fine.all():
        raise Malformed(f"{name} has numbers that are not finite, or too large or too small to compute with")
    if shape != "?":
        for letter, size in zip(shape, found.shape, strict=True):
            if sides.setdefault(letter, size) != size:
                raise Malformed(f"{name} has the shape {found.shape}, which does not fit the others")


def _as_numbers(found: Array, name: str) -> Array:
    if any(type(value) not in (int, float) for value in found.ravel().tolist()):
        raise Malformed(f"{name} has the type object and the shape {found.shape}")
    try:
        return found.astype(np.float64)
    except OverflowError:
        raise Malformed(f"{name} has numbers that are too large") from None


# -- pipelines ---------------------------------------------------------------------------------------------------------


def is_pipeline(model: Estimator) -> bool:
    """Whether a model is a pipeline of scikit-learn, and no subclass."""
    from sklearn.pipeline import Pipeline

    return type(model) is Pipeline


def steps_of(pipeline: Estimator, values: Encoder) -> dict[str, JSON]:
    """What a file says of a pipeline: the names of its steps, and all of them but the estimator."""
    from sklearn.utils.validation import check_is_fitted

    for name, value in vars(pipeline).items():
        if name not in ("steps", "verbose") and value is not None:
            raise OptionError(f"the pipeline cannot be saved: {name} is {shorten(value)}, and must be None")
    parts = pipeline_parts(pipeline)
    for _, step in parts.steps:
        if type(step).__name__ in KINDS and KINDS[type(step).__name__].shapes:
            check_is_fitted(step)
    return {
        "steps": encode_steps(parts.steps, "step {!r} of the pipeline", values),
        "last_step": parts.name,
        "pipeline": {"verbose": bool(pipeline.verbose)},
    }


def pipeline_of(header: dict[str, JSON], values: Decoder, estimator: Estimator, trust_patterns: bool) -> Estimator:
    """The pipeline that ends in an estimator; raises :class:`Malformed` if its parts do not fit together."""
    from sklearn.pipeline import Pipeline

    parts = decode_steps(entry(header, "steps", list), values, trust_patterns)
    parts.append((entry(header, "last_step", str), estimator))
    verbose = entry(entry(header, "pipeline", dict), "verbose", bool)
    _check_chain(parts)
    return Pipeline(parts, verbose=verbose)


def encode_steps(steps: Steps, where: str, values: Encoder) -> list[JSON]:
    """Fitted transformers as JSON; ``where`` is how to call one of some name in messages."""
    return [[name, encode_step(step, where.format(name), values)] for name, step in steps]


def decode_steps(found: list[JSON], values: Decoder, trust_patterns: bool = False) -> Steps:
    """The transformers again."""
    steps: Steps = []
    for item in found:
        if not isinstance(item, list) or len(item) != 2:
            raise Malformed(f"a step is damaged: {shorten(item)}")
        steps.append((expect(item[0], str, "the name of a step"), decode_step(item[1], values, trust_patterns)))
    return steps


def transformers_of(header: dict[str, JSON], values: Decoder) -> Steps:
    """Transformers that are kept without an estimator; raises :class:`Malformed` if they do not fit together."""
    found = header.get("steps")
    if type(found) is dict:  # as blocks had them at first
        found = [[name, part] for name, part in found.items()]
    steps = decode_steps(expect(found, list, "the entry 'steps' of its header"), values)
    _check_chain(steps)
    return steps


def _check_chain(steps: Steps) -> None:
    """What comes out of a step goes into the next one: as many features, and sparse only where that can be."""
    names = [name for name, _ in steps]  # by the rules of scikit-learn, which sees to them only in fit
    if len(set(names)) < len(names) or any("__" in name or name in ("steps", "memory", "verbose") for name in names):
        raise Malformed(f"the names of its steps cannot be those of a pipeline: {shorten(names)}")
    n_features, sparse = None, False
    for position, (_, step) in enumerate(steps):
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


# -- transformers ------------------------------------------------------------------------------------------------------


def encode_step(step: Estimator, where: str, values: Encoder) -> dict[str, JSON]:
    """One transformer as JSON; its arrays go to the encoder, those of vocabularies under names of their own.

    Parameters
    ----------
    step : transformer
    where : str
        How to call it in messages.
    values : Encoder

    Raises
    ------
    OptionError
        For what a file cannot hold.
    """
    name = type(step).__name__
    if name not in KINDS or type(step) is not class_of(name):
        raise OptionError(
            f"{where} is a {type(step).__module__}.{name}; a model file can hold {', '.join(KINDS)}, and then one "
            "of the estimators of nhsvm"
        )
    params, fitted = step.get_params(deep=False), _fitted_values(step)
    for key in fitted:
        if key not in KINDS[name].fitted:
            raise OptionError(f"{where} cannot be saved: a model file has no place for {key!r} of a {name}")
    try:
        _check_harmless(name, params, trust_patterns=True)
        check_params(name, params)
    except Malformed as error:
        raise OptionError(f"{where} cannot be saved: {error}") from None
    where = f"{where} cannot be saved:"
    return {
        "kind": name,
        "params": {key: _encode_value(key, params[key], f"{where} parameter", values) for key in params},
        "fitted": {key: _encode_value(key, fitted[key], f"{where} fitted", values) for key in sorted(fitted)},
    }


def _encode_value(key: str, value: object, where: str, values: Encoder) -> dict[str, JSON]:
    if isinstance(value, type) and value in NUMPY.values():
        return {"type": np.dtype(value).name}
    if isinstance(value, np.dtype) and value.name in NUMPY:
        return {"dtype": value.name}
    if key in _VOCABULARIES and isinstance(value, dict) and (words := ordered(value)) is not None:
        return {"vocabulary": _store_words(words, values)}
    if key in _VOCABULARIES and isinstance(value, list) and all(type(word) is str for word in value):
        return {"words": _store_words(value, values)}
    if type(value).__name__ == "TfidfTransformer":
        return {"step": encode_step(value, f"{where} {key!r}", values)}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"names": encode_array(value)}
    try:
        return {"value": values.encode(value)}
    except NotStorable as reason:
        raise OptionError(f"{where} {key!r} is {shorten(value)}, but {reason}") from None


def _store_words(words: list[str], values: Encoder) -> str:
    number = sum(name.startswith(TEXT) for name in values.arrays) // 2
    values.arrays |= {f"{TEXT}{number}/{key}": array for key, array in pack_words(words).items()}
    return f"{TEXT}{number}/"


def decode_step(part: JSON, values: Decoder, trust_patterns: bool = False, *, nested: bool = False) -> Estimator:
    """The transformer that :func:`encode_step` was given; whatever is wrong is :class:`Malformed`.

    Parameters
    ----------
    part : JSON
    values : Decoder
    trust_patterns : bool
        Accept regular expressions that are not scikit-learn's own; others are not even compiled.
    nested : bool
        Whether it is a part of another transformer.
    """
    content = expect(part, dict, "a step")
    name = entry(content, "kind", str)
    if name not in KINDS or (nested and name != "TfidfTransformer"):
        raise Malformed(f"it has a step of kind {shorten(name)}; this version of nhsvm knows {', '.join(KINDS)}")
    params = {key: _decode_value(value, values) for key, value in entry(content, "params", dict).items()}
    fitted = {key: _decode_value(value, values) for key, value in entry(content, "fitted", dict).items()}
    try:
        _check_harmless(name, params, trust_patterns)
        unknown = [key for key in fitted if key not in KINDS[name].fitted]
        if unknown:
            raise Malformed(f"{unknown[0]!r} is no fitted value")
    except Untrusted:
        raise
    except (Malformed, ValueError) as error:  # of arrays in place of options
        raise Malformed(f"a {name}: {error}") from None
    try:
        return _made(name, params, fitted)
    except Malformed as error:
        raise Malformed(f"its parts do not make a {name}: {error}") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise Malformed(f"its parts do not make a {name}: {type(error).__name__}: {shorten(str(error))}") from error


def _decode_value(value: JSON, values: Decoder) -> JSON:
    if not isinstance(value, dict) or len(value) != 1:
        raise Malformed(f"{shorten(value)} is no value of a step")
    [(tag, content)] = value.items()
    if tag in ("type", "dtype"):
        kind = NUMPY.get(expect(content, str, "the type of numbers"))
        if kind is None:
            raise Malformed(f"{shorten(content)} is no type of numbers")
        return kind if tag == "type" else np.dtype(kind)
    if tag in ("vocabulary", "words"):
        words = unpack_words(group(values.arrays, expect(content, str, "the name of a vocabulary")), values.budget)
        return words if tag == "words" else numbered(words)
    if tag == "step":
        return decode_step(content, values, nested=True)
    if tag == "names":
        return decode_array(expect(content, dict, "a list of names"), values.budget)
    if tag == "value":
        return values.decode(content)
    raise Malformed(f"{shorten(value)} is no value of a step")


def _made(name: str, params: Options, fitted: Options) -> Estimator:
    """A transformer of its parts; Malformed, or an error of scikit-learn's own checks, if they do not fit."""
    from joblib import cpu_count

    check_params(name, params)
    if params.get("n_jobs") is not None:  # scikit-learn begins as many threads as it is told
        params = {**params, "n_jobs": min(params["n_jobs"], cpu_count())}
    step, kind = class_of(name)(**params), KINDS[name]
    if kind.module.startswith("sklearn"):
        step._validate_params()
    else:
        step._check_options()  # a transformer of nhsvm
    for key, value in fitted.items():
        setattr(step, key, value)
    if kind.reads_text:
        step._stop_words_id = id(step.stop_words)  # were looked at when it was fitted: no warning again
    check_step(step, kind)
    return step


# -- vocabularies ------------------------------------------------------------------------------------------------------


def pack_words(words: Sequence[str]) -> dict[str, Array]:
    """Words as two arrays.

    Examples
    --------
    >>> pack_words(["dog", "é"])
    {'utf8': array([100, 111, 103, 195, 169], dtype=uint8), 'ends': array([3, 5])}
    """
    raw = [word.encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([len(word) for word in raw], dtype=np.int64)
    return {"utf8": np.frombuffer(b"".join(raw), dtype=np.uint8), "ends": ends}


def unpack_words(arrays: Arrays, budget: Budget) -> list[str]:
    """The words again; raises :class:`Malformed` for arrays that are none."""
    utf8, ends = check_words(arrays, budget)
    raw = utf8.tobytes()
    try:
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends.tolist()])]
    except UnicodeDecodeError as error:
        raise Malformed(f"a term of a vocabulary is not UTF-8: {error.reason}") from None


def ordered(vocabulary: Mapping[object, object]) -> list[str] | None:
    """The terms of a vocabulary by their numbers, or None if it has others than text and the numbers from 0."""
    found: dict[int, str] = {}
    for term, number in vocabulary.items():
        if not (type(term) is str and isinstance(number, (int, np.integer)) and 0 <= number < len(vocabulary)):
            return None
        found[int(number)] = term
    return [found[number] for number in range(len(found))] if len(found) == len(vocabulary) else None


def numbered(words: Sequence[str]) -> dict[str, int]:
    """A vocabulary of distinct terms."""
    found = {word: number for number, word in enumerate(words)}
    if len(found) < len(words):
        raise Malformed("a term stands twice in a vocabulary")
    return found
