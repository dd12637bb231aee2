"""The Shared SVM (Eq. 14, Eq. 15): the dual method, with weights α that are learned between passes.

    min_{U, α}  ½ Σ_n ‖U_n‖²/α_n + Σ_i C_i ξ_i(U)   s.t.  α ≥ 0,  Σ_{n∈Ā(l)} α_n ≤ 1 for every leaf l

is jointly convex. After every pass over the samples α takes a step towards what is best for U (Eq. 20); the dual
variables stay as they are, so there is nothing to begin anew. The fit ends when a gap of the *joint* problem is proved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from nhsvm.columns import Columns
from nhsvm.engine.ascent import Ascent, Block, Dual, FitState, Found, P, Run
from nhsvm.engine.certificate import gamma, largest_penalty, least_dual
from nhsvm.engine.problem import Problem
from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import Graph
from nhsvm.objective import Certificate, dual, penalty
from nhsvm.threads import Team
from nhsvm.typing import FloatArray, IntArray, Record
from nhsvm.weights import shared_weights


@dataclass(frozen=True)
class AlphaTuning:
    """Constants of learning weights α; set by trial, without a record."""

    first_haste: float = 20.0  # while the gap at fixed weights is so many times what weights add, these stay
    least_haste: float = 1.0  # the same, at least
    no_gain: int = 8  # changes of weights without a smaller gap, after which there is less haste
    progress: float = 0.9  # of the smallest gap so far: one that is smaller than that has fallen
    calmer: float = 0.5  # factor of the haste then
    every: int = 8  # passes after which weights are compared with the best in any case
    inner: float = 0.5  # of the tolerance: what passes at fixed weights aim at
    floor: float = 0.1  # of the gap: share of the first weights in all later ones
    least: float = 1e-9  # the same in the weights that are given back, so that columns stay columns
    shortest: float = 1.0  # length of steps in log α
    first_step: float = 2.0
    longest: float = 8.0
    longer: float = 1.3  # factor of the length where the way stays the same
    shorter: float = 0.5  # and where it turns
    far: float = 3.0  # log α changes by no more at a time
    exact: int = 300  # columns of a DAG up to which the interior-point method takes milliseconds
    first_rounds: int = 300  # of raising prices on larger ones: the first time
    rounds: int = 30  # and later


TUNING = AlphaTuning()


@dataclass(frozen=True)
class Alternating(Dual):
    """Block dual ascent, and weights that are learned. The parameters are those of :class:`nhsvm.engine.Dual`.

    Of a problem it needs ``graph`` too. The weights of its columns, which must all be positive and add up to one at
    most on every path, are where it starts; nodes that are no columns get none. ``alpha`` of the solution is what it
    has found.
    """

    takes_hinges = False
    learns_weights = True

    def kind_of(self, problem: Problem) -> type[Run]:
        if problem.graph is None:
            raise OptionError("solver='alternating' learns weights, so it needs to know the hierarchy: use SSVM")
        kind = super().kind_of(problem)
        return type(f"Joint{kind.__name__}", (Joint, kind), {})


@dataclass
class LearnedAlpha:
    """The weights α of a run, and how they change."""

    budget: Budget
    first: FloatArray  # what the fit began with
    alpha: FloatArray  # as they are; the problem's columns have the same
    learned: FloatArray  # the best that are known for U as it is
    inner: Certificate  # of the problem at fixed weights
    length: FloatArray  # of the last step in log α
    direction: FloatArray
    best: FloatArray | None = None  # for U at fixed dual variables, when last compared
    excess: float = np.inf  # by how much these lower the dual
    lower: float = -np.inf  # the best bound that is proved
    haste: float = TUNING.first_haste
    smallest: float = np.inf  # gap
    no_gain: int = 0  # changes since


class Joint(Ascent[P, Block, Found]):
    """A mixin before a kind of ascent: weights α are learned between passes.

    With V_n = Σ_i β_in x_i, so that U_n = α_n V_n, the joint problem over U and α is bounded from below by any dual
    variables: by Σ a Δ − ½ max_α Σ_n α_n‖V_n‖² over the weights that are allowed.
    """

    def __init__(self, options: Dual, problem: P, fit: FitState[Block], team: Team) -> None:
        super().__init__(options, problem, fit, team)
        assert problem.graph is not None
        if fit.alpha is None:
            first, budget = problem.columns.alpha, Budget(problem.graph, problem.columns)
            length, direction = np.full(len(first), TUNING.first_step), np.zeros(len(first))
            fit.alpha = LearnedAlpha(budget, first, first, first, fit.certificate, length, direction)
            fit.aim = TUNING.inner
        self.now, self.budget = fit.alpha, fit.alpha.budget

    def resume(self) -> None:
        super().resume()
        self.now.inner = self.fit.certificate

    def one_pass(self) -> None:
        self.reweigh()
        fit, now = self.fit, self.now
        now.learned = now.alpha  # until a certificate finds better ones for these U
        fit.certificate = now.inner
        super().one_pass()
        now.inner = fit.certificate
        saved = 0.0
        if self.ready or len(fit.history) % TUNING.every == 1:
            norms = self.weights.column_norms()
            now.best = self.budget.best(norms)
            values = norms / now.alpha**2
            now.excess = 0.5 * (self.budget.about(values, norms, now.best) - float(now.alpha @ values))
            saved = penalty(norms, now.alpha) - penalty(norms, now.best)
        fit.certificate = Certificate(now.inner.primal - saved, max(now.inner.dual - now.excess, now.lower))
        fit.history[-1].update(self.values())

    @property
    def ready(self) -> bool:
        """Whether U is about right for the weights it has."""
        return self.now.inner.primal - self.now.inner.dual <= self.now.haste * self.now.excess

    def reweigh(self) -> None:
        """Go towards the weights that are best for U, and beyond them where the way has been the same for long.

        The best for U alone is a step too short: with more weight U_n grows. A weight of zero would never come back, so
        some of the first weights, the less the smaller the gap, is in all. With a large C, U moves against margins that
        new weights violate, which takes passes to repair; so weights wait until U is about right for those it has.
        """
        now, gap = self.now, self.fit.certificate.gap
        if now.best is None or not self.ready:
            return
        now.no_gain = 0 if gap < TUNING.progress * now.smallest else now.no_gain + 1
        now.smallest = min(now.smallest, gap)
        if now.no_gain >= TUNING.no_gain:
            now.haste, now.no_gain = max(TUNING.least_haste, TUNING.calmer * now.haste), 0
        best, old = np.maximum(now.best, np.finfo(np.float64).tiny), now.alpha
        direction = np.log(best) - np.log(old)
        factor = np.where(direction * now.direction > 0, TUNING.longer, TUNING.shorter)
        now.length = np.clip(now.length * factor, TUNING.shortest, TUNING.longest)
        now.length[now.direction == 0] = TUNING.first_step
        now.direction = direction
        new = self.budget.filled(old * np.exp(np.clip(now.length * direction, -TUNING.far, TUNING.far)))
        share = TUNING.floor * float(np.clip(gap, 0.0, 1.0))
        self.change((1.0 - share) * new + share * self.now.first)

    def change(self, alpha: FloatArray) -> None:
        """Take other weights: V_n stays, so U_n = α_n V_n is rescaled."""
        values = self.weights.column_norms() / self.now.alpha**2
        self.weights.rescale(alpha / self.now.alpha)
        self.now.alpha = alpha
        self.problem = replace(self.problem, columns=replace(self.problem.columns, alpha=alpha))
        lower = dual(0.5 * float(alpha @ values), self.mass())
        self.now.inner = Certificate(max(self.now.inner.primal, lower), lower)

    def ends_sooner(self) -> bool:
        return False  # the end game knows no weights that are learned

    def try_certificate(self) -> None:
        super().try_certificate()
        if not self.converged:  # estimates were too good, so that passes did too little
            self.fit.aim *= TUNING.inner
            self.fit.ratio = min(self.fit.ratio, TUNING.inner)

    def reported(self) -> tuple[float, bool]:
        return self.fit.certificate.gap, False  # what is missing may be in α, and no fault of the precision

    def values(self) -> Record:
        return super().values() | {"fixed_primal": self.now.inner.primal, "fixed_dual": self.now.inner.dual}

    def measured(self) -> tuple[Certificate, int]:
        now = self.now
        now.inner, wrong = super().measured()  # type: ignore[safe-super]
        stored, alpha, spread = self.norms.stored, now.alpha, self.budget.spread
        now.best = self.budget.best(stored)
        learned = (1.0 - TUNING.least) * now.best + TUNING.least * self.now.first
        own, other = self.largest_penalty(stored), largest_penalty(stored, learned, self.weights.n_features)
        # weights that rounding has made too large by a factor are those without it, and a penalty larger by it
        rest = now.inner.primal * (1.0 + gamma(8.0)) - (2.0 * penalty(stored, alpha) - own)
        uppers = [rest + self.budget.excess(weights) * value for weights, value in ((alpha, own), (learned, other))]
        now.learned = learned if uppers[1] <= uppers[0] else alpha
        upper = min(uppers) * (1.0 + spread)
        values = self.norms.most / alpha**2 * (1.0 + spread)
        mass, beyond = self.certified_mass.least, self.dual.excess(self.costs)
        about = 0.5 * (1.0 + spread) * self.budget.about(values, stored, now.best)
        now.lower = max(now.lower, least_dual(about, mass, beyond))
        if Certificate(upper, now.lower).gap > self.options.tol:
            most = 0.5 * (1.0 + spread) * self.budget.most(values)
            now.lower = max(now.lower, least_dual(most, mass, beyond))
        now.excess = max(0.0, now.inner.dual - now.lower)
        return Certificate(upper, now.lower), wrong


class Budget:
    """The weights that columns may have; every leaf is one of them."""

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
        if not self.graph.is_tree and self.columns.n_columns > TUNING.exact:
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
        first = self._prices is None
        prices = np.full(paths.shape[0], float(norms.sum()) or 1.0) if self._prices is None else self._prices
        for _ in range(TUNING.first_rounds if first else TUNING.rounds):
            alpha = self._at(norms, prices)
            prices = np.maximum(prices * (paths @ alpha) ** 2, 1e-300)
        self._prices = prices
        return self.filled(self._at(norms, prices))

    def _at(self, squared_norms: FloatArray, prices: FloatArray) -> FloatArray:
        return np.asarray(np.sqrt(squared_norms / np.maximum(self._paths.T @ prices, 1e-300)))

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
        prices = -largest * found.ineqlin.marginals if found.status == 0 else values[self._own]
        return self._proved(values, np.maximum(prices, 0.0))

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

    def about(self, values: FloatArray, squared_norms: FloatArray, best: FloatArray) -> float:
        """The same, or on a DAG a bound that costs nothing, and is tight where α is right.

        At the optimum of Eq. 20 the price of a leaf's unit of weight is λ_l = ‖U_l‖²/α_l².
        """
        if self.graph.is_tree:
            return self.most(values)
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
        return self.columns.path_matrix()

    @cached_property
    def _paths_by_column(self) -> sp.csc_array:
        return self._paths.tocsc()

    @cached_property
    def _own(self) -> IntArray:
        """The column of every leaf itself, which is the last on its path."""
        return self.columns.paths.last()
