"""What options of an estimator mean together, how they are read, and what a fit says while it runs."""

from __future__ import annotations

import sys
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.utils import check_random_state

from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.options import AUTO, OPTIONS, set_oracles
from nhsvm.typing import Callback, Record, Seed

if TYPE_CHECKING:
    from nhsvm.engine import Solver
    from nhsvm.estimators.base import HierarchicalSVM


def check_options(estimator: HierarchicalSVM) -> None:
    """Raise an OptionError that names the first option out of range, or two that do not go together."""
    hierarchy = estimator.hierarchy
    if hierarchy is not None and not isinstance(hierarchy, Hierarchy):
        raise OptionError(f"hierarchy must be a Hierarchy or None, not a {type(hierarchy).__name__}")
    for name in estimator._preset.options():
        OPTIONS[name].check(name, getattr(estimator, name))
    solver = solver_of(estimator)
    _check_preset(estimator, solver)
    if estimator.margin == "normalized" and not (
        isinstance(estimator.loss, str) and estimator.loss in ("auto", "normalized")
    ):
        raise OptionError(
            f"margin='normalized' (Eq. 13) has a loss of its own; leave loss='auto', not {estimator.loss!r}"
        )
    if estimator.certify is False and not solver.proves:
        raise OptionError(
            "certify=False goes with solver='dual'; solver='sgd' measures its objective to know when to stop"
        )
    if estimator.early_stopping and not solver.proves:
        raise OptionError("early_stopping goes with solver='dual'; solver='sgd' has partial_fit and your own scores")
    if estimator.early_stopping and estimator.warm_start:
        raise OptionError("early_stopping learns from a part of the samples, and warm_start goes on with all: choose")
    if estimator.warm_start and not solver.proves:
        raise OptionError("warm_start goes with solver='dual'; solver='sgd' has partial_fit instead")


def _check_preset(estimator: HierarchicalSVM, solver: type[Solver]) -> None:
    """Raise an OptionError for a solver that cannot solve what this estimator poses."""
    name, preset = type(estimator).__name__, estimator._preset
    if preset.learns_weights and not solver.learns_weights:
        raise OptionError(f"{name} learns weights, which takes solver='alternating', not {estimator.solver!r}")
    if preset.independent and not solver.takes_hinges:
        raise OptionError(f"{name} takes solver='dual' or an instance of nhsvm.engine.Dual, not {estimator.solver!r}")


def why_no_sets(estimator: HierarchicalSVM) -> str | None:
    """Why an estimator with these options cannot learn from label sets; None if it can."""
    if not solver_of(estimator).takes_sets:
        return f"label sets need solver='dual', not {estimator.solver!r}"
    if estimator.class_weight is not None:
        return (
            "class_weight is for one label a sample: a label set has no class to take a weight from; use "
            "sample_weight, or offsets=... for labels that are found too rarely"
        )
    if estimator.margin == "normalized":
        return "margin='normalized' (Eq. 13) is for one label a sample; leave margin='loss' for label sets"
    if estimator.oracle not in set_oracles():
        return f"oracle={estimator.oracle!r} is for one label a sample; label sets have {list(set_oracles())}"
    return None


def check_single(estimator: HierarchicalSVM) -> None:
    """Raise an OptionError for options that have no meaning for one label a sample."""
    if estimator.oracle not in ("auto", "single_label"):
        raise OptionError(f"oracle={estimator.oracle!r} is for label sets, but y has one label a sample")
    if estimator.leaf_offset not in (AUTO, 0) or estimator.offsets is not None:
        name = "offsets" if estimator.offsets is not None else "leaf_offset"
        raise OptionError(f"{name} is for label sets, but y has one label a sample, where only differences count")


def solver_of(estimator: HierarchicalSVM) -> type[Solver]:
    """The class of an estimator's solver, which says what it can do; of one that will be refused, the base of all."""
    from nhsvm.engine import SOLVERS, Solver

    solver = estimator.solver
    if isinstance(solver, str):
        return SOLVERS.get(solver, Solver)
    return type(solver) if isinstance(solver, Solver) else Solver


def n_threads(n_jobs: int | None) -> int:
    """Joblib's reading of ``n_jobs``: None is 1, or what an enclosing ``parallel_config`` says.

    No more than there are cores for this process, whoever asks for more: results do not depend on it, and a file or a
    slip of the keyboard could ask for a billion.
    """
    return min(int(effective_n_jobs(n_jobs)), cores())


def cores() -> int:
    """Cores that this process may use."""
    return int(cpu_count())


def seed_of(random_state: Seed) -> int:
    """The seed of the order of samples; None is 0, so that two fits agree unless told otherwise."""
    if random_state is None:
        return 0
    try:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except ValueError as error:
        raise OptionError(f"random_state must be None, a seed or a RandomState, not {random_state!r}") from error


class Progress:
    """Prints one line a pass to stderr if ``verbose``, and hands the record on."""

    def __init__(self, verbose: int, callback: Callback | None) -> None:
        self.verbose, self.callback = verbose, callback

    def __call__(self, record: Record) -> object:
        if self.verbose:
            mark = "certified" if record["certified"] else "estimated"
            error = record["training_error"]
            wrong = "" if isnan(error) else f"  training error {error:.2%}"  # of label sets, only certificates know it
            print(
                f"pass {record['iteration']:4d}  {record['seconds']:8.2f} s  primal {record['primal']:.6g}  "
                f"dual {record['dual']:.6g}  gap {record['gap']:.2e} ({mark}){wrong}",
                file=sys.stderr,
                flush=True,
            )
        return None if self.callback is None else self.callback(record)
