"""Dual variables of single-label samples, and the step that improves those of a batch.

A *plane* of sample i is a wrong leaf l with a dual variable a_il > 0; Σ_l a_il ≤ C_i, and what is left of C_i belongs
to the true leaf, whose plane is zero. With κ_il = 1 (Eq. 10), or 1/‖∧̃(l) − ∧̃(y_i)‖ (Eq. 13),

    U_n = α_n Σ_i β_in x_i,    β_in = Σ_l a_il κ_il (1[n∈y_i] − 1[n∈l]).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.columns import Columns
from nhsvm.engine.certificate import CANCELLED, excess, gamma, path_doubt
from nhsvm.engine.dual.block import Paths, flat, pointers, warm_start_factors
from nhsvm.engine.dual.plane_step import batch_kernel
from nhsvm.engine.samples import Updates
from nhsvm.oracles.leaves import Proposals
from nhsvm.typing import Array, FloatArray, IntArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.oracles.leaves import SingleLabel

_CHUNK = 4096  # samples whose losses are looked up at a time
NO_LEAVES = np.empty(0, np.int32)  # no label is the true one alone


class Batch(NamedTuple):
    """What the step needs to know of the samples of a batch, one entry each."""

    samples: PtrArray
    leaves: IntArray
    costs: FloatArray
    squared_norms: FloatArray


class Pool(NamedTuple):
    """The planes of all samples, as kernels read and change them; see :class:`Planes`."""

    start: PtrArray  # by sample
    n: IntArray
    leaf: IntArray
    weight: FloatArray
    loss: FloatArray
    scale: FloatArray


class Planes:
    """The planes of all samples: ragged lists in one pool that grows as samples need more room.

    The planes of sample i are ``leaf[start[i] : start[i] + count[i]]``, with ``weight`` a_il, ``loss`` Δ(l, y_i) and
    ``scale`` κ_il beside it.
    """

    sign = -1.0  # of what a plane adds to β of the columns of its leaf

    def __init__(self, n_samples: int) -> None:
        self.start = np.zeros(n_samples, dtype=np.int64)
        self.count = np.zeros(n_samples, dtype=np.int32)
        self.room = np.zeros(n_samples, dtype=np.int32)
        self.leaf = np.zeros(4 * n_samples, dtype=np.int32)
        self.weight, self.loss, self.scale = (np.zeros(4 * n_samples) for _ in range(3))
        self._top = np.zeros(1, dtype=np.int64)

    @property
    def n_planes(self) -> int:
        return int(self.count.sum())

    def of(self, samples: PtrArray) -> tuple[PtrArray, IntArray, IntArray, FloatArray]:
        """(start, count, leaf, weight) of some samples."""
        return self.start[samples], self.count[samples], self.leaf, self.weight

    @property
    def pool(self) -> Pool:
        """The lists of all samples; arrays that are changed, until they have to grow."""
        return Pool(self.start, self.count, self.leaf, self.weight, self.loss, self.scale)

    def improve(
        self, batch: Batch, found: Proposals, gram: Array, paths: Paths, tolerance: float, sweeps: int
    ) -> tuple[Updates, float]:
        """Block steps for the samples of a batch, in order; returns the change of U and the gain of the dual."""
        before, entries = found.weight.copy(), self.entries(found, paths)
        corrections = np.empty((min(len(paths.alpha), entries), len(batch.samples)), dtype=gram.dtype)
        gain = batch_kernel(batch, found, before, gram, corrections, paths, tolerance, sweeps)
        return self.store(batch, found, before, paths, entries), gain

    @staticmethod
    def entries(found: Proposals, paths: Paths) -> int:
        """Columns that the steps of a batch change, at most."""
        return int((found.size.astype(np.int64) + 1).sum()) * paths.longest

    def store(self, batch: Batch, found: Proposals, before: FloatArray, paths: Paths, entries: int) -> Updates:
        """Keep the planes with weight of a batch; what the change of their weights does to U."""
        self._make_room(2 * int(found.size.sum()))
        updates = Updates.empty(len(batch.samples), entries)
        _store_kernel(batch, found, before, self.sign, paths, self.room, self._top, self.pool, updates)
        return updates

    def add(self, samples: PtrArray, found: Proposals) -> None:
        """Keep all planes that were proposed, for a pass over planes to choose from."""
        self._make_room(2 * int(found.size.sum()))
        _keep_kernel(samples, found, self.room, self._top, self.pool)

    def _make_room(self, extra: int) -> None:
        """Room for ``extra`` more planes: drop the holes that lists left when they moved, and grow if need be."""
        if self._top[0] + extra <= len(self.leaf):
            return
        size = max(len(self.leaf), 2 * (int(self.room.sum()) + extra))
        ends = pointers(self.room)
        at, to = self.flat()[1], flat(ends[:-1], self.count)[1]
        leaf = np.zeros(size, dtype=np.int32)
        weight, loss, scale = (np.zeros(size) for _ in range(3))
        leaf[to], weight[to], loss[to], scale[to] = self.leaf[at], self.weight[at], self.loss[at], self.scale[at]
        start, top = ends[:-1].copy(), ends[-1:].copy()
        # in one step: an interrupt must find either the old lists or the new
        vars(self).update(start=start, _top=top, leaf=leaf, weight=weight, loss=loss, scale=scale)

    def flat(self) -> tuple[PtrArray, PtrArray]:
        """(indptr, positions in the pool) of all planes, sample by sample."""
        return flat(self.start, self.count)

    def owners(self) -> PtrArray:
        """The sample of every plane, sample by sample."""
        return np.repeat(np.arange(len(self.count)), self.count)

    def mass(self) -> float:
        """Σ a_il Δ(l, y_i)."""
        at = self.flat()[1]
        return float(np.sum(self.weight[at] * self.loss[at]))  # BLAS would sum by its number of threads

    def excess(self, costs: FloatArray) -> float:
        return excess(self.used(), costs, float(self.count.max(initial=0)))

    def used(self) -> FloatArray:
        """Σ_l a_il of every sample."""
        weight = self.weight[self.flat()[1]]
        return np.bincount(self.owners(), weight, minlength=len(self.count)).astype(np.float64)

    def doubt(self, leaves: IntArray, lengths: FloatArray, columns: Columns) -> FloatArray:
        """What rounding may have done to :meth:`coefficients`; see :func:`nhsvm.engine.certificate.path_doubt`."""
        indptr, at = self.flat()
        return path_doubt(indptr, self.leaf[at], self.weight[at] * self.scale[at], leaves, lengths, columns)

    def least_mass(self) -> float:
        """:meth:`mass`, and no more than it is without rounding: a sum of numbers that are not negative."""
        return self.mass() * (1.0 - gamma(float(self.n_planes + 8)))

    def describe(self, leaves: IntArray, oracle: SingleLabel) -> None:
        """Take Δ and κ of all planes from the oracle, whose loss may have changed since they were found."""
        indptr, at = self.flat()
        for lo in range(0, len(leaves), _CHUNK):
            here = slice(indptr[lo], indptr[min(lo + _CHUNK, len(leaves))])
            rows, which = oracle.loss_rows(leaves[lo : lo + _CHUNK])
            losses = rows[np.repeat(which, self.count[lo : lo + _CHUNK]), self.leaf[at[here]]]
            self.loss[at[here]] = 1.0 if oracle.normalized else losses
            if oracle.normalized:  # labels that coincide with the true one are no planes there
                apart = losses > 0
                self.scale[at[here]] = np.divide(1.0, losses, out=np.ones(len(losses)), where=apart)
                self.weight[at[here]] *= apart
            else:
                self.scale[at[here]] = 1.0

    def rescale(self, factors: FloatArray) -> None:
        """Multiply the dual variables of every sample by a factor of its own."""
        self.weight[self.flat()[1]] *= np.repeat(factors, self.count)

    def warm_start(self, before: FloatArray, now: FloatArray) -> None:
        """Make these variables of one C fit for the next costs; see :func:`.warm_start_factors`."""
        self.rescale(warm_start_factors(self.used(), before, now))

    def coefficients(self, leaves: IntArray, columns: Columns) -> Updates:
        """α_n β_in of all samples; ``leaves`` are the true ones, or none."""
        at = self.flat()[1]
        return spread(self.count, self.leaf[at], self.sign * self.weight[at] * self.scale[at], columns, leaves)


def spread(
    sizes: IntArray, leaf: IntArray, amounts: FloatArray, columns: Columns, own: IntArray = NO_LEAVES
) -> Updates:
    """Amounts on leaves, lists of these sizes one after the other, as α_n times their sums on columns.

    The path of the leaf ``own`` of every list, if there are such, gives what the others get.
    """
    length = columns.paths.sizes()
    most = np.bincount(np.repeat(np.arange(len(sizes)), sizes), length[leaf], len(sizes))
    if len(own):
        most += length[own]
    room = int(np.minimum(most, columns.n_columns).sum())
    made = Updates.empty(len(sizes), room)
    total = _coefficients_kernel(pointers(sizes), leaf, amounts, own, columns.paths, columns.alpha, made)
    return made.first(total)


@inlined
def _add(beta, amount, leaf, ptr, idx, seen, stamp, touched, n_touched):
    """Add ``amount`` on the path of a leaf, and list the columns met for the first time under this stamp."""
    for e in range(ptr[leaf], ptr[leaf + 1]):
        n = idx[e]
        if seen[n] != stamp:
            seen[n] = stamp
            touched[n_touched] = n
            n_touched += 1
        beta[n] += amount
    return n_touched


@inlined
def _put(t, i, n, least, found, room, top, pool):
    """The planes of the t-th sample that have more than the ``least`` weight, n of them, become those of sample i."""
    start, count, leaf, weight, loss, scale = pool
    if n > room[i]:
        room[i] = 2 * n
        start[i] = top[0]
        top[0] += room[i]
    count[i] = 0
    for k in range(found.size[t]):
        if found.weight[t, k] > least:
            at = start[i] + count[i]
            leaf[at], weight[at] = found.leaf[t, k], found.weight[t, k]
            loss[at], scale[at] = found.loss[t, k], found.scale[t, k]
            count[i] += 1


@kernel
def _store_kernel(batch, found, before, sign, paths, room, top, pool, out):
    """Put the planes with weight into the pool, and list what the change of weights does to U.

    The true leaf, if there is one, gives what the others get.
    """
    samples, leaves = batch.samples, batch.leaves
    leaf, weight, scale, size = found.leaf, found.weight, found.scale, found.size
    ptr, idx, alpha, _ = paths
    out_ptr, out_columns, out_values = out
    n_columns = alpha.shape[0]
    beta = np.zeros(n_columns)
    seen = np.zeros(n_columns, np.int32)
    touched = np.empty(n_columns, np.int32)
    at = 0
    for t in range(samples.shape[0]):
        out_ptr[t] = at
        n_touched = 0
        toward = 0.0
        n_kept = 0
        largest = 0.0
        for k in range(size[t]):
            change = sign * (weight[t, k] - before[t, k]) * scale[t, k]
            if weight[t, k] > 0.0:
                n_kept += 1
            if change != 0.0:
                toward -= change
                largest = max(largest, abs(change))
                n_touched = _add(beta, change, leaf[t, k], ptr, idx, seen, t + 1, touched, n_touched)
        if largest == 0.0:
            continue
        if leaves.shape[0] > 0:
            n_touched = _add(beta, toward, leaves[t], ptr, idx, seen, t + 1, touched, n_touched)
        for k in range(n_touched):
            n = touched[k]
            if abs(beta[n]) > CANCELLED * largest:  # shared nodes cancel up to rounding
                out_columns[at] = n
                out_values[at] = alpha[n] * beta[n]
                at += 1
            beta[n] = 0.0
        _put(t, samples[t], n_kept, 0.0, found, room, top, pool)
    out_ptr[samples.shape[0]] = at


@kernel
def _keep_kernel(samples, found, room, top, pool):
    for t in range(samples.shape[0]):
        _put(t, samples[t], found.size[t], -1.0, found, room, top, pool)


@kernel
def _coefficients_kernel(indptr, leaf, amounts, own, paths, alpha, out):
    ptr, idx = paths
    out_ptr, out_columns, out_values = out
    beta = np.zeros(alpha.shape[0])
    seen = np.zeros(alpha.shape[0], np.int32)
    touched = np.empty(alpha.shape[0], np.int32)
    at = 0
    for i in range(indptr.shape[0] - 1):
        out_ptr[i] = at
        toward = 0.0
        n_touched = 0
        largest = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            toward -= amounts[k]
            largest = max(largest, abs(amounts[k]))
            n_touched = _add(beta, amounts[k], leaf[k], ptr, idx, seen, i + 1, touched, n_touched)
        if own.shape[0] > 0 and indptr[i + 1] > indptr[i]:  # paths of planes may be empty
            n_touched = _add(beta, toward, own[i], ptr, idx, seen, i + 1, touched, n_touched)
        for k in range(n_touched):
            n = touched[k]
            if abs(beta[n]) > CANCELLED * largest:  # shared nodes, and labels that are true and others, cancel
                out_columns[at] = n
                out_values[at] = alpha[n] * beta[n]
                at += 1
            beta[n] = 0.0
    out_ptr[indptr.shape[0] - 1] = at
    return at
