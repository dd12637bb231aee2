"""Section 6 and Appendix B: Table 1, Theorem 2, Lemmas 1 to 3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.paper import frobenius_norm, max_norm, node_penalty, shared_norm, structured_shared_norm, trace_norm
from paper.matrices import leaf_matrices, matrices
from strategies import hierarchies, trees

SLACK = 1 + 2e-6  # twice the tolerance of the norms
seeds = st.integers(0, 2**32)


def with_root(h):
    """The same hierarchy below one common root."""
    return Hierarchy.from_edges([*h.edges(), *(("root", r) for r in h.roots)])


def vector(seed, size):
    return np.random.default_rng(seed).normal(size=size)


# -- Table 1 -----------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(hierarchies(20), st.integers(1, 5), seeds)
def test_full_sharing(h, columns, seed):
    h = with_root(h)
    u = vector(seed, columns)
    U = np.tile(u, (h.n_leaves, 1))
    length, root = np.linalg.norm(u), np.sqrt(h.n_leaves)
    assert shared_norm(U) == pytest.approx(length, rel=1e-6)
    assert structured_shared_norm(U, h) == pytest.approx(length, rel=1e-6)
    assert frobenius_norm(U) == pytest.approx(root * length)
    assert trace_norm(U) == pytest.approx(root * length)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 5), seeds)
def test_no_sharing(depths, columns, seed):
    """Disjoint closures: every leaf at the end of a chain of its own."""
    chains = [(f"{i}.{k}", f"{i}.{k + 1}") for i, depth in enumerate(depths) for k in range(depth - 1)]
    h = Hierarchy.from_edges(chains, nodes=[f"{i}.0" for i in range(len(depths))])
    U = vector(seed, (h.n_leaves, columns))
    assert structured_shared_norm(U, h) == pytest.approx(frobenius_norm(U), rel=1e-12)


@settings(max_examples=30)
@given(hierarchies(20), seeds)
def test_disjoint_features(h, seed):
    rng = np.random.default_rng(seed)
    U = np.zeros((h.n_leaves, 2 * h.n_leaves))
    U[np.arange(h.n_leaves).repeat(2), np.arange(2 * h.n_leaves)] = rng.normal(size=2 * h.n_leaves)
    U = U[:, rng.permutation(2 * h.n_leaves)]
    lengths = np.sqrt((U**2).sum(axis=1))
    expected = np.sqrt((lengths**2).sum())
    assert shared_norm(U) == pytest.approx(expected, rel=1e-6)
    assert structured_shared_norm(U, h) == pytest.approx(expected, rel=1e-6)
    assert frobenius_norm(U) == pytest.approx(expected)
    assert trace_norm(U) == pytest.approx(lengths.sum())


@given(st.integers(1, 8), st.integers(1, 5), seeds)
def test_factor_scaling(n, columns, seed):
    a, u = vector(seed, n), vector(seed + 1, columns)
    U = np.outer(a, u)
    length = np.linalg.norm(u)
    assert shared_norm(U) == pytest.approx(np.abs(a).max() * length, rel=1e-6)
    assert frobenius_norm(U) == pytest.approx(np.linalg.norm(a) * length)
    assert trace_norm(U) == pytest.approx(np.linalg.norm(a) * length)
    assert max_norm(U) == pytest.approx(np.abs(U).max(), rel=1e-6)


# -- Theorem 2 and Lemma 3 ---------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(matrices(10, 10))
def test_theorem_2_without_structure(U):
    r, c = U.shape
    middle = shared_norm(U) / np.sqrt(c)
    assert trace_norm(U) / np.sqrt(r * c) <= middle * SLACK
    assert middle <= max_norm(U) * SLACK
    assert shared_norm(U) <= frobenius_norm(U) * SLACK


@settings(max_examples=30)
@given(leaf_matrices(hierarchies(20)))
def test_theorem_2_and_lemma_3_with_structure(given_):
    h, U = given_
    structured, shared = structured_shared_norm(U, h), shared_norm(U)
    assert shared <= structured * SLACK
    assert structured <= frobenius_norm(U) * SLACK
    assert np.sqrt((U**2).sum(axis=1)).max() <= shared * SLACK


def test_lemma_3_as_printed_is_wrong():
    """The appendix has max ‖U_y‖² where it must have max ‖U_y‖."""
    U = np.array([[3.0, 4.0]])
    assert shared_norm(U) == pytest.approx(5)
    assert shared_norm(U) < (U**2).sum(axis=1).max()


# -- Lemmas 1 and 2: node level ----------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(hierarchies(20), seeds, st.floats(0, 1))
def test_lemma_1_joint_convexity(h, seed, t):
    """Of Σ‖U_n‖²/α_n in (U, α), and with it of the least penalty in U."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(2, h.n_nodes, 2))
    alpha = rng.random((2, h.n_nodes)) + 1e-3
    cost = lambda U, a: ((U**2).sum(axis=1) / a).sum()
    mixed = cost(t * rows[0] + (1 - t) * rows[1], t * alpha[0] + (1 - t) * alpha[1])
    assert mixed <= (t * cost(rows[0], alpha[0]) + (1 - t) * cost(rows[1], alpha[1])) * (1 + 1e-12)
    least = node_penalty(t * rows[0] + (1 - t) * rows[1], h)
    assert least <= (t * node_penalty(rows[0], h) + (1 - t) * node_penalty(rows[1], h)) * (1 + 1e-7)


def random_feasible(h, rng):
    alpha = rng.exponential(size=h.n_nodes) * (rng.random(h.n_nodes) < 0.9)
    return alpha / (h.graph.leaf_matrix() @ alpha + 1e-12).max()


@given(trees(20), seeds)
def test_lemma_2_no_feasible_weights_are_better(h, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.random(h.n_nodes) * (rng.random(h.n_nodes) < 0.8)
    c = node_penalty(lengths, h, return_certificate=True)
    for step in (1.0, 0.1, 0.001):
        alpha = (1 - step) * c.node_weights + step * random_feasible(h, rng)
        used = lengths > 0
        assume((alpha[used] > 0).all())
        assert (lengths[used] ** 2 / alpha[used]).sum() >= c.value * (1 - 1e-12)


@settings(max_examples=30)
@given(leaf_matrices(hierarchies(20)), seeds)
def test_the_norm_is_the_least_node_penalty(given_, seed):
    """Eq. 14 and Eq. 16: node rows that add up to U cost at least ‖U‖²_{s,G}; the best ones cost that."""
    h, U = given_
    c = structured_shared_norm(U, h, return_certificate=True)
    best = node_penalty(c.node_rows, h)
    assert c.lower_bound**2 * (1 - 1e-9) <= best <= c.value**2 * (1 + 1e-7)
    rng = np.random.default_rng(seed)
    for size in (1.0, 1e-3):
        rows = c.node_rows.copy()
        inner = ~h.graph.is_leaf
        rows[inner] += size * np.abs(U).max() * rng.normal(size=(inner.sum(), U.shape[1]))
        rows[h.graph.leaves] = U - h.graph.leaf_matrix()[:, inner] @ rows[inner]
        assert node_penalty(rows, h) >= c.lower_bound**2 * (1 - 1e-7)
