"""The estimators on the command line: their options, and the estimator that these describe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, make_dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from nhsvm.cli._options import option
from nhsvm.errors import OptionError
from nhsvm.losses import LOSSES
from nhsvm.options import OPTIONS
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


class ModelName(StrEnum):
    """The estimators."""

    NHSVM = "NHSVM"
    HSVM = "HSVM"
    FlatSVM = "FlatSVM"
    SSVM = "SSVM"
    HRSVM = "HRSVM"


class SolverName(StrEnum):
    """Solvers; SSVM has its own."""

    dual = "dual"
    sgd = "sgd"
    alternating = "alternating"


def _choice(name: str, choices: Iterable[str]) -> Any:
    """An enumeration, whose members typer offers."""
    return StrEnum(name, {choice: choice for choice in choices})


_model = partial(option, rich_help_panel="Model")
_CHOICES = {
    name: _choice(f"{name.title().replace('_', '')}Name", declared.flag.type)
    for name, declared in OPTIONS.items()
    if declared.flag is not None and isinstance(declared.flag.type, tuple)
}
MarginName = _CHOICES["margin"]
_SAID_HERE: dict[str, Any] = {
    "model": Annotated[ModelName, _model(metavar="NAME", help="NHSVM, HSVM, FlatSVM, SSVM or HRSVM.", default="NHSVM")],
    "weights": Annotated[
        WeightsName | None,
        _model(metavar="NAME", help=f"Of nodes, for NHSVM: {', '.join(WEIGHTS)}.", default="maxmin"),
    ],
    "rho": Annotated[float | None, _model(help="Of --weights power: above 1.", default="2")],
    "directional": Annotated[
        bool | None, _model("--directional/--no-directional", help="Weights do not fall on the way down.")
    ],
    "total": Annotated[
        str | None, _model(metavar="LOW,HIGH", help="Range of the sum of weights on a path.", default="1,1")
    ],
    "include_common": Annotated[
        bool | None, _model("--include-common", help="Weight also for nodes above every leaf.")
    ],
    "loss": Annotated[
        _choice("LossName", LOSS_NAMES) | None,
        _model(metavar="NAME", help=f"What a mistake costs: {', '.join(LOSS_NAMES)}.", default="auto"),
    ],
    "solver": Annotated[
        SolverName | None, option(rich_help_panel="Solver", help="Method.", default="dual; alternating for SSVM")
    ],
}
"""Options that the command line has its own words for; all others are those of :data:`nhsvm.options.OPTIONS`."""


def _fields() -> dict[str, tuple[str, Any]]:
    """(option of the estimator, annotation) by the name that it has on the command line, in the order of the help."""
    found = {name: (name, _SAID_HERE[name]) for name in ("model",)}
    for name, declared in OPTIONS.items():
        if name in _SAID_HERE:
            found[name] = (name, _SAID_HERE[name])
        elif declared.flag is not None:
            flag = declared.flag
            settings: dict[str, Any] = {} if flag.metavar is None else {"metavar": flag.metavar}
            kind = _CHOICES.get(name, flag.type)
            said = option(*flag.names, help=flag.help, default=flag.shown, rich_help_panel=flag.panel, **settings)
            found[flag.name or name] = (name, Annotated[kind | None, said])
        if name == "weights":
            found |= {setting: (setting, _SAID_HERE[setting]) for setting in _SCHEME}
    return found


_FIELDS = _fields()
_RENAMED = {shown: name for shown, (name, _) in _FIELDS.items()}
ModelOptions: Any = make_dataclass(
    "ModelOptions",
    [
        (name, annotation, field(default=ModelName.NHSVM if name == "model" else None))
        for name, (_, annotation) in _FIELDS.items()
    ],
    frozen=True,
)
"""Options of the estimators; None is what was not said, and so the estimator's own default."""


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
        parameter = _RENAMED[name]
        if name == "model" or name in _SCHEME or value is None:
            continue
        if parameter not in known:
            owners = "NHSVM" if name in ("weights", "margin") else "other models"
            raise OptionError(f"--{name.replace('_', '-')} is for {owners}, not for {options.model}")
        given[parameter] = str(value) if isinstance(value, StrEnum) else value
    if options.class_weight == "none":
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
