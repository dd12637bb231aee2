"""Every value comes with factors that cost exactly that, and with a proof that no others cost less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.paper import (
    frobenius_norm,
    max_norm,
    node_penalty,
    scaled_trace_norm,
    shared_norm,
    structured_norm,
    structured_shared_norm,
    trace_norm,
)
from paper.matrices import leaf_matrices, matrices
from strategies import SPECIAL, dags, hierarchies, trees

EXACT = 1e-9


def longest(rows):
    return np.sqrt((rows**2).sum(axis=1).max())


def close(got, expected, size):
    np.testing.assert_allclose(got, expected, rtol=EXACT, atol=EXACT * size)


def trace_of(p, U, q):
    return np.linalg.svd(np.sqrt(p)[:, None] * U * np.sqrt(q), compute_uv=False).sum()


@given(matrices())
def test_frobenius(U):
    c = frobenius_norm(U, return_certificate=True)
    close(c.left @ c.right, U, np.abs(U).max())
    assert c.value == c.lower_bound == frobenius_norm(U) == pytest.approx(np.linalg.norm(U))


@given(matrices())
def test_trace(U):
    c = trace_norm(U, return_certificate=True)
    size = np.abs(U).max()
    close(c.left @ c.right, U, size)
    close(np.linalg.norm(c.left) * np.linalg.norm(c.right), c.value, size)
    assert c.lower_bound <= c.value
    assert c.gap <= 1e-12
    assert trace_norm(U) == pytest.approx(c.value, rel=1e-12)


@given(matrices(), st.sampled_from([1e-6, 1e-8]))
def test_shared(U, tol):
    c = shared_norm(U, tol=tol, return_certificate=True)
    size = np.abs(U).max()
    close(c.left @ c.right, U, size)
    close(longest(c.left) * np.linalg.norm(c.right), c.value, size)
    assert c.row_weights.sum() == pytest.approx(1)
    assert c.row_weights.min() >= 0
    close(trace_of(c.row_weights, U, 1.0), c.lower_bound, size)
    assert c.lower_bound <= c.value
    assert c.gap <= tol
    assert shared_norm(U, tol=tol) == c.value


@given(matrices(), st.sampled_from([1e-6, 1e-8]))
def test_max(U, tol):
    c = max_norm(U, tol=tol, return_certificate=True)
    size = np.abs(U).max()
    close(c.left @ c.right, U, size)
    close(longest(c.left) * longest(c.right.T), c.value, size)
    for weights in (c.row_weights, c.column_weights):
        assert weights.sum() == pytest.approx(1)
        assert weights.min() >= 0
    close(trace_of(c.row_weights, U, c.column_weights), c.lower_bound, size)
    assert c.lower_bound <= c.value
    assert c.gap <= tol
    assert max_norm(U, tol=tol) == c.value


@settings(max_examples=60)
@given(leaf_matrices(hierarchies(25)))
def test_structured(given_):
    h, U = given_
    c = structured_shared_norm(U, h, return_certificate=True)
    assert_certified(h, U, c)
    assert c.gap <= 1e-6
    assert structured_shared_norm(U, h) == c.value


def assert_certified(h, U, c):
    A = h.graph.leaf_matrix()
    size = np.abs(U).max()
    # the factorisation: a_n for n in Ā(l), nothing elsewhere
    close(c.left @ c.right, U, size)
    np.testing.assert_allclose(c.left.toarray(), A.toarray() * np.sqrt(c.node_weights), atol=1e-15)
    close(longest(c.left.toarray()) * np.linalg.norm(c.right), c.value, size)
    # the node rows
    close(A @ c.node_rows, U, size)
    assert c.node_weights.min() >= 0
    assert (A @ c.node_weights).max() <= 1 + 1e-12
    used = c.node_weights > 0
    assert not c.node_rows[~used].any()
    close(np.sqrt(((c.node_rows[used] ** 2).sum(axis=1) / c.node_weights[used]).sum()), c.value, size)
    # the proof
    assert c.prices.min() >= 0
    assert c.prices.sum() == pytest.approx(1)
    sums = A.T @ c.dual
    assert ((sums**2).sum(axis=1) <= (A.T @ c.prices) * (1 + 1e-9) + 1e-15).all()
    close(np.vdot(c.dual, U), c.lower_bound, size)
    assert c.lower_bound <= c.value


@pytest.mark.parametrize("name", SPECIAL)
def test_structured_on_special_hierarchies(name):
    h = SPECIAL[name]
    U = np.random.default_rng(0).normal(size=(h.n_leaves, 2))
    c = structured_shared_norm(U, h, return_certificate=True)
    if h.n_leaves < 100:
        assert_certified(h, U, c)
    assert c.gap <= 1e-6


@settings(max_examples=30)
@given(leaf_matrices(trees(25)))
def test_generic_matrices_are_solved_to_eight_digits(given_):
    h, U = given_
    U = U + 0.1 * np.random.default_rng(0).normal(size=U.shape) * np.abs(U).max()
    assert structured_shared_norm(U, h, tol=1e-8, return_certificate=True).gap <= 1e-8


def test_conjugate_gradients_agree_with_the_whole_hessian(monkeypatch):

    rng = np.random.default_rng(5)
    edges = [(int(rng.integers(max(1, v // 2))), v) for v in range(1, 300)]
    edges += [(int(rng.integers(50)), v) for v in range(200, 300, 3)]
    h = Hierarchy.from_edges(edges, allow_duplicates=True)
    assert not h.is_tree
    U = h.graph.leaf_matrix() @ rng.normal(size=(h.n_nodes, 4))
    dense = structured_shared_norm(U, h, tol=1e-7)
    monkeypatch.setattr(structured_norm, "TUNING", replace(structured_norm.TUNING, dense_nodes=0, dense_system=0))
    c = structured_shared_norm(U, h, tol=1e-7, return_certificate=True)
    assert_certified(h, U, c)
    assert c.value == pytest.approx(dense, rel=2e-7)


@settings(max_examples=30)
@given(leaf_matrices(trees(25)))
def test_deep_trees_are_treated_alike(given_):

    h, U = given_
    whole = structured_shared_norm(U, h)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structured_norm, "TUNING", replace(structured_norm.TUNING, deep=0))
        c = structured_shared_norm(U, h, return_certificate=True)
    assert_certified(h, U, c)
    assert c.value == pytest.approx(whole, rel=1.1e-6)


def test_a_caterpillar():
    n = 150
    h = Hierarchy.from_edges([(k, k + 1) for k in range(n)] + [(k, f"leaf {k}") for k in range(n)])
    U = np.cumsum(np.random.default_rng(0).normal(size=(h.n_leaves, 2)), axis=0)
    c = structured_shared_norm(U, h, return_certificate=True)
    assert_certified(h, U, c)
    assert c.gap <= 1e-6


@pytest.mark.parametrize("shape", [(60, 70), (130, 3), (90, 90)])
def test_quadrature_agrees_with_the_sum_over_pairs(shape, monkeypatch):

    U = np.random.default_rng(1).normal(size=shape)
    for norm in (shared_norm, max_norm):
        monkeypatch.setattr(scaled_trace_norm, "TUNING", replace(scaled_trace_norm.TUNING, factors=1000))
        by_pairs = norm(U, tol=1e-8)
        monkeypatch.setattr(scaled_trace_norm, "TUNING", replace(scaled_trace_norm.TUNING, factors=1))
        assert norm(U, tol=1e-8) == pytest.approx(by_pairs, rel=2e-8)


@pytest.mark.parametrize("shape", [(200, 4), (8, 200), (150, 150)])
def test_working_sets_agree_with_the_whole(shape, monkeypatch):

    rng = np.random.default_rng(2)
    U = rng.normal(size=(shape[0], 7)) @ rng.normal(size=(7, shape[1]))
    U /= np.sqrt((U**2).sum(axis=1))[:, None]  # so that length does not tell which rows matter
    for norm in (shared_norm, max_norm):
        whole = norm(U, tol=1e-7)
        monkeypatch.setattr(scaled_trace_norm, "TUNING", replace(scaled_trace_norm.TUNING, whole=10))
        c = norm(U, tol=1e-7, return_certificate=True)
        monkeypatch.undo()
        close(c.left @ c.right, U, np.abs(U).max())
        assert c.value == pytest.approx(whole, rel=2e-7)


@settings(max_examples=40)
@given(st.one_of(trees(30), dags(20)), st.integers(0, 2**32))
def test_node_penalty(h, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(h.n_nodes, 3)) * (rng.random((h.n_nodes, 1)) < 0.7)
    c = node_penalty(rows, h, return_certificate=True)
    A = h.graph.leaf_matrix()
    lengths = (rows**2).sum(axis=1)
    used = lengths > 0
    assert (A @ c.node_weights).max() <= 1 + 1e-12
    assert c.node_weights.min() >= 0
    assert (lengths[used] / c.node_weights[used]).sum() == pytest.approx(c.value, rel=1e-12)
    assert c.lower_bound <= c.value
    assert c.gap <= 1e-7
    assert node_penalty(rows, h) == c.value == pytest.approx(node_penalty(np.sqrt(lengths), h), rel=1e-12)
