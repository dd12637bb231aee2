"""Label sets on DAGs with the linear relaxation of the paper: fractional points as dual variables."""

from dataclasses import replace

import numpy as np
import pytest

from engine.conic import relaxed_optimum
from nhsvm import Hierarchy
from nhsvm.columns import column_parents, make_columns
from nhsvm.engine import Dual, prepare
from nhsvm.engine.problem import LabelSetProblem
from nhsvm.hierarchy.graph import Ragged
from nhsvm.oracles import DagMultilabel, LinearProgram
from nhsvm.oracles.brute_force import BruteForce
from nhsvm.threads import Team
from nhsvm.weights import node_weights
from reference.multilabel import violated
from strategies import random_hierarchy


def overlapping(k, seed):
    """k topics of two of k leaves each under a root: topics that share leaves are where the relaxation is loose."""
    rng = np.random.default_rng(seed)
    edges = {(f"topic {t}", int(leaf)) for t in range(k) for leaf in rng.choice(k, 2, replace=False)}
    edges |= {(f"topic {leaf}", leaf) for leaf in range(k)}
    return Hierarchy.from_edges([("root", f"topic {t}") for t in range(k)] + sorted(edges, key=str))


def make(h, scheme="maxmin", *, seed=0, C=0.3, empty=False, n=20, d=4):
    """A problem whose loss counts inner nodes more than leaves, as covers like; the truth as nodes too."""
    rng = np.random.default_rng(seed)
    graph = h.graph
    X = rng.normal(size=(n, d))
    member = rng.random((n, graph.n_leaves)) < 0.3
    if not empty:
        member[~member.any(axis=1), 0] = True
    true = (member @ graph.leaf_matrix().toarray() > 0).astype(float)
    columns = make_columns(graph, node_weights(h, scheme))
    lists = [np.flatnonzero(row[columns.nodes]) for row in true]
    truth = Ragged(np.cumsum([0] + [len(row) for row in lists]), np.concatenate(lists).astype(np.int32))
    weights = np.where(graph.is_leaf, 0.2, 0.3)[columns.nodes]
    problem = LabelSetProblem(
        X=prepare(X),
        truth=truth,
        costs=C * rng.uniform(0.5, 1.5, n),
        columns=columns,
        above=column_parents(graph, columns),
        oracle=LinearProgram(graph, allow_empty=empty),
        loss_weights=weights,
        n_nodes=h.n_nodes,
        dtype=np.float64,
        answers=LinearProgram(graph, allow_empty=empty, integral=True),
    )
    return problem, np.hstack([X, np.ones((n, 1))]), true


def exact_twin(problem, h):
    """The same problem over label sets."""
    return replace(problem, oracle=DagMultilabel(h.graph, allow_empty=problem.oracle.allow_empty), answers=None)


def on_nodes(problem, values):
    found = np.zeros(problem.n_nodes)
    found[problem.columns.nodes] = values
    return found


@pytest.mark.parametrize("seed", range(24))
def test_the_optimum_is_that_of_a_conic_solver(seed):
    h = overlapping(3 + seed % 4, seed) if seed % 2 else random_hierarchy(6 + seed % 7, seed, roots=2, extra=1.0)
    empty, C = seed % 5 == 4, (0.03, 0.1, 0.5)[seed % 3]
    scheme = ("uniform", "maxmin", "flat", "power")[seed % 4]
    problem, X, true = make(h, scheme, seed=seed, C=C, empty=empty)
    solution = Dual(tol=1e-4, max_iter=3000).solve(problem)
    assert solution.converged
    assert all(record["primal"] >= record["dual"] * (1 - 1e-9) for record in solution.history)
    alpha, loss = on_nodes(problem, problem.columns.alpha), on_nodes(problem, problem.loss_weights)
    optimum = relaxed_optimum(h, alpha, X, problem.costs, true, loss, empty)
    primal, dual = solution.certificate
    assert dual * (1 - 1e-6) <= optimum <= primal * (1 + 1e-6)
    assert primal == pytest.approx(optimum, rel=1.1e-4)
    exact = Dual(tol=1e-4, max_iter=3000).solve(exact_twin(problem, h))
    assert exact.converged
    assert primal >= exact.certificate.dual * (1 - 1e-12)  # the slacks of the relaxation are the larger ones


def test_the_relaxation_is_not_the_exact_problem():
    """Fractional points are in use, and matter."""
    h = overlapping(3, 0)
    problem, _, _ = make(h, C=2.0)
    relaxed = Dual(tol=1e-4, max_iter=3000).solve(problem)
    exact = Dual(tol=1e-4, max_iter=3000).solve(exact_twin(problem, h))
    assert relaxed.certificate.dual > 1.001 * exact.certificate.primal
    state = relaxed.dual
    mass = np.concatenate([np.repeat(masses, sizes) for masses, sizes in zip(state.masses, state.sizes, strict=True)])
    values = np.concatenate(state.levels) / mass
    assert ((values > 0.1) & (values < 0.9)).any()


@pytest.mark.parametrize("empty", [False, True])
def test_what_is_held_is_in_the_relaxed_polytope(empty):
    h = overlapping(5, 3)
    problem, _, _ = make(h, "uniform", C=2.0, empty=empty)
    nodes = problem.columns.nodes
    state = Dual(tol=1e-3, max_iter=500).solve(problem).dual
    held = state.held()
    common = np.setdiff1d(np.arange(h.n_nodes), nodes)  # the root, which has no weight and no column
    for i, cost in enumerate(problem.costs):
        z = np.zeros(h.n_nodes)
        mine = slice(held.indptr[i], held.indptr[i + 1])
        z[nodes[held.columns[mine]]] = held.values[mine] / cost
        z[common] = z[nodes].max() if empty else 1.0
        assert violated(h.graph, z, empty) <= 1e-8
        assert state.masses[i].sum() == pytest.approx(cost, rel=1e-12)


def points(state, i):
    """The cells of a sample as points: levels of all columns for a mass of one."""
    owner = np.repeat(np.arange(len(state.sizes[i])), state.sizes[i])
    found = np.zeros((len(state.sizes[i]), state.few.n_nodes))
    found[owner, state.leaves[i]] = state.levels[i] / state.masses[i][owner]
    return found


def test_cells_are_points_that_differ():
    problem, _, _ = make(overlapping(4, 1), "power", C=2.0)
    state = Dual(tol=1e-4, max_iter=3000).solve(problem).dual
    for i in range(problem.n_samples):
        mine = points(state, i)
        apart = np.abs(mine[:, None] - mine).max(axis=2)[np.triu_indices(len(mine), 1)]
        assert (apart > 0.9e-9).all()


def test_a_point_that_is_found_again_is_no_further_cell():
    """The oracle finds every cell of every sample once more, up to rounding; then a point that is near it."""
    problem, _, _ = make(overlapping(4, 1), "power", C=2.0)
    state = Dual(tol=1e-4, max_iter=3000).solve(problem).dual
    rng = np.random.default_rng(0)
    several = 0
    with Team(1) as team:
        for i in range(problem.n_samples):
            mine = points(state, i)
            several += len(mine) > 1
            samples, rewards = np.full(len(mine), i), np.zeros(mine.shape)
            for far, more in ((1e-13, 0), (1e-6, 1)):
                found = mine + far * rng.choice([-1.0, 1.0], mine.shape)
                layout = state.layout(samples, rewards, found, team)
                np.testing.assert_array_equal(layout.n_cells, len(mine) + more)
    assert several


def test_errors_are_counted_with_label_sets():
    """Of the answers that are no label set under the linear program, some are right under the integer program."""
    h = overlapping(3, 0)
    problem, X, true = make(h, C=2.0, n=40)
    solution = Dual(tol=1e-3, max_iter=500).solve(problem)
    scores = np.zeros((len(X), h.n_nodes))
    scores[:, problem.columns.nodes] = X @ solution.weights.values.T
    chosen, value, bound = np.empty(scores.shape, np.uint8), np.empty(len(X)), np.empty(len(X))
    BruteForce(h.graph).solve(scores, chosen, value, bound)
    assert solution.history[-1]["training_error"] == np.mean((chosen != true).any(axis=1))


def test_threads_do_not_change_a_bit():
    one, two = (Dual(tol=1e-3, n_threads=k).solve(make(overlapping(4, 2))[0]) for k in (1, 2))
    np.testing.assert_array_equal(one.weights.values, two.weights.values)
    assert one.certificate == two.certificate
