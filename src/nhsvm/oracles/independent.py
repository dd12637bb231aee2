"""The best label set where labels are independent of each other: how many of the most probable ones to take.

For a measure that is a ratio of weighted sums of |Y ∩ Ŷ|, |Y| and |Ŷ|, and the larger the larger |Y ∩ Ŷ|, no set of k
labels is better than the k most probable ones: to exchange one for a less probable one changes nothing but how often it
is true.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.typing import FloatArray, PtrArray


def best_numbers(
    proba: FloatArray,
    numerator: tuple[float, float, float],
    denominator: tuple[float, float, float],
    *,
    may_be_empty: bool = False,
) -> PtrArray:
    """How many labels have the best expected value, of every sample.

    Parameters
    ----------
    proba : array of (n_samples, n_labels)
        Falling from the left to the right.
    numerator, denominator : (float, float, float)
        What |Y ∩ Ŷ|, |Y| and |Ŷ| count; in the numerator only the first, in the denominator the last too.
    may_be_empty : bool
        No labels may be the answer. They are right, with value 1, if there are none.

    Examples
    --------
    >>> jaccard = (1.0, 0.0, 0.0), (-1.0, 1.0, 1.0)
    >>> best_numbers(np.array([[0.9, 0.6, 0.1], [0.9, 0.2, 0.1]]), *jaccard)
    array([2, 1])
    """
    found = np.empty(len(proba), np.int64)
    _best_numbers_kernel(proba, np.array(numerator), np.array(denominator), may_be_empty, found)
    return found


@kernel
def _best_numbers_kernel(proba, numerator, denominator, may_be_empty, out):
    """How many labels to take of samples whose labels have falling probabilities and are independent.

    Of the k first, c are true, and m of the others; numbers of both have Poisson binomial distributions. The value of
    k labels is E[numerator · (c, c + m, k) / denominator · (c, c + m, k)], at most E[numerator] / (denominator · k).
    """
    for t in range(proba.shape[0]):
        p = proba[t]
        n = p.shape[0]
        total = 0.0
        for k in range(n):
            total += p[k]
        # of one label, by Jensen; and the more labels, the less they can be worth
        first = numerator[0] * p[0] / (denominator[0] + denominator[1] * (1.0 + total - p[0]) + denominator[2])
        most = numerator[0] * total / denominator[2]
        last = n if first * n <= most else int(most / first) + 1
        last = min(last, n)
        width = min(n, int(total + 12.0 * np.sqrt(total)) + 40) + 1  # beyond that, probabilities are below 1e-20
        others = np.zeros((last + 1, width))  # of m, by k
        state = np.zeros(width)
        state[0] = 1.0
        for k in range(n, -1, -1):
            if k < n:
                _add_label(state, p[k])
            if k <= last:
                others[k] = state
        out[t] = 0 if may_be_empty else 1
        best = others[0, 0] if may_be_empty else -1.0  # what no labels are worth: they are right if there are none
        state[:] = 0.0
        state[0] = 1.0
        for k in range(1, last + 1):
            _add_label(state, p[k - 1])
            if most < best * k:
                break
            value = 0.0
            for c in range(min(k, width - 1) + 1):
                if state[c] == 0.0:
                    continue
                inner = 0.0
                for m in range(min(n - k, width - 1) + 1):
                    part = numerator[0] * c + numerator[1] * (c + m) + numerator[2] * k
                    inner += others[k, m] * part / (denominator[0] * c + denominator[1] * (c + m) + denominator[2] * k)
                value += state[c] * inner
            if value > best:
                best = value
                out[t] = k


@inlined
def _add_label(state, p):
    """The distribution of a number of labels with one more."""
    for m in range(state.shape[0] - 1, 0, -1):
        state[m] = state[m] * (1.0 - p) + state[m - 1] * p
    state[0] *= 1.0 - p
