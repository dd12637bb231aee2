"""Smaller models: small weights are dropped, and what that does to answers is said."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from nhsvm.errors import OptionError
from nhsvm.estimators._stored import with_weights
from nhsvm.options import is_number
from nhsvm.packed import Packed
from nhsvm.rows import StoredRows

_BLOCK = 2**22  # weights of a table that are looked at together


class Effect(NamedTuple):
    """What pruning did to the answers for held-out samples."""

    n_samples: int
    before: float
    """``model.score`` of the model: its accuracy, of label sets that of whole sets."""
    after: float
    """The same of the pruned one."""
    same: float
    """Share of samples with the same answer."""


class Pruned(NamedTuple):
    """A smaller model, and what was done to it; ``print`` it."""

    model: Any
    n_weights: int
    """That were not zero; the constant feature's do not count, and stay."""
    n_kept: int
    bytes_before: int
    """Of the weights in memory, and in a file."""
    bytes_after: int
    effect: Effect | None

    def __str__(self) -> str:
        share = self.n_kept / max(1, self.n_weights)
        text = (
            f"{self.n_kept:,} of {self.n_weights:,} weights kept ({share:.1%}); "
            f"{self.bytes_before:,} bytes before, {self.bytes_after:,} after"
        )
        if self.effect is None:
            return text
        n, before, after, same = self.effect
        return (
            f"{text}; on {n:,} held-out samples {before:.4f} right before, {after:.4f} after, {same:.2%} answered alike"
        )


def prune(
    model: Any, *, share: float | None = None, threshold: float | None = None, X: Any = None, y: Any = None
) -> Pruned:
    """Drop the smallest weights of a fitted model.

    Parameters
    ----------
    model : estimator or Pipeline that ends in one
        Fitted; it is not changed.
    share : float, optional
        Of the weights that are not zero, what is dropped: 0.9 keeps the largest tenth.
    threshold : float, optional
        Or: drop all that are smaller.
    X, y : samples and labels, optional
        Held out: neither learned from, nor used to choose ``share`` if the effect that is said is to be honest.

    Returns
    -------
    Pruned
        With the smaller ``model``, whose ``coef_`` is sparse. Its ``objective_``, ``gap_`` and ``history_`` are those
        of training.

    Raises
    ------
    OptionError
        Unless one of ``share`` and ``threshold`` is given, in its range; or for X without y.

    Notes
    -----
    A row of weights takes 12 bytes, and a weight in it 2 (or 4) more than in a table: few nodes save little.

    Examples
    --------
    >>> import numpy as np
    >>> from nhsvm import NHSVM, prune
    >>> rng = np.random.default_rng(0)
    >>> y = rng.choice(["dog", "cat", "oak"], 400)
    >>> X = rng.normal(size=(400, 50))
    >>> X[:, 0] += 3 * (y == "dog")
    >>> X[:, 1] += 3 * (y == "cat")
    >>> found = prune(NHSVM(C=0.1).fit(X[:200], y[:200]), share=0.8, X=X[200:], y=y[200:])
    >>> found.n_kept / found.n_weights
    0.2
    >>> found.effect.after > found.effect.before - 0.05
    True
    """
    _check(share, threshold, X, y)
    svm = model[-1] if isinstance(model, Pipeline) else model
    if not is_classifier(svm) or not hasattr(svm, "_packed"):
        raise OptionError(f"prune takes a model of nhsvm, or a pipeline that ends in one, not a {type(svm).__name__}")
    check_is_fitted(svm)
    values = svm._values.widened() if isinstance(svm._values, Packed) else svm._values
    lists = _lists(values, svm._by_feature)
    n_weights = int(np.count_nonzero(lists.value))
    rows = _largest(lists, _least(lists.value, share, threshold))
    smaller = with_weights(svm, rows, True)
    made = Pipeline([*model.steps[:-1], (model.steps[-1][0], smaller)]) if isinstance(model, Pipeline) else smaller
    kept = len(rows.value) + int(np.count_nonzero(rows.full))
    effect = None if X is None else effect_of(model, made, X, y)
    return Pruned(made, n_weights, kept, svm._values.nbytes, rows.nbytes, effect)


class _Lists(NamedTuple):
    """Columns and weights of every feature, one after the other; and of the constant feature."""

    indptr: npt.NDArray[np.int64]
    column: npt.NDArray[Any]
    value: npt.NDArray[Any]
    constant: npt.NDArray[Any]


def _check(share: Any, threshold: Any, X: Any, y: Any) -> None:
    if (share is None) == (threshold is None):
        raise OptionError("prune needs either share or threshold")
    if share is not None and not (is_number(share) and 0 <= share < 1):
        raise OptionError(f"share must be from 0 to below 1, not {share!r}")
    if threshold is not None and not (is_number(threshold) and 0 <= threshold < np.inf):
        raise OptionError(f"threshold must be a number of at least 0, not {threshold!r}")
    if (X is None) != (y is None):
        raise OptionError("held-out data are samples and labels: give both X and y")


def _lists(values: Any, by_feature: bool) -> _Lists:
    if isinstance(values, StoredRows):
        found = values.to_csc()
        return _Lists(found.indptr.astype(np.int64), found.indices, found.data, values.constant)
    table = values if by_feature else values.T
    counts, index, value = [np.zeros(1, np.int64)], [], []
    step = max(1, _BLOCK // max(1, table.shape[1]))
    for lo in range(0, len(table) - 1, step):
        part = table[lo : min(lo + step, len(table) - 1)]
        row, column = np.nonzero(part)
        counts.append(np.bincount(row, minlength=len(part)))
        index.append(column.astype(np.uint32))
        value.append(part[row, column])
    return _Lists(np.cumsum(np.concatenate(counts)), np.concatenate(index), np.concatenate(value), table[-1].copy())


def _least(weights: npt.NDArray[Any], share: float | None, threshold: float | None) -> float:
    """The smallest absolute weight that is kept."""
    if share is None:
        return float(threshold or 0.0)
    drop = int(share * len(weights))
    return float(np.partition(np.abs(weights), drop)[drop]) if drop else 0.0


def _largest(lists: _Lists, least: float) -> StoredRows:
    indptr, index, value, constant = lists
    keep = np.abs(value) >= least
    return StoredRows.from_lists(np.concatenate([[0], np.cumsum(keep)])[indptr], index[keep], value[keep], constant)


def effect_of(model: Any, smaller: Any, X: Any, y: Any) -> Effect:
    """How the answers of two models differ."""
    one, two = model.predict(X), smaller.predict(X)
    if hasattr(one, "tocsr"):  # label sets as a sparse indicator
        same = np.diff((one != two).tocsr().indptr) == 0
    elif one.ndim == 2:
        same = (one == two).all(axis=1)
    else:
        same = np.fromiter((a == b for a, b in zip(one, two, strict=True)), dtype=bool, count=len(one))
    return Effect(len(same), model.score(X, y), smaller.score(X, y), float(same.mean()))
