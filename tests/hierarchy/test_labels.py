"""Label spaces: membership against full enumeration, encoding, and what is no label."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import LabelError, UnknownLabelError
from nhsvm.hierarchy import LabelSpace, VirtualLeaf
from reference import hierarchy as naive
from strategies import SPECIAL, hierarchies

few = settings(max_examples=40, deadline=None)
PETS = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])


def arrays_as_edges(h: Hierarchy) -> list[tuple]:
    """All edges, those of virtual leaves too."""
    return [(h.nodes[p], h.nodes[c]) for p, c in zip(*h.graph.edges(), strict=True)]


@few
@given(hierarchies(6), st.booleans(), st.data())
def test_membership_is_that_of_the_enumerated_space(h, multilabel, data):
    inner = data.draw(st.sets(st.sampled_from(h.nodes), max_size=2))
    v = h.with_virtual_leaves(inner)
    space = LabelSpace(v, multilabel=multilabel)
    full = naive.label_space(v.nodes, arrays_as_edges(v), multilabel)
    want = {frozenset(n for n in label if not isinstance(n, VirtualLeaf)) for label in full}
    subsets = chain.from_iterable(combinations(h.nodes, k) for k in range(h.n_nodes + 1))
    assert {s for s in map(frozenset, subsets) if s in space} == want


@few
@given(hierarchies(), st.data())
def test_closures_are_those_of_the_naive_twin(h, data):
    labels = st.sampled_from(h.nodes)
    y = data.draw(st.lists(st.sets(labels, min_size=1, max_size=4), min_size=1, max_size=6))
    space = LabelSpace.for_labels(h, y)
    assert space.multilabel
    closures = space.closures(y)
    for i, some in enumerate(y):
        found = [space.hierarchy.nodes[n] for n in closures.row(i)]
        assert list(closures.row(i)) == sorted(closures.row(i))
        own = {VirtualLeaf(n) for n in some if not h.is_leaf(n)}
        assert set(found) == naive.closure(arrays_as_edges(space.hierarchy), own | some)
    single = LabelSpace.for_labels(h, [min(some) for some in y])
    rows = single.closures(min(some) for some in y)
    for i, some in enumerate(y):
        seen = {single.hierarchy.nodes[n] for n in rows.row(i)}
        assert {n for n in seen if not isinstance(n, VirtualLeaf)} == h.closure(min(some))


@few
@given(hierarchies(), st.data())
def test_decode_undoes_encode(h, data):
    labels = st.sampled_from(h.nodes)
    y = data.draw(st.lists(labels, max_size=6))
    space = LabelSpace.for_labels(h, y)
    assert not space.multilabel
    codes = space.encode(y)
    assert codes.dtype == np.int32
    assert space.decode(codes) == y
    assert [space.classes[i] for i in codes] == y

    sets = data.draw(st.lists(st.sets(labels, min_size=1), min_size=1, max_size=6))
    space = LabelSpace.for_labels(h, sets)
    matrix = space.encode(sets)
    assert matrix.shape == (len(sets), space.hierarchy.n_leaves)
    want = [tuple(c for c in space.classes if c in some) for some in sets]
    assert space.decode(matrix) == want
    assert space.decode(matrix.toarray()) == want
    assert [set(some) for some in want] == sets


def test_decode_ignores_stored_zeros_and_order():
    space = LabelSpace(PETS, multilabel=True)
    codes = sp.csr_array((np.array([1, 0, 1]), np.array([2, 1, 0]), np.array([0, 3])), shape=(1, 3))
    assert space.decode(codes) == [("dog", "oak")]
    assert codes.indices.tolist() == [2, 1, 0]  # the caller's matrix is left alone


def test_no_samples():
    single = LabelSpace.for_labels(PETS, [])
    assert not single.multilabel
    assert single.hierarchy is PETS
    assert single.encode([]).shape == (0,)
    several = LabelSpace(PETS, multilabel=True)
    assert several.encode([]).shape == (0, 3)
    assert several.decode(several.encode([])) == []
    assert several.closures([]).indptr.tolist() == [0]


@pytest.mark.parametrize("kind", [set, frozenset, list, tuple, np.array])
def test_kinds_of_label_sets(kind):
    y = [kind(["dog", "oak"]), kind(["cat"])]
    space = LabelSpace.for_labels(PETS, y)
    assert space.multilabel
    assert space.decode(space.encode(y)) == [("dog", "oak"), ("cat",)]


def test_a_repeated_label_counts_once():
    space = LabelSpace(PETS, multilabel=True)
    assert space.encode([["dog", "dog"]]).toarray().tolist() == [[1, 0, 0]]


def test_tuples_that_are_labels_are_labels():
    h = Hierarchy.from_paths([("books", "other"), ("toys", "other")], qualified=True)
    y = [("toys", "other"), ("books", "other")]
    assert not LabelSpace.for_labels(h, y).multilabel
    assert LabelSpace.for_labels(h, [y, [y[0]]]).multilabel


def test_inner_labels_become_classes():
    space = LabelSpace.for_labels(PETS, ["animal", "dog"])
    assert set(space.classes) == {"animal", "dog", "cat", "oak"}
    assert space.decode(space.encode(["animal", "dog"])) == ["animal", "dog"]
    assert {"animal"} in space
    assert {"plant"} not in space


@pytest.mark.parametrize(
    ("nodes", "multilabel", "why"),
    [
        ([], True, "the set is empty"),
        (["dog"], True, "'dog' is in the set, but its parent 'animal' is not"),
        (["animal", "dog", "plant"], True, "'plant' is in the set, but none of its children is"),
        (
            ["animal", "dog", "cat"],
            False,
            "it has 2 leaves, such as 'dog' and 'cat'; a single label has one",
        ),
        (["animal", "dog", "cat"], True, None),
        (["animal", "dog"], False, None),
    ],
)
def test_why_not(nodes, multilabel, why):
    space = LabelSpace(PETS, multilabel=multilabel)
    assert space.why_not(nodes) == why
    assert (set(nodes) in space) == (why is None)


def test_why_not_needs_every_parent_in_a_dag():
    space = LabelSpace(SPECIAL["diamond"])
    assert space.why_not({"r", "a", "b", "x"}) is None
    assert space.why_not({"r", "a", "x"}) == "'x' is in the set, but its parent 'b' is not"


def test_names_of_inner_classes_in_why_not():
    space = LabelSpace(PETS.with_virtual_leaves(["animal", "plant"]))
    assert space.why_not(["animal", "plant"]) == (
        "it has 2 leaves, such as 'animal' and 'plant'; a single label has one"
    )


def test_unknown_labels():
    with pytest.raises(UnknownLabelError, match=r"'dgo' \(did you mean 'dog'\?\); 'tulip'"):
        LabelSpace.for_labels(PETS, ["dgo", "dog", "tulip"])
    with pytest.raises(UnknownLabelError) as caught:
        LabelSpace.for_labels(PETS, [{"dog"}, {"cat", None}])
    assert caught.value.labels == (None,)
    with pytest.raises(UnknownLabelError, match="'dgo'"):
        LabelSpace(PETS).encode(["dog", "dgo"])
    with pytest.raises(UnknownLabelError, match="'dgo'"):
        LabelSpace(PETS, multilabel=True).closures([{"dog", "dgo"}])
    with pytest.raises(UnknownLabelError, match="'dgo'"):
        LabelSpace(PETS).why_not({"dgo"})


def test_one_label_among_sets_is_refused():
    message = r"sample 1 has one label, 'cat', but sample 0 a set of labels, \['dog'\]"
    with pytest.raises(LabelError, match=message):
        LabelSpace.for_labels(PETS, [["dog"], "cat"])
    with pytest.raises(LabelError, match=r"sample 1: expected a set of labels, not 'cat'"):
        LabelSpace(PETS, multilabel=True).encode([["dog"], "cat"])


def test_a_sample_without_labels_is_refused():
    with pytest.raises(LabelError, match="sample 1 has no label"):
        LabelSpace(PETS, multilabel=True).encode([["dog"], []])


@pytest.mark.parametrize("y", [["dog", {"a": 1}], [["dog"], [["cat"]]]])
def test_unhashable_labels_are_refused(y):
    with pytest.raises(LabelError, match=r"sample 1: a label must be hashable"):
        LabelSpace.for_labels(PETS, y)
    with pytest.raises(LabelError, match=r"a label must be hashable, but .* is a (list|dict)"):
        LabelSpace(PETS, multilabel=isinstance(y[0], list)).encode(y)


def test_an_inner_node_is_no_class_by_itself():
    with pytest.raises(LabelError, match=r"'animal' is an inner node, .* with_virtual_leaves\(\['animal'\]\)"):
        LabelSpace(PETS).encode(["animal"])
