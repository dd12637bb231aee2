"""The model that options describe: transformers, which make features of samples, and the estimator after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from nhsvm.cli.options import option
from nhsvm.engine import SOLVERS
from nhsvm.errors import DataError, OptionError
from nhsvm.losses import LOSSES
from nhsvm.options import OPTIONS
from nhsvm.weights import SCHEME_OPTIONS, SCHEMES

if TYPE_CHECKING:
    from nhsvm.datasets import Dataset
    from nhsvm.hierarchy import Hierarchy
    from nhsvm.pipelines import Steps
    from nhsvm.typing import Estimator, MatrixLike, Options
    from nhsvm.weights import Scheme

# -- transformers ------------------------------------------------------------------------------------------------------

_FEW = 1000  # texts; from so many on, terms that come once are left out by default
_NGRAMS = (1, 2)
_HASHED = 2**20
_OF_TEXTS = ("vectorizer", "ngrams", "analyzer", "min_df", "max_df", "max_features", "stop_words")
_OF_NUMBERS = ("transform", "missing")


_text = partial(option, panel="Features of texts")
_numbers = partial(option, panel="Features that are numbers")


@dataclass(frozen=True)
class FeatureOptions:
    """From samples to features; None is what was not said."""

    vectorizer: Literal["tfidf", "bm25", "count", "hashing"] | None = _text(
        help="Weights of terms.", shown="tfidf, with log counts"
    )
    ngrams: str | None = _text(metavar="FROM,TO", help="Words in a row, or characters.", shown="1,2")
    analyzer: Literal["word", "char", "char_wb"] | None = _text(help="Terms are words or characters.", shown="word")
    min_df: str | None = _text(
        metavar="N", help="Texts, or a share of them, that a term must be in.", shown="2; below 1,000 texts 1"
    )
    max_df: str | None = _text(metavar="N", help="Texts, or a share, at most.", shown="all")
    max_features: int | None = _text(min=1, help="Keep the most frequent terms only.", shown="all")
    stop_words: str | None = _text(metavar="english", help="Leave out words without a topic.")
    transform: Literal["none", "l2", "tfidf", "bm25", "standard", "maxabs"] | None = _numbers(
        metavar="NAME", help="none, l2, tfidf, bm25, standard, maxabs.", shown="none"
    )
    missing: Literal["error", "mean", "zero"] | None = _numbers(help="Missing values.", shown="error")

    def check(self, *, texts: bool) -> None:
        """An error for options that are for texts, or for numbers, where samples are the other."""
        names, what = (_OF_NUMBERS, "features that are numbers, and these are texts") if texts else (_OF_TEXTS, "texts")
        for name in names:
            if getattr(self, name) is not None:
                raise OptionError(f"{_flag(name)} is for {what}")


def make_steps(options: FeatureOptions, dataset: Dataset) -> Steps:
    """Transformers, unfitted."""
    if dataset.texts is not None and dataset.X is not None:
        raise OptionError("give either --text or --features: a model has one of them")
    options.check(texts=dataset.texts is not None)
    return number_steps(options) if dataset.texts is None else text_steps(options, len(dataset.texts))


def text_steps(options: FeatureOptions, n_texts: int) -> Steps:
    """Transformers of texts, unfitted."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
    from sklearn.preprocessing import Normalizer

    from nhsvm.features import BM25Transformer

    kind = options.vectorizer or "tfidf"
    common: Options = {
        "ngram_range": _ngram_range(options.ngrams),
        "analyzer": options.analyzer or "word",
        "dtype": np.float32,
    }
    if options.stop_words is not None:
        if options.stop_words != "english":
            raise OptionError(f"--stop-words can be english, not {options.stop_words!r}")
        common["stop_words"] = "english"
    if kind == "hashing":
        if options.min_df is not None or options.max_df is not None:
            raise OptionError("--vectorizer hashing does not count terms: leave out --min-df and --max-df")
        return [("hashing", HashingVectorizer(n_features=options.max_features or _HASHED, **common))]
    counting = common | {
        "min_df": _share("min_df", options.min_df, 1 if n_texts < _FEW else 2),
        "max_df": _share("max_df", options.max_df, 1.0),
        "max_features": options.max_features,
    }
    if kind == "tfidf":
        return [("tfidf", TfidfVectorizer(sublinear_tf=True, **counting))]
    if kind == "count":
        return [("count", CountVectorizer(**counting))]
    return [("count", CountVectorizer(**counting)), ("bm25", BM25Transformer()), ("norm", Normalizer())]


def number_steps(options: FeatureOptions) -> Steps:
    """Transformers of numbers, unfitted."""
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

    from nhsvm.features import BM25Transformer

    steps: Steps = []
    if options.missing == "mean":
        steps.append(("missing", SimpleImputer(strategy="mean", keep_empty_features=True)))
    elif options.missing == "zero":
        steps.append(("missing", SimpleImputer(strategy="constant", fill_value=0.0)))
    makers: dict[str | None, Steps] = {
        "l2": [("norm", Normalizer())],
        "tfidf": [("tfidf", TfidfTransformer(sublinear_tf=True))],
        "bm25": [("bm25", BM25Transformer()), ("norm", Normalizer())],
        "standard": [("scale", StandardScaler())],
        "maxabs": [("scale", MaxAbsScaler())],
    }
    return steps + makers.get(options.transform, [])


def fitted(steps: Steps, dataset: Dataset) -> MatrixLike:
    """The features of a data set, for which the transformers are fitted."""
    import numpy as np

    X: MatrixLike = dataset.X if dataset.texts is None else dataset.texts
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
        raise OptionError(f"{_flag(name)} must be a whole number of texts, or a share from 0.0 to 1.0, not {text!r}")
    return found


def summary(steps: Steps) -> str:
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


def with_steps(steps: Steps, estimator: Estimator) -> Estimator:
    """A pipeline, or the estimator alone if there are no transformers."""
    from sklearn.pipeline import Pipeline

    return Pipeline([*steps, ("svm", estimator)]) if steps else estimator


# -- transformers that have made the features of blocks, and are kept beside them for models --------------------------


def write_steps(steps: Steps, file: Path) -> None:
    """Fitted transformers to a file."""
    from nhsvm.model.file import write_model
    from nhsvm.model.steps import encode_steps
    from nhsvm.model.values import Encoder

    values = Encoder()
    write_model(file, {"steps": encode_steps(steps, "step {!r}", values)}, values.arrays)


def read_steps(blocks: str) -> Steps:
    """The transformers that have made the features of some blocks; none, if they are as in the file."""
    from nhsvm.datasets.blocks import stored_steps
    from nhsvm.model.checks import reading
    from nhsvm.model.file import read_parts
    from nhsvm.model.steps import transformers_of
    from nhsvm.model.values import Decoder

    file = stored_steps(blocks)
    if file is None:
        return []
    with reading(file):
        header, arrays, budget = read_parts(file, verify=True)
        return transformers_of(header, Decoder([], arrays, budget))


def refuse_made(blocks: str) -> None:
    """An error for blocks whose features are made already, where a model makes them itself."""
    from nhsvm.datasets.blocks import stored_steps

    if stored_steps(blocks) is not None:
        raise OptionError(
            f"{blocks}: its features are made already, and the model makes them itself; give the data that it was made "
            "of, or blocks without --text and --transform"
        )


# -- the estimator -----------------------------------------------------------------------------------------------------

WEIGHTS = SCHEMES.choices
LOSS_NAMES = ["auto", *LOSSES.choices]
ModelName: TypeAlias = Literal["NHSVM", "HSVM", "FlatSVM", "SSVM", "HRSVM"]
_model = partial(option, panel="Model")
_SAID_HERE: dict[str, tuple[object, object]] = {
    "model": (
        ModelName, _model(metavar="NAME", help="NHSVM, HSVM, FlatSVM, SSVM or HRSVM.", default="NHSVM", shown="NHSVM"),
    ),
    "weights": (
        WEIGHTS, _model(metavar="NAME", help=f"Of nodes, for NHSVM: {', '.join(WEIGHTS)}.", shown="maxmin"),
    ),
    "rho": (float, _model(help="Of --weights power: above 1.", shown="2")),
    "directional": (
        bool, _model("--directional/--no-directional", help="Weights do not fall on the way down."),
    ),
    "total": (str, _model(metavar="LOW,HIGH", help="Range of the sum of weights on a path.", shown="1,1")),
    "include_common": (bool, _model("--include-common", help="Weight also for nodes above every leaf.")),
    "loss": (
        LOSS_NAMES, _model(metavar="NAME", help=f"What a mistake costs: {', '.join(LOSS_NAMES)}.", shown="auto"),
    ),
    "solver": (
        tuple(SOLVERS), option(panel="Solver", help="Method.", shown="dual; alternating for SSVM"),
    ),
}  # fmt: skip
"""(type, field) of options that the command line has its own words for; a choice is a list of texts."""


def _declared() -> dict[str, tuple[str, object, object]]:
    """(option of the estimator, type, field) by the name on the command line, in the order of the help."""
    found = {"model": ("model", *_SAID_HERE["model"])}
    for name, declared in OPTIONS.items():
        flag = declared.flag
        if name in _SAID_HERE:
            found[name] = (name, *_SAID_HERE[name])
        elif flag is not None:
            said = option(*flag.names, help=flag.help, shown=flag.shown, panel=flag.panel, metavar=flag.metavar)
            found[flag.name or name] = (name, flag.type, said)
        if name == "weights":
            said = [setting for setting in SCHEME_OPTIONS if setting in _SAID_HERE]  # others are for Python only
            found |= {setting: (setting, *_SAID_HERE[setting]) for setting in said}
    return found


_DECLARED = _declared()
Class = TypeVar("Class", bound="ChosenEstimator")


class ChosenEstimator:
    """Options of an estimator by the names that they have on the command line; None is what was not said."""

    model: ModelName
    seed: int | None


def with_declared_options(*, but: Iterable[str] = ()) -> Callable[[type[Class]], type[Class]]:
    """Make a class a group of options: all of the estimators, but for some."""

    def made(kind: type[Class]) -> type[Class]:
        shown = [(name, _optional(type_), said) for name, (_, type_, said) in _DECLARED.items() if name not in but]
        return make_dataclass(kind.__name__, shown, bases=(kind,), frozen=True)

    return made


def _optional(kind: Any) -> Any:
    literal: Any = Literal
    return (literal[tuple(kind)] if isinstance(kind, (list, tuple)) else kind) | None


@with_declared_options()
class EstimatorOptions(ChosenEstimator):
    """All options of the estimators."""


@dataclass(frozen=True)
class Auto:
    """That C is to be chosen, and by which score; None is the estimator's own."""

    metric: str | None = None


def make_estimator(options: ChosenEstimator, hierarchy: Hierarchy | None, auto: Auto | None = None) -> Estimator:
    """The estimator that the options describe; an error names an option that it refuses, as ``fit`` would.

    With ``auto`` it is one that chooses C, and ``--folds`` are what it chooses on.
    """
    import nhsvm
    from nhsvm.estimators.options import check_options

    if auto is not None and vars(options).get("C") is not None:
        raise OptionError("--auto chooses C: leave out --C, or leave out --auto and use that one")
    kind = getattr(nhsvm, options.model if auto is None else f"{options.model}CV")
    known = kind().get_params(deep=False)
    given: Options = {"hierarchy": hierarchy}
    for name, value in vars(options).items():
        parameter = _DECLARED[name][0]
        if name == "model" or name in SCHEME_OPTIONS or value is None:
            continue
        if parameter not in known:
            owners = "NHSVM" if name in ("weights", "margin") else "other models"
            raise OptionError(f"{_flag(name)} is for {owners}, not for {options.model}")
        given[parameter] = value
    if given.get("class_weight") == "none":
        given["class_weight"] = None
    scheme = make_scheme(options)
    given |= {} if scheme is None else {"weights": scheme}
    made = kind(**given if auto is None else given | {"scoring": auto.metric})
    plain = made if auto is None else made.plain()
    check_options(plain)
    plain._solver(silent=True)  # made only to be refused; a seed of the command line is a number, so nothing is drawn
    return made


def make_scheme(options: ChosenEstimator) -> Scheme | None:
    """The weights scheme, or None if only its name was given, or nothing."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    settings = {name: given[name] for name in SCHEME_OPTIONS if name in given}
    if not settings:
        return None
    if options.model != "NHSVM":
        raise OptionError(f"{_flag(next(iter(settings)))} is for NHSVM, not for {options.model}")
    name = given.get("weights", "maxmin")
    for setting in settings:
        if setting not in SCHEMES.specs[name].options:
            wanted = " or ".join(other for other in WEIGHTS if setting in SCHEMES.specs[other].options)
            raise OptionError(f"{_flag(setting)} goes with --weights {wanted}, not with {name}")
    if "total" in settings:
        settings["total"] = _range(settings["total"])
    return SCHEMES[name](**settings)


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(f"--total must be LOW,HIGH, such as 1,1.5, not {text!r}") from None
    return low, high


def described(options: ChosenEstimator) -> str:
    """The options of a model that were given, in a line."""
    given = {name: value for name, value in vars(options).items() if value is not None and name != "model"}
    shown = {name: f"{value:g}" if isinstance(value, float) else value for name, value in given.items()}
    return " ".join([options.model, *(f"{name}={value}" for name, value in shown.items())])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
