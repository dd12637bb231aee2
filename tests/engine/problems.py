"""Random learning problems, and a check of solutions that shares no code with the solver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm import Hierarchy, objective
from nhsvm.columns import make_columns
from nhsvm.engine import Dual, SingleLabelProblem, Solution, prepare
from nhsvm.losses import Loss, make_loss
from nhsvm.objective import Certificate
from nhsvm.oracles.leaves import SingleLabel
from reference import dual as reference
from reference.oracles import random_alpha
from strategies import random_hierarchy

MARGINS = (("zero_one", False), ("hamming", False), ("normalized", False), ("normalized", True))


@dataclass(frozen=True)
class Case:
    """A problem with all it was made of."""

    h: Hierarchy
    alpha: np.ndarray
    loss: Loss
    normalized: bool
    problem: SingleLabelProblem

    def solve(self, planes: Any = None, **options: Any) -> Solution:
        return Dual(**options).solve(self.problem, planes)

    def with_(self, **changes: Any) -> Case:
        return replace(self, problem=replace(self.problem, **changes))

    @property
    def X(self) -> np.ndarray:
        """Dense, in double, with the constant feature."""
        X = self.problem.X.toarray() if sp.issparse(self.problem.X) else self.problem.X
        return np.hstack([X.astype(np.float64), np.full((len(X), 1), self.problem.bias)])

    @property
    def paths(self) -> np.ndarray:
        return self.h.graph.leaf_matrix().toarray()

    @property
    def losses(self) -> np.ndarray:
        return self.loss.to_leaves(self.problem.leaves)

    def U(self, solution: Solution) -> np.ndarray:
        """Weights as shipped: a row a node, the constant feature's last; zero where α is."""
        values = solution.weights.values.astype(np.float64)
        U = np.zeros((self.h.n_nodes, self.X.shape[1]))
        U[self.alpha > 0] = values.T if sp.issparse(self.problem.X) else values
        return U

    def a(self, solution: Solution) -> np.ndarray:
        """Dual variables as (sample, leaf), after a check that they are feasible."""
        planes, leaves, costs = solution.dual, self.problem.leaves, self.problem.costs
        a = np.zeros((len(leaves), self.h.n_leaves))
        for i in range(len(leaves)):
            part = slice(planes.start[i], planes.start[i] + planes.count[i])
            where = planes.leaf[part]
            assert leaves[i] not in where
            assert len(set(where.tolist())) == len(where)
            a[i, where] = planes.weight[part]
        assert (a >= 0).all()
        assert (a.sum(axis=1) <= costs * (1 + 1e-12)).all()
        return a

    def bracket(self, solution: Solution) -> np.ndarray:
        return reference.slacks(self.U(solution), self.X, self.paths, self.problem.leaves, self.losses, self.normalized)

    def recomputed(self, solution: Solution) -> Certificate:
        """Primal of the weights and dual of the planes, from their definitions."""
        U = self.U(solution)
        slack = self.bracket(solution).max(axis=1)
        upper = objective.primal(objective.penalty((U**2).sum(axis=1), self.alpha), slack, self.problem.costs)
        a = self.a(solution)
        V, mass = reference.from_planes(a, self.X, self.paths, self.problem.leaves, self.losses, self.normalized)
        W = self.alpha[:, None] * V
        return Certificate(upper, objective.dual(objective.penalty((W**2).sum(axis=1), self.alpha), mass))

    def check(self, solution: Solution, tol: float | None = None) -> None:
        """The certificate is honest, the gap not negative; with ``tol``, it is that small."""
        found, exact = solution.certificate, self.recomputed(solution)
        size = max(exact.primal, 1e-300)
        measured = 1e-15 * self.problem.costs.sum() * np.abs(self.bracket(solution)).max()  # by this very function
        allowed = (solution.rounding + 1e-11) * size
        assert -1e-14 * size - measured <= found.primal - exact.primal <= allowed + measured, (found, exact)
        assert -1e-14 * size <= exact.dual - found.dual <= allowed, (found, exact)
        assert exact.primal - exact.dual >= -1e-12 * size
        assert np.isfinite(self.U(solution)).all()
        for record in solution.history:
            assert record["primal"] >= record["dual"] - 1e-12 * record["primal"]
        if tol is not None:
            assert solution.converged
            assert not solution.interrupted
            assert exact.gap <= tol * (1 + 1e-9) + 1e-12

    def optimum(self) -> float:
        p = self.problem
        return reference.optimum(self.X, self.paths, self.alpha, p.leaves, p.costs, self.losses, self.normalized)


def make_case(
    seed: int = 0,
    *,
    h: Hierarchy | None = None,
    dag: bool = False,
    margin: tuple[str, bool] = ("hamming", False),
    alpha: np.ndarray | None = None,
    sparse: bool = True,
    dtype: Any = np.float64,
    n: int = 40,
    d: int = 8,
    n_nodes: int = 14,
    C: float | np.ndarray = 1.0,
    bias: float = 1.0,
) -> Case:
    """Samples around a centre a class, with noise, so that some are on the margin and some beyond; a few are zero."""
    rng = np.random.default_rng(seed)
    h = random_hierarchy(n_nodes, seed, extra=0.7 * dag) if h is None else h
    alpha = random_alpha(h, seed) if alpha is None else alpha
    columns = make_columns(h.graph, alpha)
    loss, normalized = make_loss(margin[0], h, alpha), margin[1]
    leaves = rng.integers(h.n_leaves, size=n).astype(np.int32)
    X = rng.normal(size=(h.n_leaves, d))[leaves] + rng.normal(size=(n, d))
    X *= (rng.random((n, d)) < 0.6) & (rng.random(n) < 0.95)[:, None]
    costs = np.broadcast_to(np.asarray(C, dtype=np.float64), n).copy()
    oracle = SingleLabel(columns, loss, normalized)
    made = prepare(sp.csr_array(X) if sparse else X, dtype)
    problem = SingleLabelProblem(X=made, leaves=leaves, costs=costs, columns=columns, oracle=oracle, bias=bias)
    return Case(h, alpha, loss, normalized, problem)


def same_bits(one: Solution, two: Solution) -> None:
    """Weights, dual variables, certificate and history, to the last bit; only the time may differ."""
    np.testing.assert_array_equal(one.weights.values, two.weights.values)
    assert one.weights.values.dtype == two.weights.values.dtype
    assert one.certificate == two.certificate
    assert (one.converged, one.interrupted) == (two.converged, two.interrupted)
    timeless = [[{k: v for k, v in r.items() if k != "seconds"} for r in s.history] for s in (one, two)]
    assert timeless[0] == timeless[1]
    np.testing.assert_array_equal(one.dual.count, two.dual.count)
    at = one.dual.flat()[1], two.dual.flat()[1]
    for name in ("leaf", "weight", "loss", "scale"):
        np.testing.assert_array_equal(getattr(one.dual, name)[at[0]], getattr(two.dual, name)[at[1]])


def tune(monkeypatch: Any, kind: Any, **changes: Any) -> None:
    """Other constants of a kind of run."""
    monkeypatch.setattr(kind, "tuning", replace(kind.tuning, **changes))


def force_passes(monkeypatch: Any, kind: str) -> None:
    """Only batch passes, or search and working-set passes as soon as there are planes."""
    wanted = kind == "cached"
    for cls in ("nhsvm.engine.storage.table.SparseWeights", "nhsvm.engine.storage.table.DenseWeights"):
        monkeypatch.setattr(f"{cls}.working_set_is_cheap", lambda self, planes, columns: wanted and planes.n_planes > 0)
