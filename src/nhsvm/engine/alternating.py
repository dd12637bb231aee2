"""The Shared SVM (Eq. 14, Eq. 15): the dual method, with weights α that are learned on the way.

    min_{U, α}  ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i(U)   s.t.  α ≥ 0,  Σ_{n∈Ā(l)} α_n ≤ 1 for every leaf l

is jointly convex. After every pass over the samples α takes a step towards what is best for U (Eq. 20); the dual
variables stay as they are, so there is nothing to begin anew. The fit ends when a gap of the *joint* problem is proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from nhsvm.columns import Columns
from nhsvm.engine.ascent import Ascent, Dual
from nhsvm.engine.certificate import gamma, largest_penalty, least_dual
from nhsvm.engine.label_sets import DagAscent, SetAscent, TreeAscent
from nhsvm.engine.leaf_search import LeafAscent, kind_of
from nhsvm.engine.problem import LabelSetProblem, Problem, Record, SingleLabelProblem
from nhsvm.engine.single_label import PlanesAscent
from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import Graph
from nhsvm.objective import Certificate, dual, penalty
from nhsvm.threads import Team
from nhsvm.typing import FloatArray, IntArray
from nhsvm.weights import shared_weights

_HASTE = (1.0, 20.0)  # least and first: while the gap at fixed weights is so many times what weights add, these stay
_VAIN = 8  # changes of weights without a smaller gap, after which there is less haste
_LOOK = 8  # passes after which the weights are looked at in any case
_INNER = 0.5  # of the tolerance: what passes at fixed weights aim at
_FLOOR = 0.1  # of the gap: share of the first weights in all later ones
_LEAST = 1e-9  # the same in the weights that are given back, so that columns stay columns
_STEP = (1.0, 2.0, 8.0)  # smallest, first and largest length of steps in log α
_LONGER, _SHORTER = 1.3, 0.5
_FAR = 3.0  # log α changes by no more at a time
_EXACT = 300  # columns of a DAG up to which the interior-point method takes milliseconds
_ROUNDS = (300, 30)  # of raising prices on larger ones: the first time, and later


@dataclass(frozen=True)
class Alternating(Dual):
    """Block dual ascent, and weights that are learned. The parameters are those of :class:`nhsvm.engine.Dual`.

    Of a problem it needs ``graph`` too. The weights of its columns, which must all be positive and add up to one at
    most on every path, are where it starts; nodes that are no columns get none. ``alpha`` of the solution is what it
    has found.
    """

    kinds: ClassVar[dict[type[Problem], Callable[..., Ascent]]] = {}


class Joint(Ascent):
    """A mixin before a kind of ascent, with a ``problem`` that has ``columns`` and a ``graph``.

    With V_n = Σ_i β_in x_i, so that U_n = α_n V_n, the joint problem over U and α is bounded from below by any dual
    variables: by Σ a Δ − ½ max_α Σ_n α_n‖V_n‖² over the weights that are allowed.
    """

    problem: Any

    def __init__(self, options: Any, problem: Any, state: Any, team: Team) -> None:
        if problem.graph is None:
            raise OptionError("solver='alternating' learns weights, so it needs to know the hierarchy: use SSVM")
        super().__init__(replace(options, tol=_INNER * options.tol), problem, state, team)  # type: ignore[call-arg]
        self.asked_for = options.tol
        self.budget = Budget(problem.graph, problem.columns)
        self.first = problem.columns.alpha
        self.learned_alpha = self.first
        self.best: FloatArray | None = None
        self.inner = self.certificate
        self.excess = np.inf
        self.haste, self.smallest, self.vain = _HASTE[1], np.inf, 0
        self.lower = -np.inf  # the best bound proved
        self.length, self.direction = np.full(len(self.first), _STEP[1]), np.zeros(len(self.first))

    @property
    def alpha(self) -> FloatArray:
        found: FloatArray = self.problem.columns.alpha
        return found

    @property
    def goal(self) -> float:
        return float(self.asked_for)

    @property
    def converged(self) -> bool:
        return self.certified and self.certificate.gap <= self.goal

    def one_pass(self) -> None:
        self.reweigh()
        self.learned_alpha = self.alpha  # until a certificate finds better ones for these U
        self.certificate = self.inner
        super().one_pass()  # type: ignore[safe-super]
        self.inner = self.certificate
        saved = 0.0
        if self.ready or len(self.history) % _LOOK == 1:
            norms = self.weights.column_norms()
            self.best = self.budget.best(norms)
            values = norms / self.alpha**2
            self.excess = 0.5 * (self.budget.about(values, norms, self.best) - float(self.alpha @ values))
            saved = penalty(norms, self.alpha) - penalty(norms, self.best)
        self.certificate = Certificate(self.inner.primal - saved, max(self.inner.dual - self.excess, self.lower))
        self.history[-1].update(self.values())

    @property
    def ready(self) -> bool:
        """Whether U is about right for the weights it has."""
        return self.inner.primal - self.inner.dual <= self.haste * self.excess

    def reweigh(self) -> None:
        """Go towards the weights that are best for U, and beyond them where the way has been the same for long.

        The best for U alone is a step too short: with more weight U_n grows. A weight of zero would never come back, so
        some of the first weights, the less the smaller the gap, is in all. With a large C, U moves against margins that
        new weights violate, which takes passes to repair; so weights wait until U is about right for those it has.
        """
        if self.best is None or not self.ready:
            return
        self.vain = 0 if self.certificate.gap < 0.9 * self.smallest else self.vain + 1
        self.smallest = min(self.smallest, self.certificate.gap)
        if self.vain >= _VAIN:
            self.haste, self.vain = max(_HASTE[0], 0.5 * self.haste), 0
        best, old = np.maximum(self.best, np.finfo(np.float64).tiny), self.alpha
        way = np.log(best) - np.log(old)
        least, _, most = _STEP
        again = way * self.direction > 0
        self.length = np.clip(self.length * np.where(again, _LONGER, _SHORTER), least, most)
        self.length[self.direction == 0] = _STEP[1]
        self.direction = way
        new = self.budget.filled(old * np.exp(np.clip(self.length * way, -_FAR, _FAR)))
        share = _FLOOR * float(np.clip(self.certificate.gap, 0.0, 1.0))
        self.change((1.0 - share) * new + share * self.first)

    def change(self, alpha: FloatArray) -> None:
        """Take other weights: V_n stays, so U_n = α_n V_n is rescaled."""
        values = self.weights.column_norms() / self.alpha**2
        self.weights.rescale(alpha / self.alpha)
        self.problem = replace(self.problem, columns=replace(self.problem.columns, alpha=alpha))
        lower = dual(0.5 * float(alpha @ values), self.mass())
        self.inner = Certificate(max(self.inner.primal, lower), lower)

    def try_certificate(self) -> None:
        super().try_certificate()
        if not self.converged:  # estimates were too good, so that passes did too little
            self.options = replace(self.options, tol=_INNER * self.options.tol)  # type: ignore[type-var]
            self.ratio = min(self.ratio, _INNER)

    def reported(self) -> tuple[float, bool]:
        return self.certificate.gap, False  # what is missing may be in α, and no fault of the precision

    def values(self) -> Record:
        return super().values() | {"fixed_primal": self.inner.primal, "fixed_dual": self.inner.dual}

    def measured(self) -> tuple[Certificate, int]:
        self.inner, wrong = super().measured()  # type: ignore[safe-super]
        stored, alpha, spread = self.norms.stored, self.alpha, self.budget.spread
        self.best = self.budget.best(stored)
        learned_alpha = (1.0 - _LEAST) * self.best + _LEAST * self.first
        own, other = self.largest_penalty(stored), largest_penalty(stored, learned_alpha, self.weights.n_features)
        # weights that rounding has made too large by a factor are those without it, and a penalty larger by it
        rest = self.inner.primal * (1.0 + gamma(8.0)) - (2.0 * penalty(stored, alpha) - own)
        candidates = (alpha, own), (learned_alpha, other)
        uppers = [rest + self.budget.excess(weights) * value for weights, value in candidates]
        self.learned_alpha = learned_alpha if uppers[1] <= uppers[0] else alpha
        upper = min(uppers) * (1.0 + spread)
        values = self.norms.most / alpha**2 * (1.0 + spread)
        mass, beyond = self.least_mass(), self.state.excess(self.costs)
        about = 0.5 * (1.0 + spread) * self.budget.about(values, stored, self.best)
        self.lower = max(self.lower, least_dual(about, mass, beyond))
        if Certificate(upper, self.lower).gap > self.goal:
            most = 0.5 * (1.0 + spread) * self.budget.most(values)
            self.lower = max(self.lower, least_dual(most, mass, beyond))
        self.excess = max(0.0, self.inner.dual - self.lower)
        return Certificate(upper, self.lower), wrong


class _JointPlanes(Joint, PlanesAscent):
    """Single labels."""


class _JointTrees(Joint, TreeAscent):
    """Label sets on a tree."""


class _JointDags(Joint, DagAscent):
    """Label sets on a DAG."""


class _JointLeaves(Joint, LeafAscent):
    """Label sets on a large DAG."""


_JOINT: dict[type[SetAscent], Callable[..., Ascent]] = {
    TreeAscent: _JointTrees,
    DagAscent: _JointDags,
    LeafAscent: _JointLeaves,
}


def _joint_sets(options: Any, problem: LabelSetProblem, state: Any, team: Team) -> Ascent:
    return _JOINT[kind_of(problem)](options, problem, state, team)


Alternating.kinds.update({SingleLabelProblem: _JointPlanes, LabelSetProblem: _joint_sets})


class Budget:
    """The weights of columns.

    Parameters
    ----------
    graph : Graph
    columns : Columns
        Nodes that may have weight; every leaf is one of them.
    """

    def __init__(self, graph: Graph, columns: Columns) -> None:
        self.graph, self.columns = graph, columns
        self._prices: FloatArray | None = None

    @cached_property
    def spread(self) -> float:
        """What sums over paths and columns may be wrong by, relative to them."""
        n_columns, longest = float(self.columns.n_columns), float(self.columns.longest)
        return (n_columns + 16.0) * gamma(float(self.columns.n_leaves) + longest + 16.0)

    def excess(self, alpha: FloatArray) -> float:
        """Σ_{n∈Ā(l)} α_n of the leaf where it is largest, rounded up, if that is more than one."""
        return max(1.0, float((self._paths @ alpha).max(initial=0.0)) * (1.0 + self.spread))

    def best(self, squared_norms: FloatArray) -> FloatArray:
        """argmin_α Σ_n ‖U_n‖²/α_n (Eq. 20), on a large DAG nearly; an inner column with U_n = 0 gets nothing."""
        if not self.graph.is_tree and self.columns.n_columns > _EXACT:
            return self._nearly_best(squared_norms)
        full = np.zeros(self.graph.n_nodes)
        full[self.columns.nodes] = squared_norms
        return shared_weights(self.graph, full)[self.columns.nodes]

    def _nearly_best(self, squared_norms: FloatArray) -> FloatArray:
        """The same by prices λ of leaves, which are kept for the next time.

        The dual of Eq. 20 is max_λ 2 Σ_n √(B_n Σ_{l below n} λ_l) − Σ λ with α_n = √(B_n / Σ_{l below n} λ_l), and
        √ being concave, multiplying every price by the squared sum of α on its path never lowers it.
        """
        paths, norms = self._paths, squared_norms
        rounds = _ROUNDS[self._prices is not None]
        prices = np.full(paths.shape[0], float(norms.sum()) or 1.0) if self._prices is None else self._prices
        for _ in range(rounds):
            alpha = self._at(norms, prices)
            prices = np.maximum(prices * (paths @ alpha) ** 2, 1e-300)
        self._prices = prices
        return self.filled(self._at(norms, prices))

    def _at(self, squared_norms: FloatArray, prices: FloatArray) -> FloatArray:
        found: FloatArray = np.sqrt(squared_norms / np.maximum(self._paths.T @ prices, 1e-300))
        return found

    def filled(self, sizes: FloatArray) -> FloatArray:
        """Weights that are near some positive numbers: every node divides by the largest sum of a path through it."""
        by_column = self._paths_by_column
        sums = self._paths @ sizes
        largest = np.maximum.reduceat(sums[by_column.indices], by_column.indptr[:-1])
        alpha: FloatArray = np.divide(sizes, largest, out=np.zeros(len(sizes)), where=largest > 0)
        alpha[self._own] += np.maximum(1.0 - self._paths @ alpha, 0.0)  # leaves take what is left
        return alpha

    def most(self, values: FloatArray) -> float:
        """max_α Σ_n α_n v_n for v ≥ 0, or a little more: on a DAG, what HiGHS's prices prove."""
        if self.graph.is_tree:
            return self._most_on_tree(values)
        largest = float(values.max(initial=0.0))
        if largest == 0.0:
            return 0.0
        found = linprog(-values / largest, A_ub=self._paths, b_ub=np.ones(self.columns.n_leaves), method="highs")
        marginals = getattr(found.get("ineqlin"), "marginals", None)
        prices = values[self._own] if marginals is None else -largest * marginals
        return self._proved(values, np.maximum(prices, 0.0))

    def about(self, values: FloatArray, squared_norms: FloatArray, best: FloatArray) -> float:
        """The same, or on a DAG a bound that costs nothing, and is tight where α is right.

        At the optimum of Eq. 20 the price of a leaf's unit of weight is λ_l = ‖U_l‖²/α_l².
        """
        if self.graph.is_tree:
            return self._most_on_tree(values)
        if self._prices is not None:
            return self._proved(values, self._prices)
        norms, alpha = squared_norms[self._own], best[self._own]
        return self._proved(values, np.divide(norms, alpha**2, out=np.zeros(len(alpha)), where=alpha > 0))

    def _proved(self, values: FloatArray, prices: FloatArray) -> float:
        """A bound of Σ α v from prices λ ≥ 0: Σ λ if Σ_{l below n} λ_l ≥ v_n for all n.

        Prices that are too low are raised, by a factor for all or by what is missing at each node, whichever is less.
        """
        sums = self._paths.T @ prices
        total = float(prices.sum())
        added = total + float(np.maximum(values - sums, 0.0).sum())
        if (values[sums == 0] > 0).any():
            return added
        ratio = np.divide(values, sums, out=np.zeros(len(sums)), where=sums > 0)
        return min(added, total * float(ratio.max(initial=0.0)))

    @cached_property
    def _paths(self) -> sp.csr_array:
        indptr, indices = self.columns.paths
        return sp.csr_array((np.ones(len(indices)), indices, indptr), (self.columns.n_leaves, self.columns.n_columns))

    @cached_property
    def _paths_by_column(self) -> sp.csc_array:
        return self._paths.tocsc()

    @cached_property
    def _own(self) -> IntArray:
        """The column of every leaf itself, which is the last on its path."""
        return self.columns.paths.indices[self.columns.paths.indptr[1:] - 1]

    def _most_on_tree(self, values: FloatArray) -> float:
        """Σ over the roots of h(n) = max(v_n, Σ_children h): all of a budget at n, or all of it passed on."""
        graph = self.graph
        own, below = np.zeros(graph.n_nodes), np.zeros(graph.n_nodes)
        own[self.columns.nodes] = values
        for nodes in graph.levels_up():
            best = np.maximum(own[nodes], below[nodes])
            if nodes.start == 0:
                return float(best.sum())
            np.add.at(below, graph.parents.rows(np.arange(nodes.start, nodes.stop)).indices, best)
        return 0.0
