"""Dual variables and kernels of independent hinges: which leaves of a sample may move, and the block steps of a batch.

The block of sample i has b_l ∈ [0, C], one number a leaf. With g_l = 1 − y_l s(l) the gradient at b⁰, the variables so
far, q = ‖x_i‖², and y_l = ±1,

    max_b Σ_l g_l (b_l − b⁰_l) − q/2 Σ_n α_n (Σ_{l below n} y_l (b_l − b⁰_l))².

Coordinates are improved one after the other, each exactly: with δ_n = Σ_{l below n} y_l (b_l − b⁰_l) kept for every
column, the gradient of a leaf is a sum over its path, and so is what a change of b_l does. Where paths share nothing,
one round is exact; elsewhere rounds go on until no leaf violates its condition by more than a tolerance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nhsvm._jit import done_by, inlined, kernel
from nhsvm.engine.certificate import excess
from nhsvm.engine.dual.block import Paths, Sweeps, batch_kernel, step, warm_start_factors, workspace_of
from nhsvm.engine.dual.plane_step import keep_used
from nhsvm.engine.dual.planes import NO_LEAVES, Batch, Planes
from nhsvm.engine.samples import Updates
from nhsvm.oracles.leaves import Proposals
from nhsvm.typing import Array, FloatArray, PtrArray

if TYPE_CHECKING:
    from nhsvm.engine.hinges import HingeProblem

_ROUNDS = 100  # over the leaves of one sample
_FINER = 0.1  # of the tolerance: how exact a block is made that is worth a visit
_SPREAD = 7919  # where the search for new leaves begins, times the sample's number; any prime


class Boxes(Planes):
    """b_il > 0 of all samples, in the lists that planes are kept in: ``scale`` is y_il, ``loss`` is 1."""

    sign = 1.0

    def step(
        self, samples: PtrArray, found: Proposals, problem: HingeProblem, norms: FloatArray, gram: Array,
        tolerance: float, sweeps: Sweeps,
    ) -> tuple[Updates, float]:  # fmt: skip
        """Block steps for the samples of a batch, in order; returns the change of U and the gain of the dual."""
        columns = problem.columns
        batch, paths = Batch(samples, NO_LEAVES, problem.costs[samples], norms), Paths.of(columns)
        before, entries = found.weight.copy(), self.entries(found, paths)
        corrections = np.empty((min(columns.n_columns, entries), len(samples)), dtype=gram.dtype)
        block = BoxBlock(batch, found, before, paths, problem.path_sums, tolerance)
        gain = batch_kernel(block, gram, corrections, columns.n_columns, sweeps)
        return self.store(batch, found, before, paths, entries), float(gain)

    def excess(self, costs: FloatArray) -> float:
        """By how much of C_i a dual variable exceeds it at most."""
        largest = np.zeros(len(self.count))
        np.maximum.at(largest, self.owners(), self.weight[self.flat()[1]])
        return excess(largest, costs, 1.0)

    def warm_start(self, before: FloatArray, now: FloatArray) -> None:
        """Make these variables of one path of C fit for the next costs, each by itself."""
        at, owner = self.flat()[1], self.owners()
        factors = warm_start_factors(self.weight[at], before[owner], now[owner])
        self.weight[at] = np.minimum(self.weight[at] * factors, now[owner])  # not beyond it by rounding either


@kernel
def hinges_kernel(scores, samples, truth_ptr, truth, single, allow_empty, slack, active, wrong):
    """Σ_l max(0, 1 − y_l s(l)) of samples, from scores of leaves; of how many leaves; whether labels are not found.

    With ``single`` the label found is the leaf of the highest score; else all leaves with a positive one, or the leaf
    of the highest score if there is none and ``allow_empty`` is not true.
    """
    n_leaves = scores.shape[1]
    for t in range(scores.shape[0]):
        v = scores[t]
        total, n_active, n_found, best = 0.0, 0, 0, 0
        for k in range(n_leaves):
            total += max(0.0, 1.0 + v[k])
            n_active += v[k] > -1.0
            n_found += v[k] > 0.0
            if v[k] > v[best]:
                best = k
        n_true, n_right, best_is_true = 0, 0, False
        for e in range(truth_ptr[samples[t]], truth_ptr[samples[t] + 1]):
            k = truth[e]
            total += max(0.0, 1.0 - v[k]) - max(0.0, 1.0 + v[k])
            n_active += int(v[k] < 1.0) - int(v[k] > -1.0)
            n_true += 1
            n_right += v[k] > 0.0
            best_is_true = best_is_true or k == best
        slack[t], active[t] = total, n_active
        if single or (n_found == 0 and not allow_empty):
            wrong[t] = not best_is_true or n_true != 1
        else:
            wrong[t] = n_right < n_true or n_found > n_right


@kernel
def candidates_kernel(scores, samples, labels, pool, n_new, tolerance, found):
    """The working set of each sample, its true leaves, and up to ``n_new`` others that violate their margin most.

    Leaves whose gradient is at most the tolerance are no news. ``scores`` are those of leaves, and are overwritten by
    gradients. Among equals those come first that the search meets first, and it begins elsewhere for every sample: at
    U = 0, where all are equal, the samples of a batch together take up all leaves.
    """
    truth_ptr, truth = labels
    start, count, pool_leaf, pool_weight, _, pool_scale = pool
    leaf, weight, value, loss, scale, size = found.leaf, found.weight, found.value, found.loss, found.scale, found.size
    n_leaves = scores.shape[1]
    for t in range(scores.shape[0]):
        i = samples[t]
        g = scores[t]
        for k in range(n_leaves):
            g[k] = 1.0 + g[k]
        for e in range(truth_ptr[i], truth_ptr[i + 1]):
            g[truth[e]] = 2.0 - g[truth[e]]
        m = count[i]
        for k in range(m):
            at = start[i] + k
            leaf[t, k], weight[t, k], scale[t, k] = pool_leaf[at], pool_weight[at], pool_scale[at]
            value[t, k] = g[leaf[t, k]]
            g[leaf[t, k]] = -1e30  # not new
        for e in range(truth_ptr[i], truth_ptr[i + 1]):
            k = truth[e]
            if g[k] > tolerance:
                leaf[t, m], weight[t, m], value[t, m], scale[t, m] = k, 0.0, g[k], 1.0
                m += 1
            g[k] = -1e30
        end = m
        bar = g.dtype.type(tolerance)
        first = (i * _SPREAD) % n_leaves
        for j in range(n_leaves):
            k = first + j
            if k >= n_leaves:
                k -= n_leaves
            if g[k] > bar:
                at = end if end < m + n_new else end - 1
                while at > m and value[t, at - 1] < g[k]:
                    value[t, at], leaf[t, at] = value[t, at - 1], leaf[t, at - 1]
                    at -= 1
                value[t, at], leaf[t, at] = g[k], k
                if end < m + n_new:
                    end += 1
                if end == m + n_new:
                    bar = g.dtype.type(value[t, end - 1])
        for k in range(m, end):
            weight[t, k], scale[t, k] = 0.0, -1.0
        for k in range(end):
            loss[t, k] = 1.0
        size[t] = end


@inlined
def _violation(g, b, cost):
    """By how much b could be better: the gradient, but 0 where a bound is in its way."""
    return 0.0 if (b <= 0.0 and g <= 0.0) or (b >= cost and g >= 0.0) else abs(g)


@inlined
def _box_visit(h, m, cost, q, leaf, weight, scale, paths, sums, tolerance, work):
    """The block step of one sample with gradients ``h[:m]``; ``weight[:m]`` is updated.

    Returns (gain of the dual, number of columns that change); these columns are in ``work``, as are the changes δ.
    ``seen`` is false and ``delta`` zero before, and must be made so after.
    """
    ptr, idx, alpha, _ = paths
    columns, delta, seen = work
    worst = 0.0
    for k in range(m):
        worst = max(worst, _violation(h[k], weight[k], cost))
    if worst <= tolerance:
        return 0.0, 0
    gain, n = 0.0, 0
    for _ in range(_ROUNDS):
        worst = 0.0
        for k in range(m):
            lo, hi = ptr[leaf[k]], ptr[leaf[k] + 1]
            shift = 0.0
            for e in range(lo, hi):
                shift += alpha[idx[e]] * delta[idx[e]]
            g = h[k] - scale[k] * q * shift
            b = weight[k]
            violation = _violation(g, b, cost)
            if violation <= _FINER * tolerance:
                continue
            worst = max(worst, violation)
            curvature = q * sums[leaf[k]]
            if g > 0.0:
                new = cost if curvature * (cost - b) <= g else b + g / curvature
            else:
                new = 0.0 if curvature * b <= -g else b + g / curvature
            step = new - b
            gain += step * (g - 0.5 * curvature * step)
            weight[k] = new
            for e in range(lo, hi):
                c = idx[e]
                if not seen[c]:
                    seen[c] = True
                    columns[n] = c
                    n += 1
                delta[c] += scale[k] * step
        if worst <= tolerance:
            break
    return gain, n


class BoxBlock(NamedTuple):
    """Leaves of the samples of a batch that may move, with the gradients from before it."""

    batch: Batch
    found: Proposals
    before: FloatArray
    paths: Paths
    sums: FloatArray  # Σ α on the path of every leaf
    tolerance: float


@done_by(workspace_of, BoxBlock)
def _box_workspace(block):
    n_columns = block.paths.alpha.shape[0]
    own = np.empty(block.found.leaf.shape[1]), np.zeros(n_columns), np.zeros(n_columns, np.bool_)
    return own, np.empty(n_columns, np.int32), np.empty(n_columns)


@done_by(step, BoxBlock)
def _box_step(block, t, sweep, corrections, work):
    batch, found, before, paths, sums, tolerance = block
    leaf, weight, value, scale = found.leaf[t], found.weight[t], found.value[t], found.scale[t]
    ptr, idx, alpha, _ = paths
    row_of, values = corrections
    (h, delta, seen), columns, changes = work
    m = found.size[t]
    for k in range(m):
        x = 0.0
        for e in range(ptr[leaf[k]], ptr[leaf[k] + 1]):
            if row_of[idx[e]] >= 0:
                x += values[row_of[idx[e]], t]
        h[k] = value[k] - scale[k] * x
    own = columns, delta, seen
    gain, n = _box_visit(h, m, batch.costs[t], batch.squared_norms[t], leaf, weight, scale, paths, sums, tolerance, own)
    for k in range(n):
        c = columns[k]
        changes[k] = alpha[c] * delta[c]
        delta[c] = 0.0
        seen[c] = False
    if sweep == 0:  # later sweeps are for the working set
        found.size[t] = keep_used(leaf, weight, value, found.loss[t], scale, before[t], m)
    return gain, n
