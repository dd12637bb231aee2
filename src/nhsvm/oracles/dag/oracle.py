"""The best label set on a DAG (Eq. 19 over Y_m), with a certified upper bound: exact, or within a budget of work."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import NotSolvedError, OptionError
from nhsvm.hierarchy.graph import Graph
from nhsvm.oracles.dag.candidates import LeafCandidates
from nhsvm.oracles.dag.plan import Plan, plan_of, unfold_points_kernel
from nhsvm.oracles.dag.primal import HUGE, best_leaf_kernel, cheapest_leaf, flip_leaves_kernel
from nhsvm.oracles.dag.search import Batch, solve_core
from nhsvm.oracles.protocol import Memory, Oracle, Rows, States, check_finite, make_memory
from nhsvm.typing import FloatArray

_LONGER = 8  # budgets before HiGHS: it takes longer than that for nearly all
LARGE = 6_000  # nodes of a core that is worth searching in parts
PATHS = 20  # nodes above a leaf, on average; with more, finding leaves of use takes longer than it saves
MOST = 0.25  # of them may be above the leaves of use
_QUICK = (5_000, 50_000)  # budgets: a dive, or some rounds; one sweep alone misses most of what weights of 1 violate


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
        self._in_parts = len(self.plan.node) >= LARGE and len(paths.indices) <= PATHS * graph.n_leaves
        self._branches = True
        self._spare: list[Batch] = []  # room that no thread uses now

    @property
    def stages(self) -> tuple[DagMultilabel, ...]:
        """With small budgets first, which find less: for training, where a proof is seldom needed."""
        if not self._branches:  # one of these
            return (self,)
        return *(self._with_budget(budget) for budget in _QUICK), self

    def renewal(self, sweeps: int) -> Renewal:
        """An oracle that only renews what a memory has."""
        return Renewal(self, sweeps)

    def relaxation(self) -> Relaxation:
        """The linear relaxation on the same graph, whose points need not be label sets."""
        return Relaxation(self.graph, self.plan, self.allow_empty)

    def _with_budget(self, budget: int) -> DagMultilabel:
        other = copy.copy(self)
        other.budget, other.exact, other._branches = budget, False, False
        return other

    def memory(self, n_samples: int) -> Memory | None:
        """Shares and sets of samples that will be asked about again; None if they took too much memory."""
        return make_memory(n_samples, self.graph.n_nodes, len(self.plan.links.child))

    def _solve(self, rewards: FloatArray, chosen: States, value: FloatArray, bound: FloatArray) -> None:
        scales, gap, some = self._begin(rewards, chosen)
        some = self._by_one_sweep(some, rewards, scales, chosen, gap)
        some = self._by_candidates(some, rewards, scales, chosen, gap)
        memory = make_memory(len(rewards), self.graph.n_nodes, 0, np.inf)  # of sets, not of shares
        assert memory is not None
        self._by_rounds(some, rewards, scales, chosen, gap, memory, None)
        _fill_in(rewards, chosen, gap, value, bound)

    def _solve_again(
        self, rewards: FloatArray, chosen: States, value: FloatArray, bound: FloatArray, memory: Memory, rows: Rows
    ) -> None:
        scales, gap, some = self._begin(rewards, chosen)
        self._by_rounds(some, rewards, scales, chosen, gap, memory, rows)
        self.improve(rewards, scales, chosen, gap)
        memory.keep(rows, chosen)
        _fill_in(rewards, chosen, gap, value, bound)

    def _begin(self, rewards: FloatArray, chosen: States) -> tuple[FloatArray, FloatArray, Rows]:
        """(Σ|r|, gaps of 0, samples that are left) after those where every node costs something: one leaf is best."""
        scales = np.abs(rewards).sum(axis=1)
        check_finite(rewards, scales)
        costly = np.zeros(len(rewards), bool) if self.allow_empty else rewards.max(axis=1, initial=-np.inf) <= 0.0
        for t in np.flatnonzero(costly).tolist():
            cheapest_leaf(self.graph, rewards[t], chosen[t])
        return scales, np.zeros(len(rewards)), np.flatnonzero(~costly)

    def _by_one_sweep(
        self, some: Rows, rewards: FloatArray, scales: FloatArray, chosen: States, gap: FloatArray
    ) -> Rows:
        """Solve the samples in which every leaf costs something, as far as single leaves and one sweep do; the others.

        The best set is mostly one leaf then, which marginals do not show, so that rounds would end in branching.
        """
        if self.allow_empty:
            return some
        low = some[rewards[np.ix_(some, self.graph.leaves)].max(axis=1) <= 0.0]
        sets, value, bound = self.leaf_candidates.found(rewards[low], self.leaf_candidates.useful(rewards[low]))
        proved = bound <= value + 1e-12 * scales[low]
        enough = proved if self.exact else bound <= value + np.maximum(1e-12 * scales[low], self.precision * -value)
        found = np.empty((len(low), self.graph.n_nodes), np.uint8)
        self.leaf_candidates.write(*sets, found)
        chosen[low[enough]] = found[enough]
        gap[low[enough]] = np.where(proved, 0.0, bound - value)[enough]
        return np.setdiff1d(some, low[enough])

    def _by_candidates(
        self, some: Rows, rewards: FloatArray, scales: FloatArray, chosen: States, gap: FloatArray
    ) -> Rows:
        """Solve the samples in which few leaves could be of use, on what is above these; the others."""
        most = int(MOST * len(self.plan.node))
        if not self._in_parts:
            return some
        useful = self.leaf_candidates.useful(rewards[some])
        others = []
        for k, t in enumerate(some.tolist()):
            mine = useful[1][useful[0][k] : useful[0][k + 1]]
            scale = scales[t] if scales[t] > 0.0 else 0.5
            found = self.leaf_candidates.core(rewards[t], mine, most, -4.0 * scale) if len(mine) < most else None
            if found is None:
                others.append(t)
                continue
            core, nodes = found
            precision = 0.0 if self.exact else self.precision
            branches = self._branches and not self.exact
            budget = self.budget * (1 + _LONGER * self.exact)
            on, open_ = solve_core(core, scale, budget, precision, self.exact, branches)
            chosen[t] = 0
            chosen[t, nodes] = on[1:]
            gap[t] = open_
        return np.array(others, np.int64)

    def _by_rounds(
        self, some: Rows, rewards: FloatArray, scales: FloatArray, chosen: States, gap: FloatArray, memory: Memory,
        rows: Rows | None,
    ) -> None:  # fmt: skip
        """Solve samples on the core of the whole graph; without ``rows``, they are asked about once."""
        if not len(some):
            return
        batch = self._taken()
        for lo in range(0, len(some), batch.size):
            part = some[lo : lo + batch.size]
            found = chosen[part]
            mine = part if rows is None else rows[part]
            gap[part] = self._searched(batch, rewards[part], scales[part], found, memory, mine)
            chosen[part] = found
        self._spare.append(batch)

    def _taken(self) -> Batch:
        """Room that no other thread uses."""
        try:
            return self._spare.pop()
        except IndexError:
            return Batch(self.plan, self.allow_empty)

    def _searched(
        self, batch: Batch, rewards: FloatArray, scales: FloatArray, chosen: States, memory: Memory, rows: Rows
    ) -> FloatArray:
        """Fill in label sets; by how much better ones could exceed them."""
        precision = 0.0 if self.exact else self.precision
        branches = self._branches and not self.exact
        gap = batch.solve(rewards, scales, chosen, self.budget, precision, False, branches, memory, rows)
        left = np.flatnonzero(gap > 0.0)
        if len(left):
            found, gaps = chosen[left], gap[left]
            self._or_one_leaf(rewards[left], scales[left], found, gaps)
            if self.exact:  # go on from there
                memory.known[rows[left]] = 0  # not its shares, from which little falls
                memory.keep(rows[left], found)
                budget = _LONGER * self.budget
                gaps = batch.solve(rewards[left], scales[left], found, budget, 0.0, True, True, memory, rows[left])
            chosen[left], gap[left] = found, gaps
        return gap

    def _or_one_leaf(self, rewards: FloatArray, scales: FloatArray, chosen: States, gap: FloatArray) -> None:
        """The best leaf by itself, improved, where a set must not be empty and the one that was found costs more."""
        value = np.array([r[y.view(np.bool_)].sum() for r, y in zip(rewards, chosen, strict=True)])
        low = np.flatnonzero(value < 0.0)
        if not len(low):
            return
        other, worth = self.one_leaf(rewards[low], scales[low])
        better = worth > value[low]
        chosen[low[better]] = other[better]
        gap[low[better]] = np.maximum(0.0, gap[low[better]] - (worth - value[low])[better])

    def one_leaf(self, rewards: FloatArray, scales: FloatArray) -> tuple[States, FloatArray]:
        """The best closure of one leaf for every sample, improved by single leaves, and what it is worth."""
        found = np.empty(rewards.shape, np.uint8)
        best_leaf_kernel(rewards, found, self.graph.leaves, *self.graph.leaf_ancestors)
        self.improve(rewards, scales, found, np.full(len(rewards), HUGE))
        return found, np.array([r[y.view(np.bool_)].sum() for r, y in zip(rewards, found, strict=True)])

    def renewed(
        self, rewards: FloatArray, scales: FloatArray, value: FloatArray, sweeps: int, memory: Memory, rows: Rows
    ) -> FloatArray:
        """By how much better sets could exceed these values, by sweeps alone from the shares in the memory."""
        batch = self._taken()
        gap = np.empty(len(rewards))
        for lo in range(0, len(rewards), batch.size):
            part = slice(lo, lo + batch.size)
            gap[part] = batch.renew(
                rewards[part], scales[part], value[part], sweeps, self.precision, memory, rows[part]
            )
        self._spare.append(batch)
        return gap

    def improve(self, rewards: FloatArray, scales: FloatArray, chosen: States, gap: FloatArray) -> None:
        """Better label sets by single leaves, where there is a gap; it falls by what they gain."""
        flip_leaves_kernel(
            rewards, scales, chosen, gap, self.graph.leaves, *self.graph.leaf_ancestors, self.allow_empty
        )


def _fill_in(rewards: FloatArray, chosen: States, gap: FloatArray, value: FloatArray, bound: FloatArray) -> None:
    """What the sets are worth, and what any could be."""
    for t in range(len(rewards)):
        value[t] = rewards[t][chosen[t].view(np.bool_)].sum()
    bound[:] = value + gap


class Renewal(Oracle):
    """An oracle for samples with a memory: they are asked about again, with rewards that change little in between.

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

    def _solve(self, rewards: FloatArray, chosen: States, value: FloatArray, bound: FloatArray) -> None:
        raise OptionError("a renewal needs a memory of the samples: give memory and rows")

    def _solve_again(
        self, rewards: FloatArray, chosen: States, value: FloatArray, bound: FloatArray, memory: Memory, rows: Rows
    ) -> None:
        scales = np.abs(rewards).sum(axis=1)
        chosen[:] = memory.recalled(rows, chosen.shape[1])
        value[:] = self._improved(rewards, scales, chosen)
        other = np.zeros_like(chosen)
        worth = self._improved(rewards, scales, other)
        better = worth > value
        chosen[better], value[better] = other[better], worth[better]
        empty = np.flatnonzero(value == -np.inf)
        if len(empty):
            chosen[empty], value[empty] = self.oracle.one_leaf(rewards[empty], scales[empty])
        memory.keep(rows, chosen)
        if self.sweeps == 0:
            bound[:] = np.maximum(np.maximum(rewards, 0.0).sum(axis=1), value)
        else:
            bound[:] = value + self.oracle.renewed(rewards, scales, value, self.sweeps, memory, rows)

    def _improved(self, rewards: FloatArray, scales: FloatArray, chosen: States) -> FloatArray:
        """What sets are worth after they have been improved; −∞ if they are empty and must not be."""
        self.oracle.improve(rewards, scales, chosen, np.full(len(rewards), HUGE))
        value = np.array([r[y.view(np.bool_)].sum() for r, y in zip(rewards, chosen, strict=True)])
        return value if self.allow_empty else np.where(chosen.any(axis=1), value, -np.inf)


# -- the linear relaxation ---------------------------------------------------------------------------------------------


class Program(NamedTuple):
    """Rows · (x, u) ≥ 0, with x for the nodes of a core and u for covers by what is folded into them."""

    rows: sp.csr_array
    covers: FloatArray  # of every node: 1 if something is folded into it, or if it needs no cover; else 0


class Room(NamedTuple):
    """What one thread works with."""

    batch: Batch
    model: Any


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

    def __init__(self, graph: Graph, plan: Plan, allow_empty: bool) -> None:
        super().__init__(graph, allow_empty)
        self.plan = plan
        self._program = _program(plan, allow_empty)
        self._spare: list[Room] = []

    def _solve(self, rewards: FloatArray, points: FloatArray, value: FloatArray, bound: FloatArray) -> None:
        scales = np.abs(rewards).sum(axis=1)
        check_finite(rewards, scales)
        try:
            room = self._spare.pop()
        except IndexError:
            room = Room(Batch(self.plan, self.allow_empty), _model(self._program))
        batch, n = room.batch, len(self.plan.node)
        x, upper = np.empty((2, batch.size, n)), np.empty(batch.size)
        for lo in range(0, len(rewards), batch.size):
            part = slice(lo, min(len(rewards), lo + batch.size))
            k = part.stop - lo
            memory = make_memory(k, rewards.shape[1], 0, np.inf)
            assert memory is not None
            batch.load(rewards[part], scales[part], 0, 0.0, memory, np.arange(k))
            nodes = batch.rounds.work.nodes
            for s in range(k):
                costs = np.concatenate([nodes.reward[2 * s], nodes.cover[2 * s] * self._program.covers])
                (x[0, s], x[1, s]), upper[s] = self._best(room.model, costs)
            unfold_points_kernel(x[0, :k], x[1, :k], self.plan, batch.folded, points[part])
            value[part] = (points[part] * rewards[part]).sum(axis=1)
            bound[part] = np.maximum(upper[:k], value[part])
        self._spare.append(room)

    def _best(self, model: Any, costs: FloatArray) -> tuple[FloatArray, float]:
        """(x, u) of the costs, and a bound that does not rest on the tolerances of HiGHS."""
        from highspy import HighsModelStatus

        unit = np.ldexp(1.0, np.frexp(np.abs(costs).max())[1])  # tolerances are absolute; powers of two round nothing
        model.clearSolver()
        model.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), costs / unit)
        model.run()
        status = model.getModelStatus()
        if status != HighsModelStatus.kOptimal:
            raise NotSolvedError(
                f"the linear program of {len(costs) // 2} nodes was not solved: HiGHS says "
                f"{model.modelStatusToString(status)!r}"
            )
        found = model.getSolution()
        # any y ≥ 0 proves a bound: max of costs·v + y·rows·v over the box, in which the virtual root is 1
        reduced = costs + unit * (self._program.rows.T @ np.maximum(-np.array(found.row_dual), 0.0))
        most = np.maximum(reduced, 0.0)
        most[0] = reduced[0]
        v = np.clip(np.array(found.col_value), 0.0, 1.0).reshape(2, -1)
        return v, float(most @ np.append(np.ones(len(costs) // 2), self._program.covers))


def _program(plan: Plan, allow_empty: bool) -> Program:
    """x_p ≥ x_c for every edge of the core, Σ_c x_c + u_p ≥ x_p for every node."""
    links, n = plan.links, len(plan.node)
    m, each = len(links.child), np.arange(n)
    parent = np.repeat(each, np.diff(links.child_ptr))
    row = np.concatenate([np.arange(m), np.arange(m), m + parent, m + each, m + each])
    column = np.concatenate([parent, links.child, links.child, each, n + each])
    sign = np.repeat([1.0, -1.0, 1.0, -1.0, 1.0], [m, m, m, n, n])
    covers = plan.is_leaf[plan.node] | np.isin(plan.node, plan.fold_parent)
    covers[0] |= allow_empty
    return Program(sp.csr_array((sign, (row, column)), shape=(m + n, 2 * n)), covers.astype(np.float64))


def _model(program: Program) -> Any:
    """A HiGHS model with costs to be set."""
    import highspy

    rows, n = program.rows, len(program.covers)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.zeros(2 * n)
    lp.col_lower_ = (np.arange(2 * n) == 0).astype(np.float64)  # the virtual root is in every set
    lp.col_upper_ = np.append(np.ones(n), program.covers)
    lp.row_lower_, lp.row_upper_ = np.zeros(rows.shape[0]), np.full(rows.shape[0], highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, Any] = {
        "output_flag": False, "parallel": "off", "presolve": "off",
        "primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9,
    }  # fmt: skip
    for name, option in options.items():
        model.setOptionValue(name, option)
    model.passModel(lp)
    return model
