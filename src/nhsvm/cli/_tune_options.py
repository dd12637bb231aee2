"""Options of ``nhsvm tune``: lists of values to try, and the grid that they make."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import partial
from typing import Annotated, Any, get_type_hints

from nhsvm.cli._estimators import LOSS_NAMES, WEIGHTS, MarginName, ModelName, ModelOptions
from nhsvm.cli._options import option
from nhsvm.errors import OptionError

_TRIED = ("C", "weights", "rho", "directional", "total", "loss", "margin")
_tried = partial(option, rich_help_panel="Tried")
_hints = get_type_hints(ModelOptions, include_extras=True)

FixedOptions: Any = make_dataclass(
    "FixedOptions",
    [
        (one.name, _hints[one.name], field(default=one.default))
        for one in fields(ModelOptions)
        if one.name not in _TRIED
    ],
    frozen=True,
)
"""Options of the estimator that have one value."""


@dataclass(frozen=True)
class TriedOptions:
    """Values to try, separated by commas; all combinations are."""

    C: Annotated[
        str | None, _tried("--C", "-C", metavar="A,B,...", help="Costs of errors.", default="0.01,0.1,1,10,100")
    ] = None
    lam: Annotated[
        str | None, _tried("--lambda", metavar="A,B,...", help="The paper's λ, instead of --C: C = 1/(2λ).")
    ] = None
    weights: Annotated[str | None, _tried(metavar="A,B,...", help=f"Of nodes, for NHSVM: {', '.join(WEIGHTS)}.")] = None
    rho: Annotated[str | None, _tried(metavar="A,B,...", help="Of weights power: above 1.")] = None
    directional: Annotated[
        str | None, _tried(metavar="no,yes", help="Of weights power: they do not fall on the way down.")
    ] = None
    total: Annotated[
        str | None,
        _tried(metavar="A,B,...", help="Largest sums of weights on a path; the least is 1 (LOW:HIGH for others)."),
    ] = None
    loss: Annotated[str | None, _tried(metavar="A,B,...", help=f"{', '.join(LOSS_NAMES)}.")] = None
    margin: Annotated[str | None, _tried(metavar="A,B,...", help="Of NHSVM: loss, normalized.")] = None
    also: Annotated[
        list[str] | None,
        _tried("--try", metavar="NAME=A,B,...", help="Any other parameter of the Python estimator; may be repeated."),
    ] = None
    paper: Annotated[
        bool | None, _tried("--paper", help="What the paper tries: ρ = 2, directional, max-min; both margins; its λ.")
    ] = None


def grid_of(tried: TriedOptions, model: ModelName) -> dict[str, Any]:
    """``grid``, ``C`` and ``lam`` of :func:`nhsvm.model_selection.tune`; a bad value is an error that names it."""
    grid: dict[str, list[Any]] = {}
    parsers: dict[str, Callable[[str], Any]] = {
        "weights": partial(_one_of, WEIGHTS),
        "rho": _number,
        "directional": _yes_or_no,
        "total": _total,
        "loss": partial(_one_of, LOSS_NAMES),
        "margin": partial(_one_of, tuple(MarginName)),
    }
    for name, parse in parsers.items():
        given = getattr(tried, name)
        if given is not None:
            if name != "loss" and model is not ModelName.NHSVM:
                raise OptionError(f"--{name} is for NHSVM, not for {model}")
            grid[name] = _parsed(f"--{name}", given, parse)
    for given in tried.also or ():
        name, sign, values = given.partition("=")
        if not sign or not name:
            raise OptionError(f"--try must be NAME=VALUE,VALUE, such as class_weight=none,balanced, not {given!r}")
        if name in _TRIED or name in grid:
            raise OptionError(f"--try {name} is given twice, or has an option of its own: --{name}")
        grid[name] = _parsed(f"--try {name}", values, _literal)
    if tried.paper and grid:
        raise OptionError(f"--paper says what is tried: leave out {', '.join(grid)}")
    C, lam = (
        None if given is None else _parsed(name, given, _number)
        for name, given in (("--C", tried.C), ("--lambda", tried.lam))
    )
    return {"grid": "paper" if tried.paper else grid or None, "C": C, "lam": lam}


def seconds_of(text: str | None) -> float | None:
    """A time such as 90, 90s, 10m or 1h30m in seconds.

    Examples
    --------
    >>> seconds_of("90"), seconds_of("1h30m"), seconds_of("2.5m")
    (90.0, 5400.0, 150.0)
    """
    if text is None:
        return None
    number = r"(\d+(?:\.\d*)?)"
    match = re.fullmatch(f"(?:{number}h)?(?:{number}m)?(?:{number}s?)?", text.strip().lower())
    parts = ("0",) if match is None else match.groups()
    found = sum((float(part or 0) * unit for part, unit in zip(parts, (3600, 60, 1), strict=False)), 0.0)
    if not found > 0:
        raise OptionError(f"--time-budget must be a time such as 90s, 10m or 1h30m, not {text!r}")
    return found


def _parsed(name: str, given: str, parse: Callable[[str], Any]) -> list[Any]:
    found = []
    for part in given.split(","):
        try:
            found.append(parse(part.strip()))
        except ValueError as error:
            raise OptionError(f"{name} {given!r}: {error}") from None
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


def _one_of(known: Sequence[str], text: str) -> str:
    if text not in known:
        raise ValueError(f"{text!r} is not one of {', '.join(known)}")
    return text


def _yes_or_no(text: str) -> bool:
    known = {"yes": True, "true": True, "no": False, "false": False}
    if text.lower() not in known:
        raise ValueError(f"{text!r} is neither yes nor no")
    return known[text.lower()]


def _total(text: str) -> tuple[float, float]:
    low, sign, high = text.partition(":")
    return (_number(low), _number(high)) if sign else (1.0, _number(low))


def _literal(text: str) -> Any:
    """A number, true, false, none, or text."""
    lowered = text.lower()
    if lowered == "none":
        return None
    try:
        return json.loads(lowered if lowered in ("true", "false") else text)
    except ValueError:
        return text
