"""How large the values of samples are."""

import numpy as np
import pytest
import scipy.sparse as sp

from estimators.problems import TREE, make
from nhsvm import NHSVM
from nhsvm.errors import DataError
from nhsvm.storage.samples import magnitude, within


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "form",
    [np.asarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2], sp.csr_array],
    ids=["rows", "columns", "strided", "sparse"],
)
def test_within_is_about_the_largest_value(form, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 40)).astype(dtype)
    X[3, 4] = -9.0
    made = form(X)
    assert magnitude(made) == 9.0
    assert within(made, 9.0)  # their length is far more
    assert not within(made, 8.99)
    assert within(made, 1e12)


def test_overflow_of_squares_is_no_overflow_of_values():
    X = np.full((3, 3), 1e30, np.float32)
    assert within(X, 1e31)
    assert not within(X, 1e12)
    assert within(np.empty((0, 3)), 1.0)


@pytest.mark.parametrize("change", ["too large", "negative", "beyond", "falls"])
def test_sparse_samples_with_damaged_indices(change):
    """Neither scipy nor scikit-learn look at them, and a kernel would read, or write, wherever they say."""
    X, y = make(sparse=True)
    model = NHSVM(TREE).fit(X, y)
    bad = X.copy()
    if change == "too large":
        bad.indices[3] = 10**6
    elif change == "negative":
        bad.indices[3] = -5
    elif change == "beyond":
        bad.indptr[-1] = 10**6
    else:
        bad.indptr[1] = bad.indptr[2] + 1
    for ask in (model.predict, model.decision_function, lambda X: NHSVM(TREE).fit(X, y)):
        with pytest.raises(DataError, match="damaged csr matrix"):
            ask(bad)
