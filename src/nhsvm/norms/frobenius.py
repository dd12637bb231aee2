"""The Frobenius norm, which shares nothing."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.norms import _input
from nhsvm.norms._certificate import Factorisation


@overload
def frobenius_norm(U: npt.ArrayLike, *, return_certificate: Literal[False] = False) -> float: ...
@overload
def frobenius_norm(U: npt.ArrayLike, *, return_certificate: Literal[True]) -> Factorisation: ...
def frobenius_norm(U: npt.ArrayLike, *, return_certificate: bool = False) -> float | Factorisation:
    """‖U‖_F = (Σ_{ld} U_{ld}²)^{1/2}: ‖A‖_{2→∞}‖V‖_F for A = I, the factorisation that shares nothing (Table 1).

    The norm of a flat multi-class SVM. By Theorem 2 the shared norms are at most as large, and smaller only if sharing
    pays.

    Parameters
    ----------
    U : array of n_rows × n_columns
    return_certificate : bool
        Also return the factorisation; ``left`` is a sparse identity.

    Returns
    -------
    float or Factorisation

    Examples
    --------
    >>> frobenius_norm([[3.0, 0.0], [0.0, 4.0]])
    5.0
    """
    U = _input.matrix(U)
    scale = float(np.abs(U).max()) or 1.0  # keeps the squares of huge and tiny entries in range
    value = scale * float(np.linalg.norm(U / scale))
    if not return_certificate:
        return value
    identity = sp.csr_array(sp.diags_array(np.ones(len(U))))
    return Factorisation(value=value, lower_bound=value, left=identity, right=U.copy())
