"""Checks of the options that estimators share, before any work is done."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from nhsvm.checks import is_number
from nhsvm.errors import OptionError
from nhsvm.estimators._measures import MEASURES
from nhsvm.estimators._memory import parsed
from nhsvm.hierarchy import Hierarchy

MARGINS = ("loss", "normalized")
SET_ORACLES = ("auto", "tree_multilabel", "dag_multilabel", "lp")
ORACLES = (*SET_ORACLES, "single_label")


def check_options(estimator: Any) -> None:
    """Raise an OptionError that names the first option out of range."""
    hierarchy = estimator.hierarchy
    if hierarchy is not None and not isinstance(hierarchy, Hierarchy):
        raise OptionError(f"hierarchy must be a Hierarchy or None, not a {type(hierarchy).__name__}")
    for name in ("C", "tol", "intercept_scaling"):
        _positive(estimator, name)
    for name in ("fit_intercept", "warm_start", "probability", "allow_empty", "certify"):
        _yes_or_no(estimator, name)
    if not is_number(estimator.leaf_offset) or not abs(estimator.leaf_offset) < np.inf:
        raise OptionError(f"leaf_offset must be a finite number, not {estimator.leaf_offset!r}")
    _check_offsets(estimator.offsets)
    _whole(estimator.max_iter, "max_iter", 1)
    _whole(estimator.verbose, "verbose", 0)
    check_jobs(estimator.n_jobs)
    if estimator.memory_limit is not None:
        parsed(estimator.memory_limit)
    if estimator.callback is not None and not callable(estimator.callback):
        raise OptionError(f"callback must be a function of one record, not {estimator.callback!r}")
    _one_of(estimator.oracle, "oracle", ORACLES)
    _check_margin(estimator)
    _check_class_weight(estimator.class_weight)
    _check_solver(estimator)
    _check_cv(estimator)


def check_jobs(n_jobs: Any) -> None:
    """Raise an OptionError unless ``n_jobs`` is None or a number of threads."""
    if n_jobs is not None and (not _is_whole(n_jobs) or n_jobs == 0):
        raise OptionError(f"n_jobs must be None, a positive number of threads, or -1 for all, not {n_jobs!r}")


def _check_margin(estimator: Any) -> None:
    margin = getattr(estimator, "margin", "loss")
    _one_of(margin, "margin", MARGINS)
    if margin == "normalized" and not (isinstance(estimator.loss, str) and estimator.loss in ("auto", "normalized")):
        raise OptionError(
            f"margin='normalized' (Eq. 13) has a loss of its own; leave loss='auto', not {estimator.loss!r}"
        )


def _check_class_weight(class_weight: Any) -> None:
    known = class_weight is None or isinstance(class_weight, dict)
    if not known and not (isinstance(class_weight, str) and class_weight == "balanced"):
        raise OptionError(f"class_weight must be None, 'balanced' or a dict, not {class_weight!r}")


def _check_solver(estimator: Any) -> None:
    from nhsvm.solvers import SOLVERS

    solver = estimator.solver
    if isinstance(solver, type) or (solver not in SOLVERS if isinstance(solver, str) else not hasattr(solver, "solve")):
        raise OptionError(f"solver must be one of {list(SOLVERS)} or an instance, not {solver!r}")
    if not estimator.certify and streams(estimator):
        raise OptionError(
            "certify=False goes with solver='dual'; solver='sgd' measures its objective to know when to stop"
        )
    if estimator.warm_start and streams(estimator):
        raise OptionError("warm_start goes with solver='dual'; solver='sgd' has partial_fit instead")


def _check_offsets(offsets: Any) -> None:
    if offsets is not None and not callable(offsets) and not (isinstance(offsets, str) and offsets in MEASURES):
        raise OptionError(f"offsets must be None, one of {list(MEASURES)} or a function, not {offsets!r}")


def why_no_sets(estimator: Any) -> str | None:
    """Why an estimator with these options cannot learn from label sets; None if it can."""
    if streams(estimator):
        return f"label sets need solver='dual', not {estimator.solver!r}"
    if estimator.class_weight is not None:
        return (
            "class_weight is for one label a sample: a label set has no class to take a weight from; use "
            "sample_weight, or offsets=... for labels that are found too rarely"
        )
    if getattr(estimator, "margin", "loss") == "normalized":
        return "margin='normalized' (Eq. 13) is for one label a sample; leave margin='loss' for label sets"
    if estimator.oracle not in SET_ORACLES:
        return f"oracle={estimator.oracle!r} is for one label a sample; label sets have {list(SET_ORACLES)}"
    return None


def check_single(estimator: Any) -> None:
    """Raise an OptionError for options that have no meaning for one label a sample."""
    if estimator.oracle not in ("auto", "single_label"):
        raise OptionError(f"oracle={estimator.oracle!r} is for label sets, but y has one label a sample")
    if estimator.leaf_offset != 0 or estimator.offsets is not None:
        name = "offsets" if estimator.offsets is not None else "leaf_offset"
        raise OptionError(f"{name} is for label sets, but y has one label a sample, where only differences count")


def _check_cv(estimator: Any) -> None:
    cv = estimator.cv
    if isinstance(cv, (Real, str)) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        _whole(cv, "cv", 2, " folds, a splitter, or an iterable of splits")


def streams(estimator: Any) -> bool:
    """Whether the estimator's solver can learn from one part of the data after the other."""
    from nhsvm.solvers import SOLVERS

    solver = estimator.solver
    return hasattr(SOLVERS.get(solver) if isinstance(solver, str) else solver, "partial")


def n_threads(n_jobs: int | None) -> int:
    """Joblib's reading of ``n_jobs``: None is 1, or what an enclosing ``parallel_config`` says."""
    return int(effective_n_jobs(n_jobs))


def seed_of(random_state: Any) -> int:
    """The seed of the order of samples; None is 0, so that two fits agree unless told otherwise."""
    if random_state is None:
        return 0
    try:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except ValueError as error:
        raise OptionError(f"random_state must be None, a seed or a RandomState, not {random_state!r}") from error


def _positive(estimator: Any, name: str) -> None:
    value = getattr(estimator, name)
    if not is_number(value) or not 0 < value < np.inf:
        raise OptionError(f"{name} must be a positive number, not {value!r}")


def _yes_or_no(estimator: Any, name: str) -> None:
    value = getattr(estimator, name)
    if not isinstance(value, (bool, np.bool_)):
        raise OptionError(f"{name} must be True or False, not {value!r}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _whole(value: Any, name: str, least: int, more: str = "") -> None:
    if not (isinstance(value, Integral) if name == "verbose" else _is_whole(value)) or value < least:
        raise OptionError(f"{name} must be a whole number of at least {least}{more}, not {value!r}")


def _one_of(value: Any, name: str, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise OptionError(f"{name} must be one of {known}, not {value!r}")
