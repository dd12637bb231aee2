"""The block step: the best dual variables of one sample, everything else fixed; and a batch of them in order.

Sample i with planes k (wrong leaves l_k, gradient h_k) and the true leaf, whose gradient is 0, has the problem

    max Σ_k a_k h_k − q/2 ‖Σ_k a_k κ_k (∧̃(l_k) − ∧̃(y))‖²  over the change of a,   a ≥ 0,  Σ_k a_k ≤ C_i,   q = ‖x_i‖².

Where paths nest (trees) and κ = 1 it is solved exactly, by elimination along the tree; elsewhere by steps between the
worst pair of planes, to a tolerance. Two loops use it: a batch of samples whose scores were read beforehand, and a pass
over the planes that samples already have, with scores read and weights changed at every visit.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel

LEAST_STEP = 1e-13  # of C_i: dual variables below that are rounded to 0


@inlined
def _tree_block(h, a, left, q, leaf, y, m, paths, slot, work):
    """The exact optimum for a tree whose leaves all have a column of their own; plane ``m`` is the true leaf.

    With z_n the dual weight below node n, and z⁰_n before, the optimum has one price λ: a leaf l with weight has
    h_l − q Σ_{n∈Ā(l)} α_n (z_n − z⁰_n) = λ, a leaf without at most that. For a given set of leaves with weight these
    equations are linear and are eliminated along the tree: z_n − z⁰_n = target_n − slope_n · (price above n); only
    changes are summed, because C_i can be so large that sums would lose their digits. The set of leaves is then
    corrected; it settles in a few rounds, the equations being those of an M-matrix. Returns whether it
    has; if so, ``h`` and ``a`` are those of the optimum. ``slot`` is −1 before and after.
    """
    ptr, idx, alpha, _ = paths
    column, up, z, target, slope, price, at, active = work
    n = 0
    shift = h[m]  # prices are counted from the largest gradient, lest they lose the digits that tell planes apart
    for k in range(m + 1):
        shift = max(shift, h[k])
        which = y
        weight = left
        if k < m:
            which = leaf[k]
            weight = a[k]
        above = -1
        for e in range(ptr[which], ptr[which + 1]):  # from the root: parents get their slots first
            c = idx[e]
            if slot[c] < 0:
                slot[c] = n
                column[n] = c
                up[n] = above
                n += 1
            above = slot[c]
        at[k] = above
        z[above] = weight  # of leaves only
        active[k] = weight > 0.0
    for s in range(n):
        slot[column[s]] = -1
    settled = False
    for _ in range(40):
        for s in range(n):
            target[s] = 0.0
            slope[s] = 0.0
            price[s] = 1.0  # marks an inner node
        for k in range(m + 1):
            s = at[k]
            price[s] = 0.0
            if active[k]:
                slope[s] = 1.0 / (q * alpha[column[s]])
                target[s] = slope[s] * (h[k] - shift)
            else:
                target[s] = -z[s]
        all_target = 0.0
        all_slope = 0.0
        for s in range(n - 1, -1, -1):
            if price[s] > 0.0 and slope[s] > 0.0:
                f = 1.0 / (1.0 + slope[s] * q * alpha[column[s]])
                target[s] *= f
                slope[s] *= f
            if up[s] >= 0:
                target[up[s]] += target[s]
                slope[up[s]] += slope[s]
            else:
                all_target += target[s]
                all_slope += slope[s]
        top = all_target / all_slope
        for s in range(n):  # from here on price[s] is what the children of s meet, and target[s] the change
            above_price = top
            if up[s] >= 0:
                above_price = price[up[s]]
            target[s] -= slope[s] * above_price
            price[s] = above_price + q * alpha[column[s]] * target[s]
        settled = True
        for k in range(m + 1):
            s = at[k]
            above_price = top
            if up[s] >= 0:
                above_price = price[up[s]]
            if active[k]:
                if z[s] + target[s] < 0.0:
                    active[k] = False
                    settled = False
            else:
                own = q * alpha[column[s]] * z[s]
                if h[k] - shift + own > above_price + 1e-12 * max(1.0, own):
                    active[k] = True
                    settled = False
        if settled:
            break
    if settled:
        own = h[m] - price[at[m]]
        for k in range(m):
            a[k] = z[at[k]] + target[at[k]] if active[k] else 0.0
            h[k] += -price[at[k]] - own
    return settled


@inlined
def _flat_block(h, a, left, q, leaf, y, m, paths, work):
    """The same for paths of one column each: a_l = max(0, a⁰_l + target_l − slope_l λ), which sum to C_i.

    The sum is convex and decreasing in λ, so Newton's method from the left only ever drops labels. Loops without
    branches, which LLVM vectorises.
    """
    ptr, idx, alpha, _ = paths
    column, z, target, slope = work[0][: m + 1], work[2][: m + 1], work[3][: m + 1], work[4][: m + 1]
    for k in range(m):
        column[k] = idx[ptr[leaf[k]]]
        z[k] = a[k]
    column[m] = idx[ptr[y]]
    z[m] = left
    shift = h[m]  # as in the tree step: prices from the largest gradient, and changes instead of weights
    for k in range(m):
        shift = max(shift, h[k])
    inverse = 1.0 / q
    for k in range(m + 1):
        slope[k] = inverse / alpha[column[k]]
        target[k] = slope[k] * (h[k] - shift)
    price = 0.0
    n_dropped = 1
    while n_dropped > 0:
        all_target, all_slope = 0.0, 0.0
        for k in range(m + 1):
            all_target += target[k]
            all_slope += slope[k]
        price = all_target / all_slope
        n_dropped = 0
        for k in range(m + 1):
            drop = (z[k] + (target[k] - slope[k] * price) < 0.0) & (slope[k] > 0.0)
            target[k] = -z[k] if drop else target[k]
            slope[k] = 0.0 if drop else slope[k]
            n_dropped += drop
    own = -q * alpha[column[m]] * (target[m] - slope[m] * price)
    for k in range(m):
        change = target[k] - slope[k] * price
        h[k] -= q * alpha[column[k]] * change + own
        a[k] = a[k] + change if slope[k] > 0.0 else 0.0


@inlined
def _plane_products(k, G, common, own, leaf, scale, paths, mark, m):
    """Row k of the inner products of the plane vectors κ(∧̃(l) − ∧̃(y)); ``mark`` is zero before and after."""
    ptr, idx, alpha, _ = paths
    for e in range(ptr[leaf[k]], ptr[leaf[k] + 1]):
        mark[idx[e]] = alpha[idx[e]]
    for j in range(m):
        shared = 0.0
        for e in range(ptr[leaf[j]], ptr[leaf[j] + 1]):
            shared += mark[idx[e]]
        G[k, j] = scale[k] * scale[j] * (shared - common[k] - common[j] + own)
    for e in range(ptr[leaf[k]], ptr[leaf[k] + 1]):
        mark[idx[e]] = 0.0


@inlined
def _pair_block(h, a, left, q, leaf, y, scale, m, paths, tolerance, work):
    """Steps between the plane with the largest gradient and the one with the smallest that has weight.

    Stops when the two differ by less than the tolerance; ``h`` and ``a`` are kept up to date.
    """
    ptr, idx, alpha, _ = paths
    G, known, common, mark = work
    own = 0.0
    for e in range(ptr[y], ptr[y + 1]):
        mark[idx[e]] = alpha[idx[e]]
        own += alpha[idx[e]]
    for k in range(m):
        known[k] = False
        common[k] = 0.0
        for e in range(ptr[leaf[k]], ptr[leaf[k] + 1]):
            common[k] += mark[idx[e]]
    for e in range(ptr[y], ptr[y + 1]):
        mark[idx[e]] = 0.0
    for _ in range(100 * m + 100):
        up, down = -1, -1  # -1 is the true leaf
        best, worst = 0.0, 1e300
        if left > 0.0:
            worst = 0.0
        for k in range(m):
            if h[k] > best:
                best = h[k]
                up = k
            if a[k] > 0.0 and h[k] < worst:
                worst = h[k]
                down = k
        if best - worst <= tolerance:
            break
        curvature = 0.0
        if up >= 0:
            if not known[up]:
                _plane_products(up, G, common, own, leaf, scale, paths, mark, m)
                known[up] = True
            curvature += G[up, up]
        if down >= 0:
            if not known[down]:
                _plane_products(down, G, common, own, leaf, scale, paths, mark, m)
                known[down] = True
            curvature += G[down, down]
        if up >= 0 and down >= 0:
            curvature -= 2.0 * G[up, down]
        curvature *= q
        available = left if down < 0 else a[down]
        step = available
        if curvature * available > best - worst:
            step = (best - worst) / curvature
        if down < 0:
            left = 0.0 if step == available else left - step
        else:
            a[down] = 0.0 if step == available else a[down] - step
            for k in range(m):
                h[k] += q * step * G[down, k]
        if up < 0:
            left += step
        else:
            a[up] += step
            for k in range(m):
                h[k] -= q * step * G[up, k]


@inlined
def workspace(width, paths):
    """Arrays for :func:`visit`: first gradients, changes, tree block, pair block; and whether leaves are columns."""
    ptr, idx, n_columns = paths.ptr, paths.idx, paths.alpha.shape[0]
    longest = 0
    for k in range(ptr.shape[0] - 1):
        longest = max(longest, ptr[k + 1] - ptr[k])
    room = max(width + 1, min(n_columns, (width + 1) * longest))
    tree = (
        np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room), np.empty(room), np.empty(room),
        np.empty(room), np.empty(width + 1, np.int32), np.empty(width + 1, np.bool_),
    )  # fmt: skip
    pair = (np.empty((width, width)), np.empty(width, np.bool_), np.empty(width), np.zeros(n_columns))
    change = (np.full(n_columns, -1, np.int32), np.zeros(n_columns), np.empty(room, np.uint32), np.empty(room))
    return np.empty(width), change, tree, pair, _alone(n_columns, ptr, idx)


@inlined
def _alone(n_columns, ptr, idx):
    """Whether the path of every leaf is one column, which no other leaf has."""
    seen = np.zeros(n_columns, np.bool_)
    for k in range(ptr.shape[0] - 1):
        if ptr[k + 1] - ptr[k] != 1 or seen[idx[ptr[k]]]:
            return False
        seen[idx[ptr[k]]] = True
    return True


@inlined
def visit(h, a, m, y, cost, q, leaf, weight, scale, paths, tolerance, work):
    """The block step of one sample.

    ``h[:m]`` are the gradients of its planes, ``weight[:m]`` their dual variables, which are updated. Returns
    (gap of the block, gain of the dual, number of columns that change); these columns and the changes of α_n β_n are
    in ``work``. Nothing changes if no pair of planes differs by more than the tolerance.
    """
    ptr, idx, alpha, nests = paths
    first, (slot, beta, columns, changes), tree, pair, alone = work
    left = cost
    best, worst, mean = 0.0, 1e300, 0.0
    for k in range(m):
        first[k] = h[k]
        a[k] = weight[k]
        left -= a[k]
        mean += a[k] * h[k]
        best = max(best, h[k])
        if a[k] > 0.0:
            worst = min(worst, h[k])
    if left <= LEAST_STEP * cost:
        left = 0.0
    else:
        worst = min(worst, 0.0)
    gap = cost * best - mean
    if best - worst <= tolerance:
        return gap, 0.0, 0
    h[m] = 0.0
    done = False
    if nests and q > 0.0 and alone:
        _flat_block(h, a, left, q, leaf, y, m, paths, tree)
        done = True
    elif nests and q > 0.0:
        done = _tree_block(h, a, left, q, leaf, y, m, paths, slot, tree)
    if not done:
        _pair_block(h, a, left, q, leaf, y, scale, m, paths, 0.1 * tolerance, pair)
    total = 0.0
    for k in range(m):
        total += a[k]
    if total > cost:  # by rounding, which would add up
        for k in range(m):
            a[k] *= cost / total
    gain = 0.0
    largest = 0.0
    for k in range(m):
        a[k] = 0.0 if a[k] < LEAST_STEP * cost else a[k]
        change = a[k] - weight[k]
        gain += 0.5 * change * (h[k] + first[k])
        weight[k] = a[k]
        a[k] = -change * scale[k]  # from here on what the plane adds to β of its columns
        largest = max(largest, abs(a[k]))
    if alone:
        return gap, gain, _flat_changes(a, leaf, y, m, ptr, idx, alpha, 1e-14 * largest, columns, changes)
    return gap, gain, _path_changes(a, leaf, y, m, ptr, idx, alpha, 1e-14 * largest, slot, beta, columns, changes)


@inlined
def _flat_changes(amounts, leaf, y, m, ptr, idx, alpha, least, columns, changes):
    """List the columns that change, with the changes of α_n β_n; every plane has a column of its own."""
    n = 0
    toward = 0.0
    for k in range(m):
        toward -= amounts[k]
        c = idx[ptr[leaf[k]]]
        columns[n] = c
        changes[n] = alpha[c] * amounts[k]
        n += abs(amounts[k]) > least
    c = idx[ptr[y]]
    columns[n] = c
    changes[n] = alpha[c] * toward
    n += abs(toward) > least
    return n


@inlined
def _path_changes(amounts, leaf, y, m, ptr, idx, alpha, least, slot, beta, columns, changes):
    """The same for paths that share columns; ``slot`` is −1 and ``beta`` zero before and after."""
    n = 0
    toward = 0.0
    for k in range(m + 1):
        which = y
        amount = toward
        if k < m:
            if amounts[k] == 0.0:
                continue
            amount = amounts[k]
            toward -= amount
            which = leaf[k]
        for e in range(ptr[which], ptr[which + 1]):
            c = idx[e]
            if slot[c] < 0:
                slot[c] = 0
                columns[n] = c
                n += 1
            beta[c] += amount
    kept = 0
    for k in range(n):
        c = columns[k]
        if abs(beta[c]) > least:  # nodes that leaves share cancel up to rounding
            columns[kept] = c
            changes[kept] = alpha[c] * beta[c]
            kept += 1
        beta[c] = 0.0
        slot[c] = -1
    return kept


@inlined
def keep_used(leaf, weight, value, loss, scale, before, m):
    """Move the planes that have, or had, a weight to the front; returns how many they are."""
    n = 0
    for k in range(m):
        if weight[k] > 0.0 or before[k] > 0.0:
            leaf[n], weight[n], value[n] = leaf[k], weight[k], value[k]
            loss[n], scale[n], before[n] = loss[k], scale[k], before[k]
            n += 1
    return n


@inlined
def _stride(sweep, n):
    """How far apart samples that follow each other in a sweep are; has no divisor in common with ``n``.

    Sweeps in one and the same order converge slowly where all samples have much in common (Sun & Ye 2021), as any two
    do that share a constant feature; four sweeps in changing orders do more than five in one.
    """
    stride = int(n * ((0.6180339887 * sweep) % 1.0))
    while True:
        a, b = n, stride
        while b > 0:
            a, b = b, a % b
        if a == 1:
            return stride
        stride += 1


@kernel
def batch_kernel(batch, found, before, gram, corrections, paths, tolerance, sweeps):
    """Block steps for the samples of a batch, ``sweeps`` times; returns the gain of the dual.

    ``value`` holds the gradients from before the batch. ``corrections[place[n], t]`` is what the steps taken since have
    added to the score of column n for sample t: they are known from the inner products ``gram`` of the samples.
    """
    _, leaves, costs, norms = batch
    leaf, weight, value, loss, scale, size = found.leaf, found.weight, found.value, found.loss, found.scale, found.size
    ptr, idx, n_columns = paths.ptr, paths.idx, paths.alpha.shape[0]
    n_batch, width = leaf.shape
    place = np.full(n_columns, -1, np.int32)
    n_places = 0
    h, a = np.empty(width + 1), np.empty(width)
    work = workspace(width, paths)
    columns, changes = work[1][2], work[1][3]
    total = 0.0
    for sweep in range(sweeps):
        changed = False
        ordered = sweep == 0 or sweep == sweeps - 1  # what the last one changes is for the samples after it only
        stride = 1 if ordered else _stride(sweep, n_batch)
        t = n_batch - stride
        for _ in range(n_batch):
            t = (t + stride) % n_batch
            m = size[t]
            shift = 0.0
            for e in range(ptr[leaves[t]], ptr[leaves[t] + 1]):
                if place[idx[e]] >= 0:
                    shift += corrections[place[idx[e]], t]
            for k in range(m):
                x = -shift
                for e in range(ptr[leaf[t, k]], ptr[leaf[t, k] + 1]):
                    if place[idx[e]] >= 0:
                        x += corrections[place[idx[e]], t]
                h[k] = value[t, k] + scale[t, k] * x
            _, gain, n = visit(
                h, a, m, leaves[t], costs[t], norms[t], leaf[t], weight[t], scale[t], paths, tolerance, work
            )
            total += gain
            earliest = t + 1 if sweep == sweeps - 1 else 0
            products = gram[t, earliest:]
            for k in range(n):
                changed = True
                if place[columns[k]] < 0:
                    place[columns[k]] = n_places
                    corrections[n_places, :] = 0.0
                    n_places += 1
                row = corrections[place[columns[k]], earliest:]  # a loop from zero is one that LLVM vectorises
                c = gram.dtype.type(changes[k])
                for u in range(row.shape[0]):
                    row[u] += c * products[u]
            if sweep == 0:  # later sweeps are for the working set
                size[t] = keep_used(leaf[t], weight[t], value[t], loss[t], scale[t], before[t], m)
        if not changed:
            break
    return total


@inlined
def gradients(h, score, y, leaf, loss, scale, m, ptr, idx):
    """Those of a sample's planes, from the scores of columns."""
    own = 0.0
    for e in range(ptr[y], ptr[y + 1]):
        own += score[idx[e]]
    for k in range(m):
        x = -own
        for e in range(ptr[leaf[k]], ptr[leaf[k] + 1]):
            x += score[idx[e]]
        h[k] = loss[k] + scale[k] * x


@inlined
def drop_weightless(weight, leaf, loss, scale, m):
    """Drop the planes without weight; returns how many are left."""
    n = 0
    for k in range(m):
        if weight[k] > 0.0:
            leaf[n], weight[n], loss[n], scale[n] = leaf[k], weight[k], loss[k], scale[k]
            n += 1
    return n
