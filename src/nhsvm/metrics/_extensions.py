"""Label sets, extended by the ways up to common ancestors: the sets that LCA-F1 compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import NamedTuple

from nhsvm.metrics._ways import Nodes, Ways

_MANY = 4096  # combinations that are all tried
Sides = tuple[Nodes, Nodes]  # the true side and the predicted side


class Step(NamedTuple):
    """A way up that one side needs: to one of some ancestors, from one of some labels."""

    side: int
    labels: Nodes
    tops: Nodes


def f1_of_sets(ways: Ways, true: Nodes, pred: Nodes) -> float:
    """2 |T ∩ P| / (|T| + |P|) of the extended sets; see :func:`nhsvm.metrics.lca_f1`."""
    true, pred = ways.lowest(true), ways.lowest(pred)
    if true == pred:
        return 1.0
    if not (true and pred):
        return 0.0
    extended = _Extension(ways, (true, pred)).smallest()
    return 2 * len(extended[0] & extended[1]) / (len(extended[0]) + len(extended[1]))


class _Extension:
    """The search for the smallest extension of two sets."""

    def __init__(self, ways: Ways, sides: Sides) -> None:
        self._ways, self._labels = ways, sides
        self._steps = [
            Step(side, frozenset({n}), ways.nearest(n, sides[1 - side]))
            for side in (0, 1)
            for n in sorted(sides[side] - sides[1 - side])
        ]
        self._steps.sort(key=lambda step: len(step.tops))  # what is certain comes first
        choices = prod(len(step.tops) for step in self._steps)
        several = {top for step in self._steps for top in step.tops}
        choices *= prod(max(len(self._below(side, top)) for side in (0, 1)) for top in several)
        self._pick: Callable[[Iterable[Sides]], Sides] = self._best if choices <= _MANY else self._first

    def smallest(self) -> Sides:
        """Both sides, such that every label has its way up and both sides have all ancestors that these lead to."""
        return self._walk(self._labels, self._steps, frozenset())

    def _walk(self, sides: Sides, steps: list[Step], used: Nodes) -> Sides:
        if not steps:
            missing = [(top, side) for side in (0, 1) for top in used - sides[side]]
            if not missing:
                return sides
            top, side = min(missing)  # the topmost: the way to it may lead over others
            steps = [Step(side, self._below(side, top), frozenset({top}))]
        (side, labels, tops), *later = steps
        return self._pick(
            self._walk(_with(sides, side, self._ways.path(n, top)), later, used | {top})
            for top in sorted(tops)
            for n in sorted(labels)
        )

    def _below(self, side: int, top: int) -> Nodes:
        """The labels of a side that have a node above them."""
        return frozenset(n for n in self._labels[side] if top in self._ways.above(n))

    @staticmethod
    def _best(found: Iterable[Sides]) -> Sides:
        return min(found, key=lambda sides: (len(sides[0]) + len(sides[1]), -len(sides[0] & sides[1])))

    @staticmethod
    def _first(found: Iterable[Sides]) -> Sides:
        return next(iter(found))


def _with(sides: Sides, side: int, nodes: Nodes) -> Sides:
    more = sides[side] | nodes
    return (more, sides[1]) if side == 0 else (sides[0], more)
