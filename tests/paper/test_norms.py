"""The norms: axioms, invariances, shapes at the edge, bad input, and the definitions themselves given to Clarabel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import NHSVMError, NotSolvedError, OptionError
from nhsvm.paper import NORMS as REGISTERED
from nhsvm.paper import frobenius_norm, max_norm, node_penalty, shared_norm, structured_shared_norm, trace_norm
from paper import conic
from paper.matrices import KINDS, leaf_matrices, matrices, random_matrix
from strategies import hierarchies, random_hierarchy

NORMS = [REGISTERED[name] for name in REGISTERED.choices]
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


# -- bad input ---------------------------------------------------------------------------------------------------------

H = Hierarchy.from_edges([("r", "a"), ("r", "b")])
BAD = {
    "NaN": ([[1.0, np.nan], [0.0, 1.0]], r"entry \[0, 1\] is nan"),
    "infinite": ([[1.0, 0.0], [-np.inf, 1.0]], r"entry \[1, 0\] is -inf"),
    "three dimensions": (np.zeros((2, 2, 2)), "3 dimensions"),
    "empty": (np.zeros((2, 0)), r"empty: shape \(2, 0\)"),
    "text": ([["a", "b"], ["c", "d"]], "real numbers"),
    "complex": ([[1j, 0], [0, 1]], "real numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], "real numbers"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("norm", NORMS)
def test_bad_matrices(norm, case):
    U, message = BAD[case]
    with pytest.raises(NHSVMError, match=message):
        norm(U)


@pytest.mark.parametrize("case", BAD)
def test_bad_matrices_with_a_hierarchy(case):
    U, message = BAD[case]
    with pytest.raises(NHSVMError, match=message):
        structured_shared_norm(U, H)
    with pytest.raises(NHSVMError, match=message):
        node_penalty(U, H)


@pytest.mark.parametrize("norm", NORMS)
def test_one_dimension(norm):
    with pytest.raises(NHSVMError, match="1 dimensions"):
        norm([1.0, 2.0])


def test_wrong_number_of_rows():
    with pytest.raises(NHSVMError, match=r"each of the 2 leaves .* has 3"):
        structured_shared_norm(np.zeros((3, 2)), H)
    with pytest.raises(NHSVMError, match="each of 3 nodes, but has 2"):
        node_penalty(np.zeros((2, 2)), H)


def test_not_a_hierarchy():
    for function in (structured_shared_norm, node_penalty):
        with pytest.raises(NHSVMError, match="must be a Hierarchy, not a list"):
            function(np.zeros((2, 2)), [("r", "a")])


@pytest.mark.parametrize("tol", [0, -1e-6, np.nan, np.inf, "small", None, True])
def test_bad_tolerance(tol):
    for call in (shared_norm, max_norm, lambda U, tol: structured_shared_norm(U, H, tol=tol)):
        with pytest.raises(OptionError, match="tol must be a positive number"):
            call(np.eye(2), tol=tol)


def test_not_solved():
    h = Hierarchy.from_edges([("r", i) for i in range(6)])
    many = [np.random.default_rng(seed).normal(size=(6, 4)) for seed in range(20)]
    for call in (shared_norm, max_norm, lambda U, tol: structured_shared_norm(U, h, tol=tol)):
        with pytest.raises(NotSolvedError, match=r"relative gap of .* pass a larger tol"):
            [call(U, tol=1e-17) for U in many]  # a gap may be rounded to zero, but not all of them are


def test_integers_and_sparse_matrices_are_welcome():
    assert trace_norm(sp.csr_array(np.eye(2, dtype=int))) == pytest.approx(2)
    assert shared_norm([[3, 4]]) == pytest.approx(5)
    assert node_penalty(sp.csr_array(np.eye(3)), H) == pytest.approx((1 + np.sqrt(2)) ** 2)


# -- as conic programs -------------------------------------------------------------------------------------------------

SEEDS = range(36)


def some_matrix(seed):
    rng = np.random.default_rng(seed)
    U = random_matrix(*rng.integers(1, 7, size=2), KINDS[seed % len(KINDS)], seed)
    return U / (np.abs(U).max() or 1.0)  # Clarabel wants numbers of order 1


@pytest.mark.parametrize("seed", SEEDS)
def test_shared_norm_is_a_conic_program(seed):
    U = some_matrix(seed)
    assert shared_norm(U, tol=1e-8) == pytest.approx(conic.shared_norm(U), rel=3e-5, abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_max_norm_is_a_conic_program(seed):
    U = some_matrix(seed)
    assert max_norm(U, tol=1e-8) == pytest.approx(conic.max_norm(U), rel=3e-5, abs=1e-5)


def some_hierarchy(seed):
    rng = np.random.default_rng(seed)
    return random_hierarchy(int(rng.integers(1, 14)), seed, roots=1 + seed % 3, extra=0.5 * (seed % 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_structured_shared_norm_is_a_conic_program(seed):
    h = some_hierarchy(seed)
    U = random_matrix(h.n_leaves, 1 + seed % 4, KINDS[seed % len(KINDS)], seed)
    U = U / (np.abs(U).max() or 1.0)
    assert structured_shared_norm(U, h) == pytest.approx(conic.structured_shared_norm(U, h), rel=3e-5, abs=3e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_node_penalty_is_a_conic_program(seed):
    h = some_hierarchy(seed)
    rng = np.random.default_rng(seed)
    lengths = rng.random(h.n_nodes) * (rng.random(h.n_nodes) < 0.7)
    expected = conic.node_penalty(lengths, h) if lengths.any() else 0.0
    assert node_penalty(lengths, h) == pytest.approx(expected, rel=1e-5)
