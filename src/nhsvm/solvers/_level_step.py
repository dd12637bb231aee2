"""Block steps of samples whose dual variables are cells of levels: a kernel. See :mod:`nhsvm.solvers._levels`.

A sample improves (1) the level of one leaf of one cell after the other, exactly: nodes above follow, as far as no other
leaf holds them; (2) the masses of its cells, by moving some from the cell that is worth least to the one that is worth
most, the oracle's label set being one of them: a step of the pairwise Frank–Wolfe method.

A visit may be asked for a part of this. With ``USED`` leaves of level 0 are left alone: they are most of all, and gain
little; so it is in all sweeps of a batch but the first. With ``SETTLE`` only these are looked at. The dual hardly gains
by that, but the primal does: after steps that change the weights of many nodes there are leaves that a little is gained
by in nearly all samples, and raising a few levels takes that away from all of them.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.solvers._level_layout import UNUSED

ALL, USED, SETTLE = 0, 1, 2  # what a visit moves
_MOVES = 12  # of mass a visit
_LEAST = 0.01  # of the tolerance: what a leaf has to gain to be visited again in the same batch
_WHOLE = 1.0 - 1e-9  # a part of a mass that is all of it: the digits of less are lost


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
def _move_leaf(path, root, mass, allow_empty, child_ptr, child, z, r, alpha, q, held, on_path, m, order):
    """The best level of one leaf of a cell; returns the gain. ``root`` has the roots of the sample as its children."""
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
def _visit(
    C, q, tolerance, allow_empty, part, weight, path_ptr, path, child_ptr, child, z, r, alpha, held, still, work
):  # fmt: skip
    """Improve the cells of one sample; returns the gain. ``r`` and ``held``, Σ_k of z, follow.

    ``still`` has the leaves of every cell that were at their best when they were last visited: these are left alone.
    """
    on_path, m, order, inside, below = work
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
            gain = _move_leaf(
                mine, n, weight[k], allow_empty, child_ptr, child, z[k], r, alpha, q, held, on_path, m, order
            )
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


@kernel
def level_batch_kernel(
    which, costs, norms, local_ptr, column, gradient, held, cell_ptr, weight, leaf_ptr, path_ptr, path, child_at,
    child_ptr, child, z_ptr, z, gram, corrections, alpha, allow_empty, part, tolerance, sweeps, gaps,
):  # fmt: skip
    """Visits of some samples of a layout, in order, ``sweeps`` times; returns the gain, and fills the gaps first met.

    ``gradient`` is from before the batch; ``corrections[place[n], b]`` is what the steps taken since have added to the
    score of column n for the b-th of them.
    """
    n_local, n_still, n_leaves = 0, 0, 0
    for t in which:
        n_local = max(n_local, local_ptr[t + 1] - local_ptr[t])
        n_leaves = max(n_leaves, leaf_ptr[t + 1] - leaf_ptr[t])
        n_still += (cell_ptr[t + 1] - cell_ptr[t]) * (leaf_ptr[t + 1] - leaf_ptr[t])
    still = np.zeros(n_still, np.uint8)
    work = (
        np.full(n_local, -1, np.int32), np.empty(n_local), np.empty(n_local, np.int32), np.empty(n_leaves, np.int32),
        np.empty(n_local, np.int32),
    )  # fmt: skip
    r, a, before = np.empty(n_local), np.empty(n_local), np.empty(n_local)
    place = np.full(alpha.shape[0], -1, np.int32)
    n_places = 0
    total = 0.0
    for sweep in range(sweeps):
        moved = False
        at_still = 0
        what = USED if part == ALL and sweep > 0 else part
        if sweep % 2 == 0:  # every other sweep is over all leaves: half of the time, and nearly all of the gain
            for e in range(n_still):
                still[e] = 0
        for b in range(which.shape[0]):
            t = which[b]
            lo, hi = local_ptr[t], local_ptr[t + 1]
            n = hi - lo
            for j in range(n):
                c = column[lo + j]
                a[j] = alpha[c]
                before[j] = held[lo + j]
                r[j] = gradient[lo + j]
                if place[c] >= 0:
                    r[j] += corrections[place[c], b]
            n_cells = cell_ptr[t + 1] - cell_ptr[t]
            shapes = z[z_ptr[t] : z_ptr[t + 1]].reshape((n_cells, n))
            gain = _visit(
                costs[t], norms[t], tolerance, allow_empty, what, weight[cell_ptr[t] : cell_ptr[t + 1]],
                path_ptr[leaf_ptr[t] : leaf_ptr[t + 1] + 1], path, child_ptr[lo + 2 * t : hi + 2 * t + 2],
                child[child_at[t] :], shapes, r[:n], a[:n], held[lo:hi], still[at_still:], work,
            )  # fmt: skip
            at_still += n_cells * (leaf_ptr[t + 1] - leaf_ptr[t])
            total += gain
            if sweep == 0:
                gaps[b] = 2.0 * gain  # a parabola's gap, seen from its start
            earliest = b + 1 if sweep == sweeps - 1 else 0
            products = gram[b, earliest:]
            for j in range(n):
                change = before[j] - held[lo + j]
                if change == 0.0:
                    continue
                moved = True
                c = column[lo + j]
                if place[c] < 0:
                    place[c] = n_places
                    corrections[n_places, :] = 0.0
                    n_places += 1
                row = corrections[place[c], earliest:]
                amount = alpha[c] * change
                for u in range(row.shape[0]):
                    row[u] += amount * products[u]
        if not moved:
            break
    return total
