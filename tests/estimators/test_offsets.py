"""Offsets of leaves, tuned on held-out folds."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from estimators.problems import DAG, FOREST, HIERARCHIES, TREE, make_sets
from nhsvm import NHSVM, FlatSVM, Hierarchy
from nhsvm.engine import Dual
from nhsvm.errors import DataError, OptionError
from nhsvm.estimators.calibration import HeldOutSets, rarest, set_folds
from nhsvm.estimators.labels import encode_sets
from nhsvm.estimators.offsets import Counts, Flips, Predictions, apply, threshold, tuned_offsets
from nhsvm.metrics import example_jaccard, scorers
from nhsvm.metrics.measures import MEASURES
from nhsvm.model.sets import SetInference, on_leaves
from nhsvm.threads import Team
from strategies import hierarchies


def held_out(h, n=400, seed=0, shift=None):
    """Scores that are the truth plus noise; ``shift`` is taken from the scores of the leaves."""
    rng = np.random.default_rng(seed)
    graph = h.graph
    member = rng.random((n, h.n_leaves)) < 1.5 / h.n_leaves
    member[np.arange(n), rng.integers(h.n_leaves, size=n)] |= ~member.any(axis=1)
    scores = rng.normal(scale=0.3, size=(n, h.n_nodes))
    scores[:, graph.leaves] += 1.2 * member - 0.6 - (0.0 if shift is None else np.asarray(shift))
    sets = encode_sets(sp.csr_array(member.astype(int)), h)
    order = np.argsort(sets.class_leaves)
    true = sp.csr_array(member[:, order].astype(np.int8))
    return HeldOutSets(scores.astype(np.float32), true, rng.uniform(0.5, 2.0, n)), sets


def tuned(option, h, held, sets, n_threads=1, base=0.0):
    inference = SetInference(h.graph, np.arange(h.n_nodes, dtype=np.int32), False, exact=False)
    offsets = tuned_offsets(option, sets, inference, held, on_leaves(h.graph, base), n_threads)
    with Team(1) as team:
        predictions = Predictions(inference, held, on_leaves(h.graph, base), team)
        return offsets, predictions.predicted(np.zeros(h.n_nodes)), predictions.predicted(offsets), predictions


# -- measures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("h", HIERARCHIES.values())
def test_measures_are_those_of_the_scorers(name, h):
    held, sets = held_out(h, n=30)
    _, found, _, predictions = tuned(name, h, held, sets)
    measure = MEASURES[name]
    scorer = scorers(h, multilabel=True)[name]
    expected = scorer._sign * scorer._score_func(held.true, found, sample_weight=held.weight, **scorer._kwargs)
    assert measure.value(h, held.true, found, held.weight) == pytest.approx(expected)
    counts = predictions.counts(found, measure.counted(h).astype(float))
    both, true, pred, w = counts
    if measure.average == "samples":
        mine = np.average(measure.of(both, true, pred), weights=w)
        scale = measure.counted(h).sum() if "hamming" in name else 1.0
        assert mine / scale == pytest.approx(expected)
    elif measure.average == "micro":
        assert measure.of(w @ both, w @ true, w @ pred) == pytest.approx(expected)


# -- flips -------------------------------------------------------------------------------------------------------------


@given(hierarchies(20), st.integers(0, 2**32), st.sampled_from(["f1_micro", "hierarchical_f1"]))
def test_flips_say_how_counts_change(h, seed, name):
    """Add or take out one leaf, and count again."""
    held, _ = held_out(h, n=12, seed=seed)
    counted = MEASURES[name].counted(h).astype(float)
    inference = SetInference(h.graph, np.arange(h.n_nodes, dtype=np.int32), False)
    with Team(1) as team:
        predictions = Predictions(inference, held, np.zeros(h.n_nodes), team)
        offsets = np.zeros(h.n_nodes)
        predicted = predictions.predicted(offsets)
        which = np.arange(min(3, h.n_leaves), dtype=np.int32)
        for leaf, flips in zip(which, predictions.flips(offsets, predicted, which, counted), strict=True):
            assert (flips.gain[:-1] >= flips.gain[1:]).all()
            dense = predicted.toarray()
            np.testing.assert_array_equal(flips.inside, dense[flips.sample, leaf])
            np.testing.assert_array_equal(flips.right, held.true.toarray()[flips.sample, leaf])
            with_it, without = dense.copy(), dense.copy()
            with_it[:, leaf], without[:, leaf] = 1, 0
            more, less = (predictions.counts(sp.csr_array(y), counted) for y in (with_it, without))
            np.testing.assert_allclose(flips.both, (more.both - less.both)[flips.sample])
            np.testing.assert_allclose(flips.pred, (more.pred - less.pred)[flips.sample])
            assert len(flips.sample) == 12  # few enough to look at all


def leaf_flips(right, gain):
    order = np.argsort(-gain, kind="stable")
    right, gain = right[order], gain[order]
    inside = gain > 0
    flips = Flips(np.arange(len(gain)), gain, inside, right, right.astype(float), np.ones(len(gain)))
    counts = Counts((inside & right).astype(float), right.astype(float), inside.astype(float), np.ones(len(gain)))
    return flips, counts


@pytest.mark.parametrize("name", ["example_jaccard", "f1_micro", "f1_macro", "neg_hamming_distance"])
@pytest.mark.parametrize("shift", [0.0, -0.8, 0.8])
def test_thresholds(name, shift):
    """One leaf whose gains are all too low, or too high, by something."""
    rng = np.random.default_rng(0)
    right = rng.random(500) < 0.3
    flips, counts = leaf_flips(right, rng.normal(np.where(right, 0.5, -0.5), 0.2) + shift)
    cut = threshold(MEASURES[name], counts, flips)
    assert cut == pytest.approx(shift, abs=0.3)
    apply(counts, flips, cut)
    assert counts.pred.sum() == pytest.approx(right.sum(), abs=10)
    assert (counts.both <= counts.pred).all()


@pytest.mark.parametrize("name", ["example_jaccard", "f1_micro", "f1_macro"])
def test_what_may_be_chance_is_left_alone(name):
    """Gains that say as much as they can: whatever looks better in a few samples is not."""
    moved = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        gain = rng.normal(size=40)
        right = rng.random(40) < 1 / (1 + np.exp(-6 * gain))
        flips, counts = leaf_flips(right, gain)
        moved += threshold(MEASURES[name], counts, flips) != 0
    assert moved <= 5


def test_a_threshold_has_samples_on_both_sides():
    for right in (np.ones(30, dtype=bool), np.zeros(30, dtype=bool)):
        gain = np.linspace(1, 2, 30) * (-1 if right[0] else 1)
        flips, counts = leaf_flips(right, gain)
        cut = threshold(MEASURES["neg_hamming_distance"], counts, flips)
        assert gain.min() < cut < gain.max()
    gain = np.full(30, np.inf)
    flips, counts = leaf_flips(np.zeros(30, dtype=bool), gain)
    assert threshold(MEASURES["f1_micro"], counts, flips) == 0


# -- the search --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("h", [TREE, FOREST, DAG])
def test_a_common_offset_is_found(name, h):
    held, sets = held_out(h, shift=0.7)
    offsets, before, after, _ = tuned(name, h, held, sets)
    value = MEASURES[name].value
    assert value(h, held.true, after, held.weight) > value(h, held.true, before, held.weight)
    leaves = offsets[h.graph.leaves]
    assert (leaves > 0.2).all()
    assert not offsets[~h.graph.is_leaf].any()


@pytest.mark.parametrize("name", ["example_jaccard", "f1_micro", "f1_macro", "hierarchical_f1"])
def test_offsets_of_single_leaves_are_found(name):
    shift = np.array([0.0, 0.9, -0.9, 0.0])
    held, sets = held_out(TREE, n=2000, shift=shift)
    offsets, before, after, _ = tuned(name, TREE, held, sets)
    value = MEASURES[name].value
    assert value(TREE, held.true, after, held.weight) > value(TREE, held.true, before, held.weight) + 0.02
    leaves = offsets[TREE.graph.leaves]
    assert leaves[1] - leaves[0] > 0.4
    assert leaves[0] - leaves[2] > 0.4
    fresh, _ = held_out(TREE, n=2000, shift=shift, seed=1)
    with Team(1) as team:
        found = Predictions(SetInference(TREE.graph, np.arange(7, dtype=np.int32), False), fresh, np.zeros(7), team)
        better, worse = (value(TREE, fresh.true, found.predicted(o), fresh.weight) for o in (offsets, np.zeros(7)))
    assert better > worse + 0.02


def test_rare_leaves_keep_the_common_offset():
    h = Hierarchy.from_edges([("r", k) for k in range(40)])
    held, sets = held_out(h, n=20, shift=0.5)
    assert (np.bincount(held.true.indices, minlength=40) < 5).all()
    offsets, *_ = tuned("f1_macro", h, held, sets)
    assert len(set(offsets[h.graph.leaves].tolist())) == 1


def test_threads_and_repetition_give_the_same_bits():
    held, sets = held_out(DAG, shift=0.5)
    found = [tuned("f1_macro", DAG, held, sets, n_threads=n)[0] for n in (1, 1, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_what_is_added_in_any_case_is_counted():
    held, sets = held_out(TREE, shift=0.5)
    offsets, *_ = tuned("f1_micro", TREE, held, sets)
    moved, *_ = tuned("f1_micro", TREE, held, sets, base=-0.25)
    assert (moved - offsets)[TREE.graph.leaves] == pytest.approx(0.25, abs=0.15)


# -- folds -------------------------------------------------------------------------------------------------------------


def test_the_rarest_label():
    sets = encode_sets([{"dog", "cat"}, {"dog"}, set(), {"cat", "oak"}, {"dog", "cat"}], TREE, allow_empty=True)
    names = [*sets.hierarchy.leaves, None]
    assert [names[k] for k in rarest(sets, np.ones(5))] == ["dog", "dog", None, "oak", "dog"]


@pytest.mark.parametrize("cv", [2, 5, KFold(3), StratifiedKFold(2), [(np.arange(10, 60), np.arange(10))]])
def test_folds(cv):
    _, y = make_sets(n_samples=60, empty=True)
    weight = np.ones(60)
    weight[7] = 0
    folds = set_folds(cv, encode_sets(y, TREE, allow_empty=True), weight, 0)
    for train, held in folds:
        assert not set(train) & set(held)
        assert 7 not in {*train, *held}
    if isinstance(cv, int):
        assert len(folds) == cv
        everything = np.concatenate([held for _, held in folds])
        assert len(set(everything.tolist())) == len(everything) == 59
        for train, _ in folds:
            assert set().union(*(y[i] for i in train)) == set(TREE.leaves)


def test_samples_with_a_label_of_their_own_are_held_out():
    y = [{"dog"}, {"dog"}, {"dog", "cat"}, {"oak"}, {"oak", "rose"}, {"oak"}]
    held = [set(held.tolist()) for _, held in set_folds(2, encode_sets(y, TREE), np.ones(6), 0)]
    assert held[0] | held[1] == set(range(6))
    for pair in ({0, 1}, {2, 4}, {3, 5}):  # samples of one class: dog, cat or rose, oak
        assert len(held[0] & pair) == len(held[1] & pair) == 1


def test_there_must_be_something_to_hold_out():
    with pytest.raises(DataError, match=r"offsets=\.\.\. and probability=True need samples to hold out"):
        NHSVM(TREE, offsets="f1_micro").fit([[1.0, 2.0]], [{"dog"}])


# -- in the estimator --------------------------------------------------------------------------------------------------


def rare_labels(n, seed):
    """Many labels, most of them rare: learning from a sum of errors predicts too few."""
    world = np.random.default_rng(0)
    h = Hierarchy.from_edges([("r", f"t{k}") for k in range(4)] + [(f"t{k % 4}", k) for k in range(20)])
    vectors = world.normal(size=(20, 12))
    rng = np.random.default_rng(seed)
    p = 1 / np.arange(1, 21)
    Y = rng.random((n, 20)) < 2.5 * p / p.sum()
    Y[np.arange(n), rng.choice(20, size=n, p=p / p.sum())] = True
    X = Y @ vectors + 1.5 * rng.normal(size=(n, 12))
    return h, sp.csr_array(X), [set(np.flatnonzero(row).tolist()) for row in Y]


@pytest.mark.parametrize("option", ["example_jaccard", "f1_macro", "function"])
def test_a_tuned_model_is_better_on_new_samples(option):
    h, X, y = rare_labels(600, 1)
    _, X_new, y_new = rare_labels(2000, 2)
    seen = []

    def jaccard(hierarchy, y_true, y_pred):
        seen.append((hierarchy, y_true, y_pred))
        return example_jaccard(y_true, y_pred, hierarchy=hierarchy)

    plain = NHSVM(h, C=0.03).fit(X, y)
    model = NHSVM(h, C=0.03, offsets=jaccard if option == "function" else option).fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.offsets_.shape == (h.n_nodes,)
    name = "example_jaccard" if option == "function" else option
    score = scorers(h, multilabel=True)[name]
    assert score(model, X_new, y_new) > score(plain, X_new, y_new) + 0.01
    before = model.node_scores(X)
    np.testing.assert_array_equal(before, plain.node_scores(X))
    if seen:
        hierarchy, y_true, y_pred = seen[0]
        assert hierarchy == model.hierarchy_
        assert len(y_true) == len(y_pred)
        assert {type(labels) for labels in [*y_true, *y_pred]} == {set}


def test_offsets_count_in_every_answer():
    X, y = make_sets(noise=2.0)
    model = FlatSVM(TREE, allow_empty=True).fit(X, y)
    before = model.decision_function(X)
    model.model_ = replace(model.model_, offsets=on_leaves(TREE.graph, 100.0))
    assert model.predict(X).tolist() == [set(TREE.leaves)] * 90
    np.testing.assert_allclose(model.decision_function(X), before + 100, rtol=1e-6)


def test_sample_weights_count():
    h, X, y = rare_labels(600, 1)
    weight = np.where(np.arange(600) < 300, 1.0, 0.0)
    model = NHSVM(h, C=0.03, offsets="f1_micro", cv=3).fit(X, y, sample_weight=weight)
    half = NHSVM(h, C=0.03, offsets="f1_micro", cv=3).fit(X[:300], y[:300])
    np.testing.assert_allclose(model.offsets_, half.offsets_, atol=0.1)


@pytest.mark.parametrize("bad", [None, "much", np.nan, [1.0]])
def test_functions_that_give_no_number(bad):
    X, y = make_sets(n_samples=30)
    with pytest.raises(OptionError, match="offsets: the function must give a finite number"):
        NHSVM(TREE, offsets=lambda h, true, pred: bad).fit(X, y)


def test_one_class():
    X, _ = make_sets(n_samples=30)
    y = [["dog"] if x[0] > 0 else [] for x in X]
    model = NHSVM(TREE, C=1, allow_empty=True, offsets="example_jaccard").fit(X, y)
    assert model.predict(X).tolist() == y
    assert NHSVM(TREE, offsets="f1_micro").fit(X, [["dog"]] * 30).predict(X).tolist() == [["dog"]] * 30


def test_no_labels_held_out():
    X, _ = make_sets(n_samples=30)
    y = [["dog"]] * 20 + [[]] * 10
    split = [(np.arange(20), np.arange(20, 30))]
    model = NHSVM(TREE, allow_empty=True, offsets="example_jaccard", cv=split).fit(X, y)
    assert not model.offsets_.any()


def test_interrupted_while_tuning(monkeypatch):
    X, y = make_sets(n_samples=60, noise=3.0)
    calls = []

    class Impatient(Dual):
        def solve(self, problem, state=None):
            calls.append(problem.n_samples)
            solution = super().solve(problem, state)
            solution.interrupted = len(calls) == 3
            return solution

    with pytest.warns(ConvergenceWarning, match="interrupted while folds were held out"):
        model = NHSVM(TREE, solver=Impatient(), offsets="f1_micro").fit(X, y)
    assert len(calls) == 3
    assert model.interrupted_
    assert not hasattr(model, "offsets_")
    assert len(model.predict(X)) == 60


def test_folds_are_silent(capsys):
    X, y = make_sets(noise=2.0)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NHSVM(TREE, offsets="f1_micro", callback=lambda record: seen.append(record["iteration"])).fit(X, y)
    assert all(b > a for a, b in pairwise(seen))
    assert len(seen) == model.n_iter_
    assert capsys.readouterr().err == ""
