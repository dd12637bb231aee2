"""The best label set on a DAG (Eq. 19 over Y_m), with a certified upper bound: exact, or within a budget of work."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from nhsvm.errors import DataError, OptionError
from nhsvm.hierarchy.graph import FloatArray, Graph
from nhsvm.oracles._arrays import checked
from nhsvm.oracles._dag_core import ON, Core
from nhsvm.oracles._dag_plan import fold, make_plan, unfold
from nhsvm.oracles._dag_search import Search
from nhsvm.oracles._dag_single import best_leaf

_LARGEST = 1e280  # of Σ|r|; some multiples of it have to be finite
_QUICKER = (5_000, 50_000)  # budgets: a dive, or some looks; one sweep alone misses most of what weights of 1 violate


class DagMultilabel:
    """argmax Σ_{n∈y} r_n over Y_m, the closures y = Ā(L) of non-empty leaf sets L, on any DAG (Eq. 19).

    What the graph alone settles is settled once: nodes that are always chosen together, edges that say nothing, trees
    that fold into their parents. On the rest, dual decomposition gives upper bounds and marginals, the marginals give
    label sets, and what lies beyond the gap between the two is fixed and taken out, until nothing is left. What falls
    apart into small parts is solved part by part. Where all that stalls, the problem is split in two at a node, depth
    first.

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
        Go on until the optimum is proved: for eight times the budget, then with the integer program in HiGHS on what is
        left of the graph.

    Notes
    -----
    A proof holds to 1e-12·Σ|r|, the size of rounding errors. Where HiGHS had to end it, ``bound`` is the one that HiGHS
    reports, which may be above the value by its tolerance, 1e-6 of the largest reward left. Results depend on nothing
    but the graph and the rewards. Nothing changes after the oracle is made, so threads may share it; the kernels do not
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
        self._plan = make_plan(graph, allow_empty)

    def quicker(self) -> tuple[DagMultilabel, ...]:
        """Oracles that find less with less effort, the quickest first: for training, where a proof is seldom needed."""
        return tuple(DagMultilabel(self.graph, allow_empty=self.allow_empty, budget=budget) for budget in _QUICKER)

    def solve(self, rewards: FloatArray, chosen: npt.NDArray[np.uint8], value: FloatArray, bound: FloatArray) -> None:
        """The best label set found for every sample, and a bound on what any could be worth.

        Parameters
        ----------
        rewards : float64 array of (batch, n_nodes)
            r, finite. Not changed.
        chosen : uint8 array of (batch, n_nodes)
            Filled: 1 for the nodes of y.
        value, bound : float64 arrays of batch
            Filled: the reward of y; no label set has more than ``bound``. They are equal where y is proved to be best.

        Raises
        ------
        DataError
            If a reward is NaN or infinite; the message names the first.
        """
        checked(self.graph, rewards, chosen, value, bound, np.uint8)
        for t in range(len(rewards)):
            value[t], bound[t] = self._solve_one(rewards[t], chosen[t], t)

    def _solve_one(self, r: FloatArray, y: npt.NDArray[np.uint8], sample: int) -> tuple[float, float]:
        scale = float(np.abs(r).sum())
        if not math.isfinite(scale):
            node = int(np.argmin(np.isfinite(r)))
            raise DataError(f"rewards must be finite, but sample {sample} has {r[node]} at node number {node}")
        if scale > _LARGEST:
            raise DataError(f"the rewards of sample {sample} are too large: their sizes add up to {scale:.0e}")
        if not self.allow_empty and r.max() <= 0.0:
            best_leaf(self.graph, r, y)
            gap = 0.0
        else:
            gap = self._search(r, scale, y)
        value = float(r[y.view(np.bool_)].sum())
        return value, value + gap

    def _search(self, r: FloatArray, scale: float, y: npt.NDArray[np.uint8]) -> float:
        """Fill in y; by how much a better one could exceed it."""
        plan = self._plan
        n = len(plan.node)
        big = 2.0 * scale or 1.0  # no set is worth paying this
        folded = fold(plan, r, -2.0 * big, self.allow_empty)
        state = np.zeros(n, np.uint8)
        state[0] = ON  # the virtual root
        if n == 1:  # a tree: all is folded
            unfold(plan, folded, state, self.allow_empty, y)
            return 0.0
        first = Core(folded.reward, folded.cover, state, plan.links, np.empty(len(plan.links.child)), 0.0)
        search = Search(first, scale, big, 0.0 if self.exact else self.precision)
        bound = search.run(self.budget, self.exact)
        unfold(plan, folded, search.on, self.allow_empty, y)
        return bound - search.value
