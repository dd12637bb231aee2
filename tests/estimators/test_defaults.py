"""What "auto" stands for, and when a fit of it ends."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from nhsvm import HRSVM, HSVM, NHSVM, SSVM, FlatSVM, Hierarchy, load
from nhsvm.errors import OptionError
from nhsvm.estimators.early_stopping import held_out
from nhsvm.options import DEFAULTS

H = Hierarchy.from_edges([(f"top{k % 3}", f"leaf{k:02d}") for k in range(12)])


def samples(n, seed=0):
    """Samples around the centres of their leaves, with one label and with two."""
    rng = np.random.default_rng(seed)
    leaf = rng.integers(12, size=n)
    X = rng.normal(size=(n, 20))
    X[np.arange(n), leaf] += 3.0
    y = np.array([f"leaf{k:02d}" for k in leaf])
    return X, y, [sorted({a, b}) for a, b in zip(y, np.roll(y, 1), strict=True)]


X, y, SETS = samples(90)
LARGE, y_large, SETS_LARGE = samples(4_000)


@pytest.mark.parametrize("kind", [FlatSVM, HSVM, NHSVM, SSVM, HRSVM])
@pytest.mark.parametrize("labels", ["one", "sets"])
def test_auto_is_what_the_numbers_give(kind, labels):
    targets = y if labels == "one" else SETS
    auto = kind(H).fit(X, targets)
    m = float((X**2).sum(axis=1).mean())
    three = lambda value: float(f"{value:.2e}")
    given = {"C": three(3.0 / m), "intercept_scaling": three(0.3 * m**0.5), "tol": 1e-3}
    if labels == "sets" and kind is not HRSVM:
        share = np.mean([len(one) for one in SETS]) / 12
        given["leaf_offset"] = three(-1.3 * (1.0 - 2.0 * share))
    by_hand = kind(H, **given).fit(X, targets)
    np.testing.assert_array_equal(auto.coef_, by_hand.coef_)
    assert auto.certified_
    assert auto.gap_ <= 1e-3
    for name, value in given.items():
        if name != "tol":
            assert getattr(auto, f"{name}_") == getattr(by_hand, f"{name}_") == value
            assert getattr(auto, name) == "auto"
    if labels == "one" or kind is HRSVM:
        assert auto.leaf_offset_ == 0.0


@pytest.mark.parametrize("labels", ["one", "sets"])
def test_the_unit_of_features_does_not_matter(labels):
    targets = y if labels == "one" else SETS
    one, other = (NHSVM(H).fit(X * unit, targets) for unit in (1.0, 1000.0))
    assert list(map(list, one.predict(X))) == list(map(list, other.predict(X * 1000.0)))
    assert pytest.approx(1e6 * other.C_) == one.C_
    assert one.objective_ == pytest.approx(1e6 * other.objective_, rel=1e-2)


def test_sparse_samples_and_weights():
    """A sample that weighs nothing does not count, one that weighs two counts twice; empty rows are samples too."""
    some = np.where(np.abs(X) > 1.0, X, 0.0)
    some[[3, 89]] = 0.0
    rows = sp.csr_array(some)
    assert rows[[3]].nnz == rows[[89]].nnz == 0
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    sparse = NHSVM(H, tol=0.5).fit(rows, y, weight)
    dense = NHSVM(H, tol=0.5).fit(rows.toarray(), y, weight)
    again = np.repeat(np.arange(len(y)), weight.astype(int))
    assert sparse.C_ == dense.C_ == NHSVM(H, tol=0.5).fit(rows[again], y[again]).C_
    assert DEFAULTS.cost == NHSVM(H).fit(np.zeros((12, 2)), sorted(set(y))).C_


def test_the_offset_follows_the_loss_and_the_number_of_labels():
    leaves = sorted(set(y))
    half = [leaves[:6], leaves[6:]] * 6
    assert (
        NHSVM(H, loss="hamming").fit(X, SETS).leaf_offset_ == NHSVM(H).fit(X, SETS).leaf_offset_
    )  # a leaf counts once
    assert NHSVM(H).fit(X[:12], half).leaf_offset_ == 0.0
    assert NHSVM(H).fit(X[:12], [leaves] * 12).leaf_offset_ == 0.0
    assert NHSVM(H).fit(X[:12], [[leaf] for leaf in leaves]).leaf_offset_ == float(f"{-1.3 * 10 / 12:.2e}")


@pytest.mark.parametrize("labels", ["one", "sets"])
def test_larger_problems_end_by_an_estimate(labels):
    targets = y_large if labels == "one" else SETS_LARGE
    plain = NHSVM(H).fit(LARGE, targets)
    assert LARGE.shape[0] * np.count_nonzero(plain.node_weights_) > DEFAULTS.small
    assert not plain.certified_
    assert plain.gap_ == plain.history_[-1]["gap"] <= DEFAULTS.tol
    assert all(record["gap"] > DEFAULTS.tol for record in plain.history_[:-1])
    assert not any(record["certified"] for record in plain.history_)
    for options, tol in ({"tol": 0.01}, 0.01), ({"certify": True}, DEFAULTS.tol):
        proved = NHSVM(H, **options).fit(LARGE, targets)
        assert proved.certified_
        assert proved.gap_ <= tol
    best = proved.objective_ * (1.0 - proved.gap_)  # a bound from below, of both
    assert plain.dual_objective_ <= proved.objective_
    assert plain.objective_ >= best * (1.0 - 1e-6)
    test, *truth = samples(4_000, seed=1)
    right = [model.score(test, truth[labels == "sets"]) for model in (plain, proved)]
    assert right[0] > right[1] - 0.03


def test_estimates_without_a_proof():
    loose = NHSVM(H, tol=0.05, certify=False).fit(LARGE, y_large)
    assert (loose.certified_, loose.gap_ <= 0.05) == (False, True)
    with pytest.warns(match="stopped after 1 pass at an estimated gap of .*, above tol=0.05"):
        one = NHSVM(H, tol=0.05, certify=False, max_iter=1).fit(LARGE, y_large)
    assert not one.certified_


def test_files_keep_what_was_chosen(tmp_path):
    model = NHSVM(H).fit(LARGE, y_large)
    model.save(tmp_path / "m.nhsvm")
    back = load(tmp_path / "m.nhsvm")
    for name in ("C_", "intercept_scaling_", "leaf_offset_", "certified_", "gap_"):
        assert getattr(back, name) == getattr(model, name)
    assert back.get_params()["C"] == "auto"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("C", "large", "C must be a positive number or 'auto', not 'large'"),
        ("C", 0, "C must be a positive number or 'auto', not 0"),
        ("tol", None, "tol must be a positive number or 'auto', not None"),
        ("certify", "yes", "certify must be True, False or 'auto', not 'yes'"),
        ("intercept_scaling", -1, "intercept_scaling must be a positive number or 'auto', not -1"),
        ("leaf_offset", np.inf, "leaf_offset must be a finite number or 'auto', not inf"),
        ("early_stopping", "f1", "early_stopping must be one of .*'accuracy', 'example_jaccard'.*, not 'f1'"),
        ("early_stopping", 1, "early_stopping must be True or False, not 1"),
        ("validation_fraction", 1.0, "validation_fraction must be a number between 0 and 1, not 1.0"),
        ("n_iter_no_change", 0, "n_iter_no_change must be a whole number of at least 1, not 0"),
    ],
)
def test_refused(name, value, why):
    with pytest.raises(OptionError, match=why):
        NHSVM(H, **{name: value}).fit(X, y)


# -- early stopping ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [True, "accuracy", "hierarchical_f1", "neg_tree_distance"])
def test_it_stops_when_the_score_no_longer_improves(measure):
    model = NHSVM(H, early_stopping=measure, n_iter_no_change=2).fit(LARGE, y_large)
    found = [record["validation_score"] for record in model.history_]
    assert len(found) == model.n_iter_ < 1000
    best = int(np.argmax(found))
    assert len(found) == best + 3 or model.gap_ <= DEFAULTS.small_tol  # two passes after the best, or at the end
    assert not model.certified_


def test_the_score_is_that_of_samples_that_were_not_learned_from():
    options = {"max_iter": 1, "random_state": 3}
    with pytest.warns(match="estimated gap"):
        model = NHSVM(H, early_stopping=True, validation_fraction=0.25, **options).fit(LARGE, y_large)
    out = held_out(model, model.make_problem(LARGE, y_large)).held_out
    assert len(out) == 1_000
    weight = np.ones(len(y_large))
    weight[out] = 0.0
    chosen = {"C": model.C_, "intercept_scaling": model.intercept_scaling_, "tol": 1e-3, "certify": False}
    with pytest.warns(match="estimated gap"):
        without = NHSVM(H, **chosen, **options).fit(LARGE, y_large, weight)
    np.testing.assert_array_equal(model.coef_, without.coef_)
    assert model.history_[0]["validation_score"] == np.mean(model.predict(LARGE[out]) == y_large[out])


@pytest.mark.parametrize("kind", [NHSVM, HRSVM])
def test_label_sets(kind):
    model = kind(H, early_stopping=True).fit(LARGE, SETS_LARGE)
    assert model.history_[-1]["validation_score"] > 0.2
    with pytest.raises(OptionError, match="early_stopping='accuracy' is for one label a sample"):
        kind(H, early_stopping="accuracy").fit(X, SETS)
    with pytest.raises(OptionError, match="early_stopping='neg_tree_distance' is for one label a sample, but y has"):
        kind(H, early_stopping="neg_tree_distance").fit(X, SETS)


def test_a_solver_without_proofs_has_defaults_for_data_of_any_size():
    with pytest.warns(ConvergenceWarning):
        model = NHSVM(H, solver="sgd", max_iter=2).fit(LARGE, y_large)
    assert model.model_.training.tol == DEFAULTS.small_tol
    assert model.n_iter_ == 2


def test_what_early_stopping_does_not_go_with():
    with pytest.raises(OptionError, match="early_stopping goes with solver='dual'"):
        NHSVM(H, solver="sgd", early_stopping=True).fit(X, y)
    with pytest.raises(OptionError, match="early_stopping learns from a part of the samples, and warm_start"):
        NHSVM(H, warm_start=True, early_stopping=True).fit(X, y)
