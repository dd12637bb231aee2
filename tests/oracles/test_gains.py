"""What a label adds to a label set, against the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm.errors import OptionError
from nhsvm.oracles._gains import label_gains
from nhsvm.oracles.brute_force import BruteForce
from reference.gains import closure, gain
from reference.multilabel import answer, random_rewards
from strategies import SPECIAL, hierarchies

seeds = st.integers(0, 2**32)


@given(hierarchies(30), seeds)
def test_equals_twin(h, seed):
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
def test_signs_of_the_best_sets(h, seed, allow_empty):
    if h.n_leaves > 8:
        return
    scores = random_rewards(h.graph, "noise", seed)
    chosen, _, _ = answer(BruteForce(h.graph, allow_empty=allow_empty), scores)
    found = label_gains(h.graph, scores, chosen)
    inside = chosen[:, h.graph.leaves].astype(bool)
    assert (found[~inside] <= 0).all()
    forced = ~np.full_like(inside, allow_empty) & (inside.sum(axis=1, keepdims=True) == 1)
    assert (found[inside & ~forced] >= 0).all()


def test_a_large_star():
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
def test_arrays_that_a_kernel_could_not_trust(name, wrong):
    h = SPECIAL["diamond"]
    arrays = {"scores": np.zeros((2, 6)), "chosen": np.zeros((2, 6), np.uint8), "which": np.array([0])}
    with pytest.raises(OptionError, match=f"{name} must be"):
        label_gains(h.graph, **(arrays | {name: wrong}))
