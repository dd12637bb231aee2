"""What y may be."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from estimators.problems import DAG, TREE, make
from nhsvm import HSVM, NHSVM, FlatSVM, Hierarchy
from nhsvm.errors import LabelError, UnknownLabelError
from nhsvm.hierarchy import VirtualLeaf


def fitted(y, hierarchy=None, **options):
    X, _ = make(n_samples=len(y))
    X = X + 3 * np.eye(6)[pd.factorize(pd.Series([repr(label) for label in y]))[0] % 6]
    model = NHSVM(hierarchy, **options).fit(X, y)
    return model, model.predict(X)


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        np.array,
        pd.Series,
        pl.Series,
        pd.Categorical,
        lambda y: pd.Series(y, dtype="category"),
        lambda y: pl.Series(y, dtype=pl.Categorical),
        lambda y: np.array(y, dtype=object),
        lambda y: pd.Series(y, index=range(5, 5 + len(y))),
    ],
)
def test_containers(wrap):
    X, y = make()
    model = NHSVM(TREE).fit(X, wrap(y))
    assert model.classes_.tolist() == ["cat", "dog", "oak", "rose"]
    assert model.predict(X).tolist() == NHSVM(TREE).fit(X, y).predict(X).tolist()
    assert model.score(X, wrap(y)) > 0.8


def test_a_column_is_flattened_with_a_warning():
    X, y = make()
    with pytest.warns(sklearn_conversion(), match="column-vector"):
        NHSVM(TREE).fit(X, np.array(y)[:, None])


def sklearn_conversion():
    from sklearn.exceptions import DataConversionWarning

    return DataConversionWarning


@pytest.mark.parametrize(
    "labels",
    [
        [1, 2, 3],
        [np.int64(1), 2, np.int32(3)],
        [True, False],
        [1.0, 2.0],
        ["a", "b", "c"],
        [("a", 1), ("a", 2), ("b", 1)],
        [("a",), ("a", "b"), ("b",)],
        [3, "three", "3"],
        [("a",), "a", 5, 2.5],
        [frozenset("ab"), frozenset("c")],
    ],
)
def test_types(labels):
    y = [labels[i % len(labels)] for i in range(60)]
    model, predicted = fitted(y, C=10)
    assert set(model.classes_.tolist()) == set(labels)
    assert sum(a == b for a, b in zip(predicted.tolist(), y, strict=True)) > 40
    assert {type(a) for a in predicted.tolist()} <= {type(b.item() if isinstance(b, np.generic) else b) for b in labels}
    root = Hierarchy.from_edges([("the root", label) for label in labels])
    assert fitted(y, root, C=10)[0].classes_.tolist() == model.classes_.tolist()
    back = y[::-1]
    assert fitted(back)[0].classes_.tolist() == model.classes_.tolist()  # whatever the order of samples
    assert model.score(make(n_samples=60)[0], y) <= 1


def test_tuples_in_arrays_and_series():
    y = [("a", i % 3) for i in range(30)]
    array = np.empty(30, dtype=object)
    array[:] = y
    for given in (array, pd.Series(y)):
        model, _ = fitted(given)
        assert model.classes_.tolist() == [("a", 0), ("a", 1), ("a", 2)]


def test_numpy_and_python_integers_are_the_same_label():
    h = Hierarchy.from_edges([(10, 1), (10, 2), (20, 3)])
    y = np.array([1, 2, 3] * 10)
    model, predicted = fitted(y, h)
    assert model.classes_.dtype == y.dtype
    assert predicted.dtype == y.dtype
    assert fitted(y.tolist(), h)[1].tolist() == predicted.tolist()


def test_labels_on_inner_nodes():
    X, y = make(labels=["animal", "dog", "cat", "life", "rose"], noise=0.1)
    for cls in (FlatSVM, HSVM, NHSVM):
        model = cls(TREE, C=100).fit(X, y)
        assert model.classes_.tolist() == ["animal", "cat", "dog", "life", "rose"]
        assert model.score(X, y) == 1
        assert model.hierarchy_.is_virtual.sum() == 2
        assert VirtualLeaf("animal") in model.hierarchy_
        assert "oak" not in model.hierarchy_
        assert set(model.predict_topk(X, 2).ravel().tolist()) <= set(y)


def test_an_inner_node_without_the_labels_below_is_a_leaf():
    X, y = make(labels=["animal", "oak"])
    model = NHSVM(TREE).fit(X, y)
    assert set(model.hierarchy_.nodes) == {"life", "animal", "plant", "oak"}
    assert model.decision_function(X).shape == (len(y),)


def test_unknown_labels_before_any_work():
    X, y = make()
    y[3] = "wolf"
    y[5] = "catt"
    with pytest.raises(UnknownLabelError, match=r"not in the hierarchy: 'catt' \(did you mean 'cat'\?\); 'wolf'"):
        NHSVM(TREE).fit(X * np.nan, y)
    with pytest.raises(UnknownLabelError, match="a str, but the label is a int"):
        NHSVM(Hierarchy.from_edges([("0", "1"), ("0", "2")])).fit(X, [1, 2] * 45)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_labels(missing):
    X, y = make()
    y[4] = missing
    for given in (y, np.array(y, dtype=object), pd.Series(y, dtype=object)):
        with pytest.raises(LabelError, match="Input y contains NaN: sample 4"):
            NHSVM().fit(X, given)


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_numbers_that_are_no_labels(value, what):
    X, _ = make()
    y = np.arange(90) % 3.0
    y[8] = value
    with pytest.raises(LabelError, match=f"Input y contains {what}: sample 8"):
        NHSVM().fit(X, y)
    with pytest.raises(LabelError, match="continuous"):
        NHSVM().fit(X, np.linspace(0, 1, 90))


def test_bad_labels():
    X, y = make()
    for bad, what in [
        (None, "requires y to be passed"),
        ([[label] for label in y[1:]] + ["dog"], "sample 89 has one label, 'dog', but sample 0 a set of labels"),
        ([{"dog"}] * 89 + [set()], "sample 89 has no label"),
        (np.zeros((90, 2)), "2 columns, but there are 4 leaves"),
        (np.zeros((90, 4)), "sample 0 has no label"),
        (np.zeros((90, 4, 2)), "dim 3"),
        ([b"a", b"b"] * 45, "bytes"),
        ([], "0 sample"),
        (np.array([{}] * 90, dtype=object), r"hashable, but sample 0 has \{\}"),
        (y[1:], "X has 90 rows, but y has 89 labels"),
    ]:
        with pytest.raises(LabelError, match=what):
            NHSVM(TREE).fit(X, bad)


def test_label_sets_where_one_label_is_needed():
    X, y = make()
    model = NHSVM(TREE).fit(X, y)
    for sets in ([[label] for label in y], [{label} for label in y]):
        with pytest.raises(LabelError, match="one label a sample is needed"):
            model.score(X, sets)
        with pytest.raises(LabelError, match="one label a sample is needed"):
            NHSVM(TREE, solver="sgd").partial_fit(X, sets, classes=TREE.leaves)
    with pytest.raises(LabelError, match="one label a sample is needed"):
        NHSVM(TREE, solver="sgd").partial_fit(X, [("dog", "cat")] * 90, classes=[("dog", "cat")])


def test_many_classes_are_nothing_to_warn_of():
    h = Hierarchy.from_edges([("all", k) for k in range(30)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NHSVM(h).fit(np.eye(30), np.arange(30))


def test_one_class():
    X, _ = make(n_samples=5)
    for hierarchy in (None, TREE):
        model = NHSVM(hierarchy, probability=True).fit(X, ["dog"] * 5)
        assert model.predict(X).tolist() == ["dog"] * 5
        assert model.gap_ == 0
        assert model.predict_proba(X).tolist() == [[1.0]] * 5


def test_dag():
    X, y = make(DAG, n_samples=120, noise=0.3)
    model = NHSVM(DAG, C=10).fit(X, y)
    assert model.score(X, y) > 0.95
    assert not model.hierarchy_.is_tree
