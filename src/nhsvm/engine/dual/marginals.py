"""Dual variables of samples with several labels on a tree: node marginals, and the steps that improve those of a batch.

The dual of sample i needs only z_in = Σ_{y∋n} a_iy, the weight of its planes that hold node n, in C_i conv(Y_m):

    U_n = α_n Σ_i β_in x_i,    β_in = C_i 1[n∈y_i] − z_in,
    Σ_y a_iy Δ(y, y_i) = Σ_n w_n (C_i 1[n∈y_i] + (1 − 2·1[n∈y_i]) z_in)

for a loss Σ_n w_n 1[n in one of y, y_i]. Nodes are columns here: those without weight are contracted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.engine.certificate import UNIT
from nhsvm.engine.dual.block import Steps, flat, pointers, warm_start_factors
from nhsvm.engine.dual.marginal_step import MarginalBlock
from nhsvm.engine.samples import Updates
from nhsvm.hierarchy.graph import Ragged
from nhsvm.threads import Team
from nhsvm.typing import Array, ByteArray, FloatArray, IntArray, PtrArray


class Active(NamedTuple):
    """The nodes of some samples that may move: those with a marginal, and those of the most violating labels."""

    n_local: IntArray  # by sample
    column: IntArray  # ascending for every sample, so parents come first
    parent: IntArray  # position among those of the sample, −1 for a root
    own: ByteArray  # a true label
    gradient: FloatArray
    held: FloatArray  # marginals, which steps change

    def sizes(self) -> tuple[Array, ...]:
        """There are no other lists."""
        return ()

    def block(self, steps: Steps, which: PtrArray, tolerance: float, gaps: FloatArray) -> MarginalBlock:
        """Some of the samples, for :func:`.batch_kernel`."""
        costs, norms, alpha, allow_empty = steps.costs, steps.norms, steps.alpha, steps.allow_empty
        return MarginalBlock(which, costs, norms, steps.ends[0], self, alpha, allow_empty, tolerance, gaps)


class MarginalLists(NamedTuple):
    """The marginals of all samples, as kernels read them; see :class:`Marginals`."""

    start: PtrArray  # by sample
    n: IntArray
    column: IntArray
    z: FloatArray


class Marginals:
    """The marginals of all samples: ragged lists in one pool that grows as samples need more room.

    ``truth`` has the columns of the true labels of every sample, ``above`` those next above every column, one at most.
    """

    def __init__(self, truth: Ragged, costs: FloatArray, above: Ragged) -> None:
        self.truth = truth
        self.parent = np.full(len(above.indptr) - 1, -1, np.int32)
        self.parent[above.sizes() > 0] = above.indices
        self.count = truth.sizes().astype(np.int32)
        self.room = self.count.copy()
        self.start = truth.indptr[:-1].copy()
        self.column = truth.indices.astype(np.int32)
        self.z = np.repeat(costs, truth.sizes())
        self._top = int(truth.indptr[-1])

    @property
    def n_planes(self) -> int:
        return int(self.count.sum())

    def flat(self) -> tuple[PtrArray, PtrArray]:
        """(indptr, positions in the pool) of all marginals, sample by sample."""
        return flat(self.start, self.count)

    def layout(self, samples: PtrArray, rewards: FloatArray, chosen: ByteArray, team: Team) -> Active:
        """Nodes that may move; ``rewards`` and ``chosen`` have a column each for every column of U."""
        n = len(samples)
        size = np.empty(n, np.int32)
        lists = MarginalLists(self.start, self.count, self.column, self.z)
        team.split(n, lambda lo, hi: _sizes_kernel(lo, hi, samples, lists, chosen, size))
        indptr = pointers(size)
        total = int(indptr[-1])
        column, parent, own = np.empty(total, np.int32), np.empty(total, np.int32), np.empty(total, np.uint8)
        made = Active(size, column, parent, own, np.empty(total), np.empty(total))
        parts = samples, lists, chosen, rewards, self.parent, self.truth, indptr, made
        team.split(n, lambda lo, hi: _active_kernel(lo, hi, *parts))
        return made

    def warm_start(self, before: FloatArray, now: FloatArray) -> None:
        """Make these variables of one C fit for the next costs; see :func:`.warm_start_factors`.

        What is not on other label sets is on the true one, so a sample whose variables stay gets more of that.
        """
        _, at = self.flat()
        owner = np.repeat(np.arange(len(self.count)), self.count)
        n_columns = len(self.parent)
        true_owner = np.repeat(np.arange(len(self.count)), self.truth.sizes())
        true = np.isin(owner * n_columns + self.column[at], true_owner * n_columns + self.truth.indices)
        used = np.zeros(len(self.count))  # at least so much is on other label sets
        np.maximum.at(used, owner, np.where(true, before[owner] - self.z[at], self.z[at]))
        all_there = np.bincount(owner[true], minlength=len(used)) == self.truth.sizes()
        ratio = np.divide(now, before, out=np.zeros_like(now), where=before > 0)
        # a true label without any marginal is not stored, and so can get no more of it
        factors = np.where(all_there, np.minimum(warm_start_factors(used, before, now), ratio), ratio)
        self.z[at] = self.z[at] * factors[owner] + true * (now - factors * before)[owner]
        fresh, sizes = np.flatnonzero((now > 0) & ~(before > 0)), self.truth.sizes()  # they have room for true labels
        self.count[fresh] = sizes[fresh]
        _, at = flat(self.start[fresh], self.count[fresh])
        self.column[at] = self.truth.rows(fresh).indices
        self.z[at] = np.repeat(now[fresh], sizes[fresh])

    def keep(self, samples: PtrArray, layout: Active) -> None:
        """Store the marginals above zero."""
        used = layout.held > 0.0
        indptr = pointers(used)[pointers(layout.n_local)]
        size = np.diff(indptr).astype(np.int32)
        more = size > self.room[samples]
        room = 2 * size[more].astype(np.int64)
        needed = self._top + int(room.sum())
        if needed > len(self.column):
            grown = max(needed, 2 * len(self.column))
            self.column, self.z = np.resize(self.column, grown), np.resize(self.z, grown)
        self.start[samples[more]] = self._top + np.cumsum(room) - room
        self.room[samples[more]] = room
        self._top = needed
        self.count[samples] = size
        at = np.arange(indptr[-1]) + np.repeat(self.start[samples] - indptr[:-1], size)
        self.column[at], self.z[at] = layout.column[used], layout.held[used]

    def settle(self, costs: FloatArray, allow_empty: bool) -> None:
        """Make every z_i a point of C_i conv(Y_m) as it stands: what rounding has left outside goes to the nearest.

        From the top down, what is more than its parent is lowered to that, and where children add up to less than their
        parent, the largest is raised. A sum is taken for less than its parent unless rounding cannot hide that it is.
        """
        inner = np.zeros(len(self.parent), dtype=bool)
        inner[self.parent[self.parent >= 0]] = True
        _settle_kernel(self.start, self.count, self.column, self.z, self.parent, inner, costs, *self.truth, allow_empty)

    def beta(self, costs: FloatArray) -> Updates:
        """β_in of all samples: one subtraction each, which no sum has come before."""
        indptr, at = self.flat()
        found = Updates.empty(len(costs), len(at) + len(self.truth.indices))
        return found.first(_beta_kernel(indptr, self.column[at], self.z[at], *self.truth, costs, *found))

    def excess(self, costs: FloatArray) -> float:
        return 0.0


@kernel
def _sizes_kernel(first, last, samples, lists, chosen, size):
    """How many nodes each sample has in its list or among the chosen."""
    start, count, column, _ = lists
    for t in range(first, last):
        i = samples[t]
        n = 0
        for c in range(chosen.shape[1]):
            n += chosen[t, c]
        for k in range(start[i], start[i] + count[i]):
            n += 1 - chosen[t, column[k]]
        size[t] = n


@kernel
def _active_kernel(first, last, samples, lists, chosen, rewards, parent, labels, indptr, out):
    start, count, column, z = lists
    truth_ptr, truth = labels
    _, out_column, out_parent, out_own, out_gradient, out_z = out
    n_columns = chosen.shape[1]
    slot = np.empty(n_columns, np.int32)
    for t in range(first, last):
        i = samples[t]
        at = indptr[t]
        k, end = start[i], start[i] + count[i]
        j, all_true = truth_ptr[i], truth_ptr[i + 1]
        for c in range(n_columns):
            has = k < end and column[k] == c  # lists are ascending
            own = j < all_true and truth[j] == c
            if has or chosen[t, c]:
                slot[c] = at - indptr[t]
                out_column[at] = c
                out_parent[at] = slot[parent[c]] if parent[c] >= 0 else -1
                out_own[at] = own
                out_gradient[at] = rewards[t, c]
                out_z[at] = z[k] if has else 0.0
                at += 1
            if has:
                k += 1
            if own:
                j += 1


@inlined
def _merge(k, last, mine, j, end, other):
    """The lesser of the next entries of two ascending lists; one past all if both have ended."""
    a = mine[k] if k < last else 2147483647
    b = other[j] if j < end else 2147483647
    return min(a, b)


@kernel
def _beta_kernel(indptr, column, z, truth_ptr, truth, costs, out_ptr, out_columns, out_values):
    at = 0
    for i in range(costs.shape[0]):
        out_ptr[i] = at
        k, last = indptr[i], indptr[i + 1]
        j, end = truth_ptr[i], truth_ptr[i + 1]
        while k < last or j < end:
            c = _merge(k, last, column, j, end, truth)
            beta = 0.0
            if k < last and column[k] == c:
                beta -= z[k]
                k += 1
            if j < end and truth[j] == c:
                beta += costs[i]
                j += 1
            if beta != 0.0:
                out_columns[at] = c
                out_values[at] = beta
                at += 1
    out_ptr[costs.shape[0]] = at
    return at


@kernel
def _settle_kernel(start, count, column, z, parent, inner, costs, truth_ptr, truth, allow_empty):
    n_columns = parent.shape[0]
    slot = np.full(n_columns + 1, -1, np.int64)  # of the columns of a sample, and of the node above the roots
    first, after = np.empty(n_columns + 1, np.int64), np.empty(n_columns + 1, np.int64)
    for i in range(costs.shape[0]):
        lo, size = start[i], count[i]
        for k in range(size):
            slot[column[lo + k]] = k
            first[k] = -1
        first[size] = -1
        for k in range(size - 1, -1, -1):  # parents come first
            c = column[lo + k]
            p = slot[parent[c]] if parent[c] >= 0 else size
            if p < 0 or (inner[c] and first[k] < 0) or not z[lo + k] > 0.0:
                z[lo + k] = 0.0  # nothing above it, or nothing below
            else:
                after[k] = first[p]
                first[p] = k
        for k in range(size):
            slot[column[lo + k]] = -1
        if first[size] < 0 and not allow_empty:  # back to the true labels
            count[i] = truth_ptr[i + 1] - truth_ptr[i]
            for k in range(count[i]):
                column[lo + k] = truth[truth_ptr[i] + k]
                z[lo + k] = costs[i]
            continue
        for j in range(size + 1):
            p = j - 1 if j > 0 else size
            above = z[lo + p] if j > 0 else costs[i]
            k, n, largest, total = first[p], 0, -1, 0.0
            while k >= 0:
                z[lo + k] = min(z[lo + k], above)
                if largest < 0 or z[lo + k] > z[lo + largest]:
                    largest = k
                total += z[lo + k]
                n += 1
                k = after[k]
            if n == 0 or (j == 0 and allow_empty):
                continue
            if n == 1:
                z[lo + largest] = above
                continue
            room = UNIT * (n + 8.0) * 4.0
            if total * (1.0 - room) < above:
                more = above - total * (1.0 - room)
                z[lo + largest] = min(above, z[lo + largest] + more + room * above)
