"""Eq. 6 on a folded tree with the directional constraint and sums of at least 1: how far every node wants to reach.

Let b be what the sum above a node leaves of 1. We describe a weight a by its *reach*, level + b/a: the level at which
the sum would be 1 if all below had the same weight. A child with its parent's weight has its parent's reach, and
α_child ≥ α_parent says that reach never grows on the way down. An even subtree that is free to choose reaches the level
below its leaves.

The problem has no unit but b, so the reach that a node wants is a number of its subtree alone. It takes it if it is
less than its parent's, and otherwise that of its parent; then we call it tied. The cost of a node with all that is tied
to it, at reach u, grows with its weight a by, in units of ρ·a^{ρ−1},

    (nodes tied) − Σ_m j_m·share_m·(a_m/a)^{ρ−1},    a_m/a = (u − level_m)/(reach_m − level_m),

summed over the subtrees m right below the tied nodes, j_m levels down: a takes j_m·a from what is left for them, and
share_m is the slope of their cost in that, in units of ρ·a_m^{ρ−1}. This falls with u, continuously but for jumps
at whole numbers. Its zero, or the whole number where it changes sign, is the reach that the node wants. What is tied
to a child stays tied when the child is tied itself, so a node is tied once and then only counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nhsvm.hierarchy.graph import BoolArray, FloatArray, PtrArray

_DIGITS = 4e-16  # an interval as narrow has no numbers inside


@dataclass(frozen=True)
class FoldedTree:
    """Inner nodes, and tops of even subtrees in groups; level by level, inner nodes first.

    Attributes
    ----------
    levels : slices of nodes, from the roots down
    is_top : array
    parent : array
        Positions; −1 for the roots, which are the first level.
    level, height : arrays
        ``height`` counts the nodes on the longest way down. From a top, all ways down are as long.
    size : array
        How often a weight is paid for: once for an inner node, by all nodes below for a group of tops.
    """

    levels: list[slice]
    is_top: BoolArray
    parent: PtrArray
    level: FloatArray
    height: FloatArray
    size: FloatArray


class Search:
    """Zeros of falling functions, many at once, by guesses that do not skip whole numbers, where these may jump."""

    def __init__(self, low: FloatArray, high: FloatArray) -> None:
        self.low, self.high = low, high  # zeros are strictly between
        self.at = low.copy()
        self.guess = np.full(len(low), np.nan)

    def next(self, which: PtrArray) -> FloatArray:
        """Where to look."""
        low, high, at, guess = (x[which] for x in (self.low, self.high, self.at, self.guess))
        guess = np.where((guess > low) & (guess < high), guess, low + (high - low) / 2)
        whole = np.where(guess > at, np.floor(guess), np.ceil(guess))  # the last one on the way
        on_the_way = (whole > low) & (whole < high) & ((whole > at) == (guess > at)) & (whole != at)
        self.at[which] = np.where(on_the_way, whole, guess)
        return self.at[which]

    def tell(self, which: PtrArray, above: FloatArray, below: FloatArray, close: float) -> BoolArray:
        """What was found just above and just below; returns where that is a zero, or as near as numbers go."""
        up, down = above > close, below < -close
        self.low[which[up]] = self.at[which[up]]
        self.high[which[down]] = self.at[which[down]]
        return ~(up | down) | (self.high[which] - self.low[which] <= _DIGITS * self.high[which])


class _Below(NamedTuple):
    """What is below the nodes of a level, but for what is tied to something already."""

    owner: PtrArray  # the node of the level that it is below
    seen: FloatArray  # the reach of what is right above: if that is tied, this comes next
    level: FloatArray
    down: FloatArray  # levels below the owner
    reach: FloatArray
    share: FloatArray  # its logarithm
    nodes: FloatArray  # tied to it, and itself

    def take(self, which: BoolArray) -> _Below:
        rows = np.flatnonzero(which)  # quicker than a mask for each
        return _Below(self.owner[rows], *(values[rows] for values in self[1:]))

    def pulls(self, at: FloatArray, rho: float) -> FloatArray:
        """share·(a_m/a)^{ρ−1} where the owner's reach is ``at``."""
        with np.errstate(over="ignore"):
            return np.exp(self.share + (rho - 1) * np.log((at - self.level) / (self.reach - self.level)))

    def slopes(self, u: FloatArray, rho: float) -> tuple[_Slopes, _Slopes]:
        """What the owners see just above and just below reach ``u``."""
        at = u[self.owner]
        front = self.take((self.reach <= at) & (self.seen >= at))
        front_at = u[front.owner]
        with np.errstate(over="ignore"):
            pull = front.down * front.pulls(front_at, rho)
            bend = pull * (rho - 1) / (front_at - front.level)

        def of(tied: BoolArray, free: BoolArray) -> _Slopes:
            held = 1 + np.bincount(self.owner[tied], self.nodes[tied], len(u))
            pulled, bent = (np.bincount(front.owner[free], x[free], len(u)) for x in (pull, bend))
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                value = np.log(held) - np.log(pulled)
                return _Slopes(value, u + value * pulled / bent)

        above = of(self.reach > at, front.seen > front_at)
        jumps = (self.reach == at).any()
        return above, of(self.reach >= at, front.reach < front_at) if jumps else above


class _Slopes(NamedTuple):
    value: FloatArray  # log of (nodes tied) / Σ j·share·(a_m/a)^{ρ−1}
    zero: FloatArray  # where a Newton step leads


def wanted_reach(tree: FoldedTree, rho: float) -> FloatArray:
    """The reach that every node wants as long as sums have no upper end."""
    n = len(tree.parent)
    reach = tree.level + tree.height
    share, count = np.log(tree.size / tree.height), tree.size.copy()
    nearest, most = reach.copy(), np.zeros(n)  # of the leaves below, and of the children
    node, owner, seen = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    for here in tree.levels[::-1]:
        owner = tree.parent[owner]
        n_inner = int((~tree.is_top[here]).sum())
        if n_inner:
            inner = slice(here.start, here.start + n_inner)
            level = tree.level[here.start]
            depth = tree.level[node]
            below = _Below(owner - here.start, seen, depth, depth - level, reach[node], share[node], count[node])
            u = reach[inner] = _zeros(below, nearest[inner], most[inner], rho)
            at = u[below.owner]
            tied, front = below.reach > at, (below.reach <= at) & (seen > at)
            count[inner] += np.bincount(below.owner[tied], below.nodes[tied], n_inner)
            near = below.take(front)
            paid = (at[front] - near.level) * near.pulls(at[front], rho)
            share[inner] = np.log((count[inner] + np.bincount(near.owner, paid, n_inner)) / (u - level))
            seen = np.where(front, at, seen)[~tied]
            node, owner = node[~tied], owner[~tied]
        new = np.arange(here.start, here.stop)
        if here.start:
            np.minimum.at(nearest, tree.parent[here], nearest[here])
            np.maximum.at(most, tree.parent[here], reach[here])
        node, owner = np.concatenate([node, new]), np.concatenate([owner, new])
        seen = np.concatenate([seen, np.full(len(new), np.inf)])
    return reach


def _zeros(below: _Below, nearest: FloatArray, most: FloatArray, rho: float) -> FloatArray:
    """Where the slopes change sign.

    Not before the nearest leaf, where all are tied. And not above the largest reach of the children, where none is tied
    and one alone pulls enough: no share is less than 1, since weights on a path do not fall and add up to b, so that
    their powers add up to a^{ρ−1}·b at least.
    """
    search = Search(nearest - 1, most + 1)
    close = 1e-14 * max(rho - 1, 0.3)
    u = np.empty(len(nearest))
    waiting = np.arange(len(u))
    below = below.take(below.seen >= nearest[below.owner])
    while len(waiting):
        u[waiting] = search.next(waiting)
        above, under = below.slopes(u, rho)
        met = search.tell(waiting, above.value[waiting], under.value[waiting], close)
        search.guess = np.where(above.value > 0, above.zero, under.zero)
        if met.any():
            waiting = waiting[~met]
            is_waiting = np.zeros(len(u), dtype=bool)
            is_waiting[waiting] = True
            below = below.take(is_waiting[below.owner])
    return u
