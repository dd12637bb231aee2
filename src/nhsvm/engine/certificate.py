"""What double precision can be wrong by in a certificate: the numbers reported have primal ≥ optimum ≥ dual.

A sum of k terms, added in any order and each of them rounded r times, is wrong by γ(k + r) times the sum of their
absolute values at most, with γ(k) = k u / (1 − k u) and u = 2⁻⁵³ (Higham 2002, Sections 3.1 and 4.2). It follows:

*Dual variables.* Label sets are brought to a point that is feasible as it stands. Other variables a ≥ 0 may have a sum
above C_i by rounding: if Σ_l a_il ≤ (1 + e) C_i for all i, then a / (1 + e) is feasible, and its dual value is

    mass / (1 + e) − penalty / (1 + e)².

*Norms.* U_n = α_n Σ_i β_in x_i is computed as a sum over the m_n samples with β_in ≠ 0. Whatever the order,

    ‖Û_n − U_n‖ ≤ γ(m_n + r) Σ_i α_n |β_in| ‖x_i‖ + α_n Σ_i |β̂_in − β_in| ‖x_i‖ =: d_n,

so ‖U_n‖² ≤ (‖Û_n‖ + d_n)². This takes one number a column and one visit of every coefficient.

*Slacks.* The score U_n·x_i of a sample with k features is wrong by γ(k + 2) ‖U_n‖ ‖x_i‖ at most; adding up scores and
losses of labels is a sum like others. C_i times that goes to the primal.

*The rest* are sums of numbers ≥ 0, which are wrong by a factor.

Products that underflow are wrong by less than the smallest normal number, whatever they are multiplied by later.

References
----------
N. J. Higham (2002). Accuracy and Stability of Numerical Algorithms. 2nd edition. SIAM.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from nhsvm._jit import kernel
from nhsvm.columns import Columns
from nhsvm.engine.samples import Updates
from nhsvm.objective import dual, penalty, primal
from nhsvm.typing import FloatArray, IntArray, Matrix, PtrArray

UNIT = 2.0**-53  # u
CANCELLED = 1e-14  # of the dual variables of a sample: a smaller β_in is what is left of numbers that cancel
_TINY = 1e-290  # far above what underflows, far below what matters
_ROUNDED = 8  # times at most that a term is rounded by itself, before it is added
_T = TypeVar("_T", float, FloatArray)


def gamma(terms: _T) -> _T:
    """γ(k): what k roundings change a number by at most, relative to it."""
    return terms * UNIT / (1.0 - terms * UNIT)


def largest_norms(
    computed: FloatArray, updates: Updates, lengths: FloatArray, doubt: FloatArray, n_features: int
) -> FloatArray:
    """What ‖U_n‖² is at most, of the U that the dual variables make exactly; ``computed`` is ‖Û_n‖².

    The updates are α_n β_in with a relative error of a few u; ``doubt`` is α_n Σ_i |β̂_in − β_in| ‖x_i‖, for errors
    beyond these.
    """
    reach, count = np.zeros(len(computed)), np.zeros(len(computed))
    _reach_kernel(*updates, lengths, reach, count)
    error = gamma(count + _ROUNDED) * reach + doubt
    error *= 1.0 + gamma(float(len(lengths) + n_features + _ROUNDED))
    sure = np.sqrt(computed * (1.0 + gamma(float(n_features + _ROUNDED))))
    return np.asarray((sure + error + _TINY) ** 2 * (1.0 + gamma(float(_ROUNDED))))


@kernel
def _reach_kernel(indptr, columns, values, lengths, reach, count):
    """Σ_i |value| ‖x_i‖ of every column, and how many terms it has."""
    for i in range(lengths.shape[0]):
        for e in range(indptr[i], indptr[i + 1]):
            reach[columns[e]] += abs(values[e]) * lengths[i]
            count[columns[e]] += 1.0


def path_doubt(
    ptr: PtrArray, leaf: IntArray, amounts: FloatArray, own: IntArray, lengths: FloatArray, columns: Columns
) -> FloatArray:
    """α_n Σ_i |β̂_in − β_in| ‖x_i‖ where β is summed along the paths of leaves.

    ``amounts`` are what each sample adds to all of the path of a ``leaf``, or takes from it; ``own`` is the leaf whose
    path gets what the others give, if there is one.
    """
    doubt = np.zeros(columns.n_columns)
    _path_doubt_kernel(ptr, leaf, amounts, own, lengths, *columns.paths, doubt)
    doubt *= columns.alpha * (1.0 + gamma(float(len(lengths) + _ROUNDED)))
    return doubt


@kernel
def _path_doubt_kernel(indptr, leaf, amounts, own, lengths, ptr, idx, doubt):
    seen = np.zeros(doubt.shape[0], np.int32)
    for i in range(lengths.shape[0]):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += abs(amounts[k])
        n = indptr[i + 1] - indptr[i]
        error = lengths[i] * total * (CANCELLED + UNIT * (4.0 * n + 32.0))  # twice γ(n + 16), and more
        for k in range(indptr[i], indptr[i + 1]):
            for e in range(ptr[leaf[k]], ptr[leaf[k] + 1]):
                if seen[idx[e]] != i + 1:
                    seen[idx[e]] = i + 1
                    doubt[idx[e]] += error
        if n > 0 and own.shape[0] > 0:
            for e in range(ptr[own[i]], ptr[own[i] + 1]):
                if seen[idx[e]] != i + 1:
                    seen[idx[e]] = i + 1
                    doubt[idx[e]] += error


def largest_penalty(squared_norms: FloatArray, alpha: FloatArray, n_features: int = 0) -> float:
    """What ½ Σ_n ‖U_n‖²/α_n is at most; ``n_features`` if the norms are sums over features, not yet bounded."""
    return float(penalty(squared_norms, alpha) * (1.0 + gamma(float(len(alpha) + n_features + _ROUNDED))))


def largest_primal(penalty_value: float, slacks: FloatArray, costs: FloatArray) -> float:
    """The primal at most, for a penalty and slacks that are no less than they should be."""
    return float(primal(penalty_value, slacks, costs) * (1.0 + gamma(float(len(costs) + _ROUNDED))))


def least_dual(penalty_value: float, mass: float, excess: float) -> float:
    """The dual at least, for a penalty that is no less, and a mass that is no more, than it should be.

    Dual variables of a sample add up to 1 + ``excess`` times C_i at most; those of zero have the value 0.
    """
    if not np.isfinite(excess):
        return 0.0
    part = 1.0 / (1.0 + excess)
    penalty_value, mass = part * part * penalty_value, part * mass
    return float(max(0.0, dual(penalty_value, mass) - gamma(float(2 * _ROUNDED)) * (penalty_value + mass)))


def excess(used: FloatArray, costs: FloatArray, terms: float) -> float:
    """By how much of C_i the dual variables of a sample exceed it at most; each of ``used`` is a sum of some terms."""
    if (used[costs == 0] > 0).any():
        return np.inf
    share = np.divide(used, costs, out=np.zeros(len(costs)), where=costs > 0)
    return max(0.0, float(share.max(initial=0.0)) * (1.0 + gamma(terms + _ROUNDED)) - 1.0)


def path_sums(squared_norms: FloatArray, columns: Columns) -> FloatArray:
    """Σ_{n∈Ā(l)} ‖U_n‖ of every leaf."""
    paths = columns.paths
    norms = np.sqrt(squared_norms)[paths.indices]
    return np.bincount(paths.owners(), norms, columns.n_leaves).astype(np.float64)


def of_sums(X: Matrix, squared_norms: FloatArray, scores: float, constants: float, terms: float) -> FloatArray:
    """What a sum of scores and constants is wrong by at most, for every sample, of ‖x_i‖² ``squared_norms``.

    ``scores`` is Σ ‖U_n‖ of the columns whose scores are added, ``constants`` Σ |constants|; they are so many terms.
    """
    n_features = np.diff(X.indptr) if sp.issparse(X) else np.full(X.shape[0], X.shape[1])
    rounded = gamma((n_features + 1.0) + (terms + 2 * _ROUNDED))  # and the constant one
    return rounded * (np.sqrt(squared_norms) * scores * (1.0 + 1e-6) + constants)
