"""What comes before the estimator: texts become features, counts are weighted, missing values filled in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from nhsvm.cli._options import option
from nhsvm.errors import DataError, OptionError

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset

_FEW = 1000  # texts; from so many on, terms that come once are left out by default
_NGRAMS = (1, 2)
_HASHED = 2**20
_OF_TEXTS = ("vectorizer", "ngrams", "analyzer", "min_df", "max_df", "max_features", "stop_words")


class Vectorizer(StrEnum):
    """Features of texts."""

    tfidf = "tfidf"
    bm25 = "bm25"
    counts = "count"  # str has a method count
    hashing = "hashing"


class Analyzer(StrEnum):
    """What terms are made of."""

    word = "word"
    char = "char"
    char_wb = "char_wb"


class Transform(StrEnum):
    """What is done to features that are numbers already."""

    none = "none"
    l2 = "l2"
    tfidf = "tfidf"
    bm25 = "bm25"
    standard = "standard"
    maxabs = "maxabs"


class Missing(StrEnum):
    """What becomes of missing values."""

    error = "error"
    mean = "mean"
    zero = "zero"


_text = partial(option, rich_help_panel="Features of texts")
_numbers = partial(option, rich_help_panel="Features that are numbers")


@dataclass(frozen=True)
class FeatureOptions:
    """From samples to features; None is what was not said."""

    vectorizer: Annotated[Vectorizer | None, _text(help="Weights of terms.", default="tfidf, with log counts")] = None
    ngrams: Annotated[str | None, _text(metavar="FROM,TO", help="Words in a row, or characters.", default="1,2")] = None
    analyzer: Annotated[Analyzer | None, _text(help="Terms are words or characters.", default="word")] = None
    min_df: Annotated[
        str | None,
        _text(metavar="N", help="Texts, or a share of them, that a term must be in.", default="2; below 1,000 texts 1"),
    ] = None
    max_df: Annotated[str | None, _text(metavar="N", help="Texts, or a share, at most.", default="all")] = None
    max_features: Annotated[int | None, _text(min=1, help="Keep the most frequent terms only.", default="all")] = None
    stop_words: Annotated[str | None, _text(metavar="english", help="Leave out words without a topic.")] = None
    transform: Annotated[
        Transform | None, _numbers(metavar="NAME", help="none, l2, tfidf, bm25, standard, maxabs.", default="none")
    ] = None
    missing: Annotated[Missing | None, _numbers(help="Missing values.", default="error")] = None


def make_steps(options: FeatureOptions, dataset: Dataset) -> list[tuple[str, Any]]:
    """Transformers, unfitted, by name."""
    if dataset.texts is not None and dataset.X is not None:
        raise OptionError("give either --text or --features: a model has one of them")
    refuse_others(options, texts=dataset.texts is not None)
    return number_steps(options) if dataset.texts is None else text_steps(options, len(dataset.texts))


def refuse_others(options: FeatureOptions, *, texts: bool) -> None:
    """An error for options that are for texts, or for numbers, where samples are the other."""
    if texts:
        _refuse(options, ("transform", "missing"), "features that are numbers, and these are texts")
    else:
        _refuse(options, _OF_TEXTS, "texts")


def _refuse(options: FeatureOptions, names: tuple[str, ...], what: str) -> None:
    name = next((name for name in names if getattr(options, name) is not None), None)
    if name is not None:
        raise OptionError(f"--{name.replace('_', '-')} is for {what}")


def text_steps(options: FeatureOptions, n_texts: int) -> list[tuple[str, Any]]:
    """Transformers of texts, unfitted."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
    from sklearn.preprocessing import Normalizer

    from nhsvm.features import BM25Transformer

    kind = options.vectorizer or Vectorizer.tfidf
    common: dict[str, Any] = {
        "ngram_range": _ngram_range(options.ngrams),
        "analyzer": str(options.analyzer or Analyzer.word),
        "dtype": np.float32,
    }
    if options.stop_words is not None:
        if options.stop_words != "english":
            raise OptionError(f"--stop-words can be english, not {options.stop_words!r}")
        common["stop_words"] = "english"
    if kind is Vectorizer.hashing:
        if options.min_df is not None or options.max_df is not None:
            raise OptionError("--vectorizer hashing does not count terms: leave out --min-df and --max-df")
        return [("hashing", HashingVectorizer(n_features=options.max_features or _HASHED, **common))]
    counting = common | {
        "min_df": _share("min_df", options.min_df, 1 if n_texts < _FEW else 2),
        "max_df": _share("max_df", options.max_df, 1.0),
        "max_features": options.max_features,
    }
    if kind is Vectorizer.tfidf:
        return [("tfidf", TfidfVectorizer(sublinear_tf=True, **counting))]
    if kind is Vectorizer.counts:
        return [("count", CountVectorizer(**counting))]
    return [("count", CountVectorizer(**counting)), ("bm25", BM25Transformer()), ("norm", Normalizer())]


def number_steps(options: FeatureOptions) -> list[tuple[str, Any]]:
    """Transformers of numbers, unfitted."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

    from nhsvm.features import BM25Transformer

    steps: list[tuple[str, Any]] = []
    if options.missing is Missing.mean:
        steps.append(("missing", SimpleImputer(strategy="mean", keep_empty_features=True)))
    elif options.missing is Missing.zero:
        steps.append(("missing", SimpleImputer(strategy="constant", fill_value=0.0)))
    makers: dict[Transform | None, list[tuple[str, Any]]] = {
        Transform.l2: [("norm", Normalizer())],
        Transform.tfidf: [("tfidf", TfidfTransformer(sublinear_tf=True))],
        Transform.bm25: [("bm25", BM25Transformer()), ("norm", Normalizer())],
        Transform.standard: [("scale", StandardScaler())],
        Transform.maxabs: [("scale", MaxAbsScaler())],
    }
    return steps + makers.get(options.transform, [])


def fitted(steps: list[tuple[str, Any]], dataset: Dataset) -> Any:
    """The features of a data set, for which the transformers are fitted."""
    import numpy as np

    X: Any = dataset.X if dataset.texts is None else dataset.texts
    has_gaps = isinstance(X, np.ndarray) and np.isnan(X.min(initial=0.0))  # which takes no memory
    if has_gaps and "missing" not in dict(steps):
        row, column = np.argwhere(np.isnan(X))[0]
        name = column if dataset.feature_names is None else dataset.feature_names[column]
        raise DataError(f"sample {row + 1} has no value (NaN) of {name}; say --missing mean, or --missing zero")
    for name, step in steps:
        try:
            X = step.fit_transform(X)
        except (TypeError, ValueError) as error:
            raise DataError(f"no features can be made ({name}): {_advice(str(error))}") from error
    return X


def _advice(problem: str) -> str:
    if "no terms remain" in problem or "empty vocabulary" in problem:
        return "no term is left; lower --min-df, or raise --max-df"
    if "Cannot center sparse" in problem:
        return "--transform standard is for dense features; use maxabs"
    return problem


def _ngram_range(text: str | None) -> tuple[int, int]:
    if text is None:
        return _NGRAMS
    try:
        low, high = (int(part) for part in (text if "," in text else f"{text},{text}").split(","))
    except ValueError:
        low, high = 0, 0
    if not 1 <= low <= high:
        raise OptionError(f"--ngrams must be FROM,TO, such as 1,2, not {text!r}")
    return low, high


def _share(name: str, text: str | None, default: float) -> int | float:
    """A number of texts, or a share of them: "1" is one text, "1.0" all."""
    if text is None:
        return default
    try:
        found: int | float = int(text) if text.isdecimal() else float(text)
    except ValueError:
        found = -1.0
    if (isinstance(found, int) and found < 1) or (isinstance(found, float) and not 0 < found <= 1):
        what = f"--{name.replace('_', '-')}"
        raise OptionError(f"{what} must be a whole number of texts, or a share from 0.0 to 1.0, not {text!r}")
    return found


def summary(steps: list[tuple[str, Any]]) -> str:
    """What becomes of samples, in a line."""
    parts = []
    for _, step in steps:
        options = step.get_params(deep=False)
        part = type(step).__name__
        if "ngram_range" in options:
            low, high = options["ngram_range"]
            shown = f"{low}" if low == high else f"{low}-{high}"
            part += f" ({options['analyzer']} {shown}-grams"
            part += f", min_df {options['min_df']})" if "min_df" in options else ")"
        parts.append(part)
    return ", ".join(parts) or "as they are"
