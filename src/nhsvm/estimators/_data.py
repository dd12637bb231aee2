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
from nhsvm.hierarchy.graph import FloatArray

LARGEST = 1e100  # of a feature: squares and their sums must be far from the limits of double precision
SINGLE_LARGEST = 1e12  # the same for single precision
X_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "accept_large_sparse": True}


def checked(estimator: Any, X: Any, *, reset: bool = False, bounded: bool = True) -> Any:
    """Samples as a CSR matrix or an array of floats.

    ``reset`` takes the number and names of features from them. Without ``bounded``, dense samples may have values of
    any size: whoever scores them will notice, and for wide samples a look at all of them takes as long as scoring.
    """
    if sp.issparse(X):
        _check_indices(X)
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


def _check_indices(X: Any) -> None:
    """Indices of sparse samples are inside; scipy takes them on trust, and so do kernels."""
    if X.format not in ("csr", "csc"):  # others are converted, and made anew
        return
    n_rows, n_columns = X.shape if X.format == "csr" else X.shape[::-1]
    ends = X.indptr
    if len(ends) != n_rows + 1 or ends[0] != 0 or (ends[1:] < ends[:-1]).any():
        raise DataError(f"X is a damaged {X.format} matrix: its indptr does not count up from 0")
    indices = X.indices[: ends[-1]]
    if len(indices) < ends[-1] or len(X.data) < ends[-1]:
        raise DataError(f"X is a damaged {X.format} matrix: its indptr goes beyond its indices")
    if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= n_columns):
        bad = int(np.flatnonzero((indices < 0) | (indices >= n_columns))[0])
        raise DataError(f"X is a damaged {X.format} matrix: index {indices[bad]} is outside of 0 .. {n_columns - 1}")


def too_large(X: Any) -> DataError:
    """Values that cannot be computed with."""
    return DataError(f"X has values up to {magnitude(X):.2g}, too large to compute with: scale the features")


def magnitude(X: Any) -> float:
    """The largest absolute value of some samples."""
    values = X.data if sp.issparse(X) else X
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def within(X: Any, limit: float) -> bool:
    """Whether no value of some samples is larger than ``limit``."""
    values = X.data if sp.issparse(X) else X
    flat = values.ravel(order="K")
    if np.may_share_memory(flat, values):  # no copy: the length of all of it bounds the largest, in one look
        with np.errstate(over="ignore"):
            if float(np.dot(flat, flat)) <= limit**2:
                return True
    return magnitude(X) <= limit


def precise_enough(X: Any, bias: float) -> bool:
    """Whether sums of squares of these samples stay far from the limits of single precision."""
    return bias <= SINGLE_LARGEST and within(X, SINGLE_LARGEST)


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
