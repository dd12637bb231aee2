"""Checks of samples and of their weights; errors name the row."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, validate_data

from nhsvm.errors import DataError, LabelError, OptionError
from nhsvm.estimators._targets import Targets
from nhsvm.hierarchy import Hierarchy
from nhsvm.storage.samples import LARGEST, check_indices, too_large, within
from nhsvm.typing import FloatArray

X_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "accept_large_sparse": True}


def checked(estimator: Any, X: Any, *, reset: bool = False, bounded: bool = True) -> Any:
    """Samples as a CSR matrix or an array of floats.

    ``reset`` takes the number and names of features from them. Without ``bounded``, dense samples may have values of
    any size: whoever scores them will notice, and for wide samples a look at all of them takes as long as scoring.
    """
    if sp.issparse(X):
        check_indices(X)
    try:
        X = validate_data(estimator, X, reset=reset, **X_CHECKS)
    except ValueError as error:
        text = str(error)
        if "contains NaN" in text or "contains infinity" in text:
            text = f"{text.splitlines()[0].rstrip('.')}: {_first_not_finite(X)}; drop or impute such samples"
        raise DataError(text) from error
    if (bounded or sp.issparse(X)) and not within(X, LARGEST):
        raise too_large(X)
    return X


def _first_not_finite(X: Any) -> str:
    """Where the first NaN or infinity is, in words."""
    found = check_array(X, ensure_all_finite=False, **X_CHECKS)
    names = getattr(X, "columns", None)
    if sp.issparse(found):
        bad = np.flatnonzero(~np.isfinite(found.data))[0]
        row, column = np.searchsorted(found.indptr, bad, side="right") - 1, found.indices[bad]
    else:
        row = np.flatnonzero(~np.isfinite(found).all(axis=1))[0]
        column = np.flatnonzero(~np.isfinite(found[row]))[0]
    return f"row {row}, column {column if names is None else repr(list(names)[column])}"


def same_length(n_samples: int, n_labels: int) -> None:
    """Raise unless X and y have the same number of samples."""
    if n_samples != n_labels:
        raise LabelError(f"inconsistent numbers of samples: X has {n_samples} rows, but y has {n_labels} labels")


def checked_weights(sample_weight: Any, n_samples: int) -> FloatArray:
    """Sample weights ≥ 0, not all zero; ones for None."""
    if sample_weight is None:
        return np.ones(n_samples)
    try:
        weight: FloatArray = _check_sample_weight(sample_weight, np.empty((n_samples, 0)), dtype=np.float64)
    except ValueError as error:
        raise DataError(str(error)) from error
    negative = np.flatnonzero(weight < 0)
    if len(negative):
        raise DataError(f"sample_weight must not be negative, but sample {negative[0]} has {weight[negative[0]]:g}")
    if not weight.any():  # scikit-learn before 1.9 lets it pass
        raise DataError("sample_weight is zero throughout: Sample weights must contain at least one non-zero number")
    return weight


def class_factors(class_weight: Any, targets: Targets, weight: FloatArray, hierarchy: Hierarchy | None) -> FloatArray:
    """Factor of C of every class, from "balanced" or a dict."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        # as compute_class_weight, which divides by zero for a class whose samples all have weight zero
        total = np.bincount(targets.codes, weights=weight, minlength=len(targets.classes))
        factors: FloatArray = np.divide(total.sum() / len(total), total, out=np.zeros_like(total), where=total > 0)
        return factors
    classes = targets.classes.tolist()
    known = set(classes)
    # a class may be missing from a fold of the data; a name that never was one is a mistake
    stray = [label for label in class_weight if label not in (known if hierarchy is None else hierarchy)]
    if stray and (hierarchy is not None or not known <= class_weight.keys()):
        raise OptionError(f"class_weight names {stray[0]!r}, which is not a class")
    given = [class_weight.get(label, 1.0) for label in classes]
    for label, factor in zip(classes, given, strict=True):
        if isinstance(factor, str) or not 0 <= factor < np.inf:
            raise OptionError(f"class_weight must be finite and ≥ 0, but {label!r} has {factor!r}")
    return np.array(given, dtype=np.float64)
