"""The minimal graph M(G) by structure and by data, against the definition in Section 5.2."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import HierarchyError, LabelError, UnknownLabelError
from nhsvm.hierarchy import LabelSpace, VirtualLeaf, duplicate_classes
from reference import hierarchy as naive
from strategies import SPECIAL, hierarchies, trees

few = settings(max_examples=50, deadline=None)


def groups(h: Hierarchy, y=None) -> set[frozenset]:
    numbers = duplicate_classes(h, y)
    return {frozenset(h.nodes[i] for i in np.flatnonzero(numbers == k)) for k in range(numbers.max() + 1)}


def columns(h: Hierarchy, y) -> list[bytes]:
    """For every node, in which of the labels it is."""
    closures = LabelSpace.for_labels(h, y).closures(y)
    dense = np.zeros((len(y), h.n_nodes), dtype=bool)
    for i in range(len(y)):
        dense[i, closures.row(i)] = True
    return [column.tobytes() for column in dense.T]


def with_leaves_for(h: Hierarchy, y) -> Hierarchy:
    return LabelSpace.for_labels(h, y).hierarchy


def public(name):
    return name.of if isinstance(name, VirtualLeaf) else name


def assert_is_quotient(m: Hierarchy, h: Hierarchy, classes: set[frozenset]) -> None:
    """``m`` is ``h`` with each class merged to one node, named after one of its members."""
    where = {n: c for c in classes for n in c}
    edges = {(h.nodes[p], h.nodes[c]) for p, c in zip(*h.graph.edges(), strict=True)}
    want, got = nx.DiGraph(), nx.DiGraph()
    want.add_nodes_from((c, {"names": {public(n) for n in c}}) for c in classes)
    seen = [(where[p], where[c]) for p, c in edges if p in where and c in where]
    want.add_edges_from((p, c) for p, c in seen if p != c)
    got.add_nodes_from((n, {"name": public(n)}) for n in m.nodes)
    got.add_edges_from((m.nodes[p], m.nodes[c]) for p, c in zip(*m.graph.edges(), strict=True))
    assert nx.is_isomorphic(got, want, node_match=lambda a, b: a["name"] in b["names"])


# -- by structure ------------------------------------------------------------------------------------------------------


@few
@given(hierarchies())
def test_structural_duplicates_are_those_of_the_definition(h):
    edges = list(h.edges())
    labels = naive.label_space(h.nodes, edges, multilabel=False)
    classes = naive.duplicate_sets(h.nodes, labels)
    assert groups(h) == classes
    m = h.minimal()
    image = {n: next(iter(c & set(m.nodes))) for c in classes for n in c}
    assert set(image.values()) == set(m.nodes)
    assert set(m.leaves) == {image[leaf] for leaf in h.leaves} == set(h.leaves)
    for leaf in h.leaves:
        assert m.closure(leaf) == {image[n] for n in h.closure(leaf)}
    assert_is_quotient(m, h, classes)


@few
@given(hierarchies())
def test_structural_minimal_is_minimal(h):
    m = h.minimal()
    assert m.minimal() == m
    assert groups(m) == {frozenset({n}) for n in m.nodes}


@few
@given(hierarchies(12), st.data())
def test_structure_with_virtual_leaves(h, data):
    v = h.with_virtual_leaves(data.draw(st.sets(st.sampled_from(h.nodes))))
    m = v.minimal()
    assert set(m.leaves) == set(v.leaves)
    assert_is_quotient(m, v, groups(v))
    assert m.minimal() == m
    for label in v.leaves:
        assert label in m  # a class that the user sees is a node that the user can ask for
        assert m.leaves[m.leaf_position(label)] == label


@pytest.mark.parametrize(
    ("name", "nodes"),
    [("chain", (999,)), ("one node", ("only",)), ("isolated roots", ("lonely", "alone", "a", "b", "c"))],
)
def test_special_minimal_graphs(name, nodes):
    assert SPECIAL[name].minimal().nodes == nodes


def test_what_has_no_duplicates_stays():
    assert SPECIAL["diamond"].minimal() == SPECIAL["diamond"]
    assert SPECIAL["star"].minimal() == SPECIAL["star"]


def test_a_tree_with_one_leaf_a_branch():
    h = Hierarchy.from_paths([("r", "s", "a", "a1", "a2"), ("r", "s", "b", "b1")])
    m = h.minimal()
    assert m == Hierarchy.from_edges([("r", "a2"), ("r", "b1")])


def test_duplicates_need_not_be_joined_by_an_edge():
    """Two parents of the same two children are one node."""
    h = Hierarchy.from_edges([("p", "x"), ("p", "y"), ("q", "x"), ("q", "y")])
    assert h.minimal() == Hierarchy.from_edges([("p", "x"), ("p", "y")])


def test_an_inner_class_keeps_the_name_its_virtual_leaf_goes_by():
    v = Hierarchy.from_paths([("r", "a", "b"), ("r", "a", "c")]).with_virtual_leaves(["a"])
    m = v.minimal()
    assert m.nodes == ("a", "b", "c", VirtualLeaf("a"))
    assert m.parents("b") == {"a"}


# -- by data -----------------------------------------------------------------------------------------------------------


@few
@given(hierarchies(14), st.data())
def test_single_labels_leaves_and_inner_nodes(h, data):
    y = data.draw(st.lists(st.sampled_from(h.nodes), min_size=1, max_size=8))
    v = with_leaves_for(h, y)
    m = h.minimal(y)
    distinct = set(columns(v, y)) - {bytes(len(y))}
    found = columns(m, y)  # every label of y is a class of m still, or this raises
    assert len(found) == len(set(found)) == m.n_nodes
    assert set(found) == distinct
    assert with_leaves_for(m, y) is m
    assert set(m.leaves) == set(y)
    assert m.minimal(y) == m
    assert v.minimal(y) == m
    assert h.minimal(iter(y)) == m


@few
@given(hierarchies(10), st.data())
def test_label_sets(h, data):
    labels = st.sets(st.sampled_from(h.nodes), min_size=1, max_size=3)
    y = data.draw(st.lists(labels, min_size=1, max_size=6))
    v = with_leaves_for(h, y)
    edges = [(v.nodes[p], v.nodes[c]) for p, c in zip(*v.graph.edges(), strict=True)]
    sets = [naive.closure(edges, [v.nodes[v.graph.leaves[v.leaf_position(n)]] for n in some]) for some in y]
    classes = naive.duplicate_sets(v.nodes, sets)
    assert groups(v, y) == classes
    numbers = duplicate_classes(v, y)
    assert {v.nodes[i] for i in np.flatnonzero(numbers == -1)} == set(v.nodes) - set().union(*sets)
    assert_is_quotient(h.minimal(y), v, classes)


@few
@given(trees())
def test_all_leaves_as_data_is_the_structure(h):
    assert h.minimal(h.leaves) == h.minimal()
    assert h.minimal([{leaf} for leaf in h.leaves]) == h.minimal()


def test_classes_are_numbered_from_the_top():
    h = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "a1"), ("r", "unused")])
    numbers = duplicate_classes(h, ["a1", "b"])
    assert dict(zip(h.nodes, numbers.tolist(), strict=True)) == {"r": 0, "a": 1, "b": 2, "unused": -1, "a1": 1}


def test_unseen_nodes_are_left_out():
    h = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "x"), ("a", "y"), ("b", "z")])
    assert h.minimal(["x", "z"]) == Hierarchy.from_edges([("r", "x"), ("r", "z")])
    assert h.minimal(["x"]).nodes == ("x",)


def test_an_inner_label_alone_melts_into_its_node():
    h = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "x")])
    assert h.minimal(["a", "b"]) == Hierarchy.from_edges([("r", "a"), ("r", "b")])
    assert h.minimal(["a"]).nodes == ("a",)


def test_inner_labels_that_always_come_together():
    """x and z mean something apart from each other above d, but their own labels are one."""
    h = Hierarchy.from_edges([("x", "d"), ("x", "e"), ("z", "d"), ("z", "f")])
    m = h.minimal([{"x", "z"}, {"e"}, {"f"}])
    assert m.leaves == ("e", "x", "f")
    space = LabelSpace(m, multilabel=True)
    assert {"x", "z"} in space
    assert space.why_not({"x"}) == "'x' is in the set, but its parent 'z' is not"
    assert space.why_not({"z"}) == "'x' is in the set, but its parent 'x' is not"
    assert m.subset(["x"]).leaves == ("x",)
    assert set(m.subset(["x"]).roots) == {"x", "z"}


def test_merged_inner_nodes_whose_own_labels_differ():
    """Only one of x, z can name the merged node; the other's label goes on as an ordinary leaf."""
    h = Hierarchy.from_edges([("x", "d"), ("z", "d")])
    m = h.minimal([{"x", "z"}, {"x", "d"}, {"z", "d"}])
    assert m.nodes == ("x", "d", VirtualLeaf("x"), "z")
    assert m.parents("z") == {"x"}
    assert set(m.leaves) == {"d", "x", "z"}


def test_leaves_that_always_come_together_bear_the_first_name():
    h = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("r", "c")])
    assert h.minimal([{"b", "a"}, {"c"}]) == Hierarchy.from_edges([("r", "a"), ("r", "c")])


def test_a_real_leaf_is_preferred_to_a_virtual_one():
    h = Hierarchy.from_edges([("r", "x"), ("x", "e"), ("r", "y"), ("y", "d")])
    assert h.with_virtual_leaves(["x"]).leaves == ("e", "x", "d")  # the virtual one comes first
    m = h.minimal([{"x", "d"}, {"e"}])
    assert m == Hierarchy.from_edges([("x", "d"), ("x", "e")])


def test_errors():
    h = Hierarchy.from_edges([("r", "a"), ("r", "b")])
    with pytest.raises(LabelError, match=r"inner nodes among the labels: call with_virtual_leaves\(labels\) first"):
        duplicate_classes(h, ["r"])
    with pytest.raises(UnknownLabelError, match="'q'"):
        h.minimal(["a", "q"])
    with pytest.raises(LabelError, match="sample 1 has no label"):
        h.minimal([{"a"}, set()])
    with pytest.raises(LabelError, match=r"ndarray of shape \(1, 2\).* give label sets as lists, one a sample"):
        h.minimal(np.array([["a", "b"]]))
    with pytest.raises(LabelError, match="give label sets as lists, one a sample"):
        duplicate_classes(h, np.array([["a", "b"]]))
    with pytest.raises(HierarchyError, match="an empty hierarchy"):
        h.minimal([])
