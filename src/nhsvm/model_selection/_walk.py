"""The fits of a search: paths of C, within a time budget, until done or interrupted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf, isfinite, sqrt
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from nhsvm.errors import DataError, MemoryWarning, NHSVMError
from nhsvm.estimators.options import streams
from nhsvm.estimators.problem import LearningProblem
from nhsvm.model_selection._data import Parts
from nhsvm.model_selection._scoring import Scores
from nhsvm.model_selection.grid import Setting, last_name
from nhsvm.model_selection.path import detached, go_on, joined, split_pipeline
from nhsvm.model_selection.result import CUT, DONE, OPEN, UNPROVED, Trial, Untried

FALLEN, LATE, STOPPED = "the score had fallen", "time budget", "interrupted"


class Budget:
    """Time that a search has.

    Parameters
    ----------
    seconds : float or None
    clock : callable
    """

    def __init__(self, seconds: float | None, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.end = inf if seconds is None else clock() + seconds

    @property
    def over(self) -> bool:
        return self.clock() >= self.end

    def share(self, n: int) -> float:
        """When the first of ``n`` that have the rest of the time among them should end."""
        now = self.clock()
        return now + (self.end - now) / n


@dataclass
class Walk:
    """One path of C.

    Attributes
    ----------
    setting : Setting
    left : list of float
        Values of C to go.
    trials : list of Trial
    untried : list of Untried
    model : estimator, optional
        What goes from one fit to the next, from the first on.
    problem : LearningProblem, optional
        What all its fits learn from.
    """

    setting: Setting
    left: list[float]
    trials: list[Trial] = field(default_factory=list)
    untried: list[Untried] = field(default_factory=list)
    problem: LearningProblem | None = None
    model: Any = None

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


class Fits:
    """Makes fits and scores them.

    Parameters
    ----------
    estimator : estimator or pipeline
    parts : Parts
    scores : Scores
    tol : float or None
        Least tolerance of the search.
    n_jobs : int or None
    """

    def __init__(self, estimator: Any, parts: Parts, scores: Scores, tol: float | None, n_jobs: int | None) -> None:
        self.estimator, self.parts, self.scores, self.tol, self.n_jobs = estimator, parts, scores, tol, n_jobs
        self._transformed: dict[Any, tuple[Any, Any, Any]] = {}

    def begin(self, walk: Walk) -> None:
        """An estimator with the walk's setting, which goes on from fit to fit."""
        steps, model = split_pipeline(clone(self.estimator).set_params(**walk.setting.params))
        if walk.setting.steps not in self._transformed:
            self._transformed[walk.setting.steps] = self._transform(steps)
        if self.tol is not None and last_name(self.estimator, "tol") not in walk.setting.params:
            model.set_params(tol=max(self.tol, model.tol))
        if self.n_jobs is not None:
            model.set_params(n_jobs=self.n_jobs)
        if not self.scores.needs_probability:
            model.set_params(probability=False)  # takes folds of its own, and labels do not depend on it
        go_on(model)
        walk.model = model

    def forget(self, walks: list[Walk]) -> None:
        """Drop transformed samples that none of these walks needs."""
        needed = {walk.setting.steps for walk in walks}
        self._transformed = {key: found for key, found in self._transformed.items() if key in needed}

    def fit(self, walk: Walk, until: float, clock: Callable[[], float]) -> Trial | None:
        """The walk's next fit, or None if it was interrupted; cut short when the clock says ``until``."""
        if walk.model is None:
            self.begin(walk)
        model, C, own = walk.model, walk.left[0], walk.model.callback
        steps, X, X_out = self._transformed[walk.setting.steps]
        cut = []

        def callback(record: Any) -> Any:
            if own is not None and own(record):
                return True
            if clock() >= until and record["gap"] > model.tol:
                cut.append(True)
            return bool(cut)

        model.set_params(C=C, callback=callback)
        began = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the trial says it
            warnings.simplefilter("ignore", MemoryWarning)  # there is an error if it comes true
            if walk.problem is None:
                walk.problem = model.make_problem(X, self.parts.y, self.parts.weight)
            model.fit_problem(walk.problem)
        seconds = clock() - began
        model.set_params(callback=own)
        if model._interrupted:
            return None
        found = self.scores.of(model, X_out, self.parts.y_out, lambda: self._whole(steps, model))
        params = walk.setting.params | {last_name(self.estimator, "C"): C}
        state = CUT if cut and model.gap_ > model.tol else DONE
        if state == DONE and model.gap_ > model.tol and not streams(model):
            state = OPEN if isfinite(model.gap_) else UNPROVED
        return Trial(
            params, walk.setting.shown, C, found, seconds, model.n_iter_, model.gap_, self.parts.n_train, state
        )

    def _transform(self, steps: Any) -> tuple[Any, Any, Any]:
        """(fitted first steps, samples to learn from, samples to score)."""
        if steps is None:
            return None, self.parts.X, self.parts.X_out
        try:
            return steps, steps.fit_transform(self.parts.X, self.parts.y), steps.transform(self.parts.X_out)
        except NHSVMError:
            raise
        except ValueError as error:
            raise DataError(f"the steps before {type(self.estimator[-1]).__name__} failed: {error}") from error

    def _whole(self, steps: Any, model: Any) -> tuple[Any, Any]:
        return joined(steps, detached(model), self.estimator), self.parts.X_out


def walk_all(
    walks: list[Walk], fits: Fits, budget: Budget, patience: int | None, report: Callable[[Trial], Any]
) -> bool:
    """Go along all paths, each within its share of the time, again and again as long as there is some.

    Returns
    -------
    bool
        Whether the user interrupted it.
    """
    pending, interrupted = list(walks), False
    try:
        while pending and not budget.over and not interrupted:
            for k, walk in enumerate(pending):
                until = budget.share(len(pending) - k)
                interrupted = _go(walk, fits, until, budget.clock, patience, report)
                fits.forget([one for one in pending[k:] if one.left] if budget.end == inf else pending)
                if interrupted or budget.over:
                    break
            pending = [walk for walk in pending if walk.left]
    except KeyboardInterrupt:
        interrupted = True
    for walk in walks:
        walk.give_up(STOPPED if interrupted else LATE)
    return interrupted


def _go(
    walk: Walk, fits: Fits, until: float, clock: Callable[[], float], patience: int | None, report: Callable[..., Any]
) -> bool:
    """Fits of one path until it ends or the time does; whether the user interrupted it."""
    while walk.left:
        trial = fits.fit(walk, until, clock)
        if trial is None:
            return True
        report(walk.note(trial))
        if walk.has_fallen(fits.scores.first, patience, fits.parts.n_held_out):
            walk.give_up(FALLEN)
        if clock() >= until:
            return False
    walk.forget()
    return False
