"""Equal to plain sets on random hierarchies, and what must hold whatever the data."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import metrics
from reference import metrics as reference
from strategies import SPECIAL, hierarchies, random_hierarchy

seeds = st.integers(0, 2**32)
ROOTS = ["auto", True, False]
SETS = {
    "example_jaccard": [{"over": "labels"}, {"over": "nodes"}],
    "f1": [{"average": a, "over": o} for a in ("micro", "macro", "samples") for o in ("labels", "nodes")],
    "hierarchical_precision": [{"average": a} for a in ("micro", "samples")],
    "hierarchical_recall": [{"average": a} for a in ("micro", "samples")],
    "hierarchical_f1": [{"average": a} for a in ("micro", "samples")],
}
CASES = [(getattr(metrics, name), options) for name, several in SETS.items() for options in several]


def make(h, seed, n=6):
    """Random label sets, on inner nodes too and now and then empty, and weights."""
    rng = np.random.default_rng(seed)
    nodes = list(h.nodes)
    y_true, y_pred = ([set(rng.choice(nodes, rng.integers(0, 4)).tolist()) for _ in range(n)] for _ in range(2))
    for i in np.flatnonzero(rng.random(n) < 0.3):
        y_pred[i] = set(y_true[i])
    return y_true, y_pred, rng.integers(0, 4, n) + (np.arange(n) == 0)


def singles(h, seed, n=6):
    rng = np.random.default_rng(seed)
    return rng.choice(list(h.nodes), n).tolist(), rng.choice(list(h.nodes), n).tolist(), rng.integers(1, 4, n)


@given(hierarchies(), seeds, st.sampled_from(ROOTS), st.sampled_from(["labels", "nodes"]))
def test_sets_are_as_defined(h, seed, roots, over):
    y_true, y_pred, weight = make(h, seed)
    options = {"hierarchy": h, "roots": roots, "sample_weight": weight}
    close = lambda value: pytest.approx(value, rel=1e-12, abs=1e-15)
    if over == "labels":
        true, pred = y_true, y_pred
        names = set(h.leaves).union(*true, *pred)
    else:
        true, pred = (reference.node_sets(h, y, roots) for y in (y_true, y_pred))
        names = reference.counted(h, roots)
        for average, name in ((a, n) for a in ("micro", "samples") for n in ("precision", "recall")):
            found = getattr(metrics, f"hierarchical_{name}")(
                y_true, y_pred, average=average, zero_division=0.25, **options
            )
            swap = slice(None) if name == "precision" else slice(None, None, -1)
            rows = [reference.sums([t], [p], [1]) for t, p in zip(true, pred, strict=True)]
            if average == "micro":
                rows, w = [reference.sums(true, pred, weight)], [1]
            else:
                w = weight
            values = []
            for both, *sizes in rows:
                other, whole = sizes[swap]
                values.append(reference.share(both, whole, other, 0.25))
            assert found == close(reference.mean(values, w))
        expected = reference.f1_of(*reference.sums(true, pred, weight))
        assert metrics.hierarchical_f1(y_true, y_pred, **options) == close(expected)
    options["over"] = over
    assert metrics.example_jaccard(y_true, y_pred, **options) == close(reference.jaccard(true, pred, weight))
    both, t, p = reference.sums(true, pred, weight)
    assert metrics.f1(y_true, y_pred, **options) == close(reference.f1_of(both, t, p))
    for zero in (math.nan, 0.0, 0.5):
        found = metrics.f1(y_true, y_pred, average="macro", zero_division=zero, **options)
        assert found == close(reference.macro_f1(true, pred, weight, names, zero))
    expected = (t + p - 2 * both) / weight.sum()
    assert metrics.hamming_distance(y_true, y_pred, normalize=False, **options) == close(expected)
    assert metrics.hamming_distance(y_true, y_pred, **options) == close(expected / max(1, len(names)))
    depths = metrics.accuracy_at_depth(y_true, y_pred, hierarchy=h, sample_weight=weight)
    assert depths == close(reference.accuracy_at_depth(h, y_true, y_pred, weight))


@given(hierarchies(), seeds)
def test_distances_are_as_defined(h, seed):
    y_true, y_pred, weight = singles(h, seed)
    options = {"hierarchy": h, "sample_weight": weight}
    pairs = list(zip(y_true, y_pred, strict=True))
    expected = reference.mean([reference.distance(h, a, b) for a, b in pairs], weight)
    assert metrics.tree_distance(y_true, y_pred, **options) == pytest.approx(expected, rel=1e-12)
    expected = reference.mean([reference.lca_f1(h, {a}, {b}) for a, b in pairs], weight)
    assert metrics.lca_f1(y_true, y_pred, **options) == pytest.approx(expected, rel=1e-12)


@given(hierarchies(15), seeds, st.floats(0.5, 9))
def test_distances_of_sets_are_as_defined(h, seed, alone):
    y_true, y_pred, weight = make(h, seed, 3)
    pairs = list(zip(y_true, y_pred, strict=True))
    options = {"hierarchy": h, "sample_weight": weight}
    expected = reference.mean([reference.lca_f1(h, t, p) for t, p in pairs], weight)
    found = metrics.lca_f1(y_true, y_pred, **options)
    assert found == pytest.approx(expected, rel=1e-12)
    assert found == metrics.lca_f1(y_pred, y_true, **options)
    assert metrics.lca_f1(y_true, [h.closure(y) for y in y_pred], **options) == found
    costs = [reference.pairing_cost(h, t, p, alone) for t, p in pairs]
    shares = [1 - cost / (alone * len(t ^ p)) if t ^ p else 1.0 for cost, (t, p) in zip(costs, pairs, strict=True)]
    found = metrics.graph_accuracy(y_true, y_pred, max_distance=alone, **options)
    assert found == pytest.approx(reference.mean(shares, weight), rel=1e-9, abs=1e-12)
    assert found == pytest.approx(metrics.graph_accuracy(y_pred, y_true, max_distance=alone, **options), rel=1e-12)
    costs = [reference.pairing_cost(h, t, p, 5.0) for t, p in pairs]
    assert metrics.lshtc_measures(y_true, y_pred, **options)["graph_error"] == pytest.approx(
        reference.mean(costs, weight)
    )


def test_too_many_combinations_are_chosen_one_after_the_other(monkeypatch):
    h = random_hierarchy(40, 3, extra=1.0)
    y_true, y_pred, _ = make(h, 0, 200)
    best = metrics.lca_f1(y_true, y_pred, hierarchy=h)
    monkeypatch.setattr("nhsvm.metrics.distances.MAX_CHOICES", 1)
    greedy = metrics.lca_f1(y_true, y_pred, hierarchy=h)
    assert greedy == pytest.approx(best, abs=0.02)
    assert greedy != best


def test_many_pairs_are_compared_in_steps(monkeypatch):
    h = random_hierarchy(60, 0, roots=2, extra=0.5)
    y_true, y_pred, _ = singles(h, 1, 200)
    before = metrics.tree_distance(y_true, y_pred, hierarchy=h)
    monkeypatch.setattr("nhsvm.metrics.distances.BATCH", 7)
    assert metrics.tree_distance(y_true, y_pred, hierarchy=h) == before


@pytest.mark.parametrize(("function", "options"), CASES)
@given(h=hierarchies(), seed=seeds, roots=st.sampled_from(ROOTS))
def test_bounds_and_perfection(function, options, h, seed, roots):
    y_true, y_pred, weight = make(h, seed)
    if function.__name__ in ("example_jaccard", "f1", "hierarchical_f1"):
        value = function(y_true, y_pred, hierarchy=h, roots=roots, sample_weight=weight, **options)
        other = function(y_pred, y_true, hierarchy=h, roots=roots, sample_weight=weight, **options)
        assert value == other
    assert 0 <= function(y_true, y_pred, hierarchy=h, roots=roots, **options) <= 1
    assert function(y_true, y_true, hierarchy=h, roots=roots, sample_weight=weight, **options) == 1


@given(hierarchies(), seeds)
def test_precision_is_recall_the_other_way_round(h, seed):
    y_true, y_pred, _ = make(h, seed)
    for average in ("micro", "samples"):
        precision = metrics.hierarchical_precision(y_true, y_pred, hierarchy=h, average=average)
        assert precision == metrics.hierarchical_recall(y_pred, y_true, hierarchy=h, average=average)


@pytest.mark.parametrize(("function", "options"), [case for case in CASES if case[1].get("over", "nodes") == "nodes"])
@given(h=hierarchies(), seed=seeds)
def test_ancestors_may_be_written_out(function, options, h, seed):
    y_true, y_pred, _ = make(h, seed)
    written = [h.closure(y) for y in y_pred]
    assert function(y_true, y_pred, hierarchy=h, **options) == function(y_true, written, hierarchy=h, **options)
    depths = metrics.accuracy_at_depth(y_true, y_pred, hierarchy=h)
    assert depths == metrics.accuracy_at_depth(y_true, written, hierarchy=h)


@settings(max_examples=15)  # each goes through all measures
@given(hierarchies(), seeds)
def test_a_weight_is_so_many_copies(h, seed):
    y_true, y_pred, _ = make(h, seed, 4)
    times = [2, 0, 1, 3]
    copies = [[y for y, k in zip(some, times, strict=True) for _ in range(k)] for some in (y_true, y_pred)]
    for function, options in CASES:
        weighted = function(y_true, y_pred, hierarchy=h, sample_weight=times, **options)
        assert weighted == pytest.approx(function(*copies, hierarchy=h, **options), rel=1e-12)


@given(hierarchies(), seeds)
def test_distances_are_symmetric_and_zero_only_for_equals(h, seed):
    a, b, _ = singles(h, seed, 1)
    d = metrics.tree_distance(a, b, hierarchy=h)
    assert d == metrics.tree_distance(b, a, hierarchy=h)
    assert (d == 0) == (a == b)
    assert metrics.lca_f1(a, b, hierarchy=h) == 2 / (2 + d)
    if h.is_tree:  # the Hamming distance of closures counts the same edges
        assert d == metrics.hamming_distance(a, b, hierarchy=h, over="nodes", roots=True, normalize=False)


@settings(max_examples=15)  # each goes through all measures
@given(hierarchies(), seeds)
def test_virtual_leaves_change_nothing(h, seed):
    y_true, y_pred, weight = make(h, seed)
    g = h.with_virtual_leaves(h.nodes)
    for function, options in CASES:
        before = function(y_true, y_pred, hierarchy=h, sample_weight=weight, **options)
        after = function(y_true, y_pred, hierarchy=g, sample_weight=weight, **options)
        assert after == pytest.approx(before, rel=1e-12)  # columns are added up in another order
    one, other, _ = singles(h, seed)
    assert metrics.tree_distance(one, other, hierarchy=h) == metrics.tree_distance(one, other, hierarchy=g)
    depths = metrics.accuracy_at_depth(y_true, y_pred, hierarchy=h)
    assert depths == metrics.accuracy_at_depth(y_true, y_pred, hierarchy=g)


@pytest.mark.parametrize("name", SPECIAL)
def test_extremes(name):
    h = SPECIAL[name]
    y_true, y_pred = [h.nodes[0], h.nodes[-1]], [h.nodes[-1], h.nodes[-1]]
    for function, options in CASES:
        assert 0 <= function(y_true, y_pred, hierarchy=h, **options) <= 1
    if h.graph.n_roots == 1:
        up = h.graph.level[-1] if name != "diamond" else 2
        assert metrics.tree_distance(y_true, y_pred, hierarchy=h) == up / 2
