"""The same numbers as scikit-learn where it has the same measure."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as theirs

from nhsvm import metrics as ours
from nhsvm.errors import DataError
from strategies import hierarchies, random_hierarchy

seeds = st.integers(0, 2**32)
close = lambda value: pytest.approx(value, rel=1e-12, abs=1e-15)


def matrices(h, seed, n=8):
    rng = np.random.default_rng(seed)
    return (*((rng.random((n, h.n_leaves)) < 0.4).astype(int) for _ in range(2)), rng.integers(1, 5, n))


def nodes_of(h, Y, counted):
    return (Y @ h.graph.leaf_matrix().toarray() > 0)[:, counted].astype(int)


@given(hierarchies(), seeds)
def test_matrices_over_labels(h, seed):
    Y, P, weight = matrices(h, seed)
    if h.n_leaves == 1:  # scikit-learn takes one column for two classes
        return
    options = {"hierarchy": h, "sample_weight": weight}
    their = {"sample_weight": weight, "zero_division": 1.0}
    assert ours.example_jaccard(Y, P, **options) == close(theirs.jaccard_score(Y, P, average="samples", **their))
    assert ours.hamming_distance(Y, P, **options) == close(theirs.hamming_loss(Y, P, sample_weight=weight))
    for average in ("micro", "samples"):
        assert ours.f1(Y, P, average=average, **options) == close(theirs.f1_score(Y, P, average=average, **their))
    for zero in (0.0, 1.0, math.nan):
        found = ours.f1(sp.csr_array(Y), sp.coo_array(P), average="macro", zero_division=zero, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the mean of no column at all, which here is 1
            expected = theirs.f1_score(Y, P, average="macro", sample_weight=weight, zero_division=zero)
        assert found == close(1.0 if math.isnan(expected) else expected)


@given(hierarchies(), seeds)
def test_matrices_over_nodes(h, seed):
    Y, P, weight = matrices(h, seed)
    counted = np.arange(h.n_nodes) >= (0 if len(h.roots) > 1 else 1)
    if counted.sum() < 2:
        return
    A, B = (nodes_of(h, y, counted) for y in (Y, P))
    options = {"hierarchy": h, "sample_weight": weight}
    for average in ("micro", "samples"):
        their = {"average": average, "sample_weight": weight}
        assert ours.hierarchical_f1(Y, P, average=average, **options) == close(
            theirs.f1_score(A, B, zero_division=1.0, **their)
        )
    assert ours.hierarchical_precision(Y, P, **options) == close(
        theirs.precision_score(A, B, average="micro", sample_weight=weight, zero_division=1.0 if not A.any() else 0.0)
    )
    found = ours.hamming_distance(Y, P, over="nodes", **options)
    assert found == close(theirs.hamming_loss(A, B, sample_weight=weight))


@given(hierarchies(), seeds)
def test_one_label_a_sample(h, seed):
    rng = np.random.default_rng(seed)
    y, p = rng.choice(h.leaves, 12), rng.choice(h.leaves, 12)
    assert ours.f1(y, p, hierarchy=h) == close(theirs.accuracy_score(y, p))
    assert ours.example_jaccard(y, p, hierarchy=h) == close(theirs.accuracy_score(y, p))
    assert ours.f1(y, p, hierarchy=h, average="macro") == close(theirs.f1_score(y, p, average="macro"))
    table = ours.lshtc_measures(y, p, hierarchy=h)
    assert table["macro_precision"] == close(theirs.precision_score(y, p, average="macro", zero_division=0.0))
    assert table["macro_recall"] == close(theirs.recall_score(y, p, average="macro", zero_division=0.0))


@given(
    hierarchies(),
    seeds,
    st.sampled_from([np.float64, np.float32, int]),
    st.booleans(),
    st.sampled_from(["auto", False]),
)
def test_auprc_is_the_micro_averaged_average_precision(h, seed, dtype, weighted, roots):
    Y, _, weight = matrices(h, seed)
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 9, (len(Y), h.n_nodes)).astype(dtype)  # with ties
    if dtype is not int:
        scores[:2] = rng.normal(size=(2, h.n_nodes))
    counted = np.arange(h.n_nodes) >= (0 if len(h.roots) > 1 and roots == "auto" else len(h.roots))
    truth = nodes_of(h, Y, counted)
    if not truth.any():
        return
    given_weight = {"sample_weight": weight} if weighted else {}
    expected = theirs.average_precision_score(
        truth.ravel(),
        scores[:, counted].ravel(),
        sample_weight=np.repeat(weight, counted.sum()) if weighted else None,
    )
    found = ours.auprc(Y, scores, hierarchy=h, roots=roots, **given_weight)
    assert found == close(expected)
    if counted.sum() > 1:
        micro = theirs.average_precision_score(truth, scores[:, counted], average="micro", **given_weight)
        assert found == close(micro)


@pytest.mark.parametrize("weight", [None, np.arange(40) % 3])
def test_auprc_in_blocks(monkeypatch, weight):
    h = random_hierarchy(50, 3, roots=2, extra=0.4)
    rng = np.random.default_rng(0)
    y, scores = rng.choice(h.leaves, (40, 2)).tolist(), rng.normal(size=(40, 50))
    scores[weight == 0 if weight is not None else 0] = 9.0  # ahead of all others
    before, kept = ours.auprc(y, scores, hierarchy=h, sample_weight=weight), scores.copy()
    monkeypatch.setattr("nhsvm.metrics.precision_recall.BATCH", 170)
    assert ours.auprc(y, scores, hierarchy=h, sample_weight=weight) == close(before)
    np.testing.assert_array_equal(scores, kept)
    assert ours.auprc(y, np.where(scores > 0, np.inf, -np.inf), hierarchy=h, sample_weight=weight) < 1
    scores[33, 7] = np.nan
    with pytest.raises(DataError, match="row 33"):
        ours.auprc(y, scores, hierarchy=h, sample_weight=weight)
    perfect = np.zeros((40, 50))
    for i, labels in enumerate(y):
        perfect[i, h.numbers(list(h.closure(labels)))] = 0.7
    assert ours.auprc(y, perfect, hierarchy=h, sample_weight=weight) == close(1.0)
