"""Eq. 6 on a folded tree with the directional constraint and sums in a range: who is tied, who is at the upper end.

With an upper end, a node of height k, with b left of 1 and b + spare left of the upper end, cannot have more than
(b + spare)/k. A node that wants more takes that, as do all on its longest ways down. So weights come down the tree: the
parent's, if the node wants no more; else what it wants, but no more than it may.

That is a guess: nodes below that may not have what they want change what a node above wants, though this is rare. So
slopes of the cost go up the tree, as in :mod:`nhsvm.weights._reach`, and wherever one has the wrong sign, what its node
wants is searched for, the lowest nodes first. In the end the slopes give the multipliers of all constraints, and they a
lower bound of the cost: the result is proved, whatever was guessed.
"""

from __future__ import annotations

import numpy as np

from nhsvm.hierarchy.graph import BoolArray, FloatArray, PtrArray
from nhsvm.weights._interior import Solution
from nhsvm.weights._range_passes import Slopes, Weights, ascend, descend
from nhsvm.weights._range_proof import proved
from nhsvm.weights._reach import FoldedTree, Search, wanted_reach

_CLOSE = 1e-12  # slopes as small, relative to what they are made of, are zero; times ρ, or 10 if that is more
_MOST_LOOKS = 10_000


def solve_range(tree: FoldedTree, rho: float, high: float) -> Solution:
    """The optimum, proved; ``y`` of the result begins with the weights of the folded tree."""
    want = wanted_reach(tree, rho)
    mending = _Mending(tree, rho)
    looks = 0
    while True:
        at = descend(tree, want, high - 1)
        slopes = ascend(tree, at, tree.size, _log_growth(tree, at, rho), np.zeros(len(want)))
        which = mending.lowest(at, slopes)
        looks += 1
        if not len(which) or looks == _MOST_LOOKS:
            return proved(tree, at, slopes, rho, high, looks)
        want[which] = mending.search.next(which)


def _log_growth(tree: FoldedTree, at: Weights, rho: float) -> FloatArray:
    """(ρ−1)·log(a/a_parent); 0 for roots."""
    above = np.where(tree.parent >= 0, at.weight[tree.parent], at.weight)
    return (rho - 1) * np.log(at.weight / above)


class _Mending:
    """Searches for what nodes want where the guess is wrong."""

    def __init__(self, tree: FoldedTree, rho: float) -> None:
        n = len(tree.parent)
        self.tree, self.rho, self.close = tree, rho, _CLOSE * max(rho, 10.0)
        self.search = Search(tree.level.copy(), tree.level.copy())
        self.left, self.given_up = np.full((2, n), np.nan)  # what was left when a search began, and when one ended
        self.last_at, self.last_value = np.full((2, n), np.nan)

    def lowest(self, at: Weights, slopes: Slopes) -> PtrArray:
        """The nodes to mend: with a slope of the wrong sign, and none such below. Tells the search about them."""
        free = ~at.tied & ~at.capped
        more = slopes.slope + np.where(free, slopes.gain, 0.0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            lighter, heavier = (_logarithmic(values / slopes.count) for values in (slopes.of_less_weight(), more))
        too_much = ~at.tied & (lighter > self.close)
        too_little = (heavier < -self.close) & ~(at.capped & (slopes.ways > 0)) & ~too_much
        which = self._without_trouble_below((too_much | too_little) & (at.left != self.given_up))
        new = which[self.left[which] != at.left[which]]
        search, reach = self.search, at.reach[which]
        search.low[new], search.high[new] = self.tree.level[new], (self.tree.level + self.tree.height)[new] + 1
        self.left[new], self.last_at[new] = at.left[new], np.nan
        value = np.where(too_much, lighter, heavier)[which]
        search.at[which] = reach
        ended = which[search.tell(which, value, value, self.close)]
        self.given_up[ended] = at.left[ended]
        with np.errstate(invalid="ignore", divide="ignore"):
            secant = (reach - self.last_at[which]) / (value - self.last_value[which])
        first = (self.tree.level[which] - reach) / (self.rho - 1)  # as if one subtree pulled, from right below
        search.guess[which] = reach - value * np.where(np.isnan(secant), first, secant)
        self.last_at[which], self.last_value[which] = reach, value
        return which

    def _without_trouble_below(self, trouble: BoolArray) -> PtrArray:
        if not trouble.any():
            return np.zeros(0, dtype=np.int64)
        below = np.zeros(len(trouble), dtype=bool)
        for here in self.tree.levels[:0:-1]:
            up = self.tree.parent[here]
            below[up[trouble[here] | below[here]]] = True
        return np.flatnonzero(trouble & ~below)


def _logarithmic(value: FloatArray) -> FloatArray:
    """(tied − pulled)/tied ↦ log(tied/pulled), which is not so far from linear in the reach."""
    return np.asarray(-np.log1p(-np.minimum(value, 1 - 1e-15)))
