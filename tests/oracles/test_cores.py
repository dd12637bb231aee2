"""The search with bounds on what is above few leaves, some samples at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm.oracles._candidates import narrowed_kernel
from nhsvm.oracles._dag_cores import DagCores
from nhsvm.oracles._dag_few import DagFew
from reference.multilabel import REWARDS, answer, best_of_all, closures, random_rewards
from strategies import hierarchies, random_hierarchy

seeds = st.integers(0, 2**32)
both = pytest.mark.parametrize("allow_empty", [False, True])


def cores(graph, allow_empty=True, budget=5_000, precision=0.0, branches=False):
    return DagCores(DagFew(graph.parents, graph.leaf_ancestors, allow_empty), budget, precision, branches)


@both
@pytest.mark.parametrize("branches", [False, True])
@pytest.mark.parametrize("budget", [0, 5_000, 700_000])
@given(hierarchies(16), st.sampled_from(REWARDS), seeds, st.floats(-1.0, 1.0))
def test_sets_are_valid_and_bounded(budget, branches, allow_empty, h, kind, seed, more):
    graph = h.graph
    if graph.n_leaves > 8:
        return
    rewards = random_rewards(graph, kind, seed, 20) + more
    chosen, value, bound = answer(cores(graph, allow_empty, budget, branches=branches), rewards)
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
    oracle = cores(graph, allow_empty, 700_000)
    _, value, bound = answer(oracle, rewards)
    _, low, high = answer(oracle.few, rewards)
    assert (value >= low - 1e-9).all()
    assert (bound <= high + 1e-9).all()
    assert (bound - value).sum() < 0.1 * (high - low).sum()


def test_answers_do_not_depend_on_the_batch():
    graph = random_hierarchy(300, 5, extra=0.5).graph
    rewards = np.random.default_rng(1).normal(-0.2, 1.0, (40, graph.n_nodes))
    oracle = cores(graph)
    together = answer(oracle, rewards)
    for t in (0, 7, 39):
        for all_, one in zip(together, answer(oracle, rewards[t : t + 1]), strict=True):
            assert np.array_equal(all_[t : t + 1], one)


def test_single_precision_will_do():
    graph = random_hierarchy(200, 4, extra=0.5).graph
    rewards = np.random.default_rng(2).normal(-0.2, 1.0, (20, graph.n_nodes)).astype(np.float32)
    oracle = cores(graph)
    (indptr, leaves), value, bound = oracle.found(rewards, oracle.few.useful(rewards))
    _, expected, upper = answer(oracle, rewards.astype(np.float64))
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
    oracle = cores(graph, allow_empty)
    useful, use_of = oracle.few.ranked(rewards)
    none = np.zeros(len(rewards) + 1, np.int64), np.empty(0, np.int32)
    first = oracle.few.narrowed(useful, use_of, most, none)
    (indptr, leaves), value, bound = oracle.found(rewards, useful, first)
    best, scale = best_of_all(graph, rewards, allow_empty), np.abs(rewards).sum(axis=1)
    assert (value >= oracle.few.found(rewards, first)[1] - 1e-12 * scale).all()
    assert (value <= best + 1e-10 * scale).all()
    assert (bound >= best - 1e-10 * scale).all()
    chosen = np.empty(rewards.shape, np.uint8)
    oracle.few.write(indptr, leaves, chosen)
    assert (rewards * chosen).sum(axis=1) == pytest.approx(value, abs=1e-12 * scale.max())


def test_a_search_where_no_leaf_is_of_use():
    graph = random_hierarchy(30, 1, extra=0.5).graph
    rewards = np.full((3, graph.n_nodes), -1.0)
    oracle = cores(graph)
    useful = oracle.few.useful(rewards)
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
