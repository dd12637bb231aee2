"""What the steps of a sample need, laid out in arrays: a kernel. See :meth:`nhsvm.solvers._levels.Levels.layout`."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel

SPARE = 8  # cells that steps may make of label sets they find themselves
UNUSED = -1.0  # the mass of these, until then
_SAME = 1e-9  # of a cell's mass: points that differ by no more are the same


@inlined
def _room(array, needed):
    """The same entries with room for ``needed``."""
    if needed <= array.shape[0]:
        return array
    larger = np.empty(2 * needed, array.dtype)
    for e in range(array.shape[0]):  # a slice takes seconds to compile
        larger[e] = array[e]
    return larger


@inlined
def _listed(item, mark, found, n):
    """Add an item to the list unless it is marked; the size of the list."""
    if mark[item] == 0:
        mark[item] = 1
        found[n] = item
        n += 1
    return n


@kernel
def rising_kernel(n_cells, sizes, leaves, rewards, useful_ptr, useful, paths_ptr, paths):
    """Leaves in use, and those of ``useful`` that one of the cells would gain by; ascending lists, a sample each."""
    n, n_leaves = n_cells.shape[0], paths_ptr.shape[0] - 1
    held, active = np.zeros(rewards.shape[1], np.bool_), np.zeros(n_leaves, np.uint8)
    indptr, found = np.zeros(n + 1, np.int64), np.empty(useful.shape[0] + leaves.shape[0], np.int32)
    cell, at, size = 0, 0, 0
    for t in range(n):
        r, begin = rewards[t], size
        for _ in range(n_cells[t]):
            for e in range(at, at + sizes[cell]):
                size = _listed(leaves[e], active, found, size)
                for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                    held[paths[q]] = True
            for e in range(useful_ptr[t], useful_ptr[t + 1]):
                leaf, rise = useful[e], 0.0
                if active[leaf] == 0:
                    for q in range(paths_ptr[leaf], paths_ptr[leaf + 1]):
                        rise += 0.0 if held[paths[q]] else r[paths[q]]
                if rise > 0.0:
                    size = _listed(leaf, active, found, size)
            for e in range(at, at + sizes[cell]):
                for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                    held[paths[q]] = False
            at += sizes[cell]
            cell += 1
        for e in range(begin, size):
            active[found[e]] = 0
        found[begin:size].sort()
        indptr[t + 1] = size
    return indptr, found[:size].copy()


@kernel
def layout_kernel(
    samples, n_cells, sizes, mass, leaves, levels, rewards, points, put_ptr, put, rising_ptr, rising, truth_ptr, truth,
    above_ptr, above, paths_ptr, paths, leaf_of,
):  # fmt: skip
    """See :meth:`Levels.layout`; gives the arrays of a :class:`Shelves`.

    ``rising`` has the leaves of every sample that a cell would gain by, ``put`` those of the set that was found. Where
    ``points`` were found, cells are whole, and have no leaves that may move.
    """
    whole = points.shape[0] > 0
    n_columns, n_leaves = leaf_of.shape[0], paths_ptr.shape[0] - 1
    n = samples.shape[0]
    true = np.zeros(n_columns, np.uint8)
    active, mark = np.zeros(n_leaves, np.uint8), np.zeros(n_columns, np.uint8)
    slot, fill = np.empty(n_columns, np.int32), np.empty(n_columns + 1, np.int32)
    some, nodes = np.empty(n_leaves, np.int32), np.empty(n_columns, np.int32)
    o_local, o_cells, o_leaves, o_children = (
        np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)
    )  # fmt: skip
    o_mass = np.zeros(mass.shape[0] + n * (1 + SPARE))
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
        first_cell, first = cell, at
        n_some = 0
        for _ in range(n_cells[t]):
            for e in range(at, at + sizes[cell]):
                n_some = _listed(leaves[e], active, some, n_some)
            at += sizes[cell]
            cell += 1
        for e in range(rising_ptr[t], rising_ptr[t + 1]):
            n_some = _listed(rising[e], active, some, n_some)
        for e in range(put_ptr[t], put_ptr[t + 1]):
            n_some = _listed(put[e], active, some, n_some)
        for leaf in range(n_leaves if whole else 0):  # every column is one
            if points[t, leaf] > 0:
                n_some = _listed(leaf, active, some, n_some)
        mine = some[:n_some]
        mine.sort()
        n_local = 0
        for leaf in mine:
            for q in range(paths_ptr[leaf], paths_ptr[leaf + 1]):
                n_local = _listed(paths[q], mark, nodes, n_local)
        nodes[:n_local].sort()
        o_column, o_own = _room(o_column, t_local + n_local), _room(o_own, t_local + n_local)
        o_r, o_held = _room(o_r, t_local + n_local), _room(o_held, t_local + n_local)
        for j in range(n_local):
            c = nodes[j]
            mark[c] = 0
            slot[c] = j
            o_column[t_local + j] = c
            o_own[t_local + j] = true[c]
            o_r[t_local + j] = r[c]
            o_held[t_local + j] = 0.0
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
        for leaf in mine:
            active[leaf] = 0
            if not whole:
                o_npath = _room(o_npath, t_leaf + 1)
                o_npath[t_leaf] = paths_ptr[leaf + 1] - paths_ptr[leaf]
                o_path = _room(o_path, t_path + o_npath[t_leaf])
                for q in range(paths_ptr[leaf], paths_ptr[leaf + 1]):
                    o_path[t_path] = slot[paths[q]]
                    t_path += 1
                t_leaf += 1
        # levels of nodes, and the cell of the oracle's set, which has no mass yet
        o_z = _room(o_z, t_z + (n_cells[t] + 1 + SPARE) * n_local)
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
        known = False
        if whole:  # a point that is found again and again must not become more and more cells
            for k in range(1, n_cells[t] + 1):
                far = 0.0
                for j in range(n_local):
                    there = o_z[t_z - k * n_local + j]
                    far = max(far, abs(there - o_mass[t_cell - k] * points[t, o_column[t_local + j]]))
                known = known or far <= _SAME * o_mass[t_cell - k]
        if not known:
            for j in range(n_local):
                o_z[t_z + j] = points[t, o_column[t_local + j]] if whole else 0.0
            for e in range(put_ptr[t], put_ptr[t + 1]):
                for q in range(paths_ptr[put[e]], paths_ptr[put[e] + 1]):
                    o_z[t_z + slot[paths[q]]] = 1.0
            t_z += n_local
            o_mass[t_cell] = 0.0
            t_cell += 1
            o_cells[t] = 1
        if not whole:
            for _ in range(SPARE):
                o_mass[t_cell] = UNUSED
                t_cell += 1
            t_z += SPARE * n_local  # their levels come with a label set
            o_cells[t] += SPARE
        o_cells[t] += n_cells[t]
        o_local[t], o_leaves[t], o_children[t] = n_local, t_leaf - first_leaf, n_children
        t_local += n_local
        for e in range(truth_ptr[samples[t]], truth_ptr[samples[t] + 1]):
            true[truth[e]] = 0
    return (
        (o_local, o_cells, o_leaves, o_children), (o_mass,), (o_npath,), (o_path,), (o_ptr,), (o_child,), (o_z,),
        (o_column, o_own, o_r, o_held), (n, t_cell, t_leaf, t_path, t_ptr, t_child, t_z, t_local),
    )  # fmt: skip
