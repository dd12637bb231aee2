"""What is tried: a grid becomes settings of an estimator, each of which is checked before any work is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from nhsvm.errors import OptionError
from nhsvm.estimators.base import HierarchicalSVM
from nhsvm.model_selection._refusal import why_refused
from nhsvm.sizes import is_number
from nhsvm.weights import SCHEMES

PAPER_LAMBDAS = tuple(10.0**k for k in range(-8, 3))
"""The paper's λ; in the usual notation C = 1/(2λ)."""
DEFAULT_C = (0.01, 0.1, 1.0, 10.0, 100.0)
SCHEME_OPTIONS = ("rho", "directional", "total", "include_common")
"""Options of weights schemes that a grid may name like parameters."""
Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | str | None


@dataclass(frozen=True)
class Setting:
    """One combination of everything but C.

    Attributes
    ----------
    params : dict
        For ``set_params``.
    shown : dict
        The same by the names of the grid, for people.
    steps : tuple
        Tells settings apart whose pipelines differ before the last step.
    Cs : tuple of float
        Ascending.
    """

    params: dict[str, Any]
    shown: dict[str, Any]
    steps: tuple[Any, ...]
    Cs: tuple[float, ...]

    @property
    def name(self) -> str:
        return ", ".join(f"{key}={show(value)}" for key, value in self.shown.items()) or "as given"


@dataclass(frozen=True)
class Plan:
    """All settings to try.

    Attributes
    ----------
    settings : tuple of Setting
    refused : tuple of (setting as text, reason)
        Combinations that the estimator refuses.
    names : tuple of str
        What the grid names, but C.
    """

    settings: tuple[Setting, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()


def paper_grid(hierarchy: Any = None, *, multilabel: bool = False) -> list[dict[str, list[Any]]]:
    """What the paper tries for NHSVM (Section 8): ρ = 2, ρ = 2 with directional constraints, and "ρ = 1", the max-min
    weights of Eq. 7; each in Eq. 10 and, for one label a sample, in Eq. 13. On a DAG, T = 1.5 as on its WIKI sets.

    Examples
    --------
    >>> paper_grid(multilabel=True)
    [{'weights': ['power'], 'rho': [2.0], 'directional': [False, True]}, {'weights': ['maxmin']}]
    """
    more: dict[str, list[Any]] = {} if multilabel else {"margin": ["loss", "normalized"]}
    if hierarchy is not None and not hierarchy.is_tree:
        more["total"] = [(1.0, 1.5)]
    return [{"weights": ["power"], "rho": [2.0], "directional": [False, True], **more}, {"weights": ["maxmin"], **more}]


def last_step(estimator: Any) -> Any:
    """The estimator itself, or the last step of a pipeline: one of ours."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, HierarchicalSVM):
        raise OptionError(
            f"tune is for NHSVM, HSVM, FlatSVM and SSVM, or a Pipeline that ends in one, not for {type(last).__name__}"
        )
    return last


def last_name(estimator: Any, name: str) -> str:
    """The name of a parameter of the last step, for ``set_params`` of the whole."""
    return f"{estimator.steps[-1][0]}__{name}" if isinstance(estimator, Pipeline) else name


def costs(C: Any, lam: Any) -> tuple[float, ...] | None:
    """Values of C, ascending: those given, or 1/(2λ); None if neither is."""
    if C is not None and lam is not None:
        raise OptionError("give C or lam, not both: C = 1/(2 lam)")
    if C is None and lam is None:
        return None
    name, given = ("C", C) if lam is None else ("lam", lam)
    found = [given] if is_number(given) else _values(name, given)
    for value in found:
        if not is_number(value) or not 0 < value < np.inf:
            raise OptionError(f"{name} must be positive numbers, but has {value!r}")
    return tuple(sorted({float(v) if lam is None else 1 / (2 * float(v)) for v in found}))


def make_plan(estimator: Any, grid: Grid, Cs: tuple[float, ...] | None, multilabel: bool) -> Plan:
    """Settings of an estimator.

    Raises
    ------
    OptionError
        If a name is no parameter, a list is empty, or a value is refused in all combinations.
    """
    last = last_step(estimator)
    if isinstance(grid, str):
        if grid != "paper":
            raise OptionError(f"grid must be a dict, a list of dicts or 'paper', not {grid!r}")
        grid = paper_grid(last.hierarchy, multilabel=multilabel) if "weights" in last.get_params() else None
    accepted: dict[tuple[Any, ...], Setting] = {}
    refused: list[tuple[str, str]] = []
    parts = _parts(grid)
    for number, part in enumerate(parts):
        fit_for_use, against = [], list[tuple[Setting, str]]()
        for key, setting in _settings(estimator, dict(part), Cs, number):
            reason = _why_refused(estimator, setting, multilabel)
            if reason is None:
                fit_for_use.append(setting)
                accepted.setdefault(key, setting)
            else:
                against.append((setting, reason))
        _check_values(fit_for_use, against)
        refused += [(setting.name, reason) for setting, reason in against]
    names = dict.fromkeys(name for part in parts for name in part if name not in ("C", last_name(estimator, "C")))
    return Plan(tuple(accepted.values()), tuple(dict.fromkeys(refused)), tuple(names))


def show(value: Any) -> str:
    """A value of the grid in few characters."""
    if is_number(value):
        return f"{value:g}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(show, value)) + ")"
    return value if isinstance(value, str) else " ".join(repr(value).split())


def _why_refused(estimator: Any, setting: Setting, multilabel: bool) -> str | None:
    made = clone(estimator)
    try:
        made.set_params(**setting.params, **{last_name(estimator, "C"): setting.Cs[0]})
    except ValueError as error:  # another last step, which lacks a parameter
        return str(error)
    return why_refused(last_step(made), multilabel)


def _check_values(accepted: list[Setting], refused: list[tuple[Setting, str]]) -> None:
    """A value that no combination accepts is a mistake; one that some refuse is left out of these."""
    for setting, reason in refused:
        for name, value in setting.shown.items() or {"": None}.items():
            if not any(name in other.shown and show(other.shown[name]) == show(value) for other in accepted):
                raise OptionError(f"{setting.name}: {reason}")


def _parts(grid: Any) -> list[Mapping[str, Any]]:
    parts = [{}] if grid is None else [grid] if isinstance(grid, Mapping) else grid
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, Mapping) for part in parts):
        raise OptionError(f"grid must be a dict of lists, a list of such dicts, or 'paper', not {grid!r}")
    if not parts:
        raise OptionError("the grid is empty: leave it out to try values of C only")
    return list(parts)


def _values(name: str, given: Any) -> list[Any]:
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise OptionError(f"{name} must be a list of values to try, not {given!r}")
    found = list(given)
    if not found:
        raise OptionError(f"{name} has no value to try")
    return found


def _settings(
    estimator: Any, part: dict[str, Any], Cs: tuple[float, ...] | None, number: int
) -> Iterator[tuple[tuple[Any, ...], Setting]]:
    """Combinations of one dict, each with what makes it equal to others."""
    lists = {_known(estimator, name): (name, _values(name, values)) for name, values in part.items()}
    if len(lists) < len(part):
        raise OptionError(f"the grid names a parameter twice: {sorted(part)}")
    C_name = last_name(estimator, "C")
    if C_name in lists:
        if Cs is not None:
            raise OptionError("C is given twice: in the grid, and as C= or lam=")
        Cs = costs(lists.pop(C_name)[1], None)
    _check_scheme_options(estimator, lists)
    last = {last_name(estimator, name) for name in last_step(estimator).get_params(deep=False)} | set(SCHEME_OPTIONS)
    last |= {estimator.steps[-1][0]} if isinstance(estimator, Pipeline) else set()
    for choice in product(*(range(len(values)) for _, values in lists.values())):
        chosen = {name: values[k] for k, (name, (_, values)) in zip(choice, lists.items(), strict=True)}
        shown = {short: chosen[name] for name, (short, _) in lists.items()}
        steps = tuple((number, n, k) for k, n in zip(choice, lists, strict=True) if n not in last)
        params = _with_scheme(estimator, chosen, shown)
        key = (steps, tuple(sorted((name, show(value)) for name, value in shown.items())))
        yield key, Setting(params, shown, steps, Cs or DEFAULT_C)


def _known(estimator: Any, name: Any) -> str:
    """The name for ``set_params``; those of the last step may be given without its own."""
    last = last_step(estimator).get_params(deep=False)
    if isinstance(name, str) and name in estimator.get_params():
        return name
    if isinstance(name, str) and name in last:
        return last_name(estimator, name)
    if name in SCHEME_OPTIONS and "weights" in last:
        return str(name)
    what = type(last_step(estimator)).__name__
    hint = "; it is an option of the weights of NHSVM" if name in SCHEME_OPTIONS else ""
    lam = "; lam= is an argument of tune, beside C=" if name in ("lam", "lambda") else ""
    raise OptionError(f"{what} has no parameter {name!r}{hint}{lam}; it has {sorted(last)}")


def _options_of(scheme: Any) -> list[str]:
    """Options of a scheme, given by its name or as an instance, that make a difference."""
    kind = SCHEMES.get(scheme) if isinstance(scheme, str) else type(scheme)
    if kind is None or not is_dataclass(kind):
        return []
    known = [field.name for field in fields(kind) if field.name in SCHEME_OPTIONS]
    return [name for name in known if name != "directional" or "rho" in known]  # max-min weights always are


def _check_scheme_options(estimator: Any, lists: dict[str, tuple[str, list[Any]]]) -> None:
    name = last_name(estimator, "weights")
    schemes = lists[name][1] if name in lists else [getattr(last_step(estimator), "weights", None)]
    for option in SCHEME_OPTIONS:
        if option in lists and not any(option in _options_of(scheme) for scheme in schemes):
            shown = ", ".join(map(show, schemes))
            raise OptionError(f"{option} is no option of the weights in the grid: {shown}; try weights=['power']")


def _with_scheme(estimator: Any, chosen: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """Parameters with the options of the scheme put into it; options that it lacks are dropped from ``shown`` too."""
    name = last_name(estimator, "weights")
    options = {option: chosen.pop(option) for option in SCHEME_OPTIONS if option in chosen}
    if not options:
        return chosen
    scheme = chosen.get(name, last_step(estimator).weights)
    known = _options_of(scheme)
    for option in options.keys() - set(known):
        del shown[option]
    used = {option: value for option, value in options.items() if option in known}
    if is_number(used.get("total")):
        used["total"] = (1.0, float(used["total"]))
    if used:
        chosen[name] = SCHEMES[scheme](**used) if isinstance(scheme, str) else replace(scheme, **used)
    return chosen
