"""Probabilities of models of label sets."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from nhsvm import NHSVM, FlatSVM, Hierarchy, load
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.model import read_model, write_model

DAG = Hierarchy.from_edges([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2"), ("a", "c"), ("b", "c")])
TREE = Hierarchy.from_edges([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2"), ("b", "c")])
LABELS = ["a1", "a2", "b1", "b2", "c"]


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    member = X @ np.random.default_rng(5).normal(size=(6, 5)) + rng.normal(size=(n, 5)) > 1
    member[~member.any(axis=1), 0] = True
    return X, [[LABELS[k] for k in np.flatnonzero(row)] for row in member], member


@pytest.mark.parametrize("h", [DAG, TREE], ids=["dag", "tree"])
@pytest.mark.parametrize("kind", [NHSVM, FlatSVM])
def test_probabilities_are_calibrated(h, kind):
    X, y, _ = data()
    model = kind(h, probability=True, cv=3, tol=1e-2).fit(X, y)
    fresh, _, member = data(1000, seed=1)
    P = model.predict_proba(fresh)
    assert P.shape == (1000, 5)
    np.testing.assert_allclose(P.mean(axis=0), member.mean(axis=0), atol=0.06)
    for k in range(5):
        sure = P[:, k] > 0.7
        assert member[sure, k].mean() > 0.6
        assert member[P[:, k] < 0.1, k].mean() < 0.2
    nodes = model.node_proba(fresh)
    parent, child = model.hierarchy_.graph.edges()
    assert (nodes[:, child] <= nodes[:, parent]).all()
    np.testing.assert_allclose(model.predict_log_proba(fresh), np.log(P))


def test_labels_of_one_sample_count_above_them():
    own = [f"own{k}" for k in range(60)]
    h = Hierarchy.from_edges([("a", "a1"), ("a", "a2"), *(("b", label) for label in own)])
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = [["a1", own[k]] if k < 60 else ["a2"] for k in range(120)]
    model = FlatSVM(h, probability=True, cv=3, tol=1e-2).fit(X, y)
    node = dict(zip(model.hierarchy_.nodes, model.node_proba(X).mean(axis=0), strict=True))
    assert node["b"] == pytest.approx(0.5, abs=0.05)
    assert node["a1"] == pytest.approx(0.5, abs=0.05)
    assert max(node[label] for label in own) < 0.1


def test_offsets_do_not_spoil_them():
    X, y, _ = data()
    model = NHSVM(TREE, probability=True, offsets="example_jaccard", cv=3, tol=1e-2).fit(X, y)
    fresh, _, member = data(1000, seed=1)
    np.testing.assert_allclose(model.predict_proba(fresh).mean(axis=0), member.mean(axis=0), atol=0.06)


def test_files_keep_them(tmp_path):
    X, y, _ = data()
    model = NHSVM(DAG, probability=True, cv=3, tol=1e-2).fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").node_proba(X), model.node_proba(X))


@pytest.mark.parametrize("field", ["slope", "intercept", "directions", "shares"])
def test_curves_that_do_not_fit_are_refused(tmp_path, field):
    X, y, _ = data(60)
    model = NHSVM(DAG, probability=True, cv=3, tol=1e-2).fit(X, y)
    curves = model.model_.curves
    model.model_ = replace(model.model_, curves=curves._replace(**{field: getattr(curves, field)[:-1]}))
    model.save(tmp_path / "broken")
    with pytest.raises(FileFormatError, match="curves"):
        load(tmp_path / "broken")


def test_files_from_before_there_were_directions(tmp_path):
    X, y, _ = data(60)
    model = NHSVM(DAG, probability=True, cv=3, tol=1e-2).fit(X, y)
    curves = model.model_.curves
    model.save(tmp_path / "model")
    header, arrays = read_model(tmp_path / "model")
    old = {name: array for name, array in arrays.items() if not name.startswith("fitted/curves/")}
    write_model(tmp_path / "model", header, old | {"fitted/curves": np.stack(curves[:2])})
    plain = curves._replace(directions=curves.directions[:, :0], shares=curves.shares[:0])
    model.model_ = replace(model.model_, curves=plain)
    np.testing.assert_array_equal(load(tmp_path / "model").node_proba(X), model.node_proba(X))


@pytest.mark.parametrize("h", [DAG, TREE], ids=["dag", "tree"])
def test_threads_do_not_change_them(h):
    X, y, _ = data(200)
    one, two = (NHSVM(h, probability=True, cv=3, tol=1e-2, n_jobs=n).fit(X, y).node_proba(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_errors():
    X, y, _ = data(60)
    model = NHSVM(TREE, tol=1e-2).fit(X, y)
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)
    model.set_params(probability=True)
    with pytest.raises(NotFittedError, match="without probabilities"):
        model.node_proba(X)
    model.fit(X, y)
    with pytest.raises(OptionError, match="one label a sample"):
        model.predict_partial(X)
    model.set_params(probability=False).fit(X, y)
    model.set_params(probability=True)
    with pytest.raises(NotFittedError):
        model.node_proba(X)
