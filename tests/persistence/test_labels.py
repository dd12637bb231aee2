"""Labels and hierarchies as JSON and arrays, there and back."""

import enum
import json
import math
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import FileFormatError, LabelError
from nhsvm.hierarchy import VirtualLeaf
from nhsvm.model import hierarchy_from_parts, hierarchy_to_parts
from nhsvm.model.checks import Budget, Malformed
from nhsvm.model.values import (
    decode_array,
    decode_label,
    decode_labels,
    encode_array,
    encode_label,
    encode_labels,
)
from strategies import SPECIAL, hierarchies

numbers = st.integers() | st.floats() | st.booleans()
scalars = st.one_of(
    st.builds(np.int64, st.integers(-(2**63), 2**63 - 1)),
    st.builds(np.uint8, st.integers(0, 255)),
    st.builds(np.float64, st.floats()),
    st.builds(np.float32, st.floats(width=32)),
    st.builds(np.float16, st.floats(width=16)),
    st.builds(np.str_, st.text()),
    st.builds(np.bool_, st.booleans()),
)
plain = st.none() | numbers | st.text() | st.binary() | scalars
labels = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3) | st.builds(VirtualLeaf, inner)
    ),
    max_leaves=6,
)


def through_json(value):
    return json.loads(json.dumps(value, allow_nan=False))


def same(a, b):
    """Equal, of the same types all the way down; NaN is NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, frozenset):
        return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)
    if isinstance(a, VirtualLeaf):
        return same(a.of, b.of)
    return a == b or (a != a and b != b)


@given(labels)
def test_every_label_comes_back(label):
    assert same(decode_label(through_json(encode_label(label))), label)


@given(st.lists(labels, max_size=5) | st.lists(st.builds(np.int64, st.integers(0, 9))))
def test_lists_of_labels_come_back(many):
    assert same(tuple(decode_labels(through_json(encode_labels(many)))), tuple(many))


@pytest.mark.parametrize(
    "label", [-0.0, 0.1, 1e300, 5e-324, 1e16, 2.0, math.inf, -math.inf, 2**70, -1, "", "\ud800", np.str_("a\0")]
)
def test_exact(label):
    back = decode_label(through_json(encode_label(label)))
    assert same(back, label)
    assert repr(back) == repr(label)


def test_plain_labels_are_written_plainly():
    for many in (["a", "b"], [1, 2], [1, "a", None, True, 2.5]):
        assert encode_labels(many) == many
    assert encode_labels([np.int64(1), np.int64(2)]) == {"numpy": "int64", "labels": [1, 2]}
    assert encode_labels([np.str_("a"), np.str_("b")]) == {"numpy": "str", "labels": ["a", "b"]}


def test_frozensets_do_not_depend_on_their_order():
    assert encode_label(frozenset(["b", "a", 1])) == encode_label(frozenset([1, "a", "b"]))


class Colour(enum.StrEnum):
    RED = "red"


class Word(str):
    pass


@pytest.mark.parametrize(
    "label",
    [
        date(2020, 1, 1),
        Colour.RED,
        Word("w"),
        1j,
        object(),
        np.datetime64("2020"),
        np.complex64(1),
        len,
        range(3),
        (1, 1j),
    ],
)
def test_what_cannot_be_stored(label):
    with pytest.raises(LabelError, match=r"is a [\w.]+, which cannot be stored in a model file; labels there are str"):
        encode_label(label)


def test_limits():
    with pytest.raises(LabelError, match="10000 bits"):
        encode_label(2**10_001)
    deep = ()
    for _ in range(70):
        deep = (deep,)
    with pytest.raises(LabelError, match="nested more than 64"):
        encode_label(deep)
    deep = {"tuple": []}
    for _ in range(70):
        deep = {"tuple": [deep]}
    with pytest.raises(Malformed, match="nested more than 64"):
        decode_label(deep)


@pytest.mark.parametrize(
    "value",
    [
        [],
        ["a"],
        {},
        {"a": 1},
        {"tuple": [], "frozenset": []},
        {"tuple": 3},
        {"tuple": "ab"},
        {"tuple": None},
        {"frozenset": {}},
        {"frozenset": [[1]]},
        {"float": "1.0"},
        {"float": 1.0},
        {"float": None},
        {"float": []},
        {"bytes": "xy"},
        {"bytes": 3},
        {"bytes": None},
        {"numpy": 3},
        {"numpy": []},
        {"numpy": ["int64"]},
        {"numpy": ["int64", 1, 2]},
        {"numpy": ["object", 1]},
        {"numpy": [[], 1]},
        {"numpy": ["int8", 300]},
        {"numpy": ["uint8", -1]},
        {"numpy": ["int64", 2**64]},
        {"numpy": ["int64", 1.5]},
        {"numpy": ["int64", "1"]},
        {"numpy": ["int64", True]},
        {"numpy": ["int64", None]},
        {"numpy": ["int64", {"float": "nan"}]},
        {"numpy": ["bool", "yes"]},
        {"numpy": ["bool", 1]},
        {"numpy": ["str", 1]},
        {"numpy": ["str", {"bytes": "00"}]},
        {"numpy": ["float16", 1e300]},
        {"numpy": ["float32", 0.1]},
        {"numpy": ["float64", 1]},
        {"virtual_leaf": []},
    ],
)
def test_bad_labels_in_a_file(value):
    with pytest.raises(Malformed):
        decode_label(value)


@pytest.mark.parametrize(
    "value", [None, 3, "ab", {}, {"numpy": "int64"}, {"numpy": "x", "labels": []}, {"numpy": "int8", "labels": [300]}]
)
def test_bad_lists_of_labels_in_a_file(value):
    with pytest.raises(Malformed):
        decode_labels(value)


# -- arrays ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a", "long one", "ü", ""]),
        np.array([3, -1, 2**62]),
        np.array([3, 1], dtype=np.uint8),
        np.array([0.1, np.inf, -np.inf, np.nan, -0.0]),
        np.array([0.1, 2], dtype=np.float32),
        np.array([True, False]),
        np.array(["a", 1, 2.5, None, np.int64(3)], dtype=object),
        np.array([], dtype=int),
        np.array([], dtype=str),
        np.array([], dtype=object),
    ],
)
def test_arrays(array):
    back = decode_array(through_json(encode_array(array)), Budget(0))
    assert back.dtype == array.dtype
    assert back.flags.writeable
    assert all(map(same, back.tolist(), array.tolist()))
    assert len(back) == len(array)


def test_arrays_of_tuples():
    array = np.empty(2, dtype=object)
    array[0], array[1] = ("a", "b"), ("a", "c")
    back = decode_array(through_json(encode_array(array)), Budget(0))
    assert back.tolist() == array.tolist()
    assert back.shape == (2,)


def test_arrays_that_cannot_be_stored():
    for array in (np.ones((2, 2)), np.array(1), [1], None):
        with pytest.raises(LabelError, match="1-D array"):
            encode_array(array)
    for dtype in ("M8[s]", complex, "S3"):
        with pytest.raises(LabelError, match="use objects"):
            encode_array(np.zeros(2, dtype))
    with pytest.raises(LabelError, match="very long"):
        encode_array(np.broadcast_to(np.array(["x" * 1_000_000]), 300))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"dtype": "object"},
        {"dtype": "object", "labels": 3},
        {"dtype": "void", "labels": []},
        {"dtype": "int64", "labels": [1.5]},
        {"dtype": "int64", "labels": {"numpy": "int64", "labels": []}},
        {"dtype": "str", "labels": [1]},
        {"dtype": "str", "labels": ["x" * 1_000_000] + ["y"] * 300},
    ],
)
def test_bad_arrays_in_a_file(value):
    with pytest.raises(Malformed):
        decode_array(value, Budget(0))


# -- hierarchies -------------------------------------------------------------------------------------------------------


def round_trip(h):
    part, arrays = hierarchy_to_parts(h)
    return hierarchy_from_parts(through_json(part), arrays)


def check_same(h2, h):
    assert all(map(same, h2.nodes, h.nodes))
    assert h2 == h
    for a, b in zip(h2.graph.edges(), h.graph.edges(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(h2.graph.level_ptr, h.graph.level_ptr)


@given(hierarchies(), st.data())
def test_hierarchies_come_back(h, data):
    h = h.with_virtual_leaves(data.draw(st.lists(st.sampled_from(h.nodes), max_size=3)))
    check_same(round_trip(h), h)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_hierarchies_come_back(name):
    check_same(round_trip(SPECIAL[name]), SPECIAL[name])


def test_labels_of_all_kinds():
    kinds = ["a", 1, 2.5, ("x", 1), b"b", frozenset([1, "q"]), np.int64(7), np.str_("n"), math.inf, False]
    h = Hierarchy.from_edges([("root", kind) for kind in kinds] + [("a", "below")]).with_virtual_leaves(["a", "root"])
    check_same(round_trip(h), h)


def test_labels_that_cannot_be_stored_are_named():
    h = Hierarchy.from_edges([("a", date(2020, 1, 2))])
    with pytest.raises(LabelError, match=r"datetime.date\(2020, 1, 2\) is a datetime.date"):
        hierarchy_to_parts(h)


def ints(*values):
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    ("labels", "parent", "child", "match"),
    [
        (["a", "b"], ints(0), ints(2), "outside of 0 .. 1"),
        (["a", "b"], ints(-1), ints(1), "outside of 0 .. 1"),
        (["a", "b"], ints(1, 0), ints(0, 1), "child before its parent: a cycle"),
        (["a", "b"], ints(1), ints(1), "child before its parent: a cycle"),
        (["a", "b"], ints(0, 0), ints(1, 1), "same edge twice"),
        (["a", "b", "c"], ints(0, 0), ints(2, 1), "not ordered"),
        (["a", "a"], ints(0), ints(1), "same label twice"),
        ([1, True], ints(0), ints(1), "same label twice"),
        (["b", "a"], ints(1), ints(0), "in another order"),
        (["a", "b"], ints(0), ints(1, 1), "same length"),
        (["a", "b"], np.array([0]), ints(1), "int32"),
        (["a", "b"], np.array([0.0]), ints(1), "int32"),
        (["a", "b"], ints(0).reshape(1, 1), ints(1), "int32"),
        ([], ints(), ints(), "empty hierarchy"),
        (None, ints(), ints(), "list of labels"),
        ([["a"]], ints(), ints(), "no label"),
        (["a", {"virtual_leaf": "b"}], ints(0), ints(1), "not where it belongs"),
        ([{"virtual_leaf": "b"}], ints(), ints(), "not where it belongs"),
        (["a", {"virtual_leaf": "a"}, "c"], ints(0, 1), ints(1, 2), "not where it belongs"),
    ],
)
def test_bad_hierarchies_in_a_file(labels, parent, child, match):
    with pytest.raises(FileFormatError, match=match) as caught:
        hierarchy_from_parts({"labels": labels}, {"parent": parent, "child": child}, "m.nhsvm")
    assert str(caught.value).startswith("m.nhsvm: ")


def test_missing_parts():
    with pytest.raises(FileFormatError, match="no edges"):
        hierarchy_from_parts({"labels": ["a"]}, {"parent": ints()})
    with pytest.raises(FileFormatError, match="list of labels"):
        hierarchy_from_parts({}, {"parent": ints(), "child": ints()})
