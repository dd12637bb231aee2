"""What is particular to one loss, and the geometry they share."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import LabelError, OptionError
from nhsvm.losses import LOSSES, Hamming, LeafHamming, Normalized, ZeroOne, make_loss
from reference.losses import label_sets
from strategies import SPECIAL, hierarchies, trees

seeds = st.integers(0, 2**32)
randomly = settings(max_examples=60, deadline=None)
PETS = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])


@randomly
@given(trees())
def test_hamming_on_a_tree_is_path_length(h):
    """Through one node above all roots, if there are several."""
    graph = nx.Graph(h.edges())
    graph.add_edges_from(("above", root) for root in h.roots)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    expected = [[lengths[a][b] for b in h.leaves] for a in h.leaves]
    np.testing.assert_array_equal(Hamming(h).to_leaves(np.arange(h.n_leaves)), expected)


@randomly
@given(hierarchies(), seeds)
def test_normalized_is_the_distance_of_normalised_class_attributes(h, seed):
    """Eq. 9 from Eq. 5, single labels and label sets."""
    rng = np.random.default_rng(seed)
    alpha = rng.dirichlet(np.ones(h.n_nodes))
    loss = Normalized(h, alpha)
    attributes = h.graph.leaf_matrix().toarray() * np.sqrt(alpha)
    expected = np.linalg.norm(attributes[:, None] - attributes, axis=2)
    np.testing.assert_allclose(loss.to_leaves(np.arange(h.n_leaves)), expected, rtol=1e-9)
    several = [rng.random(h.n_leaves) < 0.5 for _ in range(2)]
    y, z = (attributes[s].max(axis=0, initial=0) for s in several)
    found = loss.between(*(h.graph.leaf_ancestors.rows(np.flatnonzero(s)).indices for s in several))
    assert found == pytest.approx(np.linalg.norm(y - z), rel=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@randomly
@given(h=hierarchies(8), seed=seeds)
def test_triangle_inequality(name, h, seed):
    rng = np.random.default_rng(seed)
    loss = make_loss(name, h, rng.dirichlet(np.ones(h.n_nodes)))
    sets = [sorted(y) for y in label_sets(h.graph)]
    x, y, z = (sets[i] for i in rng.integers(len(sets), size=3))
    assert loss.between(x, z) <= loss.between(x, y) + loss.between(y, z) + 1e-12


@randomly
@given(hierarchies(), seeds)
def test_normalized_leaves_no_noise_where_weights_vanish(h, seed):
    """With α = 0 at two leaves below the same parents, their distance is zero and not the root of a rounding error."""
    rng = np.random.default_rng(seed)
    alpha = np.where(h.graph.is_leaf, 0.0, rng.random(h.n_nodes))
    found = Normalized(h, alpha).to_leaves(np.arange(h.n_leaves))
    closures = h.graph.leaf_matrix().toarray()[:, ~h.graph.is_leaf]
    alike = (closures[:, None] == closures).all(axis=2)
    np.testing.assert_array_equal(found == 0, alike)


@randomly
@given(hierarchies(), seeds, st.integers(-300, 300))
def test_normalized_scales_with_the_root_of_alpha(h, seed, exponent):
    alpha = np.random.default_rng(seed).random(h.n_nodes)
    positions = np.arange(h.n_leaves)
    found = Normalized(h, alpha * 4.0**exponent).to_leaves(positions)
    np.testing.assert_array_equal(found, Normalized(h, alpha).to_leaves(positions) * 2.0**exponent)


def test_normalized_keeps_tiny_weights_apart_from_zero():
    loss = Normalized(PETS, [1.0, 1.0, 1e-40, 0.0, 1.0])
    assert 0 < loss.distance("dog", "cat") < 1e-7
    assert Normalized(PETS, [1.0, 1.0, 0.0, 0.0, 1.0]).distance("dog", "cat") == 0
    assert Normalized(PETS, np.zeros(5)).distance("dog", "oak") == 0


@randomly
@given(hierarchies())
def test_leaf_hamming_of_single_labels_is_twice_zero_one(h):
    positions = np.arange(h.n_leaves)
    np.testing.assert_array_equal(LeafHamming(h).to_leaves(positions), 2 * ZeroOne(h).to_leaves(positions))


def test_leaf_hamming_counts_both_sides():
    loss = LeafHamming(PETS)
    assert loss.distance({"dog"}, {"dog", "cat"}) == loss.distance({"dog", "cat"}, {"dog"}) == 1


def test_zero_one_per_node_is_sparse():
    h = SPECIAL["diamond"]
    true = h.graph.leaf_ancestors.row(1)
    rewards, constant = ZeroOne(h).per_node(true, multilabel=False)
    assert constant == 1
    assert list(np.flatnonzero(rewards)) == [h.graph.leaves[1]]


def test_virtual_leaves_are_nodes():
    h = PETS.with_virtual_leaves(["animal"])
    assert Hamming(h).distance("animal", "dog") == 2
    assert LeafHamming(h).distance({"animal", "dog"}, {"dog"}) == 1
    assert ZeroOne(h).distance({"animal", "dog"}, {"dog"}) == 1
    alpha = np.where(h.is_virtual, 0.25, 1.0)
    assert Normalized(h, alpha).distance({"animal", "dog"}, "dog") == 0.5


@pytest.mark.parametrize("cls", [ZeroOne, Normalized])
def test_per_node_of_a_single_label_wants_one_leaf(cls):
    loss = cls(PETS, np.ones(5))
    with pytest.raises(LabelError, match=r"one leaf.*has 2"):
        loss.per_node(np.arange(4), multilabel=False)
    with pytest.raises(LabelError, match=r"one leaf.*has 0"):
        loss.per_node([0], multilabel=False)


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (None, "give node_weights"),
        (np.ones(4), r"one entry a node, 5, not shape \(4,\)"),
        (np.ones((5, 1)), "one entry a node"),
        ([1, 1, -1, 1, 1], "'dog' has -1"),
        ([1, np.nan, 1, 1, 1], "'plant' has nan"),
        ([1, 1, 1, 1, np.inf], "'oak' has inf"),
        (["a"] * 5, "must be numbers"),
    ],
)
def test_bad_weights(alpha, message):
    with pytest.raises(OptionError, match=message):
        make_loss("normalized", PETS, alpha)


def test_make_loss():
    loss = make_loss(Hamming, PETS)
    assert type(loss) is type(make_loss("hamming", PETS)) is Hamming
    assert make_loss(loss, PETS) is loss
    again = Hierarchy.from_edges(PETS.edges())
    assert make_loss(loss, again) is loss
    renumbered = Hierarchy.from_edges([*PETS.edges()][::-1])
    assert renumbered == PETS
    for other in (renumbered, SPECIAL["diamond"]):
        with pytest.raises(OptionError, match="was made for"):
            make_loss(loss, other)
    for bad in ("hammimg", None, 3, dict):
        with pytest.raises(OptionError, match="must be one of"):
            make_loss(bad, PETS)
