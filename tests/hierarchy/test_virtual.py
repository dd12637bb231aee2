"""Virtual leaves never show; sub-hierarchies keep what they should."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import HierarchyError, LabelError, UnknownLabelError
from nhsvm.hierarchy import VirtualLeaf
from strategies import SPECIAL, hierarchies

few = settings(max_examples=40, deadline=None)


def some_labels(h: Hierarchy, **options) -> st.SearchStrategy[set]:
    return st.sets(st.sampled_from(h.nodes), **options)


def real(names) -> list:
    return [n for n in names if not isinstance(n, VirtualLeaf)]


@few
@given(hierarchies(), st.data())
def test_virtual_leaves_never_show(h, data):
    labels = data.draw(some_labels(h))
    v = h.with_virtual_leaves(labels)
    inner = {n for n in labels if h.children(n)}
    for query in ("parents", "children", "ancestors", "descendants", "closure", "depth", "is_leaf"):
        assert [getattr(v, query)(n) for n in h.nodes] == [getattr(h, query)(n) for n in h.nodes]
    assert list(v.edges()) == list(h.edges())
    assert v.roots == h.roots
    assert nx.utils.graphs_equal(v.to_networkx(), h.to_networkx())
    assert set(v.leaves) == set(h.leaves) | inner
    assert len(v.leaves) == v.n_leaves == h.n_leaves + len(inner)
    assert tuple(real(v.nodes)) == h.nodes
    assert [n.of in inner for n in v.nodes if isinstance(n, VirtualLeaf)] == [True] * len(inner)
    assert [v.nodes[i] for i in v.is_virtual.nonzero()[0]] == [n for n in v.nodes if isinstance(n, VirtualLeaf)]
    assert "VirtualLeaf" not in v.draw()
    assert [v.leaf_position(label) for label in v.leaves] == list(range(v.n_leaves))


@few
@given(hierarchies(), st.data())
def test_adding_virtual_leaves_again_changes_nothing(h, data):
    one, two = data.draw(some_labels(h)), data.draw(some_labels(h))
    v = h.with_virtual_leaves(one)
    assert v.with_virtual_leaves(one) is v
    assert v.with_virtual_leaves(two) == h.with_virtual_leaves(one | two)


def test_no_inner_label_no_change():
    h = SPECIAL["diamond"]
    assert h.with_virtual_leaves(h.leaves) is h
    assert h.with_virtual_leaves([]) is h
    assert SPECIAL["one node"].with_virtual_leaves(["only"]) is SPECIAL["one node"]


def test_position_of_a_class():
    v = Hierarchy.from_edges([("r", "a"), ("a", "b")]).with_virtual_leaves(["a"])
    assert v.leaves[v.leaf_position("a")] == "a"
    with pytest.raises(LabelError, match=r"'r' is an inner node, not a leaf; with_virtual_leaves\(\['r'\]\)"):
        v.leaf_position("r")
    with pytest.raises(UnknownLabelError, match="'z'"):
        v.leaf_position("z")
    with pytest.raises(LabelError, match=r"hashable, but \['a'\] is a list"):
        v.leaf_position(["a"])
    with pytest.raises(UnknownLabelError, match="'z'"):
        v.with_virtual_leaves(["a", "z"])


def test_drawing_says_itself():
    v = Hierarchy.from_edges([("r", "a"), ("r", "b")]).with_virtual_leaves(["r"])
    assert v.draw() == "r\n├── a\n├── b\n└── (r itself)"


@few
@given(hierarchies(), st.data())
def test_subset_is_the_closure_with_the_edges_inside(h, data):
    labels = data.draw(some_labels(h, min_size=1))
    sub = h.subset(labels)
    inside = h.closure(labels)
    assert set(sub.nodes) == inside
    assert set(sub.edges()) == {(p, c) for p, c in h.edges() if p in inside and c in inside}
    assert sub.subset(labels) == sub


@few
@given(hierarchies(), st.data())
def test_subset_keeps_the_virtual_leaves_in_use(h, data):
    """Inner labels in use stay classes; the others lose their virtual leaf; an only child melts into its node."""
    v = h.with_virtual_leaves(data.draw(some_labels(h)))
    labels = data.draw(st.sets(st.sampled_from(v.leaves), min_size=1))
    sub = v.subset(labels)
    assert set(real(sub.nodes)) == h.closure(labels)
    assert set(sub.leaves) == labels
    inside = h.subset(labels)
    assert sub == inside.with_virtual_leaves(labels)
    assert all(sub.leaves[sub.leaf_position(label)] == label for label in labels)


def test_subset_by_example():
    v = Hierarchy.from_edges([("a", "b"), ("a", "c"), ("c", "d")]).with_virtual_leaves(["a", "c"])
    assert v.subset(["c"]).nodes == ("a", "c")  # no virtual leaf is left
    assert v.subset(["c", "d"]).nodes == ("a", "c", "d", VirtualLeaf("c"))
    assert v.subset(["d"]).nodes == ("a", "c", "d")


def test_an_empty_subset_is_an_empty_hierarchy():
    with pytest.raises(HierarchyError, match="an empty hierarchy"):
        SPECIAL["diamond"].subset([])
    with pytest.raises(UnknownLabelError, match="'zz'"):
        SPECIAL["diamond"].subset(["x", "zz"])
