"""Answers of fitted models, and Theorem 1 on them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from estimators.problems import HIERARCHIES, TREE, make, score_bound
from nhsvm import HSVM, NHSVM, FlatSVM, Hierarchy
from nhsvm.errors import DataError, OptionError
from nhsvm.weights import Power

ALL = [FlatSVM, HSVM, NHSVM]


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_scores(cls, name, sparse, tol):
    h = HIERARCHIES[name]
    X, y = make(h, noise=2.0, sparse=sparse)
    model = cls(h, tol=tol).fit(X, y)
    nodes, scores = model.node_scores(X), model.decision_function(X)
    assert nodes.shape == (90, model.hierarchy_.n_nodes)
    assert scores.shape == (90, len(model.classes_))
    assert model.coef_.dtype == (np.float32 if tol == 1e-3 else np.float64)
    np.testing.assert_allclose(nodes, X @ model.coef_.T + model.intercept_, rtol=1e-4, atol=1e-4)
    for k, label in enumerate(model.classes_):
        above = [model.hierarchy_.number(n) for n in model.hierarchy_.closure(label)]
        np.testing.assert_allclose(scores[:, k], nodes[:, above].sum(axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    other = X.toarray() if sparse else sp.csr_array(X)
    np.testing.assert_allclose(model.decision_function(other), scores, rtol=1e-4, atol=1e-4)


def test_two_classes():
    X, y = make(labels=["dog", "oak"])
    model = NHSVM(TREE).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (90,)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(scores > 0).astype(int)])


def test_the_first_class_wins_among_equals():
    """In the order of classes_, not of the leaves of the hierarchy: as argmax of decision_function."""
    h = Hierarchy.from_edges([("r", "b"), ("r", "a"), ("r", "c")])
    model = NHSVM(h, fit_intercept=False).fit(np.eye(3), ["a", "b", "c"])
    zero = np.zeros((1, 3))
    assert model.hierarchy_.leaves == ("b", "a", "c")
    assert model.predict(zero).tolist() == ["a"]
    assert model.predict_topk(zero, 3).tolist() == [["a", "b", "c"]]
    two = NHSVM(h, fit_intercept=False).fit(np.eye(3)[:2], ["b", "a"])
    assert two.decision_function(zero) == 0
    assert two.predict(zero).tolist() == ["a"]


@pytest.mark.parametrize("k", [1, 2, 4, 5, 100, np.int64(2)])
def test_topk(k):
    X, y = make(HIERARCHIES["forest"], noise=3.0)
    model = NHSVM(HIERARCHIES["forest"]).fit(X, y)
    best = model.predict_topk(X, k)
    expected = np.argsort(-model.decision_function(X), axis=1, kind="stable")[:, : min(k, 5)]
    np.testing.assert_array_equal(best, model.classes_[expected])
    np.testing.assert_array_equal(best[:, 0], model.predict(X))
    for bad in (0, -1, 1.5, "2", None, True):
        with pytest.raises(OptionError, match="k must be"):
            model.predict_topk(X, bad)


def test_not_fitted():
    X, _ = make()
    model = NHSVM(TREE, probability=True)
    for method in ("predict", "decision_function", "node_scores", "predict_topk", "predict_proba", "predict_partial"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)
    for attribute in ("coef_", "intercept_"):
        with pytest.raises(NotFittedError):
            getattr(model, attribute)


def test_more_samples_than_a_chunk():
    X, y = make()
    model = NHSVM(TREE).fit(X, y)
    many = np.tile(X, (600, 1))
    np.testing.assert_array_equal(model.predict(many), np.tile(model.predict(X), 600))


def with_copies(h, copied):
    """Two copies above some nodes, in a chain: they belong to the same labels as the node."""
    top = {n: ("copy", n) if n in copied else n for n in h.nodes}
    edges = [(parent, top[child]) for parent, child in h.edges()]
    for n in copied:
        edges += [(("copy", n), ("copy of copy", n)), (("copy of copy", n), n)]
    return Hierarchy.from_edges(edges)


def on_both(copied, make_model):
    X, y = make(n_samples=60, n_features=3, noise=1.5)
    grid = 3 * np.random.default_rng(1).normal(size=(2000, 3))
    models = [make_model(h).fit(X, y) for h in (TREE, with_copies(TREE, copied))]
    return models, [m.decision_function(grid) for m in models], grid


def differences(scores):
    return scores - scores[:, :1]


COPIED = [["animal"], ["dog"], ["plant", "rose", "cat"]]


@pytest.mark.parametrize("copied", COPIED)
@pytest.mark.parametrize("margin", ["loss", "normalized"])
def test_copies_of_nodes_do_not_move_the_boundary_near_rho_1(copied, margin):
    """Theorem 1 on trained models. (Nearer to 1, siblings have so little weight of their own that none is learned.)"""
    moved, wrong = {}, {}
    for rho in (2.0, 1.05):
        options = {"weights": Power(rho=rho), "margin": margin, "tol": 1e-8, "C": 0.1}
        models, scores, grid = on_both(copied, lambda h, options=options: NHSVM(h, **options))
        assert models[0].hierarchy_.n_nodes < models[1].hierarchy_.n_nodes
        assert score_bound(models, grid) < 0.1
        moved[rho] = abs(differences(scores[0]) - differences(scores[1])).max()
        wrong[rho] = (models[0].predict(grid) != models[1].predict(grid)).mean()
    assert moved[1.05] < 0.01 < 0.5 < moved[2.0]
    assert wrong[1.05] < 0.001 < 0.01 < wrong[2.0]


@pytest.mark.parametrize("copied", COPIED)
def test_copies_of_nodes_move_the_boundary_of_hsvm(copied):
    models, scores, grid = on_both(copied, lambda h: HSVM(h, loss="zero_one", tol=1e-8, C=0.1))
    assert abs(differences(scores[0]) - differences(scores[1])).max() > 0.1
    assert (models[0].predict(grid) != models[1].predict(grid)).mean() > 0.01


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("method", ["predict", "decision_function", "node_scores"])
def test_values_too_large_to_score_are_refused(sparse, method):
    X, y = make(TREE)
    model = NHSVM(TREE).fit(X, y)
    X = X.astype(np.float64) * 1e200
    with pytest.raises(DataError, match=r"X has values up to .*e\+20\d, too large to compute with"):
        getattr(model, method)(sp.csr_array(X) if sparse else X)
