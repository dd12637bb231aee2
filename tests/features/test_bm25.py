"""BM25 is what its formula says, and a good scikit-learn transformer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from nhsvm.errors import DataError, OptionError
from nhsvm.features import BM25Transformer


@parametrize_with_checks([BM25Transformer(), BM25Transformer(k1=0, b=1)])
def test_scikit_learn(estimator, check):
    check(estimator)


def by_hand(train, counts, k1, b):
    """The formula, a cell at a time."""
    average = sum(map(sum, train)) / len(train)
    out = np.zeros(np.shape(counts))
    for d, row in enumerate(counts):
        for t, c in enumerate(row):
            n_t = sum(other[t] > 0 for other in train)
            idf = math.log(1 + (len(train) - n_t + 0.5) / (n_t + 0.5))
            if c:
                out[d, t] = idf * (k1 + 1) * c / (c + k1 * (1 - b + b * sum(row) / average))
    return out


tables = st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=5)


@given(tables.filter(lambda rows: any(map(any, rows))), tables, st.floats(0, 3), st.floats(0, 1))
def test_the_formula(train, counts, k1, b):
    transformer = BM25Transformer(k1=k1, b=b).fit(np.array(train))
    want = by_hand(train, counts, k1, b)
    np.testing.assert_allclose(transformer.transform(np.array(counts)), want, rtol=1e-12)
    found = transformer.transform(sp.csr_array(np.array(counts)))
    np.testing.assert_allclose(found.toarray(), want, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, np.asarray])
def test_form_and_precision_stay(form, dtype):
    X = form(np.array([[2, 0, 1], [0, 1, 0]], dtype=dtype))
    before = X.copy()
    found = BM25Transformer().fit_transform(X)
    assert found.dtype == dtype
    assert sp.issparse(found) == sp.issparse(X)
    if sp.issparse(X):
        assert found.format == "csr"
        assert isinstance(found, sp.sparray) == isinstance(X, sp.sparray)
        assert (before != X).nnz == 0


def test_stored_zeros_and_repeated_entries_count_as_what_they_are():
    X = sp.csr_matrix((np.array([1.0, 1.0, 0.0]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    transformer = BM25Transformer().fit(X)
    np.testing.assert_allclose(transformer.idf_, BM25Transformer().fit([[2.0, 0.0]]).idf_)
    np.testing.assert_allclose(transformer.transform(X).toarray(), transformer.transform(np.array([[2.0, 0.0]])))
    assert X.nnz == 3


def test_rare_terms_and_short_documents_weigh_more():
    X = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 5.0], [1.0, 0.0, 0.0]])
    found = BM25Transformer().fit_transform(X)
    assert found[0, 1] > found[0, 0] > 0
    assert found[2, 0] > found[0, 0] > found[1, 0]


def test_documents_without_terms():
    assert not BM25Transformer().fit_transform(sp.csr_matrix((2, 3))).nnz
    assert not BM25Transformer(k1=0).fit_transform(np.zeros((2, 3))).any()


def test_in_a_pipeline():
    found = make_pipeline(BM25Transformer(), Normalizer()).fit_transform(sp.csr_matrix(np.eye(3)))
    np.testing.assert_allclose(found.toarray(), np.eye(3))
    assert BM25Transformer().fit(np.eye(2)).get_feature_names_out(["a", "b"]).tolist() == ["a", "b"]


@pytest.mark.parametrize("X", [np.array([[1.0, 2.0], [3.0, -1.0]]), sp.csr_matrix([[1.0, 2.0], [3.0, -1.0]])])
def test_negative_counts(X):
    with pytest.raises(DataError, match="unlike row 1"):
        BM25Transformer().fit(X)


@pytest.mark.parametrize("options", [{"k1": -1}, {"b": 1.5}, {"k1": "a"}, {"b": np.nan}, {"k1": True}])
def test_bad_options(options):
    with pytest.raises(OptionError, match=f"{next(iter(options))} must be a number"):
        BM25Transformer(**options).fit(np.eye(2))
