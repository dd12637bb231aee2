"""What is tried: a grid becomes settings of an estimator, each of which is checked before any work is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product

import numpy as np
from sklearn.base import clone

from nhsvm.columns import make_columns
from nhsvm.errors import OptionError
from nhsvm.estimators.base import HierarchicalSVM
from nhsvm.estimators.options import check_options, check_single, why_no_sets
from nhsvm.estimators.problem import loss_weights
from nhsvm.hierarchy import Hierarchy
from nhsvm.losses import Loss
from nhsvm.pipelines import pipeline_parts
from nhsvm.sizes import is_number
from nhsvm.typing import Estimator, Options
from nhsvm.weights import SCHEME_OPTIONS, SCHEMES, node_weights

PAPER_LAMBDAS = tuple(10.0**k for k in range(-8, 3))
"""The paper's λ; in the usual notation C = 1/(2λ)."""
DEFAULT_C = (0.01, 0.1, 1.0, 10.0, 100.0)
GridPart = Mapping[str, Sequence[object]]
Grid = GridPart | Sequence[GridPart] | str | None
Costs = float | Iterable[float] | None
_SMALL = Hierarchy.from_edges([("a", "b"), ("a", "c")], nodes=["d"])  # to check options without data


def show(value: object) -> str:
    """A value of the grid in few characters."""
    if is_number(value):
        return f"{value:g}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(show, value)) + ")"
    return value if isinstance(value, str) else " ".join(repr(value).split())


def show_setting(shown: Options) -> str:
    """Values of a grid by their names."""
    return ", ".join(f"{key}={show(value)}" for key, value in shown.items()) or "as given"


@dataclass(frozen=True)
class Setting:
    """One combination of everything but C."""

    params: Options  # for ``set_params``
    shown: Options  # the same by the names of the grid, for people
    steps: tuple[tuple[int, str, int], ...]  # tells settings apart whose pipelines differ before the last step
    Cs: tuple[float, ...]  # ascending


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


def paper_grid(hierarchy: Hierarchy | None = None, *, multilabel: bool = False) -> list[dict[str, list[object]]]:
    """What the paper tries for NHSVM (Section 8): ρ = 2, ρ = 2 with directional constraints, and "ρ = 1", the max-min
    weights of Eq. 7; each in Eq. 10 and, for one label a sample, in Eq. 13. On a DAG, T = 1.5 as on its WIKI sets.

    Examples
    --------
    >>> paper_grid(multilabel=True)
    [{'weights': ['power'], 'rho': [2.0], 'directional': [False, True]}, {'weights': ['maxmin']}]
    """
    more: dict[str, list[object]] = {} if multilabel else {"margin": ["loss", "normalized"]}
    if hierarchy is not None and not hierarchy.is_tree:
        more["total"] = [(1.0, 1.5)]
    return [{"weights": ["power"], "rho": [2.0], "directional": [False, True], **more}, {"weights": ["maxmin"], **more}]


def last_step(estimator: Estimator) -> HierarchicalSVM:
    """The estimator itself, or the last step of a pipeline: one of ours."""
    last = pipeline_parts(estimator).last
    if not isinstance(last, HierarchicalSVM):
        raise OptionError(
            f"tune takes an estimator of nhsvm, or a Pipeline that ends in one, not {type(last).__name__}"
        )
    return last


def costs(C: object, lam: object) -> tuple[float, ...] | None:
    """Values of C, ascending: those given, or 1/(2λ); None if neither is."""
    if C is not None and lam is not None:
        raise OptionError("give C or lam, not both: C = 1/(2 lam)")
    if C is None and lam is None:
        return None
    name, given = ("C", C) if lam is None else ("lam", lam)
    found = set()
    for value in [given] if is_number(given) else _values(name, given):
        if not is_number(value) or not 0 < value < np.inf:
            raise OptionError(f"{name} must be positive numbers, but has {value!r}")
        found.add(float(value) if lam is None else 1 / (2 * float(value)))
    return tuple(sorted(found))


def make_plan(estimator: Estimator, grid: Grid, Cs: tuple[float, ...] | None, multilabel: bool) -> Plan:
    """Settings of an estimator; an error if one has no such name, or a value is refused in all combinations."""
    last = last_step(estimator)
    if isinstance(grid, str):
        if grid != "paper":
            raise OptionError(f"grid must be a dict, a list of dicts or 'paper', not {grid!r}")
        grid = paper_grid(last.hierarchy, multilabel=multilabel) if "weights" in last.get_params() else None
    accepted: dict[tuple[object, ...], Setting] = {}
    refused: list[tuple[str, str]] = []
    parts = [{}] if grid is None else [grid] if isinstance(grid, Mapping) else grid
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, Mapping) for part in parts):
        raise OptionError(f"grid must be a dict of lists, a list of such dicts, or 'paper', not {grid!r}")
    if not parts:
        raise OptionError("the grid is empty: leave it out to try values of C only")
    for number, part in enumerate(parts):
        usable: list[Setting] = []
        against: list[tuple[Setting, str]] = []
        for setting in _settings(estimator, part, Cs, number):
            reason = _why_refused(estimator, setting, multilabel)
            if reason is not None:
                against.append((setting, reason))
                continue
            usable.append(setting)
            key = setting.steps, *sorted((name, show(value)) for name, value in setting.shown.items())
            accepted.setdefault(key, setting)
        _check_values(usable, against)
        refused += [(show_setting(setting.shown), reason) for setting, reason in against]
    cost = "C", pipeline_parts(estimator).parameter("C")
    names = dict.fromkeys(name for part in parts for name in part if name not in cost)
    return Plan(tuple(accepted.values()), tuple(dict.fromkeys(refused)), tuple(names))


def _check_values(accepted: list[Setting], refused: list[tuple[Setting, str]]) -> None:
    """A value that no combination accepts is a mistake; one that some refuse is left out of these."""
    for setting, reason in refused:
        for name, value in setting.shown.items() or {"": None}.items():
            if not any(name in other.shown and show(other.shown[name]) == show(value) for other in accepted):
                raise OptionError(f"{show_setting(setting.shown)}: {reason}")


# -- whether an estimator would refuse its options: what ``fit`` checks, on a hierarchy of four nodes ------------------


def _why_refused(estimator: Estimator, setting: Setting, multilabel: bool) -> str | None:
    """The reason, or None if it would not."""
    made = clone(estimator)
    try:
        made.set_params(**setting.params, **{pipeline_parts(estimator).parameter("C"): setting.Cs[0]})
    except ValueError as error:  # another last step, which lacks a parameter
        return str(error)
    last = last_step(made)
    try:
        check_options(last)
        if multilabel:
            reason = why_no_sets(last)
            if reason is not None:
                return reason
        else:
            check_single(last)
        last._solver(silent=True)
        _check_loss(last, multilabel)
    except OptionError as error:
        return str(error)
    return None


def _check_loss(estimator: HierarchicalSVM, multilabel: bool) -> None:
    scheme = estimator.weights
    registered = set(type(scheme).__mro__) & {SCHEMES[name] for name in SCHEMES.choices}
    own = callable(scheme) and not isinstance(scheme, type) and not registered  # perhaps for one hierarchy
    alpha = node_weights(_SMALL, "maxmin" if own else scheme)
    if isinstance(estimator.loss, Loss):
        return
    loss = estimator._loss("leaf_hamming" if multilabel else estimator._preset.auto_loss, _SMALL, alpha)
    if multilabel:
        loss_weights(loss, _SMALL, make_columns(_SMALL.graph, alpha), bool(estimator.allow_empty))


# -- combinations ------------------------------------------------------------------------------------------------------


def _values(name: str, given: object) -> list[object]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise OptionError(f"{name} must be a list of values to try, not {given!r}")
    found = list(given)
    if not found:
        raise OptionError(f"{name} has no value to try")
    return found


def _settings(estimator: Estimator, part: GridPart, Cs: tuple[float, ...] | None, number: int) -> Iterator[Setting]:
    """Combinations of one dict."""
    lists = {_known(estimator, name): (name, _values(name, values)) for name, values in part.items()}
    if len(lists) < len(part):
        raise OptionError(f"the grid names a parameter twice: {sorted(part)}")
    whole = pipeline_parts(estimator)
    C_name = whole.parameter("C")
    if C_name in lists:
        if Cs is not None:
            raise OptionError("C is given twice: in the grid, and as C= or lam=")
        Cs = costs(lists.pop(C_name)[1], None)
    _check_scheme_options(estimator, lists)
    last = {whole.parameter(name) for name in whole.last.get_params(deep=False)} | {whole.name, *SCHEME_OPTIONS}
    for choice in product(*(range(len(values)) for _, values in lists.values())):
        chosen = {name: values[k] for k, (name, (_, values)) in zip(choice, lists.items(), strict=True)}
        shown = {short: chosen[name] for name, (short, _) in lists.items()}
        steps = tuple((number, n, k) for k, n in zip(choice, lists, strict=True) if n not in last)
        yield Setting(_with_scheme(estimator, chosen, shown), shown, steps, Cs or DEFAULT_C)


def _known(estimator: Estimator, name: object) -> str:
    """The name for ``set_params``; those of the last step may be given without its own."""
    last = last_step(estimator).get_params(deep=False)
    if isinstance(name, str) and name in estimator.get_params():
        return name
    if isinstance(name, str) and name in last:
        return pipeline_parts(estimator).parameter(name)
    if name in SCHEME_OPTIONS and "weights" in last:
        return str(name)
    what = type(last_step(estimator)).__name__
    hint = "; it is an option of the weights of NHSVM" if name in SCHEME_OPTIONS else ""
    lam = "; lam= is an argument of tune, beside C=" if name in ("lam", "lambda") else ""
    raise OptionError(f"{what} has no parameter {name!r}{hint}{lam}; it has {sorted(last)}")


def _options_of(scheme: object) -> list[str]:
    """Options of a scheme, given by its name or as an instance, that make a difference."""
    kind = SCHEMES.get(scheme) if isinstance(scheme, str) else type(scheme)
    if kind is None or not is_dataclass(kind):
        return []
    known = [field.name for field in fields(kind) if field.name in SCHEME_OPTIONS]
    return [name for name in known if name != "directional" or "rho" in known]  # max-min weights always are


def _check_scheme_options(estimator: Estimator, lists: Mapping[str, tuple[str, list[object]]]) -> None:
    name = pipeline_parts(estimator).parameter("weights")
    schemes = lists[name][1] if name in lists else [last_step(estimator).weights]
    for option in SCHEME_OPTIONS:
        if option in lists and not any(option in _options_of(scheme) for scheme in schemes):
            shown = ", ".join(map(show, schemes))
            raise OptionError(f"{option} is no option of the weights in the grid: {shown}; try weights=['power']")


def _with_scheme(estimator: Estimator, chosen: Options, shown: Options) -> Options:
    """Parameters with the options of the scheme put into it; options that it lacks are dropped from ``shown`` too."""
    name = pipeline_parts(estimator).parameter("weights")
    options = {option: chosen.pop(option) for option in SCHEME_OPTIONS if option in chosen}
    scheme = chosen[name] if name in chosen else last_step(estimator).weights
    known = _options_of(scheme) if options else []
    for option in options.keys() - set(known):
        del options[option], shown[option]
    if is_number(options.get("total")):
        options["total"] = (1.0, float(options["total"]))
    if options:
        chosen[name] = SCHEMES[scheme](**options) if isinstance(scheme, str) else replace(scheme, **options)
    return chosen
