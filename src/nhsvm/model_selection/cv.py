"""Estimators that choose C, and other options, in one fit: in the manner of scikit-learn's ``LogisticRegressionCV``.

Each is made of the estimator whose options it chooses, as that is a preset of one for all: it takes the same options,
but several values of some, and gives the same answers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypedDict, get_type_hints

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from nhsvm.checks import flag
from nhsvm.errors import DataError, OptionError
from nhsvm.estimators import HRSVM, HSVM, NHSVM, SSVM, FlatSVM
from nhsvm.estimators.answers import Answering
from nhsvm.estimators.base import HierarchicalSVM, unchanged_on_error
from nhsvm.estimators.calibration import Fold, splits
from nhsvm.estimators.options import check_options, check_single, seed_of, why_no_sets
from nhsvm.estimators.problem import LearningProblem
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics.measures import MEASURES
from nhsvm.model_selection.choice import TUNING, Choice, Choices, Refitted, Score, Split, Tried, path_of
from nhsvm.model_selection.grid import costs, show
from nhsvm.model_selection.held_out import make_scores
from nhsvm.model_selection.search import check_patience, check_positive
from nhsvm.model_selection.split import hold_out_split
from nhsvm.options import AUTO, Preset, check_splits, or_auto
from nhsvm.registry import Option
from nhsvm.typing import LabelsLike, MatrixLike, Record, SampleWeights, Seed

if TYPE_CHECKING:
    from sklearn.utils import Tags

SEVERAL = ("weights", "leaf_offset")
"""Options of which a list may be given, in the order in which they are chosen, after C."""
_SEEN = {"n_features_in_", "feature_names_in_"}
_OWN = ("C", "cv", "warm_start")
"""Options of the plain estimator that one which chooses has not, or understands in its own way."""


# -- options -----------------------------------------------------------------------------------------------------------


def _path(name: str, value: object) -> None:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if value < 1:
            raise OptionError(f"{name} must be a number of values to try, or a list of values, not {value!r}")
    elif isinstance(value, (bool, float, str)) or costs(value, None) is None:
        raise OptionError(f"{name} must be a number of values to try, or a list of values, not {value!r}")


def _parts(name: str, value: object) -> None:
    if isinstance(value, float):
        if not 0 < value < 1:
            raise OptionError(f"{name} must be a share of samples between 0 and 1, or folds, not {value!r}")
    else:
        check_splits(name, value)


def _at_least_one(name: str, value: object) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise OptionError(f"{name} must be a whole number of at least 1, not {value!r}")


class ChoiceOptions(TypedDict, total=False):
    """What estimators that choose take beside the options of the plain ones; each option is declared here, once."""

    Cs: Annotated[
        object,
        Option(
            7,
            "int or list of float",
            "Values of C to try, from the smallest to the largest. A number is that of values on a logarithmic scale "
            'from 1/32 to 32 times what C="auto" is, so that the scale of the features makes no difference.',
            _path,
        ),
    ]
    cv: Annotated[
        object,
        Option(
            0.2,
            "float, int, splitter or iterable of (train, test)",
            "What to score: a share of the samples that is held out once, by :func:`hold_out_split`; or a number of "
            "folds, which takes as many times as long; or splits. Samples of weight zero are not held out.",
            _parts,
        ),
    ]
    scoring: Annotated[
        Any,
        Option(
            None,
            "str or callable, optional",
            "A score of :func:`nhsvm.metrics.scorers` or of scikit-learn by name, or a function of (model, X, y). By "
            'default accuracy; for label sets "example_jaccard". Scores do not use sample weights.',
        ),
    ]
    refit: Annotated[
        bool,
        Option(
            True,
            "bool",
            "Learn from all samples with what was chosen. Without it there is no model, only what was chosen.",
            flag,
        ),
    ]
    search_tol: Annotated[
        float | str,
        Option(
            AUTO,
            'float or "auto"',
            'Fits of the choice end at this gap, as their passes estimate it. "auto" is 0.1, or the tolerance of the '
            "last fit if that is larger.",
            or_auto(check_positive, "a positive number"),
        ),
    ]
    search_iter: Annotated[int, Option(10, "int", "Passes of each fit of the choice, at most.", _at_least_one)]
    patience: Annotated[
        int | None,
        Option(
            1,
            "int or None",
            "End the path over C after so many scores in a row that are not clearly better than the best before; None "
            "goes to its end, as do paths with fewer than 100 samples to score.",
            check_patience,
        ),
    ]


def _several(option: Option) -> Option:
    """An option of which several values may be given."""

    def check(name: str, value: object) -> None:
        for one in values_of(value):
            option.check(name, one)
        if not values_of(value):
            raise OptionError(f"{name} has no value to try")

    text = f"{option.doc} Of a list, every value is tried: the first along the path over C, the others at the best C."
    return replace(option, kind=f"{option.kind}, or list of these", doc=text, check=check)


def values_of(value: object) -> Sequence[object]:
    """Values to try: the items of a list or tuple, or the value itself."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


CHOICE: dict[str, Option] = {
    name: kind.__metadata__[0] for name, kind in get_type_hints(ChoiceOptions, include_extras=True).items()
}
"""Every option of the choice by its name."""


def _offsets(option: Option) -> Option:
    """The option of the plain estimator, and "auto"."""

    def check(name: str, value: object) -> None:
        if not (isinstance(value, str) and value == "auto"):
            option.check(name, value)

    text = (
        "For label sets: what to tune ``offsets_`` for, on the held-out samples of the best fit, which takes no "
        'further fit. "auto" is the score that chooses C, if offsets can be tuned for it, and else none; None is none.'
    )
    return replace(option, default="auto", kind=f'"auto", {option.kind}', doc=text, check=check)


@dataclass(frozen=True, kw_only=True)
class ChoicePreset(Preset):
    """The options of an estimator that chooses those of a plain one, ``kind``."""

    kind: type[HierarchicalSVM]

    @classmethod
    def of(cls, kind: type[HierarchicalSVM]) -> ChoicePreset:
        return cls(**{one.name: getattr(kind._preset, one.name) for one in fields(Preset)}, kind=kind)

    def declared(self) -> dict[str, Option]:
        plain = {name: option for name, option in super().declared().items() if name not in _OWN}
        plain |= {name: _several(plain[name]) for name in SEVERAL if name in plain}
        plain |= {"offsets": _offsets(plain["offsets"]), "probability": replace(plain["probability"], doc=_PROBABILITY)}
        rest = dict(CHOICE)
        return {"Cs": rest.pop("Cs")} | plain | rest

    def attributes(self) -> str:
        return _ATTRIBUTES


_PROBABILITY = (
    "Learn probabilities for ``predict_proba``, ``node_proba`` and ``predict_partial`` from the held-out samples of "
    "the best fit, which takes no further fit. Without it, these methods do not exist."
)
_ATTRIBUTES = """
Attributes
----------
C_ : float
    The C that was chosen.
Cs_ : array of n_Cs
    The values that might have been tried, ascending.
scores_ : array of (n_splits, n_Cs)
    Scores along the path over C; NaN where it had ended.
best_params_ : dict
    What was chosen, with C: options of the plain estimator.
best_score_ : float
    Its score, the mean over all splits.
scoring_ : str
    Name of the score.
best_estimator_ : fitted estimator
    The plain estimator with these options. It is what a file holds.
cv_results_ : dict of lists
    Everything that was tried: ``params``, ``mean_test_score``, ``std_test_score``, ``rank_test_score``,
    ``split0_test_score``, ..., ``n_passes``, ``gap`` and ``seconds``, for pandas.
n_splits_ : int
n_held_out_ : int
    Samples that were scored, in all splits.
n_passes_ : int
    Over samples learned from, in all fits of the choice. Those of the last fit are ``n_iter_``.
classes_, hierarchy_, node_weights_, coef_, intercept_, objective_, gap_, n_iter_, history_, ...
    Of the last fit, as the plain estimator has them.
interrupted_ : bool
    Whether the user ended the fit early, with Ctrl-C. In the choice that leaves the best model so far, which has
    learned from a part of the samples.

Examples
--------
>>> from nhsvm import $name
>>> from nhsvm.datasets import make_balanced
>>> data = make_balanced(n_samples=300, random_state=0)
>>> model = $name(data.hierarchy).fit(data.X, data.y)
>>> model.C_ in model.Cs_
True
>>> model.predict(data.X[:2]).shape
(2,)
"""


# -- the estimators ----------------------------------------------------------------------------------------------------


class ChoosingSVM(Answering, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators that choose options; :class:`ChoicePreset` says which each has."""

    _preset: ClassVar[ChoicePreset]
    hierarchy: Hierarchy | None
    Cs: Any
    cv: object
    scoring: Any
    refit: bool
    search_tol: float | str
    search_iter: int
    patience: int | None
    offsets: object
    verbose: int
    random_state: Seed
    best_estimator_: HierarchicalSVM
    interrupted_: bool

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        preset = vars(cls).get("_preset")
        if preset is None:
            return
        for name, value in preset.settled.items():
            setattr(cls, name, value)
        signature = preset.signature()

        def __init__(self: ChoosingSVM, *args: object, **options: object) -> None:  # noqa: N807
            taken = signature.bind(self, *args, **options)
            taken.apply_defaults()
            for name in list(signature.parameters)[1:]:
                setattr(self, name, taken.arguments[name])

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__  # type: ignore[assignment, method-assign]
        cls.__doc__ = preset.documented(cls.__name__, cls.__doc__ or "")

    # -- learning ------------------------------------------------------------------------------------------------------

    def fit(
        self, X: MatrixLike, y: LabelsLike, sample_weight: SampleWeights = None, groups: npt.ArrayLike | None = None
    ) -> Self:
        """Choose options on held-out samples, and learn from all with these.

        Parameters
        ----------
        X, y, sample_weight
            As for the plain estimator.
        groups : array-like of n_samples, optional
            For a splitter given as ``cv``, such as scikit-learn's ``GroupKFold``.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            problem = self.make_problem(X, y, sample_weight)
            refitted = self._fit(problem, groups)
        if refitted is not None:
            refitted.svm._warn_unless_converged(refitted.solution, refitted.problem)
        return self

    def make_problem(self, X: MatrixLike, y: LabelsLike, sample_weight: SampleWeights = None) -> LearningProblem:
        """What :meth:`fit` learns from, checked and encoded, for :meth:`fit_problem`, or an estimate.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        """
        plain = self.plain()
        with unchanged_on_error(self):
            problem = plain.make_problem(X, y, sample_weight)
            for name in _SEEN:
                self.__dict__.pop(name, None)
                if name in vars(plain):
                    setattr(self, name, getattr(plain, name))
        return problem

    def fit_problem(self, problem: LearningProblem, groups: npt.ArrayLike | None = None) -> Self:
        """:meth:`fit` with what :meth:`make_problem` of this estimator has made.

        Parameters
        ----------
        problem : LearningProblem
        groups
            As for :meth:`fit`.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            refitted = self._fit(problem, groups)
        if refitted is not None:
            refitted.svm._warn_unless_converged(refitted.solution, refitted.problem)
        return self

    def _fit(self, problem: LearningProblem, groups: npt.ArrayLike | None) -> Refitted | None:
        """Choose, and learn from all samples; None if that was not to be, or the user has interrupted the choice."""
        choice = self._choice(problem, groups)
        best = choice.run()
        self._note(choice, best)
        if choice.interrupted:
            self._adopt(choice.interrupted_model(best), interrupted=True)
            return None
        if not self.refit:
            for name in ("model_", "best_estimator_"):  # of an earlier fit
                self.__dict__.pop(name, None)
            self.interrupted_ = False
            return None
        refitted = choice.refit(best)
        self._adopt(refitted.svm, interrupted=refitted.solution.interrupted)
        return refitted

    def plain(self) -> HierarchicalSVM:
        """The estimator whose options are chosen, unfitted: with the first of all values to try, and C="auto"."""
        hierarchy = self.hierarchy
        if hierarchy is not None and not isinstance(hierarchy, Hierarchy):
            raise OptionError(f"hierarchy must be a Hierarchy or None, not a {type(hierarchy).__name__}")
        for name, option in self._preset.declared().items():
            option.check(name, getattr(self, name))
        return self._unchecked()

    def _unchecked(self) -> HierarchicalSVM:
        kind = self._preset.kind
        taken = {name: getattr(self, name) for name in kind._preset.declared() if name not in _OWN}
        taken |= {name: next(iter(values_of(taken[name])), None) for name in SEVERAL if name in taken}
        if isinstance(self.offsets, str) and self.offsets == "auto":  # known once labels and score are
            taken["offsets"] = None
        return kind(self.hierarchy, **taken)

    def _choice(self, problem: LearningProblem, groups: npt.ArrayLike | None) -> Choice:
        """The search, before its first fit."""
        plain = self.plain()
        for name in _SEEN & vars(self).keys():
            setattr(plain, name, getattr(self, name))
        several = {name: values_of(getattr(self, name)) for name in SEVERAL if name in self._preset.declared()}
        for name, values in several.items():
            for value in values[1:]:
                other = clone(plain).set_params(**{name: value})
                check_options(other)
                if not problem.labels.multilabel:
                    check_single(other)
        given = self.Cs
        if isinstance(given, (int, np.integer)):
            path = path_of(int(given), problem.chosen.mean_square)
        else:
            path = costs(given, None) or ()
        tol = max(TUNING.tol, problem.chosen.tol) if isinstance(self.search_tol, str) else self.search_tol
        how = Choices(path, several, tol, self.search_iter, self.patience)
        score, self.scoring_ = self._score(problem)
        if problem.labels.multilabel and isinstance(self.offsets, str) and self.offsets == "auto":
            plain.set_params(offsets=self.scoring_ if self.scoring_ in MEASURES else None)
        folds = self._folds(problem, groups)
        parts = [Split(plain, problem, fold, how) for fold in folds]
        return Choice(plain, problem, parts, score, how, self._told if self.verbose else None)

    def _score(self, problem: LearningProblem) -> tuple[Score, str]:
        """The score, and its name."""
        scoring = self.scoring
        if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
            raise OptionError(f"scoring must be a name or a function of (model, X, y), not {scoring!r}")
        if scoring is None and problem.labels.multilabel:
            scoring = "example_jaccard"
        scores = make_scores(scoring, self.hierarchy, problem.labels, problem.labels.given(np.arange(1)))
        name = scores.first
        if scores.asks_for_probability(name):
            raise OptionError(
                f"scoring={name!r} asks for probabilities, which are learned when C is chosen: take another score, or "
                "GridSearchCV with the plain estimator and probability=True"
            )
        return (lambda model, X_out, y_out: scores.value(name, model, X_out, y_out)), name

    def _folds(self, problem: LearningProblem, groups: npt.ArrayLike | None) -> list[Fold]:
        weight, seed = problem.weight, seed_of(self.random_state)
        used = np.flatnonzero(weight > 0)
        if len(used) < 2:
            raise DataError("to choose C takes samples to learn from and others to hold out, but there is 1 sample")
        if isinstance(self.cv, float):
            y = problem.labels.given(used)
            parts = hold_out_split(y, test_size=self.cv, random_state=seed, hierarchy=self.hierarchy)
            return [Fold(*(used[part] for part in parts))]
        folds = list(splits(self.cv, problem.strata(), weight, seed, groups))
        if not folds or not all(len(part) for fold in folds for part in fold):
            raise DataError("cv must leave samples to learn from and samples to hold out in every split")
        return folds

    def _told(self, tried: Tried) -> None:
        shown = "  ".join(f"{name}={show(value)}" for name, value in tried.options.items())
        print(f"{shown}  {self.scoring_} {tried.score:.4f}  {tried.passes} passes", file=sys.stderr, flush=True)

    @property
    def C_(self) -> float:
        """The C that was chosen."""
        return float(self.best_params_["C"])

    # -- what was found ------------------------------------------------------------------------------------------------

    def _note(self, choice: Choice, best: Tried) -> None:
        """The fitted attributes that say what was tried and chosen."""
        tried, Cs = choice.tried, choice.how.Cs
        chosen = [name for name in best.options if name == "C" or len(choice.how.others[name]) > 1]
        self.best_params_ = {name: best.options[name] for name in sorted(chosen)}
        self.best_score_ = best.score
        self.Cs_ = np.array(Cs)
        self.scores_ = np.full((len(choice.splits), len(Cs)), np.nan)
        for k, one in enumerate(tried[: len(Cs)]):
            if one.options["C"] == Cs[k]:
                self.scores_[:, k] = one.scores
        self.n_splits_, self.n_held_out_ = len(choice.splits), choice.n_held_out
        self.n_passes_ = sum(one.passes for one in tried)
        self.cv_results_ = _table(tried, chosen)

    def _adopt(self, svm: HierarchicalSVM, *, interrupted: bool) -> None:
        """Be fitted with the model of a plain estimator."""
        own = self._preset.kind(**svm.get_params(deep=False))
        own._adopt(svm.model_)
        own.interrupted_ = self.interrupted_ = interrupted
        self.best_estimator_, self.model_ = own, own.model_

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_fitted

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = why_no_sets(self._unchecked()) is None
        return tags


def _table(tried: list[Tried], chosen: list[str]) -> Record:
    """Columns, as ``GridSearchCV`` has them."""
    scores = np.array([one.scores for one in tried])
    mean = scores.mean(axis=1)
    columns: Record = {"params": [{name: one.options[name] for name in chosen} for one in tried]}
    columns |= {f"param_{name}": [one.options[name] for one in tried] for name in chosen}
    columns |= {f"split{k}_test_score": column for k, column in enumerate(scores.T)}
    columns |= {"mean_test_score": mean, "std_test_score": scores.std(axis=1)}
    columns["rank_test_score"] = np.array([1 + int((mean > one).sum()) for one in mean], np.int32)
    columns |= {name: np.array([getattr(one, name) for one in tried]) for name in ("gap", "seconds")}
    return columns | {"n_passes": np.array([one.passes for one in tried])}


class FlatSVMCV(ChoosingSVM):
    """:class:`FlatSVM` that chooses C on held-out samples, within one fit."""

    _preset = ChoicePreset.of(FlatSVM)


class HSVMCV(ChoosingSVM):
    """:class:`HSVM` that chooses C on held-out samples, within one fit."""

    _preset = ChoicePreset.of(HSVM)


class NHSVMCV(ChoosingSVM):
    """:class:`NHSVM` that chooses C, and perhaps the weights α, on held-out samples, within one fit."""

    _preset = ChoicePreset.of(NHSVM)


class SSVMCV(ChoosingSVM):
    """:class:`SSVM` that chooses C on held-out samples, within one fit."""

    _preset = ChoicePreset.of(SSVM)


class HRSVMCV(ChoosingSVM):
    """:class:`HRSVM` that chooses C on held-out samples, within one fit."""

    _preset = ChoicePreset.of(HRSVM)


__all__ = ["HRSVMCV", "HSVMCV", "NHSVMCV", "SSVMCV", "FlatSVMCV"]
