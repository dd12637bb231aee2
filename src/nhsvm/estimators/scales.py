"""What the scales of features say about a fit that takes many passes: a few columns much wider than all others.

Text is left in peace: its columns differ by nature, and each is in few samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from nhsvm.typing import Array, FloatArray, Matrix

if TYPE_CHECKING:
    from nhsvm.engine import Problem


@dataclass(frozen=True)
class Scales:
    """What counts as uneven, and as large."""

    share: float = 0.9  # of all squares: what the wide columns have together
    few: float = 0.1  # of the columns that are not zero, or one: no more may be wide
    held: float = 0.5  # of the samples have a number other than zero in a wide column
    ratio: float = 10.0  # of the widest column to the median one
    large: float = 1e4  # mean of C_i‖x_i‖²
    named: int = 3  # columns that are named, at most
    chunk: int = 2**18  # numbers that are squared at a time


SCALES = Scales()


def column_sums(X: Matrix) -> tuple[FloatArray, FloatArray]:
    """Of every column: the sum of squares, and how many numbers are not zero."""
    n, d = X.shape
    squares, counts = np.zeros(d), np.zeros(d)
    if sp.issparse(X):
        for lo in range(0, X.nnz, SCALES.chunk):
            columns, values = X.indices[lo : lo + SCALES.chunk], X.data[lo : lo + SCALES.chunk].astype(np.float64)
            squares += np.bincount(columns, values**2, d)
            counts += np.bincount(columns, values != 0, d)
        return squares, counts
    step = max(1, SCALES.chunk // max(1, d))
    for lo in range(0, n, step):
        rows = X[lo : lo + step].astype(np.float64)
        squares += np.einsum("ij,ij->j", rows, rows)
        counts += np.count_nonzero(rows, axis=0)
    return squares, counts


def about_scales(problem: Problem, names: Array | None) -> str | None:
    """A sentence about features whose scales make fits slow, and what to do; None if there is nothing to say.

    Parameters
    ----------
    problem : Problem
    names : array of n_features, optional
        Of the columns.
    """
    squares, counts = column_sums(problem.X)
    total, present = float(squares.sum()), int((squares > 0).sum())
    if total == 0.0:
        return None
    how, order = SCALES, np.argsort(-squares, kind="stable")
    n_wide = 1 + int(np.searchsorted(np.cumsum(squares[order]), how.share * total))
    wide = order[:n_wide]
    ratio = float(np.sqrt(squares[order[0]] / np.median(squares[squares > 0])))
    held = bool((counts[wide] >= how.held * problem.n_samples).all())
    if n_wide <= max(1, int(how.few * present)) and held and ratio >= how.ratio:
        named = [repr(str(names[k])) if names is not None else str(k) for k in wide[: how.named].tolist()]
        which = f"column {named[0]} is" if n_wide == 1 else f"columns {', '.join(named)} are"
        which = which if n_wide <= how.named else f"columns {', '.join(named)} and {n_wide - how.named} more are"
        share = 100.0 * float(squares[wide].sum()) / total
        return (
            f"the columns of X have very different scales: {which} up to {ratio:,.0f} times as wide as the median one, "
            f"with {share:.0f} % of all squares; scale them (StandardScaler, or MaxAbsScaler for sparse X), or lower C"
        )
    lengths = squares.sum() / problem.n_samples
    if float(problem.costs.mean()) * lengths > how.large:
        return (
            f"the samples are long, with norms of about {np.sqrt(lengths):,.0f}, so next to nothing is regularised; "
            "scale the features (StandardScaler, or MaxAbsScaler for sparse X), or lower C"
        )
    return None
