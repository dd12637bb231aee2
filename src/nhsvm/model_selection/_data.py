"""The samples of a search: those learned from, and those held out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from nhsvm.errors import DataError, LabelError, OptionError
from nhsvm.estimators.labels import LabelSets, Targets, encode, encode_sets, is_multilabel
from nhsvm.estimators.problem import checked_weights, same_length
from nhsvm.model_selection.split import hold_out_split
from nhsvm.typing import FloatArray


class Parts(NamedTuple):
    """Samples to learn from with their weights, and samples to score."""

    X: Any
    y: Any
    weight: FloatArray | None
    X_out: Any
    y_out: Any
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
    estimator: Any, X: Any, y: Any, sample_weight: Any, validation: Any, test_size: float, random_state: Any
) -> Parts:
    """Check labels, lengths and weights, and split.

    Parameters
    ----------
    estimator : HierarchicalSVM
        For its hierarchy.
    X, y, sample_weight
        As for ``fit``.
    validation : pair (X, y), optional
        To score; else a part is held out.
    test_size, random_state
        Of that part.
    """
    h = estimator.hierarchy
    multilabel = is_multilabel(y, h)
    targets = encode_sets(y, h, allow_empty=estimator.allow_empty) if multilabel else encode(y, h)
    same_length(_count(X, "X"), targets.n_samples)
    weight = None if sample_weight is None else checked_weights(sample_weight, targets.n_samples)
    if validation is not None:
        X_out, y_out = _pair(validation)
        same_length(_count(X_out, "X of validation"), _count(y_out, "y of validation"))
        return Parts(X, y, weight, X_out, y_out, targets)
    used = np.arange(targets.n_samples) if weight is None else np.flatnonzero(weight > 0)
    train, out = hold_out_split(_rows(y, used), test_size=test_size, random_state=random_state, hierarchy=h)
    held_out = used[out]
    train = np.setdiff1d(np.arange(targets.n_samples), held_out)
    kept = None if weight is None else weight[train]
    return Parts(_rows(X, train), _rows(y, train), kept, _rows(X, held_out), _rows(y, held_out), targets)


def _pair(validation: Any) -> tuple[Any, Any]:
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        raise OptionError("validation must be a pair (X, y)")
    return validation[0], validation[1]


def _count(X: Any, name: str) -> int:
    try:
        found = int(_num_samples(X))
    except TypeError as error:
        raise DataError(f"{name} must be samples: {error}") from error
    if not found:
        raise LabelError(f"{name} has no samples")
    return found


def _rows(X: Any, samples: Any) -> Any:
    return _safe_indexing(X, samples)
