"""The dynamic programme against its twin, bit for bit where sums are exact, and on what its documentation says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import HierarchyError, OptionError
from nhsvm.oracles.tree import TreeMultilabel
from reference.multilabel import REWARDS, answer, random_rewards, tree_best, violated
from strategies import SPECIAL, random_hierarchy, trees

seeds = st.integers(0, 2**32)
TREES = [name for name, h in SPECIAL.items() if h.is_tree]


@given(trees(40), seeds, st.booleans())
def test_whole_numbers_give_the_twins_very_set(h, seed, allow_empty):
    rewards = random_rewards(h.graph, "ties", seed)
    chosen, value, bound = answer(TreeMultilabel(h.graph, allow_empty=allow_empty), rewards)
    for t, r in enumerate(rewards):
        nodes, expected = tree_best(h.graph, r, allow_empty)
        assert set(np.flatnonzero(chosen[t]).tolist()) == nodes
        assert value[t] == bound[t] == expected == r @ chosen[t]


@pytest.mark.parametrize("kind", REWARDS)
@given(trees(40), seeds, st.booleans())
def test_equals_twin(kind, h, seed, allow_empty):
    rewards = random_rewards(h.graph, kind, seed)
    chosen, value, bound = answer(TreeMultilabel(h.graph, allow_empty=allow_empty), rewards)
    for t, r in enumerate(rewards):
        nodes, expected = tree_best(h.graph, r, allow_empty)
        assert set(np.flatnonzero(chosen[t]).tolist()) == nodes
        assert value[t] == bound[t] == pytest.approx(expected, rel=1e-12, abs=1e-12 * np.abs(r).max())


@pytest.mark.parametrize("h", [*(SPECIAL[name] for name in TREES), random_hierarchy(3000, 1, roots=7)])
@pytest.mark.parametrize("kind", ["noise", "negative", "planted"])
@pytest.mark.parametrize("allow_empty", [False, True])
def test_extremes(h, kind, allow_empty):
    rewards = random_rewards(h.graph, kind, 0, n=2)
    chosen, value, _ = answer(TreeMultilabel(h.graph, allow_empty=allow_empty), rewards)
    for t, r in enumerate(rewards):
        nodes, expected = tree_best(h.graph, r, allow_empty)
        assert set(np.flatnonzero(chosen[t]).tolist()) == nodes
        assert value[t] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert violated(h.graph, chosen[t].astype(float), allow_empty) == 0


def best(h, rewards, **options):
    chosen, value, _ = answer(TreeMultilabel(h.graph, **options), np.array([[rewards[n] for n in h.nodes]], float))
    return {h.nodes[n] for n in np.flatnonzero(chosen[0])}, value[0]


def test_ties():
    h = Hierarchy.from_edges([("a", "x"), ("a", "y"), ("b", "z"), ("b", "w")])
    # what brings nothing is not taken
    assert best(h, {"a": 1, "b": 0, "x": 0, "y": 0, "z": 0, "w": 0}) == ({"a", "x"}, 1)
    assert best(h, {"a": -2, "b": 1, "x": 2, "y": 0, "z": 1, "w": 0}) == ({"b", "z"}, 2)
    # among equals that must be, the first
    assert best(h, dict.fromkeys(h.nodes, 0)) == ({"a", "x"}, 0)
    assert best(h, {"a": -2, "b": -1, "x": 0, "y": -1, "z": -1, "w": -1}) == ({"a", "x"}, -2)
    assert best(h, {"a": -3, "b": -1, "x": 0, "y": 0, "z": -1, "w": -1}) == ({"b", "z"}, -2)
    assert best(h, dict.fromkeys(h.nodes, 0), allow_empty=True) == (set(), 0)
    assert best(h, dict.fromkeys(h.nodes, -1), allow_empty=True) == (set(), 0)


def test_an_inner_node_pays_for_the_leaf_it_needs():
    h = Hierarchy.from_edges([("a", "x"), ("a", "y"), ("b", "z")])
    assert best(h, {"a": 3, "x": -2, "y": -1, "b": 2, "z": -3}) == ({"a", "y"}, 2)


def test_a_dag_is_refused():
    with pytest.raises(HierarchyError, match="several parents; use dag_multilabel"):
        TreeMultilabel(SPECIAL["diamond"].graph)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("rewards", np.zeros((2, 5))),
        ("rewards", np.zeros((2, 4), np.float32)),
        ("rewards", np.zeros((4, 2)).T),
        ("chosen", np.zeros((2, 3), np.uint8)),
        ("chosen", np.zeros((2, 4))),
        ("value", np.zeros(3)),
        ("bound", np.zeros((2, 1))),
    ],
)
def test_arrays_that_a_kernel_could_not_trust(name, wrong):
    h = Hierarchy.from_edges([("a", "x"), ("a", "y"), ("a", "z")])
    arrays = {
        "rewards": np.zeros((2, 4)),
        "chosen": np.zeros((2, 4), np.uint8),
        "value": np.zeros(2),
        "bound": np.zeros(2),
    }
    with pytest.raises(OptionError, match=f"{name} must be a C-ordered"):
        TreeMultilabel(h.graph).solve(**(arrays | {name: wrong}))
