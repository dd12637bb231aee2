"""Explanations add up to the scores they explain."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from estimators.problems import DAG, FOREST, TREE, make, make_sets
from nhsvm import HSVM, NHSVM, SSVM, FlatSVM, Hierarchy
from nhsvm.errors import DataError, LabelError, OptionError, UnknownLabelError

HIERARCHIES = {"tree": TREE, "forest": FOREST, "dag": DAG}
MODELS = [FlatSVM, HSVM, NHSVM, SSVM]
CLOSE = {"rtol": 0, "atol": 1e-9}
SINGLE = {"rtol": 0, "atol": 2e-5}  # weights of coarse fits, and so the scores, are single precision


def adds_up(e):
    """The parts of an explanation, summed both ways, are its score."""
    per_node = e.contributions.sum(axis=1) + e.rest + e.intercepts + e.offsets
    np.testing.assert_allclose(per_node, [node.score for node in e.nodes], **CLOSE)
    total = e.feature_scores.sum() + e.rest.sum() + e.intercepts.sum() + e.offsets.sum()
    np.testing.assert_allclose([per_node.sum(), total], e.score, **CLOSE)


@pytest.fixture(scope="module")
def tree_model():
    return NHSVM(TREE, tol=1e-6).fit(*make())


@pytest.fixture(scope="module")
def set_model():
    return NHSVM(DAG, C=1, tol=1e-2, leaf_offset=-0.5).fit(*make_sets(DAG))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("kind", MODELS)
def test_one_label_each(kind, name, sparse):
    h = HIERARCHIES[name]
    X, y = make(h, sparse=sparse)
    model = kind(h, tol=1e-6).fit(X, y)
    some = X[:4]
    scores, predicted = model.decision_function(some), model.predict(some)
    node_scores = model.node_scores(some)
    found = model.explain(some, list(model.classes_), top=2)
    assert [(e.row, e.label) for e in found] == [(i, label) for i in range(4) for label in model.classes_]
    for e in found:
        adds_up(e)
        assert e.predicted == (predicted[e.row] == e.label)
        assert {node.node for node in e.nodes} == model.hierarchy_.closure(e.label)
        own = [node_scores[e.row, model.hierarchy_.number(node.node)] for node in e.nodes]
        np.testing.assert_allclose([node.score for node in e.nodes], own, **CLOSE)
        assert len(e.features) <= 2
        assert not e.shared
    np.testing.assert_allclose([e.score for e in found], scores.ravel(), **CLOSE)


@pytest.mark.parametrize("kind", MODELS)
def test_by_default_what_is_predicted(kind):
    X, y = make()
    model = kind(TREE).fit(X, y)
    found = model.explain(X)
    assert [e.label for e in found] == model.predict(X).tolist()
    assert all(e.predicted for e in found)
    np.testing.assert_allclose([e.score for e in found], model.decision_function(X).max(axis=1), **SINGLE)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("kind", [FlatSVM, NHSVM, SSVM])
def test_label_sets(kind, name, sparse):
    h = HIERARCHIES[name]
    X, y = make_sets(h, sparse=sparse)
    model = kind(h, tol=1e-2, leaf_offset=-0.5).fit(X, y)
    model.model_ = replace(model.model_, offsets=np.linspace(-0.3, 0.3, model.hierarchy_.n_nodes))
    predicted, gains = model.predict(X[:6]), model.decision_function(X[:6])
    found = model.explain(X[:6], list(model.classes_))
    np.testing.assert_allclose([e.score for e in found], gains.ravel(), **SINGLE)
    for e in found:
        adds_up(e)
        assert e.predicted == (e.label in predicted[e.row])
    some = model.explain(X[:6])
    assert [{e.label for e in some.of_row(i)} for i in range(6)] == list(predicted)


def test_nodes_that_other_labels_have_do_not_count(set_model):
    X, _ = make_sets(DAG)
    predicted = set_model.predict(X)
    row = next(i for i, some in enumerate(predicted) if {"x1", "x2"} <= some)
    e = next(e for e in set_model.explain(X[row]) if e.label == "x1")
    assert [node.node for node in e.nodes] == ["x1"]
    assert {"a", "b", "x"} == {node.node for node in e.shared}
    own = set_model.node_scores(X[row : row + 1])[0]
    for node in e.shared:
        assert node.score == pytest.approx(own[DAG.number(node.node)] - 0.5 * DAG.is_leaf(node.node), abs=2e-5)
    assert "shared, so not counted: a " in str(e)


def test_why_one_rather_than_the_other(tree_model):
    X, _ = make()
    scores = tree_model.decision_function(X[:5])
    at = {label: k for k, label in enumerate(tree_model.classes_)}
    for e in tree_model.explain(X[:5], ["dog", "oak"], against="cat"):
        adds_up(e)
        assert e.score == pytest.approx(scores[e.row, at[e.label]] - scores[e.row, at["cat"]], abs=1e-9)
        mine = [node.node for node in e.nodes if not node.against]
        theirs = [node.node for node in e.nodes if node.against]
        shared = [node.node for node in e.shared]
        if e.label == "dog":
            assert (mine, theirs, shared) == (["dog"], ["cat"], ["animal"])
        else:
            assert (mine, theirs, shared) == (["plant", "oak"], ["animal", "cat"], [])


def test_a_contrast_of_label_sets(set_model):
    X, _ = make_sets(DAG)
    gains = set_model.decision_function(X[:6])
    at = {label: k for k, label in enumerate(set_model.classes_)}
    for e in set_model.explain(X[:6], list(set_model.classes_), against="y"):
        adds_up(e)
        assert e.score == pytest.approx(gains[e.row, at[e.label]] - gains[e.row, at["y"]], abs=2e-5)


def test_two_classes_have_one_decision():
    X, y = make(TREE, labels=["dog", "oak"])
    model = NHSVM(TREE, tol=1e-6).fit(X, y)
    found = model.explain(X[:5], "oak", against="dog")
    np.testing.assert_allclose([e.score for e in found], model.decision_function(X[:5]), **CLOSE)


def test_a_label_on_an_inner_node():
    X, y = make(TREE, labels=["animal", "dog", "oak"])
    model = NHSVM(TREE, tol=1e-6).fit(X, y)
    e = model.explain(X[0], "animal")[0]
    assert e.label == "animal"
    assert [str(node) for node in e.nodes] == ["life", "animal", "(animal itself)"]
    assert e.score == pytest.approx(model.decision_function(X[:1])[0, list(model.classes_).index("animal")], abs=1e-9)
    nodes = e.to_dict()["nodes"]
    assert [(node["node"], node["itself"]) for node in nodes][-2:] == [("animal", False), ("animal", True)]
    assert "(animal itself)" in str(e)


def test_an_inner_node_that_is_no_class(tree_model):
    X, _ = make()
    e = tree_model.explain(X[0], "plant")[0]
    own = tree_model.node_scores(X[:1])[0]
    assert e.score == pytest.approx(own[TREE.number("life")] + own[TREE.number("plant")], abs=1e-9)
    assert not e.predicted
    assert tree_model.explain(X[0], "animal")[0].predicted


def test_top_and_names(tree_model):
    X, _ = make()
    names = [f"word {j}" for j in range(6)]
    short, long = (tree_model.explain(X[0], feature_names=names, top=top)[0] for top in (2, None))
    assert len(short.features), len(long.features) == (2, 6)
    assert short.n_rest == 4
    assert long.n_rest == 0
    assert short.features == long.features[:2]
    assert (np.diff(np.abs(long.feature_scores)) <= 0).all()
    order = [names.index(name) for name in long.features]
    np.testing.assert_array_equal(long.values, X[0, order])
    np.testing.assert_allclose(short.score, long.score, **CLOSE)


def test_forms_of_one_sample(tree_model):
    X, y = make()
    expected = str(tree_model.explain(X[:1]))
    for one in (
        X[0],
        X[0].tolist(),
        sp.csr_array(X[:1]),
        sp.coo_array(X[:1]),
        sp.csr_matrix(X[:1]),
        sp.coo_array(X[0]),
    ):
        assert str(tree_model.explain(one)) == expected
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = NHSVM(TREE, tol=1e-6).fit(frame, y)
    assert str(model.explain(frame.iloc[0])) == str(model.explain(frame[:1]))
    assert set(model.explain(frame[:1])[0].features) == set("abcdef")


def test_forms_of_labels(tree_model):
    X, _ = make()
    for labels in (["oak", "cat"], np.array(["oak", "cat"])):
        assert [e.label for e in tree_model.explain(X[0], labels)] == ["oak", "cat"]
    assert [e.label for e in tree_model.explain(X[0], {"oak", "cat"})] == ["cat", "oak"]
    h = Hierarchy.from_paths([("a", "x"), ("b", "x")], qualified=True)
    model = FlatSVM(h).fit([[0.0, 1.0], [1.0, 0.0]], [("a", "x"), ("b", "x")])
    (e,) = model.explain([1.0, 0.0], ("a", "x"))
    assert e.label == ("a", "x")
    assert e.to_dict()["label"] == ["a", "x"]
    frozen = Hierarchy.from_edges([], nodes=[frozenset("a"), frozenset("b")])
    model = FlatSVM(frozen, tol=1e-6).fit([[0.0, 1.0], [1.0, 0.0]], [frozenset("a"), frozenset("b")])
    (e,) = model.explain([1.0, 0.0], frozenset("a"))
    assert e.to_dict()["label"] == "frozenset({'a'})"


def test_an_empty_set_is_said():
    X, y = make_sets(TREE, empty=True)
    model = NHSVM(TREE, allow_empty=True).fit(X, y)
    predicted = model.predict(X)
    empty = next(i for i, some in enumerate(predicted) if not some)
    full = next(i for i, some in enumerate(predicted) if some)
    assert str(model.explain(X[empty])) == "no label: the best label set is empty"
    found = model.explain(X[[empty, full]])
    assert {e.row for e in found} == {1}
    assert str(found).startswith("sample 0\n\nno label: the best label set is empty\n\nsample 1\n\n")


def test_a_sample_without_features():
    X, y = make(sparse=True)
    model = NHSVM(TREE, tol=1e-6).fit(X, y)
    e = model.explain(sp.csr_array((1, 6)))[0]
    adds_up(e)
    assert e.features == ()
    assert e.score == pytest.approx(model.decision_function(sp.csr_array((1, 6))).max(), abs=1e-9)


def test_after_loading(tree_model, tmp_path):
    from nhsvm import load

    X, _ = make()
    tree_model.save(tmp_path / "m.nhsvm")
    assert str(load(tmp_path / "m.nhsvm").explain(X[:2])) == str(tree_model.explain(X[:2]))


def test_json(tree_model):
    X, _ = make()
    found = tree_model.explain(X[:2], top=3)
    back = json.loads(json.dumps(found.to_dict()))["explanations"]
    assert len(back) == len(found) == 2
    first = back[0]
    total = sum(
        sum(node["features"].values()) + node["other_features"] + node["intercept"] + node["offset"]
        for node in first["nodes"]
    )
    assert total == pytest.approx(first["score"], abs=1e-9)
    assert first["label"] == "dog"
    assert [feature["name"] for feature in first["features"]] == list(found[0].features)


def test_as_text():
    h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    X, y = [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]], ["dog", "cat", "oak"]
    model = FlatSVM(h, tol=1e-6, fit_intercept=False).fit(X, y)
    found = model.explain([1, 1, 0, 0], feature_names=["legs", "barks", "purrs", "leaves"])
    lines = str(found).splitlines()
    assert lines[0] == f"dog: score {found[0].score:.3f} (predicted)"
    assert lines[1] == "          dog     sum"
    assert lines[-1] == "without weight: animal"
    assert repr(found) == "<1 explanations of 1 samples: print() shows them>"
    assert found[:1] == (found[0],)


def test_offsets_and_labels_without_weight_as_text(set_model):
    X, _ = make_sets(DAG)
    e = set_model.explain(X[0], "y")[0]
    (row,) = (line.split() for line in str(e).splitlines() if line.startswith("offset"))
    assert row[-1] == "-0.500"
    X, y = make()
    nothing = FlatSVM(TREE).fit(X, y).explain(X[0], "animal")[0]
    assert str(nothing) == "animal: score 0.000 (predicted)\nwithout weight: life, animal"


def test_numbers_of_numpy_are_plain():
    h = Hierarchy.from_edges([], nodes=list(np.array([3, 5])))
    model = FlatSVM(h).fit([[0.0, 1.0], [1.0, 0.0]], [3, 5])
    assert json.dumps(model.explain([0.0, 1.0], np.int64(3)).to_dict()["explanations"][0]["label"]) == "3"


def test_many_nodes_are_summed_up():
    chain = [f"node {k}" for k in range(12)]
    h = Hierarchy.from_paths([chain, ["other"]])
    X, y = make(h)
    e = HSVM(h).fit(X, y).explain(X[0], chain[-1])[0]
    text = str(e)
    assert "6 more nodes" in text
    last = text.splitlines()[-1].split()
    assert sum(map(float, last[1:-1])) == pytest.approx(float(last[-1]), abs=0.005)


def test_long_names_are_cut(tree_model):
    X, _ = make()
    text = str(tree_model.explain(X[0], feature_names=["w" * 99, "", "two\nlines", "a", "b", "c"]))
    assert "…" + "w" * 27 + " " in text
    h = Hierarchy.from_edges([], nodes=["a" * 60, "b" * 60])
    model = FlatSVM(h).fit([[0.0, 1.0], [1.0, 0.0]], ["a" * 60, "b" * 60])
    assert "-…" + "b" * 23 + " " in str(model.explain([0.0, 1.0], "a" * 60, against="b" * 60))
    assert "''" in text
    assert "two lines" in text


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"labels": "dgo"}, UnknownLabelError, "did you mean 'dog'"),
        ({"labels": ["dog", "dgo"]}, UnknownLabelError, "dgo"),
        ({"labels": {}}, LabelError, "hashable"),
        ({"labels": []}, OptionError, "labels is empty"),
        ({"against": "tree"}, UnknownLabelError, "tree"),
        ({"top": 0}, OptionError, "top must be"),
        ({"top": 2.0}, OptionError, "top must be"),
        ({"top": True}, OptionError, "top must be"),
        ({"feature_names": ["a"]}, OptionError, "6 names, one a feature, not 1 names"),
        ({"feature_names": "abcdef"}, OptionError, "not 'abcdef'"),
        ({"feature_names": 3}, OptionError, "not 3"),
    ],
)
def test_bad_options(tree_model, options, error, said):
    with pytest.raises(error, match=said):
        tree_model.explain(make()[0][0], **options)


def test_bad_samples(tree_model):
    with pytest.raises(DataError, match="expecting 6 features"):
        tree_model.explain([1.0, 2.0])
    with pytest.raises(DataError, match="row 0, column 1"):
        tree_model.explain([1.0, np.nan, 0, 0, 0, 0])
    with pytest.raises(NotFittedError):
        NHSVM().explain([1.0])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_strongest_features(sparse):
    X, y = make(TREE, labels=["animal", "dog", "oak"], sparse=sparse)
    model = NHSVM(TREE, tol=1e-6).fit(X, y)
    for number, node in enumerate(model.hierarchy_.nodes):
        found = model.strongest_features(node, None)
        weights = model.coef_[number]
        assert dict(found) == {f"x{j}": w for j, w in enumerate(weights.tolist()) if w}
        assert (np.diff(np.abs([w for _, w in found])) <= 1e-9).all()
        assert model.strongest_features(node, 2) == found[:2]
    assert model.strongest_features("life") == []  # above all labels, so without weight
    assert [name for name, _ in model.strongest_features("dog", 1, feature_names=["w"] * 6)] == ["w"]
    with pytest.raises(UnknownLabelError, match="did you mean 'dog'"):
        model.strongest_features("dgo")
    with pytest.raises(OptionError, match="top must be"):
        model.strongest_features("dog", 0)
    with pytest.raises(NotFittedError):
        NHSVM().strongest_features("dog")
