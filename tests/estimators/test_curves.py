"""Curves of probabilities: against scikit-learn's logistic regression, and their order in the hierarchy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from nhsvm.estimators._curves import _PRIOR, Curves, fit_curves, node_margins
from strategies import dags


def test_a_curve_is_a_logistic_regression():
    """Of the margin in standard deviations, with a penalty of half the prior's weight on the slope."""
    rng = np.random.default_rng(0)
    margins = rng.normal(size=(5000, 3)) * [1.0, 0.1, 10.0] + [0.0, 3.0, -5.0]
    true = rng.random((5000, 3)) < 1 / (1 + np.exp(-(margins * [2.0, 5.0, 0.3] + [-1.0, -16.0, 1.0])))
    weight = rng.uniform(0.5, 1.5, 5000)
    weight /= weight.mean()
    curves = fit_curves(margins, true, weight)
    mean = np.average(margins, axis=0, weights=weight)
    spread = np.sqrt(np.average((margins - mean) ** 2, axis=0, weights=weight))
    for k in range(3):
        machine = LogisticRegression(C=1 / _PRIOR, tol=1e-10, max_iter=10**4)
        machine.fit((margins[:, [k]] - mean[k]) / spread[k], true[:, k], weight)
        slope = machine.coef_[0, 0] / spread[k]
        assert curves.slope[k] == pytest.approx(slope, rel=1e-3)
        assert curves.intercept[k] == pytest.approx(machine.intercept_[0] - slope * mean[k], rel=1e-3, abs=1e-2)


def test_rare_nodes_keep_their_frequency():
    margins = np.column_stack([np.linspace(-2, -1, 200), np.full(200, -1.0), np.linspace(1, -1, 200)])
    true = np.zeros((200, 3), dtype=bool)
    true[-20:, 2] = True  # the wrong way round: no slope is better than a negative one
    curves = fit_curves(margins, true, np.ones(200))
    p = 1 / (1 + np.exp(-(margins * curves.slope + curves.intercept)))
    assert p[:, :2].max() < 0.01
    assert curves.slope[2] == 0.0
    np.testing.assert_allclose(p[:, 2], 0.1, rtol=0.05)


@given(dags(), st.integers(0, 2**32))
def test_nothing_is_more_probable_than_what_is_above(h, seed):
    rng = np.random.default_rng(seed)
    graph = h.graph
    gains = rng.normal(size=(3, graph.n_leaves))
    margins = node_margins(graph, gains)
    below = graph.leaf_matrix().toarray() > 0
    np.testing.assert_array_equal(margins, np.where(below, gains[:, :, None], -np.inf).max(axis=1))
    found = Curves(rng.uniform(0, 2, graph.n_nodes), rng.normal(size=graph.n_nodes)).probabilities(margins, graph)
    parent, child = graph.edges()
    assert (found[:, child] <= found[:, parent]).all()
    assert ((found > 0) & (found < 1)).all()
