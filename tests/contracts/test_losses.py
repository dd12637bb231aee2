"""What every loss must do; a new one is covered as soon as it is in LOSSES."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import LabelError, OptionError
from nhsvm.losses import LOSSES, Loss, difference, make_loss
from reference.losses import TWINS, closure, label_sets
from strategies import SPECIAL, hierarchies

# now and then inner nodes are labels too
labelled = st.builds(lambda h, first: h.with_virtual_leaves(h.nodes[first::3]), hierarchies(16), st.integers(0, 20))
# small enough for all label sets: at most 2^7 - 1
small = st.one_of(hierarchies(8), st.builds(lambda h: h.with_virtual_leaves(h.nodes), hierarchies(6)))
seeds = st.integers(0, 2**32)
randomly = settings(max_examples=40, deadline=None)

every_loss = pytest.mark.parametrize("name", LOSSES)


def weights(h: Hierarchy, seed: int, *, zeros: bool = False) -> np.ndarray:
    """Dirichlet-like weights over many orders of magnitude."""
    rng = np.random.default_rng(seed)
    alpha = rng.dirichlet(np.full(h.n_nodes, 0.3)) + 1e-12
    return np.where(rng.random(h.n_nodes) < 0.4, 0.0, alpha) if zeros else alpha


def close(a: object, b: object) -> None:
    # compared as squares: that is where the promise of rounding is (a square root turns 1e-16 into 1e-8)
    np.testing.assert_allclose(np.square(a), np.square(b), rtol=1e-12, atol=1e-14)


def nodes_of(y: set[int]) -> np.ndarray:
    return np.array(sorted(y), dtype=np.int32)


def test_the_class_says_the_name_it_is_registered_by():
    assert {name: cls.name for name, cls in LOSSES.items()} == {name: name for name in LOSSES}


def test_every_loss_has_a_twin():
    assert set(TWINS) == set(LOSSES)


@every_loss
@randomly
@given(h=labelled, seed=seeds, zeros=st.booleans())
def test_all_leaves_at_once_equals_twin(name, h, seed, zeros):
    alpha = weights(h, seed, zeros=zeros)
    found = make_loss(name, h, alpha).to_leaves(np.arange(h.n_leaves))
    labels = [closure(h.graph, [leaf]) for leaf in h.graph.leaves]
    close(found, [[TWINS[name](h.graph, alpha, y, z) for z in labels] for y in labels])
    assert not found.diagonal().any()
    assert (found >= 0).all()
    np.testing.assert_array_equal(found, found.T)


@every_loss
@pytest.mark.parametrize("most", [0.0, 0.25, 1e9])  # of leaves that share something, for rows to be shared
@randomly
@given(h=labelled, seed=seeds, zeros=st.booleans())
def test_shared_rows_say_the_very_same(name, most, h, seed, zeros):
    loss = make_loss(name, h, weights(h, seed, zeros=zeros))
    leaves = np.random.default_rng(seed).integers(h.n_leaves, size=2 * h.n_leaves)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(difference, "LIMITS", difference.Limits(sharing=most))
        rows, which, indptr, other, values = loss.by_rows(leaves)
    table = rows[which]
    table[np.repeat(np.arange(len(leaves)), np.diff(indptr)), other] = values
    np.testing.assert_array_equal(table, loss.to_leaves(leaves))


def test_leaves_of_the_same_total_share_a_row():
    h = Hierarchy.from_edges([(f"top{k // 3}", f"leaf{k}") for k in range(30)])
    for name in ("normalized", "hamming", "zero_one"):
        found = make_loss(name, h, np.full(h.n_nodes, 0.5)).by_rows(np.arange(30))
        assert len(found.rows) == 1
        assert len(found.leaves) == (30 if name == "zero_one" else 90)  # itself, or the three below one node


@every_loss
@randomly
@given(h=labelled, seed=seeds, zeros=st.booleans(), data=st.data())
def test_between_equals_twin_and_distance(name, h, seed, zeros, data):
    alpha = weights(h, seed, zeros=zeros)
    loss = make_loss(name, h, alpha)
    leaf_sets = st.sets(st.integers(0, h.n_leaves - 1), min_size=1)
    a, b = data.draw(leaf_sets), data.draw(leaf_sets)
    y, z = (closure(h.graph, h.graph.leaves[sorted(s)]) for s in (a, b))
    found = loss.between(nodes_of(y), nodes_of(z))
    close(found, TWINS[name](h.graph, alpha, y, z))
    assert isinstance(found, float)
    assert found == loss.between(nodes_of(z)[::-1], nodes_of(y)[::-1])
    assert found == loss.distance({h.leaves[i] for i in a}, [h.leaves[i] for i in b])


@every_loss
@randomly
@given(h=labelled, seed=seeds)
def test_single_labels_are_the_same_in_every_form(name, h, seed):
    """Bit for bit: sums on the way do not depend on their order."""
    loss = make_loss(name, h, weights(h, seed))
    i, j = np.random.default_rng(seed).integers(h.n_leaves, size=2)
    y, z = (h.graph.leaf_ancestors.row(k) for k in (i, j))
    found = loss.to_leaves([j])[0, i]
    assert found == loss.between(y, z) == loss.distance(h.leaves[i], h.leaves[j])


@every_loss
@randomly
@given(h=small, seed=seeds)
def test_zero_for_equal_labels_only(name, h, seed):
    loss = make_loss(name, h, weights(h, seed))
    sets = [nodes_of(y) for y in label_sets(h.graph)]
    z = sets[seed % len(sets)]
    for y in sets:
        assert (loss.between(y, z) == 0) == (set(y) == set(z))


@every_loss
@pytest.mark.parametrize("multilabel", [False, True])
@randomly
@given(h=small, seed=seeds, zeros=st.booleans())
def test_per_node_equals_pairwise_on_the_whole_label_space(name, multilabel, h, seed, zeros):
    alpha = weights(h, seed, zeros=zeros)
    loss = make_loss(name, h, alpha)
    space = label_sets(h.graph)[: None if multilabel else h.n_leaves]
    true = space[seed % len(space)]
    if not loss.decomposes(multilabel):
        with pytest.raises(OptionError, match=f"'{name}' is no sum.*use loss='leaf_hamming'"):
            loss.per_node(nodes_of(true), multilabel=multilabel)
        return
    rewards, constant = loss.per_node(nodes_of(true), multilabel=multilabel)
    assert rewards.shape == (h.n_nodes,)
    close([constant + sum(rewards[n] for n in y) for y in space], [TWINS[name](h.graph, alpha, y, true) for y in space])


@every_loss
def test_every_loss_decomposes_over_single_labels(name):
    assert LOSSES[name].decomposes(multilabel=False)


@every_loss
@pytest.mark.parametrize("h", SPECIAL.values(), ids=SPECIAL.keys())
def test_extremes(name, h):
    alpha = weights(h, 0)
    loss = make_loss(name, h, alpha)
    positions = np.unique([0, h.n_leaves // 2, h.n_leaves - 1])
    found = loss.to_leaves(positions)
    assert found.shape == (len(positions), h.n_leaves)
    labels = {i: closure(h.graph, [h.graph.leaves[i]]) for i in {0, h.n_leaves // 3, *positions}}
    for row, position in zip(found, positions, strict=True):
        close([row[i] for i in labels], [TWINS[name](h.graph, alpha, y, labels[position]) for y in labels.values()])


@every_loss
@randomly
@given(h=hierarchies(), seed=seeds)
def test_rows_do_not_depend_on_the_batch(name, h, seed):
    rng = np.random.default_rng(seed)
    loss = make_loss(name, h, weights(h, seed))
    positions = rng.integers(h.n_leaves, size=40)
    out = rng.random((40, h.n_leaves))
    assert loss.to_leaves(positions, out=out) is out
    np.testing.assert_array_equal(out, loss.to_leaves(np.arange(h.n_leaves))[positions])
    single = loss.to_leaves(positions, out=np.empty((40, h.n_leaves), dtype=np.float32))
    np.testing.assert_allclose(single, out, rtol=1e-6)


@every_loss
@pytest.mark.parametrize("kind", ["star", "diamond"])
def test_many_batches(name, kind, monkeypatch):
    monkeypatch.setattr(difference, "LIMITS", difference.Limits(workspace=1))
    h = SPECIAL[kind]
    loss = make_loss(name, h, weights(h, 1))
    positions = np.arange(35) % h.n_leaves
    np.testing.assert_array_equal(loss.to_leaves(positions), [loss.to_leaves([p])[0] for p in positions])
    assert loss.to_leaves([]).shape == (0, h.n_leaves)


@every_loss
def test_depends_on_weights_only_if_it_says_so(name):
    h = SPECIAL["diamond"]
    if LOSSES[name].needs_weights:
        with pytest.raises(OptionError, match=f"{name}.*node_weights"):
            make_loss(name, h)
    else:
        found = make_loss(name, h, weights(h, 0)).to_leaves([0, 1])
        np.testing.assert_array_equal(found, make_loss(name, h).to_leaves([0, 1]))


@every_loss
def test_does_not_touch_or_share_its_input(name):
    h = SPECIAL["diamond"]
    alpha = weights(h, 0)
    before = alpha.copy()
    loss = make_loss(name, h, alpha)
    found = loss.to_leaves([0, 1])
    np.testing.assert_array_equal(alpha, before)
    alpha[:] = 7
    np.testing.assert_array_equal(found, loss.to_leaves([0, 1]))


@every_loss
@pytest.mark.parametrize("again", [copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))])
def test_copies(name, again):
    h = SPECIAL["diamond"]
    loss: Loss = make_loss(name, h, weights(h, 0))
    expected = loss.to_leaves([0, 1])
    np.testing.assert_array_equal(again(loss).to_leaves([0, 1]), expected)
    assert type(loss).__name__ in repr(loss)


@every_loss
def test_bad_numbers(name):
    h = SPECIAL["diamond"]
    loss = make_loss(name, h, weights(h, 0))
    for bad in ([h.n_leaves], [-1], [0.5], [[0]]):
        with pytest.raises(LabelError, match="leaf position"):
            loss.to_leaves(bad)
    for bad in ([h.n_nodes], [-1], [0.5], [[0]]):
        with pytest.raises(LabelError, match="node number"):
            loss.between(bad, [0])
        with pytest.raises(LabelError, match="node number"):
            loss.per_node(bad, multilabel=False)
    for out in (np.empty((1, h.n_leaves + 1)), np.empty((1, h.n_leaves), dtype=int)):
        with pytest.raises(OptionError, match="out must be"):
            loss.to_leaves([0], out=out)


@every_loss
def test_labels_must_be_classes(name):
    h = SPECIAL["diamond"]
    loss = make_loss(name, h, weights(h, 0))
    with pytest.raises(LabelError, match=r"'a' is an inner node.*with_virtual_leaves"):
        loss.distance("a", "x")
    with pytest.raises(ValueError, match="not in the hierarchy: 'q'"):
        loss.distance("x", {"q"})
    with pytest.raises(LabelError, match="no label"):
        loss.distance("x", set())
