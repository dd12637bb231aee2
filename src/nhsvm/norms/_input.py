"""Checks before any work."""

from __future__ import annotations

import numpy as np

from nhsvm.checks import a_hierarchy, matrix
from nhsvm.errors import OptionError

__all__ = ["a_hierarchy", "matrix", "tolerance"]


def tolerance(tol: float) -> float:
    """``tol`` as a positive float."""
    if isinstance(tol, bool) or not isinstance(tol, (int, float, np.floating)) or not 0 < tol < np.inf:
        raise OptionError(f"tol must be a positive number, not {tol!r}")
    return float(tol)
