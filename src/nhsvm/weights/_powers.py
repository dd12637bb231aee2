"""Least sums of powers: which method for which ρ."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.weights._interior import Powers, Solution, minimise
from nhsvm.weights._steep import minimise_norm

_STEEP = 8.0  # above, costs span too many orders of magnitude


def minimise_powers(
    log_c: FloatArray,
    rho: float,
    F: sp.csr_array,
    f: FloatArray,
    x: FloatArray,
    w_rest: FloatArray,
) -> Solution:
    """Minimise Σ c_k y_k^ρ over x, where y = (x, F x + f) ≥ 0, for any ρ > 1.

    ``log_c`` are logarithms, since c^{1/ρ} may be an ordinary number where c is none; −inf makes a mere constraint.
    ``x`` and ``w_rest`` are as for :func:`~nhsvm.weights._interior.minimise`. For large ρ, ``value`` and ``gap`` of the
    result are of (Σ c y^ρ)^{1/ρ}.
    """
    if rho <= _STEEP:
        return minimise(Powers(np.exp(log_c), rho), F, f, x, w_rest)
    return minimise_norm(log_c, rho, F, f, x)
