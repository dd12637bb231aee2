"""Fits along C, each of which starts from the dual variables of the one before; those of a search, within its time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import inf, sqrt
from typing import NamedTuple

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from nhsvm.errors import DataError, MemoryWarning, NHSVMError, OptionError
from nhsvm.estimators.base import HierarchicalSVM
from nhsvm.estimators.options import solver_of
from nhsvm.estimators.problem import LearningProblem
from nhsvm.model_selection.grid import Setting, costs, last_step
from nhsvm.model_selection.held_out import Parts, Scores
from nhsvm.model_selection.result import CUT, DONE, OPEN, UNPROVED, Trial, Untried
from nhsvm.options import AUTO
from nhsvm.pipelines import pipeline_parts
from nhsvm.typing import Estimator, LabelsLike, MatrixLike, Record, SampleWeights

FALLEN, LATE, STOPPED = "the score had fallen", "time budget", "interrupted"
Clock = Callable[[], float]
Report = Callable[[Trial], object]


def regularization_path(
    estimator: Estimator,
    X: MatrixLike,
    y: LabelsLike,
    Cs: float | Iterable[float],
    *,
    sample_weight: SampleWeights = None,
) -> Iterator[tuple[float, Estimator]]:
    """Fitted models along a path of C, from the smallest to the largest.

    Cheaper than as many fits, and the more so the closer the values are: each starts from the dual variables of the one
    before, and a pipeline's other steps are fitted once. Every model has the accuracy of a fit of its own, since that
    is proved by its gap.

    Parameters
    ----------
    estimator : estimator of nhsvm, or Pipeline that ends in one
        Not changed. With ``solver="sgd"`` there are no dual variables, and every fit starts from nothing.
    X, y, sample_weight
        As for ``fit``.
    Cs : numbers
        In any order.

    Yields
    ------
    C, model : float, fitted estimator
        Models are independent of each other; those of a pipeline share its fitted first steps.

    Examples
    --------
    >>> from nhsvm import FlatSVM
    >>> from nhsvm.model_selection import regularization_path
    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], ["a", "a", "b", "b"]
    >>> for C, model in regularization_path(FlatSVM(), X, y, [1, 100, 10]):
    ...     print(C, model.score(X, y))
    1.0 1.0
    10.0 1.0
    100.0 1.0
    """
    values = costs(Cs, None)
    if values is None:
        raise OptionError("regularization_path needs values of C")
    last_step(estimator)
    return _path(clone(estimator), X, y, values, sample_weight)


def _path(
    estimator: Estimator, X: MatrixLike, y: LabelsLike, values: tuple[float, ...], sample_weight: SampleWeights
) -> Iterator[tuple[float, Estimator]]:
    parts = pipeline_parts(estimator)
    model = parts.last
    if parts.before is not None:
        X = parts.before.fit_transform(X, y)
    warm = model.warm_start
    _go_on(model)
    problem = model.make_problem(X, y, sample_weight)
    for C in values:
        model.set_params(C=C).fit_problem(problem)
        yield C, parts.ending_in(_detached(model).set_params(warm_start=warm))


def _go_on(model: HierarchicalSVM) -> None:
    """Let the next fits of a model start from the last one, if its solver can."""
    model.set_params(warm_start=solver_of(model).proves)


def _detached(model: HierarchicalSVM) -> HierarchicalSVM:
    """A fitted model that later fits of this one do not change, without dual variables."""
    return model._with_model(model.model_)


# -- the fits of a search ----------------------------------------------------------------------------------------------


@dataclass
class SearchPath:
    """One path of C, as far as a search has gone."""

    setting: Setting
    left: list[float]  # values of C to go
    trials: list[Trial] = field(default_factory=list)
    untried: list[Untried] = field(default_factory=list)
    problem: LearningProblem | None = None  # what all its fits learn from
    model: HierarchicalSVM | None = None  # what goes from one fit to the next, from the first on

    def give_up(self, reason: str) -> None:
        """No more fits."""
        self.untried += [Untried(self.setting.shown, C, reason) for C in self.left]
        self.left = []
        self.forget()

    def forget(self) -> None:
        """Keep what was found, and nothing that fits go on from."""
        self.problem = self.model = None

    def note(self, trial: Trial) -> Trial:
        """Keep a fit; one that goes on where the last was cut short takes its place."""
        if self.trials and self.trials[-1].C == trial.C:
            last = self.trials.pop()
            trial = replace(trial, seconds=last.seconds + trial.seconds, passes=last.passes + trial.passes)
        self.trials.append(trial)
        if trial.state != CUT:
            self.left.pop(0)
        return trial

    def has_fallen(self, scoring: str, patience: int | None, n_held_out: int) -> bool:
        """Whether the last ``patience`` scores are all clearly below the best before them.

        That is by more than the standard error of a share, √(s(1−s)/n), if the score is between 0 and 1.
        """
        scores = [trial.scores[scoring] for trial in self.trials if trial.state != CUT]
        if patience is None or len(scores) <= patience:
            return False
        best = max(scores[:-patience])
        return max(scores[-patience:]) < best - sqrt(max(0.0, best * (1 - best)) / n_held_out)


class _Samples(NamedTuple):
    """Samples as the last step of a pipeline takes them, and what has made them so."""

    steps: Estimator | None
    X: MatrixLike
    X_out: MatrixLike


class Fits:
    """Makes fits and scores them; ``tol`` is the least tolerance of the search."""

    def __init__(
        self, estimator: Estimator, parts: Parts, scores: Scores, tol: float | None, n_jobs: int | None
    ) -> None:
        self.estimator, self.parts, self.scores, self.tol, self.n_jobs = estimator, parts, scores, tol, n_jobs
        self._transformed: dict[object, _Samples] = {}

    def begin(self, path: SearchPath) -> HierarchicalSVM:
        """An estimator with the path's setting, which goes on from fit to fit."""
        parts = pipeline_parts(clone(self.estimator).set_params(**path.setting.params))
        model: HierarchicalSVM = parts.last
        if path.setting.steps not in self._transformed:
            self._transformed[path.setting.steps] = self._transform(parts.before)
        if self.tol is not None and parts.parameter("tol") not in path.setting.params and model.tol != AUTO:
            model.set_params(tol=max(self.tol, model.tol))
        if self.n_jobs is not None:
            model.set_params(n_jobs=self.n_jobs)
        if not self.scores.needs_probability:
            model.set_params(probability=False)  # takes folds of its own, and labels do not depend on it
        _go_on(model)
        return model

    def _transform(self, steps: Estimator | None) -> _Samples:
        if steps is None:
            return _Samples(None, self.parts.X, self.parts.X_out)
        try:
            X = steps.fit_transform(self.parts.X, self.parts.y)
            return _Samples(steps, X, steps.transform(self.parts.X_out))
        except NHSVMError:
            raise
        except ValueError as error:
            raise DataError(f"the steps before {type(self.estimator[-1]).__name__} failed: {error}") from error

    def forget(self, paths: list[SearchPath]) -> None:
        """Drop transformed samples that none of these paths needs."""
        needed = {path.setting.steps for path in paths}
        self._transformed = {key: found for key, found in self._transformed.items() if key in needed}

    def fit(self, path: SearchPath, until: float, clock: Clock) -> Trial | None:
        """The path's next fit, or None if it was interrupted; cut short when the clock says ``until``."""
        if path.model is None:
            path.model = self.begin(path)
        model, C, own = path.model, path.left[0], path.model.callback
        steps, X, X_out = self._transformed[path.setting.steps]
        pipeline = pipeline_parts(self.estimator)._replace(before=steps)
        cut = False

        def callback(record: Record) -> bool:
            nonlocal cut
            if own is not None and own(record):
                return True
            cut = cut or (clock() >= until and record["gap"] > tol)
            return cut

        model.set_params(C=C, callback=callback)
        began = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the trial says it
            warnings.simplefilter("ignore", MemoryWarning)  # there is an error if it comes true
            if path.problem is None:
                path.problem = model.make_problem(X, self.parts.y, self.parts.weight)
            tol = path.problem.chosen.tol
            model.fit_problem(path.problem)
        seconds = clock() - began
        model.set_params(callback=own)
        if model.interrupted_:
            return None
        found = self.scores.of(model, X_out, self.parts, lambda: pipeline.ending_in(_detached(model)))
        state = DONE
        if model.gap_ > tol and (cut or solver_of(model).proves):
            state = CUT if cut else OPEN if model.certified_ else UNPROVED
        params = path.setting.params | {pipeline.parameter("C"): C}
        return Trial(
            params, path.setting.shown, C, found, seconds, model.n_iter_, model.gap_, self.parts.n_train, state
        )


def follow(
    paths: list[SearchPath], fits: Fits, time_budget: float | None, clock: Clock, patience: int | None, report: Report
) -> bool:
    """Fits along all paths, each within its share of the time, as long as there is some; whether it was interrupted."""
    end = inf if time_budget is None else clock() + time_budget
    pending, interrupted = list(paths), False
    try:
        while pending and clock() < end and not interrupted:
            for k, path in enumerate(pending):
                now = clock()
                until = now + (end - now) / (len(pending) - k)
                interrupted = _follow(path, fits, until, clock, patience, report)
                fits.forget([one for one in pending[k:] if one.left] if end == inf else pending)
                if interrupted or clock() >= end:
                    break
            pending = [path for path in pending if path.left]
    except KeyboardInterrupt:
        interrupted = True
    for path in paths:
        path.give_up(STOPPED if interrupted else LATE)
    return interrupted


def _follow(path: SearchPath, fits: Fits, until: float, clock: Clock, patience: int | None, report: Report) -> bool:
    """Fits of one path until it ends or the time does; whether the user interrupted it."""
    while path.left:
        trial = fits.fit(path, until, clock)
        if trial is None:
            return True
        report(path.note(trial))
        if path.has_fallen(fits.scores.first, patience, fits.parts.n_held_out):
            path.give_up(FALLEN)
        if clock() >= until:
            return False
    path.forget()
    return False
