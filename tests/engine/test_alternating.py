"""Weights that are learned: the joint optimum of a conic solver, and a certificate recomputed from its definition."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from engine import test_label_sets as sets
from engine.conic import joint_optimum
from engine.problems import force_passes, make_case, same_bits
from nhsvm import Hierarchy, node_weights
from nhsvm.columns import make_columns
from nhsvm.engine import Alternating, Dual, alternating
from nhsvm.engine.alternating import Budget
from nhsvm.errors import OptionError
from nhsvm.objective import penalty
from reference import dual as reference
from strategies import random_hierarchy


def shared_case(seed, *, dag=False, margin="zero_one", h=None, n_nodes=10, **more):
    h = random_hierarchy(n_nodes, seed, roots=1 + seed % 3, extra=0.7 * dag) if h is None else h
    case = make_case(seed, h=h, alpha=node_weights(h, "maxmin"), margin=(margin, False), **more)
    return case.with_(graph=h.graph)


def check(case, solution, tol):
    """The certificate belongs to the weights and α that are given back; and its bound to some dual variables."""
    problem, (upper, lower) = case.problem, solution.certificate
    alpha = np.zeros(case.h.n_nodes)
    alpha[problem.columns.nodes] = solution.alpha
    assert (solution.alpha > 0).all()
    assert (case.paths @ alpha <= 1 + 1e-12).all()
    exact = penalty((case.U(solution) ** 2).sum(axis=1), alpha) + problem.costs @ case.bracket(solution).max(axis=1)
    assert upper == pytest.approx(exact, rel=1e-10)
    V, mass = reference.from_planes(case.a(solution), case.X, case.paths, problem.leaves, case.losses, False)
    most = -linprog(-(V**2).sum(axis=1), A_ub=case.paths, b_ub=np.ones(len(case.paths))).fun
    assert lower >= mass - 0.5 * most - tol * upper  # on a DAG it may be what prices prove that cost nothing
    assert solution.converged
    assert -1e-12 * upper <= upper - lower <= tol * upper


@pytest.mark.parametrize("dag", [False, True])
@pytest.mark.parametrize("seed", range(26))
def test_joint_optimum(seed, dag):
    C = [0.03, 0.3, 3.0][seed % 3]
    margin = ["zero_one", "hamming"][seed % 2]
    case = shared_case(seed, dag=dag, margin=margin, n=14, d=4, C=C, sparse=seed % 4 < 2)
    solution = Alternating(tol=2e-5, max_iter=3000).solve(case.problem)
    check(case, solution, 2e-5)
    p = case.problem
    optimum, _ = joint_optimum(case.h, case.X, p.costs, case.paths, p.leaves, case.losses)
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-4, abs=1e-8)
    assert solution.certificate.dual <= optimum * (1 + 1e-6) + 1e-8


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 7])
def test_joint_optimum_by_prices(seed, monkeypatch):
    """The way of large DAGs."""
    monkeypatch.setattr(alternating, "TUNING", alternating.AlphaTuning(exact=0))
    case = shared_case(seed, dag=True, n=14, d=4, C=0.3)
    solution = Alternating(tol=1e-4, max_iter=3000).solve(case.problem)
    check(case, solution, 1e-4)
    p = case.problem
    optimum, _ = joint_optimum(case.h, case.X, p.costs, case.paths, p.leaves, case.losses)
    assert solution.certificate.primal == pytest.approx(optimum, rel=2e-4, abs=1e-8)
    assert solution.certificate.dual <= optimum * (1 + 1e-6) + 1e-8


@pytest.mark.parametrize("h", [sets.TREE, sets.FOREST, sets.DAG], ids=["tree", "forest", "dag"])
@pytest.mark.parametrize("C", [0.03, 0.3, 3.0])
def test_joint_optimum_of_label_sets(h, C):
    problem, X, member = sets.make(h, n=12, d=4, C=C)
    solution = Alternating(tol=2e-5, max_iter=5000).solve(dataclasses.replace(problem, graph=h.graph))
    assert solution.converged
    subsets = np.array([s for s in itertools.product([0, 1], repeat=6) if any(s)])
    paths = h.graph.leaf_matrix().toarray()[[h.leaf_position(k) for k in range(6)]]
    truth = np.array([np.flatnonzero((subsets == row).all(axis=1))[0] for row in member])
    losses = np.abs(subsets[None] - member[:, None].astype(int)).sum(axis=2).astype(float)
    X = np.hstack([X, np.ones((len(X), 1))])
    optimum, _ = joint_optimum(h, X, problem.costs, (subsets @ paths > 0).astype(float), truth, losses)
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-4, abs=1e-8)
    assert solution.certificate.dual <= optimum * (1 + 1e-6) + 1e-8


@pytest.mark.parametrize("passes", ["batch", "cached"])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certificate(passes, sparse, dtype, monkeypatch):
    force_passes(monkeypatch, passes)
    tol = 1e-4 if dtype == np.float32 else 1e-6
    for seed, dag in itertools.product(range(2), [False, True]):
        case = shared_case(seed, dag=dag, sparse=sparse, dtype=dtype, n_nodes=14)
        solution = Alternating(tol=tol).solve(case.problem)
        check(case, solution, tol)
        for record in solution.history:
            assert record["primal"] >= record["dual"] - 1e-12 * record["primal"]
            assert {"fixed_primal", "fixed_dual"} <= record.keys()


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_never_above_fixed_weights(C):
    for seed, dag in itertools.product(range(3), [False, True]):
        case = shared_case(seed, dag=dag, C=C)
        found = Alternating(tol=1e-5).solve(case.problem).certificate.primal
        for scheme in ("maxmin", "power", "flat"):
            columns = make_columns(case.h.graph, node_weights(case.h, scheme))
            oracle = type(case.problem.oracle)(columns, case.loss)
            fixed = Dual(tol=1e-5).solve(dataclasses.replace(case.problem, columns=columns, oracle=oracle))
            assert found <= fixed.certificate.primal * (1 + 1e-5)


def test_a_weight_near_zero_comes_back():
    """All weight starts on one side, where alternating minimisation alone would leave it."""
    h = Hierarchy.from_edges([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")])
    case = shared_case(0, h=h, n=40)
    start = np.where(h.graph.is_leaf, 1e-8, 1 - 1e-8)
    other = case.with_(columns=dataclasses.replace(case.problem.columns, alpha=start))
    one, two = (Alternating(tol=1e-5).solve(c.problem) for c in (case, other))
    assert two.certificate.primal == pytest.approx(one.certificate.primal, rel=2e-5)
    np.testing.assert_allclose(one.alpha, two.alpha, atol=0.02)


@pytest.mark.parametrize("dag", [False, True])
def test_threads_do_not_change_a_bit(dag):
    results = []
    for threads in (1, 2, 4):
        case = shared_case(3, dag=dag, n=200, n_nodes=30, dtype=np.float32)
        results.append(Alternating(tol=1e-3, n_threads=threads).solve(case.problem))
    for other in results[1:]:
        same_bits(results[0], other)
        np.testing.assert_array_equal(results[0].alpha, other.alpha)


def test_warm_start():
    case = shared_case(1, n=60)
    first = Alternating(tol=1e-5).solve(case.problem)
    again = case.with_(columns=dataclasses.replace(case.problem.columns, alpha=first.alpha))
    second = Alternating(tol=1e-4).solve(again.problem, first.dual)
    assert len(second.history) == 1
    assert second.converged


def test_needs_the_hierarchy():
    with pytest.raises(OptionError, match="use SSVM"):
        Alternating().solve(make_case(0).problem)


@pytest.mark.parametrize("dag", [False, True])
def test_bounds_of_budgets(dag):
    """Both are above the linear program, and the certificate's is it."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        h = random_hierarchy(12, seed, roots=1 + seed % 3, extra=0.8 * dag)
        columns = make_columns(h.graph, node_weights(h, "maxmin"))
        budget = Budget(h.graph, columns)
        values = rng.exponential(size=columns.n_columns) * (rng.random(columns.n_columns) < 0.8)
        paths = h.graph.leaf_matrix().toarray()[:, columns.nodes]
        expected = -linprog(-values, A_ub=paths, b_ub=np.ones(h.n_leaves)).fun
        assert budget.most(values) == pytest.approx(expected, rel=1e-9)
        norms = columns.alpha**2 * values
        assert budget.about(values, norms, budget.best(norms)) >= expected * (1 - 1e-9)
        filled = budget.filled(rng.exponential(size=columns.n_columns))
        np.testing.assert_allclose(paths @ filled, 1.0)
        assert (filled > 0).all()
