"""The shared Frobenius norm (Eq. 17)."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from nhsvm.norms import _input
from nhsvm.norms._certificate import Factorisation, require
from nhsvm.norms._reduce import rotated
from nhsvm.norms._working import solve


@overload
def shared_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: Literal[False] = False) -> float: ...
@overload
def shared_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: Literal[True]) -> Factorisation: ...
def shared_norm(U: npt.ArrayLike, *, tol: float = 1e-6, return_certificate: bool = False) -> float | Factorisation:
    """‖U‖_s = min_{AV=U} ‖A‖_{2→∞} ‖V‖_F (Eq. 17), where ‖A‖_{2→∞} is the length of the longest row of A.

    Solved in its dual form, the maximum over probability vectors p of ‖diag(√p) U‖_*, by an interior-point method; on
    more than 1,200 rows, on a growing set of rows. Both sides of the result are proved: p gives ``lower_bound``, the
    factors give ``value``.

    Parameters
    ----------
    U : array of n_rows × n_columns
    tol : float
        Relative gap allowed between the two bounds.
    return_certificate : bool
        Return the factorisation, p and both bounds instead of the value alone.

    Returns
    -------
    float or Factorisation
        ``left`` is A, ``right`` is V, ``row_weights`` is p.

    Raises
    ------
    NotSolvedError
        If the bounds do not meet within ``tol``.

    Examples
    --------
    >>> round(shared_norm([[3.0, 4.0], [3.0, 4.0], [3.0, 4.0]]), 5)  # full sharing: ‖u‖
    5.0
    >>> round(shared_norm([[3.0, 0.0], [0.0, 4.0]]), 5)  # disjoint features: ‖U‖_F
    5.0
    >>> found = shared_norm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], return_certificate=True)
    >>> found.row_weights.round(3).tolist()
    [0.167, 0.167, 0.667]
    """
    U, tol = _input.matrix(U), _input.tolerance(tol)
    scale = float(np.abs(U).max())
    if scale == 0:
        p = np.full(len(U), 1 / len(U))
        nothing = Factorisation(0.0, 0.0, np.zeros((len(U), 1)), np.zeros((1, U.shape[1])), row_weights=p)
        return nothing if return_certificate else 0.0
    kept = U.any(axis=1)
    basis = rotated(U[kept] / scale)
    found = solve(basis.rows, columns=False, tol=tol)
    require("shared_norm", found.lower, found.upper, tol)
    if not return_certificate:
        return scale * found.upper
    left, p = np.zeros((len(U), found.left.shape[1])), np.zeros(len(U))
    left[kept], p[kept] = found.left, found.p
    right = scale * basis.back(found.right)
    return Factorisation(scale * found.upper, scale * found.lower, left, right, row_weights=p)
