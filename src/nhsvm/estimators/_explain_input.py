"""What ``explain`` is given: labels, names of features, samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import OptionError
from nhsvm.hierarchy import Hierarchy
from nhsvm.hierarchy.graph import FloatArray, IntArray

Label = Hashable


def namer(estimator: Any, given: Any) -> Callable[[int], Any]:
    """A function from the number of a feature to its name."""
    names = getattr(estimator, "feature_names_in_", None) if given is None else given
    if names is None:
        return lambda j: f"x{j}"
    n_features = estimator.n_features_in_
    sized = hasattr(names, "__len__") and hasattr(names, "__getitem__") and not isinstance(names, (str, dict))
    if not sized or len(names) != n_features:
        what = f"{len(names)} names" if sized else repr(names)
        raise OptionError(f"feature_names must be a sequence of {n_features} names, one a feature, not {what}")
    return lambda j: names[j]


def check_top(top: Any) -> None:
    """Raise unless it is a number of features, or None for all."""
    if top is not None and (not isinstance(top, (int, np.integer)) or isinstance(top, bool) or top < 1):
        raise OptionError(f"top must be a whole number of at least 1, or None for all features, not {top!r}")


def several(labels: Any, hierarchy: Hierarchy) -> list[Label]:
    """Labels in a list, set or array, or the only one; a tuple is one label."""
    if isinstance(labels, (list, set, frozenset, np.ndarray)) and not (
        isinstance(labels, frozenset) and labels in hierarchy
    ):
        found = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        found = sorted(found, key=hierarchy.number) if isinstance(labels, (set, frozenset)) else found
        if not found:
            raise OptionError("labels is empty: name at least one, or leave it out for the predicted ones")
        return found
    return [labels]


def as_matrix(X: Any) -> Any:
    """One sample as a matrix of one row."""
    if sp.issparse(X):
        return X.reshape(1, -1) if X.ndim == 1 else X
    if hasattr(X, "to_frame") and getattr(X, "ndim", 2) == 1 and hasattr(X, "index"):  # a row of a pandas frame
        return X.to_frame().T
    return np.asarray(X)[None] if np.ndim(X) == 1 else X


def entries(X: Any, row: int) -> tuple[IntArray, FloatArray]:
    """(features, values) of a sample where it is not zero."""
    if sp.issparse(X):
        here = slice(X.indptr[row], X.indptr[row + 1])
        used, x = X.indices[here], X.data[here]
        return used[x != 0], x[x != 0].astype(np.float64)
    used = np.flatnonzero(X[row])
    return used.astype(np.int32), X[row, used].astype(np.float64)


def strongest(values: Any) -> IntArray:
    """Positions by absolute value, the largest first; values that differ by rounding only stay in their order."""
    size = np.abs(np.asarray(values, dtype=np.float64))
    order: IntArray = np.argsort(-np.round(size / (size.max(initial=0.0) or 1.0), 9), kind="stable").astype(np.int32)
    return order
