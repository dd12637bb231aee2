"""The best label set on a DAG (Eq. 19 over Y_m), with a certified upper bound: exact, or within a budget of work."""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import FloatArray, Graph
from nhsvm.oracles._arrays import check_finite, checked
from nhsvm.oracles._dag_batch import BatchLooks, solve_core
from nhsvm.oracles._dag_few import DagFew
from nhsvm.oracles._dag_leaves import HUGE, leaf_kernel, single_kernel
from nhsvm.oracles._dag_memory import Memory, make_memory
from nhsvm.oracles._dag_plan import plan_of
from nhsvm.oracles._dag_relaxed import DagRelaxed
from nhsvm.oracles._dag_renewal import DagRenewal
from nhsvm.oracles._dag_single import best_leaf

_LONGER = 8  # budgets before HiGHS: it takes longer than that for nearly all
_LARGE = 6_000  # nodes of a core that is worth looking at in parts
_PATHS = 20  # nodes above a leaf, on average; with more, finding leaves of use takes longer than it saves
_MOST = 0.25  # of them may be above the leaves of use
_QUICKER = (5_000, 50_000)  # budgets: a dive, or some looks; one sweep alone misses most of what weights of 1 violate


class DagMultilabel:
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
        self.graph = graph
        self.allow_empty = allow_empty
        self.budget = int(budget)
        self.precision = float(precision)
        self.exact = exact
        self.few = DagFew(graph.parents, graph.leaf_ancestors, allow_empty)
        self._plan = plan_of(graph, allow_empty)
        paths = graph.leaf_ancestors
        self._in_parts = len(self._plan.node) >= _LARGE and len(paths.indices) <= _PATHS * graph.n_leaves
        self._branches = True
        self._spare: list[BatchLooks] = []  # room that no thread uses now

    def quicker(self) -> tuple[DagMultilabel, ...]:
        """Oracles that find less with less effort, the quickest first: for training, where a proof is seldom needed."""
        return tuple(self._with_budget(budget) for budget in _QUICKER)

    def renewal(self, sweeps: int) -> DagRenewal:
        """An oracle that only renews what a memory has."""
        return DagRenewal(self, sweeps)

    def relaxed(self) -> DagRelaxed:
        """The linear relaxation on the same graph, whose points need not be label sets."""
        return DagRelaxed(self.graph, self._plan, self.allow_empty)

    def _with_budget(self, budget: int) -> DagMultilabel:
        other = copy.copy(self)
        other.budget, other.exact, other._branches = budget, False, False
        return other

    def memory(self, n_samples: int) -> Memory | None:
        """What :meth:`solve` may keep of samples that it will be asked about again; None if it were too much."""
        return make_memory(n_samples, self.graph.n_nodes, len(self._plan.links.child))

    def solve(
        self,
        rewards: FloatArray,
        chosen: npt.NDArray[np.uint8],
        value: FloatArray,
        bound: FloatArray,
        memory: Memory | None = None,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """The best label set found for every sample, and a bound on what any could be worth.

        Parameters
        ----------
        rewards : float64 array of (batch, n_nodes)
            r, finite. Not changed.
        chosen : uint8 array of (batch, n_nodes)
            Filled: 1 for the nodes of y.
        value, bound : float64 arrays of batch
            Filled: the reward of y; no label set has more than ``bound``. They are equal where y is proved to be best.
        memory : Memory, optional
            Begin with what it has of ``rows``, and keep there what is found. The answer then depends on what was asked
            about the same row before; it is never worse than the last set.
        rows : int64 array of batch, optional
            Which samples these are, each at most once; needed with ``memory``.

        Raises
        ------
        DataError
            If a reward is NaN or infinite; the message names the first.
        """
        checked(self.graph, rewards, chosen, value, bound, np.uint8)
        if (memory is None) != (rows is None):
            raise OptionError("memory and rows go together: give both or none")
        scales = np.abs(rewards).sum(axis=1)
        check_finite(rewards, scales)
        gap = np.zeros(len(rewards))
        hopeless = np.zeros(len(rewards), bool) if self.allow_empty else rewards.max(axis=1, initial=-np.inf) <= 0.0
        for t in np.flatnonzero(hopeless).tolist():
            best_leaf(self.graph, rewards[t], chosen[t])
        some = np.flatnonzero(~hopeless)
        if memory is None:
            some = self._one_sweep(some, rewards, scales, chosen, gap)
            some = self._few_of(some, rewards, scales, chosen, gap)
        if len(some):
            looks = self._taken()
            for lo in range(0, len(some), looks.size):
                part = some[lo : lo + looks.size]
                known = (memory, rows[part]) if memory is not None and rows is not None else self._room(len(part))
                found = chosen[part]
                gap[part] = self._looked_at(looks, rewards[part], scales[part], found, *known)
                chosen[part] = found
            self._spare.append(looks)
        if memory is not None and rows is not None:
            self.improve(rewards, scales, chosen, gap)
            memory.keep(rows, chosen)
        for t in range(len(rewards)):
            value[t] = rewards[t][chosen[t].view(np.bool_)].sum()
        bound[:] = value + gap

    def _one_sweep(
        self, some: npt.NDArray[np.int64], rewards: FloatArray, scales: FloatArray, chosen: npt.NDArray[np.uint8],
        gap: FloatArray,
    ) -> npt.NDArray[np.int64]:  # fmt: skip
        """Solve the samples in which every leaf costs something, as far as single leaves and one sweep do; the others.

        The best set is mostly one leaf then, which marginals do not show, so that looks would end in branching.
        """
        if self.allow_empty:
            return some
        low = some[rewards[np.ix_(some, self.graph.leaves)].max(axis=1) <= 0.0]
        sets, value, bound = self.few.found(rewards[low], self.few.useful(rewards[low]))
        proved = bound <= value + 1e-12 * scales[low]
        enough = proved if self.exact else bound <= value + np.maximum(1e-12 * scales[low], self.precision * -value)
        found = np.empty((len(low), self.graph.n_nodes), np.uint8)
        self.few.write(*sets, found)
        chosen[low[enough]] = found[enough]
        gap[low[enough]] = np.where(proved, 0.0, bound - value)[enough]
        return np.setdiff1d(some, low[enough])

    def _few_of(
        self, some: npt.NDArray[np.int64], rewards: FloatArray, scales: FloatArray, chosen: npt.NDArray[np.uint8],
        gap: FloatArray,
    ) -> npt.NDArray[np.int64]:  # fmt: skip
        """Solve the samples in which few leaves could be of use, on what is above these; the others."""
        most = int(_MOST * len(self._plan.node))
        if not self._in_parts:
            return some
        useful = self.few.useful(rewards[some])
        others = []
        for k, t in enumerate(some.tolist()):
            mine = useful[1][useful[0][k] : useful[0][k + 1]]
            scale = scales[t] if scales[t] > 0.0 else 0.5
            found = self.few.core(rewards[t], mine, most, -4.0 * scale) if len(mine) < most else None
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

    def _taken(self) -> BatchLooks:
        """Room that no other thread uses."""
        try:
            return self._spare.pop()
        except IndexError:
            return BatchLooks(self._plan, self.allow_empty)

    def _room(self, n: int) -> tuple[Memory, npt.NDArray[np.int64]]:
        """A memory of some samples that are asked about once: of sets, not of shares."""
        memory = make_memory(n, self.graph.n_nodes, 0, np.inf)
        assert memory is not None
        return memory, np.arange(n)

    def _looked_at(
        self, looks: BatchLooks, rewards: FloatArray, scales: FloatArray, chosen: npt.NDArray[np.uint8],
        memory: Memory, rows: npt.NDArray[np.int64],
    ) -> FloatArray:  # fmt: skip
        """Fill in label sets; by how much better ones could exceed them."""
        precision = 0.0 if self.exact else self.precision
        branches = self._branches and not self.exact
        gap = looks.solve(rewards, scales, chosen, self.budget, precision, False, branches, memory, rows)
        left = np.flatnonzero(gap > 0.0)
        if len(left):
            found, gaps = chosen[left], gap[left]
            self._or_one_leaf(rewards[left], scales[left], found, gaps)
            if self.exact:  # go on from there
                memory.known[rows[left]] = 0  # not its shares, from which little falls
                memory.keep(rows[left], found)
                budget = _LONGER * self.budget
                gaps = looks.solve(rewards[left], scales[left], found, budget, 0.0, True, True, memory, rows[left])
            chosen[left], gap[left] = found, gaps
        return gap

    def _or_one_leaf(
        self, rewards: FloatArray, scales: FloatArray, chosen: npt.NDArray[np.uint8], gap: FloatArray
    ) -> None:
        """The best leaf by itself, improved, where a set must not be empty and the one that was found costs more."""
        value = np.array([r[y.view(np.bool_)].sum() for r, y in zip(rewards, chosen, strict=True)])
        low = np.flatnonzero(value < 0.0)
        if not len(low):
            return
        other, worth = self.one_leaf(rewards[low], scales[low])
        better = worth > value[low]
        chosen[low[better]] = other[better]
        gap[low[better]] = np.maximum(0.0, gap[low[better]] - (worth - value[low])[better])

    def one_leaf(self, rewards: FloatArray, scales: FloatArray) -> tuple[npt.NDArray[np.uint8], FloatArray]:
        """The best closure of one leaf for every sample, improved by single leaves, and what it is worth."""
        found = np.empty(rewards.shape, np.uint8)
        single_kernel(rewards, found, self.graph.leaves, *self.graph.leaf_ancestors)
        self.improve(rewards, scales, found, np.full(len(rewards), HUGE))
        return found, np.array([r[y.view(np.bool_)].sum() for r, y in zip(rewards, found, strict=True)])

    def renewed(
        self, rewards: FloatArray, scales: FloatArray, value: FloatArray, sweeps: int, memory: Memory,
        rows: npt.NDArray[np.int64],
    ) -> FloatArray:  # fmt: skip
        """By how much better sets could exceed these values, by sweeps alone from the shares in the memory."""
        looks = self._taken()
        gap = np.empty(len(rewards))
        for lo in range(0, len(rewards), looks.size):
            part = slice(lo, lo + looks.size)
            gap[part] = looks.renew(
                rewards[part], scales[part], value[part], sweeps, self.precision, memory, rows[part]
            )  # fmt: skip
        self._spare.append(looks)
        return gap

    def improve(self, rewards: FloatArray, scales: FloatArray, chosen: npt.NDArray[np.uint8], gap: FloatArray) -> None:
        """Better label sets by single leaves, where there is a gap; it falls by what they gain."""
        leaf_kernel(rewards, scales, chosen, gap, self.graph.leaves, *self.graph.leaf_ancestors, self.allow_empty)
