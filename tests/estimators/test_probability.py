"""Probabilities of classes and of nodes."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_val_score

from estimators.problems import DAG, HIERARCHIES, TREE, make
from nhsvm import HSVM, NHSVM, FlatSVM, Hierarchy
from nhsvm.errors import DataError, OptionError
from nhsvm.estimators.calibration import HeldOut, make_folds, temperature
from nhsvm.estimators.labels import encode

METHODS = ["predict_proba", "predict_log_proba", "node_proba", "predict_partial"]


@pytest.mark.parametrize("cls", [FlatSVM, HSVM, NHSVM])
def test_only_when_asked(cls):
    X, y = make()
    model = cls(TREE).fit(X, y)
    for method in METHODS:
        assert not hasattr(model, method)
        with pytest.raises(AttributeError, match=method) as caught:
            getattr(model, method)
        assert f"{cls.__name__}(probability=True)" in str(caught.value.__cause__)
    assert not hasattr(model, "temperature_")
    model.set_params(probability=True)
    with pytest.raises(NotFittedError, match="fit it again with probability=True"):
        model.predict_proba(X)


@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_sums(name, sparse, inner):
    h = HIERARCHIES[name]
    labels = [*h.leaves, h.nodes[0]] if inner else h.leaves
    X, y = make(h, labels=labels, noise=2.0, sparse=sparse)
    model = NHSVM(h, probability=True).fit(X, y)
    proba, nodes = model.predict_proba(X), model.node_proba(X)
    assert proba.shape == (90, len(model.classes_))
    assert nodes.shape == (90, model.hierarchy_.n_nodes)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba)
    np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
    place = {label: k for k, label in enumerate(model.classes_)}
    inside = {n: {n} | model.hierarchy_.descendants(n) for n in model.hierarchy_.nodes if n in h}
    for n, below in inside.items():
        leaves = [place[c] for c in model.classes_ if c in below]
        np.testing.assert_allclose(nodes[:, model.hierarchy_.number(n)], proba[:, leaves].sum(axis=1))
    assert model.temperature_ > 0


def test_two_classes():
    X, y = make(labels=["dog", "oak"], noise=3.0)
    model = NHSVM(TREE, probability=True).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (90, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(
        np.log(proba[:, 1] / proba[:, 0]), model.decision_function(X) / model.temperature_, rtol=1e-4
    )


def test_calibrated():
    """The probability of the best class is about how often it is right, on samples that no fit has seen."""
    X, y = make(n_samples=3000, noise=2.5, seed=3)
    model = NHSVM(TREE, C=0.1, probability=True).fit(X[:1000], y[:1000])
    proba = model.predict_proba(X[1000:])
    assert proba.max(axis=1).mean() == pytest.approx(model.score(X[1000:], y[1000:]), abs=0.04)
    raw = np.exp(log_softmax(model.decision_function(X[1000:]), axis=1))
    assert log_loss(y[1000:], proba) <= log_loss(y[1000:], raw) + 0.01
    assert cross_val_score(NHSVM(TREE, probability=True), X[:300], y[:300], scoring="neg_log_loss", cv=2).mean() > -1.2


def held_out(n=200, k=5, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, k))
    truth = np.array([rng.choice(k, p=p) for p in np.exp(log_softmax(scores, axis=1))])
    return HeldOut((scores * spread).astype(np.float32), truth, rng.uniform(0.1, 2.0, n))


@pytest.mark.parametrize("spread", [1e-4, 1.0, 300.0])
def test_temperature_is_the_minimum(spread):
    parts = [held_out(spread=spread), held_out(n=2000, k=3, spread=spread, seed=1)]
    n = sum(len(part.truth) for part in parts)

    def loss(log_t):
        total = 0.0
        for scores, truth, weight in parts:
            target = np.full(scores.shape, 1 / (n + 2) / (scores.shape[1] - 1))
            target[np.arange(len(truth)), truth] = (n + 1) / (n + 2)
            total -= weight @ (target * log_softmax(scores.astype(float) / np.exp(log_t), axis=1)).sum(axis=1)
        return total / n

    found = temperature(parts)
    best = minimize_scalar(loss, bracket=(np.log(spread) - 1, np.log(spread) + 1))
    assert np.log(found) == pytest.approx(best.x, abs=1e-4)
    assert found == pytest.approx(spread, rel=0.2)  # the scores were made with temperature 1


def test_temperature_at_the_ends():
    one = np.ones(4)
    right = HeldOut(np.eye(4), np.arange(4), one)
    assert 0 < temperature([right]) < np.inf  # all right is no proof
    p = np.exp(log_softmax(np.eye(4) / temperature([right]), axis=1))
    np.testing.assert_allclose(np.diag(p), 5 / 6)
    wrong = HeldOut(-np.eye(4), np.arange(4), one)
    p = np.exp(log_softmax(-np.eye(4) / temperature([wrong]), axis=1))
    np.testing.assert_allclose(p, 0.25, atol=1e-2)
    assert temperature([HeldOut(np.zeros((4, 4)), np.arange(4), one)]) == 1
    assert temperature([]) == 1


def test_weights_count():
    X, y = make(noise=3.0)
    rng = np.random.default_rng(0)
    lied = [label if i < 45 else rng.permutation(TREE.leaves)[0] for i, label in enumerate(y)]
    half = np.where(np.arange(90) < 45, 1.0, 0.0)
    model = NHSVM(TREE, probability=True).fit(X, lied, sample_weight=half)
    plain = NHSVM(TREE, probability=True).fit(X[:45], y[:45])
    assert model.temperature_ == pytest.approx(plain.temperature_)
    assert NHSVM(TREE, probability=True).fit(X, lied).temperature_ != pytest.approx(plain.temperature_)
    parts = held_out()
    twice = np.repeat(np.arange(200), np.random.default_rng(1).integers(0, 3, 200))
    copies = HeldOut(parts.scores[twice], parts.truth[twice], np.ones(len(twice)))
    weighted = parts._replace(weight=np.bincount(twice, minlength=200).astype(float))
    assert temperature([weighted]) == pytest.approx(temperature([copies]), rel=1e-2)


def test_folds():
    y = ["a"] * 7 + ["b"] * 2 + ["c"] + ["d"] * 3
    weight = np.ones(13)
    weight[12] = 0
    targets = encode(y, None)
    folds = make_folds(5, targets, weight, 0)
    held = np.concatenate([fold.held_out for fold in folds])
    assert sorted(held) == [i for i in range(12) if y[i] != "c"]  # once each; not the only "c", not the weightless "d"
    for train, out in folds:
        assert not set(train) & set(out)
        assert {y[i] for i in train} == set("abcd")
    again = make_folds(5, targets, weight, 0)
    assert all(
        np.array_equal(a, b) for one, two in zip(folds, again, strict=True) for a, b in zip(one, two, strict=True)
    )
    assert make_folds(3, encode(["a", "a"], None), np.ones(2), 0) == []


def test_a_splitter():
    X, y = make(noise=2.0)
    order = np.argsort(y)  # folds without some classes
    model = NHSVM(TREE, probability=True, cv=KFold(6)).fit(X[order], np.array(y)[order])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    assert NHSVM(TREE, probability=True, cv=splits).fit(X, y).temperature_ > 0


def test_nothing_to_hold_out():
    X = np.eye(4)
    called = []
    model = NHSVM(TREE, probability=True, callback=called.append)
    with pytest.raises(DataError, match="no class has a second sample"):
        model.fit(X, list(TREE.leaves))
    with pytest.raises(DataError, match="no class has a second sample"):
        model.fit(np.vstack([X, X]), list(TREE.leaves) * 2, sample_weight=[1, 1, 1, 1, 0, 0, 0, 0])
    assert not called
    model.fit(np.vstack([X, X[:1]]), [*TREE.leaves, TREE.leaves[0]])


def test_mixed_types_and_tuples():
    X, _ = make()
    for labels in ([("a", 1), ("a", 2), ("b", 1)], [1, "one", (1,)]):
        y = [labels[i % 3] for i in range(90)]
        model = NHSVM(probability=True).fit(X, y)
        assert model.predict_proba(X).shape == (90, 3)


def test_one_warning_or_more_but_a_model():
    X, y = make(noise=4.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = NHSVM(TREE, probability=True, max_iter=1, tol=1e-9, cv=2).fit(X, y)
    assert {w.category for w in caught} == {ConvergenceWarning}
    assert model.temperature_ > 0


def slow_partial(model, X, threshold):
    h, found = model.hierarchy_, []
    for row in model.node_proba(X):
        best = None
        for number, node in enumerate(h.nodes):
            if h.is_virtual[number] or row[number] < threshold - 1e-9:
                continue
            key = (h.depth(node), row[number], -number)
            if best is None or key > best[0]:
                best = key, node
        found.append(None if best is None else best[1])
    return found


@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.8, 0.999, 1.0, 1, np.float32(0.5)])
def test_partial(name, threshold):
    h = HIERARCHIES[name]
    X, y = make(h, noise=3.0, labels=[*h.leaves, h.nodes[1]])
    model = NHSVM(h, probability=True).fit(X, y)
    found = model.predict_partial(X, threshold)
    assert found.tolist() == slow_partial(model, X, float(threshold))
    assert found.shape == (90,)
    if name == "forest":
        assert found.dtype == object
        assert threshold < 1 or set(found.tolist()) == {None}
    else:
        assert found.dtype.kind == "U"
    assert set(found.tolist()) - {None} <= set(h.nodes)


def test_partial_goes_up_as_the_threshold_does():
    X, y = make(DAG, noise=3.0)
    model = NHSVM(DAG, probability=True).fit(X, y)
    depth = [[DAG.depth(label) for label in model.predict_partial(X, t)] for t in (0.5, 0.7, 0.9, 1.0)]
    assert all((np.diff(np.array(depth), axis=0) <= 0).all(axis=1))
    assert set(model.predict_partial(X, 1.0)) == {"r"}


def test_partial_of_other_labels():
    X, _ = make()
    h = Hierarchy.from_edges([(0, 1), (0, 2), (2, 3), (2, 4)])
    y = [(1, 3, 4)[i % 3] for i in range(90)]
    assert NHSVM(h, probability=True).fit(X, y).predict_partial(X).dtype.kind == "i"
    h = Hierarchy.from_edges([(0, 1), (0, "2"), ("2", 3), ("2", 4)])
    assert NHSVM(h, probability=True).fit(X, y).predict_partial(X).dtype == object


@pytest.mark.parametrize("bad", [0, -0.1, 1.01, np.nan, "0.5", True, [0.5]])
def test_bad_thresholds(bad):
    X, y = make()
    model = NHSVM(TREE, probability=True).fit(X, y)
    with pytest.raises(OptionError, match="threshold must be above 0 and at most 1"):
        model.predict_partial(X, bad)
