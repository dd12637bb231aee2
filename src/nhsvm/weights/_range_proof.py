"""How good weights with sums in a range are: multipliers from slopes, and a lower bound of the cost from these."""

from __future__ import annotations

import numpy as np

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.weights._interior import Solution, certified
from nhsvm.weights._range_passes import Slopes, Weights, ascend
from nhsvm.weights._reach import FoldedTree
from nhsvm.weights._steep_system import norm


def proved(tree: FoldedTree, at: Weights, slopes: Slopes, rho: float, high: float, looks: int) -> Solution:
    """The weights, with a lower bound of ‖α‖_ρ.

    For any multipliers y of sums and z ≥ 0 of α_child ≥ α_parent, and what they add up to for each weight, w:
    Σ (y)₊ − high·Σ (−y)₊ ≤ w·α ≤ ‖α‖_ρ ‖w₊‖_{ρ/(ρ−1)} for all feasible α (Hölder; weights that are paid for several
    times count as often in both norms).
    """
    top = tree.is_top
    cost = tree.size * np.exp((rho - 1) * np.log(at.weight / at.weight.max()))
    y = _multipliers(tree, at, slopes, cost)
    below, w = y.copy(), np.where(top, tree.height * y, 0.0)
    for i, here in reversed(list(enumerate(tree.levels))):
        w[here] += np.where(top[here], 0.0, below[here])
        z = np.where(at.tied[here] | at.edge[here], np.maximum(cost[here] - w[here], 0.0), 0.0)
        w[here] += z
        if i:
            above = tree.levels[i - 1]
            up, n = tree.parent[here] - above.start, above.stop - above.start
            below[above] += np.bincount(up, below[here], n)
            w[above] -= np.bincount(up, z, n)
    often = tree.size ** (1 / rho)
    value = norm(often * at.weight, rho)
    bound = (np.maximum(y, 0).sum() - high * np.maximum(-y, 0).sum()) / norm(np.maximum(w, 0) / often, rho / (rho - 1))
    sums = 1 - at.left[top] + tree.height[top] * at.weight[top]
    rise = (at.weight - at.weight[tree.parent])[tree.levels[0].stop :]
    forms = np.concatenate([at.weight, sums, rise])
    should_be = np.concatenate([np.clip(sums, 1, high), np.maximum(rise, 0)])
    return certified(forms, should_be, value, value - bound, 1 - bound / value, looks)


def _multipliers(tree: FoldedTree, at: Weights, slopes: Slopes, cost: FloatArray) -> FloatArray:
    """Of the sums of all ways down, one a top: positive for the lower end, negative for the upper one."""
    n = len(cost)
    below, part, y = np.append(slopes.part, 0.0), np.zeros(n), np.zeros(n + 1)
    for here in tree.levels:
        part[here] = below[tree.parent[here]]
        below[here] = np.where(at.tied[here] | at.capped[here], part[here], below[here])
    slopes = ascend(tree, at, cost, np.zeros(n), part)
    for here in tree.levels:
        up = tree.parent[here]
        room, ways, most = slopes.room[up], np.maximum(slopes.ways[up], 1), slopes.most[here]
        share = np.divide(y[up], room, out=np.zeros(len(up)), where=room > 0)
        shared = np.where(at.capped[here], most + (y[up] - room) / ways, most * share)
        tie = np.where(at.edge[here], part[here], 0.0)
        own = np.where(at.tied[here], shared, (1 - tie) * slopes.slope[here] / slopes.steps[here])
        y[here] = np.where(slopes.ways[here] > 0, own, 0.0)
    return np.where(tree.is_top, y[:n], 0.0)
