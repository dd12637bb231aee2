"""The best label set on a DAG (Eq. 19 over Y_m), with a certified upper bound: exact, or within a budget of work."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles.dag.candidate_search import CandidateSearch, Rooms, Start
from nhsvm.oracles.dag.candidates import LeafCandidates
from nhsvm.oracles.dag.core import TUNING
from nhsvm.oracles.dag.plan import Plan, plan_of, unfold_points_kernel
from nhsvm.oracles.dag.primal import HUGE, best_leaf_kernel, cheapest_leaf_kernel, flip_leaves_kernel
from nhsvm.oracles.dag.search import Asked, Batch, Limits, Spare, cover_rows
from nhsvm.oracles.lp import RELAXED, make_model, solve_again, unit_of
from nhsvm.oracles.protocol import NEARLY_EQUAL, Memory, Oracle, check_finite, make_memory
from nhsvm.typing import Array, ByteArray, FloatArray, PtrArray

if TYPE_CHECKING:
    from highspy import Highs


class DagMultilabel(Oracle):
    """argmax Σ_{n∈y} r_n over Y_m, the closures y = Ā(L) of non-empty leaf sets L, on any DAG (Eq. 19).

    What the graph alone settles is settled once: nodes that are always chosen together, edges that say nothing, trees
    that fold into their parents. On the rest, dual decomposition gives upper bounds and marginals, the marginals give
    label sets, and what lies beyond the gap between the two is fixed and taken out, until nothing is left. What falls
    apart into small parts is solved part by part. Where all that stalls, the problem is split in two at a node.

    Parameters
    ----------
    graph : Graph
    allow_empty : bool
        Admit the empty set, of value 0, as well.
    budget : int
        Work for one sample: nodes and edges visited in sweeps, 20 to 60 ns each with all that goes with them. There is
        always one sweep, for a bound and a set.
    precision : float
        End the search when the bound is within this part of abs(value). Not for ``exact``.
    exact : bool
        Go on until the optimum is proved: for eight times the budget more, from the best set so far, then with the
        integer program in HiGHS on what is left of the graph.

    Notes
    -----
    A proof holds to 1e-12·Σ|r|, the size of rounding errors. Where HiGHS had to end it, ``bound`` is the one that HiGHS
    reports, which may be above the value by its tolerance, 1e-6 of the largest reward left. Results depend on nothing
    but the graph and the rewards, and on the memory if one is given. Threads may share an oracle; the kernels do not
    hold the interpreter lock.

    Examples
    --------
    >>> import numpy as np
    >>> from nhsvm import Hierarchy
    >>> h = Hierarchy.from_edges([("pet", "dog"), ("pet", "cat"), ("hunter", "cat"), ("hunter", "wolf")])
    >>> h.nodes
    ('pet', 'hunter', 'dog', 'cat', 'wolf')
    >>> rewards = np.array([[-1.0, -1.0, 0.5, 3.0, -1.0], [-1.0, -1.0, 0.5, 0.8, -1.0]])
    >>> chosen, value, bound = np.empty((2, 5), np.uint8), np.empty(2), np.empty(2)
    >>> DagMultilabel(h.graph).solve(rewards, chosen, value, bound)
    >>> chosen
    array([[1, 1, 1, 1, 0],
           [1, 0, 1, 0, 0]], dtype=uint8)
    >>> value
    array([ 1.5, -0.5])
    """

    tolerance = NEARLY_EQUAL

    def __init__(
        self,
        graph: Graph,
        *,
        allow_empty: bool = False,
        budget: int = 700_000,
        precision: float = 1e-4,
        exact: bool = False,
    ) -> None:
        if not isinstance(budget, int | np.integer) or budget < 0:
            raise OptionError(f"budget must be a whole number ≥ 0, not {budget!r}")
        if not 0.0 <= precision < 1.0:
            raise OptionError(f"precision must be in [0, 1), not {precision!r}")
        super().__init__(graph, allow_empty)
        self.budget = int(budget)
        self.precision = float(precision)
        self.exact = exact
        self.leaf_candidates: LeafCandidates = LeafCandidates(graph.parents, graph.leaf_ancestors, allow_empty)
        self.plan = plan_of(graph, allow_empty)
        paths = graph.leaf_ancestors
        self._in_parts = len(self.plan.node) >= TUNING.large and len(paths.indices) <= TUNING.paths * graph.n_leaves
        self._branches = True
        self._batches = Spare(partial(Batch, self.plan, allow_empty))
        self._rooms: Rooms = {}

    @property
    def stages(self) -> tuple[DagMultilabel, ...]:
        """With small budgets first, which find less: for training, where a proof is seldom needed."""
        if not self._branches:  # one of these
            return (self,)
        return *(self._quick(budget) for budget in TUNING.stages), self

    def renewal(self, sweeps: int) -> Renewal:
        """An oracle that only renews what a memory has."""
        return Renewal(self, sweeps)

    def relaxation(self) -> Relaxation:
        """The linear relaxation on the same graph, whose points need not be label sets."""
        return Relaxation(self.graph, self.plan, self.allow_empty)

    def _quick(self, budget: int) -> DagMultilabel:
        other = copy.copy(self)
        other.budget, other.exact, other._branches = budget, False, False
        return other

    def remembers(self, n_samples: int) -> bool:
        """Whether shares and sets of so many samples take little enough memory."""
        return n_samples * (4 * self._n_shares + -(-self.graph.n_nodes // 8)) <= TUNING.memory

    def memory(self, n_samples: int) -> Memory | None:
        """Shares and sets of samples that will be queried again; None if they took too much memory."""
        return make_memory(n_samples, self.graph.n_nodes, self._n_shares) if self.remembers(n_samples) else None

    @property
    def _n_shares(self) -> int:
        return len(self.plan.links.child)

    @property
    def _limits(self) -> Limits:
        """Within the budget."""
        return Limits(self.budget, 0.0 if self.exact else self.precision, self._branches and not self.exact, False)

    def _solve(self, rewards: FloatArray, chosen: ByteArray, value: FloatArray, bound: FloatArray) -> None:
        asked = _asked_once(rewards)
        gap, some = self._begin(asked, chosen)
        some = self._by_one_sweep(some, asked, chosen, gap)
        some = self._by_candidates(some, asked, chosen, gap)
        self._by_rounds(some, asked, chosen, gap)
        value[:] = _worth(rewards, chosen)
        bound[:] = value + gap

    def _solve_again(
        self, rewards: FloatArray, chosen: Array, value: FloatArray, bound: FloatArray, memory: Memory, rows: PtrArray
    ) -> None:
        asked = _asked(rewards, memory, rows)
        gap, some = self._begin(asked, chosen)
        self._by_rounds(some, asked, chosen, gap)
        self.improve(rewards, asked.scales, chosen, gap)
        memory.keep(rows, chosen)
        value[:] = _worth(rewards, chosen)
        bound[:] = value + gap

    def _begin(self, asked: Asked, chosen: ByteArray) -> tuple[FloatArray, PtrArray]:
        """(gaps of 0, samples that are left) after those where every node costs something: one leaf is best."""
        n = len(chosen)
        costly = np.zeros(n, bool) if self.allow_empty else asked.rewards.max(axis=1, initial=-np.inf) <= 0.0
        for t in np.flatnonzero(costly).tolist():
            cheapest_leaf_kernel(*self.graph.parents, self.graph.leaves, asked.rewards[t], chosen[t])
        return np.zeros(n), np.flatnonzero(~costly)

    def _by_one_sweep(self, some: PtrArray, asked: Asked, chosen: ByteArray, gap: FloatArray) -> PtrArray:
        """Solve the samples in which every leaf costs something, as far as single leaves and one sweep do; the others.

        The best set is mostly one leaf then, which marginals do not show, so that rounds would end in branching.
        """
        if self.allow_empty:
            return some
        low = some[asked.rewards[np.ix_(some, self.graph.leaves)].max(axis=1) <= 0.0]
        rewards, rounding = asked.rewards[low], 1e-12 * asked.scales[low]
        sets, value, bound = self.leaf_candidates.found(rewards, self.leaf_candidates.useful(rewards))
        proved = bound <= value + rounding
        enough = proved if self.exact else bound <= value + np.maximum(rounding, self.precision * -value)
        found = np.empty((len(low), self.graph.n_nodes), np.uint8)
        self.leaf_candidates.write(*sets, found)
        chosen[low[enough]] = found[enough]
        gap[low[enough]] = np.where(proved, 0.0, bound - value)[enough]
        return np.setdiff1d(some, low[enough])

    def _by_candidates(self, some: PtrArray, asked: Asked, chosen: ByteArray, gap: FloatArray) -> PtrArray:
        """Solve the samples with few candidate leaves, on what is above these; the others."""
        if not self._in_parts:
            return some
        n, most = len(some), int(TUNING.most * len(self.plan.node))
        rewards, scales = asked.rewards[some], asked.scales[some]
        useful = self.leaf_candidates.useful(rewards)
        few = np.flatnonzero(np.diff(useful[0]) < most)
        none = np.zeros(n + 1, np.int64), np.empty(0, np.int32)
        start = Start(*none, np.full(n, -HUGE), scales)
        budget = self.budget * (1 + TUNING.longer * self.exact)
        precision, branches = self._limits.precision, self._limits.branches
        search = CandidateSearch(self.leaf_candidates, budget, precision, branches, self._rooms, self.exact)
        left = np.ones(n, bool)
        for batch, rounds, gaps in search.rounds(rewards, few, useful, start, cut=False, most=most):
            for s, t in enumerate(batch.rows.tolist()):
                nodes = batch.nodes[batch.first[s] : batch.last[s]]
                chosen[some[t]] = 0
                chosen[some[t], nodes] = rounds.work.best[s, 1 : 1 + len(nodes)]
            gap[some[batch.rows]] = gaps
            left[batch.rows] = False
        return some[left]

    def _by_rounds(self, some: PtrArray, asked: Asked, chosen: ByteArray, gap: FloatArray) -> None:
        """Solve samples on the core of the whole graph."""
        if not len(some):
            return
        with self._batches.taken() as batch:
            for lo in range(0, len(some), batch.size):
                part = some[lo : lo + batch.size]
                found = chosen[part]
                gap[part] = self._searched(batch, asked.of(part), found)
                chosen[part] = found

    def _searched(self, batch: Batch, asked: Asked, chosen: ByteArray) -> FloatArray:
        """Fill in label sets; by how much better ones could exceed them."""
        gap = batch.solve(asked, chosen, self._limits)
        left = np.flatnonzero(gap > 0.0)
        if len(left):
            found, gaps, open_ = chosen[left], gap[left], asked.of(left)
            self._or_one_leaf(open_, found, gaps)
            if self.exact:  # go on from there
                asked.memory.known[open_.rows] = 0  # not its shares, from which little falls
                asked.memory.keep(open_.rows, found)
                gaps = batch.solve(open_, found, Limits(TUNING.longer * self.budget, 0.0, True, True))
            chosen[left], gap[left] = found, gaps
        return gap

    def _or_one_leaf(self, asked: Asked, chosen: ByteArray, gap: FloatArray) -> None:
        """The best leaf by itself, improved, where a set must not be empty and the one that was found costs more."""
        value = _worth(asked.rewards, chosen)
        low = np.flatnonzero(value < 0.0)
        if not len(low):
            return
        other, worth = self.one_leaf(asked.rewards[low], asked.scales[low])
        better = worth > value[low]
        chosen[low[better]] = other[better]
        gap[low[better]] = np.maximum(0.0, gap[low[better]] - (worth - value[low])[better])

    def one_leaf(self, rewards: FloatArray, scales: FloatArray) -> tuple[ByteArray, FloatArray]:
        """The best closure of one leaf for every sample, improved by single leaves, and what it is worth."""
        found = np.empty(rewards.shape, np.uint8)
        best_leaf_kernel(rewards, found, self.graph.leaves, *self.graph.leaf_ancestors)
        self.improve(rewards, scales, found, np.full(len(rewards), HUGE))
        return found, _worth(rewards, found)

    def renewed(self, asked: Asked, value: FloatArray, sweeps: int) -> FloatArray:
        """By how much better sets could exceed these values, by sweeps alone from the shares in the memory."""
        gap = np.empty(len(value))
        with self._batches.taken() as batch:
            for lo in range(0, len(value), batch.size):
                part = slice(lo, lo + batch.size)
                gap[part] = batch.renew(asked.of(part), value[part], sweeps, self.precision)
        return gap

    def improve(self, rewards: FloatArray, scales: FloatArray, chosen: ByteArray, gap: FloatArray) -> None:
        """Better label sets by single leaves, where there is a gap; it falls by what they gain."""
        flip_leaves_kernel(
            rewards, scales, chosen, gap, self.graph.leaves, *self.graph.leaf_ancestors, self.allow_empty
        )


def _asked(rewards: FloatArray, memory: Memory, rows: PtrArray) -> Asked:
    """The question, if all rewards are finite."""
    scales = np.abs(rewards).sum(axis=1)
    check_finite(rewards, scales)
    return Asked(rewards, scales, memory, rows)


def _asked_once(rewards: FloatArray) -> Asked:
    """A question about samples of which nothing is remembered; with a memory of sets, not of shares, to go on from."""
    n, n_nodes = rewards.shape
    return _asked(rewards, make_memory(n, n_nodes, 0), np.arange(n))


def _worth(rewards: FloatArray, chosen: ByteArray) -> FloatArray:
    """What label sets are worth."""
    return np.array([r[y.view(np.bool_)].sum() for r, y in zip(rewards, chosen, strict=True)], np.float64)


class Renewal(Oracle):
    """An oracle for samples with a memory: they are queried again, with rewards that change little in between.

    Its label sets are the last ones, and nothing, improved by single leaves, whichever ends up better. That takes a
    tenth of a dive's time, and finds no set that is far from these.

    Parameters
    ----------
    oracle : DagMultilabel
    sweeps : int
        From the last shares, for the bounds. With 0 the bound is the sum of the rewards above 0.
    """

    def __init__(self, oracle: DagMultilabel, sweeps: int) -> None:
        super().__init__(oracle.graph, oracle.allow_empty)
        self.oracle, self.sweeps = oracle, sweeps

    def _solve(self, rewards: FloatArray, chosen: ByteArray, value: FloatArray, bound: FloatArray) -> None:
        raise OptionError("a renewal needs a memory of the samples: give memory and rows")

    def _solve_again(
        self, rewards: FloatArray, chosen: Array, value: FloatArray, bound: FloatArray, memory: Memory, rows: PtrArray
    ) -> None:
        asked = Asked(rewards, np.abs(rewards).sum(axis=1), memory, rows)
        chosen[:] = memory.recalled(rows, chosen.shape[1])
        value[:] = self._improved(asked, chosen)
        other = np.zeros_like(chosen)
        worth = self._improved(asked, other)
        better = worth > value
        chosen[better], value[better] = other[better], worth[better]
        empty = np.flatnonzero(value == -np.inf)
        if len(empty):
            chosen[empty], value[empty] = self.oracle.one_leaf(rewards[empty], asked.scales[empty])
        memory.keep(rows, chosen)
        if self.sweeps == 0:
            bound[:] = np.maximum(np.maximum(rewards, 0.0).sum(axis=1), value)
        else:
            bound[:] = value + self.oracle.renewed(asked, value, self.sweeps)

    def _improved(self, asked: Asked, chosen: ByteArray) -> FloatArray:
        """What sets are worth after they have been improved; −∞ if they are empty and must not be."""
        self.oracle.improve(asked.rewards, asked.scales, chosen, np.full(len(chosen), HUGE))
        value = _worth(asked.rewards, chosen)
        return value if self.allow_empty else np.where(chosen.any(axis=1), value, -np.inf)


# -- the linear relaxation ---------------------------------------------------------------------------------------------


class Room(NamedTuple):
    """What one thread works with."""

    batch: Batch
    model: Highs


class Relaxation(Oracle):
    """max Σ_n z_n·r_n over the linear relaxation of Y_m: 0 ≤ z_c ≤ z_p ≤ 1 on edges, z_n ≤ Σ_c z_c at inner nodes.

    Nearly the points of :class:`nhsvm.oracles.LinearProgram`, in a fraction of its variables: what the structure of the
    graph settles (:mod:`nhsvm.oracles.dag.plan`) is taken out first, which is exact on trees. An edge beside a longer
    way counts in no cover, which makes it tighter; and Σ_leaves z ≥ 1 is not asked for, which makes it looser, where a
    set must not be empty. ``bound`` is the value of the program's dual. An answer depends on its own rewards only:
    every sample starts from the basis of slacks. Threads have a program of their own each.

    Parameters
    ----------
    graph : Graph
    plan : Plan
        Of the graph.
    allow_empty : bool
    """

    dtype = np.float64
    tolerance = NEARLY_EQUAL

    def __init__(self, graph: Graph, plan: Plan, allow_empty: bool) -> None:
        super().__init__(graph, allow_empty)
        self.plan = plan
        each = np.arange(len(plan.node))
        self._rows: sp.csr_array = cover_rows(plan.links, each, each)  # of (x, u)
        # x for the nodes of the core, of which the first, the virtual root, is in every set. u for covers by what is
        # folded into them: there is one if something is, or if a node needs no cover
        covers = plan.is_leaf[plan.node] | np.isin(plan.node, plan.fold_parent)
        covers[0] |= allow_empty
        self._upper = np.append(np.ones(len(each)), covers.astype(np.float64))
        self._rooms = Spare(self._room)

    def _room(self) -> Room:
        lower = np.zeros(len(self._upper))
        lower[0] = 1.0
        model = make_model(self._rows, np.zeros(self._rows.shape[0]), lower, self._upper, **RELAXED)
        return Room(Batch(self.plan, self.allow_empty), model)

    def _solve(self, rewards: FloatArray, points: FloatArray, value: FloatArray, bound: FloatArray) -> None:
        asked, n = _asked_once(rewards), len(self.plan.node)
        with self._rooms.taken() as (batch, model):
            x, upper = np.empty((2, batch.size, n)), np.empty(batch.size)
            nodes, covers = batch.rounds.work.nodes, self._upper[n:]
            for lo in range(0, len(rewards), batch.size):
                part = slice(lo, min(len(rewards), lo + batch.size))
                k = part.stop - lo
                batch.load(asked.of(part), Limits(0, 0.0, False, False))
                for s in range(k):
                    costs = np.concatenate([nodes.reward[2 * s], nodes.cover[2 * s] * covers])
                    (x[0, s], x[1, s]), upper[s] = self._best(model, costs)
                unfold_points_kernel(x[0, :k], x[1, :k], self.plan, batch.folded, points[part])
                value[part] = (points[part] * rewards[part]).sum(axis=1)
                bound[part] = np.maximum(upper[:k], value[part])

    def _best(self, model: Highs, costs: FloatArray) -> tuple[FloatArray, float]:
        """(x, u) of the costs, and a bound that does not rest on the tolerances of HiGHS."""
        unit = unit_of(costs)
        found, y = solve_again(model, costs / unit, len(costs) // 2)
        # any y ≥ 0 proves a bound: max of costs·v + y·rows·v over the box, in which the virtual root is 1
        reduced = costs + unit * (self._rows.T @ y)
        most = np.maximum(reduced, 0.0)
        most[0] = reduced[0]
        return np.clip(found, 0.0, 1.0).reshape(2, -1), float(most @ self._upper)
