"""The interior-point method for large ρ."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from nhsvm import node_weights
from nhsvm.errors import NotSolvedError
from nhsvm.weights import interior, power, steep
from nhsvm.weights.interior import Powers, minimise
from nhsvm.weights.steep import minimise_norm
from strategies import dags, random_hierarchy

OPTIONS = [
    {"directional": directional, "total": total}
    for directional in (False, True)
    for total in ((1, 1), (1, 1.01), (1, 1.5), (1, 50))
]


def least_maximum(h, directional, total):
    """The smallest possible largest weight, from a linear program."""
    paths = h.graph.leaf_matrix().toarray()
    n = h.n_nodes
    below = np.hstack([np.eye(n), -np.ones((n, 1))])
    rows = [below, np.hstack([paths, np.zeros((len(paths), 1))]), np.hstack([-paths, np.zeros((len(paths), 1))])]
    sides = [np.zeros(n), np.full(len(paths), total[1]), np.full(len(paths), -total[0])]
    parent, child = h.graph.edges()
    kept = ~h.graph.is_common[parent]
    if directional:
        rows.append(np.hstack([np.eye(n)[parent[kept]] - np.eye(n)[child[kept]], np.zeros((kept.sum(), 1))]))
        sides.append(np.zeros(kept.sum()))
    bounds = [(0, 0) if common else (0, None) for common in h.graph.is_common] + [(0, None)]
    goal = np.append(np.zeros(n), 1.0)
    return linprog(goal, A_ub=np.vstack(rows), b_ub=np.concatenate(sides), bounds=bounds).fun


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("rho", [50.0, 1000.0, 1e6, 1e300])
def test_the_largest_weight_is_as_small_as_the_norm_promises(rho, options):
    """max α ≤ ‖α‖_ρ ≤ ‖β‖_ρ ≤ n^{1/ρ} max β for the β with the smallest maximum."""
    for seed in range(6):
        h = random_hierarchy(15 + 5 * seed, 50 + seed, roots=1 + seed % 3, extra=(0.3, 1.0, 1.5)[seed % 3])
        largest = node_weights(h, "power", rho=rho, **options).max()
        best = least_maximum(h, **options)
        assert best * (1 - 1e-7) <= largest <= best * h.n_nodes ** (1 / rho) * (1 + 2e-8)


@given(h=dags(), rho=st.floats(1.1, 8), options=st.sampled_from(OPTIONS))
def test_it_agrees_with_the_other_method(h, rho, options):
    norm = lambda: (node_weights(h, "power", rho=rho, **options) ** rho).sum() ** (1 / rho)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power, "STEEP", 1.0)
        as_a_norm = norm()
    assert as_a_norm == pytest.approx(norm(), rel=2e-8)


@pytest.mark.parametrize("rho", [1.5, 3.0, 40.0, 1e4, 1e12])
def test_the_proved_gap_is_true(rho):
    """The least norm of (x, 1 − x) is 2^{1/ρ}/2; whatever the method returns must be within its own gap of that."""
    found = minimise_norm(np.zeros(2), rho, sp.csr_array([[-1.0]]), np.ones(1), np.array([0.1]))
    best = 2 ** (1 / rho) / 2
    assert found.value >= best * (1 - 1e-15)
    assert found.value - found.gap <= best * (1 + 1e-15)
    assert found.y.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("rho", [20.0, 1e3, 1e5])
def test_costs_that_are_no_floats(rho):
    """Logarithms of costs may be anything: min ‖(x, 3^{1/ρ}·e·(1−x))‖ has a closed form."""
    log_c = np.array([0.0, np.log(3) + rho])
    found = minimise_norm(log_c, rho, sp.csr_array([[-1.0]]), np.ones(1), np.array([0.1]))
    ratio = np.exp(log_c[1] / (rho - 1))  # x/(1−x), where the slopes are equal
    np.testing.assert_allclose(found.y[0] / found.y[1], ratio, rtol=1e-4)


def test_it_is_used_above_8_only(monkeypatch):
    h = random_hierarchy(30, 1, extra=1.0)
    monkeypatch.setattr(power, "minimise_norm", None)
    node_weights(h, "power", rho=8.0)
    with pytest.raises(TypeError):
        node_weights(h, "power", rho=8.5)


def test_an_unproved_result_is_an_error(monkeypatch):
    monkeypatch.setattr(steep, "DESCENT", replace(steep.DESCENT, most_steps=3))
    with pytest.raises(NotSolvedError, match=r"Power\(rho=100.*DAG, 30 nodes.*after 2 steps the relative duality gap"):
        node_weights(random_hierarchy(30, 1, extra=1.0), "power", rho=100)


def test_newton_system_without_positive_pivot_ends_the_descent(monkeypatch):
    def fail(H):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr(interior, "factorise", fail)
    with pytest.raises(NotSolvedError):
        node_weights(random_hierarchy(30, 1, extra=1.0), "power", rho=100)


def test_powers_of_costs_and_norms_agree():
    """Both methods on one small problem, with a constraint that has no cost."""
    F, f, x = sp.csr_array([[-1.0, -1.0], [1.0, -1.0]]), np.array([1.0, -0.05]), np.array([0.4, 0.2])
    c = np.array([1.0, 1.0, 2.0, 0.0])
    costs = minimise(Powers(c, 4.0), F, f, x, np.array([-1.0, -0.5]))
    with np.errstate(divide="ignore"):
        norm = minimise_norm(np.log(c), 4.0, F, f, x)
    assert norm.value == pytest.approx(costs.value ** (1 / 4), rel=1e-9)
    np.testing.assert_allclose(norm.y, costs.y, atol=1e-5)
