"""The trace norm (nuclear norm)."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from nhsvm.norms import _input
from nhsvm.norms._certificate import Factorisation


@overload
def trace_norm(U: npt.ArrayLike, *, return_certificate: Literal[False] = False) -> float: ...
@overload
def trace_norm(U: npt.ArrayLike, *, return_certificate: Literal[True]) -> Factorisation: ...
def trace_norm(U: npt.ArrayLike, *, return_certificate: bool = False) -> float | Factorisation:
    """‖U‖_* = min_{AWᵀ=U} ‖A‖_F ‖W‖_F = Σ_i σ_i(U) (Theorem 2).

    From the singular value decomposition U = PΣQᵀ: A = PΣ^{1/2} and W = QΣ^{1/2} attain it, and ⟨PQᵀ, U⟩ with
    ‖PQᵀ‖₂ = 1 bounds it from below.

    Parameters
    ----------
    U : array of n_rows × n_columns
    return_certificate : bool
        Also return the factorisation: ``left`` is A, ``right`` is Wᵀ.

    Returns
    -------
    float or Factorisation

    Examples
    --------
    >>> trace_norm([[3.0, 0.0], [0.0, 4.0]])
    7.0
    >>> found = trace_norm([[1.0, 1.0], [1.0, 1.0]], return_certificate=True)
    >>> (found.left @ found.right).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    U = _input.matrix(U)
    scale = float(np.abs(U).max()) or 1.0
    if not return_certificate:
        return scale * float(np.linalg.svd(U / scale, compute_uv=False).sum())
    P, sigma, Qt = np.linalg.svd(U / scale, full_matrices=False)
    root = np.sqrt(sigma)
    left, right = P * root * np.sqrt(scale), (root[:, None] * Qt) * np.sqrt(scale)
    value = float(np.linalg.norm(left) * np.linalg.norm(right))
    # the rounded PQᵀ may be a little longer than 1
    polar = P @ Qt
    below = scale * float(np.vdot(polar, U / scale)) / max(1.0, float(np.linalg.norm(polar, 2)))
    return Factorisation(value=value, lower_bound=min(below, value), left=left, right=right)
