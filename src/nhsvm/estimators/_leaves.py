"""Scores of leaves, and the leaf with the highest one of every sample, for one label a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.estimators._chunks import Floats, Learned, in_chunks
from nhsvm.hierarchy.graph import IntArray

_NOT_LARGE = 2**28  # bytes


def best_of_all(X: Any, learned: Learned, columns: Columns, n_jobs: int | None) -> IntArray:
    """The leaf with the highest score of every sample; the first of equals."""
    from nhsvm.oracles.leaves import best_leaves

    best = np.empty(X.shape[0], dtype=np.int32)

    def direct(part: slice, scores: Floats) -> None:
        best[part] = scores.argmax(axis=1)

    if _pays(X, learned, columns):
        in_chunks(X, _along_paths(learned, columns), direct, n_jobs)
    else:
        in_chunks(X, learned, lambda part, scores: best_leaves(columns, scores, best[part]), n_jobs)
    return best


def scores_of_all(X: Any, learned: Learned, columns: Columns, n_jobs: int | None) -> Floats:
    """γ(x, l) of every sample and leaf."""
    from nhsvm.oracles.leaves import leaf_scores

    out = np.empty((X.shape[0], columns.n_leaves), dtype=learned.values.dtype)

    def direct(part: slice, scores: Floats) -> None:
        out[part] = scores

    if _pays(X, learned, columns):  # as best_of_all, whose answers are then the highest scores to the last bit
        in_chunks(X, _along_paths(learned, columns), direct, n_jobs)
    else:
        in_chunks(X, learned, lambda part, scores: leaf_scores(columns, scores, out[part]), n_jobs)
    return out


def _pays(X: Any, learned: Learned, columns: Columns) -> bool:
    """Whether to add up the weights along the paths of leaves beforehand, and not the scores of every sample.

    For dense samples, whose products with the weights of inner nodes are then saved, if they are enough for that, and
    the sums, which take less memory than the weights, take no more than the samples or are not large.
    """
    if sp.issparse(X) or not isinstance(learned.values, np.ndarray):
        return False
    saved = (columns.n_columns - columns.n_leaves) * X.shape[0]
    sums = columns.n_leaves * X.shape[1] * learned.values.itemsize
    return bool(saved > 2 * len(columns.paths.indices) and sums <= max(X.nbytes, _NOT_LARGE))


def _along_paths(learned: Learned, columns: Columns) -> Learned:
    """Σ_{n∈Ā(l)} U_n of every leaf l."""
    from nhsvm.oracles.leaves import leaf_scores

    values, by_feature, bias = learned
    if by_feature:  # the weights of a feature are summed as the scores of a sample are
        sums = np.empty((len(values), columns.n_leaves), dtype=values.dtype)
        leaf_scores(columns, values, sums)
    else:
        ones = np.ones(len(columns.paths.indices), dtype=values.dtype)
        paths = sp.csr_array((ones, columns.paths.indices, columns.paths.indptr), shape=(columns.n_leaves, len(values)))
        sums = paths @ values
    return Learned(sums, by_feature, bias)
