"""C and other options chosen within one fit: loose fits along a path over C, scored on held-out samples.

Held-out samples stay in the learning problem and cost nothing. So the dual variables found on the way are a warm start
for the fit of all samples, which is what makes the choice cheap: the last fit begins near its end. Fits of the choice
prove nothing: each ends where the gap is estimated to be small enough to compare scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from math import isnan, sqrt
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nhsvm.errors import NHSVMError
from nhsvm.estimators.base import HierarchicalSVM, WarmStart
from nhsvm.estimators.calibration import Fold, FoldModels
from nhsvm.estimators.defaults import Chosen, auto_cost, rounded
from nhsvm.estimators.options import solver_of
from nhsvm.estimators.problem import LearningProblem
from nhsvm.model import Model
from nhsvm.typing import Callback, LabelsLike, MatrixLike, Options, Record

if TYPE_CHECKING:
    from nhsvm.engine import Solution

Score = Callable[[HierarchicalSVM, MatrixLike, LabelsLike], float]


class ChoiceTuning(NamedTuple):
    """Constants of the choice."""

    span: float = 32.0
    """A path goes from what "auto" is as C, divided by this, to that times this."""
    tol: float = 0.1
    """Gap at which fits end, unless that of the estimator is larger."""
    fewest: int = 3
    """Values of C that are tried in any case: scores for the smallest may all be those of the largest class."""
    few: int = 100
    """Held-out samples below which a path goes to its end: scores say little of where they rise, and fits are quick."""
    better: float = 0.005
    """By how much a score must be better to be clearly so, if its standard error is not less."""


TUNING = ChoiceTuning()


def path_of(n: int, mean_square: float) -> tuple[float, ...]:
    """So many values of C, evenly spaced on a logarithmic scale around that of "auto" for samples of this mean ‖x‖²."""
    powers = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
    return tuple(rounded(auto_cost(mean_square) * TUNING.span**power) for power in powers.tolist())


def is_enough(scores: list[float], patience: int | None, n_held_out: int) -> bool:
    """Whether none of the last ``patience`` scores along a path is clearly better than the best before them.

    That is by ``TUNING.better``, or by the standard error of a share, √(s(1−s)/n), if that is less.
    """
    if patience is None or n_held_out < TUNING.few or len(scores) < max(patience + 1, TUNING.fewest):
        return False
    best = max(scores[:-patience])
    return max(scores[-patience:]) <= best + min(TUNING.better, sqrt(max(0.0, best * (1.0 - best)) / n_held_out))


# -- what was tried ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """One setting of the options.

    Attributes
    ----------
    options : dict
        For ``set_params``; C among them.
    scores : tuple of float
        On the held-out samples of every split; higher is better.
    passes : int
        Over the samples learned from, in all splits.
    gap : float
        The largest of all splits, as their last passes have estimated it.
    seconds : float
        Of all fits.
    """

    options: Options
    scores: tuple[float, ...]
    passes: int
    gap: float
    seconds: float

    @property
    def score(self) -> float:
        """The mean over the splits."""
        return float(np.mean(self.scores))


class Refitted(NamedTuple):
    """The fit of all samples with what was chosen."""

    svm: HierarchicalSVM
    solution: Solution
    problem: LearningProblem


@dataclass
class Choices:
    """What is to be tried: a path over C under the first of the others, which are then tried at the best C."""

    Cs: tuple[float, ...]
    others: dict[str, Sequence[object]]
    tol: float
    max_iter: int
    patience: int | None

    def loosened(self, chosen: Chosen, *, proves: bool) -> Chosen:
        """What a fit of the choice uses; ``proves`` if its solver is one that can do without a proof."""
        return chosen._replace(tol=self.tol, certify=chosen.certify and not proves)


# -- the fits of one split ---------------------------------------------------------------------------------------------


class Watch:
    """The callback of a fit of the choice: it tells the user's own what is tried, and ends with it."""

    def __init__(self, own: Callback | None) -> None:
        self.own, self.ended = own, False
        self.options: Options = {}

    def __call__(self, record: Record) -> bool:
        """Take in the record of a pass; what is tried is in it, too."""
        if self.own is not None and self.own(record | {"trying": self.options}):
            self.ended = True
        return self.ended


class Split:
    """The fits of one split, each of which starts from the one before; and the best of them."""

    model: Model
    dual: WarmStart | None = None

    def __init__(self, plain: HierarchicalSVM, problem: LearningProblem, fold: Fold, how: Choices) -> None:
        self.how, self.fold, self.proves = how, fold, solver_of(plain).proves
        self.X_out, self.y_out = problem.solved.X[fold.held_out], problem.labels.given(fold.held_out)
        self.svm, self.watch = loose(plain, how)

    def fit(self, problem: LearningProblem) -> Solution:
        """Learn from the part to learn from; ``problem`` has all samples."""
        n, svm = problem.solved.n_samples, self.svm
        part = problem.without(np.setdiff1d(np.arange(n), self.fold.train))
        part = replace(part, chosen=self.how.loosened(part.chosen, proves=self.proves))
        if svm._dual is not None and not svm._dual.fits(part.solved):
            svm._dual = None
        return svm._learn(part)

    def score(self, score: Score) -> float:
        """Of the last fit, on the samples held out."""
        judge = self.svm._with_model(self.svm.model_)
        judge._proves = False
        judge.__dict__.pop("feature_names_in_", None)  # samples have been checked, and have lost theirs
        return score(judge, self.X_out, self.y_out)

    def keep(self) -> None:
        """The last fit is the best so far."""
        dual = self.svm._dual
        self.model, self.dual = self.svm.model_, None if dual is None else dual.copied()

    def go_back(self) -> None:
        """Let the next fit start from the best one."""
        if self.dual is not None:
            self.svm._dual, self.svm.model_ = self.dual.copied(), self.model


def loose(plain: HierarchicalSVM, how: Choices) -> tuple[HierarchicalSVM, Watch]:
    """The estimator for fits of the choice: nothing is proved, and nothing learned from folds of its own."""
    from nhsvm.engine import Dual

    svm, solver, proves = copy(plain), plain.solver, solver_of(plain).proves
    if isinstance(solver, Dual):  # with options of its own
        watch = Watch(solver.callback)
        loosened = replace(solver, callback=watch, tol=how.tol, max_iter=how.max_iter, certify=False)
        svm.set_params(solver=loosened)
    else:
        watch = Watch(plain.callback)
        svm.set_params(callback=watch, **({"max_iter": how.max_iter} if proves else {}))
    svm.set_params(warm_start=proves, probability=False, offsets=None, early_stopping=False)
    svm.set_params(verbose=max(0, int(plain.verbose) - 1))
    return svm, watch


# -- the choice --------------------------------------------------------------------------------------------------------


@dataclass
class Choice:
    """The search for the best options.

    Attributes
    ----------
    plain : estimator
        With the first of all options; it has seen the features.
    problem : LearningProblem
        What it learns from, with all samples.
    splits : list of Split
    score : function of (model, X, y)
    how : Choices
    tell : function of Tried, optional
        Called after every setting.
    """

    plain: HierarchicalSVM
    problem: LearningProblem
    splits: list[Split]
    score: Score
    how: Choices
    tell: Callable[[Tried], object] | None = None
    tried: list[Tried] = field(default_factory=list)
    best: Tried | None = None
    problems: dict[tuple[int, ...], LearningProblem] = field(default_factory=dict)
    interrupted: bool = False

    def run(self) -> Tried:
        """Try everything, or as much as the user lets it; the best, and of equals the first."""
        for name, values in self.how.others.items():  # an error in one comes before any fit
            for value in values[1:]:
                self.under(self.first | {name: value, "C": self.problem.C})
        self._path()
        for name, values in self.how.others.items():
            self._others(name, values[1:])
        if self.best is None:
            raise NHSVMError(f"the score is not a number (NaN) for any of the {len(self.tried)} values of C")
        return self.best

    @property
    def ended(self) -> bool:
        """Whether the user has ended it."""
        return self.interrupted or any(split.watch.ended for split in self.splits)

    @property
    def n_held_out(self) -> int:
        return sum(len(split.fold.held_out) for split in self.splits)

    def _path(self) -> None:
        scores: list[float] = []
        for C in self.how.Cs:
            scores.append(self._try(self.first | {"C": C}))
            if self.ended or is_enough(scores, self.how.patience, self.n_held_out):
                return

    def _others(self, name: str, values: Sequence[object]) -> None:
        """Other values of one option, where the best of all others are."""
        for value in values:
            if self.ended or self.best is None:
                return
            options = self.best.options | {name: value}
            for split in self.splits:
                split.go_back()
            self._try(options)

    @property
    def first(self) -> Options:
        """The first of all values."""
        return {name: values[0] for name, values in self.how.others.items()}

    def under(self, options: Options) -> LearningProblem:
        """The problem under some options, of all samples."""
        key = tuple(
            next(k for k, value in enumerate(values) if value is options[name])
            for name, values in self.how.others.items()
        )
        if key not in self.problems:
            svm = copy(self.plain)
            svm.set_params(**options)
            self.problems[key] = self.problem.under(svm) if any(key) else self.problem
        return self.problems[key].at(options["C"])

    def _try(self, options: Options) -> float:
        """Fit and score in all splits."""
        problem, began, solutions = self.under(options), perf_counter(), []
        for split in self.splits:
            split.watch.options = options
            split.svm.set_params(**options)
            solutions.append(split.fit(problem))
            if solutions[-1].interrupted:
                self.interrupted = True
                break
        seconds = perf_counter() - began
        if len(solutions) < len(self.splits):  # not comparable with the others
            if self.best is None:
                raise KeyboardInterrupt
            return float("nan")
        passes = sum(len(solution.history) for solution in solutions)
        gap = max(float(solution.history[-1]["gap"]) for solution in solutions)
        found = Tried(options, tuple(split.score(self.score) for split in self.splits), passes, gap, seconds)
        self.tried.append(found)
        if self.tell is not None:
            self.tell(found)
        if not isnan(found.score) and (self.best is None or found.score > self.best.score):
            self.best = found
            for split in self.splits:
                split.keep()
        return found.score

    # -- what is made of it --------------------------------------------------------------------------------------------

    def refit(self, best: Tried) -> Refitted:
        """The plain estimator, fitted on all samples with the best options, from what a split has found."""
        problem, split = self.under(best.options), self.splits[0]
        svm = copy(self.plain)
        svm.set_params(**best.options)
        own = {name: getattr(svm, name) for name in ("probability", "offsets", "warm_start")}
        svm.set_params(probability=False, offsets=None, warm_start=split.dual is not None)
        svm.model_, svm._dual = split.model, split.dual
        solution = svm._learn(problem)
        svm._dual = None
        svm.set_params(**own)
        if not solution.interrupted and (svm.probability or svm.offsets is not None):
            svm.model_ = problem.calibrated(svm, svm.model_, self.held_out(problem, svm.model_))
        return Refitted(svm, solution, problem)

    def interrupted_model(self, best: Tried) -> HierarchicalSVM:
        """The plain estimator with the best model that there is, which has learned from a part of the samples."""
        svm = copy(self.plain)
        svm.set_params(**best.options)
        svm.model_ = self.splits[0].model
        return svm

    def held_out(self, problem: LearningProblem, model: Model) -> FoldModels:
        """The best models of all splits, as :meth:`LearningProblem.calibrated` takes them."""
        folds = [split.fold for split in self.splits]
        if not problem.labels.multilabel:  # scores of a class that was not learned say nothing
            codes = problem.strata()
            known = [fold.held_out[np.isin(codes[fold.held_out], codes[fold.train])] for fold in folds]
            folds = [fold._replace(held_out=rows) for fold, rows in zip(folds, known, strict=True)]
        return FoldModels(folds, [replace(model, weights=split.model.weights) for split in self.splits])
