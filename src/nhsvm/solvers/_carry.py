"""Dual variables from one C to the next, on a path."""

from __future__ import annotations

import numpy as np

from nhsvm.hierarchy.graph import FloatArray

_BOUND = 0.99  # of C_i: a sample that uses so much of it would use more


def carried(used: FloatArray, before: FloatArray, now: FloatArray) -> FloatArray:
    """Factors that make the dual variables of every sample fit for other costs.

    A sample that uses all of its C_i is on the wrong side of its margin. With a larger C_i it will use more, but not
    all of it once it has its margin: its variables grow by the square root of what C_i does, a guess between the
    two. A sample that uses less has what it needs: its variables
    stay, unless the new C_i is too small for them. Scaling all of them, which is feasible too, makes weights that are
    about right for a large C far too long for a larger one.

    Parameters
    ----------
    used : array of n_samples
        Sum of the dual variables of a sample that are not its true label's, or a lower bound.
    before, now : arrays of n_samples
        C_i, old and new. A sample that had none has no variables.
    """
    ratio = np.divide(now, before, out=np.zeros_like(now), where=before > 0)
    most = np.maximum(used, now)
    free = np.divide(now, most, out=np.zeros_like(now), where=most > 0)
    return np.where(used >= _BOUND * before, np.where(ratio > 1, np.sqrt(ratio), ratio), free)
