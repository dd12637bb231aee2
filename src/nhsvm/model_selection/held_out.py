"""The samples of a search, those learned from and those held out, and what scores the latter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple, SupportsFloat, TypeAlias

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from nhsvm.errors import DataError, LabelError, OptionError
from nhsvm.estimators.base import HierarchicalSVM
from nhsvm.estimators.labels import EncodedLabels, LabelSets, Targets, encode, encode_sets, is_matrix, is_multilabel
from nhsvm.estimators.problem import checked_weights, same_length
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics import scorers
from nhsvm.model_selection.split import hold_out_split
from nhsvm.typing import AnySeed, Estimator, FloatArray, LabelsLike, MatrixLike, SampleWeights

Scorer = Callable[[Estimator, MatrixLike, LabelsLike], SupportsFloat]
Scoring: TypeAlias = str | Scorer | None
"""One score: its name, a function of (model, X, y), or None for accuracy."""


class Parts(NamedTuple):
    """Samples to learn from with their weights, and samples to score."""

    X: MatrixLike
    y: LabelsLike
    weight: FloatArray | None
    X_out: MatrixLike
    y_out: LabelsLike
    targets: Targets | LabelSets  # of all samples given to learn from

    @property
    def multilabel(self) -> bool:
        return isinstance(self.targets, LabelSets)

    @property
    def n_train(self) -> int:
        return int(_num_samples(self.X))

    @property
    def n_held_out(self) -> int:
        return int(_num_samples(self.X_out))


def make_parts(
    estimator: HierarchicalSVM,
    X: MatrixLike,
    y: LabelsLike,
    sample_weight: SampleWeights,
    validation: tuple[MatrixLike, LabelsLike] | None,
    test_size: float,
    random_state: AnySeed,
) -> Parts:
    """Check labels, lengths and weights, and split: into ``validation`` and all others, or as told by the rest."""
    h = estimator.hierarchy
    multilabel = is_multilabel(y, h)
    targets = encode_sets(y, h, allow_empty=estimator.allow_empty) if multilabel else encode(y, h)
    same_length(_count(X, "X"), targets.n_samples)
    weight = None if sample_weight is None else checked_weights(sample_weight, targets.n_samples)
    if validation is not None:
        if not isinstance(validation, (tuple, list)) or len(validation) != 2:
            raise OptionError("validation must be a pair (X, y)")
        X_out, y_out = validation
        same_length(_count(X_out, "X of validation"), _count(y_out, "y of validation"))
        return Parts(X, y, weight, X_out, y_out, targets)
    used = np.arange(targets.n_samples) if weight is None else np.flatnonzero(weight > 0)
    some = _safe_indexing(y, used)
    held_out = used[hold_out_split(some, test_size=test_size, random_state=random_state, hierarchy=h)[1]]
    train = np.setdiff1d(np.arange(targets.n_samples), held_out)
    X_train, y_train, X_out, y_out = (_safe_indexing(all_, part) for part in (train, held_out) for all_ in (X, y))
    return Parts(X_train, y_train, None if weight is None else weight[train], X_out, y_out, targets)


def _count(X: MatrixLike | LabelsLike, name: str) -> int:
    try:
        found = int(_num_samples(X))
    except TypeError as error:
        raise DataError(f"{name} must be samples: {error}") from error
    if not found:
        raise LabelError(f"{name} has no samples")
    return found


# -- scores ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """Scorers by name; the first decides."""

    scorers: dict[str, Scorer]
    whole: frozenset[str]  # functions of the user's own, which are given the whole pipeline and raw samples

    @property
    def first(self) -> str:
        return next(iter(self.scorers))

    @property
    def needs_probability(self) -> bool:
        """Whether one may ask for probabilities: all that do not say that labels are enough."""
        return any(_response_of(scorer) != "predict" for scorer in self.scorers.values())

    def of(self, model: Estimator, X: MatrixLike, parts: Parts, pipeline: Callable[[], Estimator]) -> dict[str, float]:
        """Scores of the last step on transformed samples; ``pipeline`` gives the whole, for raw samples."""
        found = {}
        for name in self.scorers:
            judged, samples = (pipeline(), parts.X_out) if name in self.whole else (model, X)
            found[name] = self.value(name, judged, samples, parts.y_out)
        return found

    def asks_for_probability(self, name: str) -> bool:
        """Whether a score of scikit-learn takes nothing but probabilities."""
        return _response_of(self.scorers[name]) in ("predict_proba", ("predict_proba",))

    def value(self, name: str, model: Estimator, X: MatrixLike, y: LabelsLike) -> float:
        """One of them."""
        value = self.scorers[name](model, X, y)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise OptionError(f"scoring {name!r} must give a number, not {value!r}") from None


def make_scores(
    scoring: Scoring | Mapping[str, Scoring] | Iterable[Scoring],
    hierarchy: Hierarchy | None,
    targets: EncodedLabels,
    y: LabelsLike,
) -> Scores:
    """Scorers of what is given as ``scoring``: None, a name, a function, a list of these, or a dict."""
    asked: dict[str, Scoring]
    if isinstance(scoring, Mapping):
        asked = dict(scoring)
    elif scoring is None or isinstance(scoring, str) or callable(scoring):
        asked = {_name(scoring): scoring}
    elif isinstance(scoring, (list, tuple, set)):
        asked = {_name(one): one for one in scoring}
        if len(asked) < len(scoring):
            raise OptionError(f"scoring names one score twice: {scoring!r}; give a dict of names and scores")
    else:
        raise _no_score(scoring)
    if not asked:
        raise OptionError("scoring is empty: leave it out for accuracy")
    multilabel = targets.multilabel
    labels = targets.classes.tolist() if multilabel and is_matrix(y) else None
    if hierarchy is None:  # measures in the flat hierarchy over the labels
        hierarchy = Hierarchy.from_edges([], nodes=targets.classes.tolist())
    ours = scorers(hierarchy, multilabel=multilabel, labels=labels)
    whole = frozenset(name for name, one in asked.items() if callable(one) and _response_of(one) is None)
    return Scores({name: _scorer(one, ours) for name, one in asked.items()}, whole)


def _response_of(scorer: Scorer) -> object:
    """The method that a scorer of scikit-learn asks for answers; None for other functions."""
    return getattr(scorer, "_response_method", None)


def _name(scoring: Scoring) -> str:
    if scoring is None or isinstance(scoring, str):
        return scoring or "accuracy"
    function = getattr(scoring, "_score_func", scoring)
    return str(getattr(function, "__name__", "score"))


def _scorer(scoring: Scoring, ours: Mapping[str, Scorer]) -> Scorer:
    if scoring is None or scoring == "accuracy":
        return _Own()
    if callable(scoring):
        return scoring
    if not isinstance(scoring, str):
        raise _no_score(scoring)
    if scoring in ours:
        return ours[scoring]
    known = {"accuracy", *ours, *get_scorer_names()}
    if scoring in known:
        found: Scorer = get_scorer(scoring)
        return found
    near = get_close_matches(scoring, sorted(known), n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are 'accuracy', {sorted(ours)}"
    raise OptionError(f"unknown score {scoring!r}; {hint}, and those of scikit-learn")


def _no_score(given: object) -> OptionError:
    return OptionError(f"scoring must be a name, a function of (model, X, y), or several of them, not {given!r}")


class _Own:
    """The model's own ``score``: share of samples with the right label, or exactly the right set of labels."""

    _response_method = "predict"

    def __call__(self, model: Estimator, X: MatrixLike, y: LabelsLike) -> float:
        return float(model.score(X, y))
