"""Cells of levels as they are stored, and the marginals that they make: kernels of :mod:`nhsvm.solvers._levels`."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel


@kernel
def keep_kernel(local_ptr, cell_ptr, weight, z, column, leaf_of):
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
def held_kernel(n_cells, sizes, leaves, levels, paths_ptr, paths, indptr, columns, values):
    """Marginals z of every sample, the sum over its cells."""
    n_columns = 0
    for c in paths:
        n_columns = max(n_columns, c + 1)
    total, here = np.zeros(n_columns), np.zeros(n_columns)
    some, few = np.empty(n_columns, np.int32), np.empty(n_columns, np.int32)
    cell, at, top = 0, 0, 0
    for i in range(n_cells.shape[0]):
        n = 0
        for _ in range(n_cells[i]):
            m = 0
            for e in range(at, at + sizes[cell]):
                if levels[e] <= 0.0:  # of a sample that costs nothing: it would be listed again and again
                    continue
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
        for e in range(n):
            columns[top] = some[e]
            values[top] = total[some[e]]
            total[some[e]] = 0.0
            top += 1
        indptr[i + 1] = top


@kernel
def beta_kernel(
    n_cells, sizes, masses, leaves, levels, paths_ptr, paths, truth_ptr, truth, full, n_columns,
    out_ptr, out_columns, out_values,
):  # fmt: skip
    """C_i 1[n∈y_i] − z_in of every sample, where not 0; returns how many entries there are.

    Every cell is told apart from the true labels by itself, so that its mass is never added to that of others and then
    taken off again. Unless cells are ``full``, the mass of a cell is its highest level, and what is beyond it belongs
    to the true labels.
    """
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
            m, highest = 0, 0.0
            for e in range(at, at + sizes[cell]):
                if levels[e] <= 0.0:
                    continue
                highest = max(highest, levels[e])
                for q in range(paths_ptr[leaves[e]], paths_ptr[leaves[e] + 1]):
                    c = paths[q]
                    if here[c] == 0.0:
                        few[m] = c
                        m += 1
                    here[c] = max(here[c], levels[e])
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
