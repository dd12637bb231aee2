"""Dense samples: scores in single precision, and weights summed along paths beforehand, give the same answers."""

import numpy as np
import pytest
import scipy.sparse as sp

from estimators.problems import HIERARCHIES, make
from nhsvm import NHSVM, FlatSVM
from nhsvm.model import Model
from nhsvm.storage import scoring


@pytest.fixture(params=[False, True], ids=["dense model", "sparse model"])
def fitted(request):
    h = HIERARCHIES["forest"]
    X, y = make(h, noise=2.0)
    return NHSVM(h, tol=1e-3).fit(sp.csr_array(X) if request.param else X, y), X


@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_weights_along_paths_or_scores_along_paths(fitted, method, monkeypatch):
    model, X = fitted
    asked = []

    def no(self, X):
        asked.append(along_paths(self, X) is not None)

    found, along_paths = getattr(model, method)(X), Model.along_paths
    monkeypatch.setattr(Model, "along_paths", no)
    expected = getattr(model, method)(X)
    assert asked == [True]
    if method == "predict":
        np.testing.assert_array_equal(found, expected)
    else:
        assert found.dtype == expected.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_few_samples_do_not_pay(fitted):
    model, X = fitted
    assert model.model_.along_paths(X) is not None
    assert model.model_.along_paths(X[:1]) is None
    np.testing.assert_array_equal(model.predict(X[:1]), model.predict(sp.csr_array(X[:1])))


@pytest.mark.parametrize("size", [1.0, 1e11, 1e30, 1e60])
def test_double_precision_where_single_does_not_reach(size):
    """Samples of any size get the scores of double precision, to the rounding of single."""
    X, y = make(HIERARCHIES["tree"], noise=2.0)
    model = FlatSVM(fit_intercept=False).fit(X, y)
    X = X.astype(np.float64) * size
    assert model.coef_.dtype == np.float32
    exact = X @ model.coef_.T.astype(np.float64)
    if size < 1e38:  # what scores can be
        near = np.abs(X) @ np.abs(model.coef_.T.astype(np.float64)) * 1e-6
        assert (abs(model.decision_function(X) - exact) <= near).all()
    np.testing.assert_array_equal(model.predict(X), model.classes_[exact.argmax(axis=1)])


def test_wide_samples_are_taken_in_steps(monkeypatch):
    X, y = make(HIERARCHIES["tree"], noise=2.0)
    model = FlatSVM().fit(X, y)
    expected = model.decision_function(X)
    for name in ("_NEAR", "_FEW_ROWS", "_ROWS"):
        monkeypatch.setattr(scoring, name, 1)
    np.testing.assert_allclose(model.decision_function(X.astype(np.float64)), expected, rtol=1e-5, atol=1e-5)
