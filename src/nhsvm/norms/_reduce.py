"""The shared norms depend on U only through UUᵀ, so a rotation to rank-many columns loses nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nhsvm.hierarchy.graph import FloatArray

_RANK = 1e-14


@dataclass(frozen=True)
class Rotated:
    """U = ``rows`` @ ``axes`` with orthonormal rows in ``axes``."""

    rows: FloatArray
    axes: FloatArray

    def back(self, rows: FloatArray) -> FloatArray:
        """Rows in the original columns."""
        return rows @ self.axes


def rotated(U: FloatArray) -> Rotated:
    """U in as many columns as its rank."""
    if U.shape[1] > U.shape[0]:
        wide, triangle = np.linalg.qr(U.T)
        inner = rotated(triangle.T)
        return Rotated(inner.rows, inner.axes @ wide.T)
    _, sigma, Qt = np.linalg.svd(U, full_matrices=False)
    axes = Qt[: max(1, int((sigma > _RANK * sigma[0]).sum()))]
    return Rotated(U @ axes.T, axes)
