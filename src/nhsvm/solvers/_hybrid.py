"""Weights of sparse samples that do not fit into memory as a table: rows as long as they need to be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import FloatArray, IntArray, PtrArray
from nhsvm.oracles.leaves import Proposals
from nhsvm.solvers._block import placed_kernel
from nhsvm.solvers._places import Places, find_places
from nhsvm.solvers._planes import Planes
from nhsvm.solvers._row_changes import apply_kernel, promote_kernel
from nhsvm.solvers._row_rebuild import bounds_kernel, counts_kernel, first_entries, rebuild_kernel
from nhsvm.solvers._row_tails import tails_kernel
from nhsvm.solvers._rows import Rows
from nhsvm.solvers._sparse import SparseBatch, squared_norms
from nhsvm.solvers._updates import Scorer, Updates
from nhsvm.storage.kernels import rows_kernel
from nhsvm.storage.rows import StoredRows
from nhsvm.storage.samples import csr
from nhsvm.threads import Team

_ENTRIES = 2**20  # of the samples, in one block of features whose rows are made anew
_GROWTH = 1.3  # rows that have this much more room than when they were last made anew are made anew
_SMALL = 2**26  # bytes of rows that are left as they are
_BLOCKS = 64  # of features, at least, so that every thread has some


class HybridWeights:
    """Samples in CSR form and the weights U of every column (node), feature-major, in short and full rows.

    It does what :class:`nhsvm.solvers._sparse.SparseWeights` does, in less memory, and in less time where weights are
    sparse; passes over the planes in use need places found for them.

    Parameters
    ----------
    X : csr_array
        Sorted, without duplicates; float32 or float64.
    n_columns : int
    bias : float
        Value of the constant feature, 0 for none.
    dtype : dtype
        To compute in.
    limit : int
        Bytes that the weights may take.
    """

    placed = True

    def __init__(self, X: sp.csr_array, n_columns: int, bias: float, dtype: Any, limit: int) -> None:
        self.indptr, self.indices, self.data = X.indptr, X.indices, X.data
        self.bias, self.n_columns = float(bias), n_columns
        self.n_samples, self.n_features = X.shape
        self.constant = np.zeros(n_columns, dtype=dtype)
        self.rows = Rows(self.n_features, n_columns, dtype, limit)
        self.limit = self.rows.limit  # less where the system does not give that much
        self._compact = 0  # bytes that rows took when they were last made anew

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.rows.dtype

    @cached_property
    def squared_norms(self) -> FloatArray:
        """‖x_i‖² of every sample, the constant feature included."""
        return squared_norms(self.indptr, self.data, self.bias)

    @cached_property
    def scratch(self) -> IntArray:
        """A zero for every feature, for the lists of a batch."""
        return np.zeros(self.n_features, dtype=np.int32)

    @cached_property
    def begin(self) -> PtrArray:
        """Entries of the samples in the features before each."""
        counts = np.zeros(self.n_features + 1, dtype=np.int64)
        counts_kernel(self.indices, counts[1:])
        return np.cumsum(counts)

    def intercept(self) -> npt.NDArray[Any]:
        """What the constant feature adds to the score of every column."""
        scaled: npt.NDArray[Any] = self.constant * self.dtype.type(self.bias)
        return scaled

    def learned(self) -> StoredRows:
        """U as a model keeps it; these weights are zero afterwards."""
        return self.rows.taken(self.constant)

    def double(self) -> HybridWeights:
        """The same in double precision; weights start at zero."""
        X = csr(self.data, self.indices, self.indptr, (self.n_samples, self.n_features))
        return HybridWeights(X, self.n_columns, self.bias, np.float64, self.rows.asked)

    def column_norms(self) -> FloatArray:
        """‖U_n‖² of every column."""
        return self.rows.column_norms() + self.constant.astype(np.float64) ** 2

    def rescale(self, factors: FloatArray) -> None:
        """Multiply U_n of every column by a factor."""
        self.rows.rescale(factors)
        self.constant *= factors.astype(self.dtype)

    def scores(self, rows: npt.NDArray[np.int64], out: npt.NDArray[Any]) -> None:
        """``out[t] = U x`` for the samples ``rows``; summed in the precision of ``out``."""
        self.head_scores(rows, self.n_columns, out)

    def head_scores(self, rows: npt.NDArray[np.int64], head: int, out: npt.NDArray[Any]) -> None:
        """The same, but of full rows only the first columns are read; :meth:`add_tails` knows of the others."""
        samples = self.indptr, self.indices, self.data
        rows_kernel(rows, *samples, *self.rows.arrays, self.constant, self.bias, head, out)

    def add_tails(self, rows: npt.NDArray[np.int64], leaves: IntArray, columns: Columns, found: Proposals) -> None:
        """Make the values of labels exact that were proposed by :meth:`head_scores` up to ``columns.head``."""
        stored = self.rows
        tails_kernel(
            rows, self.indptr, self.indices, self.data, stored.start, stored.size, stored.full, columns.head, leaves,
            *columns.paths, found.leaf, found.size, found.scale, found.value, found.slack,
        )  # fmt: skip

    def scorer(self, rows: npt.NDArray[np.int64]) -> Scorer:
        """``scorer(lo, hi, out)`` fills ``out[lo:hi]`` with the scores of the samples ``rows[lo:hi]``."""
        return lambda lo, hi, out: self.scores(rows[lo:hi], out[lo:hi])

    def batch(self, rows: npt.NDArray[np.int64]) -> HybridBatch:
        """Samples that change the weights together; does not read the weights."""
        return HybridBatch(self, rows)

    def cheap(self, planes: Any, columns: Any) -> bool:
        """Never: a column of a short row is found by reading the row."""
        return False

    def places(
        self, samples: PtrArray, leaves: IntArray, planes: Planes, columns: Columns, team: Team
    ) -> Iterator[tuple[PtrArray, Places]]:
        """Some samples at a time, and where they find the weights of their planes, for :meth:`cached_pass`."""
        return find_places(self, samples, leaves, planes, columns, team)

    def cached_pass(
        self, samples: PtrArray, leaves: IntArray, costs: FloatArray, pool: tuple[Any, ...], columns: Columns,
        unscaled: bool, tolerance: float, gaps: FloatArray, places: Places,
    ) -> float:  # fmt: skip
        """Block steps over the planes in use, one sample after the other; returns the gain of the dual."""
        rows = self.rows
        placed = (rows.start, rows.size, rows.full, self.constant, *places)
        return float(
            placed_kernel(
                samples, leaves, costs, self.squared_norms, *pool, self.indptr, self.indices, self.data, self.bias,
                rows.value, placed, *columns.paths, columns.alpha, columns.nests and unscaled, tolerance, gaps,
            )
        )  # fmt: skip

    def apart(self) -> float:
        """Time to read one column by itself, in units of one among all columns."""
        return np.inf

    def rebuild(self, updates: Updates, team: Team) -> tuple[FloatArray, FloatArray]:
        """U_n = Σ_t coefficient · x_t from nothing, in double precision, over all samples; rows then have no gaps.

        Returns
        -------
        exact, stored : arrays of n_columns
            ‖U_n‖² of the sums, and of the sums as stored, which differ when the weights are float32.
        """
        self.rows.reserve(team.size, self._bounds(updates.indptr))
        blocks = self.blocks()
        exact, stored = np.zeros((2, len(blocks) - 1, self.n_columns))
        enough = np.zeros(team.size, dtype=bool)
        # where each thread has full rows for all of its features that may need one
        first_full = np.concatenate([[0], np.cumsum(self.rows.start >= 0)])[blocks]

        def work(lo: int, hi: int) -> None:
            for p in range(lo, hi):
                cuts = [len(exact) * k // team.size for k in (p, p + 1)]
                enough[p] = self._remake(p, range(*cuts), blocks, first_full[cuts[0]], updates, exact, stored)

        team.split(team.size, work)
        self.rows.settle()
        self._compact = self.rows.roomy
        if not enough.all() or self.overfull:
            raise self.rows.exhausted()
        constant = self.bias * np.bincount(updates.columns, updates.values, minlength=self.n_columns)
        self.constant[:] = constant
        return exact.sum(axis=0) + constant**2, stored.sum(axis=0) + self.constant.astype(np.float64) ** 2

    def _bounds(self, ptr: PtrArray) -> npt.NDArray[np.int64]:
        """Entries that every row has at most."""
        bounds = np.zeros(self.n_features, dtype=np.int64)
        bounds_kernel(self.indptr, self.indices, ptr, bounds)
        return bounds

    def blocks(self) -> npt.NDArray[np.int64]:
        """Ranges of features with about as many entries of the samples each."""
        total = int(self.begin[-1])
        size = min(_ENTRIES, total // _BLOCKS + 1)
        aims = np.arange(1, -(-total // size)) * size
        cuts = np.searchsorted(self.begin, aims)
        return np.unique(np.concatenate([[0], cuts, [self.n_features]]))

    def _remake(
        self,
        p: int,
        which: range,
        blocks: Any,
        first_full: int,
        updates: Updates,
        exact: FloatArray,
        stored: FloatArray,
    ) -> bool:
        """The blocks of one thread; whether there was room."""
        if not which:
            return True
        begin, rows, parts = self.begin, self.rows, self.rows.parts
        most = max(int(begin[blocks[b + 1]] - begin[blocks[b]]) for b in which)
        wide = max(int(blocks[b + 1] - blocks[b]) for b in which)
        who, factor = np.empty(most, np.int64), np.empty(most, self.data.dtype)
        cursor = first_entries(self.indptr, self.indices, int(blocks[which[0]]))
        filled = np.empty(wide, np.int64)
        next_full = np.array([first_full])
        return all(
            rebuild_kernel(
                p, blocks[b], blocks[b + 1], begin, cursor, self.indptr, self.indices, self.data, *updates,
                who, factor, filled, rows.start, rows.size, rows.room, rows.index, rows.value, rows.full,
                next_full, rows.least, *parts[:2], exact[b], stored[b],
            )
            for b in which
        )  # fmt: skip

    @property
    def grown(self) -> bool:
        """Whether rows take much more than they need: gaps, and weights that are zero again.

        By what rows have room for, not by what of the pool is used, which depends on the number of threads.
        """
        return self.rows.roomy > max(_GROWTH * self._compact, _SMALL)

    @property
    def bulky(self) -> bool:
        """Whether a copy of the rows would be more than may be taken; those just made anew are packed without one.

        Beside the copy there are the rows, and gaps between them, which may take half as much again. Not by what of the
        pool is used: the weights would depend on the number of threads.
        """
        return 2.5 * self.rows.roomy > self.limit

    @property
    def overfull(self) -> bool:
        """Whether rows take more than they may; making them anew may help."""
        return self.rows.used > self.limit


class HybridBatch(SparseBatch):
    """Some samples, with lists of who holds a feature, for weights in rows of any length."""

    weights: HybridWeights

    def apply(self, updates: Updates, team: Team) -> None:
        """U_n += coefficient · x_t for every update (t, n, coefficient); threads share the features."""
        w, rows = self.weights, self.weights.rows
        rows.for_threads(team.size)
        features, starts, order, value = self._lists
        ptr = updates.indptr[:-1], updates.indptr[1:]
        rows.n_taken = promote_kernel(
            features, rows.free, rows.n_taken, rows.start, rows.size, rows.room, rows.index, rows.value, rows.full,
            rows.least,
        )  # fmt: skip
        coefficients = updates.values[: updates.indptr[-1]].astype(w.dtype)
        enough = np.zeros(team.size, dtype=bool)

        def work(lo: int, hi: int) -> None:
            for p in range(lo, hi):
                enough[p] = apply_kernel(
                    p, team.size, features, starts[:-1], starts[1:], order, value,
                    *ptr, updates.columns, coefficients,
                    rows.start, rows.size, rows.room, rows.index, rows.value, rows.full, *rows.parts[:4],
                )  # fmt: skip

        team.split(team.size, work)
        if not enough.all():
            raise rows.exhausted()
        if w.bias:
            self._apply_bias(updates, w.constant)
