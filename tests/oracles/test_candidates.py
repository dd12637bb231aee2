"""Leaves that could be of use, sets of these, and the search with bounds on what is above them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.oracles.dag import DagMultilabel
from nhsvm.oracles.dag import oracle as module
from nhsvm.oracles.dag.candidate_search import CandidateSearch
from nhsvm.oracles.dag.candidates import LeafCandidates, narrowed_kernel
from reference.multilabel import REWARDS, answer, best_of_all, closures, random_rewards
from strategies import hierarchies, random_hierarchy

seeds = st.integers(0, 2**32)
both = pytest.mark.parametrize("allow_empty", [False, True])


def candidates(graph, allow_empty=True):
    return LeafCandidates(graph.parents, graph.leaf_ancestors, allow_empty)


def solve(oracle, rewards):
    """(chosen, value, bound) by the leaves that could be of use."""
    some = oracle.candidates if isinstance(oracle, CandidateSearch) else oracle
    (indptr, leaves), value, bound = oracle.found(rewards, some.useful(rewards))
    chosen = np.full(rewards.shape, 7, np.uint8)
    some.write(indptr, leaves, chosen)
    return chosen, value, bound


@pytest.mark.parametrize("kind", REWARDS)
@both
@given(hierarchies(14), seeds, st.floats(-1.0, 1.0))
def test_no_best_set_has_a_leaf_of_no_use(kind, allow_empty, h, seed, more):
    graph = h.graph
    if graph.n_leaves > 8:
        return
    rewards = random_rewards(graph, kind, seed, 3) + more
    indptr, leaves = candidates(graph, allow_empty).useful(rewards)
    sets, nodes = closures(graph)
    for t, r in enumerate(rewards):
        value = nodes @ r
        value[0] = 0.0 if allow_empty else -np.inf
        useless = np.setdiff1d(np.arange(graph.n_leaves), leaves[indptr[t] : indptr[t + 1]])
        for leaf in useless:
            assert value[sets[:, leaf] == 1].max(initial=-np.inf) < value.max()


def test_one_leaf_is_of_use_where_all_others_cost_something():
    h = random_hierarchy(400, 5, extra=0.4)
    rewards = np.full((1, h.n_nodes), -1.0)
    rewards[0, h.graph.leaf_ancestors.row(3)] = 0.02
    rewards[0, h.graph.leaves[3]] = 2.0
    assert candidates(h.graph).useful(rewards)[1].tolist() == [3]


@pytest.mark.parametrize("limit", [1, 3])
@given(hierarchies(14), st.sampled_from(REWARDS), seeds)
def test_of_too_many_leaves_those_of_most_use_are_listed(limit, h, kind, seed):
    """Where no node but the leaves is worth anything, these are the leaves with the largest rewards."""
    graph = h.graph
    rewards = random_rewards(graph, kind, seed, 3)
    inner = np.setdiff1d(np.arange(graph.n_nodes), graph.leaves)
    rewards[:, inner] = -1.0 - np.abs(rewards[:, inner])
    rewards[:, graph.leaves] = 1.0 + np.abs(rewards[:, graph.leaves])
    oracle = candidates(graph)
    every, some = oracle.useful(rewards), oracle.useful(rewards, limit)
    for t, r in enumerate(rewards):
        all_of_use, few_of_use = (leaves[indptr[t] : indptr[t + 1]] for indptr, leaves in (every, some))
        assert len(few_of_use) == min(limit, len(all_of_use))
        assert np.isin(few_of_use, all_of_use).all()
        assert (np.diff(few_of_use) > 0).all()
        left = np.setdiff1d(all_of_use, few_of_use)
        worth = r[graph.leaves]
        assert worth[left].max(initial=0.0) <= worth[few_of_use].min(initial=np.inf)


@both
@given(hierarchies(16), st.sampled_from(REWARDS), seeds)
def test_sets_are_valid_and_bounded(allow_empty, h, kind, seed):
    graph = h.graph
    if graph.n_leaves > 8:
        return
    rewards = random_rewards(graph, kind, seed, 4)
    chosen, value, bound = solve(candidates(graph, allow_empty), rewards)
    best, scale = best_of_all(graph, rewards, allow_empty), np.abs(rewards).sum(axis=1)
    assert value == pytest.approx((rewards * chosen).sum(axis=1), abs=1e-12 * scale.max())
    assert (value <= best + 1e-10 * scale).all()
    assert (bound >= best - 1e-10 * scale).all()
    assert allow_empty or chosen.any(axis=1).all()
    _, nodes = closures(graph)
    assert all((nodes == (y > 0)).all(axis=1).any() for y in chosen)
    if allow_empty:
        return
    singles = nodes[np.array([1 << k for k in range(graph.n_leaves)])]
    assert (value >= np.where(value > 0, -np.inf, (rewards @ singles.T).max(axis=1)) - 1e-10 * scale).all()


@both
@pytest.mark.parametrize("exact", [False, True])
def test_a_part_of_a_graph_is_enough(monkeypatch, allow_empty, exact):
    """With all graphs large enough to be looked at in parts, and any part small enough."""
    monkeypatch.setattr(module, "TUNING", module.TUNING._replace(large=0, paths=100, most=2.0))

    @given(hierarchies(16), st.sampled_from(REWARDS), seeds)
    def check(h, kind, seed):
        graph = h.graph
        if graph.n_leaves > 8:
            return
        rewards = random_rewards(graph, kind, seed, 4)
        chosen, value, bound = answer(DagMultilabel(graph, allow_empty=allow_empty, exact=exact), rewards)
        best, scale = best_of_all(graph, rewards, allow_empty), np.abs(rewards).sum(axis=1)
        assert value == pytest.approx((rewards * chosen).sum(axis=1), abs=1e-12 * scale.max())
        assert (value <= best + 1e-9 * scale).all()
        assert (bound >= best - 1e-9 * scale).all()
        assert all((closures(graph)[1] == (y > 0)).all(axis=1).any() for y in chosen)
        assert allow_empty or chosen.any(axis=1).all()
        assert not exact or value == pytest.approx(best, abs=1e-9 * scale.max())

    check()


def test_parts_are_taken(monkeypatch):
    """On a large graph with few leaves of use, the core of the whole graph is not looked at."""
    rng = np.random.default_rng(0)
    edges = [(f"n{rng.integers(max(1, c // 3))}", f"n{c}") for c in range(1, 9000)]
    edges += [(f"n{rng.integers(max(1, c // 3))}", f"n{c}") for c in rng.integers(1, 9000, 9000)]
    graph = Hierarchy.from_edges(list(dict.fromkeys(edges))).graph
    monkeypatch.setattr(module, "TUNING", module.TUNING._replace(paths=100))
    oracle = DagMultilabel(graph, exact=True)
    rewards = -0.5 - rng.random((3, graph.n_nodes))
    for t in range(3):
        rewards[t, graph.leaf_ancestors.row(40 + t)] = 0.001
        rewards[t, graph.leaves[40 + t]] = 3.0
    expected = rewards > 0
    monkeypatch.setattr(DagMultilabel, "_searched", None)
    assert np.array_equal(answer(oracle, rewards)[0], expected)


def test_where_all_leaves_cost_something_the_best_one_is_proved():
    graph = random_hierarchy(60, 3, extra=0.4).graph
    rewards = -np.random.default_rng(0).random((5, graph.n_nodes))
    _, value, bound = solve(candidates(graph, allow_empty=False), rewards)
    paths = [rewards[:, graph.leaf_ancestors.row(k)].sum(axis=1) for k in range(graph.n_leaves)]
    assert value == pytest.approx(np.max(paths, axis=0))
    assert np.array_equal(bound, value)


@given(hierarchies(16), seeds)
def test_one_leaf_is_proved_to_be_best_where_all_leaves_cost_something(h, seed):
    """Nodes above are worth too little to be held by two, so that bounds say which leaf it is."""
    graph = h.graph
    if graph.n_leaves > 8:
        return
    rng = np.random.default_rng(seed)
    rewards = rng.uniform(0.0, 0.05, (5, graph.n_nodes))
    rewards[:, graph.leaves] = -1.0 - rng.random((5, graph.n_leaves))
    _, value, bound = solve(candidates(graph, False), rewards)
    assert value == pytest.approx(best_of_all(graph, rewards, False))
    assert bound == pytest.approx(value)


@pytest.mark.parametrize("exact", [True, False])
def test_where_all_leaves_cost_something_one_sweep_settles_most(exact, monkeypatch):
    graph = random_hierarchy(500, 6, extra=0.3).graph
    rng = np.random.default_rng(3)
    rewards = rng.normal(0.0, 0.01, (30, graph.n_nodes))
    rewards[:, graph.leaves] = -0.5 - rng.random((30, graph.n_leaves))
    rewards[0, graph.leaves[0]] = 1.0
    left, few_of = [], DagMultilabel._by_candidates
    monkeypatch.setattr(DagMultilabel, "_by_candidates", lambda *args: left.append(args[1]) or few_of(*args))
    _, value, bound = answer(DagMultilabel(graph, exact=exact), rewards)
    assert 0 in left[0]
    assert len(left[0]) <= 3
    monkeypatch.setattr(DagMultilabel, "_by_one_sweep", lambda self, some, *_: some)
    _, expected, _ = answer(DagMultilabel(graph, exact=True), rewards)
    assert len(left[1]) == 30
    assert value == pytest.approx(expected)
    assert bound == pytest.approx(expected)


@pytest.mark.parametrize("limit", [1, 8, 64])
def test_those_of_most_use_are_listed_where_they_are_many(limit):
    """More than are looked at closely; see the test with few of them."""
    graph = random_hierarchy(3000, 5, extra=0.3).graph
    rng = np.random.default_rng(0)
    rewards = np.full((2, graph.n_nodes), -1.0)
    rewards[:, graph.leaves] = 100.0 + 100.0 * rng.random((2, graph.n_leaves))
    oracle = candidates(graph)
    assert (np.diff(oracle.useful(rewards)[0]) == graph.n_leaves).all()
    assert graph.n_leaves > 1000
    indptr, leaves = oracle.useful(rewards, limit)
    for t in range(2):
        largest = np.argsort(-rewards[t, graph.leaves])[:limit]
        assert leaves[indptr[t] : indptr[t + 1]].tolist() == sorted(largest.tolist())


def search(graph, allow_empty=True, budget=5_000, precision=0.0, branches=False):
    return CandidateSearch(
        LeafCandidates(graph.parents, graph.leaf_ancestors, allow_empty), budget, precision, branches
    )


@both
@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("budget", [0, 5_000, 700_000])
@given(hierarchies(16), st.sampled_from(REWARDS), seeds, st.floats(-1.0, 1.0))
def test_sets_of_a_search_are_valid_and_bounded(budget, branches, allow_empty, h, kind, seed, more):
    graph = h.graph
    if graph.n_leaves > 8:
        return
    rewards = random_rewards(graph, kind, seed, 20) + more
    chosen, value, bound = solve(search(graph, allow_empty, budget, branches=branches), rewards)
    best, scale = best_of_all(graph, rewards, allow_empty), np.abs(rewards).sum(axis=1)
    assert value == pytest.approx((rewards * chosen).sum(axis=1), abs=1e-12 * scale.max())
    assert (value <= best + 1e-10 * scale).all()
    assert (bound >= best - 1e-10 * scale).all()
    assert allow_empty or chosen.any(axis=1).all()
    assert not (branches and budget) or value == pytest.approx(best, abs=1e-9 * scale.max())
    assert all((closures(graph)[1] == (y > 0)).all(axis=1).any() for y in chosen)


@both
def test_more_is_found_and_proved_than_by_single_leaves(allow_empty):
    graph = random_hierarchy(300, 5, extra=0.5).graph
    rewards = np.random.default_rng(0).normal(-0.1, 1.0, (40, graph.n_nodes))
    oracle = search(graph, allow_empty, 700_000)
    _, value, bound = solve(oracle, rewards)
    _, low, high = solve(oracle.candidates, rewards)
    assert (value >= low - 1e-9).all()
    assert (bound <= high + 1e-9).all()
    assert (bound - value).sum() < 0.1 * (high - low).sum()


def test_answers_do_not_depend_on_the_batch():
    graph = random_hierarchy(300, 5, extra=0.5).graph
    rewards = np.random.default_rng(1).normal(-0.2, 1.0, (40, graph.n_nodes))
    oracle = search(graph)
    together = solve(oracle, rewards)
    for t in (0, 7, 39):
        for all_, one in zip(together, solve(oracle, rewards[t : t + 1]), strict=True):
            assert np.array_equal(all_[t : t + 1], one)


def test_single_precision_will_do():
    graph = random_hierarchy(200, 4, extra=0.5).graph
    rewards = np.random.default_rng(2).normal(-0.2, 1.0, (20, graph.n_nodes)).astype(np.float32)
    oracle = search(graph)
    (indptr, leaves), value, bound = oracle.found(rewards, oracle.candidates.useful(rewards))
    _, expected, upper = solve(oracle, rewards.astype(np.float64))
    assert value == pytest.approx(expected, rel=1e-5)
    assert bound == pytest.approx(upper, rel=1e-5)
    assert len(leaves) == indptr[-1]


@both
@given(hierarchies(16), st.sampled_from(REWARDS), seeds, st.integers(1, 4))
def test_a_search_may_begin_with_some_of_the_leaves(allow_empty, h, kind, seed, most):
    graph = h.graph
    if graph.n_leaves > 8:
        return
    rewards = random_rewards(graph, kind, seed, 20)
    oracle = search(graph, allow_empty)
    useful, use_of = oracle.candidates.ranked(rewards)
    none = np.zeros(len(rewards) + 1, np.int64), np.empty(0, np.int32)
    first = oracle.candidates.narrowed(useful, use_of, most, none)
    (indptr, leaves), value, bound = oracle.found(rewards, useful, first)
    best, scale = best_of_all(graph, rewards, allow_empty), np.abs(rewards).sum(axis=1)
    assert (value >= oracle.candidates.found(rewards, first)[1] - 1e-12 * scale).all()
    assert (value <= best + 1e-10 * scale).all()
    assert (bound >= best - 1e-10 * scale).all()
    chosen = np.empty(rewards.shape, np.uint8)
    oracle.candidates.write(indptr, leaves, chosen)
    assert (rewards * chosen).sum(axis=1) == pytest.approx(value, abs=1e-12 * scale.max())


def test_a_search_where_no_leaf_is_of_use():
    graph = random_hierarchy(30, 1, extra=0.5).graph
    rewards = np.full((3, graph.n_nodes), -1.0)
    oracle = search(graph)
    useful = oracle.candidates.useful(rewards)
    assert len(useful[1]) == 0
    (indptr, leaves), value, bound = oracle.found(rewards, useful, useful)
    assert indptr.tolist() == [0, 0, 0, 0]
    assert len(leaves) == 0
    assert (value == 0.0).all()
    assert (bound == 0.0).all()


@given(seeds, st.integers(1, 30))
def test_lists_are_narrowed_to_the_leaves_of_most_use_and_those_put_in(seed, limit):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 40, 5)
    lists = [np.sort(rng.choice(100, n, replace=False)).astype(np.int32) for n in sizes]
    use_of = [rng.permutation(n).astype(float) for n in sizes]
    put = [np.sort(rng.choice(120, rng.integers(0, 20), replace=False)).astype(np.int32) for _ in lists]
    begin, put_begin = (np.cumsum([0] + [len(one) for one in many]) for many in (lists, put))
    kept_use = np.concatenate(use_of)
    found = narrowed_kernel(begin, np.concatenate(lists), kept_use, limit, put_begin, np.concatenate(put))
    for t in range(5):
        expected = set(lists[t][np.argsort(-use_of[t])[:limit]].tolist()) | set(put[t].tolist())
        assert found[1][found[0][t] : found[0][t + 1]].tolist() == sorted(expected)
    np.testing.assert_array_equal(kept_use, np.concatenate(use_of))
