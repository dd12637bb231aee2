"""Every JSON form, and what is wrong with it."""

from __future__ import annotations

import gzip
import json

import pytest

from nhsvm import Hierarchy
from nhsvm.errors import CycleError, FileFormatError

WANT = Hierarchy.from_edges([("animal", "dog"), ("animal", "bat"), ("flyer", "bat")], nodes=["rock"])
FORMS = {
    "edges and nodes": {"edges": [["animal", "dog"], ["animal", "bat"], ["flyer", "bat"]], "nodes": ["rock", "dog"]},
    "parents": {"dog": "animal", "bat": ["animal", "flyer"], "rock": None},
    "parents, roots as empty lists": {"dog": ["animal"], "bat": ["animal", "flyer"], "rock": [], "flyer": []},
    "nested": {"animal": {"dog": {}, "bat": {}}, "flyer": {"bat": {}}, "rock": {}},
}


@pytest.fixture
def read(tmp_path):
    def read(content, ending=".json", **options):
        raw = (content if isinstance(content, str) else json.dumps(content)).encode()
        path = tmp_path / f"h{ending}"
        path.write_bytes(gzip.compress(raw) if ending.endswith("gz") else raw)
        return Hierarchy.read(path, **options)

    return read


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form(read, form, ending):
    assert read(FORMS[form], ending) == WANT
    assert read("\ufeff" + json.dumps(FORMS[form], indent=1).replace("\n", "\r\n"), ending) == WANT


def test_a_list_of_pairs(read):
    assert read([["a", "b"], ["a", "c"]]) == Hierarchy.from_edges([("a", "b"), ("a", "c")])


def test_edges_alone_and_nodes_alone(read):
    assert read({"edges": [["a", "b"]]}) == Hierarchy.from_edges([("a", "b")])
    assert read({"edges": [], "nodes": ["a", "b"]}) == Hierarchy.from_edges([], nodes=["a", "b"])
    assert read({"nodes": ["a", "b"]}) == Hierarchy.from_edges([], nodes=["a", "b"])


def test_a_nested_root_may_be_called_edges(read):
    assert list(read({"edges": {"nodes": {}}}).edges()) == [("edges", "nodes")]


def test_nested_order_is_the_order_of_the_file(read):
    assert read({"r": {"b": {"z": {}, "y": {}}, "a": {"x": {}}}}).nodes == ("r", "b", "a", "z", "y", "x")


def test_label_types(read):
    assert read([[1, 2], [1, "2"], [1, 2.5]]).leaves == (2, "2", 2.5)
    assert read([[1, "2"], ["1", 3]], label_type=int).nodes == (1, 2, 3)
    assert read([[1, 2], [1, 2.5]], label_type=str).nodes == ("1", "2", "2.5")
    assert read({"2": 1, "3": ["1"]}, label_type=int) == Hierarchy.from_edges([(1, 2), (1, 3)])
    assert read({"1": {"2": {}}}, label_type=int).nodes == (1, 2)


def test_duplicates_can_be_merged(read):
    assert read([["a", "b"], ["a", "b"]], allow_duplicates=True).nodes == ("a", "b")


def test_a_shared_subtree_may_be_written_out_twice(read):
    below = {"bat": {"fruit bat": {}}}
    h = read({"mammal": below, "flyer": below})
    assert h.parents("bat") == {"mammal", "flyer"}
    assert h.leaves == ("fruit bat",)


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ('{\n "a": ,\n}', 2, "not JSON: Expecting value"),
        ("", 1, "not JSON: Expecting value"),
        ("3", None, "expected an object or a list, not 3"),
        ('"text"', None, "expected an object or a list, not 'text'"),
        ("[]", None, "an empty hierarchy: the file names no node"),
        ("{}", None, "an empty hierarchy: the file names no node"),
        ('{"edges": []}', None, "an empty hierarchy: the file names no node"),
        ('[["a", "b"], ["a"]]', None, "edge 1: expected a (parent, child) pair, not 1 items: ['a']"),
        ('[["a", "b"], "ab"]', None, "edge 1: expected a (parent, child) pair, not 'ab'"),
        ('[{"a": "b"}]', None, "edge 0: expected a (parent, child) pair, not {'a': 'b'}"),
        ('[["a", "b"], ["a", null]]', None, "edge 1: None cannot be a label"),
        ('[["a", true]]', None, "edge 0: True cannot be a label"),
        ('[["a", NaN]]', None, "edge 0: nan cannot be a label"),
        ('[["a", ["b"]]]', None, "edge 0: ['b'] cannot be a label"),
        ('[["a", {"b": 1}]]', None, "edge 0: {'b': 1} cannot be a label"),
        ('[["a", "a"]]', None, "edge 0: 'a' is given as its own parent (self-loop)"),
        (
            '[["a", "b"], ["a", "b"]]',
            None,
            "edge 1: 'a' -> 'b' is a duplicate; allow_duplicates=True merges repeated edges",
        ),
        ('{"edges": [], "nodes": "abc"}', None, "\"nodes\" must be a list, not 'abc'"),
        ('{"edges": {}, "nodes": ["a"]}', None, '"edges" must be a list, not {}'),
        (
            '{"edges": [["a", "b"]], "node": ["c"]}',
            None,
            'unknown key \'node\': next to a list of "edges" or "nodes" there can be no other',
        ),
        (
            '{"nodes": ["a", "b"], "edgs": [["a", "b"]]}',
            None,
            'unknown key \'edgs\': next to a list of "edges" or "nodes" there can be no other',
        ),
        ('{"edges": [], "nodes": [null]}', None, "None cannot be a label"),
        ('{"a": ["b", "b"]}', None, "'b' is listed twice as a parent of 'a'"),
        ('{"a": ["b", null]}', None, "None cannot be a label"),
        ('{"a": "a"}', None, "'a' is given as its own parent (self-loop)"),
        ('{"a": {"b": {}}, "c": "d"}', None, "{'b': {}} cannot be a label"),
        ('{"bat": "mammal", "bat": "flyer"}', None, "'bat' stands twice in the same object"),
        ('{"r": {"a": {"x": {}}, "a": {"y": {}}}}', None, "'a' stands twice in the same object"),
        ('{"a": {"b": 3}}', None, "expected an object below 'b', not 3"),
        ('{"a": {"a": {}}}', None, "'a' is given as its own parent (self-loop)"),
        ('{"r": {"a": {"a": {}}}}', None, "'a' is given as its own parent (self-loop)"),
        ('{"a": {"b": {}}, "b": {}}', None, "contradictory: 'b' is a root, and also stands below 'a'"),
    ],
)
def test_bad_content(read, tmp_path, content, line, problem):
    with pytest.raises(FileFormatError) as caught:
        read(content)
    where = tmp_path / "h.json" if line is None else f"{tmp_path / 'h.json'}:{line}"
    assert str(caught.value) == f"{where}: {problem}"


@pytest.mark.parametrize("bad", ["x", 2.5, "1_0"])
def test_what_is_no_whole_number(read, bad):
    with pytest.raises(FileFormatError, match=rf"edge 0: '{bad}' is not a whole number"):
        read([[1, bad]], label_type=int)


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_beyond_the_parser(read, sign):
    with pytest.raises(FileFormatError, match=r"h\.json: a number of 5000 digits is too long; give it as text"):
        read(f"[[1, {sign}{'7' * 5000}]]")


def test_two_labels_that_become_one(read):
    with pytest.raises(FileFormatError, match=r"edge 0: 1 is given as its own parent"):
        read([[1, "1"]], label_type=int)


def test_a_cycle(read):
    with pytest.raises(CycleError) as caught:
        read({"a": "b", "b": "a"})
    assert set(caught.value.cycle) == {"a", "b"}


def test_nesting_beyond_the_parser(read):
    with pytest.raises(FileFormatError, match=r"h\.json: nested too deeply; give edges instead"):
        read("[" * 200_000)


def test_children_that_become_the_same_number_are_refused(tmp_path):
    file = tmp_path / "h.json"
    file.write_text('{"1": 7, "01": 8}')
    with pytest.raises(FileFormatError, match=r"h\.json: 1 stands twice"):
        Hierarchy.read(file, label_type=int)
