"""What is evaluated: the last step of a pipeline, with features as that step takes them, and facts about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from nhsvm.errors import OptionError
from nhsvm.hierarchy.drawing import summary
from nhsvm.model import Model

_OPTIONS = ("C", "weights", "loss", "margin", "solver", "tol", "class_weight", "leaf_offset", "offsets", "probability")
_LEARNED = {
    "gap": "gap_",
    "objective": "objective_",
    "dual_objective": "dual_objective_",
    "passes": "n_iter_",
    "temperature": "temperature_",
}


class Parts(NamedTuple):
    """A model taken apart."""

    before: Any
    """What makes features, or None."""
    last: Any
    """The classifier."""
    names: tuple[str, ...]
    """Of all steps."""

    @property
    def learned(self) -> Model | None:
        """What a model of ours has learned; None for one of another library."""
        found = getattr(self.last, "model_", None)
        return found if isinstance(found, Model) else None

    @property
    def history(self) -> list[dict[str, Any]]:
        """Records of the passes of training; of other libraries' models, whose records are others, none."""
        return [] if self.learned is None else list(self.learned.training.history)

    @property
    def has_sets(self) -> bool:
        """Whether it predicts label sets; a classifier that is not ours is taken to predict one label."""
        return self.learned is not None and self.learned.sets is not None

    @property
    def has_probabilities(self) -> bool:
        if not hasattr(self.last, "predict_proba"):
            return False
        # a fit that was interrupted has none, though it was asked for them
        return self.learned is None or self.learned.has_probabilities


def take_apart(model: Any) -> Parts:
    """The last step of a fitted model and what comes before it; a search stands for the best model it has found."""
    model = getattr(model, "best_estimator_", model)
    if not hasattr(model, "predict"):
        raise OptionError(f"model must be a fitted classifier or a pipeline that ends in one, not {model!r}")
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    last = getattr(steps[-1], "best_estimator_", steps[-1])
    if not hasattr(last, "classes_"):
        if hasattr(last, "fit"):
            check_is_fitted(last)
        raise OptionError(f"{type(last).__name__} has no classes_: evaluate takes classifiers")
    names = tuple(type(step).__name__ for step in [*steps[:-1], last])
    return Parts(model[:-1] if len(steps) > 1 else None, last, names)


def features(parts: Parts, X: Any) -> Any:
    """X as the last step takes it, so that text is turned into numbers once."""
    found = X if parts.before is None else parts.before.transform(X)
    return found.tocsr() if sp.issparse(found) else found


def chunks(X: Any, n_samples: int, size: int) -> Iterator[tuple[slice, Any]]:
    """Some rows at a time."""
    for lo in range(0, n_samples, size):
        part = slice(lo, min(n_samples, lo + size))
        yield part, _safe_indexing(X, part)


def rows(X: Any, which: Any) -> Any:
    """The rows with the given numbers."""
    return _safe_indexing(X, which)


def facts(parts: Parts) -> dict[str, Any]:
    """About the model, in the order to be read."""
    last = parts.last
    found: dict[str, Any] = {"model": " → ".join(parts.names), "classes": len(last.classes_)}
    hierarchy = getattr(last, "hierarchy_", None)
    if hierarchy is not None:
        found |= {"hierarchy": summary(hierarchy.graph), "nodes": hierarchy.n_nodes}
    if hasattr(last, "n_features_in_"):
        found["features"] = int(last.n_features_in_)
    if hasattr(last, "node_weights_") and hasattr(last, "n_features_in_"):
        found["weights_stored"] = int(np.count_nonzero(last.node_weights_)) * (int(last.n_features_in_) + 1)
    params = last.get_params(deep=False) if hasattr(last, "get_params") else {}
    found |= {name: _option(params[name]) for name in _OPTIONS if params.get(name) is not None}
    found |= {name: getattr(last, learned) for name, learned in _LEARNED.items() if hasattr(last, learned)}
    if parts.history:
        found["training_seconds"] = float(parts.history[-1]["seconds"])
    return found


def _option(value: Any) -> Any:
    """Numbers and names as they are; an instance as it would be written."""
    return value if isinstance(value, (str, bool, int, float)) else repr(value)
