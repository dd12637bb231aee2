"""Smaller models: small weights are dropped, and what that does to answers is said."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from nhsvm.errors import OptionError
from nhsvm.estimators.base import HierarchicalSVM
from nhsvm.pipelines import pipeline_parts
from nhsvm.sizes import is_number
from nhsvm.typing import Estimator, LabelsLike, MatrixLike


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

    model: Estimator
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
            f"{text}; {n:,} held-out samples: accuracy {before:.4f} before, {after:.4f} after; "
            f"same predictions for {same:.2%}"
        )


def prune(
    model: Estimator,
    *,
    share: float | None = None,
    threshold: float | None = None,
    X: MatrixLike = None,
    y: LabelsLike = None,
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
    parts = pipeline_parts(model)
    svm = parts.last
    if not isinstance(svm, HierarchicalSVM):
        raise OptionError(
            f"prune takes a model of nhsvm, or a pipeline that ends in one, not a {type(svm).__name__}; of a search "
            "or one that chooses C, give the best_estimator_"
        )
    check_is_fitted(svm)
    before, after = svm.model_.weights, svm.model_.pruned(share, threshold).weights
    smaller = svm._with_model(replace(svm.model_, weights=after))
    made = parts.ending_in(smaller)
    n_weights, n_kept = (kept.count_nonzero() - int(np.count_nonzero(kept.constant)) for kept in (before, after))
    effect = None if X is None else effect_of(model, made, X, y)
    return Pruned(made, n_weights, n_kept, before.nbytes, after.nbytes, effect)


def _check(share: object, threshold: object, X: MatrixLike, y: LabelsLike) -> None:
    if (share is None) == (threshold is None):
        raise OptionError("prune needs either share or threshold")
    if share is not None and not (is_number(share) and 0 <= share < 1):
        raise OptionError(f"share must be from 0 to below 1, not {share!r}")
    if threshold is not None and not (is_number(threshold) and 0 <= threshold < np.inf):
        raise OptionError(f"threshold must be a number of at least 0, not {threshold!r}")
    if (X is None) != (y is None):
        raise OptionError("held-out data are samples and labels: give both X and y")


def effect_of(model: Estimator, smaller: Estimator, X: MatrixLike, y: LabelsLike) -> Effect:
    """How the answers of two models differ."""
    one, two = model.predict(X), smaller.predict(X)
    if sp.issparse(one):  # label sets as a sparse indicator
        same = np.diff((one != two).tocsr().indptr) == 0
    elif one.ndim == 2:
        same = (one == two).all(axis=1)
    else:
        same = np.fromiter((a == b for a, b in zip(one, two, strict=True)), dtype=bool, count=len(one))
    return Effect(len(same), model.score(X, y), smaller.score(X, y), float(same.mean()))
