"""The search: rounds of bounds and label sets at the cores of a batch, then branch and bound for what they leave open.

A round sweeps for bounds and marginals, rounds the marginals to a label set, and then accepts it, dives for a better
one, fixes nodes, or gives up (:func:`advance_kernel`). Nodes whose marginal is larger than what is between the bound
and the best set are as their signs say in any better set: they are *fixed*. In a *dive* the surer half of the free
nodes is settled by the dual's word alone; where a node to be left out is above one to be in, the weaker of the two is
left free. Where bounds stall, the problem is split in two at a node; and what is left in the end is an integer program
for HiGHS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from nhsvm._jit import inlined, kernel
from nhsvm.errors import NotSolvedError
from nhsvm.oracles.dag.bound import components_kernel, sweep_kernel
from nhsvm.oracles.dag.core import (
    FREE,
    OFF,
    ON,
    RUNNING,
    SETTLED,
    SPENT,
    SPLIT,
    TUNING,
    Core,
    Links,
    Reduction,
    Trace,
    Work,
    compact_kernel,
    expand,
    links_of,
    make_work,
    shrink_kernel,
)
from nhsvm.oracles.dag.plan import Folded, Plan, fold_kernel, unfold_kernel
from nhsvm.oracles.dag.primal import rounding_kernel
from nhsvm.oracles.dag.reduce import cut_kernel, prune_kernel
from nhsvm.oracles.lp import make_model, set_costs, set_type
from nhsvm.oracles.protocol import Memory
from nhsvm.typing import ByteArray, FloatArray, PtrArray


class Limits(NamedTuple):
    """How far a search goes."""

    budget: int  # work: nodes and edges visited in sweeps
    precision: float  # part of abs(value) that a bound may exceed it by
    branches: bool  # branch where bounds have stalled, within the budget
    exact: bool  # go on until the optimum is proved


class Asked(NamedTuple):
    """Rewards of some samples, and what is remembered of them."""

    rewards: FloatArray
    scales: FloatArray  # Σ|r|
    memory: Memory
    rows: PtrArray  # theirs in the memory

    def of(self, which: PtrArray | slice) -> Asked:
        """The same of some of them."""
        return Asked(self.rewards[which], self.scales[which], self.memory, self.rows[which])


Kind = TypeVar("Kind")


class Spare(Generic[Kind]):
    """What threads work with, one each: made when none is left that no other uses."""

    def __init__(self, make: Callable[[], Kind]) -> None:
        self._make, self._left = make, list[Kind]()

    @contextmanager
    def taken(self) -> Iterator[Kind]:
        """One of them, for a while; not taken back after an error."""
        try:
            one = self._left.pop()
        except IndexError:
            one = self._make()
        yield one
        self._left.append(one)


class Batch:
    """Room for some samples at a time: onto the core, rounds, a search for the few that these leave open, and back.

    Parameters
    ----------
    plan : Plan
    allow_empty : bool
    """

    def __init__(self, plan: Plan, allow_empty: bool) -> None:
        self.plan, self.allow_empty = plan, allow_empty
        n, n_edges = len(plan.node), len(plan.links.child)
        self.size = int(np.clip(TUNING.entries // (n + n_edges), 1, TUNING.batch))
        self.rounds = Rounds(make_work(n, n_edges, self.size, plan.links))
        self.folded = Folded(*np.empty((3, self.size, len(plan.is_leaf))))

    def solve(self, asked: Asked, chosen: ByteArray, limits: Limits) -> FloatArray:
        """Fill in label sets; by how much better ones could exceed them."""
        self.load(asked, limits)
        gap = np.zeros(len(chosen))
        if len(self.plan.node) == 1:  # a tree: all is folded
            self.rounds.work.best[:] = 1
        else:
            self.rounds.run(self.rounds.prune() + self.rounds.cut())
            for s in range(len(chosen)):
                gap[s] = left_open(self.rounds, s, limits)
        unfold_kernel(asked, self.plan, self.allow_empty, self.folded, self.rounds.work, chosen)
        return gap

    def renew(self, asked: Asked, value: FloatArray, sweeps: int, precision: float) -> FloatArray:
        """By how much better sets could exceed some of these values, by sweeps alone; the shares are remembered."""
        w, k = self.rounds.work, len(value)
        self.load(asked, Limits(0, precision, False, False))
        if len(self.plan.node) == 1:  # what is remembered of a tree says nothing
            return np.maximum(w.nodes.reward[: 2 * k : 2, 0] + w.nodes.cover[: 2 * k : 2, 0] - value, 0.0)
        mine = w.samples[:k]
        mine["value"], mine["sweeps"], mine["rise"] = value, sweeps, TUNING.rise_of_bounds
        if self.rounds.prune():
            self.rounds.shrink()
        self.rounds.sweep()
        lines = w.lines[: 2 * k : 2]
        bound = np.where(lines["size"] == 0, lines["constant"], mine["bound"])
        for s in range(k):
            e = lines["n_edges"][s]
            w.shares.kept[s, w.shares.edge[2 * s, :e]] = w.shares.share[2 * s, :e]
        asked.memory.shares[asked.rows] = w.shares.kept[:k]
        asked.memory.known[asked.rows] = 2
        return np.where(bound > value + mine["tolerance"], bound - value, 0.0)

    def load(self, asked: Asked, limits: Limits) -> None:
        """Rewards onto the core."""
        self.rounds.work.samples["phase"] = SETTLED
        fold_kernel(asked, limits, self.plan, self.allow_empty, self.folded, self.rounds.work)


class Rounds:
    """Some samples on their cores, and the steps of a round.

    Parameters
    ----------
    work : Work
        Room for them.
    """

    def __init__(self, work: Work) -> None:
        self.work = w = work
        self._batch = w.samples, w.lines, w.nodes, w.links

    def run(self, shrinking: int = 0) -> None:
        """Rounds for all samples that are running until none is; ``shrinking`` have decisions to apply."""
        running = 1
        while running:
            if shrinking:
                self.shrink()
            self.sweep()
            self.components()
            self.round()
            running, shrinking = self.advance()

    def prune(self) -> int:
        """Take out what rewards settle, before the first round; the number of samples that shrink then."""
        prune_kernel(*self._batch, self.work.decision)
        return self._compact(TUNING.pruned)

    def cut(self, visits: int = TUNING.visits) -> int:
        """Take out what flows settle, before the first round; the number of samples that shrink then.

        ``visits`` times its nodes may be visited in search of paths for a flow.
        """
        cut_kernel(visits, *self._batch, self.work.decision)
        return self._compact(TUNING.cut)

    def _compact(self, part: float) -> int:
        w = self.work
        return int(compact_kernel(part, *self._batch, w.shares, w.trace, w.decision))

    def shrink(self) -> None:
        """Apply decisions."""
        shrink_kernel(*self._batch, self.work.shares, self.work.trace, self.work.decision)

    def sweep(self) -> None:
        """Bounds and marginals."""
        sweep_kernel(*self._batch, self.work.shares.share)

    def components(self, most: int = TUNING.part, limit: int = TUNING.steps) -> None:
        """Solve connected components of up to ``most`` nodes that take up to ``limit`` steps each."""
        components_kernel(most, limit, *self._batch, self.work.shares.share, self.work.parts)

    def round(self) -> None:
        """Marginals to label sets."""
        rounding_kernel(*self._batch, self.work.on)

    def advance(self) -> tuple[int, int]:
        """What then; the number of samples that are running, and of those that shrink."""
        w = self.work
        running, shrinking = advance_kernel(*self._batch, w.trace, w.decision, w.parts, w.on, w.best)
        return running, shrinking

    def first(self, sample: int) -> Core:
        """The core that a sample began with; what nodes are worth on it, if it has not been shrunk."""
        w, b, me = self.work, 2 * sample, self.work.samples[sample]
        row, n = int(me["origin"]), int(me["whole"])
        links = _links(w.links, row, n, int(w.links.parent_ptr[row, n]))
        share = w.shares.share[b, : len(links.parent)]
        return Core(w.nodes.reward[b, :n], w.nodes.cover[b, :n], w.nodes.state[b, :n], links, share, 0.0)

    def core(self, sample: int, first: Core) -> Core:
        """What a sample has come to; ``first`` is the core that it began with."""
        w, line = self.work, self.work.lines[2 * sample]
        b, n, e, folds = 2 * sample, int(line["size"]), int(line["n_edges"]), int(line["folds"])
        if line["links"] == w.samples["origin"][sample]:
            return first
        links = Links(*(array.copy() for array in _links(w.links, line["links"], n, e)))
        done, best, child, parent, take = w.trace
        folded = child[sample, :folds].copy(), parent[sample, :folds].copy(), take[sample, :folds].copy()
        trace = Trace(done[b].copy(), best[b].copy(), *folded)
        nodes = w.nodes.reward[b, :n].copy(), w.nodes.cover[b, :n].copy(), w.nodes.state[b, :n].copy()
        made = Reduction(first, w.nodes.node[b, :n].copy(), trace)
        return Core(*nodes, links, w.shares.share[b, :e].copy(), float(line["constant"]), made)


def _links(links: Links, row: int, n: int, n_edges: int) -> Links:
    """Of one core of a batch, as views."""
    sizes = n + 1, n_edges, n + 1, n_edges, n_edges
    return Links(*(array[row, :size] for array, size in zip(links, sizes, strict=True)))


def started(core: Core, decision: ByteArray, **known: float) -> Rounds:
    """A core with decisions that are still to be applied; ``known`` goes into the record of the sample."""
    rounds = Rounds(make_work(core.size, len(core.links.child), 1, core.links))
    w = rounds.work
    w.nodes.reward[0], w.nodes.cover[0], w.nodes.state[0] = core.reward, core.cover, core.state
    w.nodes.node[0] = np.arange(core.size)
    w.shares.share[0], w.shares.edge[0] = core.share, np.arange(len(core.share))
    w.trace.done[0], w.trace.best[0], w.decision[0] = 0, -1, decision
    record = {"phase": RUNNING, "shrink": 1, "patience": TUNING.patience, "sweeps": TUNING.sweeps, "last": 1e300}
    record |= {"rise": TUNING.rise, "bound": 1e300, "given_up": -1e300, "value": -1e300, "whole": core.size, **known}
    for name, value in record.items():
        w.samples[name] = value
    line = {"size": core.size, "n_edges": len(core.share), "swept": 1, "constant": core.constant}
    for name, value in line.items():
        w.lines[name][0] = value
    return rounds


def reduced(core: Core, decision: ByteArray, big: float) -> Core | None:
    """The smaller core that decisions make; None if they cannot be. A cover below ``-big`` is none at all."""
    rounds = started(core, decision, big=big)
    rounds.shrink()
    return rounds.core(0, core) if rounds.work.samples["phase"][0] == RUNNING else None


def left_open(rounds: Rounds, s: int, limits: Limits) -> float:
    """What is left between bound and value of a sample, after a search if it is open, whose set is then kept."""
    me = rounds.work.samples[s]
    if me["phase"] == SETTLED or not (limits.exact or (limits.branches and me["work"] <= me["budget"])):
        bound, value = max(me["given_up"], -1e300 if me["phase"] == SETTLED else me["bound"]), me["value"]
    else:
        first = rounds.first(s)
        search = BranchAndBound(rounds, s, first)
        bound, value = search.run(limits.exact), search.value
        if search.on is not None:
            rounds.work.best[s, : first.size] = search.on
    return float(bound - value) if bound > value + me["tolerance"] else 0.0


# -- branch and bound --------------------------------------------------------------------------------------------------


class Subproblem(NamedTuple):
    """A part of the search that is not settled: decisions to be made on a core, and its bound."""

    core: Core
    decision: ByteArray
    bound: float


class BranchAndBound:
    """Every part has rounds and is split by the same means.

    Within a budget, the part with the largest bound comes first, so that the bound of all falls. Where all must be
    settled, it is depth first, which finds good sets early.

    Parameters
    ----------
    rounds : Rounds
        Of all samples.
    sample : int
    first : Core
        That the sample began with.
    """

    def __init__(self, rounds: Rounds, sample: int, first: Core) -> None:
        me = rounds.work.samples[sample]
        self.value, self.given_up = float(me["value"]), float(me["given_up"])
        self.big, self.tolerance, self.precision = float(me["big"]), float(me["tolerance"]), float(me["precision"])
        self.work, self.budget = int(me["work"]), int(me["budget"])
        self.on: ByteArray | None = None  # a better set than the rounds have found
        self.rest: Subproblem | None = None  # what was split first
        self._numbers = count()
        self.todo = self._left(rounds, sample, first)

    def run(self, exact: bool) -> float:
        """Search until the budget is spent, then, if ``exact``, prove it; the bound."""
        todo: list[tuple[float, int, Subproblem]] = []
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

    def _process(self, part: Subproblem) -> list[Subproblem]:
        """Nothing if the part is settled, else what is left of it."""
        rounds = started(
            part.core, part.decision, value=self.value, bound=part.bound, given_up=self.given_up, big=self.big,
            tolerance=self.tolerance, precision=self.precision, work=self.work, budget=self.budget,
        )  # fmt: skip
        rounds.run(shrinking=1)
        me = rounds.work.samples[0]
        self.work, self.given_up = int(me["work"]), float(me["given_up"])
        self._accept(part.core, rounds.work.best[0], float(me["value"]))
        return self._left(rounds, 0, part.core)

    def _left(self, rounds: Rounds, sample: int, first: Core) -> list[Subproblem]:
        """What a sample has left open: nothing, a part, or two halves, the more promising one last.

        The split is at the node that the dual is least sure of and that touches most others.
        """
        me = rounds.work.samples[sample]
        if me["phase"] == SETTLED:
            return []
        core = rounds.core(sample, first)
        decision, bound = rounds.work.decision[2 * sample, : core.size].copy(), float(me["bound"])
        if me["phase"] != SPLIT:
            return [Subproblem(core, decision, bound)]
        if self.rest is None:
            self.rest = Subproblem(core, decision.copy(), bound)
        marginal = rounds.work.nodes.marginal[2 * sample, : core.size]
        degree = np.diff(core.links.child_ptr) + np.diff(core.links.parent_ptr)
        node = int(np.argmin(np.where(decision == FREE, np.abs(marginal) / (1.0 + degree), np.inf)))
        halves = []
        for value in (OFF, ON) if marginal[node] > 0 else (ON, OFF):
            decided = decision.copy()
            decided[node] = value
            halves.append(Subproblem(core, decided, bound))
        return halves

    def _accept(self, core: Core, on: ByteArray, value: float) -> None:
        if value > self.value:
            self.value = value
            self.on = core.expanded(on)

    def _program(self, todo: list[Subproblem]) -> float:
        """The rest by HiGHS; the bound for all of it."""
        if len(todo) > TUNING.programs and self.rest is not None:
            todo = [self.rest]
        bound = self.value
        for part in todo:
            if self._is_enough(part.bound):
                continue
            core = reduced(part.core, part.decision, self.big)
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


def value_of(core: Core, on: ByteArray) -> float:
    """What a set is worth on a core."""
    parent = np.repeat(np.arange(core.size), np.diff(core.links.child_ptr))
    covered = np.bincount(parent, weights=on[core.links.child], minlength=core.size) > 0
    inside = on == 1
    return float(core.constant + core.reward[inside].sum() + core.cover[inside & ~covered].sum())


# -- the integer program -----------------------------------------------------------------------------------------------


def solve_program(core: Core, big: float) -> tuple[ByteArray, float]:
    """The best set on a core and an upper bound, both proved by HiGHS.

    Parameters
    ----------
    core : Core
    big : float
        A cover below ``-big`` is none at all.
    """
    from highspy import HighsModelStatus, HighsVarType

    n = core.size
    need = np.flatnonzero(core.cover < 0)
    paid = need[core.cover[need] >= -big]
    scale = float(np.abs(core.reward).max(initial=0.0)) or 1.0  # tolerances are absolute: costs are made of size one
    rows = cover_rows(core.links, need, paid)
    lower, upper = np.zeros(n + len(paid)), np.ones(n + len(paid))
    lower[:n] = core.state == ON
    model = make_model(rows, np.zeros(rows.shape[0]), lower, upper, random_seed=0)
    set_costs(model, np.concatenate([core.reward, core.cover[paid]]) / scale)
    set_type(model, n, HighsVarType.kInteger)
    model.run()
    status = model.getModelStatus()
    if status == HighsModelStatus.kInfeasible:
        return np.zeros(n, np.uint8), -np.inf
    if status != HighsModelStatus.kOptimal:
        raise NotSolvedError(
            f"HiGHS stopped with {model.modelStatusToString(status)} on a label graph of {n} nodes; "
            "check that the rewards are of moderate size, or use exact=False"
        )
    on = (np.array(model.getSolution().col_value[:n]) > 0.5).astype(np.uint8)
    return on, core.constant + model.getInfo().mip_dual_bound * scale


def cover_rows(links: Links, need: PtrArray, paid: PtrArray) -> sp.csr_array:
    """x_child ≤ x_parent, and Σ_children x + u ≥ x where a node needs a cover, as rows·(x, u) ≥ 0.

    u pays for a cover of a node's own, of the nodes ``paid``, which are some of ``need``.
    """
    n, child = len(links.child_ptr) - 1, links.child
    parent = np.repeat(np.arange(n), np.diff(links.child_ptr))
    m = len(child)
    row = np.full(n, -1)
    row[need] = np.arange(len(need))
    inside = row[parent] >= 0
    sign = np.repeat([1.0, -1.0, 1.0, -1.0, 1.0], [m, m, inside.sum(), len(need), len(paid)])
    rows = np.concatenate([np.arange(m), np.arange(m), m + row[parent[inside]], m + row[need], m + row[paid]])
    columns = np.concatenate([parent, child, child[inside], need, n + np.arange(len(paid))])
    return sp.csr_array((sign, (rows, columns)), shape=(m + len(need), n + len(paid)))


# -- what comes after a round ------------------------------------------------------------------------------------------


@inlined
def _least(values, n, k):
    """The k-th smallest of n values, from 0; they are put into another order."""
    lo, hi = 0, n - 1
    while lo < hi:
        pivot = values[(lo + hi) // 2]
        i, j = lo, hi
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            break
    return values[k]


@inlined
def _dive(n, links, marginal, state, above, below, decision):
    """Decisions of a dive into ``decision``; ``above`` and ``below`` are room."""
    child_ptr, child, parent_ptr, parent, _ = links
    free = 0
    for i in range(n):
        decision[i] = state[i]
        if state[i] == FREE:
            above[free] = abs(marginal[i])
            free += 1
    if free == 0:
        return
    least = _least(above, free, int(TUNING.unsure * free))
    # the surest to be left out above a node, and to be in below it
    for i in range(n):
        above[i] = -marginal[i] if state[i] == FREE and marginal[i] <= -least else 0.0
        for q in range(parent_ptr[i], parent_ptr[i + 1]):
            above[i] = max(above[i], above[parent[q]])
    for i in range(n - 1, -1, -1):
        below[i] = marginal[i] if state[i] == FREE and marginal[i] >= least else 0.0
        for e in range(child_ptr[i], child_ptr[i + 1]):
            below[i] = max(below[i], below[child[e]])
    for i in range(n):
        if state[i] == FREE and abs(marginal[i]) >= least:
            if marginal[i] > above[i]:
                decision[i] = ON
            elif -marginal[i] >= below[i]:
                decision[i] = OFF


@kernel
def advance_kernel(samples, lines, nodes, links, trace, decisions, all_parts, all_on, all_wide):
    """Take every sample on to its next round; the number of samples that have one, and of those that shrink first."""
    most = nodes.state.shape[1]
    above, below, covered = np.empty(most), np.empty(most), np.empty(most, np.uint8)
    running, shrinking = 0, 0
    for s in range(samples.shape[0]):
        me = samples[s]
        if me.found == 1:
            me.found = 0
            if me.candidate > me.value:
                me.value = me.candidate
                b = 2 * s + me.line
                made = Trace(trace.done[b], trace.best[b], trace.fold_child[s], trace.fold_parent[s], trace.take[s])
                expand(
                    lines[b].size, all_on[s], nodes.node[b], made, lines[b].folds, links.parent_ptr[me.origin],
                    links.parent[me.origin], covered, all_wide[s, : me.whole],
                )  # fmt: skip
        if me.phase != RUNNING:
            continue
        main = lines[2 * s]
        decision = decisions[2 * s]
        dived = me.over == 1
        begins = me.line == 0 and not dived and (me.rounds in (1, 4) or (me.rounds > 0 and me.rounds % 8 == 0))
        if begins or (me.line == 1 and not dived):
            b = 2 * s + me.line
            n, row = lines[b].size, lines[b].links
            known = nodes.state[b] if begins else all_parts[s]
            _dive(n, links_of(links, row), nodes.marginal[b], known, above, below, decision)
            # a node may be in that nothing is left to cover; sets that leave nothing out do exist
            for i in range(n):
                decisions[2 * s + 1, i] = known[i] if decision[i] == OFF else decision[i]
            me.shrink, me.line = me.line + 1, 1
            running += 1
            shrinking += 1
            continue
        me.line, me.over = 0, 0
        me.rounds += 1
        if me.bound <= me.value + max(me.tolerance, me.precision * abs(me.value) if me.value > -1e300 else 0.0):
            me.given_up = max(me.given_up, me.bound)
            me.phase = SETTLED
            continue
        gap = main.bound - me.value
        settled = 0 if dived else me.solved
        for i in range(main.size):
            decision[i] = nodes.state[2 * s, i] if dived else all_parts[s, i]
            marginal = nodes.marginal[2 * s, i]
            if decision[i] == FREE and abs(marginal) >= gap - me.tolerance:
                decision[i] = ON if marginal > 0.0 else OFF
                settled += 1
        me.sweeps = TUNING.sweeps
        if me.work > me.budget:
            me.phase = SPENT
            continue
        if settled > TUNING.settled * main.size:
            me.shrink = 1
            running += 1
            shrinking += 1
            continue
        slow = TUNING.slow * gap if main.size < TUNING.small else 0.1 * TUNING.slow * gap
        me.stalled = me.stalled + 1 if main.bound > me.last - slow else 0
        me.last = main.bound
        me.patience -= 1
        if me.stalled >= 3 or me.patience <= 0:
            me.phase = SPLIT
        else:
            running += 1
    return running, shrinking
