"""Norm axioms, invariances, and the shapes at the edge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.norms import frobenius_norm, max_norm, shared_norm, structured_shared_norm, trace_norm
from norms.matrices import leaf_matrices, matrices
from strategies import hierarchies

NORMS = [frobenius_norm, trace_norm, shared_norm, max_norm]
REL = 1.1e-6
norms = st.sampled_from(NORMS)
seeds = st.integers(0, 2**32)


def same(a, b):
    assert a == pytest.approx(b, rel=REL)


@given(norms, matrices(), st.sampled_from([-2.0, 1e-8, 3e7, 1e150, 1e-150]))
def test_homogeneous(norm, U, factor):
    same(norm(factor * U), abs(factor) * norm(U))


@given(norms, matrices(), seeds)
def test_triangle_inequality(norm, U, seed):
    W = np.random.default_rng(seed).normal(size=U.shape) * np.abs(U).mean()
    assert norm(U + W) <= (norm(U) + norm(W)) * (1 + REL)


@given(norms, matrices(), seeds)
def test_order_and_signs_do_not_matter(norm, U, seed):
    rng = np.random.default_rng(seed)
    n, m = U.shape
    same(
        norm(U[rng.permutation(n)][:, rng.permutation(m)] * rng.choice([-1, 1], (n, 1)) * rng.choice([-1, 1], m)),
        norm(U),
    )


@settings(max_examples=30)
@given(st.sampled_from([frobenius_norm, trace_norm, shared_norm]), matrices(), seeds)
def test_rotating_the_columns_does_not_matter(norm, U, seed):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(U.shape[1] + 2, U.shape[1])))[0]
    same(norm(U @ Q.T), norm(U))


@given(st.sampled_from([frobenius_norm, trace_norm, max_norm]), matrices())
def test_transposition_does_not_matter(norm, U):
    same(norm(U.T), norm(U))


@settings(max_examples=30)
@given(matrices())
def test_repeated_and_shrunk_rows_are_free(U):
    """‖·‖_s and ‖·‖_max do not count; the longest of each kind decides."""
    more = np.vstack([U, 0.5 * U, -U[:1]])
    same(shared_norm(more), shared_norm(U))
    same(max_norm(more), max_norm(U))


@settings(max_examples=20)
@given(leaf_matrices(hierarchies(15)), seeds, st.sampled_from([-3.0, 1e-8, 1e100]))
def test_structured_axioms(given_, seed, factor):
    h, U = given_
    rng = np.random.default_rng(seed)
    value = structured_shared_norm(U, h)
    same(structured_shared_norm(factor * U, h), abs(factor) * value)
    W = rng.normal(size=U.shape)
    assert structured_shared_norm(U + W, h) <= (value + structured_shared_norm(W, h)) * (1 + REL)
    Q = np.linalg.qr(rng.normal(size=(U.shape[1] + 1, U.shape[1])))[0]
    same(structured_shared_norm(U @ Q.T, h), value)


@settings(max_examples=20)
@given(leaf_matrices(hierarchies(15)))
def test_duplicated_nodes_do_not_matter(given_):
    """Theorem 1, for the norm."""
    h, U = given_
    small = h.minimal()
    order = [h.leaf_position(label) for label in small.leaves]
    same(structured_shared_norm(U[order], small), structured_shared_norm(U, h))


@settings(max_examples=20)
@given(leaf_matrices(hierarchies(15)))
def test_more_nodes_never_hurt(given_):
    h, U = given_
    more = Hierarchy.from_edges([*h.edges(), *(("root", r) for r in h.roots)])
    order = [h.leaf_position(label) for label in more.leaves]
    assert structured_shared_norm(U[order], more) <= structured_shared_norm(U, h) * (1 + REL)


def test_a_flat_hierarchy_with_a_root():
    """One shared vector and the rest: min over c of (‖c‖ + √Σ‖U_l - c‖²)² under the best split."""
    h = Hierarchy.from_edges([("r", "a"), ("r", "b")])
    t = np.linspace(0, 3, 30001)
    expected = (t + np.hypot(3 - t, 1 - t)).min()
    same(structured_shared_norm([[3.0], [1.0]], h), expected)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (3, 3)])
def test_zero(norm, shape):
    U = np.zeros(shape)
    c = norm(U, return_certificate=True)
    assert norm(U) == c.value == c.lower_bound == c.gap == 0
    assert (c.left @ c.right).shape == shape
    assert not np.any(c.left @ c.right)


def test_structured_zero():
    h = Hierarchy.from_edges([("r", "a"), ("r", "b")], nodes=["c"])
    c = structured_shared_norm(np.zeros((3, 2)), h, return_certificate=True)
    assert c.value == c.lower_bound == 0
    assert (h.graph.leaf_matrix() @ c.node_weights == 1).all()
    mixed = np.array([[0.0], [0.0], [2.0]])[[h.leaves.index(x) for x in "abc"]]
    assert structured_shared_norm(mixed, h) == pytest.approx(2)


@settings(max_examples=30)
@given(norms, st.integers(1, 12), seeds)
def test_one_row(norm, m, seed):
    u = np.random.default_rng(seed).normal(size=(1, m))
    same(norm(u), np.abs(u).max() if norm is max_norm else np.linalg.norm(u))


@settings(max_examples=30)
@given(st.integers(1, 12), seeds)
def test_one_column(n, seed):
    u = np.random.default_rng(seed).normal(size=(n, 1))
    same(shared_norm(u), np.abs(u).max())
    same(max_norm(u), np.abs(u).max())
    same(trace_norm(u), np.linalg.norm(u))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_hadamard(k):
    """A 2ᵏ × 2ᵏ Hadamard matrix has max norm 2^{k/2}."""
    H = np.array([[1.0]])
    for _ in range(k):
        H = np.kron(H, [[1, 1], [1, -1]])
    same(max_norm(H), 2 ** (k / 2))
    same(shared_norm(H), 2.0**k)


@pytest.mark.parametrize("shape", [(4, 300), (300, 4)])
def test_wide_and_tall(shape):
    U = np.random.default_rng(0).normal(size=shape)
    for norm in NORMS:
        c = norm(U, return_certificate=True)
        np.testing.assert_allclose(c.left @ c.right, U, atol=1e-9)
        assert c.gap <= 1e-6
