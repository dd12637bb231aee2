"""Label sets as y, and back in the same form."""

import warnings
from collections import namedtuple
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.multiclass import type_of_target

from estimators.problems import DAG, FOREST, TREE
from nhsvm import Hierarchy
from nhsvm.errors import LabelError, UnknownLabelError
from nhsvm.estimators.labels import encode_sets, is_multilabel
from nhsvm.hierarchy import LabelSpace, VirtualLeaf
from strategies import hierarchies

PATHS = Hierarchy.from_paths([("books", "other"), ("toys", "other"), ("toys", "cars")], qualified=True)
SETS = [["dog", "oak"], ["cat"], ["rose", "cat", "dog"]]
ONES = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 1]])  # SETS over TREE.leaves


def back(encoded):
    return encoded.decoded(encoded.indptr, encoded.indices)


def leaves_of(encoded):
    """Label sets by way of the leaves alone."""
    names = encoded.hierarchy.leaves
    return [{names[k] for k in encoded.indices[a:b]} for a, b in pairwise(encoded.indptr)]


def objects(items):
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array


# -- what is multi-label -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [list, tuple, objects, pd.Series, lambda y: pl.Series(y, dtype=pl.Object)])
@pytest.mark.parametrize("kind", [list, set, frozenset, tuple, np.array])
def test_containers(wrap, kind):
    y = wrap([kind(labels) for labels in SETS])
    assert is_multilabel(y, TREE)
    assert is_multilabel(y) == (kind not in (tuple, frozenset))  # labels like any other, without a hierarchy
    encoded = encode_sets(y, TREE)
    assert encoded.classes.tolist() == ["cat", "dog", "oak", "rose"]
    assert leaves_of(encoded) == [set(labels) for labels in SETS]
    found = back(encoded)
    expected = list if kind is np.array else kind
    assert found.dtype == object
    assert found.shape == (3,)
    assert [type(labels) for labels in found] == [expected] * 3
    assert found.tolist() == [expected(sorted(labels)) for labels in SETS]
    assert leaves_of(encode_sets(y, None)) == leaves_of(encoded)


@pytest.mark.parametrize(
    "y",
    [
        ["dog", "cat"],
        ("dog", "cat"),
        "dog",
        [],
        None,
        7,
        np.array([1, 2]),
        np.array([[1], [2]]),
        np.array([["dog"], ["cat"]]),
        np.array(3),
        np.zeros((2, 2, 2)),
        np.zeros((2, 0)),
        sp.coo_array(np.ones(3)),
        pd.Series(["dog", "cat"]),
        pd.Categorical(["dog", "cat"]),
        pl.Series(["dog", "cat"]),
        pd.DataFrame({"y": ["dog", "cat"]}),
        pl.DataFrame({"y": ["dog", "cat"]}),
        [("books", "other"), ("toys", "cars")],
        [frozenset("ab")],
        [{}, {}],
        [None, "dog"],
        (label for label in ["dog"]),
    ],
)
def test_single_label(y):
    assert not is_multilabel(y)
    assert not is_multilabel(y, PATHS if isinstance(y, list) and ("toys", "cars") in y else None)


def test_as_scikit_learn_sees_it():
    for y in (ONES, ONES.astype(bool), ONES.astype(float), sp.csr_array(ONES), ONES[:, :1], ONES[:, 0], ["a", "b"]):
        assert is_multilabel(y) == (type_of_target(y) == "multilabel-indicator")
    assert is_multilabel(sp.csr_array(ONES[:, :1]))  # no other meaning
    for y in (np.array([["a", "b"]]), np.array([[0.5, 2.0]])):
        assert is_multilabel(y)  # so that the error names what is wrong with it


def test_a_tuple_that_is_a_node_is_one_label():
    one, two = [("books", "other"), ("toys", "cars")], [(("books", "other"), ("toys", "cars")), (("toys", "other"),)]
    assert not is_multilabel(one, PATHS)
    assert is_multilabel(two, PATHS)
    assert back(encode_sets(two, PATHS)).tolist() == two
    assert back(encode_sets([set(labels) for labels in two], PATHS)).tolist() == [set(labels) for labels in two]
    with pytest.raises(LabelError, match=r"sample 0 has one label, \('books', 'other'\); .* a tuple that is a node"):
        encode_sets(one, PATHS)
    mixed = [("books", "other"), ("toys", "carts")]
    assert is_multilabel(mixed, PATHS)
    with pytest.raises(LabelError, match=r"but sample 1 a set of labels, \('toys', 'carts'\)"):
        encode_sets(mixed, PATHS)
    h = Hierarchy.from_edges([("r", frozenset("ab")), ("r", "a")])
    assert not is_multilabel([frozenset("ab"), "a"], h)
    assert back(encode_sets([{frozenset("ab"), "a"}, {"a"}], h)).tolist() == [{frozenset("ab"), "a"}, {"a"}]


def test_polars_lists():
    y = pl.Series(SETS)
    assert y.dtype == pl.List
    assert is_multilabel(y)
    assert back(encode_sets(y, TREE)).tolist() == [sorted(labels) for labels in SETS]


def test_mixed_containers_come_back_as_lists():
    Pair = namedtuple("Pair", "a b")
    for y in ([["dog"], {"cat"}, ("oak",)], [Pair("dog", "cat")]):
        assert {type(labels) for labels in back(encode_sets(y, TREE))} == {list}


# -- labels ------------------------------------------------------------------------------------------------------------


def test_codes_are_sorted_and_without_duplicates():
    encoded = encode_sets([["rose", "dog", "rose", "dog"], ["cat"]], TREE)
    assert encoded.hierarchy.leaves == ("dog", "cat", "rose")  # oak is not used
    assert encoded.indptr.tolist() == [0, 2, 3]
    assert encoded.indices.tolist() == [0, 2, 1]
    assert encoded.class_leaves.tolist() == [1, 0, 2]
    assert (encoded.indptr.dtype, encoded.indices.dtype, encoded.class_leaves.dtype) == (np.int64, np.int32, np.int32)
    many = encode_sets([["cat"] * 256 + ["dog"]], TREE)
    assert many.indices.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        ([3, 1, 2], np.int64),
        ([np.int64(3), 1, np.int32(2)], np.int64),
        ([1.0, 2.0], np.float64),
        ([True, False], np.bool_),
        (["b", "a"], np.dtype("<U1")),
        ([3, "three", "3"], object),
        ([("a", 1), ("a", 2)], object),
        ([("a",), ("a", "b"), "a", 5], object),
        ([frozenset("ab"), frozenset("c")], object),
        (["a\0", "b"], object),
        ([2**63 + 1, -1], object),
        ([b"a", b"b"], object),
        ([range(2), range(3)], object),
    ],
)
def test_types(labels, dtype):
    y = [labels, labels[:1]]
    for hierarchy in (None, Hierarchy.from_edges([("the root", label) for label in labels])):
        encoded = encode_sets(y, hierarchy)
        assert encoded.classes.dtype == dtype
        assert set(encoded.classes.tolist()) == set(labels)
        found = back(encoded)
        assert found[0] == encoded.classes.tolist()
        assert found[1] == labels[:1]
        assert encode_sets(y[::-1], hierarchy).classes.tolist() == encoded.classes.tolist()


def test_inner_nodes_and_their_ancestors():
    y = [{"animal", "dog"}, {"dog"}, {"animal"}, {"life", "oak", "cat"}]
    encoded = encode_sets(y, TREE)
    assert VirtualLeaf("animal") in encoded.hierarchy
    assert VirtualLeaf("life") in encoded.hierarchy
    assert encoded.classes.tolist() == ["animal", "cat", "dog", "life", "oak"]
    assert back(encoded).tolist() == y  # dog alone is not dog and animal itself
    space = LabelSpace.for_labels(TREE, y)
    assert [set(labels) for labels in space.decode(space.encode(y))] == leaves_of(encoded)
    only = encode_sets([{"animal"}, {"oak"}], TREE)  # nothing below it is a label
    assert not only.hierarchy.is_virtual.any()
    assert only.hierarchy.is_leaf("animal")
    given = TREE.with_virtual_leaves(["animal"])
    assert back(encode_sets(y, given)).tolist() == y


def test_given_classes():
    encoded = encode_sets([["dog"], []], TREE, classes=["rose", "dog", "animal"], allow_empty=True)
    assert encoded.classes.tolist() == ["animal", "dog", "rose"]
    assert encoded.hierarchy.n_leaves == 3
    assert encode_sets([[], []], None, classes=["a"], allow_empty=True).indices.tolist() == []
    again = encode_sets(SETS, TREE, classes=pd.Index(["cat", "dog", "oak", "rose"]))
    assert leaves_of(again) == [set(labels) for labels in SETS]
    with pytest.raises(LabelError, match="y has 'oak', which is not in classes"):
        encode_sets(SETS, TREE, classes=["cat", "dog", "rose"])
    with pytest.raises(LabelError, match="classes must be different from each other, but 'cat' is there twice"):
        encode_sets(SETS, TREE, classes=["dog", "cat", "oak", "cat"])
    with pytest.raises(UnknownLabelError, match=r"'mouse' \(did you mean 'rose'\?\)$"):
        encode_sets(SETS, TREE, classes=["dog", "cat", "oak", "rose", "mouse"])
    with pytest.raises(LabelError, match="hashable"):
        encode_sets(SETS, TREE, classes=[["dog"]])
    with pytest.raises(LabelError, match="classes must be labels, not None"):
        encode_sets(SETS, TREE, classes=["dog", None])


def test_many_classes_do_not_look_like_a_regression():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode_sets([[i] for i in range(100)], None, classes=range(100))


# -- indicators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float16, np.float32, np.float64, object])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense(dtype, order):
    y = np.asarray(ONES, dtype=dtype, order=order)
    assert is_multilabel(y)
    encoded = encode_sets(y, TREE)
    assert encoded.classes.tolist() == list(TREE.leaves)
    assert encoded.class_leaves.tolist() == [0, 1, 2, 3]
    assert leaves_of(encoded) == [set(labels) for labels in SETS]
    found = back(encoded)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.int64
    assert found.tolist() == ONES.tolist()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("cls", ["array", "matrix"])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.float64])
def test_sparse(form, cls, dtype):
    y = getattr(sp, f"{form}_{cls}")(ONES.astype(dtype))
    assert is_multilabel(y)
    encoded = encode_sets(y, TREE)
    assert encoded.classes.tolist() == list(TREE.leaves)
    found = back(encoded)
    assert isinstance(found, sp.csr_array)
    assert found.dtype == np.int8
    assert found.toarray().tolist() == ONES.tolist()


def test_sparse_is_left_as_it_was():
    y = sp.csr_array((np.array([1, 0, 1]), np.array([3, 1, 0]), np.array([0, 3])), shape=(1, 4))
    assert leaves_of(encode_sets(y, TREE)) == [{"dog", "rose"}]
    assert y.indices.tolist() == [3, 1, 0]
    assert y.data.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame,
        pl.DataFrame,
        lambda data: pd.DataFrame(data).astype(bool),
        lambda data: pd.DataFrame(data).astype({"dog": bool, "cat": float}),
        lambda data: pd.DataFrame(data).astype("boolean"),
        lambda data: pd.DataFrame(data).astype("Int8"),
        lambda data: pd.DataFrame(data).astype(pd.SparseDtype(int, 0)),
        lambda data: pd.DataFrame(data, index=[7, 5, 3]),
        lambda data: pl.DataFrame(data).cast(pl.Boolean),
    ],
)
def test_frames(frame):
    columns = ["rose", "dog", "animal", "cat"]
    values = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 1]])
    y = frame({name: values[:, j].tolist() for j, name in enumerate(columns)})
    assert is_multilabel(y)
    encoded = encode_sets(y, TREE)
    assert encoded.classes.tolist() == columns  # so that predictions and scores have them too
    assert leaves_of(encoded) == [{"dog", "cat"}, {"rose", "animal"}, {"cat"}]
    assert back(encoded).tolist() == values.tolist()
    more = encode_sets(y, TREE, classes=["cat", "dog", "oak", "animal", "rose"])
    assert leaves_of(more) == leaves_of(encoded)
    assert back(more).tolist() == np.c_[values[:, [3, 1]], [0, 0, 0], values[:, [2, 0]]].tolist()
    with pytest.raises(LabelError, match="y has 'rose', which is not in classes"):
        encode_sets(y, TREE, classes=["dog", "animal", "cat", "oak"])


def test_names_of_columns():
    assert encode_sets(ONES, None).classes.tolist() == [0, 1, 2, 3]
    assert encode_sets(ONES, None, classes=list("dcba")).classes.tolist() == ["d", "c", "b", "a"]
    columns = ["oak", "life", "cat", "dog"]
    assert encode_sets(ONES, TREE, classes=columns).classes.tolist() == columns
    assert encode_sets(pd.DataFrame(ONES), TREE).classes.tolist() == list(TREE.leaves)  # 0, 1, ... are no names here
    assert encode_sets(pd.DataFrame(ONES), None).classes.tolist() == [0, 1, 2, 3]
    numbers = Hierarchy.from_edges([(9, k) for k in (3, 2, 1, 0)])
    assert encode_sets(ONES, numbers).classes.tolist() == [3, 2, 1, 0]
    assert encode_sets(pd.DataFrame(ONES), numbers).classes.tolist() == [0, 1, 2, 3]  # but here
    shifted = Hierarchy.from_edges([(0, 4), (1, 5), (2, 6), (3, 7)])
    assert encode_sets(pd.DataFrame(ONES), shifted).classes.tolist() == [4, 5, 6, 7]
    paths = pd.DataFrame([[1, 0], [1, 1]], columns=pd.MultiIndex.from_tuples([("toys", "cars"), ("books", "other")]))
    assert encode_sets(paths, PATHS).classes.tolist() == [("toys", "cars"), ("books", "other")]


def test_columns_without_samples_are_classes():
    encoded = encode_sets(np.array([[1, 0, 0, 0], [0, 1, 0, 0]]), TREE)
    assert encoded.hierarchy == TREE
    assert encoded.hierarchy.nodes == TREE.nodes


@pytest.mark.parametrize("wrap", [np.array, sp.csr_array, sp.coo_matrix])
def test_other_values(wrap):
    y = ONES.astype(float)
    for value in (2, -1, 0.5, np.nan, np.inf):
        y[1, 2] = value
        with pytest.raises(LabelError, match=f"0 and 1, but sample 1 has {float(value)} in column 2, 'oak'"):
            encode_sets(wrap(y), TREE)


@pytest.mark.parametrize(
    ("y", "found"),
    [
        (np.array([["dog", "cat"], ["oak", "oak"]]), "sample 0 has dog in column 0, 'a'"),
        (np.array([[1, "0"], [0, 1]], dtype=object), "sample 0 has 0 in column 1, 'b'"),
        (np.array([[1, 0], [None, 1]], dtype=object), "sample 1 has None in column 0, 'a'"),
        (np.array([[0, 1j]]), r"sample 0 has 0j in column 0"),
        (pd.DataFrame({"a": [1, 0], "b": pd.array([1, None], dtype="Int64")}), "sample 1 has (<NA>|nan) in column 1"),
        (pl.DataFrame({"a": [True, None], "b": [True, True]}), "sample 1 has None in column 0, 'a'"),
        (pd.DataFrame({"a": [["x"], 1], "b": [0, 1]}), r"sample 0 has \['x'\] in column 0"),
    ],
)
def test_matrices_of_something_else(y, found):
    assert is_multilabel(y)
    with pytest.raises(LabelError, match=found):
        encode_sets(y, None, classes=["a", "b"])


def test_bad_shapes_and_names():
    for y, hierarchy, classes, what in [
        (ONES[:, :3], TREE, None, "y has 3 columns, but there are 4 leaves: give label sets or a DataFrame"),
        (ONES, TREE, ["dog", "cat"], "y has 4 columns, but there are 2 classes"),
        (np.zeros((3, 0)), None, None, r"not of shape \(3, 0\)"),
        (np.zeros((3, 2, 2)), None, None, r"not of shape \(3, 2, 2\)"),
        (np.array(3), None, None, r"not of shape \(\)"),
        (sp.coo_array(np.ones(3)), None, None, r"not of shape \(3,\)"),
        (pd.DataFrame([[0, 1]], columns=["a", "a"]), None, None, "columns of y must be .* but 'a' is there twice"),
        (np.zeros((0, 2)), None, None, "0 sample"),
    ]:
        with pytest.raises(LabelError, match=what):
            encode_sets(y, hierarchy, classes=classes)
    with pytest.raises(UnknownLabelError, match=r"not in the hierarchy: 'catt' \(did you mean 'cat'\?\)"):
        encode_sets(pd.DataFrame({"dog": [1, 1], "catt": [0, 0]}), TREE)
    with pytest.raises(LabelError, match="columns of y must be labels, not nan"):
        encode_sets(pd.DataFrame([[0, 1]], columns=["a", None]), None)


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [[["dog"], [], ["cat"], []], np.eye(4, k=2).T[1:], sp.csr_array(np.eye(4, k=2).T[1:])])
def test_empty_sets(y):
    first = 0 if sp.issparse(y) or isinstance(y, np.ndarray) else 1
    with pytest.raises(LabelError, match=f"sample {first} has no label: .* allow_empty=True"):
        encode_sets(y, TREE)
    found = back(encode_sets(y, TREE, allow_empty=True))
    if sp.issparse(y):
        assert (found != y).nnz == 0
    else:
        assert found.tolist() == (y if isinstance(y, list) else y.tolist())


def test_nothing_at_all():
    assert is_multilabel([[], []])
    assert is_multilabel([(), ()], TREE)
    for y in ([], [[], []], [set()], np.zeros((0, 4))):
        with pytest.raises(LabelError, match="y has no labels"):
            encode_sets(y, TREE, allow_empty=True)
    zeros = encode_sets(np.zeros((3, 4)), TREE, allow_empty=True)
    assert zeros.indptr.tolist() == [0, 0, 0, 0]
    assert back(zeros).tolist() == np.zeros((3, 4)).tolist()
    assert zeros.decoded([0], []).shape == (0, 4)
    assert encode_sets(SETS, TREE).decoded([0], []).shape == (0,)


def test_unknown_labels():
    y = [["dog"], ["cat", "wolf"], ["catt"]]
    with pytest.raises(
        UnknownLabelError, match=r"'catt' \(did you mean 'cat'\?\); 'wolf'; first in sample 1$"
    ) as caught:
        encode_sets(y, TREE)
    assert caught.value.labels == ("catt", "wolf")
    with pytest.raises(UnknownLabelError, match="a str, but the label is a int"):
        encode_sets([{1}, {2}], Hierarchy.from_edges([("0", "1"), ("0", "2")]))
    with pytest.raises(UnknownLabelError, match="'toys'"):
        encode_sets([("toys", "carts")], PATHS)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_labels(missing):
    for hierarchy in (TREE, None):
        for bad in ([missing], ["dog", missing], {missing, "cat"}):
            with pytest.raises(LabelError, match="Input y contains NaN: sample 2 has"):
                encode_sets([["dog"], [], bad, ["cat"]], hierarchy, allow_empty=True)
        y = [{"dog"}, {"cat"}, missing]
        for wrapped in (y, objects(y), pd.Series(y, dtype=object)):
            assert is_multilabel(wrapped)
            with pytest.raises(LabelError, match=r"Input y contains NaN: sample 2 has .*drop samples"):
                encode_sets(wrapped, hierarchy)
    with pytest.raises(LabelError, match="sample 1 has None"):
        encode_sets(pl.Series([["dog"], None]), TREE)


def test_a_string_is_no_set():
    y = [{"dog", "cat"}, {"oak"}, "cat"]
    assert is_multilabel(y)
    message = r"sample 2 has one label, 'cat', but sample 0 a set of labels, \{.*\}; give every sample a set, or none$"
    with pytest.raises(LabelError, match=message):
        encode_sets(y, TREE)
    with pytest.raises(LabelError, match="sample 0 has one label, 'dog'; give every sample a set"):
        encode_sets(["dog", "cat"], TREE)
    for y in ("dog", None, 7):
        with pytest.raises(LabelError, match=f"expected a collection of label sets, not .*{y!r}"):
            encode_sets(y, TREE)
    with pytest.raises(LabelError, match=r"sample 1 has one label, \{'dog': 1\}"):
        encode_sets([["dog"], {"dog": 1}], TREE)


@pytest.mark.parametrize("bad", [[["dog"]], [("dog", ["cat"])], ["dog", {}], np.array([["dog", "cat"]])])
def test_labels_that_cannot_be_hashed(bad):
    with pytest.raises(LabelError, match="sample 2: a label must be hashable"):
        encode_sets([["dog"], ["dog", "cat"], bad, ["oak"]], TREE)


def test_an_indicator_in_lists_is_noticed():
    for y in (ONES.tolist(), ONES.astype(bool).tolist(), list(ONES), [(1, 1), (0, 1)]):
        with pytest.raises(LabelError, match=r"looks like rows of an indicator.*numpy\.array\(y\)"):
            encode_sets(y, None)
    assert leaves_of(encode_sets([[0, 1], [1]], None)) == [{0, 1}, {1}]
    assert leaves_of(encode_sets([[0], [1]], None)) == [{0}, {1}]
    assert leaves_of(encode_sets([[0, 1], [1, 0]], None)) == [{0, 1}, {0, 1}]


# -- there and back ----------------------------------------------------------------------------------------------------


@st.composite
def labelled(draw):
    h = draw(st.one_of(hierarchies(), st.sampled_from([TREE, FOREST, DAG, PATHS])))
    sets = st.sets(st.sampled_from(h.nodes), max_size=min(6, len(h.nodes)))
    return h, draw(st.lists(sets, min_size=1, max_size=8).filter(any))


@settings(max_examples=150, deadline=None)
@given(labelled(), st.sampled_from([set, frozenset, list, tuple]), st.booleans())
def test_round_trip_of_sets(problem, kind, flat):
    h, sets = problem
    encoded = encode_sets([kind(labels) for labels in sets], None if flat else h, allow_empty=True)
    found = back(encoded)
    assert [set(labels) for labels in found] == sets
    assert {type(labels) for labels in found} == {kind}
    assert leaves_of(encoded) == sets
    assert set(encoded.hierarchy.leaves) == set().union(*sets)
    if not flat:
        assert all(encoded.hierarchy.ancestors(label) == h.ancestors(label) for label in encoded.classes.tolist())
    names, order = encoded.classes.tolist(), encoded.hierarchy.leaves
    assert [order[k] for k in encoded.class_leaves] == names
    if kind in (list, tuple):
        assert all([names.index(label) for label in labels] == sorted(map(names.index, labels)) for labels in found)
    again = encode_sets(found, encoded.hierarchy, allow_empty=True, classes=encoded.classes)
    assert again.hierarchy.nodes == encoded.hierarchy.nodes  # a fitted model reads y as it did before
    assert again.indices.tolist() == encoded.indices.tolist()
    assert again.indptr.tolist() == encoded.indptr.tolist()
    assert again.classes.tolist() == names


@settings(max_examples=100, deadline=None)
@given(hierarchies(), st.data())
def test_round_trip_of_indicators(h, data):
    columns = data.draw(st.lists(st.sampled_from(h.nodes), min_size=1, max_size=8, unique=True))
    n = data.draw(st.integers(1, 6))
    bits = st.lists(st.booleans(), min_size=n * len(columns), max_size=n * len(columns))
    y = np.array(data.draw(bits)).reshape(n, len(columns))
    dense = encode_sets(y, h, allow_empty=True, classes=columns)
    sets = encode_sets([{columns[j] for j in np.flatnonzero(row)} for row in y], h, allow_empty=True, classes=columns)
    assert dense.classes.tolist() == columns
    assert dense.indices.tolist() == sets.indices.tolist()
    assert dense.indptr.tolist() == sets.indptr.tolist()
    assert back(dense).tolist() == y.astype(int).tolist()
    frame = encode_sets(pd.DataFrame(y, columns=pd.Index(columns, dtype=object)), h, allow_empty=True, classes=columns)
    assert back(frame).tolist() == y.astype(int).tolist()
    sparse = back(encode_sets(sp.coo_array(y), h, allow_empty=True, classes=columns))
    assert sparse.toarray().tolist() == y.astype(int).tolist()


def test_decoding_takes_any_order():
    encoded = encode_sets(SETS, TREE)
    found = encoded.decoded(np.array([0, 3, 4]), np.array([2, 0, 2, 1]))
    assert found.tolist() == [["dog", "oak"], ["cat"]]
    dense = encode_sets(ONES, TREE)
    assert dense.decoded([0, 3, 4], [2, 0, 2, 1]).tolist() == [[1, 0, 1, 0], [0, 1, 0, 0]]
