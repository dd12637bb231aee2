"""What looks leave open of one sample: branch at a node where they stall; HiGHS for what is left."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from nhsvm.oracles._dag_looks import Core, Looks, begun, reduced
from nhsvm.oracles._dag_program import solve_program
from nhsvm.oracles._dag_work import FREE, OFF, ON, SETTLED, SPLIT, States

_PROGRAMS = 2  # open parts that are given to HiGHS one by one; more, and it gets what they were split from


class Open(NamedTuple):
    """A part of the search that is not settled: decisions to be made on a core, and its bound."""

    core: Core
    fate: States
    bound: float


class Search:
    """Every part is looked at and split by the same means.

    Within a budget, the part with the largest bound comes first, so that the bound of all falls. Where all must be
    settled, it is depth first, which finds good sets early.

    Parameters
    ----------
    looks : Looks
        At all samples.
    sample : int
    first : Core
        That the sample began with.
    """

    def __init__(self, looks: Looks, sample: int, first: Core) -> None:
        me = looks.work.samples[sample]
        self.value, self.given_up = float(me["value"]), float(me["given_up"])
        self.big, self.tolerance, self.precision = float(me["big"]), float(me["tolerance"]), float(me["precision"])
        self.work, self.budget = int(me["work"]), int(me["budget"])
        self.on: States | None = None  # a better set than the looks have found
        self.rest: Open | None = None  # what was split first
        self._numbers = count()
        self.todo = self._left(looks, sample, first)

    def run(self, exact: bool) -> float:
        """Search until the budget is spent, then, if ``exact``, prove it; the bound."""
        todo: list[tuple[float, int, Open]] = []
        made = self.todo
        while True:
            for part in made:  # of equals, the last first
                heappush(todo, (0.0 if exact else -part.bound, -next(self._numbers), part))
            if not todo or self.work > self.budget:
                break
            part = heappop(todo)[2]
            made = [] if self._is_enough(part.bound) else self._process(part)
        bound = max([self.value, self.given_up, *(part.bound for _, _, part in todo)])
        if exact and todo:
            bound = self._program([part for _, _, part in todo])
        return bound if bound > self.value + self.tolerance else self.value

    def _is_enough(self, bound: float) -> bool:
        """Whether a part with this bound can be given up."""
        if bound > self.value + max(self.tolerance, self.precision * abs(self.value)):
            return False
        self.given_up = max(self.given_up, bound)
        return True

    def _process(self, part: Open) -> list[Open]:
        """Nothing if the part is settled, else what is left of it."""
        looks = begun(
            part.core, part.fate, value=self.value, bound=part.bound, given_up=self.given_up, big=self.big,
            tolerance=self.tolerance, precision=self.precision, work=self.work, budget=self.budget,
        )  # fmt: skip
        looks.run(shrinking=1)
        me = looks.work.samples[0]
        self.work, self.given_up = int(me["work"]), float(me["given_up"])
        self._accept(part.core, looks.work.best[0], float(me["value"]))
        return self._left(looks, 0, part.core)

    def _left(self, looks: Looks, sample: int, first: Core) -> list[Open]:
        """What a sample has left open: nothing, a part, or two halves, the more promising one last.

        The split is at the node that the dual is least sure of and that touches most others.
        """
        me = looks.work.samples[sample]
        if me["phase"] == SETTLED:
            return []
        core = looks.core(sample, first)
        fate, bound = looks.work.fate[2 * sample, : core.size].copy(), float(me["bound"])
        if me["phase"] != SPLIT:
            return [Open(core, fate, bound)]
        if self.rest is None:
            self.rest = Open(core, fate.copy(), bound)
        marginal = looks.work.nodes.marginal[2 * sample, : core.size]
        degree = np.diff(core.links.child_ptr) + np.diff(core.links.parent_ptr)
        node = int(np.argmin(np.where(fate == FREE, np.abs(marginal) / (1.0 + degree), np.inf)))
        halves = []
        for decision in (OFF, ON) if marginal[node] > 0 else (ON, OFF):
            decided = fate.copy()
            decided[node] = decision
            halves.append(Open(core, decided, bound))
        return halves

    def _accept(self, core: Core, on: States, value: float) -> None:
        if value > self.value:
            self.value = value
            self.on = core.back(on)

    def _program(self, todo: list[Open]) -> float:
        """The rest by HiGHS; the bound for all of it."""
        if len(todo) > _PROGRAMS and self.rest is not None:
            todo = [self.rest]
        bound = self.value
        for part in todo:
            if self._is_enough(part.bound):
                continue
            core = reduced(part.core, part.fate, self.big)
            if core is None:
                continue
            if core.size == 0:
                self._accept(core, np.zeros(0, np.uint8), core.constant)
                continue
            on, upper = solve_program(core, self.big)
            if np.isfinite(upper):
                self._accept(core, on, value_of(core, on))
                bound = max(bound, upper)
        return bound


def value_of(core: Core, on: States) -> float:
    """What a set is worth on a core."""
    parent = np.repeat(np.arange(core.size), np.diff(core.links.child_ptr))
    covered = np.bincount(parent, weights=on[core.links.child], minlength=core.size) > 0
    inside = on == 1
    return float(core.constant + core.reward[inside].sum() + core.cover[inside & ~covered].sum())
