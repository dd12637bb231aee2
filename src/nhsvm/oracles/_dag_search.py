"""One sample on the core: bound, find, fix, shrink; branch where that stalls; HiGHS for what is left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nhsvm.hierarchy.graph import FloatArray
from nhsvm.oracles._dag_core import FREE, OFF, ON, Core, States, back, fixed, reduced
from nhsvm.oracles._dag_dive import leaning
from nhsvm.oracles._dag_primal import find
from nhsvm.oracles._dag_program import solve_program
from nhsvm.oracles._dag_small import solve_small
from nhsvm.oracles._dag_sweeps import Sweeper

_SMALL = 3000  # nodes up to which a split says much
_ROUNDS = 3  # sweeps up and down between two looks at the marginals
_DIVES = (1, 4, 8, 16, 24, 32, 40, 48, 56)  # looks at the same core that end in a dive
_PART, _STEPS = 60, 20_000  # nodes and steps up to which connected parts are solved by themselves
_FEW = 0.05  # part of the nodes that has to be settled before a smaller core is made
_SLOW = 0.02  # part of the gap; sweeps that lower the bound by less, three looks in a row, have stalled
_LONGER = 8  # budgets before HiGHS: it takes longer than that for nearly all
_PROGRAMS = 2  # open parts that are given to HiGHS one by one; more, and it gets what they were split from


class Open(NamedTuple):
    """A part of the search that is not settled: decisions to be made on a core, and its bound."""

    core: Core
    fate: States | None  # None: nothing to decide
    bound: float


class Search:
    """Depth first; every part is bounded, shrunk and split by the same means.

    Parameters
    ----------
    first : Core
    scale : float
        Σ|r|: differences of 1e-12 of it are rounding.
    big : float
        A cover below ``-big`` is none at all.
    precision : float
        Parts are given up when this, relative to the value, is all that they could still bring.
    """

    def __init__(self, first: Core, scale: float, big: float, precision: float = 0.0) -> None:
        self.first = first
        self.big = big
        self.tolerance = 1e-12 * scale
        self.precision = precision
        self.value = -1e300  # not infinite: kernels are compiled for finite numbers
        self.on: States = np.zeros(first.size, np.uint8)
        self.work = 0
        self.parts = 0
        self.given_up = -np.inf  # the largest bound of a part that was given up
        self.rest: Open | None = None  # what was split first

    def run(self, budget: int, exact: bool) -> float:
        """Search until the budget (edges visited in sweeps) is spent; the bound that is proved then."""
        budget *= _LONGER if exact else 1
        todo = [Open(self.first, None, np.inf)]
        while todo:
            part = todo.pop()
            if self._is_enough(part.bound):
                continue
            if self.work > budget and self.parts:
                todo.append(part)
                break
            self.parts += 1
            todo += self._process(part, 60 if self.parts == 1 else 6, budget)
        bound = max([self.value, self.given_up, *(part.bound for part in todo)])
        if exact and todo:
            bound = self._program(todo)
        return bound if bound > self.value + self.tolerance else self.value

    def _limit(self) -> float:
        return self.value + max(self.tolerance, self.precision * abs(self.value) if self.value > -1e300 else 0.0)

    def _is_enough(self, bound: float) -> bool:
        """Whether a part with this bound can be given up."""
        if bound > self._limit():
            return False
        self.given_up = max(self.given_up, bound)
        return True

    def _process(self, part: Open, patience: int, budget: int) -> list[Open]:
        """Nothing if the part is settled, else its two halves, the more promising one last."""
        fresh = part.fate is None
        rounds = 1 if fresh else _ROUNDS  # many samples are settled at the first look
        bound, stalled, last, looks = part.bound, 0, np.inf, 0
        core = part.core if part.fate is None else reduced(part.core, part.fate, self.big)
        sweeper = None
        while core is not None:
            if core.size == 0:
                self._accept(core, np.zeros(0, np.uint8), core.constant)
                return []
            if sweeper is None or sweeper.core is not core:
                sweeper, fresh, looks = Sweeper(core, fresh), False, 0
            self.work += (core.n_edges + core.size) * sweeper.run(rounds, self._limit())
            rounds = _ROUNDS
            bound = min(bound, sweeper.bound)
            if self._is_enough(bound):
                return []
            n_solved, parts = 0, core.state
            if looks == 0 and core is not self.first:
                parts, n_solved = self._solve_parts(core, sweeper.own)
            if looks == 0 and n_solved <= _FEW * core.size:
                self._accept(core, *find(core, sweeper.marginal, self.big, bound - self.tolerance))
            elif looks in _DIVES:
                self._dive(core, sweeper.marginal)
            looks += 1
            if self._is_enough(bound):
                return []
            gap = sweeper.bound - self.value
            fate, n_fixed = fixed(parts, sweeper.marginal, gap - self.tolerance)
            n_fixed += n_solved
            if self.work > budget:
                return [Open(core, fate, bound)]
            if n_fixed > _FEW * core.size:
                core = reduced(core, fate, self.big)
                continue
            slow = _SLOW * gap if core.size < _SMALL else 0.1 * _SLOW * gap
            stalled = stalled + 1 if sweeper.bound > last - slow else 0
            last = sweeper.bound
            patience -= 1
            if stalled >= 3 or patience <= 0:
                return self._halves(core, sweeper.marginal, bound)
        return []

    def _solve_parts(self, core: Core, own: FloatArray) -> tuple[States, int]:
        """The best sets of small connected parts, and the number of nodes in them."""
        fate, n_solved, steps = solve_small(core, own, _PART, _STEPS, 1e-3 * self.tolerance)
        self.work += steps
        return fate, n_solved

    def _dive(self, core: Core, marginal: FloatArray) -> None:
        """Settle half of the nodes by the dual's word, sweep the rest, and so on: the way to a good set."""
        parts = core.state
        while True:
            fate = leaning(core, parts, marginal)
            inside = np.where(fate == OFF, parts, fate)
            smaller = reduced(core, fate, self.big)
            if smaller is None:  # a node is in that nothing is left to cover; sets that leave nothing out do exist
                smaller = reduced(core, inside, self.big)
            if smaller is None or smaller.size == core.size:
                self._accept(core, *find(core, marginal, self.big, 1e300))
                return
            core = smaller
            if core.size == 0:
                self._accept(core, np.zeros(0, np.uint8), core.constant)
                return
            sweeper = Sweeper(core)
            self.work += (core.n_edges + core.size) * sweeper.run(1, self.value)
            if sweeper.bound <= self.value:
                return
            marginal = sweeper.marginal
            parts = self._solve_parts(core, sweeper.own)[0]

    def _halves(self, core: Core, marginal: FloatArray, bound: float) -> list[Open]:
        """Split at the node that the dual is least sure of and that touches most others."""
        degree = np.diff(core.links.child_ptr) + np.diff(core.links.parent_ptr)
        doubt = np.where(core.state == FREE, np.abs(marginal) / (1.0 + degree), np.inf)
        node = int(np.argmin(doubt))
        halves = []
        for decision in (OFF, ON) if marginal[node] > 0 else (ON, OFF):
            fate = core.state.copy()
            fate[node] = decision
            halves.append(Open(core, fate, bound))
        if self.rest is None:
            self.rest = Open(core, core.state.copy(), bound)
        return halves

    def _accept(self, core: Core, on: States, value: float) -> None:
        if value > self.value:
            self.value = value
            self.on = back(core, on)

    def _program(self, todo: list[Open]) -> float:
        """The rest by HiGHS; the bound for all of it."""
        if len(todo) > _PROGRAMS and self.rest is not None:
            todo = [self.rest]
        bound = self.value
        for part in todo:
            core = part.core if part.fate is None else reduced(part.core, part.fate, self.big)
            if core is None or self._is_enough(part.bound):
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
