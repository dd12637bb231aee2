"""The paper's protocol in one call: hold out, try a grid along paths of C, refit the best on everything."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Annotated, TypedDict, Unpack

from sklearn.base import clone

from nhsvm.checks import flag
from nhsvm.errors import OptionError
from nhsvm.model_selection.grid import PAPER_LAMBDAS, Costs, Grid, costs, last_step, make_plan
from nhsvm.model_selection.held_out import Scoring, make_parts, make_scores
from nhsvm.model_selection.path import Fits, SearchPath, follow
from nhsvm.model_selection.result import CUT, Trial, Tuning, choose
from nhsvm.options import check_threads
from nhsvm.pipelines import pipeline_parts
from nhsvm.registry import Declared, Option
from nhsvm.sizes import is_number
from nhsvm.typing import AnySeed, Estimator, LabelsLike, MatrixLike, SampleWeights

Progress = Callable[[Trial, int, int], object]


# -- how a search is made ----------------------------------------------------------------------------------------------


def check_positive(name: str, value: object) -> None:
    """Raise an OptionError unless the value is a positive number."""
    if not is_number(value) or not 0 < value < float("inf"):
        raise OptionError(f"{name} must be a positive number, not {value!r}")


def _positive_or_none(name: str, value: object) -> None:
    if value is not None and (not is_number(value) or not 0 < value < float("inf")):
        raise OptionError(f"{name} must be a positive number or None, not {value!r}")


def check_patience(name: str, value: object) -> None:
    """Raise an OptionError unless the value is a number of scores, or None."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise OptionError(f"{name} must be a whole number of at least 1, or None, not {value!r}")


def _progress(name: str, value: object) -> None:
    if value is not None and not isinstance(value, bool) and not callable(value):
        raise OptionError(f"{name} must be True, False, or a function of (trial, made, planned), not {value!r}")


class SearchOptions(TypedDict, total=False):
    """What :func:`tune` takes by name beside what it tries and learns from; each option is declared here, once."""

    test_size: Annotated[
        float,
        Option(0.2, "float or int", "Share of samples to hold out, stratified as by :func:`hold_out_split`."),
    ]
    validation: Annotated[
        tuple[MatrixLike, LabelsLike] | None,
        Option(None, "(X, y), optional", "Samples to score instead. They are never learned from."),
    ]
    search_tol: Annotated[
        float | None,
        Option(
            1e-2,
            "float or None",
            "``tol`` of the fits of the search, if the estimator's own is smaller. None is the estimator's own.",
            _positive_or_none,
        ),
    ]
    patience: Annotated[
        int | None,
        Option(
            2,
            "int or None",
            "End a path of C after so many scores in a row below the best of that path; None goes through all.",
            check_patience,
        ),
    ]
    time_budget: Annotated[
        float | None,
        Option(
            None,
            "float, optional",
            "Seconds for the search, heeded between passes over the data; the refit comes on top, and takes what it "
            "takes. Every setting gets its share, and what is left over goes round again. A fit that is cut short can "
            "be the best only if none has come to its end.",
            _positive_or_none,
        ),
    ]
    n_jobs: Annotated[
        int | None,
        Option(None, "int, optional", "Threads of every fit; by default the estimator's own.", check_threads),
    ]
    random_state: Annotated[AnySeed, Option(None, "int, RandomState, Generator or None", "Of the split.")]
    progress: Annotated[
        bool | Progress | None,
        Option(
            None,
            "bool or callable, optional",
            "True prints a line a fit to stderr; a function is called with (trial, fits ended, fits planned).",
            _progress,
        ),
    ]


SEARCH = Declared(SearchOptions)


@SEARCH
def tune(
    estimator: Estimator,
    X: MatrixLike,
    y: LabelsLike,
    *,
    grid: Grid = None,
    C: Costs = None,
    lam: Costs = None,
    scoring: Scoring | Mapping[str, Scoring] | Iterable[Scoring] = None,
    sample_weight: SampleWeights = None,
    refit: bool = True,
    **options: Unpack[SearchOptions],
) -> Tuning:
    """Choose parameters by a score on held-out samples, then learn from all with the best (Section 8 of the paper).

    For every setting of the grid, C goes from small to large, and each fit starts from the dual variables of the one
    before. The result is the same, bit for bit, for the same ``random_state``, unless a time budget ends the search.

    Parameters
    ----------
    estimator : estimator of nhsvm, or Pipeline that ends in one
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
    sample_weight : array, optional
        Weights of the fits. Scores do not use them, but samples of weight zero are not held out.
    refit : bool
        Learn from all of X with the best parameters, at the estimator's own ``tol``.
    {options}

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
    flag("refit", refit)
    how: SearchOptions = SEARCH.complete("tune", options)
    if isinstance(grid, str) and C is None and lam is None:
        lam = PAPER_LAMBDAS
    values = costs(C, lam)
    parts = make_parts(last, X, y, sample_weight, how["validation"], how["test_size"], how["random_state"])
    plan = make_plan(estimator, grid, values, parts.multilabel)
    scores = make_scores(scoring, last.hierarchy, parts.targets, y)
    fits = Fits(estimator, parts, scores, how["search_tol"], how["n_jobs"])
    paths = [SearchPath(setting, list(setting.Cs)) for setting in plan.settings]
    tell = _printed(scores.first) if how["progress"] is True else how["progress"]

    def report(trial: Trial) -> None:
        if tell:
            ended = sum(one.state != CUT for path in paths for one in path.trials)
            tell(trial, ended, ended + sum(len(path.left) for path in paths))

    interrupted = follow(paths, fits, how["time_budget"], perf_counter, how["patience"], report)
    records = tuple(trial for path in paths for trial in path.trials)
    if interrupted and not records:
        raise KeyboardInterrupt
    found = Tuning(
        scoring=scores.first,
        best=choose(records, scores.first),
        records=records,
        untried=tuple(one for path in paths for one in path.untried),
        n_held_out=parts.n_held_out,
        interrupted=interrupted,
        plan=plan,
    )
    return (
        found if interrupted or not refit else refit_best(found, estimator, X, y, sample_weight, n_jobs=how["n_jobs"])
    )


def _printed(scoring: str) -> Progress:
    def tell(trial: Trial, made: int, planned: int) -> None:
        print(f"{made}/{planned}  {trial.line(scoring)}", file=sys.stderr, flush=True)

    return tell


def refit_best(
    found: Tuning,
    estimator: Estimator,
    X: MatrixLike,
    y: LabelsLike,
    sample_weight: SampleWeights = None,
    *,
    n_jobs: int | None = None,
) -> Tuning:
    """The same result with a ``model`` that has learned from all of X, y with the best parameters.

    :func:`tune` does it itself unless told not to, or interrupted.
    """
    began = perf_counter()
    model = clone(estimator).set_params(**found.best_params)
    parts = pipeline_parts(model)
    last = parts.last
    own = last.n_jobs
    if n_jobs is not None:
        last.set_params(n_jobs=n_jobs)
    weight = {} if sample_weight is None else {parts.parameter("sample_weight"): sample_weight}
    model.fit(X, y, **weight)
    last.set_params(n_jobs=own)
    interrupted = found.interrupted or last.interrupted_  # a model that was stopped is whole, and knows its gap
    return replace(found, model=model, refit_seconds=perf_counter() - began, interrupted=interrupted)
