"""Pegasos: its kernel, its bound, where it goes, and learning in batches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.problems import tune
from nhsvm import Hierarchy
from nhsvm.columns import make_columns
from nhsvm.engine import sgd as sgd
from nhsvm.engine.ascent import Dual
from nhsvm.engine.problem import SingleLabelProblem, Solution
from nhsvm.engine.sgd import Sgd
from nhsvm.errors import OptionError
from nhsvm.losses import make_loss
from nhsvm.objective import loss_augmented, penalty, primal
from nhsvm.oracles.leaves import SingleLabel
from nhsvm.storage.samples import prepare
from reference.sgd import pegasos
from strategies import hierarchies, random_hierarchy


def make_problem(
    h: Hierarchy,
    n: int = 40,
    seed: int = 0,
    *,
    sparse: bool = True,
    normalized: bool = False,
    loss: str = "normalized",
    dtype: Any = np.float64,
    bias: float = 1.0,
    cost: float = 1.0,
    unequal: bool = False,
) -> SingleLabelProblem:
    """Samples around a centre for each leaf, some features missing, the last row empty, some nodes without weight."""
    rng = np.random.default_rng(seed)
    alpha = rng.uniform(0.1, 1.0, h.graph.n_nodes)
    alpha[rng.random(h.graph.n_nodes) < 0.2] = 0.0
    alpha[h.graph.leaves[0]] = 0.5
    columns = make_columns(h.graph, alpha)
    leaves = rng.integers(columns.n_leaves, size=n).astype(np.int32)
    X = rng.normal(size=(columns.n_leaves, 6))[leaves] + rng.normal(size=(n, 6))
    X[rng.random(X.shape) < 0.4] = 0
    X[-1] = 0
    costs = cost * (rng.uniform(0, 3, n) if unequal else np.ones(n))
    oracle = SingleLabel(columns, make_loss(loss, h, alpha), normalized=normalized)
    made = prepare(sp.csr_array(X) if sparse else X, dtype)
    return SingleLabelProblem(X=made, leaves=leaves, costs=costs, columns=columns, oracle=oracle, bias=bias)


def rows(problem: SingleLabelProblem, which: Any) -> SingleLabelProblem:
    return replace(problem, X=problem.X[which], leaves=problem.leaves[which], costs=problem.costs[which])


def node_major(problem: SingleLabelProblem, values: Any) -> Any:
    return values.T if sp.issparse(problem.X) else values


def with_bias(problem: SingleLabelProblem) -> Any:
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    return np.column_stack([X, np.full(len(X), problem.bias)]).astype(np.float64)


def all_losses(problem: SingleLabelProblem) -> Any:
    return problem.oracle.loss_rows(np.arange(problem.columns.n_leaves, dtype=np.int32))[0]


def objective(problem: SingleLabelProblem, values: Any) -> float:
    U, c = node_major(problem, values).astype(np.float64), problem.columns
    scores = with_bias(problem) @ U.T
    leaf_scores = np.array([scores[:, c.paths.row(k)].sum(axis=1) for k in range(c.n_leaves)]).T
    losses = all_losses(problem)[problem.leaves]
    brackets = loss_augmented(leaf_scores, problem.leaves, losses, problem.oracle.normalized)
    return primal(penalty(np.sum(U**2, axis=1), c.alpha), brackets.max(axis=1), problem.costs)


def squared_norm(problem: SingleLabelProblem, values: Any) -> float:
    return 2 * penalty(np.sum(node_major(problem, values).astype(np.float64) ** 2, axis=1), problem.columns.alpha)


TREE = random_hierarchy(12, 3)
DAG = random_hierarchy(12, 3, roots=2, extra=0.7)


# -- the steps ---------------------------------------------------------------------------------------------------------


def twin(options: Sgd, problem: SingleLabelProblem, order: Any) -> tuple[list[Any], Any, float]:
    total = problem.costs.sum()
    mean = options.eta0 * total / np.count_nonzero(problem.costs)
    eta = {
        "pegasos": lambda t: total / (t + options.t0),
        "sqrt": lambda t: mean * np.sqrt((1 + options.t0) / (t + options.t0)),
        "constant": lambda t: mean,
    }[options.step]
    steps = [order[lo : lo + options.batch_size] for lo in range(0, len(order), options.batch_size)]
    radius = objective(problem, np.zeros_like(problem.weights().values)) if options.projection else np.inf
    c = problem.columns
    paths = [list(c.paths.row(k)) for k in range(c.n_leaves)]
    where = (with_bias(problem), problem.leaves, paths, c.alpha, all_losses(problem), problem.oracle.normalized)
    return pegasos(*where, steps, 1 / total, eta, radius)


def begin(options: Sgd, problem: SingleLabelProblem) -> Any:
    state = options.begin(problem)
    state.total, state.n_samples = problem.costs.sum(), np.count_nonzero(problem.costs)
    state.at_zero = objective(problem, state.values)
    return state


@settings(max_examples=60)
@given(
    hierarchies(12),
    st.integers(0, 99),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["pegasos", "sqrt", "constant"]),
    st.sampled_from([0.01, 1.0, 15.0]),
    st.sampled_from([0.0, 5.0]),
    st.sampled_from([None, "all", "linear"]),
    st.sampled_from([1, 4]),
)
def test_the_kernel_takes_the_steps_of_its_twin(
    h, seed, sparse, normalized, projection, step, eta0, t0, average, batch_size
):
    problem = make_problem(h, 30, seed, sparse=sparse, normalized=normalized, bias=seed % 2, unequal=seed % 3 == 0)
    options = Sgd(step=step, eta0=eta0, t0=t0, average=average, batch_size=batch_size, projection=projection, seed=seed)
    state, shares = begin(options, problem), np.zeros(problem.n_samples)
    order = np.concatenate([options.draw(problem, state) for _ in range(3)])
    options.feed(problem, state, order, shares)
    found, a, closest = twin(options, problem, order)
    assume(closest > 1e-9)  # else rounding chooses the label
    weight = np.arange(1, len(found) + 1) if average == "linear" else np.ones(len(found))
    expected = found[-1] if average is None else np.average(found, axis=0, weights=weight)
    got = np.empty_like(state.values)
    state.model(got)
    np.testing.assert_allclose(node_major(problem, got), expected, rtol=1e-8, atol=1e-8 * np.abs(found).max())
    t, scale, _, _, norm, mass, error = state.numbers
    last = scale * state.values
    np.testing.assert_allclose(node_major(problem, last), found[-1], rtol=1e-8, atol=1e-8 * np.abs(found).max())
    assert t == len(found)
    assert scale**2 * norm == pytest.approx(squared_norm(problem, last), rel=1e-8, abs=1e-12)
    np.testing.assert_allclose(scale * shares, a.sum(axis=1), rtol=1e-9)
    losses = all_losses(problem)[problem.leaves]
    assert scale * mass == pytest.approx(np.sum(a * ((losses > 0) if normalized else losses)), rel=1e-9)
    assert error <= 1e-10 * np.sqrt(squared_norm(problem, state.values))


@pytest.mark.parametrize("sparse", [True, False])
def test_suffix_is_the_last_half_after_a_power_of_two_passes(sparse):
    problem = make_problem(TREE, sparse=sparse)
    options = Sgd(average="suffix", max_iter=4, tol=0)
    state, orders = options.begin(problem), []
    solution = options.solve(problem, state)
    clone = begin(options, problem)
    for k in range(4):
        clone.numbers[0] = k * problem.n_samples
        orders.append(options.draw(problem, clone))
    found, *_ = twin(options, problem, np.concatenate(orders))
    expected = np.mean(found[len(found) // 2 :], axis=0)
    np.testing.assert_allclose(node_major(problem, solution.weights.values), expected, rtol=1e-8, atol=1e-10)


def test_a_pass_may_take_several_calls(monkeypatch):
    problem = make_problem(TREE)
    whole = Sgd(max_iter=3, batch_size=4).solve(problem)
    tune(monkeypatch, Sgd, losses=8 * problem.columns.n_leaves)
    np.testing.assert_array_equal(Sgd(max_iter=3, batch_size=4).solve(problem).weights.values, whole.weights.values)


# -- where they lead ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("h", [TREE, DAG], ids=["tree", "dag"])
def test_approaches_the_optimum_and_a_bound_on_it(h, normalized, sparse):
    problem = make_problem(h, 100, normalized=normalized, sparse=sparse, unequal=True)
    best = Dual(tol=1e-4).solve(problem).certificate
    got = {
        average: Sgd(average=average, max_iter=300, tol=0).solve(problem)
        for average in (None, "all", "linear", "suffix")
    }
    value = {average: solution.certificate.primal for average, solution in got.items()}
    assert best.dual * (1 - 1e-9) <= min(value.values())
    assert value["suffix"] <= 1.02 * best.primal
    assert value["linear"] <= 1.03 * best.primal
    assert value["suffix"] < value[None]
    assert value["linear"] < value["all"]
    assert got["suffix"].certificate.gap <= 0.3  # with equal costs it is much less, see below


@cache
def hard_problem(name: str, dtype: Any, cost: float) -> tuple[SingleLabelProblem, Any]:
    """A problem with its optimum."""
    if name == "tree":
        problem = make_problem(TREE, 50, dtype=dtype, unequal=True, cost=cost)
    else:
        problem = make_problem(DAG, 50, dtype=dtype, normalized=True, cost=cost)
    return problem, Dual(tol=1e-3).solve(replace(problem, X=problem.X.astype(np.float64))).certificate


@pytest.mark.parametrize(
    "options",
    [
        Sgd(average=None),
        Sgd(average="all", projection=False),
        Sgd(step="sqrt", t0=50),
        Sgd(step="constant", eta0=0.05, average="linear"),
        Sgd(step="constant", eta0=1e9, projection=False),
        Sgd(batch_size=7),
    ],
    ids=["last", "all", "sqrt", "constant", "longest", "batches"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e3])
def test_the_optimum_is_between_the_two_numbers_of_every_record(options, dtype, cost):
    for name in ("tree", "dag"):
        problem, best = hard_problem(name, dtype, cost)
        solution = replace(options, max_iter=12, tol=0).solve(problem)
        assert len(solution.history) == 12
        for record in solution.history:
            assert record["primal"] >= best.dual * (1 - 1e-9)
            assert 0 <= record["dual"] <= best.primal * (1 + 1e-9)
            assert record["gap"] == pytest.approx(1 - record["dual"] / record["primal"])
        assert solution.certificate.primal == pytest.approx(objective(problem, solution.weights.values), rel=1e-9)
        assert solution.certificate.primal == solution.history[-1]["primal"]
        assert solution.certificate.dual == solution.history[-1]["dual"]


def test_the_bound_rises_to_the_optimum():
    problem = make_problem(TREE, 60)
    best = Dual(tol=1e-4).solve(problem).certificate
    bounds = [r["dual"] for r in Sgd(max_iter=300, tol=0).solve(problem).history]
    assert bounds == sorted(bounds)
    assert 0.9 * best.dual <= bounds[-1] <= best.primal


def test_no_bound_is_claimed_for_a_start_of_unknown_planes():
    problem = make_problem(TREE)
    state = Sgd().begin(problem)
    Sgd().partial(make_problem(TREE, 50), state)
    assert Sgd(max_iter=3, tol=0).solve(problem, state).certificate.dual == 0


@pytest.mark.parametrize("h", [TREE, DAG], ids=["tree", "dag"])
@pytest.mark.parametrize("normalized", [False, True])
def test_projection_keeps_to_a_ball_that_holds_the_optimum(h, normalized):
    problem = make_problem(h, 60, normalized=normalized, cost=30.0)
    radius = objective(problem, np.zeros_like(problem.weights().values))
    assert squared_norm(problem, Dual(tol=1e-4).solve(problem).weights.values) <= radius
    norms = {}
    for projection in (True, False):
        options = Sgd(projection=projection, average=None)
        state, norms[projection] = begin(options, problem), []
        for i in options.draw(problem, state):
            options.feed(problem, state, np.array([i]))
            norms[projection].append(squared_norm(problem, state.numbers[1] * state.values))
    assert max(norms[True]) <= radius * (1 + 1e-9)
    assert max(norms[False]) > radius


# -- costs -------------------------------------------------------------------------------------------------------------


def test_draws_follow_the_costs():
    problem = replace(make_problem(TREE, 6), costs=np.array([1.0, 0.0, 2.0, 0.5, 4.0, 0.0]))
    state = begin(Sgd(), problem)
    expected = 4 * problem.costs / problem.costs.sum()
    counts = np.array([np.bincount(Sgd(seed=s).draw(problem, state), minlength=6) for s in range(2000)])
    assert (counts >= np.floor(expected)).all()
    assert (counts <= np.ceil(expected)).all()
    np.testing.assert_allclose(counts.mean(axis=0), expected, atol=0.05)


def test_equal_costs_draw_every_sample_once_in_a_new_order():
    problem = make_problem(TREE, 1000, cost=0.1)
    state = begin(Sgd(), problem)
    orders = []
    for t in (0, 1000):
        state.numbers[0] = t
        orders.append(Sgd().draw(problem, state))
        np.testing.assert_array_equal(np.sort(orders[-1]), np.arange(1000))
    assert not np.array_equal(*orders)


@pytest.mark.parametrize("sparse", [True, False])
def test_a_cost_of_two_is_a_sample_listed_twice(sparse):
    once = make_problem(TREE, 20, sparse=sparse)
    once = replace(once, costs=np.where(np.arange(20) < 5, 2.0, 1.0))
    listed = np.concatenate([np.arange(20), np.arange(5)])
    twice = rows(replace(once, costs=np.ones(20)), listed)
    order = np.random.default_rng(0).permutation(25)
    models = []
    for problem, samples in [(once, listed[order]), (twice, order)]:
        state = begin(Sgd(), problem)
        Sgd().feed(problem, state, samples)
        models.append(state.numbers[1] * state.values)
    np.testing.assert_allclose(models[0], models[1], rtol=1e-12)
    long = [Sgd(max_iter=300, tol=0).solve(problem).certificate.primal for problem in (once, twice)]
    assert long[0] == pytest.approx(long[1], rel=0.02)


# -- the run -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False])
def test_bits_depend_on_the_seed_and_not_on_threads(sparse, monkeypatch):
    monkeypatch.setattr("nhsvm.engine.problem.CHUNK", 64)  # several chunks to share
    problem = make_problem(DAG, 80, sparse=sparse)

    def run(**options: Any) -> Solution:
        return Sgd(max_iter=5, tol=0, **options).solve(problem)

    first = run()
    for n_threads in (1, 2, 4):
        again = run(n_threads=n_threads)
        np.testing.assert_array_equal(again.weights.values, first.weights.values)
        assert again.certificate == first.certificate
    assert not np.array_equal(run(seed=1).weights.values, first.weights.values)


def test_history_has_the_records_of_the_dual_solver():
    problem = make_problem(TREE)
    seen: list[Any] = []
    solution = Sgd(max_iter=4, tol=0, callback=seen.append).solve(problem)
    assert seen == solution.history
    assert set(seen[0]) == set(Dual(max_iter=1).solve(problem).history[0])
    assert [r["iteration"] for r in seen] == [1, 2, 3, 4]
    assert all(r["certified"] for r in seen)
    assert not solution.converged


def test_stops_when_little_changes_or_when_told():
    problem = make_problem(TREE)
    solution = Sgd(tol=1e-2).solve(problem)
    assert solution.converged
    before, after = (r["primal"] for r in solution.history[-2:])
    assert abs(before - after) <= 1e-2 * after
    told = Sgd(tol=0, callback=lambda record: record["iteration"] == 2).solve(problem)
    assert len(told.history) == 2
    assert not told.converged


@pytest.mark.parametrize("average", [None, "all", "linear", "suffix"])
def test_interrupted_in_the_middle_of_a_pass(average, monkeypatch):
    problem = make_problem(TREE)
    calls, steps = [0], sgd.steps_kernel

    def interrupted_steps(*arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == 13:
            raise KeyboardInterrupt
        steps(*arguments)

    tune(monkeypatch, Sgd, losses=8 * problem.columns.n_leaves)  # five calls a pass
    monkeypatch.setattr(sgd, "steps_kernel", interrupted_steps)
    solution = Sgd(average=average, tol=0).solve(problem)
    assert solution.interrupted
    assert len(solution.history) == 2
    assert solution.certificate.primal == pytest.approx(objective(problem, solution.weights.values), rel=1e-9)
    assert solution.certificate.primal != solution.history[-1]["primal"]
    assert solution.certificate.dual <= Dual(tol=1e-4).solve(problem).certificate.primal


def test_nothing_to_learn():
    problem = make_problem(TREE)
    free = Sgd().solve(replace(problem, costs=np.zeros(problem.n_samples)))
    assert free.converged
    assert free.certificate == (0.0, 0.0)
    assert not free.weights.values.any()
    lone = Sgd().solve(make_problem(Hierarchy.from_edges([], nodes=["only"])))
    assert lone.certificate == (0.0, 0.0)
    none = Sgd(max_iter=0).solve(problem)
    assert none.history == []
    assert none.certificate.primal == pytest.approx(objective(problem, none.weights.values))


@pytest.mark.parametrize("options", [{"step": "x"}, {"average": "x"}, {"batch_size": 0}, {"eta0": 0}, {"t0": -1}])
def test_options_outside_their_range(options):
    with pytest.raises(OptionError):
        Sgd(**options)


# -- batches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("average", [None, "all", "linear"])
@pytest.mark.parametrize("step", ["pegasos", "sqrt", "constant"])
def test_batches_are_one_long_run(sparse, average, step):
    problem = make_problem(DAG, 60, sparse=sparse)
    options = Sgd(average=average, step=step)
    whole, parts = begin(options, problem), begin(options, problem)
    order = np.random.default_rng(1).permutation(60)
    options.feed(problem, whole, order)
    for lo in range(0, 60, 13):
        some = order[lo : lo + 13]
        options.feed(rows(problem, some), parts, np.arange(len(some)))
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.sums, whole.sums)
    np.testing.assert_array_equal(parts.numbers, whole.numbers)


def test_a_stream_of_batches_means_all_samples_seen():
    problem = make_problem(TREE, 2000, cost=0.01)
    options, weights = Sgd(average="linear"), problem.weights()
    state = options.begin(problem)
    values = []
    for lo in range(0, 2000, 100):
        options.partial(rows(problem, slice(lo, lo + 100)), state)
        assert state.n_samples == state.numbers[0] == lo + 100
        assert state.total == pytest.approx(0.01 * state.n_samples)
        state.model(weights.values)
        values.append(objective(problem, weights.values))
    assert state.at_zero == pytest.approx(objective(problem, np.zeros_like(weights.values)))
    best = Dual(tol=1e-4).solve(problem).certificate.primal
    assert best * (1 - 1e-4) <= values[-1] <= 1.1 * best
    assert values[-1] < values[0]


def test_a_heavier_batch_is_drawn_from_more_often():
    problem = make_problem(TREE, 200)
    light, heavy = rows(problem, slice(100)), rows(problem, slice(100, 200))
    state = Sgd().begin(problem)
    Sgd().partial(light, state)
    Sgd().partial(replace(heavy, costs=np.full(100, 3.0)), state)
    assert state.numbers[0] == 100 + 150  # the mean cost is 2 by then
    Sgd().partial(replace(light, costs=np.zeros(100)), state)
    assert state.numbers[0] == 250
