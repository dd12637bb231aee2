"""Curves of probabilities: against scikit-learn's logistic regression, and their order in the hierarchy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from nhsvm.estimators import calibration
from nhsvm.estimators.calibration import CURVES, fit_curves
from nhsvm.model.sets import Curves, along_directions, node_margins
from strategies import dags


def nothing(n):
    """Scores that have no directions."""
    return np.ones((n, 2))


def standard(values, weight):
    mean = np.average(values, axis=0, weights=weight)
    return mean, np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))


def test_a_curve_is_a_logistic_regression():
    """Of the margin in standard deviations, with a penalty of half the prior's weight on the slope."""
    rng = np.random.default_rng(0)
    margins = rng.normal(size=(5000, 3)) * [1.0, 0.1, 10.0] + [0.0, 3.0, -5.0]
    true = rng.random((5000, 3)) < 1 / (1 + np.exp(-(margins * [2.0, 5.0, 0.3] + [-1.0, -16.0, 1.0])))
    weight = rng.uniform(0.5, 1.5, 5000)
    weight /= weight.mean()
    curves = fit_curves(margins, true, weight, nothing(5000))
    assert curves.shares.shape == (0, 3)
    mean, spread = standard(margins, weight)
    for k in range(3):
        machine = LogisticRegression(C=1 / CURVES.prior, tol=1e-10, max_iter=10**4)
        machine.fit((margins[:, [k]] - mean[k]) / spread[k], true[:, k], weight)
        slope = machine.coef_[0, 0] / spread[k]
        assert curves.slope[k] == pytest.approx(slope, rel=1e-3)
        assert curves.intercept[k] == pytest.approx(machine.intercept_[0] - slope * mean[k], rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("directions", [2, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_directions_it_is_one_of_more_features(directions, dtype, monkeypatch):
    """All scores along their principal directions, divided by the root of their total variance."""
    several = CURVES._replace(directions=directions, samples=300, nodes=2)  # several parts of samples, and of nodes
    monkeypatch.setattr(calibration, "CURVES", several)
    rng = np.random.default_rng(1)
    scores = (rng.normal(size=(2000, 4)) @ rng.normal(size=(4, 7)) + 3.0).astype(dtype)
    margins = scores[:, :3] + rng.normal(size=(2000, 3))
    true = rng.random((2000, 3)) < 1 / (1 + np.exp(-(margins + scores[:, 4:] @ rng.normal(size=(3, 3)))))
    weight = rng.uniform(0.5, 1.5, 2000)
    curves = fit_curves(margins, true, weight, scores)
    assert curves.directions.shape == (7, directions)
    logits = margins * curves.slope + curves.intercept + scores @ curves.directions @ curves.shares
    weight /= weight.mean()
    mean, spread = standard(scores.astype(float), weight)
    centred = (scores - mean) / np.sqrt((spread**2).sum())
    axes = np.linalg.svd(centred * np.sqrt(weight)[:, None])[2][:directions]
    mean, spread = standard(margins, weight)
    for k in range(3):
        features = np.column_stack([(margins[:, k] - mean[k]) / spread[k], centred @ axes.T])
        target = (weight * true[:, k] + 0.5 / 2000) / (weight + 1 / 2000)  # half a sample more of either kind
        machine = LogisticRegression(C=1 / CURVES.prior, tol=1e-10, max_iter=10**4)
        machine.fit(np.vstack([features] * 2), np.arange(4000) < 2000, np.r_[weight * target, weight * (1 - target)])
        np.testing.assert_allclose(logits[:, k], machine.decision_function(features), atol=2e-4)


def test_others_help_where_the_margin_says_nothing():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(1000, 3))
    true = np.column_stack([scores[:, 1] > 0, scores[:, 1] > 0])
    margins = np.column_stack([rng.normal(size=1000), scores[:, 1]])
    curves = fit_curves(margins, true, np.ones(1000), scores)
    logits = margins * curves.slope + curves.intercept + scores @ curves.directions @ curves.shares
    assert ((logits > 0) == true).mean(axis=0).min() > 0.97
    alone = fit_curves(margins, true, np.ones(1000), nothing(1000))
    assert ((margins[:, 0] * alone.slope[0] + alone.intercept[0] > 0) == true[:, 0]).mean() < 0.6


def test_rare_nodes_keep_their_frequency():
    margins = np.column_stack([np.linspace(-2, -1, 200), np.full(200, -1.0), np.linspace(1, -1, 200)])
    true = np.zeros((200, 3), dtype=bool)
    true[-20:, 2] = True  # the wrong way round: no slope is better than a negative one
    curves = fit_curves(margins, true, np.ones(200), nothing(200))
    p = 1 / (1 + np.exp(-(margins * curves.slope + curves.intercept)))
    assert p[:, :2].max() < 0.01
    assert curves.slope[2] == 0.0
    np.testing.assert_allclose(p[:, 2], 0.1, rtol=0.05)


@given(dags(), st.integers(0, 2**32))
def test_nothing_is_more_probable_than_what_is_above(h, seed):
    rng = np.random.default_rng(seed)
    graph, n = h.graph, h.n_nodes
    gains = rng.normal(size=(3, graph.n_leaves))
    margins = node_margins(graph, gains)
    below = graph.leaf_matrix().toarray() > 0
    np.testing.assert_array_equal(margins, np.where(below, gains[:, :, None], -np.inf).max(axis=1))
    curves = Curves(rng.uniform(0, 2, n), rng.normal(size=n), rng.normal(size=(n, 2)), rng.normal(size=(2, n)))
    found = curves.probabilities(margins, rng.normal(size=(3, 2)), graph)
    parent, child = graph.edges()
    assert (found[:, child] <= found[:, parent]).all()
    assert ((found > 0) & (found < 1)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_does_not_depend_on_those_beside_it(dtype):
    """Chunks of samples are cut by the number of threads."""
    rng = np.random.default_rng(0)
    scores, directions = rng.normal(size=(200, 500)).astype(dtype), rng.normal(size=(500, 32))
    together = along_directions(scores, directions)
    np.testing.assert_allclose(together, scores.astype(np.float64) @ directions, rtol=1e-9, atol=1e-9)
    for step in (1, 16, 17):
        parts = [along_directions(scores[lo : lo + step], directions) for lo in range(0, 200, step)]
        np.testing.assert_array_equal(np.concatenate(parts), together)
