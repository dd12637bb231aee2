"""Newton systems on a tree in one pass up and one down, without loss of digits.

To what is below it, a node is known by the sum S of the weights down to it and by its own weight P. So the least
quadratic cost of its subtree is a function V(S, P). We keep V as a sum of squares, q₁(S + ℓP)² + q₂P²; passing it up
only adds, multiplies and divides positive numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nhsvm.hierarchy.graph import FloatArray, PtrArray


class _Squares(NamedTuple):
    """q₁(S + ℓP)² + q₂P² for many nodes."""

    q1: FloatArray
    slope: FloatArray  # ℓ
    q2: FloatArray

    def gathered(self, parent: PtrArray, n: int) -> _Squares:
        """Sums over the children of each of ``n`` parents: slopes are averaged, and their variance goes to q₂."""
        q1 = sums(parent, self.q1, n)
        slope = sums(parent, self.q1 * self.slope, n) / np.where(q1 > 0, q1, 1.0)
        return _Squares(q1, slope, sums(parent, self.q2 + self.q1 * (self.slope - slope[parent]) ** 2, n))

    def plus(self, other: _Squares) -> _Squares:
        q1 = self.q1 + other.q1
        part = other.q1 / q1
        apart = other.slope - self.slope
        return _Squares(q1, self.slope + part * apart, self.q2 + other.q2 + part * self.q1 * apart**2)

    def rows(self, which: slice) -> _Squares:
        return _Squares(*(values[which] for values in self))


class _Pivots(NamedTuple):
    """The best weight is h·own + P·parent − S·above, with S and P those of the parent."""

    own: FloatArray
    parent: FloatArray
    above: FloatArray


def _eliminated(below: _Squares, steps: FloatArray, own: FloatArray, rise: FloatArray) -> tuple[_Pivots, _Squares]:
    """Minimise own·a² + rise·(a − P)² + q₁(S + steps·a)² + q₂a² over a.

    What is left of squares d_i(α_i a + l_i)² is Σ_{i<j} d_i d_j (α_i l_j − α_j l_i)² / Σ d_i α_i²: again squares.
    """
    own = own + below.q2
    both = own + rise
    pivot = both + below.q1 * steps**2
    left = below.q1 * both / pivot
    q2 = own * rise / pivot + left * (own / both) * (rise / both) * steps**2
    return _Pivots(1 / pivot, rise / pivot, below.q1 * steps / pivot), _Squares(left, steps * rise / both, q2)


@dataclass(frozen=True)
class RangeTree:
    """The Newton systems of a folded tree: a function of the forms' weights d that returns a solver of EᵀDE x = b.

    Attributes
    ----------
    levels : slices of the inner nodes, from the roots down
    parent : array of n_inner
        Parents of inner nodes as positions among them; −1 at the roots.
    top_parent, steps : arrays of n_tops
        Parents of the tops of folded subtrees, and how many nodes each path takes below them.
    """

    levels: list[slice]
    parent: PtrArray
    top_parent: PtrArray
    steps: FloatArray

    def __call__(self, d: FloatArray) -> Callable[[FloatArray], FloatArray]:
        n, m = len(self.parent), len(self.steps)
        own, low, high, rise = np.split(d, [n + m, n + 2 * m, n + 3 * m])
        rise = np.concatenate([np.zeros(self.levels[0].stop), rise])  # roots have no parent to rise from
        nothing = np.zeros(m)
        tops, folded = _eliminated(_Squares(low + high, nothing, nothing), self.steps, own[n:], rise[n:])
        below = folded.gathered(self.top_parent, n)
        up = _Squares(*np.zeros((3, 0)))
        lower = slice(n, n)
        pivots = []
        for here in reversed(self.levels):
            inner = up.gathered(self.parent[lower] - here.start, here.stop - here.start)
            total = below.rows(here).plus(inner)
            pivot, up = _eliminated(total, 1 + total.slope, own[here], rise[here])
            pivots.append(pivot)
            lower = here
        return lambda b: self._solve(pivots[::-1], tops, b)

    def _solve(self, pivots: list[_Pivots], tops: _Pivots, b: FloatArray) -> FloatArray:
        """Linear terms go up, in ``own`` and ``above``; weights come down, with S and P."""
        n = len(self.parent)
        h = b.copy()
        above = sums(self.top_parent, h[n:] * tops.above, n)
        own = sums(self.top_parent, h[n:] * tops.parent, n)
        for i in range(len(self.levels) - 1, -1, -1):
            here = self.levels[i]
            h[here] += own[here] - above[here]
            if i:
                up = self.levels[i - 1]
                parent, size = self.parent[here] - up.start, up.stop - up.start
                above[up] += sums(parent, above[here] + h[here] * pivots[i].above, size)
                own[up] += sums(parent, h[here] * pivots[i].parent, size)
        x = np.empty(len(b))
        total = np.empty(n)
        for here, pivot in zip(self.levels, pivots, strict=True):
            x[here] = h[here] * pivot.own
            if here.start:
                parent = self.parent[here]
                x[here] += x[parent] * pivot.parent - total[parent] * pivot.above
                total[here] = total[parent] + x[here]
            else:
                total[here] = x[here]
        parent = self.top_parent
        x[n:] = h[n:] * tops.own + x[parent] * tops.parent - total[parent] * tops.above
        return x


def sums(group: PtrArray, values: FloatArray, n: int) -> FloatArray:
    """Sums of ``values`` over each of ``n`` groups."""
    return np.bincount(group, values, n).astype(np.float64, copy=False)
