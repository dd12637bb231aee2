"""The linear relaxation on the core of a graph: between the exact problem and the paper's linear program."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import DataError
from nhsvm.oracles import BruteForce, DagMultilabel, LinearProgram, TreeMultilabel
from reference.multilabel import answer, violated
from strategies import random_hierarchy


def relaxed(graph, rewards, empty):
    return answer(DagMultilabel(graph, allow_empty=empty).relaxed(), rewards, np.float64)


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
        assert (bound <= answer(LinearProgram(graph, allow_empty=True), rewards, np.float64)[2] + 1e-6).all()


def test_points_may_be_fractional():
    """Three topics that each need one of two leaves, of three: half of every leaf covers all."""
    edges = [(top, leaf) for top, leaves in {"a": "xy", "b": "yz", "c": "xz"}.items() for leaf in leaves]
    h = Hierarchy.from_edges([("root", top) for top in "abc"] + edges)
    rewards = np.where(h.graph.is_leaf, -3.0, 2.0)[None]
    z, value, bound = relaxed(h.graph, rewards, False)
    np.testing.assert_allclose(z[0][h.graph.is_leaf], 0.5)
    assert value[0] == pytest.approx(1.5 + 2.0)
    assert bound[0] == pytest.approx(3.5)


def test_on_a_tree_it_is_exact():
    graph = random_hierarchy(60, 3, roots=2, extra=0.0).graph
    rewards = np.random.default_rng(0).normal(-0.3, 1.0, (20, graph.n_nodes))
    z, value, _ = relaxed(graph, rewards, False)
    chosen, best, _ = answer(TreeMultilabel(graph), rewards)
    np.testing.assert_allclose(value, best, atol=1e-9)
    np.testing.assert_array_equal(z, chosen)


def test_an_answer_depends_on_its_own_rewards_only():
    graph = random_hierarchy(80, 5, roots=1, extra=0.8).graph
    rewards = np.random.default_rng(1).normal(-0.2, 1.0, (40, graph.n_nodes))
    oracle = DagMultilabel(graph).relaxed()
    whole = answer(oracle, rewards, np.float64)
    backward = answer(oracle, rewards[::-1].copy(), np.float64)
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


def test_rewards_must_be_finite():
    graph = random_hierarchy(10, 0, roots=1, extra=0.5).graph
    with pytest.raises(DataError, match="sample 1"):
        relaxed(graph, np.vstack([np.zeros(graph.n_nodes), np.full(graph.n_nodes, np.nan)]), False)
