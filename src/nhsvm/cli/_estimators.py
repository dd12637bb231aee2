"""The estimators on the command line: their options, and the estimator that these describe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from nhsvm.cli._options import option
from nhsvm.errors import OptionError
from nhsvm.losses import LOSSES
from nhsvm.weights import SCHEMES

if TYPE_CHECKING:
    from nhsvm.hierarchy import Hierarchy

_SCHEME = ("rho", "directional", "total", "include_common")  # options of weights schemes
WEIGHTS = SCHEMES.choices
LOSS_NAMES = ["auto", *LOSSES.choices]
if TYPE_CHECKING:
    WeightsName = str
    LossName = str
else:  # typer offers the members of an enumeration, and refuses all else
    WeightsName = StrEnum("WeightsName", {name: name for name in WEIGHTS})
    LossName = StrEnum("LossName", {name: name for name in LOSS_NAMES})
_RENAMED = {"jobs": "n_jobs", "seed": "random_state", "folds": "cv", "intercept": "fit_intercept"}


class ModelName(StrEnum):
    """The estimators."""

    NHSVM = "NHSVM"
    HSVM = "HSVM"
    FlatSVM = "FlatSVM"
    SSVM = "SSVM"
    HRSVM = "HRSVM"


class MarginName(StrEnum):
    """Margins."""

    loss = "loss"
    normalized = "normalized"


class SolverName(StrEnum):
    """Solvers; SSVM has its own."""

    dual = "dual"
    sgd = "sgd"
    alternating = "alternating"


class ClassWeight(StrEnum):
    """Factors of C by class."""

    none = "none"
    balanced = "balanced"


_model = partial(option, rich_help_panel="Model")
_solver = partial(option, rich_help_panel="Solver")
_sets = partial(option, rich_help_panel="Label sets")


@dataclass(frozen=True)
class ModelOptions:
    """Options of the estimators; None is what was not said, and so the estimator's own default."""

    model: Annotated[
        ModelName, _model(metavar="NAME", help="NHSVM, HSVM, FlatSVM, SSVM or HRSVM.", default="NHSVM")
    ] = ModelName.NHSVM
    C: Annotated[float | None, _model("--C", "-C", help="Cost of errors.", default="1")] = None
    weights: Annotated[
        WeightsName | None,
        _model(
            metavar="NAME",
            help=f"Of nodes, for NHSVM: {', '.join(WEIGHTS)}.",
            default="maxmin",
        ),
    ] = None
    rho: Annotated[float | None, _model(help="Of --weights power: above 1.", default="2")] = None
    directional: Annotated[
        bool | None, _model("--directional/--no-directional", help="Weights do not fall on the way down.")
    ] = None
    total: Annotated[
        str | None, _model(metavar="LOW,HIGH", help="Range of the sum of weights on a path.", default="1,1")
    ] = None
    include_common: Annotated[
        bool | None, _model("--include-common", help="Weight also for nodes above every leaf.")
    ] = None
    loss: Annotated[
        LossName | None,
        _model(
            metavar="NAME",
            help=f"What a mistake costs: {', '.join(LOSS_NAMES)}.",
            default="auto",
        ),
    ] = None
    margin: Annotated[MarginName | None, _model(metavar="NAME", help="Of NHSVM: loss, normalized.", default="loss")] = (
        None
    )
    class_weight: Annotated[
        ClassWeight | None, _model(metavar="NAME", help="Factors of C: none, balanced.", default="none")
    ] = None
    intercept: Annotated[bool | None, _model("--intercept/--no-intercept", help="A constant feature.")] = None
    intercept_scaling: Annotated[float | None, _model(help="Its value.", default="1")] = None
    probability: Annotated[
        bool | None, _model("--probability", help="Learn probabilities from held-out folds, by more fits.")
    ] = None
    folds: Annotated[int | None, _model(help="How many.", default="5")] = None
    allow_empty: Annotated[bool | None, _sets("--allow-empty", help="A set of labels may be empty.")] = None
    leaf_offset: Annotated[float | None, _sets(help="Added to the score of every label.", default="0")] = None
    offsets: Annotated[
        str | None,
        _sets(metavar="MEASURE", help="Tune how many labels are given for this, such as f1_micro."),
    ] = None
    solver: Annotated[SolverName | None, _solver(help="Method.", default="dual; alternating for SSVM")] = None
    tol: Annotated[float | None, _solver(help="Stop at this gap, which is proved.", default="0.001")] = None
    max_iter: Annotated[int | None, _solver(help="Passes over the data, at most.", default="1000")] = None
    certify: Annotated[
        bool | None,
        _solver("--certify/--no-certify", help="Prove the gap of a fit that ends before it is reached.", default="yes"),
    ] = None
    jobs: Annotated[int | None, _solver("--jobs", "-j", help="Threads; -1 for all cores.", default="1")] = None
    seed: Annotated[int | None, _solver(help="Order of the samples.", default="a fixed one")] = None
    memory_limit: Annotated[
        str | None, _solver(metavar="SIZE", help="For weights, such as 6GB.", default="60 % of what is free")
    ] = None


def make_estimator(options: ModelOptions, hierarchy: Hierarchy | None, **more: Any) -> Any:
    """The estimator that the options describe; one that they do not fit is an error that names the option.

    Parameters
    ----------
    options : ModelOptions
    hierarchy : Hierarchy or None
    **more
        Further parameters of it, such as ``callback``.
    """
    import nhsvm

    kind = getattr(nhsvm, options.model)
    known = kind().get_params(deep=False)
    given: dict[str, Any] = {"hierarchy": hierarchy}
    for name, value in vars(options).items():
        parameter = _RENAMED.get(name, name)
        if name == "model" or name in _SCHEME or value is None:
            continue
        if parameter not in known:
            owners = "NHSVM" if name in ("weights", "margin") else "other models"
            raise OptionError(f"--{name.replace('_', '-')} is for {owners}, not for {options.model}")
        given[parameter] = str(value) if isinstance(value, StrEnum) else value
    if options.class_weight is ClassWeight.none:
        given["class_weight"] = None
    scheme = make_scheme(options)
    return kind(**given | ({} if scheme is None else {"weights": scheme}) | more)


def make_scheme(options: ModelOptions) -> Any:
    """The weights scheme, or None if only its name was given, or nothing."""
    settings = {name: getattr(options, name) for name in _SCHEME if getattr(options, name) is not None}
    if not settings:
        return None
    first = next(iter(settings)).replace("_", "-")
    if options.model is not ModelName.NHSVM:
        raise OptionError(f"--{first} is for NHSVM, not for {options.model}")
    name = str(options.weights or "maxmin")
    for setting in settings:
        if setting not in SCHEMES.specs[name].options:
            wanted = " or ".join(other for other in WEIGHTS if setting in SCHEMES.specs[other].options)
            raise OptionError(f"--{setting.replace('_', '-')} goes with --weights {wanted}, not with {name}")
    if "total" in settings:
        settings["total"] = _range(settings["total"])
    return SCHEMES[name](**settings)


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(f"--total must be LOW,HIGH, such as 1,1.5, not {text!r}") from None
    return low, high


def described(options: ModelOptions) -> str:
    """The options of a model that were given, in a line."""
    given = {name: value for name, value in vars(options).items() if value is not None and name != "model"}
    shown = {name: f"{value:g}" if isinstance(value, float) else value for name, value in given.items()}
    return " ".join([str(options.model), *(f"{name}={value}" for name, value in shown.items())])
