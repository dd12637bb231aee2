"""The linear and the integer program: tight on trees, ordered on DAGs, and loud when HiGHS fails."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import DataError, NotSolvedError
from nhsvm.oracles.brute_force import BruteForce
from nhsvm.oracles.lp import LinearProgram
from nhsvm.oracles.tree import TreeMultilabel
from reference.losses import closure
from reference.multilabel import REWARDS, answer, random_rewards, violated
from strategies import SPECIAL, dags, random_hierarchy, trees

seeds = st.integers(0, 2**32)
kinds = st.sampled_from(REWARDS)
# three sets of two leaves each: half of every leaf covers them all, one and a half leaves where two are needed
COVER = Hierarchy.from_edges(
    [("r", s) for s in "abc"] + [("a", "x"), ("a", "y"), ("b", "y"), ("b", "z"), ("c", "x"), ("c", "z")]
)
COSTLY = np.where(COVER.graph.is_leaf, -3.0, 2.0)[None]


def solve(graph, rewards, **options):
    return answer(LinearProgram(graph, **options), rewards)


def close(a, b, rewards):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * max(np.abs(rewards).max(), 1e-300))


@settings(max_examples=80)
@given(trees(30), kinds, seeds, st.booleans())
def test_the_relaxation_of_a_tree_is_exact(h, kind, seed, allow_empty):
    rewards = random_rewards(h.graph, kind, seed)
    _, expected, _ = answer(TreeMultilabel(h.graph, allow_empty=allow_empty), rewards)
    chosen, value, bound = solve(h.graph, rewards, allow_empty=allow_empty)
    close(value, expected, rewards)
    close(bound, expected, rewards)
    for z in chosen:
        assert violated(h.graph, z, allow_empty) <= 1e-7


@settings(max_examples=80)
@given(dags(12), kinds, seeds, st.booleans())
def test_bound_of_lp_exact_rounding(h, kind, seed, allow_empty):
    """LP value ≥ integer program = brute force ≥ every rounding; the dual bound is the LP's value."""
    rewards = random_rewards(h.graph, kind, seed)
    z, relaxed, bound = solve(h.graph, rewards, allow_empty=allow_empty)
    found, exact, proved = solve(h.graph, rewards, allow_empty=allow_empty, integral=True)
    whole = found.astype(float)
    _, truth, _ = answer(BruteForce(h.graph, allow_empty=allow_empty), rewards)
    small = 1e-9 * np.abs(rewards).max()
    close(exact, truth, rewards)
    close(bound, relaxed, rewards)
    assert (relaxed >= truth - small).all()
    assert (proved >= truth - small).all()
    assert (proved <= bound + small).all()
    assert set(np.unique(whole)) <= {0.0, 1.0}
    for t, r in enumerate(rewards):
        assert violated(h.graph, z[t], allow_empty) <= 1e-7
        assert violated(h.graph, whole[t], allow_empty) == 0
        assert value_of(r, whole[t]) == pytest.approx(exact[t], rel=1e-12, abs=small)
        for level in np.unique(z[t, h.graph.leaves]):
            if level > 0:
                rounded = closure(h.graph, h.graph.leaves[z[t, h.graph.leaves] >= level])
                assert sum(r[n] for n in rounded) <= exact[t] + small


def value_of(r, z):
    return sum(r[n] * z[n] for n in range(len(r)))


def test_a_fractional_answer_and_the_whole_one():
    z, value, bound = solve(COVER.graph, COSTLY)
    assert z[0].tolist() == pytest.approx([1, 1, 1, 1, 0.5, 0.5, 0.5])
    assert value[0] == bound[0] == pytest.approx(3.5)
    z, value, bound = solve(COVER.graph, COSTLY, integral=True)
    assert value[0] == 3  # two leaves for all three sets, or one for two: 8 - 6 = 6 - 3
    assert bound[0] == pytest.approx(3)


def test_both_sums_are_needed():
    """Without Σ_leaves z ≥ 1 half a leaf would do here; without Σ_roots z ≥ 1, half a root below."""
    h = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "x"), ("b", "x")])
    assert solve(h.graph, np.array([[0.0, -1.0, -1.0, -10.0]]))[1] == pytest.approx([-12.0])
    h = Hierarchy.from_edges([("r", "x"), ("r", "y")])
    assert solve(h.graph, np.array([[-10.0, -1.0, -1.0]]))[1] == pytest.approx([-11.0])


@pytest.mark.parametrize("options", [{}, {"integral": True}])
@pytest.mark.parametrize(("seed", "kind"), [(0, "noise"), (1, "cover"), (2, "planted")])
def test_an_answer_depends_on_its_own_rewards_only(seed, kind, options):
    h = random_hierarchy(120, seed, extra=0.8)
    rewards = random_rewards(h.graph, kind, seed, n=6)
    together = solve(h.graph, rewards, **options)
    backwards = solve(h.graph, rewards[::-1].copy(), **options)
    oracle = LinearProgram(h.graph, **options)
    for _ in range(2):
        alone = [answer(oracle, rewards[t : t + 1]) for t in range(6)]
        for k in range(3):
            np.testing.assert_array_equal(together[k], backwards[k][::-1])
            np.testing.assert_array_equal(together[k], np.concatenate([a[k] for a in alone]))


def test_the_integer_program_runs_only_where_it_must(monkeypatch):
    def refuse(self):
        raise AssertionError("called")

    monkeypatch.setattr(LinearProgram, "_solve_integral", refuse)
    h = random_hierarchy(60, 3)
    solve(h.graph, random_rewards(h.graph, "noise", 0), integral=True)
    solve(COVER.graph, COSTLY)
    with pytest.raises(AssertionError, match="called"):
        solve(COVER.graph, COSTLY, integral=True)


@pytest.mark.parametrize("factor", [2.0**-60, 2.0**60])
@pytest.mark.parametrize("integral", [False, True])
def test_the_scale_of_rewards_does_not_matter(factor, integral):
    h = random_hierarchy(50, 5, extra=1.0)
    rewards = random_rewards(h.graph, "cover", 1)
    z, value, bound = solve(h.graph, rewards, integral=integral)
    again = solve(h.graph, factor * rewards, integral=integral)
    np.testing.assert_array_equal(again[0], z)
    np.testing.assert_array_equal(again[1], factor * value)
    np.testing.assert_array_equal(again[2], factor * bound)


@pytest.mark.parametrize(("option", "kind"), [("simplex_iteration_limit", "linear"), ("mip_max_nodes", "integer")])
def test_no_optimum_is_an_error_and_leaves_the_model_whole(option, kind):
    h = random_hierarchy(150, 5, extra=1.5)
    rewards = random_rewards(h.graph, "cover", 1, n=8)
    oracle = LinearProgram(h.graph, integral=True)
    expected = answer(oracle, rewards)
    _, before = oracle._model.getOptionValue(option)
    oracle._model.setOptionValue(option, 0)
    with pytest.raises(NotSolvedError, match=f"the {kind} program of 150 nodes was not solved: HiGHS says '.* limit"):
        answer(oracle, rewards)
    oracle._model.setOptionValue(option, before)
    for a, b in zip(answer(oracle, rewards), expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(bad):
    rewards = np.zeros((2, COVER.n_nodes))
    rewards[1, 3] = bad
    with pytest.raises(DataError, match="sample 1: the rewards must be finite"):
        solve(COVER.graph, rewards)


@pytest.mark.parametrize("name", ["one node", "isolated roots", "chain", "diamond"])
@pytest.mark.parametrize("allow_empty", [False, True])
def test_extremes(name, allow_empty):
    graph = SPECIAL[name].graph
    rewards = random_rewards(graph, "negative", 0)
    z, value, _ = solve(graph, rewards, allow_empty=allow_empty, integral=True)
    if allow_empty:
        assert not z.any()
        assert not value.any()
    else:  # one leaf, the least bad
        assert value.tolist() == pytest.approx((rewards @ graph.leaf_matrix().T.toarray()).max(axis=1).tolist())
