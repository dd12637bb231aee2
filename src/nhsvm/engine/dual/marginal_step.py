"""The block step of one multi-label sample on a tree: its best node marginals, everything else fixed.

The marginals z of sample i are C_i times a point of conv(Y_m), Y_m the closures of non-empty leaf sets (Eq. 19). With
r the gradient at z⁰ = ``z0``, the marginals so far, and q = ‖x_i‖² the problem is

    max_z Σ_n r_n (z_n − z⁰_n) − q/2 Σ_n α_n (z_n − z⁰_n)²,   0 ≤ z_c ≤ z_n,  Σ_{children c of n} z_c ≥ z_n (inner n),

where the roots are the children of a node with z = C. The best value below node n has a decreasing derivative in z_n,

    G_n(z) = r_n − q α_n (z − z⁰_n) + Σ_c max(G_c(z), 0) + min(W_n(z), 0),

W_n being the level at which the inverses of all G_c add up to z. So from the top down each child has min(zero of G_c,
z_n), or, where that adds up to less than z_n, all are lowered to one common level.

Newton's method replaces every G_c by its linear piece at the last z and settles after two or three rounds, each O(n);
then the pieces are the right ones, and z is exact. It may cycle (once in 500, 30 nodes). Then r is reached on a path,
from a gradient whose optimum is known and inside all bounds: z changes along it without jumps and piece by piece, and
Newton's method settles if the next point of the path is near enough. (Where α spans eight orders of magnitude or
more on hundreds of nodes, double precision may have no point near enough, less than once in a hundred such cases: the
step is then one toward the best vertex, which gains, but is not the best.)

All functions take a compact tree: ``parent[n]`` is -1 or less than n. Inner nodes without weight (α = 0) are to be
contracted: attach their children to their parent, and z_n = min(z_parent, Σ_c z_c) is a solution for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm._jit import done_by, inlined
from nhsvm.engine.dual.block import Layout, step, workspace_of
from nhsvm.typing import FloatArray, PtrArray

_ROUNDS = 10  # Newton's method has settled by then, or it cycles
_SNAP = 1e-14  # of C: what is that near to a bound is on it
_SUM = 1e-12  # of C: by how much the rounding of a sum may miss it
_EXACT = 1e-13  # of C and the gradients: a gap that is rounding
_NO_CURVATURE = 1e-200  # q below that is 0


@inlined
def workspace(size):
    """Arrays for trees of up to ``size`` nodes."""
    room = size + 1  # the last is the node above the roots
    links = (np.empty(room, np.int32), np.empty(room, np.int32))
    bounds = (np.empty(room, np.int8), np.empty(room, np.bool_))
    return links, bounds, (np.empty(room), np.empty(room), np.empty(room)), np.empty((4, room))


@inlined
def _link(parent, first, after):
    """Lists of children, in order: ``first[n]`` of node n, then ``after`` each; -1 ends them."""
    size = parent.shape[0]
    for n in range(size + 1):
        first[n] = -1
    for n in range(size - 1, -1, -1):
        p = parent[n] if parent[n] >= 0 else size
        after[n] = first[p]
        first[p] = n


@inlined
def block_gap(parent, r, z0, C, allow_empty, work):
    """C max_{y∈Y_m} r·y − r·z⁰ ≥ 0, which no step can gain more than; by the dynamic programme."""
    _, _, (gain, below, most), _ = work
    size = parent.shape[0]
    for n in range(size + 1):
        below[n] = 0.0
        most[n] = -1e308
    gap = 0.0
    for n in range(size - 1, -1, -1):
        g = r[n]
        if below[n] > 0.0:
            g += below[n]
        elif most[n] > -1e308:  # an inner node needs a child
            g += most[n]
        p = parent[n] if parent[n] >= 0 else size
        below[p] += max(g, 0.0)
        most[p] = max(g, most[p])
        gain[n] = g
        gap -= r[n] * z0[n]
    if below[size] > 0.0 or not allow_empty:
        gap += C * (below[size] if below[size] > 0.0 else most[size])
    return gap


@inlined
def _best_vertex(parent, allow_empty, C, z, first, after, gain, below, most):
    """Read off what :func:`block_gap` has found: z = C y, y the best; a child that must be is the first of equals."""
    size = parent.shape[0]
    for i in range(size + 1):
        p = i - 1 if i > 0 else size
        c = first[p]
        on = C if i == 0 else z[p]
        forced = on > 0.0 and below[p] <= 0.0 and not (i == 0 and allow_empty)
        while c >= 0:
            z[c] = on if gain[c] > 0.0 else 0.0
            if forced and gain[c] == most[p]:
                z[c] = on
                forced = False
            c = after[c]


@inlined
def _guess(z0, C, allow_empty, first, after, state, shared):
    """What is at a bound in z⁰: state 0 is z_c = 0, 2 is z_c = z_n, 1 neither; n is shared if they add up to z_n."""
    size = z0.shape[0]
    for p in range(size + 1):
        above = C if p == size else z0[p]
        total, alike = 0.0, False
        c = first[p]
        while c >= 0:
            total += z0[c]
            state[c] = 0 if z0[c] <= _SNAP * C else 1
            if z0[c] >= above - _SNAP * C and state[c] > 0:
                state[c] = 2
                alike = True
            c = after[c]
        tight = total <= above + _SNAP * C and total > _SNAP * C
        shared[p] = tight and not alike and not (p == size and allow_empty)


@inlined
def _linear_pieces(alpha, r, z0, q, first, after, state, shared, g, s, inverse):
    """G_n(z) = g_n − s_n (z − z⁰_n) near the last z, and 1/s_n; bottom-up."""
    for n in range(z0.shape[0] - 1, -1, -1):
        slope = q * alpha[n]
        level = r[n]
        c = first[n]
        if c >= 0 and state[n] == 0:  # the right derivative at 0: as in the dynamic programme
            above, slopes, most, its_slope = 0.0, 0.0, -1e308, 0.0
            while c >= 0:
                v = g[c] + s[c] * z0[c]
                if v > 0.0:
                    above += v
                    slopes += s[c]
                elif v > most:
                    most, its_slope = v, s[c]
                c = after[c]
            if slopes == 0.0:
                above, slopes = most, its_slope
            level += above - slopes * z0[n]
            slope += slopes
        elif shared[n]:
            total, width, flattest, shift = -z0[n], 0.0, 0.0, 0.0
            while c >= 0:
                if state[c] == 1 and inverse[c] > flattest:
                    flattest, shift = inverse[c], g[c]
                c = after[c]
            c = first[n]
            while c >= 0:
                if state[c] == 1:
                    total += z0[c] + (g[c] - shift) * inverse[c]
                    width += inverse[c]
                c = after[c]
            level += shift + total / width
            slope += 1.0 / width
        else:
            while c >= 0:
                if state[c] == 2:
                    level += g[c] - s[c] * (z0[n] - z0[c])
                    slope += s[c]
                c = after[c]
        g[n] = level
        s[n] = slope
        inverse[n] = 1.0 / slope


@inlined
def _share(p, above, z0, snap, z, first, after, g, inverse, moved):
    """z_c = max(0, z⁰_c + (g_c − level)/s_c) such that they add up to ``above``; returns whether they do.

    Newton's method on the level, from below, only ever drops children. One that is left has all. The level counts from
    g of the flattest child: no z_c then loses more digits than z_n has, however much the slopes differ. (``moved`` is
    kept in memory lest the compiler adds the two levels up first.)
    """
    flattest, shift = 0.0, 0.0
    c = first[p]
    while c >= 0:
        z[c] = 1.0
        if inverse[c] > flattest:
            flattest, shift = inverse[c], g[c]
        c = after[c]
    while True:
        total, width, n = -above, 0.0, 0
        c = first[p]
        while c >= 0:
            if z[c] > 0.0:
                moved[c] = z0[c] + (g[c] - shift) * inverse[c]
                total += moved[c]
                width += inverse[c]
                n += 1
            c = after[c]
        level = total / width
        total, kept, flattest, its_level = 0.0, 0, 0.0, 0.0
        c = first[p]
        while c >= 0:
            if z[c] > 0.0:
                z[c] = moved[c] - level * inverse[c] if n > 1 else above
                if z[c] <= snap:
                    z[c] = 0.0
                else:
                    kept += 1
                    total += z[c]
                    if inverse[c] > flattest:
                        flattest, its_level = inverse[c], g[c]
            c = after[c]
        shift = its_level
        if kept == n or kept == 0:
            return abs(total - above) <= _SUM / _SNAP * snap  # not so if all curvature is lost in the rounding of g


@inlined
def _newton(parent, alpha, r, z0, q, C, allow_empty, z, work):
    """Rounds of linear pieces, from a guess; returns whether they have settled, z then being the optimum."""
    (first, after), (state, shared), (g, s, inverse), (moved, _, _, _) = work
    size = z0.shape[0]
    snap = _SNAP * C
    for _ in range(_ROUNDS):
        _linear_pieces(alpha, r, z0, q, first, after, state, shared, g, s, inverse)
        same = True
        for i in range(size + 1):
            p = i - 1 if i > 0 else size
            if first[p] < 0:
                continue
            above = C if i == 0 else z[p]
            total = 0.0
            c = first[p]
            while c >= 0:
                x = z0[c] + g[c] * inverse[c]
                if x <= snap or above == 0.0:
                    x = 0.0
                elif x >= above - snap:
                    x = above
                z[c] = x
                total += x
                c = after[c]
            between = total < above - snap and not (i == 0 and allow_empty)
            if between and not _share(p, above, z0, snap, z, first, after, g, inverse, moved):
                return False
            c = first[p]
            while c >= 0:
                now = 0 if z[c] == 0.0 else 1
                if now == 1 and z[c] == above:
                    now = 2
                    between = False  # all others are 0 then: it follows its parent
                same &= state[c] == now
                state[c] = now
                c = after[c]
            same &= shared[p] == between
            shared[p] = between
        if same:
            return True
    # it cycles, or rounding alone makes it go to and fro between pieces that are equally good
    scale = 0.0
    for n in range(size):
        curvature = q * alpha[n]
        moved[n] = r[n] - curvature * (z[n] - z0[n])
        scale = max(scale, abs(r[n]), curvature * max(z[n], z0[n]))
    return block_gap(parent, moved, z, C, allow_empty, work) <= _EXACT * C * scale


@inlined
def _inside(z0, C, allow_empty, z, first, after):
    """A point that is at no bound, but those that an only child always meets."""
    size = z0.shape[0]
    for i in range(size + 1):
        p = i - 1 if i > 0 else size
        above = C if i == 0 else z[p]
        n = 0
        c = first[p]
        while c >= 0:
            n += 1
            c = after[c]
        c = first[p]
        while c >= 0:
            z[c] = 0.5 * above * (1.0 + 1.0 / n)
            if i == 0 and n == 1 and allow_empty:
                z[c] = 0.5 * above
            c = after[c]


@inlined
def _path_begins(alpha, r, z0, q, C, allow_empty, z, first, after, origin, last):
    """A point inside, whose gradient is known; returns how far the first step along the path is to go."""
    _inside(z0, C, allow_empty, z, first, after)
    here, there = 0.0, 0.0
    for n in range(z0.shape[0]):
        origin[n] = q * alpha[n] * (z[n] - z0[n])
        last[n] = z[n]
        here = max(here, abs(origin[n]))
        there = max(there, abs(r[n]))
    return here / (here + there) if 0.0 < here < there else 0.5  # where both gradients count


@inlined
def _optimum(parent, alpha, r, z0, q, C, allow_empty, z, work, direct=True):
    """Newton's method from z⁰ (if ``direct``), and if it cycles, along a path; returns whether z is the optimum.

    The path is that of the optima for (1 − t) q α (z¹ − z⁰) + t r, from t = 0, where it is z¹, a point inside, to 1.
    (One loop for both, since everything is compiled into one piece, once for each call.)
    """
    (first, after), (state, shared), _, (_, origin, mixed, last) = work
    size = z0.shape[0]
    t, step, first_step = 0.0, 1.0, 1.0
    for n in range(size):
        mixed[n] = r[n]
        last[n] = z0[n]
    if not direct:
        step = first_step = _path_begins(alpha, r, z0, q, C, allow_empty, z, first, after, origin, last)
    while t < 1.0 and step > 1e-12 * max(t, first_step):
        goal = min(1.0, t + step)
        if not direct:
            for n in range(size):
                mixed[n] = (1.0 - goal) * origin[n] + goal * r[n]
        _guess(last[:size], C, allow_empty, first, after, state, shared)
        settled = _newton(parent, alpha, mixed, z0, q, C, allow_empty, z, work)
        if direct and not settled:
            direct = False
            step = first_step = _path_begins(alpha, r, z0, q, C, allow_empty, z, first, after, origin, last)
        elif settled:
            t = goal
            step *= 2.0
            for n in range(size):
                last[n] = z[n]
        else:
            step *= 0.5
    return t == 1.0


@inlined
def _toward_a_vertex(parent, alpha, r, z0, q, C, allow_empty, z, work):
    """The best point between z⁰ and C y, y the best label set: it gains whenever there is something to gain."""
    (first, after), _, (gain, below, most), _ = work
    block_gap(parent, r, z0, C, allow_empty, work)
    _best_vertex(parent, allow_empty, C, z, first, after, gain, below, most)
    rise, curvature = 0.0, 0.0
    for n in range(z0.shape[0]):
        change = z[n] - z0[n]
        rise += r[n] * change
        curvature += q * alpha[n] * change * change
    part = 1.0 if rise >= curvature else max(rise, 0.0) / curvature
    for n in range(z0.shape[0]):
        z[n] = z[n] if part == 1.0 else z0[n] + part * (z[n] - z0[n])


@inlined
def marginal_step(parent, alpha, r, z0, q, C, allow_empty, z, work):
    """Fill ``z`` with the best marginals, from feasible ``z0``; returns the gain, which is never negative.

    ``work`` comes from :func:`workspace`; α > 0. If q = 0, z is C times the best label set.
    """
    (first, after), _, _, _ = work
    _link(parent, first, after)
    if q <= _NO_CURVATURE or not _optimum(parent, alpha, r, z0, q, C, allow_empty, z, work):
        _toward_a_vertex(parent, alpha, r, z0, q, C, allow_empty, z, work)
    gain = 0.0
    for n in range(z0.shape[0]):
        change = z[n] - z0[n]
        gain += change * (r[n] - 0.5 * q * alpha[n] * change)
    if gain <= 0.0:  # by rounding: z⁰ is as good
        for n in range(z0.shape[0]):
            z[n] = z0[n]
    return max(gain, 0.0)


class MarginalBlock(NamedTuple):
    """Node marginals of some samples of a layout, with the gradients from before the batch."""

    which: PtrArray  # positions in the layout
    costs: FloatArray
    norms: FloatArray
    local_ptr: PtrArray
    layout: Layout
    alpha: FloatArray
    allow_empty: bool
    tolerance: float
    gaps: FloatArray  # filled: as they were in the first sweep


@done_by(workspace_of, MarginalBlock)
def _marginal_workspace(block):
    width = 0
    for t in block.which:
        width = max(width, block.local_ptr[t + 1] - block.local_ptr[t])
    own = workspace(width), np.empty(width), np.empty(width), np.empty(width)
    return own, np.empty(width, np.int32), np.empty(width)


@done_by(step, MarginalBlock)
def _marginal_step(block, b, sweep, corrections, work):
    which, costs, norms, local_ptr, layout, alpha, allow_empty, tolerance, gaps = block
    column, gradient, z = layout.column, layout.gradient, layout.held
    row_of, values = corrections
    (trees, r, new, local), columns, changes = work
    t = which[b]
    lo, hi = local_ptr[t], local_ptr[t + 1]
    n = hi - lo
    parent = layout.parent[lo:hi]
    for k in range(n):
        c = column[lo + k]
        local[k] = alpha[c]
        r[k] = gradient[lo + k]
        if row_of[c] >= 0:
            r[k] += values[row_of[c], b]
    gap = block_gap(parent, r[:n], z[lo:hi], costs[t], allow_empty, trees)
    if sweep == 0:
        gaps[b] = max(gap, 0.0)
    if gap <= tolerance * costs[t]:
        return 0.0, 0
    gain = marginal_step(parent, local[:n], r[:n], z[lo:hi], norms[t], costs[t], allow_empty, new[:n], trees)
    n_changed = 0
    for k in range(n):
        change = z[lo + k] - new[k]
        if change != 0.0:
            columns[n_changed] = column[lo + k]
            changes[n_changed] = alpha[column[lo + k]] * change
            n_changed += 1
            z[lo + k] = new[k]
    return gain, n_changed
