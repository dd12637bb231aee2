"""Dual variables of samples with several labels on a DAG: node marginals, kept as a mixture of cells of levels.

As on a tree (:mod:`nhsvm.solvers._marginals`) the dual of sample i needs only z_i in C_i conv(Y_m). On a DAG conv(Y_m)
has no short description, and its vertices are too small a piece of it: a point with k nodes that are neither in nor out
needs about k of them. A *cell of levels* is a larger piece. Give every leaf l a level v_l in [0, a], the highest being
a; then for every t in (0, a) the leaves with v_l > t, and all above them, are a label set, and their average has

    z_n = max of v_l over the leaves l below n.

So any levels are a point of a·conv(Y_m), whatever the graph, and one number a leaf describes it. z_i is a sum of a few
such cells with masses a_k, Σ_k a_k = C_i: several are needed where nodes exclude each other. Every label set that the
oracle finds can become a cell. :mod:`nhsvm.solvers._level_step` has the steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm._jit import inlined, kernel
from nhsvm.columns import Columns
from nhsvm.hierarchy.graph import FloatArray, IntArray, PtrArray, Ragged
from nhsvm.solvers._level_step import level_batch_kernel
from nhsvm.solvers._steps import Steps, pointers
from nhsvm.solvers._threads import Team
from nhsvm.solvers._updates import Updates

_CHUNK = 16  # samples that a thread lays out at a time


class Lattice(NamedTuple):
    """The columns as a graph."""

    above_ptr: PtrArray  # columns next above
    above: IntArray
    paths_ptr: PtrArray  # columns of every leaf, itself last
    paths: IntArray
    leaf_of: IntArray  # of a column, or −1


class Shelves(NamedTuple):
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
    own: npt.NDArray[np.uint8]  # a true label
    gradient: FloatArray
    held: FloatArray  # Σ_k of z


class Levels:
    """The cells of all samples.

    Parameters
    ----------
    truth : Ragged
        Columns of the true labels of every sample: the first label set in use.
    costs : array of n_samples
    columns : Columns
    above : Ragged
        Columns next above every column.
    """

    def __init__(self, truth: Ragged, costs: FloatArray, columns: Columns, above: Ragged) -> None:
        self.truth = truth
        leaf_of = np.full(columns.n_columns, -1, np.int32)
        leaf_of[columns.paths.indices[columns.paths.indptr[1:] - 1]] = np.arange(columns.n_leaves)
        self.lattice = Lattice(*above, *columns.paths, leaf_of)
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

    @property
    def n_planes(self) -> int:
        """Levels that are kept."""
        return sum(map(len, self.leaves))

    @property
    def n_cells(self) -> int:
        return sum(map(len, self.masses))

    def rescale(self, factors: FloatArray) -> None:
        """Multiply all variables of every sample."""
        for i, factor in enumerate(factors.tolist()):
            self.masses[i] = self.masses[i] * factor
            self.levels[i] = self.levels[i] * factor

    def layout(self, samples: PtrArray, rewards: FloatArray, chosen: npt.NDArray[np.uint8], team: Team) -> Shelves:
        """The cells of some samples with the leaves that may move, and cells for the label sets found.

        Parameters
        ----------
        samples : array
        rewards : array of (n, n_columns)
            Gradient of every node.
        chosen : array of (n, n_columns)
            What the oracle has found.
        team : Team
        """
        n = len(samples)
        parts: list[Any] = [None] * -(-n // _CHUNK)

        def work(lo: int, hi: int) -> None:
            for k in range(lo, hi):
                some = slice(k * _CHUNK, min(n, (k + 1) * _CHUNK))
                mine = samples[some]
                kept = [
                    np.concatenate([table[i] for i in mine])
                    for table in (self.sizes, self.masses, self.leaves, self.levels)
                ]
                n_cells = np.array([len(self.masses[i]) for i in mine], np.int32)
                *made, sizes = _layout_kernel(
                    mine, n_cells, *kept, rewards[some], chosen[some], *self.truth, *self.lattice
                )
                parts[k] = [array[:size] for arrays, size in zip(made, sizes, strict=True) for array in arrays]

        team.split(len(parts), work)
        return Shelves(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def keep(self, samples: PtrArray, layout: Shelves) -> None:
        """Store what steps have made of a layout."""
        sizes, masses, leaves, levels, n_kept, n_entries = _keep_kernel(
            pointers(layout.n_local),
            pointers(layout.n_cells),
            layout.weight,
            layout.z,
            layout.column,
            self.lattice.leaf_of,
        )  # fmt: skip
        cells, entries = np.cumsum(n_kept)[:-1], np.cumsum(n_entries)[:-1]
        groups = zip(
            samples.tolist(), np.split(sizes, cells), np.split(masses, cells), np.split(leaves, entries),
            np.split(levels, entries), strict=True,
        )  # fmt: skip
        for i, *found in groups:  # copies: a view would keep all of the batch
            self.sizes[i], self.masses[i], self.leaves[i], self.levels[i] = (array.copy() for array in found)

    def steps(
        self, layout: Shelves, costs: FloatArray, norms: FloatArray, alpha: FloatArray, allow_empty: bool
    ) -> LevelSteps:
        """Block steps on a layout."""
        return LevelSteps(layout, costs, norms, alpha, allow_empty)

    def loss(self, costs: FloatArray, weights: FloatArray, offset: FloatArray) -> float:
        """Σ_i Σ_y a_iy Δ(y, y_i) for Δ = Σ_n w_n 1[n in one of y, y_i] + o_n (1[n∈y] − 1[n∈y_i])."""
        indptr, columns, values = self.held()
        return float(_loss_kernel(indptr, columns, values, *self.truth, costs, weights, offset))

    def coefficients(self, costs: FloatArray, alpha: FloatArray) -> Updates:
        """α_n β_in of all samples."""
        held, truth = self.held(), self.truth
        n = len(held.columns) + len(truth.indices)
        found = Updates(np.zeros(len(costs) + 1, np.int64), np.empty(n, np.int32), np.empty(n))
        _coefficients_kernel(*held, *truth, costs, alpha, *found)
        total = found.indptr[-1]
        return Updates(found.indptr, found.columns[:total], found.values[:total])

    def held(self) -> Updates:
        """Marginals z of all samples."""
        n_cells = np.array([len(mass) for mass in self.masses], np.int32)
        kept = [np.concatenate(table) for table in (self.sizes, self.leaves, self.levels)]
        indptr = np.zeros(len(n_cells) + 1, np.int64)
        columns, values = _held_kernel(n_cells, *kept, *self.lattice, indptr)
        return Updates(indptr, columns[: indptr[-1]], values[: indptr[-1]])


class LevelSteps(Steps):
    """Steps of a sample's levels and masses."""

    tells = False
    layout: Shelves

    def __init__(
        self, layout: Shelves, costs: FloatArray, norms: FloatArray, alpha: FloatArray, allow_empty: bool
    ) -> None:
        super().__init__(layout, costs, norms, alpha, allow_empty)
        self.cell_ptr, self.leaf_ptr = pointers(layout.n_cells), pointers(layout.n_leaves)
        self.path_ptr, self.child_at = pointers(layout.n_path), pointers(layout.n_children)
        self.z_ptr = pointers(layout.n_cells.astype(np.int64) * layout.n_local)

    def _visit(
        self, which: PtrArray, gram: FloatArray, room: FloatArray, tolerance: float, sweeps: int, gaps: FloatArray
    ) -> float:
        layout = self.layout
        return float(
            level_batch_kernel(
                which, self.costs, self.norms, self.local_ptr, layout.column, layout.gradient, layout.held,
                self.cell_ptr, layout.weight, self.leaf_ptr, self.path_ptr, layout.path, self.child_at,
                layout.child_ptr, layout.child, self.z_ptr, layout.z, gram, room, self.alpha, self.allow_empty,
                tolerance, sweeps, gaps,
            )
        )  # fmt: skip


@inlined
def _room(array, needed):
    """The same entries with room for ``needed``."""
    if needed <= array.shape[0]:
        return array
    larger = np.empty(2 * needed, array.dtype)
    for e in range(array.shape[0]):  # a slice takes seconds to compile
        larger[e] = array[e]
    return larger


@kernel
def _layout_kernel(
    samples, n_cells, sizes, mass, leaves, levels, rewards, chosen, truth_ptr, truth, above_ptr, above, paths_ptr,
    paths, leaf_of,
):  # fmt: skip
    """See :meth:`Levels.layout`; gives the arrays of a :class:`Shelves`."""
    n_columns, n_leaves = leaf_of.shape[0], paths_ptr.shape[0] - 1
    n = samples.shape[0]
    z_at, true = np.zeros(n_columns), np.zeros(n_columns, np.uint8)
    active, mark = np.zeros(n_leaves, np.uint8), np.zeros(n_columns, np.uint8)
    slot, fill = np.empty(n_columns, np.int32), np.empty(n_columns + 1, np.int32)
    o_local, o_cells, o_leaves, o_children = (
        np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    )  # fmt: skip
    o_mass = np.zeros(mass.shape[0] + n)
    o_npath, o_path = np.empty(64, np.int32), np.empty(256, np.int32)
    o_ptr, o_child = np.empty(256, np.int32), np.empty(256, np.int32)
    o_z = np.empty(256)
    o_column, o_own, o_r, o_held = np.empty(256, np.int32), np.empty(256, np.uint8), np.empty(256), np.empty(256)
    t_cell, t_leaf, t_path, t_ptr, t_child, t_z, t_local = 0, 0, 0, 0, 0, 0, 0
    cell, at = 0, 0
    for t in range(n):
        r = rewards[t]
        for e in range(truth_ptr[samples[t]], truth_ptr[samples[t] + 1]):
            true[truth[e]] = 1
        # leaves that are in a cell, or that a cell would gain by, or that the oracle has chosen
        first_cell, first = cell, at
        for _ in range(n_cells[t]):
            for e in range(at, at + sizes[cell]):
                active[leaves[e]] = 1
                for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                    z_at[paths[q]] = 1.0
            for leaf in range(n_leaves):
                if active[leaf] == 0:
                    rise = 0.0
                    for q in range(paths_ptr[leaf], paths_ptr[leaf + 1]):
                        rise += r[paths[q]] if z_at[paths[q]] == 0.0 else 0.0
                    if rise > 0.0:
                        active[leaf] = 1
            for e in range(at, at + sizes[cell]):
                for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                    z_at[paths[q]] = 0.0
            at += sizes[cell]
            cell += 1
        for c in range(n_columns):
            if chosen[t, c] == 1 and leaf_of[c] >= 0:
                active[leaf_of[c]] = 1
        for leaf in range(n_leaves):
            if active[leaf] == 1:
                for q in range(paths_ptr[leaf], paths_ptr[leaf + 1]):
                    mark[paths[q]] = 1
        n_local = 0
        o_column, o_own = _room(o_column, t_local + n_columns), _room(o_own, t_local + n_columns)
        o_r, o_held = _room(o_r, t_local + n_columns), _room(o_held, t_local + n_columns)
        for c in range(n_columns):
            if mark[c] == 1:
                mark[c] = 0
                slot[c] = n_local
                o_column[t_local + n_local] = c
                o_own[t_local + n_local] = true[c]
                o_r[t_local + n_local] = r[c]
                o_held[t_local + n_local] = 0.0
                n_local += 1
        # lists of children; those of what is above all are the last
        o_ptr = _room(o_ptr, t_ptr + n_local + 2)
        for j in range(n_local + 2):
            o_ptr[t_ptr + j] = 0
        for j in range(n_local):
            c = o_column[t_local + j]
            for q in range(above_ptr[c], above_ptr[c + 1]):
                o_ptr[t_ptr + slot[above[q]] + 1] += 1
            if above_ptr[c + 1] == above_ptr[c]:
                o_ptr[t_ptr + n_local + 1] += 1
        for j in range(n_local + 1):
            fill[j] = o_ptr[t_ptr + j]
            o_ptr[t_ptr + j + 1] += o_ptr[t_ptr + j]
            fill[j] = o_ptr[t_ptr + j]
        n_children = o_ptr[t_ptr + n_local + 1]
        o_child = _room(o_child, t_child + n_children)
        for j in range(n_local):
            c = o_column[t_local + j]
            for q in range(above_ptr[c], above_ptr[c + 1]):
                p = slot[above[q]]
                o_child[t_child + fill[p]] = j
                fill[p] += 1
            if above_ptr[c + 1] == above_ptr[c]:
                o_child[t_child + fill[n_local]] = j
                fill[n_local] += 1
        t_ptr += n_local + 2
        t_child += n_children
        # paths
        first_leaf = t_leaf
        for leaf in range(n_leaves):
            if active[leaf] == 1:
                active[leaf] = 0
                o_npath = _room(o_npath, t_leaf + 1)
                o_npath[t_leaf] = paths_ptr[leaf + 1] - paths_ptr[leaf]
                o_path = _room(o_path, t_path + o_npath[t_leaf])
                for q in range(paths_ptr[leaf], paths_ptr[leaf + 1]):
                    o_path[t_path] = slot[paths[q]]
                    t_path += 1
                t_leaf += 1
        # levels of nodes, and the cell of the oracle's set, which has no mass yet
        o_z = _room(o_z, t_z + (n_cells[t] + 1) * n_local)
        begin = first
        for k in range(first_cell, cell):
            for j in range(n_local):
                o_z[t_z + j] = 0.0
            for e in range(begin, begin + sizes[k]):
                for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                    j = slot[paths[q]]
                    o_z[t_z + j] = max(o_z[t_z + j], levels[e])
            for j in range(n_local):
                o_held[t_local + j] += o_z[t_z + j]
            begin += sizes[k]
            t_z += n_local
            o_mass[t_cell] = mass[k]
            t_cell += 1
        for j in range(n_local):
            o_z[t_z + j] = chosen[t, o_column[t_local + j]]
        t_z += n_local
        o_mass[t_cell] = 0.0
        t_cell += 1
        o_local[t], o_cells[t], o_leaves[t], o_children[t] = n_local, n_cells[t] + 1, t_leaf - first_leaf, n_children
        t_local += n_local
        for e in range(truth_ptr[samples[t]], truth_ptr[samples[t] + 1]):
            true[truth[e]] = 0
    return (
        (o_local, o_cells, o_leaves, o_children), (o_mass,), (o_npath,), (o_path,), (o_ptr,), (o_child,), (o_z,),
        (o_column, o_own, o_r, o_held), (n, t_cell, t_leaf, t_path, t_ptr, t_child, t_z, t_local),
    )  # fmt: skip


@kernel
def _keep_kernel(local_ptr, cell_ptr, weight, z, column, leaf_of):
    """Cells with mass and the levels of their leaves above zero, in the form in which they are stored."""
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


@kernel
def _held_kernel(n_cells, sizes, leaves, levels, above_ptr, above, paths_ptr, paths, leaf_of, indptr):
    """Marginals z of every sample, the sum over its cells; (columns, values), which have room to spare."""
    total, here = np.zeros(leaf_of.shape[0]), np.zeros(leaf_of.shape[0])
    some, few = np.empty(leaf_of.shape[0], np.int32), np.empty(leaf_of.shape[0], np.int32)
    columns, values = np.empty(1024, np.int32), np.empty(1024)
    cell, at, top = 0, 0, 0
    for i in range(n_cells.shape[0]):
        n = 0
        for _ in range(n_cells[i]):
            m = 0
            for e in range(at, at + sizes[cell]):
                for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                    c = paths[q]
                    if here[c] == 0.0:
                        few[m] = c
                        m += 1
                    here[c] = max(here[c], levels[e])
            for e in range(m):
                c = few[e]
                if total[c] == 0.0:
                    some[n] = c
                    n += 1
                total[c] += here[c]
                here[c] = 0.0
            at += sizes[cell]
            cell += 1
        columns, values = _room(columns, top + n), _room(values, top + n)
        for e in range(n):
            columns[top] = some[e]
            values[top] = total[some[e]]
            total[some[e]] = 0.0
            top += 1
        indptr[i + 1] = top
    return columns, values


@kernel
def _loss_kernel(indptr, columns, values, truth_ptr, truth, costs, weights, offset):
    own = np.zeros(weights.shape[0], np.uint8)
    total = 0.0
    for i in range(costs.shape[0]):
        for e in range(truth_ptr[i], truth_ptr[i + 1]):
            own[truth[e]] = 1
            total += costs[i] * (weights[truth[e]] - offset[truth[e]])
        for e in range(indptr[i], indptr[i + 1]):
            c = columns[e]
            total += values[e] * ((-weights[c] if own[c] == 1 else weights[c]) + offset[c])
        for e in range(truth_ptr[i], truth_ptr[i + 1]):
            own[truth[e]] = 0
    return total


@kernel
def _coefficients_kernel(
    indptr, columns, values, truth_ptr, truth, costs, alpha, out_ptr, out_columns, out_values
):  # fmt: skip
    beta = np.zeros(alpha.shape[0])
    met = np.zeros(alpha.shape[0], np.uint8)
    top = 0
    for i in range(costs.shape[0]):
        first = top
        for e in range(truth_ptr[i], truth_ptr[i + 1]):
            c = truth[e]
            beta[c] = costs[i]
            met[c] = 1
            out_columns[top] = c
            top += 1
        for e in range(indptr[i], indptr[i + 1]):
            c = columns[e]
            beta[c] -= values[e]
            if met[c] == 0:
                met[c] = 1
                out_columns[top] = c
                top += 1
        last, top = top, first
        for e in range(first, last):
            c = out_columns[e]
            if abs(beta[c]) > 1e-14 * costs[i]:
                out_columns[top] = c
                out_values[top] = alpha[c] * beta[c]
                top += 1
            beta[c] = 0.0
            met[c] = 0
        out_ptr[i + 1] = top
