"""The systems of ``_coupled`` on a tree with long paths, where B has too many entries to be multiplied with.

There the columns of B are nested: (Bx)_l is the sum of x on the way from the root to the node above l. With g the sums
at the inner nodes, x = Dg for the sparse D = I - (parent of each node), and diag(c) + Bᵀ diag(e) B becomes the matrix
Dᵀ diag(c) D + diag(e summed over the leaves of each node), which is as sparse as the tree and fills in nowhere when
eliminated from below.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

from nhsvm.hierarchy.graph import FloatArray, IntArray

_LU = {"permc_spec": "NATURAL", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}


class NestedCouplings:
    """Factorises such systems; B must be that of a tree, its columns in topological order, no row empty."""

    def __init__(self, B: sp.csr_array) -> None:
        n = B.shape[1]
        first = np.zeros(len(B.indices), dtype=bool)
        first[B.indptr[:-1]] = True
        inner = np.flatnonzero(~first)
        parent = np.full(n, -1)
        parent[B.indices[inner]] = B.indices[inner - 1]
        self.above: IntArray = B.indices[B.indptr[1:] - 1]  # the inner node next above each leaf
        child = np.flatnonzero(parent >= 0)
        links = sp.csr_array((np.ones(len(child)), (child, parent[child])), shape=(n, n))
        self.D = sp.csc_array(sp.diags_array(np.ones(n)) - links)
        self._sums = scipy.sparse.linalg.splu(self.D, **_LU)
        self._gather = sp.csr_array(
            (np.ones(len(self.above)), (self.above, np.arange(len(self.above)))), shape=(n, len(self.above))
        )

    def down(self, x: FloatArray) -> FloatArray:
        """B @ x."""
        return np.asarray(self._sums.solve(x)[self.above])

    def up(self, y: FloatArray) -> FloatArray:
        """Bᵀ @ y."""
        return np.asarray(self._sums.solve(self._gather @ y, trans="T"))

    def factorise(self, c: FloatArray, e: FloatArray) -> NestedCoupled:
        """For weights c > 0 of the nodes and e > 0 of the leaves."""
        return NestedCoupled(self, c, e)


class NestedCoupled:
    """One factorised system."""

    def __init__(self, on: NestedCouplings, c: FloatArray, e: FloatArray) -> None:
        self.on, self.c, self.e = on, c, e
        H = on.D.T @ (sp.diags_array(c) @ on.D) + sp.diags_array(on._gather @ e)
        self.unit = 1 / np.sqrt(H.diagonal())
        scaled = sp.diags_array(self.unit) @ H @ sp.diags_array(self.unit)
        self._lu = scipy.sparse.linalg.splu(sp.csc_array(scaled[::-1, ::-1]), **_LU)  # children before parents
        self.stiff = c > on.up(e)

    def solve(self, b: FloatArray) -> FloatArray:
        """The solution, for one or several columns b."""
        if b.ndim == 1:
            return np.asarray(self.solve(b[:, None])[:, 0])
        x = self._once(b)
        # where c is large x is a tiny difference of sums, which one round of refinement restores
        return np.asarray(x + self._once(b - self.c[:, None] * x - self.on.up(self.e[:, None] * self.on.down(x))))

    def _once(self, b: FloatArray) -> FloatArray:
        unit = self.unit[:, None]
        g = unit * self._lu.solve((unit * (self.on.D.T @ b))[::-1])[::-1]
        x = self.on.D @ g
        direct = (b - self.on.up(self.e[:, None] * self.on.down(x))) / self.c[:, None]
        return np.where(self.stiff[:, None], direct, x)
