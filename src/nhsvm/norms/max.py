"""The max norm (γ₂ norm)."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from nhsvm.norms import _input
from nhsvm.norms._certificate import Factorisation, require
from nhsvm.norms._working import solve


@overload
def max_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: Literal[False] = False) -> float: ...
@overload
def max_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: Literal[True]) -> Factorisation: ...
def max_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: bool = False) -> float | Factorisation:
    """‖U‖_max = min_{AWᵀ=U} ‖A‖_{2→∞} ‖W‖_{2→∞} (Theorem 2), where ‖·‖_{2→∞} is the length of the longest row.

    Solved in its dual form, the maximum over probability vectors p and q of ‖diag(√p) U diag(√q)‖_*, by an
    interior-point method; on more than 1,200 rows and columns together, on a growing set of these.

    Parameters
    ----------
    U : array of n_rows × n_columns
    tol : float
        Relative gap allowed between the two bounds.
    return_certificate : bool
        Return the factorisation, p, q and both bounds instead of the value alone.

    Returns
    -------
    float or Factorisation
        ``left`` is A, ``right`` is Wᵀ, ``row_weights`` is p, ``column_weights`` is q.

    Raises
    ------
    NotSolvedError
        If the bounds do not meet within ``tol``.

    Examples
    --------
    >>> round(max_norm([[1.0, 1.0], [1.0, -1.0]]), 5)  # √2
    1.41421
    >>> found = max_norm([[1.0, 0.0], [1.0, 1.0]], return_certificate=True)
    >>> round(found.value, 5), found.gap < 1e-6  # 2/√3, the smallest triangle
    (1.1547, True)
    """
    U, tol = _input.matrix(U), _input.tolerance(tol)
    n, m = U.shape
    scale = float(np.abs(U).max())
    if scale == 0:
        p, q = np.full(n, 1 / n), np.full(m, 1 / m)
        return Factorisation(0.0, 0.0, np.zeros((n, 1)), np.zeros((1, m)), p, q) if return_certificate else 0.0
    rows, cols = U.any(axis=1), U.any(axis=0)
    core = U[np.ix_(rows, cols)] / scale
    found = solve(core, columns=True, tol=tol)
    require("max_norm", found.lower, found.upper, tol)
    if not return_certificate:
        return scale * found.upper
    k = found.left.shape[1]
    left, right, p, q = np.zeros((n, k)), np.zeros((k, m)), np.zeros(n), np.zeros(m)
    left[rows], right[:, cols], p[rows], q[cols] = found.left, scale * found.right, found.p, found.q
    return Factorisation(scale * found.upper, scale * found.lower, left, right, p, q)
