"""Small samples and what models of them are compared by."""

import numpy as np

import nhsvm

TEXTS = ["it barks", "barks at night", "it purrs", "purrs and sleeps", "Grün, öde 😀", "grün und leer"]
LABELS = ["dog", "dog", "cat", "cat", "oak", "oak"]
NEW = ["who barks?", "purrs", "öde", "nothing known", ""]
H = nhsvm.Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(6, 5)))
Z = np.abs(RNG.normal(size=(9, 5)))
GAPS = np.where(RNG.random((6, 5)) < 0.3, np.nan, X)


def svm():
    return nhsvm.NHSVM(H, C=10)


def same(model, other, samples):
    """Both give the same numbers, bit for bit."""
    a, b = model.decision_function(samples), other.decision_function(samples)
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)
    assert model.predict(samples).tolist() == other.predict(samples).tolist()
