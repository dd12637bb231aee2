"""What every measure must do; a new one is covered as soon as it is in METRICS."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm.metrics import METRICS, scorers
from strategies import SPECIAL, hierarchies

every_metric = pytest.mark.parametrize("name", METRICS)
seeds = st.integers(0, 2**32)


def scores_of(h, y):
    """Node scores that say what labels do: 1 for a label and what is above it."""
    scores = np.zeros((len(y), h.n_nodes))
    for row, label in zip(scores, y, strict=True):
        row[h.numbers(list(h.closure(label)))] = 1.0
    return scores


def value(name, h, y_true, y_pred, **options):
    """A measure of predicted labels, as a dict of numbers."""
    given = scores_of(h, y_pred) if name == "auprc" else y_pred
    found = METRICS[name](y_true, given, hierarchy=h, **options)
    return found if isinstance(found, dict) else {name: found}


def samples(h, seed, n=8):
    """Leaves, so that most things are wrong and some right."""
    rng = np.random.default_rng(seed)
    y_true = [h.leaves[i] for i in rng.integers(h.n_leaves, size=n)]
    y_pred = [t if rng.random() < 0.4 else h.leaves[rng.integers(h.n_leaves)] for t in y_true]
    return y_true, y_pred, rng.integers(1, 4, n)


@every_metric
@given(h=hierarchies(), seed=seeds)
def test_what_is_right_is_best(name, h, seed):
    y_true, y_pred, _ = samples(h, seed)
    best = METRICS.specs[name].best
    if best is None or (name == "auprc" and h.n_nodes == 1):  # the only root counts for nothing
        return
    assert value(name, h, y_true, y_true) == dict.fromkeys(value(name, h, y_true, y_true), best)
    for found in value(name, h, y_true, y_pred).values():
        assert found <= 1 + 1e-12 if best == 1 else found >= 0


@every_metric
@given(h=hierarchies(), seed=seeds)
def test_the_order_of_samples_does_not_matter(name, h, seed):
    y_true, y_pred, weight = samples(h, seed)
    order = np.random.default_rng(seed).permutation(len(y_true))
    shuffled = [[y[i] for i in order] for y in (y_true, y_pred)]
    found = value(name, h, y_true, y_pred, sample_weight=weight)
    assert value(name, h, *shuffled, sample_weight=weight[order]) == pytest.approx(found, rel=1e-9, abs=1e-12)


@every_metric
@given(h=hierarchies(), seed=seeds)
def test_a_weight_is_so_many_samples(name, h, seed):
    """Weights are repetitions, and their scale does not matter."""
    y_true, y_pred, weight = samples(h, seed)
    found = value(name, h, y_true, y_pred, sample_weight=weight)
    repeated = [[label for label, w in zip(y, weight, strict=True) for _ in range(w)] for y in (y_true, y_pred)]
    assert value(name, h, *repeated) == pytest.approx(found, rel=1e-9, abs=1e-12)
    assert value(name, h, y_true, y_pred, sample_weight=0.25 * weight) == pytest.approx(found, rel=1e-9, abs=1e-12)


def test_every_measure_of_predictions_has_scorers():
    tables = {"accuracy_at_depth", "lshtc_measures"}
    assert {name for name, metric in METRICS.specs.items() if not metric.scorers} == {"auprc"} | tables


def test_scorers_of_errors_are_negative():
    names = [name for metric in METRICS.specs.values() for name in metric.scorers]
    assert list(scorers(SPECIAL["diamond"])) == names
    for metric in METRICS.specs.values():
        assert all(name.startswith("neg_") == (metric.best == 0) for name in metric.scorers)
