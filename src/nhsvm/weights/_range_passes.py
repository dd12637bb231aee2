"""A pass down and a pass up a folded tree, for :mod:`nhsvm.weights._range_sums`: weights, and slopes of their cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nhsvm.hierarchy.graph import BoolArray, FloatArray
from nhsvm.weights._reach import FoldedTree


@dataclass(frozen=True)
class Weights:
    """Weights from the roots down. A block is a node that is not tied, and all that is tied to it.

    Some ways down from a block are held at their end by a constraint: those of as many levels as the block reaches, if
    that is a whole number, since their sums are 1; the longest ones, if it is ``capped``, since their sums are at the
    upper end. A capped block may happen to reach a whole number as well. What is at that ``edge`` is not tied to it.
    """

    left: FloatArray
    weight: FloatArray
    reach: FloatArray
    tied: BoolArray
    end: FloatArray  # the level below the ways that are held; nan if there are none
    capped: BoolArray
    edge: BoolArray


def descend(tree: FoldedTree, want: FloatArray, spare: float) -> Weights:
    """Every node reaches as near as it wants, but no nearer than it may, and no farther than its parent."""
    n = len(tree.parent)
    left, weight = np.ones(n + 1), np.zeros(n + 1)  # the last entry is above the roots
    reach, end = np.full(n + 1, np.inf), np.full(n + 1, np.nan)
    tied, capped, edge = np.zeros((3, n + 1), dtype=bool)
    for here in tree.levels:
        up, level, height = tree.parent[here], tree.level[here], tree.height[here]
        b = left[here] = left[up] - weight[up]
        limit = _whole_if_close(level + b * height / (b + spare))
        own = np.maximum(want[here], limit)
        is_tied = np.where(capped[up], (own > reach[up]) | (end[up] == level + height), own >= reach[up])
        own_end = np.where(own == np.floor(own), own, np.nan)
        own_end = np.where(limit >= want[here], level + height, own_end)
        tied[here], edge[here] = is_tied, capped[up] & (own == reach[up]) & ~is_tied
        capped[here] = np.where(is_tied, capped[up], limit >= want[here])
        reach[here] = np.where(is_tied, reach[up], own)
        end[here] = np.where(is_tied, end[up], own_end)
        weight[here] = np.where(is_tied, weight[up], b / (own - level))
    return Weights(left[:n], weight[:n], reach[:n], tied[:n], end[:n], capped[:n], edge[:n])


def _whole_if_close(reach: FloatArray) -> FloatArray:
    """Whole numbers, where slopes jump, instead of what rounding has made of them."""
    whole = np.round(reach)
    return np.asarray(np.where(np.abs(reach - whole) <= 1e-13 + 1e-15 * np.abs(reach), whole, reach))


@dataclass(frozen=True)
class Slopes:
    """What goes up, in units of ρ·a^{ρ−1} of the node.

    Multipliers y of ways that are held at their end lower the slope of a node above by (end − level)·y. They may be as
    large as leaves no slope of a tied node negative: ``most``.

    What is at an edge may also count as tied, or as tied in part, which makes slopes above larger. ``part`` is what it
    takes to bring a slope that is negative otherwise to zero.
    """

    slope: FloatArray  # of the subtree's cost in the node's weight, with y = 0
    steps: FloatArray  # end − level; inf if no way down is held there
    count: FloatArray  # nodes tied to it, and itself
    ways: FloatArray  # children with ways that are held
    room: FloatArray  # their ``most`` together
    most: FloatArray
    gain: FloatArray  # by how much the slope is larger if all at edges is tied
    part: FloatArray

    def of_less_weight(self) -> FloatArray:
        """The slope of a node that is not tied if its weight was a little less."""
        held = self.ways > 0
        return np.asarray(self.slope - np.where(held, self.steps, 0.0) * np.where(held, self.room, 0.0))


def ascend(tree: FoldedTree, at: Weights, cost: FloatArray, log_growth: FloatArray, part: FloatArray) -> Slopes:
    """Slopes from the leaves up.

    Weights cost ``cost`` each, in units that are exp(``log_growth``) times the parent's. What is at an edge is tied by
    ``part``. All numbers of a node are parts of the largest below it, since powers may be no floats.
    """
    slope, count, share, most, loss, gain, steps, used, log_unit = np.zeros((9, len(cost)))
    ways = np.where(tree.is_top & (at.end == tree.level + tree.height), 1.0, 0.0)
    room = np.where(tree.is_top & ~at.capped, np.inf, 0.0)
    end = np.where(np.isnan(at.end), at.reach, at.end)
    for i, here in reversed(list(enumerate(tree.levels))):
        tied, edge, capped, held = at.tied[here], at.edge[here], at.capped[here], ways[here] > 0
        slope[here] += cost[here] * np.exp(-log_unit[here])
        count[here] += cost[here] * np.exp(-log_unit[here])
        d = steps[here] = np.where(held | ~tied, end[here] - tree.level[here], np.inf)
        most[here] = np.where(held, np.minimum(slope[here] / d, room[here]), 0.0)
        lacks = ~tied & ~capped & (slope[here] < 0) & (gain[here] > 0)
        used[here] = np.minimum(np.where(lacks, -slope[here], 0.0) / np.where(lacks, gain[here], 1.0), 1.0)
        if i == 0:
            break
        # the slope in what is left for the subtree: weights that are not tied grow with it, by 1/d
        own = slope[here] + used[here] * gain[here]
        tie = np.where(tied, 1.0, np.where(edge, part[here], 0.0))
        passed = share[here] - used[here] * loss[here] + (1 - tie) * own / d
        lost = np.where(tied, loss[here], np.where(edge, own / d, 0.0))
        lost = np.where(capped & ~tied, loss[here] - gain[here] / d, lost)
        above, up = tree.levels[i - 1], tree.parent[here]
        np.maximum.at(log_unit, up, log_growth[here] + log_unit[here])
        unit = np.exp(log_growth[here] + log_unit[here] - log_unit[up])
        for values, added in (
            (share, unit * passed),
            (slope, unit * (tie * own - passed)),
            (count, unit * tie * count[here]),
            (ways, tied & held),
            (room, unit * np.where(tied, most[here], 0.0)),
            (loss, unit * lost),
            (gain, unit * (lost + np.where(tied, gain[here], np.where(edge, own, 0.0)))),
        ):
            values[above] += np.bincount(up - above.start, added, above.stop - above.start)
    return Slopes(slope, steps, count, ways, room, most, gain, used)
