"""Ways in, and what is wrong with bad input."""

from __future__ import annotations

from collections import namedtuple
from datetime import date
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import CycleError, HierarchyError
from strategies import SPECIAL, hierarchies, trees

few = settings(max_examples=40, deadline=None)


class Undecided:
    """Like pandas.NA: hashable, equal to nothing, and a comparison is no truth value."""

    def __eq__(self, other):
        return self

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value is ambiguous")

    def __hash__(self):
        return 7

    def __repr__(self):
        return "<NA>"


# -- the same hierarchy by every way in --------------------------------------------------------------------------------


@few
@given(hierarchies())
def test_edges_parents_and_networkx_give_the_same(h):
    assert Hierarchy.from_edges(h.edges(), nodes=h.nodes) == h
    assert Hierarchy.from_parents({n: h.parents(n) for n in h.nodes}) == h
    assert Hierarchy.from_parents({n: list(h.parents(n)) or None for n in h.nodes}) == h
    assert Hierarchy.from_networkx(h.to_networkx()) == h


@few
@given(trees())
def test_paths_give_the_same(h):
    paths = [sorted(h.closure(leaf), key=h.number) for leaf in h.leaves]
    assert Hierarchy.from_paths(paths) == h


def test_paths_of_a_dag_give_the_same():
    h = SPECIAL["diamond"]
    paths = ["rax", "rbx", "ray", "rbz"]
    assert Hierarchy.from_paths(map(tuple, paths)) == h
    assert not h.is_tree


@few
@given(hierarchies(), st.randoms(use_true_random=False))
def test_input_order_does_not_matter_for_equality(h, random):
    edges, nodes = list(h.edges()), list(h.nodes)
    random.shuffle(edges)
    random.shuffle(nodes)
    other = Hierarchy.from_edges(edges, nodes=nodes)
    assert other == h
    assert hash(other) == hash(h)


def test_input_order_is_kept_among_siblings_and_roots():
    h = Hierarchy.from_edges([("z", "y"), ("z", "b"), ("a", "c"), ("z", "a2")])
    assert h.nodes == ("z", "a", "y", "b", "a2", "c")
    assert h.leaves == ("y", "b", "a2", "c")


def test_a_root_can_be_a_leaf():
    h = Hierarchy.from_edges([], nodes=["x", "y"])
    assert h.roots == h.leaves == ("x", "y")
    assert Hierarchy.from_parents({"x": None, "y": []}) == h
    assert Hierarchy.from_paths([["x"], ["y"]]) == h


def test_one_shot_iterators_are_enough():
    edges = [("r", "a"), ("r", "b")]
    assert Hierarchy.from_edges(iter(edges), nodes=iter(["s"])).roots == ("s", "r")
    assert Hierarchy.from_paths(iter(map(iter, edges))) == Hierarchy.from_edges(edges)


Point = namedtuple("Point", "x of")  # a field named like that of a virtual leaf


@pytest.mark.parametrize(
    "labels",
    [
        (0, 1, 2),
        (-1, 0.5, "x"),
        ("", "two words", "é"),
        (("a", "b"), ("a",), ()),
        (frozenset({1}), frozenset({2}), frozenset()),
        (b"a", b"b", b"c"),
        (date(2020, 1, 1), date(2020, 1, 2), True),
        (Point(1, 2), Point(2, 3), Point(0, 0)),
        (1, "1", ("1",)),
    ],
    ids=repr,
)
def test_labels_of_any_hashable_type(labels):
    root, a, b = labels
    h = Hierarchy.from_edges([(root, a), (root, b)])
    assert h.leaves == (a, b)
    assert h.ancestors(b) == {root}
    assert h.descendants({root}) == {a, b}
    assert h.draw().splitlines() == [str(root), f"├── {a}", f"└── {b}"]


def test_a_frozenset_label_is_one_label_and_other_frozensets_are_sets():
    ab, a = frozenset("ab"), frozenset("a")
    h = Hierarchy.from_edges([(ab, a), (ab, "c")])
    assert h.parents(a) == {ab}
    assert h.parents(frozenset({a, "c"})) == {ab}


def test_numpy_edges_and_parents():
    h = Hierarchy.from_edges(np.array([[0, 1], [0, 2]]))
    assert h == Hierarchy.from_edges([(0, 1), (0, 2)])
    assert Hierarchy.from_parents({1: np.array([0, 3])}).roots == (0, 3)


def test_a_tuple_is_one_parent():
    assert Hierarchy.from_parents({"c": ("a", "b")}).roots == (("a", "b"),)


def test_qualified_paths_keep_equal_names_apart():
    paths = [("books", "other"), ("toys", "other"), ("toys", "toys")]
    h = Hierarchy.from_paths(paths, qualified=True)
    assert h.leaves == tuple(paths)
    assert h.parents(("toys", "toys")) == {("toys",)}
    assert h.is_tree


def test_a_path_may_stop_at_an_inner_node():
    h = Hierarchy.from_paths([("a", "b"), ("a", "b", "c"), ("a",)])
    assert list(h.edges()) == [("a", "b"), ("b", "c")]


def test_allow_duplicates_merges():
    twice = [("a", "b"), ("a", "b"), ("a", "c")]
    want = Hierarchy.from_edges([("a", "b"), ("a", "c")])
    assert Hierarchy.from_edges(twice, allow_duplicates=True) == want
    assert Hierarchy.from_paths(twice, allow_duplicates=True) == want


def test_networkx_multigraph_and_isolated_nodes():
    g = nx.MultiDiGraph([("a", "b"), ("a", "b")])
    g.add_node("c")
    assert Hierarchy.from_networkx(g) == Hierarchy.from_edges([("a", "b")], nodes=["c"])


# -- errors ------------------------------------------------------------------------------------------------------------


@few
@given(hierarchies(), st.data())
def test_a_cycle_is_shown(h, data):
    """Add one edge upwards: the cycle reported must be a real one and hold that edge."""
    low = data.draw(st.sampled_from(h.nodes))
    assume(h.ancestors(low))
    high = data.draw(st.sampled_from(sorted(h.ancestors(low))))
    edges = [*h.edges(), (low, high)]
    with pytest.raises(CycleError) as caught:
        Hierarchy.from_edges(edges)
    cycle = caught.value.cycle
    steps = list(pairwise(cycle))
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1 >= 2
    assert (low, high) in steps
    assert set(steps) <= set(edges)


def test_cycle_messages():
    with pytest.raises(CycleError) as caught:
        Hierarchy.from_edges([("root", "a"), ("a", "b"), ("b", "a"), ("b", "leaf")])
    assert str(caught.value) in (
        "the hierarchy has a cycle: 'a' -> 'b' -> 'a'; remove one of these edges (parent -> child)",
        "the hierarchy has a cycle: 'b' -> 'a' -> 'b'; remove one of these edges (parent -> child)",
    )
    with pytest.raises(CycleError, match=r"-> \.\.\. \(50 nodes\)") as caught:
        Hierarchy.from_parents({i: (i + 1) % 50 for i in range(50)})
    assert len(caught.value.cycle) == 51
    assert str(caught.value).count("->") == 13  # twelve nodes and "(parent -> child)"


def test_two_cycles_and_what_hangs_below_them():
    with pytest.raises(CycleError) as caught:
        Hierarchy.from_edges([(8, 9), (9, 8), (1, 2), (2, 1), (2, 3), (3, 4)])
    assert set(caught.value.cycle) in ({1, 2}, {8, 9})


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b"), ("c", "c")], "edge 1: 'c' is given as its own parent (self-loop)"),
        ([(1, True)], "edge 0: 1 is given as its own parent (self-loop)"),
        (
            [("a", "b"), ("a", "c"), ("a", "b")],
            "edge 2: 'a' -> 'b' is a duplicate; allow_duplicates=True merges repeated edges",
        ),
        ([("a", "b", "c")], "edge 0: expected a (parent, child) pair, not 3 items: ('a', 'b', 'c')"),
        (["ab"], "edge 0: expected a (parent, child) pair, not 'ab'"),
        ([b"ab"], "edge 0: expected a (parent, child) pair, not b'ab'"),
        ([{"a": "b"}], "edge 0: expected a (parent, child) pair, not {'a': 'b'}"),
        ([("a", "b"), 7], "edge 1: expected a (parent, child) pair, not 7"),
        ([("a", None)], "edge 0: None cannot be a label"),
        ([(float("nan"), "a")], "edge 0: nan cannot be a label"),
        ([("a", Undecided())], "edge 0: <NA> cannot be a label"),
        ([("a", ["b"])], "edge 0: a label must be hashable, but ['b'] is a list"),
        ([("a", (["b"],))], "edge 0: a label must be hashable, but (['b'],) is a tuple"),
        ([], "an empty hierarchy: give at least one node"),
    ],
)
def test_bad_edges(edges, message):
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_edges(edges)
    assert str(caught.value) == message


@pytest.mark.parametrize("pair", [{"a", "b"}, frozenset("ab"), {"a": 1, "b": 2}.keys()])
def test_a_set_does_not_say_who_is_the_parent(pair):
    with pytest.raises(HierarchyError, match=r"edge 0: expected a \(parent, child\) pair"):
        Hierarchy.from_edges([pair])


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (["b"], "a label must be hashable, but ['b'] is a list"),
        (np.array([1, 2]), "a label must be hashable, but array([1, 2]) is a ndarray"),
        (None, "None cannot be a label"),
        (np.float64("nan"), "np.float64(nan) cannot be a label"),
    ],
)
def test_bad_nodes(node, message):
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_edges([], nodes=["fine", node])
    assert str(caught.value) == message


def test_a_repeated_node_is_no_mistake():
    assert Hierarchy.from_edges([("a", "b")], nodes=["b", "a", "b"]).nodes == ("a", "b")


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": "a"}, "'a' is given as its own parent (self-loop)"),
        ({"a": ["x", "x"]}, "'x' is listed twice as a parent of 'a'"),
        ({"a": ["x", None]}, "contradictory parents of 'a': None (a root) among ['x', None]"),
        ({"a": {"x": 1}}, "a label must be hashable, but {'x': 1} is a dict"),
        ({"a": np.array([[1, 2]])}, "a label must be hashable, but array([1, 2]) is a ndarray"),
        ({None: "a"}, "None cannot be a label"),
        ({}, "an empty hierarchy: give at least one node"),
        ([("a", "b")], "expected a mapping of child to parent(s), not list"),
    ],
)
def test_bad_parents(parents, message):
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_parents(parents)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([("a", "b"), ()], "path 1: an empty path"),
        ([("a", "b", "a")], "path 0: ('a', 'b', 'a') goes through the same node twice"),
        ([("a", "a")], "path 0: ('a', 'a') goes through the same node twice"),
        (
            [("a", "b"), ("c",), ("a", "b")],
            "path 2: ('a', 'b') is a duplicate; allow_duplicates=True accepts repeated paths",
        ),
        (
            [("r", "a"), ("a", "b"), ("a", "c")],
            "path 1: contradictory paths: this one starts at 'a', another has it below 'r'",
        ),
        ([("a", "b"), "a/c"], "path 1: expected a sequence of labels, split already, not 'a/c'"),
        ([("a", ["b"])], "path 0: a label must be hashable, but ['b'] is a list"),
        ([("a", ([1],))], "path 0: a label must be hashable, but ([1],) is a tuple"),
        ([("a", None)], "path 0: None cannot be a label"),
        ([], "an empty hierarchy: give at least one node"),
    ],
)
def test_bad_paths(paths, message):
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_paths(paths)
    assert str(caught.value) == message


@pytest.mark.parametrize("hole", [None, float("nan")])
def test_qualified_paths_have_no_holes(hole):
    with pytest.raises(HierarchyError, match=r"path 1: (None|nan) cannot be a label"):
        Hierarchy.from_paths([("a", "b"), ("a", hole)], qualified=True)


def test_paths_that_make_a_cycle():
    with pytest.raises(CycleError) as caught:
        Hierarchy.from_paths([("r", "a", "b"), ("r", "b", "a")])
    assert set(caught.value.cycle) == {"a", "b"}


def test_what_networkx_cannot_give():
    with pytest.raises(HierarchyError, match=r"undirected graph .* give a networkx\.DiGraph"):
        Hierarchy.from_networkx(nx.Graph([(1, 2)]))
    with pytest.raises(HierarchyError, match=r"expected a networkx\.DiGraph, not list"):
        Hierarchy.from_networkx([(1, 2)])
    with pytest.raises(HierarchyError, match=r"edge 0: 1 is given as its own parent"):
        Hierarchy.from_networkx(nx.DiGraph([(1, 1)]))
    with pytest.raises(HierarchyError, match="an empty hierarchy"):
        Hierarchy.from_networkx(nx.DiGraph())


def test_item_and_problem_of_an_error():
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_edges([(0, 1), (2, 2)])
    error = caught.value
    assert (error.kind, error.item, error.problem) == ("edge", 1, "2 is given as its own parent (self-loop)")


def test_fifty_thousand_nodes():
    """Only that it works at that size, and how much it stores; the speed is a benchmark's business."""
    edges = [(v // 5, v) for v in range(1, 50_000)] + [(v // 9, v) for v in range(18, 50_000, 3)]
    h = Hierarchy.from_edges(edges)
    g = nx.DiGraph(h.edges())
    assert not h.is_tree
    for leaf in h.leaves[::9000]:
        assert h.closure(leaf) == nx.ancestors(g, leaf) | {leaf}
    ancestors = h.graph.ancestors
    stored = sum(a.nbytes for r in (ancestors, h.graph.parents, h.graph.children) for a in r)
    assert stored == 4 * len(ancestors.indices) + 8 * h.graph.n_edges + 3 * 8 * 50_001
    assert stored < 50e6
