"""Scores of held-out samples: names, functions, or several of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from sklearn.metrics import get_scorer, get_scorer_names

from nhsvm.errors import OptionError
from nhsvm.estimators.labels import LabelSets, Targets, is_matrix
from nhsvm.hierarchy import Hierarchy
from nhsvm.metrics import scorers

Scorer = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Scores:
    """Scorers by name; the first decides.

    Attributes
    ----------
    scorers : dict
    whole : frozenset of names
        Functions of the user's own, which are given the whole pipeline and raw samples.
    """

    scorers: dict[str, Scorer]
    whole: frozenset[str]

    @property
    def first(self) -> str:
        return next(iter(self.scorers))

    @property
    def needs_probability(self) -> bool:
        """Whether one may ask for probabilities: all that do not say that labels are enough."""
        return any(getattr(scorer, "_response_method", "") != "predict" for scorer in self.scorers.values())

    def of(self, model: Any, X: Any, y: Any, pipeline: Callable[[], tuple[Any, Any]]) -> dict[str, float]:
        """Scores of the last step on transformed samples; ``pipeline`` gives the whole and raw samples."""
        found = {}
        for name, scorer in self.scorers.items():
            judged, samples = pipeline() if name in self.whole else (model, X)
            value = scorer(judged, samples, y)
            try:
                found[name] = float(value)
            except (TypeError, ValueError):
                raise OptionError(f"scoring {name!r} must give a number, not {value!r}") from None
        return found


def make_scores(scoring: Any, hierarchy: Hierarchy | None, targets: Targets | LabelSets, y: Any) -> Scores:
    """Scorers of what is given as ``scoring``: None, a name, a function, a list of these, or a dict."""
    if isinstance(scoring, Mapping):
        asked = dict(scoring)
    elif isinstance(scoring, (list, tuple, set)):
        asked = {_name(one): one for one in scoring}
        if len(asked) < len(scoring):
            raise OptionError(f"scoring names one score twice: {scoring!r}; give a dict of names and scores")
    else:
        asked = {_name(scoring): scoring}
    if not asked:
        raise OptionError("scoring is empty: leave it out for accuracy")
    ours = _ours(hierarchy, targets, y)
    whole = frozenset(name for name, one in asked.items() if callable(one) and not hasattr(one, "_response_method"))
    return Scores({name: _scorer(one, ours) for name, one in asked.items()}, whole)


def _name(scoring: Any) -> str:
    if scoring is None or isinstance(scoring, str):
        return scoring or "accuracy"
    function = getattr(scoring, "_score_func", scoring)
    return str(getattr(function, "__name__", "score"))


def _scorer(scoring: Any, ours: dict[str, Any]) -> Scorer:
    if scoring is None or scoring == "accuracy":
        return _Own()
    if callable(scoring):
        found: Scorer = scoring
        return found
    if isinstance(scoring, str):
        if scoring in ours:
            return ours[scoring]  # type: ignore[no-any-return]
        known = {"accuracy", *ours, *get_scorer_names()}
        if scoring in known:
            return get_scorer(scoring)  # type: ignore[no-any-return]
        near = get_close_matches(scoring, sorted(known), n=3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are 'accuracy', {sorted(ours)}"
        raise OptionError(f"unknown score {scoring!r}; {hint}, and those of scikit-learn")
    raise OptionError(f"scoring must be a name, a function of (model, X, y), or several of them, not {scoring!r}")


class _Own:
    """The model's own ``score``: share of samples with the right label, or exactly the right set of labels."""

    _response_method = "predict"

    def __call__(self, model: Any, X: Any, y: Any) -> Any:
        return model.score(X, y)


def _ours(hierarchy: Hierarchy | None, targets: Targets | LabelSets, y: Any) -> dict[str, Any]:
    """Measures in a hierarchy; without one, in the flat hierarchy over the labels."""
    multilabel = isinstance(targets, LabelSets)
    if hierarchy is None:
        hierarchy = Hierarchy.from_edges([], nodes=targets.classes.tolist())
    labels = targets.classes.tolist() if multilabel and is_matrix(y) else None
    return scorers(hierarchy, multilabel=multilabel, labels=labels)
