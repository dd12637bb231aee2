"""Kernels of the stochastic method: everything that one pass does."""

from __future__ import annotations

import numpy as np

from nhsvm._jit import inlined, kernel
from nhsvm.solvers._rounding import UNIT

T, SCALE, CREDIT, COUNT, NORM, MASS, ERROR = range(7)  # places in SgdState.numbers
ROUNDED = 16 * UNIT  # a change of a weight, a product of a few numbers, is wrong by less of it
_SMALL = 1e-3  # the factor of U is multiplied out below; small ones would cost digits of the average


@inlined
def _scores(i, indptr, indices, data, bias, values, scale, s):
    """Scores of all columns for sample i; which kind of samples it is, is settled when this is compiled."""
    factor = values.dtype.type(scale)
    if data.ndim == 1:
        s[:] = values[values.shape[0] - 1] * values.dtype.type(bias)
        j = indptr[i]
        while j + 3 < indptr[i + 1]:  # four rows at a time: a quarter of the loads and stores of s
            x0, x1 = values.dtype.type(data[j]), values.dtype.type(data[j + 1])
            x2, x3 = values.dtype.type(data[j + 2]), values.dtype.type(data[j + 3])
            r0, r1, r2, r3 = values[indices[j]], values[indices[j + 1]], values[indices[j + 2]], values[indices[j + 3]]
            for n in range(s.shape[0]):
                s[n] += x0 * r0[n] + x1 * r1[n] + x2 * r2[n] + x3 * r3[n]
            j += 4
        while j < indptr[i + 1]:
            r0 = values[indices[j]]
            for n in range(s.shape[0]):
                s[n] += values.dtype.type(data[j]) * r0[n]
            j += 1
        for n in range(s.shape[0]):
            s[n] *= factor
    else:
        x = data[i]
        for n in range(s.shape[0]):
            row = values[n]
            total = row[x.shape[0]] * values.dtype.type(bias)
            for f in range(x.shape[0]):
                total += values.dtype.type(x[f]) * row[f]
            s[n] = total * factor


@inlined
def _worst(s, y, parent, leaf_column, ptr, idx, delta, normalized, v):
    """(leaf, Δ, κ) of the most violating leaf, given the scores of columns; leaf −1 if no bracket is positive."""
    n_leaves = v.shape[0]
    if leaf_column.shape[0] > 0:  # a tree: sums from the root, in place
        for n in range(s.shape[0]):
            if parent[n] >= 0:
                s[n] += s[parent[n]]
        for k in range(n_leaves):
            v[k] = s[leaf_column[k]] if leaf_column[k] >= 0 else 0.0
    else:
        for k in range(n_leaves):
            v[k] = 0.0
            for e in range(ptr[k], ptr[k + 1]):
                v[k] += s[idx[e]]
    own = v[y]
    worst = -1
    top = 0.0
    for k in range(n_leaves):
        if k == y or (normalized and not delta[k] > 0):
            continue
        value = 1.0 + (v[k] - own) / delta[k] if normalized else delta[k] + (v[k] - own)
        if value > top:
            top = value
            worst = k
    if worst < 0:
        return -1, 0.0, 0.0
    return (worst, 1.0, 1.0 / delta[worst]) if normalized else (worst, delta[worst], 1.0)


@inlined
def _differing(y, other, ptr, idx, sign, columns):
    """Columns on one of two paths but not on both; returns how many. ``sign`` is +1 on that of y, −1 on the other."""
    n = 0
    for e in range(ptr[y], ptr[y + 1]):
        sign[idx[e]] = 1.0
    for e in range(ptr[other], ptr[other + 1]):
        sign[idx[e]] -= 1.0
        if sign[idx[e]] < 0:
            columns[n] = idx[e]
            n += 1
    for e in range(ptr[y], ptr[y + 1]):
        if sign[idx[e]] > 0:
            columns[n] = idx[e]
            n += 1
    return n


@inlined
def _touch(at, n, values, sums, change, credit, alpha):
    """Add to one weight and take from its sum.

    Returns what that means for Σ‖values‖²/α, the new square over α, and the square of the change over α.
    """
    old = np.float64(values[at, n])
    values[at, n] = old + change
    if sums.shape[0] > 0:
        sums[at, n] -= credit * change
    new = np.float64(values[at, n])
    return change * (old + old + change) / alpha, new * new / alpha, change * change / alpha


@inlined
def _add(i, indptr, indices, data, bias, values, sums, credit, n_differ, columns, step, alpha):
    """U_n += ``step[n]`` α_n x_i for the columns that differ; returns as :func:`_touch`, summed."""
    gain, square, moved = 0.0, 0.0, 0.0
    if data.ndim == 1:
        last = values.shape[0] - 1
        for j in range(indptr[i], indptr[i + 1] + 1):
            is_bias = j == indptr[i + 1]
            f = last if is_bias else indices[j]
            x = bias if is_bias else np.float64(data[j])
            for k in range(n_differ):
                n = columns[k]
                more, new, by = _touch(f, n, values, sums, step[n] * alpha[n] * x, credit, alpha[n])
                gain += more
                square += new
                moved += by
    else:
        last = data.shape[1]
        for k in range(n_differ):
            n = columns[k]
            for f in range(last + 1):
                x = bias if f == last else np.float64(data[i, f])
                more, new, by = _touch(n, f, values, sums, step[n] * alpha[n] * x, credit, alpha[n])
                gain += more
                square += new
                moved += by
    return gain, square, moved


@inlined
def _multiply_out(scale, credit, values, sums, shares):
    """Make the factor of U one, and the sum of all averaged U what ``sums`` holds."""
    for a in range(values.shape[0]):
        for b in range(values.shape[1]):
            if sums.shape[0] > 0:
                sums[a, b] += credit * values[a, b]
            values[a, b] *= scale
    for i in range(shares.shape[0]):
        shares[i] *= scale


@kernel
def steps_kernel(
    order, batch, leaves, indptr, indices, data, bias, values, sums, parent, leaf_column, ptr, idx, alpha, loss, which,
    normalized, lam, first, t0, power, linear, radius, eps, shares, numbers,
):  # fmt: skip
    """One step for every ``batch`` samples of ``order``."""
    t, scale, credit, count, norm, mass, error = (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6],
    )  # fmt: skip
    s, v = np.empty(alpha.shape[0], values.dtype), np.empty(ptr.shape[0] - 1, values.dtype)
    step, columns = np.zeros(alpha.shape[0]), np.empty(alpha.shape[0], np.int32)
    leaf, delta, kappa = np.empty(batch, np.int64), np.empty(batch), np.empty(batch)
    for lo in range(0, order.shape[0], batch):
        size = min(batch, order.shape[0] - lo)
        for r in range(size):
            _scores(order[lo + r], indptr, indices, data, bias, values, scale, s)
            leaf[r], delta[r], kappa[r] = _worst(
                s, leaves[lo + r], parent, leaf_column, ptr, idx, loss[which[lo + r]], normalized, v
            )
        t += 1.0
        eta = min(first * ((1.0 + t0) / (t + t0)) ** power, 1.0 / lam)
        scale *= max(0.0, 1.0 - eta * lam)
        if scale < _SMALL:
            _multiply_out(scale, credit, values, sums, shares)
            norm *= scale * scale
            mass *= scale
            error = error * scale + eps * np.sqrt(norm)
            scale, credit = 1.0, 0.0
        share = eta / (size * scale)
        for r in range(size):
            if leaf[r] < 0:
                continue
            n_differ = _differing(leaves[lo + r], leaf[r], ptr, idx, step, columns)
            for k in range(n_differ):
                step[columns[k]] *= share * kappa[r]
            gain, square, moved = _add(
                order[lo + r], indptr, indices, data, bias, values, sums, credit, n_differ, columns, step, alpha
            )
            norm += gain
            error += eps * np.sqrt(square) + ROUNDED * np.sqrt(moved)
            mass += share * delta[r]
            shares[order[lo + r]] += share
            for k in range(n_differ):
                step[columns[k]] = 0.0
        if scale * scale * norm > radius:
            scale = np.sqrt(radius / norm)
        weight = t if linear else 1.0
        credit += weight * scale
        count += weight
    numbers[:] = (t, scale, credit, count, norm, mass, error)
