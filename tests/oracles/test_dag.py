"""The DAG oracle against brute force, the tree oracle and the integer program; its relaxation; what a label adds."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import DataError, OptionError
from nhsvm.oracles import BruteForce, DagMultilabel, LinearProgram, TreeMultilabel
from nhsvm.oracles.dag.plan import PLANS, make_plan
from nhsvm.oracles.dag.primal import flip_leaves_kernel, label_gains
from reference.dag_core import leaf_by_leaf
from reference.gains import closure, gain
from reference.multilabel import answer, random_rewards, violated
from strategies import SPECIAL, dags, hierarchies, random_hierarchy, trees

seeds = st.integers(0, 2**32)
KINDS = ("normal", "ties", "negative", "leaves cost", "inner cost", "zeros", "huge", "tiny", "heavy")


def make_rewards(graph, kind, n, rng):
    r = rng.normal(size=(n, graph.n_nodes)) + rng.normal()
    if kind == "ties":
        return np.round(r)
    if kind == "negative":
        return -np.abs(r)
    if kind == "leaves cost":
        return np.where(graph.is_leaf, -np.abs(r), np.abs(r))
    if kind == "inner cost":
        return np.where(graph.is_leaf, np.abs(r), -np.abs(r))
    if kind == "heavy":
        return rng.standard_t(1.0, size=r.shape)
    return r * {"zeros": 0.0, "huge": 1e200, "tiny": 1e-200}.get(kind, 1.0)


def solve(graph, rewards, **options):
    n = len(rewards)
    chosen, value, bound = np.empty((n, graph.n_nodes), np.uint8), np.empty(n), np.empty(n)
    DagMultilabel(graph, **options).solve(rewards, chosen, value, bound)
    return chosen, value, bound


def is_valid(graph, y, allow_empty):
    if not y.any():
        return allow_empty
    parent, child = graph.edges()
    covered = np.bincount(parent, weights=y[child], minlength=graph.n_nodes) > 0
    return bool((y[parent] >= y[child]).all() and (covered | graph.is_leaf)[y == 1].all())


def best_of_all(graph, rewards, allow_empty):
    """The optimum of every sample, from all leaf sets."""
    sets = np.zeros((1, graph.n_nodes), dtype=bool)
    for k in range(graph.n_leaves):
        closure = np.zeros(graph.n_nodes, dtype=bool)
        closure[graph.leaf_ancestors.row(k)] = True
        sets = np.concatenate([sets, sets | closure])
    values = rewards @ sets.T
    return values[:, 0 if allow_empty else 1 :].max(axis=1)


def check(graph, rewards, allow_empty=False, **options):
    chosen, value, bound = solve(graph, rewards, allow_empty=allow_empty, **options)
    scale = np.abs(rewards).sum(axis=1)
    for t, y in enumerate(chosen):
        assert is_valid(graph, y, allow_empty)
        assert value[t] == pytest.approx(rewards[t][y == 1].sum(), abs=1e-12 * scale[t])
    assert (bound >= value).all()
    return value, bound, scale


@pytest.mark.parametrize("allow_empty", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@given(hierarchies(22), seeds)
def test_equals_brute_force(kind, allow_empty, h, seed):
    graph = h.graph
    if graph.n_leaves > 12:
        return
    rewards = make_rewards(graph, kind, 4, np.random.default_rng(seed))
    value, bound, scale = check(graph, rewards, allow_empty, exact=True)
    best = best_of_all(graph, rewards, allow_empty)
    assert np.abs(value - best).max() <= 1e-10 * scale.max()
    assert np.abs(bound - best).max() <= 1e-10 * scale.max()


@pytest.mark.parametrize("kind", ["normal", "ties", "leaves cost"])
@given(dags(22), seeds, st.booleans())
def test_a_tiny_budget_gives_a_set_and_a_bound(kind, h, seed, allow_empty):
    graph = h.graph
    if graph.n_leaves > 12:
        return
    rewards = make_rewards(graph, kind, 4, np.random.default_rng(seed))
    value, bound, scale = check(graph, rewards, allow_empty, budget=0)
    best = best_of_all(graph, rewards, allow_empty)
    assert (value <= best + 1e-10 * scale).all()
    assert (bound >= best - 1e-10 * scale).all()


@pytest.mark.parametrize("allow_empty", [False, True])
@given(trees(60), seeds, st.sampled_from(KINDS))
def test_on_a_tree_it_is_the_dynamic_programme(allow_empty, h, seed, kind):
    graph = h.graph
    rewards = make_rewards(graph, kind, 3, np.random.default_rng(seed))
    chosen, value, bound = np.empty((3, graph.n_nodes), np.uint8), np.empty(3), np.empty(3)
    TreeMultilabel(graph, allow_empty=allow_empty).solve(rewards, chosen, value, bound)
    found, same, proved = solve(graph, rewards, allow_empty=allow_empty)
    scale = np.abs(rewards).sum()
    assert np.abs(same - value).max() <= 1e-12 * scale
    assert np.array_equal(proved, same)
    if kind == "normal":  # no ties
        assert np.array_equal(found, chosen)


@pytest.mark.parametrize("name", SPECIAL)
def test_extreme_shapes(name):
    graph = SPECIAL[name].graph
    rng = np.random.default_rng(0)
    for kind in KINDS:
        value, bound, _ = check(graph, make_rewards(graph, kind, 2, rng), exact=True)
        assert np.array_equal(value, bound)


@pytest.mark.parametrize("seed", range(36))
def test_equals_the_integer_program(seed):
    rng = np.random.default_rng(seed)
    size, roots, extra = int(rng.integers(200, 1000)), int(rng.integers(1, 4)), 0.1 + 1.2 * rng.random()
    h = random_hierarchy(size, seed, roots=roots, extra=extra)
    kind = ("normal", "ties", "leaves cost", "inner cost")[seed % 4]
    rewards = make_rewards(h.graph, kind, 1, rng)
    value, bound, scale = check(h.graph, rewards, exact=True)
    assert abs(value[0] - program(h.graph, rewards[0])) <= 1e-9 * max(abs(value[0]), 1.0) + 1e-12 * scale[0]
    assert bound[0] == pytest.approx(value[0], rel=1e-9)


def program(graph, r):
    """Eq. 19 on the graph as it is: nothing of the plan, no folding."""
    import highspy

    parent, child = graph.edges()
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0), ("mip_abs_gap", 0.0)):
        solver.setOptionValue(option, value)
    x = [solver.addBinary(obj=float(v)) for v in r]
    for p, c in zip(parent, child, strict=True):
        solver.addConstr(x[p] - x[c] >= 0)
    for n in np.flatnonzero(~graph.is_leaf):
        solver.addConstr(sum(x[c] for c in graph.children.row(n)) - x[n] >= 0)
    solver.addConstr(sum(x[n] for n in range(graph.n_roots)) >= 1)
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(r[np.array(solver.getSolution().col_value) > 0.5].sum())


def test_a_spent_budget_ends_in_the_integer_program():
    """Set cover: what a budget of nothing leaves open, HiGHS settles on the rest of the graph."""
    open_ones = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        edges = [("root", f"need {i}") for i in range(30)]
        edges += [(f"need {i}", leaf) for leaf in range(45) for i in rng.permutation(30)[:3]]
        graph = Hierarchy.from_edges(edges).graph
        rewards = np.where(graph.is_leaf, -1.0 - 0.2 * rng.random((2, graph.n_nodes)), 1.0)
        value, bound, _ = check(graph, rewards, budget=0)
        best, proved, _ = check(graph, rewards, budget=0, exact=True)
        longer, _, _ = check(graph, rewards, budget=10**8, precision=0.0)
        open_ones += int((bound > value).sum())
        assert np.array_equal(best, proved)
        assert (value <= best).all()
        assert (best <= bound + 1e-9).all()
        assert best == pytest.approx(longer, rel=1e-9)
    assert open_ones > 0


@pytest.mark.parametrize("precision", [0.0, 1e-3, 0.2])
@given(dags(22), seeds)
def test_a_precision_is_kept_and_the_bound_is_honest(precision, h, seed):
    graph = h.graph
    if graph.n_leaves > 12:
        return
    rewards = make_rewards(graph, "normal", 4, np.random.default_rng(seed))
    value, bound, scale = check(graph, rewards, precision=precision)
    best = best_of_all(graph, rewards, False)
    assert (bound >= best - 1e-10 * scale).all()
    assert (bound - value <= precision * np.abs(value) + 1e-10 * scale).all()


def test_chains_merge_and_shortcuts_are_dropped():
    h = Hierarchy.from_edges([("r", "a"), ("a", "b"), ("b", "c"), ("r", "c"), ("r", "d"), ("b", "e"), ("d", "f")])
    plan = make_plan(h.graph, False)  # r -> c says nothing beside r -> a -> b -> c; then a-b and d-f are one group each
    assert len(plan.node) == 1
    group = dict(zip(h.nodes, plan.group.tolist(), strict=True))
    assert group["a"] == group["b"]
    assert group["d"] == group["f"]
    assert len(set(plan.group.tolist())) == 5


def test_the_same_answer_every_time_and_in_threads():
    graph = random_hierarchy(800, 3, extra=0.7).graph
    rewards = make_rewards(graph, "ties", 12, np.random.default_rng(0))
    kept = rewards.copy()
    oracle = DagMultilabel(graph)
    results = []

    def work():
        chosen, value, bound = np.empty(rewards.shape, np.uint8), np.empty(12), np.empty(12)
        oracle.solve(rewards, chosen, value, bound)
        results.append((chosen, value, bound))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    single = [solve(graph, rewards[t : t + 1]) for t in range(12)]
    results.append(tuple(np.concatenate(parts) for parts in zip(*single, strict=True)))
    assert len(results) == 4
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))
    assert np.array_equal(rewards, kept)


@pytest.mark.parametrize("options", [{"budget": 0}, {"budget": 3000}, {"exact": True}])
@given(dags(22), seeds, st.booleans())
def test_what_is_remembered_is_never_wrong(options, h, seed, allow_empty):
    """Rewards change a little, then altogether."""
    graph = h.graph
    if graph.n_leaves > 12:
        return
    rng = np.random.default_rng(seed)
    oracle = DagMultilabel(graph, allow_empty=allow_empty, **options)
    memory, rows = oracle.memory(9), np.array([7, 2, 3, 0])
    rewards = make_rewards(graph, "normal", 4, rng)
    chosen, value, bound = np.empty(rewards.shape, np.uint8), np.empty(4), np.empty(4)
    for size in (0.0, 0.01, 0.01, 10.0, 0.0):
        before = (rewards * chosen).sum(axis=1) if size == 0.0 and memory.known.any() else -np.inf
        rewards = rewards + size * rng.normal(size=rewards.shape)
        oracle.solve(rewards, chosen, value, bound, memory, rows)
        best, scale = best_of_all(graph, rewards, allow_empty), np.abs(rewards).sum(axis=1)
        for t, y in enumerate(chosen):
            assert is_valid(graph, y, allow_empty)
            assert value[t] == pytest.approx(rewards[t][y == 1].sum(), abs=1e-12 * scale[t])
        assert (value <= best + 1e-10 * scale).all()
        assert (bound >= best - 1e-10 * scale).all()
        assert (value >= before - 1e-10 * scale).all()  # a second look finds no less
        if "exact" in options:
            assert value == pytest.approx(best, abs=1e-9 * scale.max())
    assert set(np.flatnonzero(memory.known)) <= set(rows.tolist())


@given(dags(22), seeds, st.booleans())
def test_leaves_are_flipped_while_it_helps(h, seed, allow_empty):
    graph, rng = h.graph, np.random.default_rng(seed)
    rewards = make_rewards(graph, "normal", 3, rng)
    leaves = rng.random((3, graph.n_leaves)) < 0.5
    leaves[:, 0] |= ~leaves.any(axis=1)
    chosen = (leaves @ graph.leaf_matrix().toarray() > 0).astype(np.uint8)
    before, gap = (rewards * chosen).sum(axis=1), np.array([99.0, 99.0, 0.0])
    expected = [leaf_by_leaf(graph, r, y, allow_empty) for r, y in zip(rewards, chosen, strict=True)]
    expected[2] = chosen[2].copy()  # there is no gap, so nothing is done
    flip_leaves_kernel(
        rewards, np.abs(rewards).sum(axis=1), chosen, gap, graph.leaves, *graph.leaf_ancestors, allow_empty
    )  # fmt: skip
    assert np.array_equal(chosen, expected)
    assert all(is_valid(graph, y, allow_empty) for y in chosen)
    gained = (rewards * chosen).sum(axis=1) - before
    assert gap == pytest.approx([99.0 - gained[0], 99.0 - gained[1], 0.0], abs=1e-9)


@given(hierarchies(22), seeds, st.booleans())
def test_what_is_renewed_is_never_wrong(h, seed, allow_empty):
    """From a memory that has some of the samples: more sweeps bound no worse, sets are never worse than the last."""
    graph, rng = h.graph, np.random.default_rng(seed)
    if graph.n_leaves > 12:
        return
    oracle = DagMultilabel(graph, allow_empty=allow_empty)
    memory, rows = oracle.memory(4), np.arange(4)
    rewards = make_rewards(graph, "normal", 4, rng)
    rewards[1] = -np.abs(rewards[1])
    chosen, value, bound = np.empty(rewards.shape, np.uint8), np.empty(4), np.empty(4)
    oracle.stages[0].solve(rewards[:2], chosen[:2], value[:2], bound[:2], memory, rows[:2])
    rewards = rewards + 0.3 * rng.normal(size=rewards.shape)
    best, scale = best_of_all(graph, rewards, allow_empty), np.abs(rewards).sum(axis=1)
    highest, lowest = np.full(4, np.inf), np.full(4, -np.inf)
    assert np.array_equal(memory.recalled(rows[:2], graph.n_nodes), chosen[:2])
    lowest[:2] = (rewards * chosen)[:2].sum(axis=1)
    for sweeps in (0, 1, 1, 10):
        oracle.renewal(sweeps).solve(rewards, chosen, value, bound, memory, rows)
        assert all(is_valid(graph, y, allow_empty) for y in chosen)
        assert value == pytest.approx((rewards * chosen).sum(axis=1), abs=1e-12 * scale.max())
        assert (value <= best + 1e-10 * scale).all()
        assert (value >= lowest - 1e-10 * scale).all()
        if not allow_empty:
            closures = [rewards[:, graph.leaf_ancestors.row(k)].sum(axis=1) for k in range(graph.n_leaves)]
            assert (value >= np.where(value < 0, np.max(closures, axis=0), -np.inf) - 1e-10 * scale)[2:].all()
        assert (bound >= best - 1e-10 * scale).all()
        assert (bound <= highest + 1e-6 * scale).all()  # shares are remembered in single precision
        assert np.isfinite(memory.shares).all()
        highest, lowest = bound.copy(), value.copy()


def test_what_is_remembered_does_not_depend_on_the_batches():
    graph = random_hierarchy(800, 3, extra=0.7).graph
    rng = np.random.default_rng(0)
    first = make_rewards(graph, "normal", 40, rng)
    second = first + 0.1 * rng.normal(size=first.shape)
    results = []
    for batches in ([np.arange(40)], [np.arange(40)[::-1]], np.array_split(rng.permutation(40), 7)):
        oracle = DagMultilabel(graph, budget=5000)
        memory = oracle.memory(40)
        chosen, value, bound = np.empty(first.shape, np.uint8), np.empty(40), np.empty(40)
        for rewards in (first, second):
            for rows in batches:
                y, v, b = np.empty((len(rows), graph.n_nodes), np.uint8), np.empty(len(rows)), np.empty(len(rows))
                oracle.solve(rewards[rows], y, v, b, memory, rows)
                chosen[rows], value[rows], bound[rows] = y, v, b
        results.append((chosen, value, bound, *memory))
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))
    # and it helps: the bound of a first look alone
    gap = np.empty((2, 40))
    for k, known in enumerate(({}, {"memory": memory, "rows": np.arange(40)})):
        DagMultilabel(graph, budget=0).solve(second, chosen, value, bound, **known)
        gap[k] = bound - value
    assert gap[1].sum() < 0.5 * gap[0].sum()


def test_no_memory_beyond_600_megabytes():
    graph = random_hierarchy(800, 3, extra=0.7).graph
    oracle = DagMultilabel(graph)
    most = 600_000_000 // (4 * oracle.memory(1).shares.shape[1] + 100)  # 800 nodes, eight a byte
    assert oracle.memory(most + 1) is None
    assert (oracle.remembers(most), oracle.remembers(most + 1)) == (True, False)
    assert oracle.memory(most) is not None  # not written to, so it takes no memory
    with pytest.raises(OptionError, match="memory and rows go together"):
        oracle.solve(np.zeros((1, 800)), np.empty((1, 800), np.uint8), np.empty(1), np.empty(1), oracle.memory(1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rewards_must_be_finite(bad):
    graph = SPECIAL["diamond"].graph
    rewards = np.zeros((3, graph.n_nodes))
    rewards[1, 4] = bad
    with pytest.raises(DataError, match=f"sample 1 has {bad} at node number 4"):
        solve(graph, rewards)


def test_wrong_arrays_and_options():
    graph = SPECIAL["diamond"].graph
    with pytest.raises(DataError, match="too large"):
        solve(graph, np.full((1, graph.n_nodes), 1e300))
    with pytest.raises(OptionError, match="rewards must be"):
        solve(graph, np.zeros((1, 3)))
    with pytest.raises(OptionError, match="budget"):
        DagMultilabel(graph, budget=-1)
    with pytest.raises(OptionError, match="precision"):
        DagMultilabel(graph, precision=1.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_set_without_a_proof_is_no_worse_than_one_leaf(seed):
    """Where all sets cost something, dives along the marginals miss the cheapest leaf."""
    rng = np.random.default_rng(seed)
    graph = random_hierarchy(1500, seed, extra=1.0).graph
    rewards = rng.normal(-0.5, 0.5, size=(20, graph.n_nodes))
    above = graph.leaf_ancestors
    single = np.array([[r[above.row(k)].sum() for k in range(graph.n_leaves)] for r in rewards]).max(axis=1)
    value, bound, _ = check(graph, rewards, budget=0)
    assert (bound > value).any()  # not all is proved
    assert (value >= single - 1e-9).all()


def test_where_nothing_gains_a_renewal_has_the_best_leaf():
    """Rewards of both signs: a leaf whose sum is low half way up may still be the best."""
    edges = [("p", "a"), ("q", "a"), ("p", "b"), ("q", "c"), ("r", "c"), ("r", "d"), ("s", "d"), ("s", "b")]
    h = Hierarchy.from_edges(edges)
    worth = {"p": -1, "q": -1, "a": -1, "b": -9, "c": -9, "r": 2, "s": 2, "d": -5}
    rewards = np.array([[float(worth[node]) for node in h.nodes]])
    oracle = DagMultilabel(h.graph)
    chosen, value, bound = np.empty(rewards.shape, np.uint8), np.empty(1), np.empty(1)
    oracle.renewal(0).solve(rewards, chosen, value, bound, oracle.memory(1), np.arange(1))
    assert value[0] == -1
    assert {h.nodes[k] for k in np.flatnonzero(chosen[0])} == {"r", "s", "d"}


def test_the_plan_of_a_graph_is_made_once_and_goes_with_it():
    graph = random_hierarchy(30, 0, roots=1, extra=0.5).graph
    one, other = DagMultilabel(graph), DagMultilabel(graph, exact=True)
    assert one.plan is other.plan
    assert DagMultilabel(graph, allow_empty=True).plan is not one.plan
    before, watch = len(PLANS), weakref.ref(graph)
    del one, other, graph
    gc.collect()
    assert watch() is None
    assert len(PLANS) < before


# -- the linear relaxation ---------------------------------------------------------------------------------------------


def relaxed(graph, rewards, empty):
    return answer(DagMultilabel(graph, allow_empty=empty).relaxation(), rewards)


@settings(max_examples=150, deadline=None)
@given(st.integers(3, 14), st.integers(0, 10**6), st.booleans(), st.floats(0.0, 1.2), st.integers(1, 3))
def test_it_bounds_all_label_sets_by_a_point_of_the_relaxation(n, seed, empty, extra, roots):
    graph = random_hierarchy(n, seed, roots=roots, extra=extra).graph
    rewards = np.random.default_rng(seed).normal(-0.2, 1.0, (4, graph.n_nodes))
    z, value, bound = relaxed(graph, rewards, empty)
    best = answer(BruteForce(graph, allow_empty=empty), rewards)[1]
    assert (bound >= best - 1e-12 * np.abs(rewards).sum(axis=1)).all()
    np.testing.assert_allclose(value, bound, atol=1e-6)
    for one in z:
        assert violated(graph, one, True) <= 1e-7
        assert empty or one[: graph.n_roots].sum() >= 1 - 1e-7
    if empty:  # else it lacks a constraint of the paper's
        assert (bound <= answer(LinearProgram(graph, allow_empty=True), rewards)[2] + 1e-6).all()


def test_points_may_be_fractional():
    """Three topics that each need one of two leaves, of three: half of every leaf covers all."""
    edges = [(top, leaf) for top, leaves in {"a": "xy", "b": "yz", "c": "xz"}.items() for leaf in leaves]
    h = Hierarchy.from_edges([("root", top) for top in "abc"] + edges)
    rewards = np.where(h.graph.is_leaf, -3.0, 2.0)[None]
    z, value, bound = relaxed(h.graph, rewards, False)
    np.testing.assert_allclose(z[0][h.graph.is_leaf], 0.5)
    assert value[0] == pytest.approx(1.5 + 2.0)
    assert bound[0] == pytest.approx(3.5)


def test_on_a_tree_the_relaxation_is_exact():
    graph = random_hierarchy(60, 3, roots=2, extra=0.0).graph
    rewards = np.random.default_rng(0).normal(-0.3, 1.0, (20, graph.n_nodes))
    z, value, _ = relaxed(graph, rewards, False)
    chosen, best, _ = answer(TreeMultilabel(graph), rewards)
    np.testing.assert_allclose(value, best, atol=1e-9)
    np.testing.assert_array_equal(z, chosen)


def test_a_point_depends_on_its_own_rewards_only():
    graph = random_hierarchy(80, 5, roots=1, extra=0.8).graph
    rewards = np.random.default_rng(1).normal(-0.2, 1.0, (40, graph.n_nodes))
    oracle = DagMultilabel(graph).relaxation()
    whole = answer(oracle, rewards)
    backward = answer(oracle, rewards[::-1].copy())
    for one, other in zip(whole, backward, strict=True):
        np.testing.assert_array_equal(one, other[::-1])


def test_another_number_of_threads_elsewhere_does_no_harm():
    """HiGHS keeps the number of its threads, and refuses programs that ask for another one."""
    highspy = pytest.importorskip("highspy")
    other = highspy.Highs()
    for name, option in {"output_flag": False, "threads": 2, "parallel": "on"}.items():
        other.setOptionValue(name, option)
    other.run()
    edges = [(top, leaf) for top, leaves in {"a": "xy", "b": "yz", "c": "xz"}.items() for leaf in leaves]
    graph = Hierarchy.from_edges([("root", top) for top in "abc"] + edges).graph
    rewards = np.where(graph.is_leaf, -3.0, 2.0)[None]
    assert relaxed(graph, rewards, False)[1][0] == pytest.approx(3.5)


def test_rewards_of_a_relaxation_must_be_finite():
    graph = random_hierarchy(10, 0, roots=1, extra=0.5).graph
    with pytest.raises(DataError, match="sample 1"):
        relaxed(graph, np.vstack([np.zeros(graph.n_nodes), np.full(graph.n_nodes, np.nan)]), False)


# -- what a label adds to a set ----------------------------------------------------------------------------------------


@given(hierarchies(30), seeds)
def test_label_gains_equal_their_twin(h, seed):
    graph, rng = h.graph, np.random.default_rng(seed)
    scores = random_rewards(graph, ["noise", "ties"][seed % 2], seed)
    sets = [set(np.flatnonzero(rng.random(graph.n_leaves) < 0.4).tolist()) for _ in scores]
    chosen = np.zeros(scores.shape, np.uint8)
    for row, leaves in zip(chosen, sets, strict=True):
        row[list(closure(graph, leaves))] = 1
    found = label_gains(graph, scores, chosen)
    expected = [
        [gain(graph, s, leaves, k) for k in range(graph.n_leaves)] for s, leaves in zip(scores, sets, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    some = rng.integers(graph.n_leaves, size=3)
    np.testing.assert_array_equal(label_gains(graph, scores, chosen, some), found[:, some])


@given(hierarchies(14), seeds, st.booleans())
def test_label_gains_of_the_best_sets(h, seed, allow_empty):
    if h.n_leaves > 8:
        return
    scores = random_rewards(h.graph, "noise", seed)
    chosen, _, _ = answer(BruteForce(h.graph, allow_empty=allow_empty), scores)
    found = label_gains(h.graph, scores, chosen)
    inside = chosen[:, h.graph.leaves].astype(bool)
    assert (found[~inside] <= 0).all()
    forced = ~np.full_like(inside, allow_empty) & (inside.sum(axis=1, keepdims=True) == 1)
    assert (found[inside & ~forced] >= 0).all()


def test_label_gains_on_a_large_star():
    h = SPECIAL["star"]
    chosen = np.zeros((1, h.n_nodes), np.uint8)
    chosen[0, :2] = 1  # the hub, which the only leaf holds alone
    found = label_gains(h.graph, np.arange(h.n_nodes, dtype=float)[None] + 1, chosen)
    assert found[0, :2].tolist() == [3.0, 3.0]
    assert found.shape == (1, 10_000)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("scores", np.zeros((2, 9))),
        ("scores", np.zeros((2, 6), np.float32)),
        ("chosen", np.zeros((1, 6), np.uint8)),
        ("chosen", np.zeros((2, 6))),
        ("which", np.array([3])),
        ("which", np.array([-1])),
    ],
)
def test_arrays_that_label_gains_could_not_trust(name, wrong):
    h = SPECIAL["diamond"]
    arrays = {"scores": np.zeros((2, 6)), "chosen": np.zeros((2, 6), np.uint8), "which": np.array([0])}
    with pytest.raises(OptionError, match=f"{name} must be"):
        label_gains(h.graph, **(arrays | {name: wrong}))
