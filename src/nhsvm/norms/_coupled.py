"""Systems diag(c) + Bᵀ diag(e) B over the inner nodes, B the 0/1 leaf × inner matrix of a hierarchy."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from nhsvm.hierarchy.graph import FloatArray, PtrArray

_DENSE = 600
_LU = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}  # positive definite: the diagonal is pivot enough


class Couplings:
    """Factorises such systems; whatever does not depend on the numbers is done once."""

    def __init__(self, B: sp.csr_array) -> None:
        self.B, self.Bt = B, sp.csr_array(B.T)

    def down(self, x: FloatArray) -> FloatArray:
        """B @ x."""
        return np.asarray(self.B @ x)

    def up(self, y: FloatArray) -> FloatArray:
        """Bᵀ @ y."""
        return np.asarray(self.Bt @ y)

    def dense(self, e: FloatArray) -> FloatArray:
        """Bᵀ diag(e) B as an array."""
        return np.asarray((self.Bt @ (sp.diags_array(e) @ self.B)).toarray())

    @cached_property
    def order(self) -> PtrArray:
        """An elimination order with little fill; finding it costs more than a factorisation."""
        pattern = sp.csc_array(self.Bt @ self.B + sp.diags_array(np.ones(self.B.shape[1])))
        found = scipy.sparse.linalg.splu(pattern, permc_spec="MMD_AT_PLUS_A", **_LU)
        return np.argsort(found.perm_c)

    @cached_property
    def _ordered(self) -> sp.csr_array:
        return sp.csr_array(self.B[:, self.order])

    def factorise(self, c: FloatArray, e: FloatArray) -> Coupled:
        """For weights c > 0 of the nodes and e > 0 of the leaves."""
        unit = 1 / np.sqrt(c)
        if len(c) <= _DENSE:
            return Coupled(unit, unit[:, None] * self.dense(e) * unit, None)
        scaled = self._ordered @ sp.diags_array(unit[self.order])
        H = scaled.T @ (sp.diags_array(e) @ scaled) + sp.diags_array(np.ones(len(c)))
        return Coupled(unit, sp.csc_array(H), self.order)


class Coupled:
    """One factorised system, scaled to I + (unit Bᵀ diag(e) B unit) so that vanishing weights do no harm."""

    def __init__(self, unit: FloatArray, H: FloatArray | sp.csc_array, order: PtrArray | None) -> None:
        self.unit, self.order = unit, order
        if order is None:
            H[np.diag_indices(len(unit))] += 1
            self._factor = scipy.linalg.cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        else:
            self._lu = scipy.sparse.linalg.splu(H, permc_spec="NATURAL", **_LU)

    def solve(self, b: FloatArray) -> FloatArray:
        """The solution, for one or several columns b."""
        unit = self.unit if b.ndim == 1 else self.unit[:, None]
        if self.order is None:
            return np.asarray(unit * scipy.linalg.cho_solve(self._factor, unit * b, check_finite=False))
        out = np.empty_like(b)
        out[self.order] = self._lu.solve((unit * b)[self.order])
        return unit * out

    def inverse(self) -> FloatArray:
        """The whole inverse; small systems only."""
        return self.solve(np.eye(len(self.unit)))
