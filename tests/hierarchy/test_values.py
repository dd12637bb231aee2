"""A hierarchy as a value: equality, hash, pickling, frozenness, text, networkx."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import LabelError, OptionError, UnknownLabelError
from nhsvm.hierarchy import Ragged
from strategies import SPECIAL, hierarchies

few = settings(max_examples=40, deadline=None)
TREE = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "c")])


# -- equality, hash, pickling ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        Hierarchy.from_edges([("r", "a"), ("r", "b"), ("b", "c")]),
        Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "d")]),
        Hierarchy.from_edges([("r", "a"), ("r", "b")], nodes=["c"]),
        TREE.with_virtual_leaves(["a"]),
        TREE.to_networkx(),
        "r",
    ],
    ids=["other edge", "other label", "one edge less", "virtual leaf", "networkx", "text"],
)
def test_inequality(other):
    assert other != TREE
    assert other != TREE


def test_hierarchies_are_dictionary_keys():
    same = Hierarchy.from_edges([("r", "b"), ("r", "a"), ("a", "c")])
    assert same.nodes != TREE.nodes
    assert {TREE: 1}[same] == 1
    assert len({TREE, same, TREE.minimal()}) == 2


@few
@given(hierarchies(), st.data())
def test_copies_are_the_same_in_everything(h, data):
    h = h.with_virtual_leaves(data.draw(st.sets(st.sampled_from(h.nodes))))
    for twin in (pickle.loads(pickle.dumps(h)), copy.deepcopy(h), copy.copy(h)):
        assert twin == h
        assert hash(twin) == hash(h)
        assert twin.nodes == h.nodes  # α and coef_ are aligned with this order
        for mine, theirs in zip(twin.graph.parents, h.graph.parents, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert not twin.graph.parents.indices.flags.writeable


def test_pickle_in_a_process_with_other_hashes(tmp_path):
    names = Hierarchy.from_edges([("root", f"n{i}") for i in range(40)] + [(f"n{i}", f"n{i + 40}") for i in range(30)])
    names = names.with_virtual_leaves(["root", "n3"])
    _ = hash(names), names.leaves  # fill the caches, which must not travel
    path = tmp_path / "h.pickle"
    path.write_bytes(pickle.dumps(names))
    code = (
        "import pickle, sys\n"
        "from nhsvm import Hierarchy\n"
        "h = pickle.load(open(sys.argv[1], 'rb'))\n"
        "again = Hierarchy.from_edges(h.edges()).with_virtual_leaves(['root', 'n3'])\n"
        "assert again == h and hash(again) == hash(h)\n"
        "assert h.leaf_position('n3') == h.leaves.index('n3')\n"
        "print(repr(h.nodes))\n"
    )
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-W", "ignore::ResourceWarning", "-c", code, path], env=env, capture_output=True, text=True
        )
        assert (done.stderr, done.returncode) == ("", 0)
        assert done.stdout.strip() == repr(names.nodes)


# -- frozen ------------------------------------------------------------------------------------------------------------


def test_attributes_cannot_be_changed():
    h = Hierarchy.from_edges([("r", "a")])
    for name in ("nodes", "leaves", "roots", "_nodes", "is_tree", "anything"):
        with pytest.raises(AttributeError):
            setattr(h, name, ())
        with pytest.raises(AttributeError):
            delattr(h, name)
    for name in ("parents", "level_ptr", "anything"):
        with pytest.raises(AttributeError):
            setattr(h.graph, name, ())
    assert h.nodes == h.roots + h.leaves == ("r", "a")


@pytest.mark.parametrize("name", ["diamond", "isolated roots", "one node"])
def test_arrays_cannot_be_changed(name):
    h = SPECIAL[name]
    g = h.graph
    found = [h.is_virtual, g.level_ptr, g.leaves, g.is_leaf, g.level, g.leaf_counts, g.is_common]
    for ragged in (g.parents, g.children, g.ancestors, g.leaf_ancestors):
        assert isinstance(ragged, Ragged)
        found += [*ragged, ragged.row(0)]
    for array in found:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


# -- looking up --------------------------------------------------------------------------------------------------------


def test_contains_and_len():
    assert "a" in TREE
    assert "z" not in TREE
    for unhashable in (["a"], (["a"],), {"a"}, np.array(["a"])):
        assert unhashable not in TREE
    assert len(TREE) == 4


def test_numbers():
    assert [TREE.number(n) for n in TREE.nodes] == [0, 1, 2, 3]
    assert TREE.numbers(["c", "r"]).tolist() == [TREE.number("c"), 0]
    assert TREE.numbers("c").tolist() == [TREE.number("c")]
    assert TREE.numbers([]).dtype == np.int32
    for query in (TREE.parents, TREE.children, TREE.ancestors, TREE.descendants, TREE.closure):
        assert query([]) == frozenset()


@pytest.mark.parametrize("query", ["parents", "children", "ancestors", "descendants", "closure", "depth", "is_leaf"])
def test_unknown_and_unhashable_labels(query):
    with pytest.raises(UnknownLabelError, match="not in the hierarchy: 'zebra'"):
        getattr(TREE, query)("zebra")
    with pytest.raises(LabelError, match=r"a label must be hashable, but \{'a': 1\} is a dict"):
        getattr(TREE, query)({"a": 1})


@pytest.mark.parametrize("query", ["parents", "children", "ancestors", "descendants", "closure"])
def test_a_tuple_of_nodes_is_no_set_of_nodes(query):
    ask = getattr(TREE, query)
    with pytest.raises(UnknownLabelError) as caught:
        ask(("a", "b"))
    assert caught.value.labels == (("a", "b"),)
    assert str(caught.value) == (
        "not in the hierarchy: ('a', 'b') (a tuple is one label; give a set or list for several)"
    )
    for other in (("a", "zebra"), ()):
        with pytest.raises(UnknownLabelError) as caught:
            ask(other)
        assert str(caught.value) == f"not in the hierarchy: {other!r}"
    for several in (["a", "b"], {"a", "b"}):
        ask(several)


@pytest.mark.parametrize("query", ["parents", "children", "ancestors", "descendants", "closure"])
def test_an_array_without_dimensions_is_no_set_of_nodes(query):
    with pytest.raises(LabelError, match=r"expected a collection of labels, not array\('a'"):
        getattr(TREE, query)(np.array("a"))


@pytest.mark.parametrize("method", ["subset", "with_virtual_leaves", "minimal"])
@pytest.mark.parametrize(
    ("value", "shown"), [("animal", "the string 'animal'"), (5, "5"), (np.array("a"), "array('a', dtype='<U1')")]
)
def test_what_is_no_collection_of_labels(method, value, shown):
    with pytest.raises(LabelError) as caught:
        getattr(TREE, method)(value)
    assert str(caught.value) == f"expected a collection of labels, not {shown}"


@pytest.mark.parametrize("method", ["subset", "with_virtual_leaves"])
def test_nothing_is_no_collection_of_labels(method):
    with pytest.raises(LabelError, match="expected a collection of labels, not None"):
        getattr(TREE, method)(None)


# -- text --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("one node", "Hierarchy(tree, 1 node, 1 leaf, 1 root, 1 level)"),
        ("isolated roots", "Hierarchy(forest, 5 nodes, 4 leaves, 3 roots, 2 levels)"),
        ("chain", "Hierarchy(tree, 1000 nodes, 1 leaf, 1 root, 1000 levels)"),
        ("star", "Hierarchy(tree, 10001 nodes, 10000 leaves, 1 root, 2 levels)"),
        ("diamond", "Hierarchy(DAG, 6 nodes, 3 leaves, 1 root, 3 levels)"),
    ],
)
def test_repr(name, text):
    assert repr(SPECIAL[name]) == text


def test_drawing_a_dag_unfolds_a_node_once():
    h = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "m"), ("b", "m"), ("b", "z"), ("m", "x"), ("a", "z")])
    assert h.draw() == "\n".join(
        [
            "r",
            "├── a",
            "│   ├── m",
            "│   │   └── x",
            "│   └── z",
            "└── b",
            "    ├── m (see above)",
            "    └── z",
        ]
    )


def test_drawing_with_notes():
    text = TREE.draw(notes={"r": "0.5", "c": "0.25", "nobody": "1"})
    assert text == "r          0.5\n├── a\n│   └── c  0.25\n└── b"


def test_drawing_is_cut_and_says_so():
    assert SPECIAL["star"].draw(max_nodes=3) == "hub\n├── 0\n├── 1\n... and 9998 more nodes"
    assert TREE.draw(max_nodes=3) == "r\n├── a\n│   └── c\n... and 1 more node"
    assert TREE.draw(max_nodes=4) == TREE.draw()
    assert len(SPECIAL["star"].draw().splitlines()) == 201


def test_a_cut_that_leaves_out_only_repetitions_says_so():
    h = Hierarchy.from_edges([("a", "x"), ("b", "x")])
    assert h.draw() == "a\n└── x\nb\n└── x"
    assert h.draw(max_nodes=3) == "a\n└── x\nb\n..."


def test_drawing_nothing_is_refused():
    with pytest.raises(OptionError, match="max_nodes must be at least 1, not 0"):
        TREE.draw(max_nodes=0)


@pytest.mark.parametrize("name", SPECIAL)
def test_every_node_is_drawn(name):
    h = SPECIAL[name]
    lines = h.draw(max_nodes=20_000).splitlines()
    names = {line.split("── ")[-1] for line in lines}
    assert names == {str(n) for n in h.nodes}


# -- networkx ----------------------------------------------------------------------------------------------------------


@few
@given(hierarchies())
def test_to_networkx(h):
    g = h.to_networkx()
    assert type(g) is nx.DiGraph
    assert tuple(g) == h.nodes
    assert set(g.edges) == set(h.edges())
    assert g.number_of_edges() == h.graph.n_edges


def test_to_networkx_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install 'nhsvm\[networkx\]'"):
        TREE.to_networkx()


def test_a_copy_is_the_hierarchy_itself():
    """It never changes, and scikit-learn's clone copies parameters for every fit."""
    h = Hierarchy.from_edges([("a", "b"), ("a", "c")])
    assert copy.copy(h) is h
    assert copy.deepcopy({"hierarchy": h})["hierarchy"] is h
