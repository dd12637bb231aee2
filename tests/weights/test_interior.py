"""The interior-point method and its linear algebra."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import node_weights
from nhsvm.errors import NotSolvedError
from nhsvm.weights import interior
from nhsvm.weights.interior import Descent, Elimination, Inverses, Powers, minimise
from strategies import random_hierarchy

positive = st.floats(1e-6, 1e3)


@given(y=positive, w=st.floats(-1e3, 1e3), c=positive, rho=st.floats(1.05, 8))
def test_fenchel_inequality_of_powers(y, w, c, rho):
    costs = Powers(np.array([c]), rho)
    y, w = np.array([y]), np.array([w])
    assert (costs.value(y) + costs.conjugate(w) - w * y)[0] >= -1e-9 * abs(w * y)[0]
    slope = costs.slope(y)
    np.testing.assert_allclose(costs.value(y) + costs.conjugate(slope), slope * y, rtol=1e-9)


@given(y=positive, w=st.floats(-1e3, 0), b=positive)
def test_fenchel_inequality_of_inverses(y, w, b):
    costs = Inverses(np.array([b]))
    y, w = np.array([y]), np.array([w])
    assert (costs.value(y) + costs.conjugate(w) - w * y)[0] >= -1e-9 * (costs.value(y) + abs(w * y))[0]
    slope = costs.slope(y)
    np.testing.assert_allclose(
        costs.value(y) + costs.conjugate(slope) - slope * y, 0, atol=1e-9 * float(costs.value(y)[0])
    )


def test_a_constraint_alone_has_no_price_and_no_positive_multiplier():
    for costs in (Powers(np.zeros(2), 2.0), Inverses(np.zeros(2))):
        np.testing.assert_array_equal(costs.conjugate(np.array([-1.0, 1.0])), [0, np.inf])
        np.testing.assert_array_equal(costs.value(np.array([3.0, 4.0])), [0, 0])


@given(y=positive, c=positive, rho=st.floats(1.05, 8))
def test_slopes_and_curvatures_are_derivatives(y, c, rho):
    for costs in (Powers(np.array([c]), rho), Inverses(np.array([c]))):
        h = 1e-5 * y
        low, mid, high = (np.array([t]) for t in (y - h, y, y + h))
        np.testing.assert_allclose((costs.value(high) - costs.value(low)) / (2 * h), costs.slope(mid), rtol=1e-4)
        np.testing.assert_allclose((costs.slope(high) - costs.slope(low)) / (2 * h), costs.curvature(mid), rtol=1e-4)


def test_the_proved_gap_is_true():
    """min x^2 + (1-x)^2 has value 1/2; whatever the method returns must be within its own gap of that."""
    found = minimise(Powers(np.ones(2), 2.0), sp.csr_array([[-1.0]]), np.ones(1), np.array([0.1]), np.array([-1.0]))
    assert found.value >= 0.5
    assert found.value - found.gap <= 0.5
    np.testing.assert_allclose(found.y, 0.5, atol=1e-6)


def test_an_unproved_result_is_an_error(monkeypatch):
    monkeypatch.setattr(interior, "DESCENT", Descent(most_steps=3))
    with pytest.raises(NotSolvedError, match=r"after 2 steps the relative duality gap is .*, not both to 1e-08"):
        node_weights(random_hierarchy(30, 1, extra=1.0), "power")


def test_newton_system_without_positive_pivot_ends_the_descent(monkeypatch):
    def fail(H):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(interior, "factorise", fail)
    with pytest.raises(NotSolvedError):
        node_weights(random_hierarchy(30, 1, extra=1.0), "power")


def sparse_definite(n, seed):
    """Like the method's matrices: scaled 0/1 rows of ancestors, a few of which are long."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(n, size=int(rng.integers(2, 6)), replace=False) for _ in range(n)]
    indptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    F = sp.csr_array((np.ones(indptr[-1]), np.concatenate(rows), indptr), shape=(n, n))
    return (sp.diags_array(rng.exponential(size=n) + 0.1) + F.T @ sp.diags_array(rng.exponential(size=n)) @ F).tocsr()


@pytest.mark.parametrize("n", [1, 50, 400, 1500])
@pytest.mark.parametrize("largest_dense", [15_000, 10])
def test_factorise_solves(n, largest_dense, monkeypatch):
    monkeypatch.setattr(interior, "ELIMINATION", Elimination(largest_dense=largest_dense))
    H = sparse_definite(n, n) if n > 6 else sp.csr_array([[2.0]])
    b = np.random.default_rng(0).normal(size=n)
    np.testing.assert_allclose(H @ interior.factorise(H)(b), b, atol=1e-9)


def test_factorise_of_a_diagonal_matrix():
    d = np.arange(1.0, 1001.0)
    np.testing.assert_allclose(interior.factorise(sp.diags_array(d).tocsr())(np.ones(1000)), 1 / d)


@pytest.mark.parametrize("n", [50, 1000])
def test_factorise_refuses_what_is_not_positive_definite(n):
    H = sp.diags_array(np.where(np.arange(n) == n // 2, -1.0, 1.0)).tocsr()
    with pytest.raises(np.linalg.LinAlgError):
        interior.factorise(H)
