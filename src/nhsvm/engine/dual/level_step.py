"""Block steps of samples whose dual variables are cells of levels: a kernel. See :mod:`nhsvm.engine.dual.levels`.

A sample improves (1) the level of one leaf of one cell after the other, exactly: nodes above follow, as far as no other
leaf holds them; (2) the masses of its cells, by moving some from the cell that is worth least to the one that is worth
most, the oracle's label set being one of them: a step of the pairwise Frank–Wolfe method.

A visit may be asked for a part of this. With ``USED`` leaves of level 0 are left alone: they are most of all, and gain
little; so it is in all sweeps of a batch but the first. With ``SETTLE`` only these are visited. The dual hardly gains
by that, but the primal does: after steps that change the weights of many nodes there are leaves that a little is gained
by in nearly all samples, and raising a few levels takes that away from all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nhsvm._jit import done_by, inlined, kernel
from nhsvm.engine.dual.block import step, workspace_of
from nhsvm.typing import FloatArray, IntArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine.dual.levels import LevelLayout

ALL, USED, SETTLE = 0, 1, 2  # what a visit moves
_MOVES = 12  # of mass a visit
_LEAST = 0.01  # of the tolerance: what a leaf has to gain to be visited again in the same batch
_WHOLE = 1.0 - 1e-9  # a part of a mass that is all of it: the digits of less are lost
SPARE = 8  # cells that steps may make of label sets they find themselves
UNUSED = -1.0  # the mass of these, until then
_SAME = 1e-9  # of a cell's mass: points that differ by no more are the same


class Visit(NamedTuple):
    """How the samples of a batch are visited."""

    allow_empty: bool
    part: int  # what is moved: ALL, USED or SETTLE
    tolerance: float


class LevelPointers(NamedTuple):
    """Where the lists of a layout begin that are kept one after the other, and where the last one ends."""

    local: PtrArray  # by sample
    cell: PtrArray
    leaf: PtrArray
    path: PtrArray  # by leaf
    child: PtrArray  # by sample
    z: PtrArray


class LocalGraph(NamedTuple):
    """Paths of the leaves of one sample that may move, and children of its nodes, by their local numbers."""

    path_ptr: PtrArray
    path: IntArray
    child_ptr: IntArray
    child: IntArray


@inlined
def _others(path, child_ptr, child, z, on_path, m):
    """m_n, the level that node n of the path of a leaf keeps without that leaf; from the leaf, the last, upward."""
    for e in range(path.shape[0]):
        on_path[path[e]] = e
    for e in range(path.shape[0] - 1, -1, -1):
        n = path[e]
        most = 0.0
        for k in range(child_ptr[n], child_ptr[n + 1]):
            c = child[k]
            most = max(most, m[on_path[c]] if on_path[c] >= 0 else z[c])
            if most >= z[n]:  # no node has more without a leaf than with it
                break
        m[e] = most
    for e in range(path.shape[0]):
        on_path[path[e]] = -1


@inlined
def _best_level(path, z, m, r, alpha, q, most, order):
    """The level v in [0, most] of a leaf that gains most, z_n = max(v, m_n) on its path; (v, gain).

    Nodes join v in the order of their m. Between two of them the gain is a concave parabola; the best of all is taken.
    """
    n = 0
    rest = 0.0  # gain of the nodes that have not joined: they fall back to m
    for e in range(path.shape[0] - 1, -1, -1):  # m falls along a path, so that from the leaf upward it is nearly sorted
        if m[e] >= most:  # others hold it, whatever the level
            continue
        at = n
        while at > 0 and m[order[at - 1]] > m[e]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = e
        n += 1
        change = m[e] - z[path[e]]
        rest += change * (r[path[e]] - 0.5 * q * alpha[path[e]] * change)
    first, second, third, fourth, fifth = 0.0, 0.0, 0.0, 0.0, 0.0  # Σ r, α, αz, rz, αz² of those that have joined
    level, gain = -1.0, -1e300
    for k in range(n):
        c = path[order[k]]
        change = m[order[k]] - z[c]
        rest -= change * (r[c] - 0.5 * q * alpha[c] * change)
        first += r[c]
        second += alpha[c]
        third += alpha[c] * z[c]
        fourth += r[c] * z[c]
        fifth += alpha[c] * z[c] * z[c]
        lower = m[order[k]]
        upper = m[order[k + 1]] if k + 1 < n else most
        if upper <= lower and k + 1 < n:
            continue
        curvature = q * second
        rise = first + q * third
        v = upper if rise >= curvature * upper else max(lower, rise / curvature)
        here = v * (rise - 0.5 * curvature * v) - fourth - 0.5 * q * fifth + rest
        if here > gain:
            level, gain = v, here
    return level, gain


@inlined
def _move_leaf(path, root, mass, allow_empty, graph, z, r, alpha, q, held, work):
    """The best level of one leaf of a cell; returns the gain. ``root`` has the roots of the sample as its children."""
    child_ptr, child = graph.child_ptr, graph.child
    on_path, m, order, _, _ = work
    leaf = path[path.shape[0] - 1]
    if z[leaf] == 0.0:  # no node is held by it alone
        rise = 0.0
        for e in range(path.shape[0]):
            m[e] = z[path[e]]
            if m[e] == 0.0:
                rise += r[path[e]]
        if rise <= 0.0:
            return 0.0
    else:
        _others(path, child_ptr, child, z, on_path, m)
        if not allow_empty:
            most = 0.0
            for e in range(path.shape[0]):
                on_path[path[e]] = e
            for k in range(child_ptr[root], child_ptr[root + 1]):
                c = child[k]
                most = max(most, m[on_path[c]] if on_path[c] >= 0 else z[c])
                if most >= mass:
                    break
            for e in range(path.shape[0]):
                on_path[path[e]] = -1
            if most < mass:  # some leaf must be there
                return 0.0
    level, gain = _best_level(path, z, m, r, alpha, q, mass, order)
    if gain <= 0.0:
        return 0.0
    for e in range(path.shape[0]):
        c = path[e]
        change = max(level, m[e]) - z[c]
        if change != 0.0:
            z[c] += change
            held[c] += change
            r[c] -= q * alpha[c] * change
            z[c] = max(level, m[e])
    return gain


@inlined
def _scaled(level, most, now, factor):
    """A level times ``factor``; the highest, ``most``, becomes ``now`` to the last digit, and no other exceeds it."""
    return now if level >= most else min(level * factor, now)


@inlined
def _move_mass(low, top, weight, z, r, alpha, q, held):
    """Move mass from one cell to another, as much as gains most; the gain."""
    n = r.shape[0]
    mass = weight[low]
    part = weight[top] if weight[top] > 0.0 else 1.0  # a cell without mass has its shape
    slope, curvature = 0.0, 0.0
    # nothing is stored here: else the order of the sums would depend on where the arrays happen to lie
    for c in range(n):
        d = z[top, c] / part - z[low, c] / mass
        slope += r[c] * d
        curvature += alpha[c] * d * d
    curvature *= q
    if slope <= 0.0:
        return 0.0
    step = mass if slope >= _WHOLE * curvature * mass else slope / curvature
    grown = weight[top] + step
    left = 1.0 if step == mass else mass - step  # a cell without mass again
    for c in range(n):
        d = z[top, c] / part - z[low, c] / mass
        z[top, c] = _scaled(z[top, c], part, grown, grown / part)
        z[low, c] = _scaled(z[low, c], mass, left, left / mass)
        if d != 0.0:
            held[c] += step * d
            r[c] -= q * alpha[c] * step * d
    weight[top] = grown
    weight[low] = 0.0 if step == mass else left
    return step * (slope - 0.5 * curvature * step)


@inlined
def _best_set(path_ptr, path, r, inside, below, allow_empty):
    """A label set of the leaves that may move, by putting in and taking out one at a time; what it is worth.

    ``below`` has the leaves of the set at or below every node, ``inside`` whether a leaf is one of them.
    """
    n = path_ptr.shape[0] - 1
    least = 0.0
    for c in range(r.shape[0]):
        below[c] = 0
        least += abs(r[c])
    least *= 1e-12  # leaves that rounding alone makes worth it could take turns for ever
    size, total = 0, 0.0
    k, left, one, most = 0, n, 0, -1e300
    for e in range(n):
        inside[e] = 0
    while left > 0:
        own = inside[k]
        worth = 0.0
        for e in range(path_ptr[k], path_ptr[k + 1]):
            worth += r[path[e]] if below[path[e]] == own else 0.0  # only this leaf holds it, or would
        if size == 0 and worth > most:
            one, most = k, worth
        sign = 1 - 2 * own
        left -= 1
        if sign * worth > least and (own == 0 or size > 1 or allow_empty):
            total += sign * worth
            size += sign
            inside[k] = 1 - own
            for e in range(path_ptr[k], path_ptr[k + 1]):
                below[path[e]] += sign
            left = n - 1
        k = k + 1 if k + 1 < n else 0
    if size == 0 and not allow_empty and n > 0:
        total = most
        for e in range(path_ptr[one], path_ptr[one + 1]):
            below[path[e]] = 1
    return total


@inlined
def _visit(C, q, how, weight, graph, z, r, alpha, held, still, work):
    """Improve the cells of one sample; returns the gain. ``r`` and ``held``, Σ_k of z, follow.

    ``still`` has the leaves of every cell that were at their best when they were last visited: these are left alone.
    """
    allow_empty, part, tolerance = how
    path_ptr, path = graph.path_ptr, graph.path
    _, _, _, inside, below = work
    n_cells, n, n_leaves = weight.shape[0], r.shape[0], path_ptr.shape[0] - 1
    enough = _LEAST * tolerance * C / max(1, n_leaves)
    gained = 0.0
    for k in range(n_cells):
        if weight[k] <= 0.0:
            continue
        for e in range(n_leaves):
            if still[k * n_leaves + e] == 1:
                continue
            mine = path[path_ptr[e] : path_ptr[e + 1]]
            idle = z[k, mine[mine.shape[0] - 1]] == 0.0
            if (idle and part == USED) or (not idle and part == SETTLE):
                continue
            gain = _move_leaf(mine, n, weight[k], allow_empty, graph, z[k], r, alpha, q, held, work)
            gained += gain
            still[k * n_leaves + e] = gain <= enough
    for _ in range(_MOVES if n_cells > 1 and part != SETTLE else 0):
        top, low, best, least, unused = 0, 0, -1e300, 1e300, -1
        for k in range(n_cells):
            if weight[k] == UNUSED:
                unused = k
                continue
            worth = 0.0
            for c in range(n):
                worth += r[c] * z[k, c]
            if weight[k] > 0.0:
                worth /= weight[k]
                if worth < least:
                    low, least = k, worth
            if worth > best:
                top, best = k, worth
        if unused >= 0:
            worth = _best_set(path_ptr, path, r, inside, below, allow_empty)
            if worth > best + 0.1 * tolerance:
                top, best = unused, worth
                weight[top] = 0.0
                for c in range(n):
                    z[top, c] = below[c] > 0
        if low == top or best - least <= 0.1 * tolerance:
            break
        gained += _move_mass(low, top, weight, z, r, alpha, q, held)
    return gained


class LevelBlock(NamedTuple):
    """Cells of some samples of a layout, with the gradients from before the batch."""

    which: PtrArray  # positions in the layout
    costs: FloatArray
    norms: FloatArray
    layout: LevelLayout
    ends: LevelPointers
    alpha: FloatArray
    how: Visit
    gaps: FloatArray  # filled: as they were in the first sweep


@done_by(workspace_of, LevelBlock)
def _level_workspace(block):
    local_ptr, cell_ptr, leaf_ptr = block.ends.local, block.ends.cell, block.ends.leaf
    n_local, n_leaves = 0, 0
    at_still = np.zeros(block.which.shape[0] + 1, np.int64)
    for b in range(block.which.shape[0]):
        t = block.which[b]
        n_local = max(n_local, local_ptr[t + 1] - local_ptr[t])
        n_leaves = max(n_leaves, leaf_ptr[t + 1] - leaf_ptr[t])
        at_still[b + 1] = at_still[b] + (cell_ptr[t + 1] - cell_ptr[t]) * (leaf_ptr[t + 1] - leaf_ptr[t])
    still = np.zeros(at_still[block.which.shape[0]], np.uint8)
    visits = (
        np.full(n_local, -1, np.int32), np.empty(n_local), np.empty(n_local, np.int32), np.empty(n_leaves, np.int32),
        np.empty(n_local, np.int32),
    )  # fmt: skip
    own = visits, still, at_still, np.empty(n_local), np.empty(n_local), np.empty(n_local)
    return own, np.empty(n_local, np.int32), np.empty(n_local)


@done_by(step, LevelBlock)
def _level_step(block, b, sweep, corrections, work):
    which, costs, norms, layout, ends, alpha, how, gaps = block
    local_ptr, cell_ptr, leaf_ptr, path_ptr, child_at, z_ptr = ends
    column, gradient, held = layout.column, layout.gradient, layout.held
    row_of, values = corrections
    (visits, still, at_still, r, a, before), columns, changes = work
    allow_empty, part, tolerance = how
    t = which[b]
    mine = still[at_still[b] : at_still[b + 1]]
    if sweep % 2 == 0:  # every other sweep is over all leaves: half of the time, and nearly all of the gain
        for e in range(mine.shape[0]):
            mine[e] = 0
    lo, hi = local_ptr[t], local_ptr[t + 1]
    n = hi - lo
    for j in range(n):
        c = column[lo + j]
        a[j] = alpha[c]
        before[j] = held[lo + j]
        r[j] = gradient[lo + j]
        if row_of[c] >= 0:
            r[j] += values[row_of[c], b]
    n_cells = cell_ptr[t + 1] - cell_ptr[t]
    shapes = layout.z[z_ptr[t] : z_ptr[t + 1]].reshape((n_cells, n))
    graph = LocalGraph(
        path_ptr[leaf_ptr[t] : leaf_ptr[t + 1] + 1], layout.path, layout.child_ptr[lo + 2 * t : hi + 2 * t + 2],
        layout.child[child_at[t] :],
    )  # fmt: skip
    what = Visit(allow_empty, USED if part == ALL and sweep > 0 else part, tolerance)
    gain = _visit(
        costs[t], norms[t], what, layout.weight[cell_ptr[t] : cell_ptr[t + 1]], graph, shapes, r[:n], a[:n],
        held[lo:hi], mine, visits,
    )  # fmt: skip
    if sweep == 0:
        gaps[b] = 2.0 * gain  # a parabola's gap, seen from its start
    n_changed = 0
    for j in range(n):
        change = before[j] - held[lo + j]
        if change != 0.0:
            columns[n_changed] = column[lo + j]
            changes[n_changed] = alpha[column[lo + j]] * change
            n_changed += 1
    return gain, n_changed


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
def rising_kernel(cells, rewards, useful_ptr, useful, lattice):
    """Working sets, and leaves of ``useful`` that one of the cells would gain by; ascending lists, a sample each."""
    n_cells, sizes, _, leaves, _ = cells
    paths_ptr, paths = lattice.paths_ptr, lattice.paths
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
def layout_kernel(samples, cells, rewards, points, put_lists, rising_lists, labels, lattice):
    """See :meth:`Levels.layout`; gives the arrays of a :class:`LevelLayout`.

    ``rising_lists`` are the leaves of every sample that a cell would gain by, ``put_lists`` the sets that were found.
    Where ``points`` were found, cells are whole, and have no leaves that may move.
    """
    n_cells, sizes, mass, leaves, levels = cells
    put_ptr, put = put_lists
    rising_ptr, rising = rising_lists
    truth_ptr, truth = labels
    above_ptr, above, paths_ptr, paths, leaf_of = lattice
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
