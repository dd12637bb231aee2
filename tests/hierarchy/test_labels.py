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


@pytest.mark.parametrize(
    "code", [-1, 3, 7, np.int64(-1), 1.0, np.float64(0), "dog", None, True, np.True_, [0]], ids=repr
)
def test_what_is_no_leaf_position(code):
    with pytest.raises(LabelError) as caught:
        LabelSpace(PETS).decode([0, 2, code])
    assert str(caught.value) == f"sample 2: expected a leaf position, a whole number from 0 to 2, not {code!r}"


def test_decode_takes_any_whole_numbers():
    want = ["oak", "dog"]
    for codes in ([2, 0], (2, 0), iter([2, 0]), np.array([2, 0], dtype=np.uint8), np.array([2, 0])):
        assert LabelSpace(PETS).decode(codes) == want
    for other, shown in ((2, "2"), ("20", "the string '20'"), (np.array(2), r"array\(2\)")):
        with pytest.raises(LabelError, match=f"expected a collection of leaf positions, not {shown}"):
            LabelSpace(PETS).decode(other)


@pytest.mark.parametrize("kind", [np.array, sp.csr_array, sp.coo_matrix])
@pytest.mark.parametrize("dtype", [bool, np.int8, float])
def test_decode_takes_any_zeros_and_ones(kind, dtype):
    codes = kind(np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], dtype=dtype))
    assert LabelSpace(PETS, multilabel=True).decode(codes) == [("dog", "oak"), (), ("cat",)]


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[1, 0]], "expected a 0/1 matrix with 3 columns, one a leaf, not shape (1, 2)"),
        (sp.csr_array((2, 4)), "expected a 0/1 matrix with 3 columns, one a leaf, not shape (2, 4)"),
        ([1, 0, 1], "expected a 0/1 matrix with 3 columns, one a leaf, not shape (3,)"),
        ((2, 3), "expected a 0/1 matrix with 3 columns, one a leaf, not shape (2,)"),  # scipy's way to say a shape
        (None, "expected a 0/1 matrix with 3 columns, one a leaf, not shape ()"),
        ([[1, 0, 1], [1]], "expected a 0/1 matrix with 3 columns, one a leaf, not rows of different lengths"),
        ([["dog", "cat", "oak"]], "expected a 0/1 matrix with 3 columns, one a leaf, not values of type <U3"),
        ([[1, 0, 1], [0, 0, 0], [0, 2, 0]], "sample 2: expected 0 or 1 for 'cat', not 2"),
        ([[1, 0, 1], [0, 0, -1]], "sample 1: expected 0 or 1 for 'oak', not -1"),
        ([[0.5, 0, 1]], "sample 0: expected 0 or 1 for 'dog', not 0.5"),
        ([[0, np.nan, 1]], "sample 0: expected 0 or 1 for 'cat', not nan"),
    ],
)
def test_what_is_no_matrix_of_zeros_and_ones(codes, message):
    with pytest.raises(LabelError) as caught:
        LabelSpace(PETS, multilabel=True).decode(codes)
    assert str(caught.value) == message


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


def test_ancestors_written_out_become_classes():
    space = LabelSpace.for_labels(PETS, [{"animal", "dog"}, {"cat"}])
    assert set(space.classes) == {"animal", "dog", "cat", "oak"}
    assert LabelSpace.for_labels(PETS, [{"dog"}, {"cat"}]).classes == PETS.leaves


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
    with pytest.raises(UnknownLabelError, match=r"sample 0: .*'dgo'"):
        LabelSpace(PETS, multilabel=True).closures([{"dog", "dgo"}])
    with pytest.raises(UnknownLabelError, match="'dgo'"):
        LabelSpace(PETS).why_not({"dgo"})


def test_errors_of_encode_name_the_sample():
    with pytest.raises(UnknownLabelError) as caught:
        LabelSpace(PETS).encode(["dog", "cat", "oak", "dgo"])
    assert str(caught.value) == "sample 3: not in the hierarchy: 'dgo' (did you mean 'dog'?)"
    assert caught.value.labels == ("dgo",)
    with pytest.raises(LabelError, match=r"^sample 1: 'animal' is an inner node"):
        LabelSpace(PETS).encode(["dog", "animal"])
    with pytest.raises(LabelError, match=r"^sample 1: a label must be hashable, but \['dog'\] is a list"):
        LabelSpace(PETS).encode(["dog", ["dog"]])
    with pytest.raises(LabelError, match=r"^sample 1: 'animal' is an inner node"):
        LabelSpace(PETS, multilabel=True).encode([["dog"], ["cat", "animal"]])


@pytest.mark.parametrize(
    ("value", "shown"),
    [("dog", "the string 'dog'"), (None, "None"), (5, "5"), (np.array("dog"), "array('dog', dtype='<U3')")],
)
def test_what_is_no_collection_of_labels(value, shown):
    space, several = LabelSpace(PETS), LabelSpace(PETS, multilabel=True)
    for ask in (space.why_not, space.__contains__, space.encode, several.encode, several.closures):
        with pytest.raises(LabelError) as caught:
            ask(value)
        assert str(caught.value) == f"expected a collection of labels, not {shown}"
    with pytest.raises(LabelError, match="expected a collection of labels, not"):
        LabelSpace.for_labels(PETS, value)


def test_an_array_without_dimensions_is_no_label_set():
    with pytest.raises(LabelError, match="sample 0: a label must be hashable"):
        LabelSpace.for_labels(PETS, [np.array("dog")])
    with pytest.raises(LabelError, match="sample 0: expected a set of labels"):
        LabelSpace(PETS, multilabel=True).encode([np.array("dog")])


@pytest.mark.parametrize("kind", [np.array, sp.csr_array, sp.coo_matrix])
def test_a_matrix_is_no_list_of_label_sets(kind):
    h = Hierarchy.from_edges([], nodes=[0, 1])  # where 0/1 rows would pass for labels
    y = kind([[0, 1], [1, 1]])
    message = r"labels cannot be a matrix \(.* of shape \(2, 2\)\): give label sets as lists, one a sample"
    for ask in (lambda: LabelSpace.for_labels(h, y), lambda: LabelSpace(h, multilabel=True).encode(y)):
        with pytest.raises(LabelError, match=message):
            ask()
    assert LabelSpace.for_labels(h, list(np.array([[0, 1], [1, 1]]))).multilabel


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
