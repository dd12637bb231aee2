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
from nhsvm.options import OPTIONS, set_oracles
from nhsvm.typing import Callback, Record, Seed

if TYPE_CHECKING:
    from nhsvm.estimators.base import HierarchicalSVM


def check_options(estimator: HierarchicalSVM) -> None:
    """Raise an OptionError that names the first option out of range, or two that do not go together."""
    hierarchy = estimator.hierarchy
    if hierarchy is not None and not isinstance(hierarchy, Hierarchy):
        raise OptionError(f"hierarchy must be a Hierarchy or None, not a {type(hierarchy).__name__}")
    for name in estimator._preset.options():
        OPTIONS[name].check(name, getattr(estimator, name))
    estimator._check_solver()
    if estimator.margin == "normalized" and not (
        isinstance(estimator.loss, str) and estimator.loss in ("auto", "normalized")
    ):
        raise OptionError(
            f"margin='normalized' (Eq. 13) has a loss of its own; leave loss='auto', not {estimator.loss!r}"
        )
    if not estimator.certify and streams(estimator):
        raise OptionError(
            "certify=False goes with solver='dual'; solver='sgd' measures its objective to know when to stop"
        )
    if estimator.warm_start and streams(estimator):
        raise OptionError("warm_start goes with solver='dual'; solver='sgd' has partial_fit instead")


def why_no_sets(estimator: HierarchicalSVM) -> str | None:
    """Why an estimator with these options cannot learn from label sets; None if it can."""
    if streams(estimator):
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
    if estimator.leaf_offset != 0 or estimator.offsets is not None:
        name = "offsets" if estimator.offsets is not None else "leaf_offset"
        raise OptionError(f"{name} is for label sets, but y has one label a sample, where only differences count")


def streams(estimator: HierarchicalSVM) -> bool:
    """Whether the estimator's solver can learn from one part of the data after the other."""
    from nhsvm.engine import SOLVERS, StreamingSolver

    solver = estimator.solver
    kind = SOLVERS.get(solver) if isinstance(solver, str) else type(solver)
    return kind is not None and issubclass(kind, StreamingSolver)


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
