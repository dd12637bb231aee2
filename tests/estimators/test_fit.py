"""What a fit does, leaves behind, and says."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.class_weight import compute_class_weight

from estimators.problems import AUTO_LOSS, DAG, HIERARCHIES, TREE, make, score_bound
from nhsvm import HSVM, NHSVM, FlatSVM
from nhsvm.engine import Dual
from nhsvm.errors import DataError, LabelError, OptionError, UnknownLabelError

ALL = [FlatSVM, HSVM, NHSVM]
KEYS = {"iteration", "seconds", "primal", "dual", "gap", "training_error", "planes", "certified"}


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("solver", ["dual", "sgd"])
def test_what_is_fitted(cls, solver):
    X, y = make()
    model = cls(TREE, solver=solver, tol=1e-2).fit(X, y)
    assert model.coef_.shape == (7, 6)
    assert model.intercept_.shape == (7,)
    assert model.node_weights_.shape == (7,)
    assert model.n_features_in_ == 6
    assert model.hierarchy_ == TREE
    assert model.objective_ >= model.dual_objective_ > 0
    assert model.gap_ == pytest.approx(1 - model.dual_objective_ / model.objective_)
    assert model.n_iter_ == len(model.history_) >= 1
    for k, record in enumerate(model.history_):
        assert set(record) == KEYS
        assert record["iteration"] == k + 1
        assert 0 <= record["training_error"] <= 1
    assert model.history_[-1]["certified"]
    assert model.history_[-1]["gap"] == model.gap_


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("name", HIERARCHIES)
def test_the_objective_is_what_it_says(cls, name):
    """Primal of Eq. 3 and Eq. 10 from coef_ and decision_function, by definition."""
    from nhsvm.losses import make_loss

    X, y = make(HIERARCHIES[name], labels=None)
    model = cls(HIERARCHIES[name], C=0.3, fit_intercept=False).fit(X, y)
    assert model.gap_ <= 1e-3
    alpha, U = model.node_weights_, model.coef_.astype(float)
    assert not U[alpha == 0].any()
    half = 0.5 * ((U**2).sum(axis=1)[alpha > 0] / alpha[alpha > 0]).sum()
    loss = make_loss(AUTO_LOSS[cls], model.hierarchy_, alpha)
    scores = X @ U.T @ model.hierarchy_.graph.leaf_matrix().T
    truth = [model.hierarchy_.leaf_position(label) for label in y]
    losses = loss.to_leaves(np.array(truth))
    slack = (losses + scores - scores[np.arange(len(y)), truth][:, None]).max(axis=1)
    assert half + 0.3 * slack.sum() == pytest.approx(model.objective_, rel=1e-5)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("sparse", [False, True])
def test_weights_of_samples_are_copies_of_samples(cls, sparse):
    """What scikit-learn's check_sample_weight_equivalence asks, to the accuracy that the gaps justify."""
    X, y = make(n_samples=40, n_features=4)
    X, y = X / 3, np.array(y)
    weight = np.random.default_rng(0).integers(0, 4, size=40)
    rows = np.repeat(np.arange(40), weight)
    shape = sp.csr_array if sparse else np.asarray
    weighted = cls(TREE, tol=1e-10).fit(shape(X), y, sample_weight=weight)
    copied = cls(TREE, tol=1e-10).fit(shape(X[rows]), y[rows])
    models = weighted, copied
    assert all(m.gap_ <= 1e-10 for m in models)
    slack = 2e-10 * copied.objective_
    assert weighted.objective_ == pytest.approx(copied.objective_, abs=slack)
    bound = score_bound(models, X)
    assert bound < 1e-3
    np.testing.assert_allclose(weighted.decision_function(X), copied.decision_function(X), atol=bound)


def test_sample_weights():
    X, y = make()
    ones = NHSVM(TREE, C=1).fit(X, y, sample_weight=np.ones(90))
    np.testing.assert_array_equal(ones.coef_, NHSVM(TREE, C=1).fit(X, y).coef_)
    np.testing.assert_array_equal(ones.coef_, NHSVM(TREE, C=1).fit(X, y, sample_weight=1).coef_)
    double = NHSVM(TREE, C=0.5).fit(X, y, sample_weight=2 * np.ones(90))
    np.testing.assert_array_equal(ones.coef_, double.coef_)
    for bad, what in [
        (-np.ones(90), "sample 0 has -1"),
        (np.zeros(90), "at least one non-zero"),
        (np.ones(89), r"expected \(90,\)"),
        (np.full(90, np.nan), "NaN"),
        (np.ones((90, 2)), "1D array"),
    ]:
        with pytest.raises(DataError, match=what):
            NHSVM(TREE).fit(X, y, sample_weight=bad)


def test_class_weights():
    X, y = make(n_samples=60, labels=["dog", "cat", "dog", "oak", "dog", "cat"])
    weight = np.random.default_rng(1).uniform(0.5, 2, 60)
    classes = np.unique(y)
    given = {"dog": 0.5, "oak": 3}
    factors = {"cat": 1.0} | given
    by_sample = NHSVM(TREE).fit(X, y, sample_weight=weight * [factors[label] for label in y])
    np.testing.assert_array_equal(NHSVM(TREE, class_weight=given).fit(X, y, weight).coef_, by_sample.coef_)
    balanced = compute_class_weight("balanced", classes=classes, y=y, sample_weight=weight)
    by_sample = NHSVM(TREE).fit(X, y, weight * balanced[np.searchsorted(classes, y)])
    model = NHSVM(TREE, class_weight="balanced").fit(X, y, weight)
    np.testing.assert_allclose(model.coef_, by_sample.coef_, atol=1e-4)


def test_balanced_with_a_class_of_no_weight():
    X, y = make()
    weight = np.array([label != "cat" for label in y], dtype=float)
    model = NHSVM(TREE, class_weight="balanced").fit(X, y, weight)
    assert np.isfinite(model.coef_).all()
    assert "cat" in model.classes_
    assert "cat" not in model.predict(X)


def test_warm_start_along_a_path():
    X, y = make(n_samples=150, noise=2.0)
    path = NHSVM(TREE, warm_start=True)
    for C in (0.01, 0.1, 1.0, 0.05):
        path.set_params(C=C).fit(X, y)
        cold = NHSVM(TREE, C=C).fit(X, y)
        assert path.gap_ <= 1e-3
        assert path.objective_ == pytest.approx(cold.objective_, rel=1e-3)
        assert max(path.dual_objective_, cold.dual_objective_) <= min(path.objective_, cold.objective_)
    again = path.fit(X, y)
    assert again.n_iter_ == 1
    assert again.history_[-1]["certified"]
    assert again.history_[-1]["gap"] == again.gap_
    path.set_params(weights="uniform", loss="hamming").fit(X, y)
    assert path.objective_ == pytest.approx(HSVM(TREE, C=0.05).fit(X, y).objective_, rel=1e-3)


def test_warm_start_needs_the_same_data():
    X, y = make()
    model = NHSVM(TREE, warm_start=True).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(OptionError, match="same samples and labels"):
        model.fit(X[1:], y[1:])
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.set_params(warm_start=False).fit(X[1:], y[1:])


def test_a_warm_start_that_failed_does_not_spoil_the_next():
    X, y = make(noise=3.0)

    def fail(record):
        raise RuntimeError("stop")

    model = NHSVM(TREE, warm_start=True).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(RuntimeError, match="stop"):
        model.set_params(C=100.0, callback=fail).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.set_params(C=0.1, callback=None).fit(X, y)
    assert 0 <= model.gap_ <= 1e-3
    assert model.objective_ == pytest.approx(NHSVM(TREE, C=0.1).fit(X, y).objective_, rel=1e-3)


def test_a_fit_that_fails_leaves_the_model_before():
    X, y = make()
    model = NHSVM(TREE)
    with pytest.raises(LabelError):
        model.fit(X, y[1:])
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    before = model.decision_function(X)
    broken = X[:, :3].copy()
    broken[0, 0] = np.nan
    for other, labels, error in [
        (X[:, :3], y[1:], LabelError),
        (broken, y, DataError),
        (X[:, :3], ["wolf"] * 90, UnknownLabelError),
    ]:
        with pytest.raises(error):
            model.fit(other, labels)
        assert model.n_features_in_ == 6
        np.testing.assert_array_equal(model.decision_function(X), before)
    with pytest.raises(DataError):
        model.fit(X[:, :3], y, sample_weight=-np.ones(90))
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_nothing_stale_after_another_fit():
    X, y = make()
    model = NHSVM(TREE, probability=True, warm_start=True).fit(X, y)
    fresh = NHSVM(DAG).set_params(cv=3)
    X2, y2 = make(DAG, n_features=4, sparse=True)
    model.set_params(**fresh.get_params()).fit(X2, y2)
    fresh.fit(X2, y2)
    assert set(vars(model)) == set(vars(fresh))
    assert not hasattr(model, "temperature_")
    np.testing.assert_array_equal(model.decision_function(X2), fresh.decision_function(X2))


def test_convergence_warning_names_the_gap():
    X, y = make(n_samples=200, noise=4.0)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 pass at a gap of (.*), above tol=1e-09") as caught:
        model = NHSVM(TREE, max_iter=1, tol=1e-9).fit(X, y)
    assert f"{model.gap_:.2e}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert model.gap_ > 1e-9
    assert len(caught) == 1


def test_callback_stops():
    X, y = make(n_samples=200, noise=4.0)
    seen = []

    def stop(record):
        seen.append(dict(record))
        return len(seen) == 2

    with pytest.warns(ConvergenceWarning, match="after 2 passes"):
        model = NHSVM(TREE, tol=1e-9, callback=stop).fit(X, y)
    assert model.n_iter_ == 2
    assert [record["iteration"] for record in seen] == [1, 2]
    assert set(seen[0]) == KEYS


@pytest.mark.parametrize("solver", ["dual", "sgd"])
def test_interrupted(solver):
    X, y = make(n_samples=200, noise=4.0)

    def interrupt(record):
        if record["iteration"] == 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted after 2 passes; this model's certified gap is"):
        model = NHSVM(TREE, tol=1e-9, callback=interrupt, solver=solver, fit_intercept=False).fit(X, y)
    assert model.interrupted_
    assert model.objective_ >= model.dual_objective_
    alpha, U = model.node_weights_, model.coef_.astype(float)
    assert model.objective_ >= 0.5 * ((U**2).sum(axis=1)[alpha > 0] / alpha[alpha > 0]).sum()
    best = NHSVM(TREE, tol=1e-6, fit_intercept=False).fit(X, y)
    assert not best.interrupted_
    assert model.dual_objective_ <= best.objective_
    assert model.objective_ >= best.dual_objective_
    assert model.predict(X).shape == (200,)


def test_verbose(capsys):
    X, y = make()
    model = NHSVM(TREE, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == model.n_iter_
    assert lines[-1].startswith(f"pass {model.n_iter_:4d}")
    assert "(certified)" in lines[-1]
    assert "training error" in lines[0]
    NHSVM(TREE, probability=True).fit(X, y)
    out = capsys.readouterr()
    assert (out.out, out.err) == ("", "")


def test_seeds():
    X, y = make(noise=3.0)
    a, b, c = (NHSVM(TREE, random_state=seed).fit(X, y).coef_ for seed in (None, None, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    np.testing.assert_array_equal(c, NHSVM(TREE, random_state=1).fit(X, y).coef_)


@pytest.mark.parametrize("cls", ALL)
def test_sparse_and_dense_agree(cls):
    X, y = make(sparse=True)
    kinds = [X, X.toarray(), X.astype(np.float32), np.asfortranarray(X.toarray()), sp.csc_array(X), sp.coo_matrix(X)]
    models = [cls(TREE, tol=1e-8).fit(kind, y) for kind in kinds]
    for model in models[1:]:
        bound = score_bound([models[0], model], X.toarray())
        for kind in kinds:
            np.testing.assert_allclose(model.decision_function(kind), models[0].decision_function(X), atol=bound + 1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_huge_values_are_computed_in_double_precision_or_refused(kind):
    """In single precision they would be infinite, and so would every score."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    plain = FlatSVM(tol=1e-4, C=1, fit_intercept=False).fit(kind(X), y)
    model = FlatSVM(tol=1e-4, C=1e-78, fit_intercept=False).fit(kind(X * 1e39), y)
    assert model.objective_ == pytest.approx(plain.objective_ * 1e-78, rel=2e-4)
    assert (model.predict(kind(X * 1e39)) == plain.predict(kind(X))).mean() > 0.9
    with pytest.raises(DataError, match="too large"):
        FlatSVM().fit(kind(X * 1e150), y)


def test_the_tolerance_of_a_solver_instance_counts():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    with pytest.warns(ConvergenceWarning, match="above tol=1e-12"):
        model = FlatSVM(solver=Dual(tol=1e-12, max_iter=1)).fit(X, y)
    assert model.coef_.dtype == np.float64


def test_the_last_record_is_the_model(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    model = FlatSVM(callback=lambda record: True)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    last = model.history_[-1]
    assert (last["gap"], last["primal"], last["certified"]) == (model.gap_, model.objective_, True)
    assert last["training_error"] == pytest.approx(1 - model.score(X, y))
