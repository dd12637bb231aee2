"""Errors: one family, messages that help, and they survive pickling (worker processes send them back)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from nhsvm import Hierarchy, errors
from nhsvm.errors import (
    CycleError,
    DataError,
    FileFormatError,
    HierarchyError,
    LabelError,
    MemoryLimitError,
    NHSVMError,
    NotSolvedError,
    OptionError,
    UnknownLabelError,
    UntrustedPatternError,
)

ALL = [
    HierarchyError("bad"),
    HierarchyError("bad", "edge", 3),
    CycleError(["a", "b", "a"]),
    CycleError(range(100)),
    UnknownLabelError(["dgo", 3], ["dog", "3"]),
    LabelError("bad"),
    DataError("bad"),
    FileFormatError("a.csv", 4, "bad"),
    FileFormatError("a.csv", None, "bad"),
    UntrustedPatternError("a.nhsvm", None, "bad"),
    OptionError("bad"),
    MemoryLimitError("bad"),
    NotSolvedError("bad"),
]


@pytest.mark.parametrize("error", ALL, ids=str)
def test_pickling_keeps_everything(error):
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert twin.__dict__ == error.__dict__


def test_one_family():
    kinds = {e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, Exception)}
    kinds -= {errors.CacheWarning, errors.MemoryWarning}
    assert kinds == {type(e) for e in ALL} | {NHSVMError}
    assert all(issubclass(kind, NHSVMError) for kind in kinds)
    assert issubclass(NHSVMError, ValueError)
    assert issubclass(CycleError, HierarchyError)


def message(unknown, known):
    h = Hierarchy.from_edges([], nodes=known)
    with pytest.raises(UnknownLabelError) as caught:
        h.number(unknown)
    assert caught.value.labels == (unknown,)
    return str(caught.value)


def test_near_matches():
    assert message("dgo", ["dog", "cat"]) == "not in the hierarchy: 'dgo' (did you mean 'dog'?)"
    assert message("dog", ["dogs", "doge", "dig", "dug"]).count(" or ") == 2
    assert message("xyz", ["dog", "cat"]) == "not in the hierarchy: 'xyz'"
    assert message(7, [8, 9]) == "not in the hierarchy: 7"
    assert message(None, ["dog"]) == "not in the hierarchy: None"


def test_numbers_and_their_names_are_told_apart():
    assert message("3", [3, 4]) == "not in the hierarchy: '3' (the hierarchy has 3, a int, but the label is a str)"
    assert message(3, ["3"]) == "not in the hierarchy: 3 (the hierarchy has '3', a str, but the label is a int)"


def test_many_unknown_labels_are_counted():
    text = str(UnknownLabelError(range(8)))
    assert text == "not in the hierarchy: 0; 1; 2; 3; 4; and 3 more"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Hierarchy.from_edges([], nodes="abc"), "expected a collection of labels, not the string 'abc'"),
        (lambda: Hierarchy.from_edges([], nodes=None), "expected a collection of labels, not None"),
        (lambda: Hierarchy.from_edges([], nodes=7), "expected a collection of labels, not 7"),
        (lambda: Hierarchy.from_edges("ab"), "expected a collection of (parent, child) pairs, not the string 'ab'"),
        (lambda: Hierarchy.from_edges(None), "expected a collection of (parent, child) pairs, not None"),
        (lambda: Hierarchy.from_edges([np.array(1)]), "edge 0: expected a (parent, child) pair, not array(1)"),
        (lambda: Hierarchy.from_paths("abc"), "expected a collection of paths, not the string 'abc'"),
        (lambda: Hierarchy.from_paths(b"abc"), "expected a collection of paths, not the string b'abc'"),
        (lambda: Hierarchy.from_paths(None), "expected a collection of paths, not None"),
        (lambda: Hierarchy.from_parents({1: np.array(0)}), "expected a collection of labels, not array(0)"),
    ],
)
def test_no_collection(build, message):
    with pytest.raises(HierarchyError) as caught:
        build()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "content",
    [f"1 2\n1 {'3' * 5000}x\n", "1 2\n" + "1 2 " * 2000 + "3\n", '["' + "a" * 5000 + '"]', "[" * 500 + "]" * 500],
    ids=["label", "path", "pair", "nested"],
)
def test_long_messages_lose_their_middle(tmp_path, content):
    file = tmp_path / ("h.json" if content.startswith("[") else "h.txt")
    file.write_text(content)
    with pytest.raises(FileFormatError) as caught:
        Hierarchy.read(file)
    assert str(caught.value).startswith(f"{file}:")
    assert len(str(caught.value)) < 1000


def test_what_is_long_is_not_compared_with_all_others():
    """Comparing takes more than the product of lengths."""
    long = ["a" * 20_000 + str(k) for k in range(30)]
    with pytest.raises(UnknownLabelError) as caught:
        Hierarchy.from_edges([("root", label) for label in long]).number("a" * 19_000)
    assert "did you mean" not in str(caught.value)
