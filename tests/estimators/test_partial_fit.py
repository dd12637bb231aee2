"""Learning from one part of the data after the other."""

import numpy as np
import pytest
import scipy.sparse as sp

from estimators.problems import TREE, make
from nhsvm import HSVM, NHSVM, FlatSVM, load
from nhsvm.engine import Sgd
from nhsvm.errors import DataError, LabelError, OptionError, UnknownLabelError

LEAVES = ["cat", "dog", "oak", "rose"]


def parts(X, y, size=30):
    return [(X[k : k + size], y[k : k + size]) for k in range(0, len(y), size)]


@pytest.mark.parametrize("cls", [FlatSVM, HSVM, NHSVM])
@pytest.mark.parametrize("sparse", [False, True])
def test_learns(cls, sparse):
    X, y = make(n_samples=900, noise=1.0, sparse=sparse)
    model = cls(TREE, solver="sgd", C=0.1)
    for part, labels in parts(X, y):
        assert model.partial_fit(part, labels, classes=LEAVES) is model
    exact = cls(TREE, C=0.1).fit(X, y)
    assert model.score(X, y) > exact.score(X, y) - 0.05
    assert model.classes_.tolist() == LEAVES
    assert np.isnan(model.objective_)
    assert model.history_ == []
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])


def test_only_with_sgd():
    assert not hasattr(NHSVM(), "partial_fit")
    with pytest.raises(AttributeError) as caught:
        _ = NHSVM().partial_fit
    assert "NHSVM(solver='sgd')" in str(caught.value.__cause__)
    assert hasattr(NHSVM(solver=Sgd()), "partial_fit")


def test_classes():
    X, y = make(labels=["dog", "cat"])
    model = NHSVM(TREE, solver="sgd")
    with pytest.raises(LabelError, match="classes must be given in the first call"):
        model.partial_fit(X, y)
    with pytest.raises(LabelError, match="y has 'cat', which is not in classes"):
        model.partial_fit(X, y, classes=["dog", "oak"])
    with pytest.raises(UnknownLabelError, match="wolf"):
        model.partial_fit(X, y, classes=["dog", "cat", "wolf"])
    model.partial_fit(X, y, classes=["dog", "cat", "plant", "rose"])
    assert model.classes_.tolist() == ["cat", "dog", "plant", "rose"]
    model.partial_fit(X[:4], ["rose", "plant", "dog", "rose"])
    with pytest.raises(LabelError, match="'oak', which is not in classes"):
        model.partial_fit(X[:1], ["oak"])
    with pytest.raises(LabelError, match="not those of the first call"):
        model.partial_fit(X, y, classes=["dog", "cat"])


def test_errors_leave_the_model():
    X, y = make()
    model = NHSVM(TREE, solver="sgd").partial_fit(X, y, classes=LEAVES)
    before = model.decision_function(X)
    for other, labels, weight, error in [
        (X[:, 1:], y, None, DataError),
        (X, y[1:], None, LabelError),
        (X, y, -np.ones(90), DataError),
    ]:
        with pytest.raises(error):
            model.partial_fit(other, labels, sample_weight=weight)
        np.testing.assert_array_equal(model.decision_function(X), before)
    for options in ({"probability": True}, {"class_weight": "balanced"}):
        with pytest.raises(OptionError, match="neither probability=True nor class_weight='balanced'"):
            NHSVM(TREE, solver="sgd", **options).partial_fit(X, y, classes=LEAVES)


def test_sparse_and_dense_parts():
    X, y = make(n_samples=120, sparse=True)
    for first, second in [(sp.csr_array, np.asarray), (np.asarray, sp.csr_array)]:
        model = NHSVM(TREE, solver="sgd")
        for k, (part, labels) in enumerate(parts(X.toarray(), y)):
            model.partial_fit((first if k == 0 else second)(part), labels, classes=LEAVES)
        same = NHSVM(TREE, solver="sgd")
        for part, labels in parts(X.toarray(), y):
            same.partial_fit(first(part), labels, classes=LEAVES)
        np.testing.assert_array_equal(model.coef_, same.coef_)


def test_weights():
    X, y = make()
    heavy = NHSVM(TREE, solver="sgd").partial_fit(X, y, LEAVES, np.where(np.array(y) == "dog", 1.0, 0.0))
    assert heavy.score(X, ["dog"] * 90) > NHSVM(TREE, solver="sgd").partial_fit(X, y, LEAVES).score(X, ["dog"] * 90)
    by_class = NHSVM(TREE, solver="sgd", class_weight={"cat": 0.0, "oak": 0.0, "rose": 0.0}).partial_fit(X, y, LEAVES)
    np.testing.assert_array_equal(heavy.coef_, by_class.coef_)


def test_not_after_fit_or_from_a_file(tmp_path):
    X, y = make()
    model = NHSVM(TREE, solver="sgd", tol=1e-2).fit(X, y)
    with pytest.raises(OptionError, match="goes on from a completed partial_fit only"):
        model.partial_fit(X, y, classes=LEAVES)
    model = NHSVM(TREE, solver="sgd").partial_fit(X, y, classes=LEAVES)
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    with pytest.raises(OptionError, match="goes on from a completed partial_fit only"):
        back.partial_fit(X, y)


def test_a_call_that_is_broken_off_cannot_be_gone_on_from(monkeypatch):
    """Its samples may be half counted; the model of the call before stays."""
    X, y = make()
    model = NHSVM(TREE, solver="sgd").partial_fit(X, y, classes=np.unique(y))
    coef = model.coef_.copy()

    def broken(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("nhsvm.engine.sgd.steps_kernel", broken)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, coef)
    with pytest.raises(OptionError, match="broken off"):
        model.partial_fit(X, y)
