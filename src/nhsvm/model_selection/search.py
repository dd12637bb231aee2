"""The paper's protocol in one call: hold out, try a grid along paths of C, refit the best on everything."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

from sklearn.base import clone

from nhsvm.errors import OptionError
from nhsvm.model_selection._data import make_parts
from nhsvm.model_selection._scoring import make_scores
from nhsvm.model_selection._walk import Budget, Fits, Walk, walk_all
from nhsvm.model_selection.grid import PAPER_LAMBDAS, Grid, costs, last_name, last_step, make_plan
from nhsvm.model_selection.path import split_pipeline
from nhsvm.model_selection.result import CUT, Trial, Tuning, choose
from nhsvm.options import check_threads
from nhsvm.sizes import is_number

Progress = Callable[[Trial, int, int], Any]


def tune(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    grid: Grid = None,
    C: Any = None,
    lam: Any = None,
    scoring: Any = None,
    test_size: float = 0.2,
    validation: Any = None,
    sample_weight: Any = None,
    refit: bool = True,
    search_tol: float | None = 1e-2,
    patience: int | None = 2,
    time_budget: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: bool | Progress | None = None,
) -> Tuning:
    """Choose parameters by a score on held-out samples, then learn from all with the best (Section 8 of the paper).

    For every setting of the grid, C goes from small to large, and each fit starts from the dual variables of the one
    before. The result is the same, bit for bit, for the same ``random_state``, unless a time budget ends the search.

    Parameters
    ----------
    estimator : FlatSVM, HSVM, NHSVM, SSVM, or Pipeline that ends in one
        Not changed. The other steps of a pipeline are fitted once for each of their own settings, on the samples
        learned from.
    X, y : samples, and labels or label sets
        As for ``fit``.
    grid : dict of lists, list of such dicts, or "paper"
        Parameters of the estimator and values to try, in all combinations. Names are those of ``set_params``; those of
        a pipeline's last step may be given without its name. ``rho``, ``directional`` and ``total`` are options of the
        weights scheme: combinations with a scheme that lacks them are tried once. ``total`` may be a pair, or T for
        (1, T). "paper" is :func:`paper_grid` with the paper's λ. A combination that the estimator refuses is left out
        and listed; a value that is refused in all combinations is an error.
    C, lam : numbers, optional
        Values of C to try, or of the paper's λ: C = 1/(2λ). By default C = 0.01, 0.1, 1, 10, 100.
    scoring : str, callable, list or dict, optional
        A score of :func:`nhsvm.metrics.scorers` or of scikit-learn by name, or a function of (model, X, y). Of several,
        the first decides. By default accuracy; for label sets, of whole sets.
    test_size : float or int
        Share of samples to hold out, stratified as by :func:`hold_out_split`.
    validation : (X, y), optional
        Samples to score instead. They are never learned from.
    sample_weight : array, optional
        Weights of the fits. Scores do not use them, but samples of weight zero are not held out.
    refit : bool
        Learn from all of X with the best parameters, at the estimator's own ``tol``.
    search_tol : float or None
        ``tol`` of the fits of the search, if the estimator's own is smaller. None is the estimator's own.
    patience : int or None
        End a path of C after so many scores in a row below the best of that path; None goes through all.
    time_budget : float, optional
        Seconds for the search, heeded between passes over the data; the refit comes on top, and takes what it takes.
        Every setting gets its share, and what is left over goes round again. A fit that is cut short can be the best
        only if none has come to its end.
    n_jobs : int, optional
        Threads of every fit; by default the estimator's own.
    random_state : int, RandomState, Generator or None
        Of the split.
    progress : bool or callable, optional
        True prints a line a fit to stderr; a function is called with (trial, fits ended, fits planned).

    Returns
    -------
    Tuning
        ``best_params``, ``best_score``, ``model``, ``records``; ``print`` shows a table, ``plot()`` draws it. Of equal
        scores, the smaller C is best, and then the earlier setting.

    Raises
    ------
    KeyboardInterrupt
        If no fit has come to its end. Otherwise Ctrl-C ends the search, and the result has what was tried, with
        ``interrupted`` set and no ``model``: :func:`refit_best` makes it.

    Examples
    --------
    >>> from nhsvm import NHSVM
    >>> from nhsvm.datasets import make_balanced
    >>> from nhsvm.model_selection import tune
    >>> data = make_balanced(n_samples=400, random_state=0)
    >>> found = tune(NHSVM(data.hierarchy), data.X, data.y, grid={"weights": ["maxmin", "power"]}, C=[0.01, 0.1, 1])
    >>> sorted(found.best_params)
    ['C', 'weights']
    >>> found.model.C == found.best_params["C"]
    True
    """
    last = last_step(estimator)
    _check(refit, search_tol, patience, time_budget, progress)
    check_threads("n_jobs", n_jobs)
    if isinstance(grid, str) and C is None and lam is None:
        lam = PAPER_LAMBDAS
    values = costs(C, lam)
    parts = make_parts(last, X, y, sample_weight, validation, test_size, random_state)
    plan = make_plan(estimator, grid, values, parts.multilabel)
    scores = make_scores(scoring, last.hierarchy, parts.targets, y)
    fits = Fits(estimator, parts, scores, search_tol, n_jobs)
    walks = [Walk(setting, list(setting.Cs)) for setting in plan.settings]
    budget = Budget(time_budget, perf_counter)
    interrupted = walk_all(walks, fits, budget, patience, _reporter(progress, walks, scores.first))
    records = tuple(trial for walk in walks for trial in walk.trials)
    if interrupted and not records:
        raise KeyboardInterrupt
    found = Tuning(
        scoring=scores.first,
        best=choose(records, scores.first),
        records=records,
        untried=tuple(one for walk in walks for one in walk.untried),
        n_held_out=parts.n_held_out,
        interrupted=interrupted,
        plan=plan,
    )
    return found if interrupted or not refit else refit_best(found, estimator, X, y, sample_weight, n_jobs=n_jobs)


def refit_best(
    found: Tuning, estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, n_jobs: int | None = None
) -> Tuning:
    """The same result with a ``model`` that has learned from all of X, y with the best parameters.

    :func:`tune` does it itself unless told not to, or interrupted.
    """
    began = perf_counter()
    model = clone(estimator).set_params(**found.best_params)
    last = split_pipeline(model)[1]
    own = last.n_jobs
    if n_jobs is not None:
        last.set_params(n_jobs=n_jobs)
    weight = {} if sample_weight is None else {last_name(model, "sample_weight"): sample_weight}
    model.fit(X, y, **weight)
    last.set_params(n_jobs=own)
    interrupted = found.interrupted or last._interrupted  # a model that was stopped is whole, and knows its gap
    return replace(found, model=model, refit_seconds=perf_counter() - began, interrupted=interrupted)


def _check(refit: Any, search_tol: Any, patience: Any, time_budget: Any, progress: Any) -> None:
    if not isinstance(refit, bool):
        raise OptionError(f"refit must be True or False, not {refit!r}")
    for name, value in (("search_tol", search_tol), ("time_budget", time_budget)):
        if value is not None and (not is_number(value) or not 0 < value < float("inf")):
            raise OptionError(f"{name} must be a positive number or None, not {value!r}")
    if patience is not None and (not isinstance(patience, int) or isinstance(patience, bool) or patience < 1):
        raise OptionError(f"patience must be a whole number of at least 1, or None, not {patience!r}")
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise OptionError(f"progress must be True, False, or a function of (trial, made, planned), not {progress!r}")


def _reporter(progress: bool | Progress | None, walks: list[Walk], scoring: str) -> Callable[[Trial], Any]:
    """What to call with every fit."""
    tell = _printed(scoring) if progress is True else progress

    def report(trial: Trial) -> None:
        if tell:
            ended = sum(one.state != CUT for walk in walks for one in walk.trials)
            tell(trial, ended, ended + sum(len(walk.left) for walk in walks))

    return report


def _printed(scoring: str) -> Progress:
    def tell(trial: Trial, made: int, planned: int) -> None:
        print(f"{made}/{planned}  {trial.line(scoring)}", file=sys.stderr, flush=True)

    return tell
