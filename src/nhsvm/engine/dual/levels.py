"""Dual variables of samples with several labels on a DAG: node marginals, kept as a mixture of cells of levels.

As on a tree (:mod:`nhsvm.engine.dual.marginals`) the dual of sample i needs only z_i in C_i conv(Y_m). On a DAG
conv(Y_m) has no short description, and its vertices are too small a piece of it: a point with k nodes that are neither
in nor out needs about k of them. A *cell of levels* is a larger piece. Give every leaf l a level v_l in [0, a], the
highest being a; then for every t in (0, a) the leaves with v_l > t, and all above them, are a label set, and their
average has

    z_n = max of v_l over the leaves l below n.

So any levels are a point of a·conv(Y_m), whatever the graph, and one number a leaf describes it. z_i is a sum of a few
such cells with masses a_k, Σ_k a_k = C_i: several are needed where nodes exclude each other. Every label set that the
oracle finds can become a cell. :mod:`nhsvm.engine.dual.level_step` has the steps.

A linear relaxation has points that are no such average. For it every column counts as a leaf with nothing above, so
that a cell holds any point the oracle finds, and is *whole*: its mass may change, its levels may not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.columns import Columns
from nhsvm.engine.certificate import excess
from nhsvm.engine.dual.block import Steps, pointers
from nhsvm.engine.dual.level_step import LevelBlock, LevelPointers, Visit, layout_kernel, rising_kernel
from nhsvm.engine.samples import Updates
from nhsvm.hierarchy.graph import Ragged
from nhsvm.oracles.dag.candidates import LeafCandidates, Lists
from nhsvm.threads import Team
from nhsvm.typing import Array, ByteArray, FloatArray, IntArray, PtrArray

CHUNK = 16  # samples that a thread lays out at a time
_NOWHERE = np.zeros(CHUNK + 1, np.int64), np.empty(0, np.int32)  # no leaves of a few samples
_NO_POINTS = np.empty((0, 0), np.uint8)


class Lattice(NamedTuple):
    """The columns as a graph."""

    above_ptr: PtrArray  # columns next above
    above: IntArray
    paths_ptr: PtrArray  # columns of every leaf, itself last
    paths: IntArray
    leaf_of: IntArray  # of a column, or −1


class Cells(NamedTuple):
    """Cells of samples, one after the other."""

    n_cells: IntArray  # by sample
    sizes: IntArray  # by cell: leaves above level 0
    masses: FloatArray
    leaves: IntArray
    levels: FloatArray


class LevelLayout(NamedTuple):
    """Cells of some samples, ready for steps. Nodes are numbered within a sample, its *local* nodes, parents first."""

    n_local: IntArray  # by sample
    n_cells: IntArray
    n_leaves: IntArray
    n_children: IntArray
    weight: FloatArray  # by cell
    n_path: IntArray  # by leaf
    path: IntArray
    child_ptr: IntArray  # by local node and one more for what is above the roots; begins at 0 for every sample
    child: IntArray
    z: FloatArray  # by cell and local node
    column: IntArray  # by local node
    own: ByteArray  # a true label
    gradient: FloatArray
    held: FloatArray  # Σ_k of z

    def sizes(self) -> tuple[Array, ...]:
        """Of the lists that :class:`LevelPointers` is about, but for the local nodes."""
        return self.n_cells, self.n_leaves, self.n_path, self.n_children, self.n_cells.astype(np.int64) * self.n_local

    def block(self, steps: Steps, which: PtrArray, tolerance: float, gaps: FloatArray) -> LevelBlock:
        """Some of the samples, for :func:`.batch_kernel`."""
        how = Visit(steps.allow_empty, steps.part, tolerance)
        return LevelBlock(which, steps.costs, steps.norms, self, LevelPointers(*steps.ends), steps.alpha, how, gaps)


class LayoutInParts:
    """The layout of n samples in the making, ``CHUNK`` at a time, by any threads in any order.

    ``made(slice)`` is :meth:`Levels.part` of some of them.
    """

    def __init__(self, n: int, made: Callable[[slice], list[Array]]) -> None:
        self.n, self.made = n, made
        self.parts: list[list[Array]] = [[]] * -(-n // CHUNK)

    def work(self, k: int) -> None:
        """Make the k-th part."""
        self.parts[k] = self.made(slice(k * CHUNK, min(self.n, (k + 1) * CHUNK)))

    def joined(self) -> LevelLayout:
        """All parts, which must have been made."""
        return LevelLayout(*(np.concatenate(arrays) for arrays in zip(*self.parts, strict=True)))


class Levels:
    """The cells of all samples.

    Parameters
    ----------
    truth : Ragged
        Columns of the true labels of every sample: the first label set of the working set.
    costs : array of n_samples
    columns : Columns
    above : Ragged
        Columns next above every column.
    allow_empty : bool
        A label set may be empty.
    whole : bool
        Cells are points of a relaxation.
    """

    def __init__(
        self, truth: Ragged, costs: FloatArray, columns: Columns, above: Ragged, *, allow_empty: bool = False,
        whole: bool = False,
    ) -> None:  # fmt: skip
        self.truth, self.whole = truth, whole
        self.lattice = _points(columns.n_columns) if whole else _lattice(columns, above)
        leaf_of = self.lattice.leaf_of
        self.few = LeafCandidates(above, columns.paths, allow_empty)  # the oracle on columns
        # of every sample: number of leaves of each cell, masses, leaves, levels
        self.sizes: list[IntArray] = []
        self.masses: list[FloatArray] = list(costs[:, None].copy())
        self.leaves: list[IntArray] = []
        self.levels: list[FloatArray] = []
        for i, cost in enumerate(costs.tolist()):
            mine = leaf_of[truth.row(i)]
            mine = mine[mine >= 0]
            self.sizes.append(np.array([len(mine)], np.int32))
            self.leaves.append(mine)
            self.levels.append(np.full(len(mine), cost))

    def assign(self, marginals: Updates) -> None:
        """Be these marginals, of as many samples: one whole cell each."""
        for i, (lo, hi) in enumerate(pairwise(marginals.indptr.tolist())):
            self.sizes[i] = np.array([hi - lo], np.int32)
            self.leaves[i], self.levels[i] = marginals.columns[lo:hi], marginals.values[lo:hi]

    @property
    def n_planes(self) -> int:
        """Levels that are kept."""
        return sum(map(len, self.leaves))

    def rescale(self, factors: FloatArray) -> None:
        """Multiply all variables of every sample by a factor of its own."""
        for i, factor in enumerate(factors.tolist()):
            self.masses[i] = self.masses[i] * factor
            self.levels[i] = self.levels[i] * factor

    def warm_start(self, before: FloatArray, now: FloatArray) -> None:
        """Make these variables of one path of C fit for the next costs."""
        self.rescale(np.divide(now, before, out=np.zeros_like(now), where=before > 0))
        for i in np.flatnonzero((now > 0) & ~(before > 0)):  # on its true labels, as at U = 0
            mine = self.lattice.leaf_of[self.truth.row(i)]
            mine = mine[mine >= 0]
            self.sizes[i], self.masses[i] = np.array([len(mine)], np.int32), now[i : i + 1].copy()
            self.leaves[i], self.levels[i] = mine, np.full(len(mine), now[i])

    def layout(self, samples: PtrArray, rewards: FloatArray, chosen: Array, team: Team) -> LevelLayout:
        """The cells of some samples with the leaves that may move, and cells for the label sets found."""
        leaf_columns = self.few.graph.leaf_node

        def made(some: slice) -> list[Array]:
            if self.whole:
                return self.part(samples[some], rewards[some], _NOWHERE, _NOWHERE, chosen[some])
            which, leaves = np.nonzero(chosen[some][:, leaf_columns])
            put = pointers(np.bincount(which, minlength=len(chosen[some]))), leaves.astype(np.int32)
            rising = self.rising(samples[some], rewards[some], self.few.useful(rewards[some]))
            return self.part(samples[some], rewards[some], rising, put)

        pending = LayoutInParts(len(samples), made)
        team.each(len(pending.parts), pending.work)
        return pending.joined()

    def cells(self, samples: PtrArray | None = None) -> Cells:
        """Those of some samples, or of all."""
        which: Iterable[int] = range(len(self.masses)) if samples is None else samples
        n_cells = np.array([len(self.masses[i]) for i in which], np.int32)
        tables = self.sizes, self.masses, self.leaves, self.levels
        return Cells(n_cells, *(np.concatenate([table[i] for i in which]) for table in tables))

    def rising(self, samples: PtrArray, rewards: Array, useful: Lists) -> Lists:
        """Leaves of the working set by a few samples, and those of ``useful`` that one of their cells would gain by."""
        indptr, leaves = rising_kernel(self.cells(samples), rewards, *useful, self.lattice)
        return indptr, leaves

    def part(
        self, samples: PtrArray, rewards: Array, rising: Lists, put: Lists, points: Array = _NO_POINTS
    ) -> list[Array]:
        """The layout of a few samples: leaves that cells would gain by, leaves of the sets found, or points."""
        *made, sizes = layout_kernel(
            samples, self.cells(samples), rewards, points, put, rising, self.truth, self.lattice
        )
        return [array[:size] for arrays, size in zip(made, sizes, strict=True) for array in arrays]

    def keep(self, samples: PtrArray, layout: LevelLayout) -> None:
        """Store what steps have made of a layout."""
        sizes, masses, leaves, levels, n_kept, n_entries = keep_kernel(
            pointers(layout.n_local), pointers(layout.n_cells), layout, self.lattice.leaf_of
        )
        tables: tuple[list[Array], ...] = self.sizes, self.masses, self.leaves, self.levels
        ends = n_kept, n_kept, n_entries, n_entries
        for table, found, n in zip(tables, (sizes, masses, leaves, levels), ends, strict=True):
            for i, mine in zip(samples.tolist(), np.split(found, np.cumsum(n)[:-1]), strict=True):
                table[i] = mine.copy()  # a view would keep all of the batch

    def settle(self, costs: FloatArray, allow_empty: bool) -> None:
        """Nothing to do: any levels are a point of conv(Y_m), whatever rounding has done to them."""

    def beta(self, costs: FloatArray) -> Updates:
        """β_in of all samples, sums of terms of one sign: of every cell, true nodes miss its mass less their level."""
        cells = self.cells()
        found = Updates.empty(len(costs), self._most(cells) + len(self.truth.indices))
        return found.first(beta_kernel(cells, self.lattice, self.truth, self.whole or self.few.allow_empty, found))

    def excess(self, costs: FloatArray) -> float:
        """By how much of C_i the masses of a sample exceed it at most."""
        n_cells, _, masses, _, _ = self.cells()
        owner = np.repeat(np.arange(len(n_cells)), n_cells)
        used = np.bincount(owner, masses, minlength=len(n_cells)).astype(np.float64)
        return excess(used, costs, float(n_cells.max(initial=0)))

    def _most(self, cells: Cells) -> int:
        """Columns above the leaves of cells, at most."""
        return int(np.diff(self.lattice.paths_ptr)[cells.leaves].sum())

    def held(self, samples: PtrArray | None = None) -> Updates:
        """Marginals z of some samples, or of all."""
        cells = self.cells(samples)
        found = Updates.empty(len(cells.n_cells), self._most(cells))
        held_kernel(cells, self.lattice, found)
        return found.first(found.indptr[-1])


def _lattice(columns: Columns, above: Ragged) -> Lattice:
    """The columns with the columns next above."""
    leaf_of = np.full(columns.n_columns, -1, np.int32)
    leaf_of[columns.paths.last()] = np.arange(columns.n_leaves)
    return Lattice(*above, *columns.paths, leaf_of)


def _points(n_columns: int) -> Lattice:
    """Columns of which none is above another."""
    every = np.arange(n_columns, dtype=np.int32)
    return Lattice(np.zeros(n_columns + 1, np.int64), every[:0], np.arange(n_columns + 1), every, every)


@kernel
def keep_kernel(local_ptr, cell_ptr, layout, leaf_of):
    """Cells with mass and the levels of their leaves above zero, in the form in which they are stored."""
    weight, z, column = layout.weight, layout.z, layout.column
    n = cell_ptr.shape[0] - 1
    sizes, masses = np.empty(weight.shape[0], np.int32), np.empty(weight.shape[0])
    leaves, levels = np.empty(z.shape[0], np.int32), np.empty(z.shape[0])
    n_kept, n_entries = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cell, at, top = 0, 0, 0
    for t in range(n):
        lo, hi = local_ptr[t], local_ptr[t + 1]
        begin, first = at, cell
        for k in range(cell_ptr[t], cell_ptr[t + 1]):
            if weight[k] > 0.0:
                start = at
                for j in range(hi - lo):
                    leaf = leaf_of[column[lo + j]]
                    if leaf >= 0 and z[top + j] > 0.0:
                        leaves[at] = leaf
                        levels[at] = min(z[top + j], weight[k])
                        at += 1
                sizes[cell] = at - start
                masses[cell] = weight[k]
                cell += 1
            top += hi - lo
        n_kept[t], n_entries[t] = cell - first, at - begin
    return sizes[:cell], masses[:cell], leaves[:at], levels[:at], n_kept, n_entries


@inlined
def _marginals(first, last, leaves, levels, lattice, here, few):
    """The marginals of one cell, the highest of the levels below every column, into ``here``, which is zero before.

    Returns how many columns they are, which ``few`` then lists, and the highest of all.
    """
    m, highest = 0, 0.0
    for e in range(first, last):
        if levels[e] <= 0.0:  # of a sample that costs nothing: it would be listed again and again
            continue
        highest = max(highest, levels[e])
        for q in range(lattice.paths_ptr[leaves[e]], lattice.paths_ptr[leaves[e] + 1]):
            c = lattice.paths[q]
            if here[c] == 0.0:
                few[m] = c
                m += 1
            here[c] = max(here[c], levels[e])
    return m, highest


@kernel
def held_kernel(cells, lattice, out):
    """Marginals z of every sample, the sum over its cells."""
    n_cells, sizes, _, leaves, levels = cells
    indptr, columns, values = out
    n_columns = lattice.leaf_of.shape[0]
    total, here = np.zeros(n_columns), np.zeros(n_columns)
    some, few = np.empty(n_columns, np.int32), np.empty(n_columns, np.int32)
    cell, at, top = 0, 0, 0
    for i in range(n_cells.shape[0]):
        n = 0
        for _ in range(n_cells[i]):
            m, _ = _marginals(at, at + sizes[cell], leaves, levels, lattice, here, few)
            for e in range(m):
                c = few[e]
                if total[c] == 0.0:
                    some[n] = c
                    n += 1
                total[c] += here[c]
                here[c] = 0.0
            at += sizes[cell]
            cell += 1
        for e in range(n):
            columns[top] = some[e]
            values[top] = total[some[e]]
            total[some[e]] = 0.0
            top += 1
        indptr[i + 1] = top


@kernel
def beta_kernel(cells, lattice, labels, full, out):
    """C_i 1[n∈y_i] − z_in of every sample, where not 0; returns how many entries there are.

    Every cell is told apart from the true labels by itself, so that its mass is never added to that of others and then
    taken off again. Unless cells are ``full``, the mass of a cell is its highest level, and what is beyond it belongs
    to the true labels.
    """
    n_cells, sizes, masses, leaves, levels = cells
    n_columns = lattice.leaf_of.shape[0]
    truth_ptr, truth = labels
    out_ptr, out_columns, out_values = out
    beta, here = np.zeros(n_columns), np.zeros(n_columns)
    own, met = np.zeros(n_columns, np.bool_), np.zeros(n_columns, np.bool_)
    some, few = np.empty(n_columns, np.int32), np.empty(n_columns, np.int32)
    cell, at, top = 0, 0, 0
    for i in range(n_cells.shape[0]):
        n = 0
        for e in range(truth_ptr[i], truth_ptr[i + 1]):
            own[truth[e]], met[truth[e]] = True, True
            some[n] = truth[e]
            n += 1
        for _ in range(n_cells[i]):
            m, highest = _marginals(at, at + sizes[cell], leaves, levels, lattice, here, few)
            mass = masses[cell] if full else highest
            for e in range(truth_ptr[i], truth_ptr[i + 1]):
                beta[truth[e]] += mass - here[truth[e]]
            for e in range(m):
                c = few[e]
                if not own[c]:
                    if not met[c]:
                        met[c] = True
                        some[n] = c
                        n += 1
                    beta[c] -= here[c]
                here[c] = 0.0
            at += sizes[cell]
            cell += 1
        for e in range(n):
            c = some[e]
            if beta[c] != 0.0:
                out_columns[top] = c
                out_values[top] = beta[c]
                top += 1
            beta[c] = 0.0
            own[c], met[c] = False, False
        out_ptr[i + 1] = top
    return top
