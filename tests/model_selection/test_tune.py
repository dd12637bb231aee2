"""The search: what it chooses, and that its paths are as good as fits of their own."""

import re
from inspect import signature

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.problems import DAG, TREE, indicator, make, make_sets
from nhsvm import HSVM, NHSVM, SSVM, FlatSVM
from nhsvm.errors import DataError, LabelError, NHSVMError, OptionError, UnknownLabelError
from nhsvm.losses import make_loss
from nhsvm.metrics import scorers
from nhsvm.model_selection import HoldOut, hold_out_split, paper_grid, regularization_path, tune
from nhsvm.weights import Maxmin, Power

X, y = make(n_samples=120, noise=2.0)
CS = [0.01, 0.1, 1.0]


def settings(found):
    return [(trial.shown, trial.C) for trial in found.records]


# -- what is chosen ----------------------------------------------------------------------------------------------------


def test_the_best_is_that_of_a_grid_search_on_the_same_split():
    grid = {"weights": ["maxmin", "flat"], "loss": ["normalized", "zero_one"]}
    found = tune(NHSVM(TREE, tol=1e-5), X, y, grid=grid, C=CS, search_tol=None, patience=None, random_state=3)
    search = GridSearchCV(NHSVM(TREE, tol=1e-5), grid | {"C": CS}, cv=HoldOut(random_state=3)).fit(X, y)
    assert len(found.records) == len(search.cv_results_["params"]) == 12
    results = search.cv_results_
    means = {str(sorted(p.items())): s for p, s in zip(results["params"], results["mean_test_score"], strict=True)}
    for trial in found.records:
        assert trial.scores["accuracy"] == means[str(sorted(trial.params.items()))]
    assert found.best_score == search.best_score_
    ties = [p["C"] for p in search.cv_results_["params"] if means[str(sorted(p.items()))] == search.best_score_]
    assert found.best_params["C"] == min(ties)
    np.testing.assert_array_equal(
        found.model.coef_, NHSVM(TREE, tol=1e-5).set_params(**found.best_params).fit(X, y).coef_
    )


def test_of_equal_scores_the_smaller_C_is_best():
    found = tune(FlatSVM(TREE), X, y, C=[1, 0.1, 10], scoring=lambda model, X, y: 0.5, patience=None)
    assert found.best_params == {"C": 0.1}
    assert found.edge == "smallest"
    assert "at the edge of the grid (the smallest): try smaller values" in str(found)


@pytest.mark.parametrize("cls", [FlatSVM, HSVM, NHSVM, SSVM])
@pytest.mark.parametrize("hierarchy", [TREE, DAG], ids=["tree", "dag"])
@pytest.mark.parametrize("several", [False, True])
def test_every_estimator_on_trees_and_dags_with_labels_and_label_sets(cls, hierarchy, several):
    data = (make_sets if several else make)(hierarchy, n_samples=60)
    scoring = "hierarchical_f1"
    found = tune(cls(hierarchy, tol=1e-2), *data, C=[0.1, 1], scoring=scoring)
    assert 0 < found.best_score <= 1
    assert found.model.gap_ <= 1e-2
    assert all(
        trial.gap <= 1e-2 and trial.passes >= 1 and trial.n_train == 60 - found.n_held_out for trial in found.records
    )


def test_lambda_is_half_the_inverse_of_C():
    found = tune(FlatSVM(TREE), X, y, lam=[0.5, 5], refit=False)
    assert [trial.C for trial in found.records] == [0.1, 1.0]
    assert [trial.lam for trial in found.records] == [5, 0.5]
    assert found.model is None


def test_the_same_bits_for_any_number_of_threads():
    one, two = (tune(NHSVM(TREE), X, y, C=CS, random_state=1, n_jobs=n) for n in (1, 2))
    assert [t.scores for t in one.records] == [t.scores for t in two.records]
    assert [t.gap for t in one.records] == [t.gap for t in two.records]
    np.testing.assert_array_equal(one.model.coef_, two.model.coef_)
    assert one.model.n_jobs is None


def test_the_paper_grid():
    found = tune(NHSVM(TREE), X, y, grid="paper", C=[0.1, 1], refit=False)
    schemes = {str(trial.params["weights"]) for trial in found.records}
    assert schemes == {"maxmin", str(Power(rho=2.0)), str(Power(rho=2.0, directional=True))}
    assert {trial.params["margin"] for trial in found.records} == {"loss", "normalized"}
    assert len(found.records) == 12
    assert [part["total"] for part in paper_grid(DAG)] == [[(1.0, 1.5)]] * 2
    sets = tune(NHSVM(DAG), *make_sets(DAG, n_samples=60), grid="paper", C=[0.1], refit=False)
    assert sets.records[-1].params["weights"] == Maxmin(total=(1.0, 1.5))
    flat = tune(FlatSVM(TREE), X[:40], y[:40], grid="paper", refit=False, patience=1)
    assert pytest.approx(0.005) == flat.records[0].C


# -- paths -------------------------------------------------------------------------------------------------------------


PROBLEMS = {"tree": (TREE, X, y), "dag": (DAG, *make(DAG)), "sets": (TREE, *make_sets(noise=1.5))}
PROBLEMS["dag sets"] = (DAG, *make_sets(DAG, n_samples=24))


CASES = [(cls, data) for cls in (FlatSVM, HSVM, NHSVM, SSVM) for data in PROBLEMS]
CASES.remove((SSVM, "dag sets"))  # takes 20 s; a search with it is tested above


@pytest.mark.parametrize(("cls", "data"), CASES)
def test_a_path_is_as_good_as_fits_of_its_own(cls, data):
    hierarchy, *samples = PROBLEMS[data]
    for C, model in regularization_path(cls(hierarchy), *samples, [1.0, 0.03, 0.2]):
        alone = cls(hierarchy, C=C).fit(*samples)
        assert model.gap_ <= 1e-3
        assert model.objective_ == pytest.approx(alone.objective_, rel=1e-3)


def test_models_of_a_path_are_independent():
    models = list(regularization_path(NHSVM(TREE), X, y, [0.1, 10, 1]))
    assert [C for C, _ in models] == [0.1, 1, 10]
    for C, model in models:
        assert (model.C, model.warm_start) == (C, False)
        assert model.dual_objective_ <= NHSVM(TREE, C=C).fit(X, y).objective_
        model.fit(X[:50], y[:50])
    pipelines = list(regularization_path(make_pipeline(StandardScaler(), NHSVM(TREE)), X, y, [0.1, 1]))
    assert isinstance(pipelines[0][1], Pipeline)
    assert pipelines[0][1].score(X, y) != pipelines[1][1].score(X, y)
    alone = list(regularization_path(make_pipeline(NHSVM(TREE)), X, y, [0.1]))
    assert isinstance(alone[0][1], Pipeline)


def test_a_path_needs_C():
    for bad in ([], None, "1", [0], [-1], [np.inf], [True]):
        with pytest.raises(OptionError, match="C"):
            regularization_path(FlatSVM(), X, y, bad)


def test_sgd_has_no_dual_variables_but_a_path():
    found = tune(NHSVM(TREE, solver="sgd"), X, y, C=[0.1, 1], refit=False)
    assert {trial.state for trial in found.records} == {"done"}


def test_a_path_ends_when_the_score_has_fallen():
    fallen = iter([0.5, 0.9, 0.2, 0.3, 0.9])
    score = lambda model, X, y: next(fallen)
    found = tune(FlatSVM(TREE), X, y, C=[0.01, 0.1, 1, 10, 100], scoring=score, refit=False)
    assert [t.C for t in found.records] == [0.01, 0.1, 1, 10]
    assert [(u.C, u.reason) for u in found.untried] == [(100, "the score had fallen")]
    assert "not tried to the end (the score had fallen): 1 fit" in str(found)
    little = iter([0.5, 0.9, 0.88, 0.87, 0.9])  # less than the standard error of 24 samples
    score = lambda model, X, y: next(little)
    assert len(tune(FlatSVM(TREE), X, y, C=[0.01, 0.1, 1, 10, 100], scoring=score, refit=False).records) == 5


# -- grids -------------------------------------------------------------------------------------------------------------


def test_options_of_the_scheme():
    grid = {"weights": ["maxmin", "power"], "rho": [2, 4], "directional": [False, True], "total": [1, 1.5]}
    found = tune(NHSVM(TREE), X, y, grid=grid, C=[0.1], refit=False)
    schemes = [trial.params["weights"] for trial in found.records]
    assert schemes[:2] == [Maxmin(total=(1.0, 1.0)), Maxmin(total=(1.0, 1.5))]
    assert len(schemes) == 10
    assert schemes[2] == Power(rho=2, directional=False, total=(1.0, 1.0))
    assert found.records[0].shown == {"weights": "maxmin", "total": 1}
    own = tune(NHSVM(TREE, weights=Power(directional=True)), X, y, grid={"rho": [3]}, C=[0.1], refit=False)
    assert own.records[0].params["weights"] == Power(rho=3, directional=True)
    plain = tune(NHSVM(TREE), X, y, grid={"weights": ["flat", "power"], "rho": [3]}, C=[0.1], refit=False)
    assert plain.records[0].params["weights"] == "flat"


def test_refused_combinations_are_left_out_and_listed():
    grid = {"margin": ["loss", "normalized"], "loss": ["auto", "hamming"]}
    found = tune(NHSVM(TREE), X, y, grid=grid, C=[0.1], refit=False)
    assert len(found.records) == 3
    ((setting, reason),) = found.plan.refused
    assert setting == "margin=normalized, loss=hamming"
    assert "Eq. 13" in reason
    assert "    margin=normalized, loss=hamming" in str(found)


@pytest.mark.parametrize(
    ("estimator", "grid", "message"),
    [
        (SSVM(TREE), {"loss": ["auto", "normalized"]}, "loss=normalized: loss 'normalized' depends on α"),
        (SSVM(TREE), {"rho": [2]}, "SSVM has no parameter 'rho'; it is an option of the weights of NHSVM"),
        (NHSVM(TREE), {"wights": ["flat"]}, "NHSVM has no parameter 'wights'"),
        (NHSVM(TREE), {"lambda": [1]}, "lam= is an argument of tune"),
        (NHSVM(TREE), {3: [1]}, "no parameter 3"),
        (NHSVM(TREE), {"weights": []}, "weights has no value to try"),
        (NHSVM(TREE), {"weights": "maxmin"}, "weights must be a list of values"),
        (NHSVM(TREE), {"weights": ["maxmin", "minmax"]}, "weights=minmax: weights must be one of"),
        (NHSVM(TREE), {"weights": ["shared"]}, "needs squared_norms"),
        (NHSVM(TREE), {"weights": ["maxmin"], "rho": [2]}, "rho is no option of the weights in the grid: maxmin"),
        (NHSVM(TREE), {"weights": ["power"], "rho": [2, 0.5]}, "rho must be a finite number > 1"),
        (NHSVM(TREE), {"fit_intercept": [True, "no"]}, "fit_intercept must be True or False"),
        (NHSVM(TREE), {"solver": ["dual", "newton"]}, "solver must be one of"),
        (NHSVM(TREE, tol=-1), None, "tol must be a positive number"),
        (NHSVM(TREE), [], "the grid is empty"),
        (NHSVM(TREE), 7, "grid must be a dict"),
        (NHSVM(TREE), ["weights"], "grid must be a dict"),
        (NHSVM(TREE), "papers", "grid must be a dict, a list of dicts or 'paper'"),
        (NHSVM(TREE), {"C": [1, -1]}, "C must be positive numbers, but has -1"),
        (NHSVM(TREE), {"C": []}, "C has no value to try"),
        (make_pipeline(StandardScaler(), NHSVM(TREE)), {"scaler__x": [1]}, "no parameter 'scaler__x'"),
        (make_pipeline(NHSVM(TREE)), {"weights": ["flat"], "nhsvm__weights": ["flat"]}, "names a parameter twice"),
        (LogisticRegression(), None, "tune takes an estimator of nhsvm"),
        (make_pipeline(StandardScaler()), None, "not StandardScaler"),
        (NHSVM(TREE), {"hierarchy": [TREE, "tree"]}, "hierarchy must be a Hierarchy or None"),
        (NHSVM(TREE), {"weights": [lambda h: 3, 5]}, "weights=5: a scheme is a name"),
    ],
)
def test_bad_grids_are_errors_before_any_work(estimator, grid, message, monkeypatch):
    monkeypatch.setattr(NHSVM, "make_problem", None)
    monkeypatch.setattr(SSVM, "make_problem", None)
    with pytest.raises(OptionError) as error:
        tune(estimator, X, y, grid=grid)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 1, "lam": 1}, "give C or lam, not both"),
        ({"C": [1, "2"]}, "C must be positive numbers"),
        ({"C": "1,2"}, "C must be a list"),
        ({"C": [1], "grid": {"C": [1]}}, "C is given twice"),
        ({"lam": [0]}, "lam must be positive"),
        ({"scoring": "acuracy"}, "unknown score 'acuracy'; did you mean 'accuracy'"),
        ({"scoring": "zzzzzz"}, "unknown score 'zzzzzz'; there are 'accuracy', ['example_jaccard'"),
        ({"scoring": []}, "scoring is empty"),
        ({"scoring": 3}, "scoring must be a name"),
        ({"scoring": ["accuracy", "accuracy"]}, "names one score twice"),
        ({"search_tol": 0}, "search_tol must be a positive number"),
        ({"time_budget": -1}, "time_budget must be a positive number"),
        ({"time_budget": "10m"}, "time_budget must be a positive number"),
        ({"patience": 0}, "patience must be"),
        ({"patience": True}, "patience must be"),
        ({"refit": "yes"}, "refit must be"),
        ({"progress": 3}, "progress must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"test_size": 2.5}, "test_size must be"),
        ({"validation": X}, "validation must be a pair"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_options_are_errors_before_any_work(options, message, monkeypatch):
    monkeypatch.setattr(NHSVM, "make_problem", None)
    with pytest.raises(OptionError) as error:
        tune(NHSVM(TREE), X, y, **options)
    assert message in str(error.value)


def test_all_options_are_in_the_signature_and_the_documentation():
    parameters = signature(tune).parameters
    assert [name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY] == ["estimator", "X", "y"]
    defaults = {"test_size": 0.2, "search_tol": 0.01, "patience": 2, "refit": True, "progress": None}
    assert {name: parameters[name].default for name in defaults} == defaults
    assert all(re.search(rf"^(\w+, )*{name}(, \w+)* : ", tune.__doc__, re.M) for name in parameters if name not in "Xy")
    with pytest.raises(TypeError, match=r"tune\(\) got an unexpected keyword argument 'pacience'"):
        tune(NHSVM(TREE), X, y, pacience=3)


def test_options_that_label_sets_refuse():
    Z, sets = make_sets(n_samples=40)
    found = tune(NHSVM(TREE), Z, sets, C=[0.1], grid={"class_weight": [None], "loss": ["auto", "hamming"]}, refit=False)
    assert len(found.records) == 2
    for grid in (
        {"margin": ["normalized"]},
        {"loss": ["normalized"]},
        {"solver": ["sgd"]},
        {"oracle": ["single_label"]},
    ):
        with pytest.raises(OptionError):
            tune(NHSVM(TREE), Z, sets, C=[0.1], grid=grid)
    with pytest.raises(OptionError, match="is for label sets, but y has one label"):
        tune(NHSVM(TREE), X, y, C=[0.1], grid={"leaf_offset": [1.0]})


def test_a_ready_loss():
    loss = make_loss("hamming", NHSVM(TREE).fit(X, y).hierarchy_)
    found = tune(NHSVM(TREE), X, y, C=[0.1], grid={"loss": [loss, "hamming"]}, refit=False)
    assert found.records[0].scores == found.records[1].scores


def test_bad_data():
    with pytest.raises(UnknownLabelError, match="yeti"):
        tune(NHSVM(TREE), X, ["yeti", *y[1:]])
    with pytest.raises(LabelError, match="X has 119 rows, but y has 120"):
        tune(NHSVM(TREE), X[1:], y)
    with pytest.raises(DataError, match="no label has a second sample"):
        tune(NHSVM(TREE), X[:3], ["dog", "cat", "oak"])
    with pytest.raises(DataError, match="sample_weight must not be negative"):
        tune(NHSVM(TREE), X, y, sample_weight=-np.ones(120))
    with pytest.raises(DataError, match="X must be samples"):
        tune(NHSVM(TREE), 3, y)
    with pytest.raises(LabelError, match="has no samples"):
        tune(NHSVM(TREE), X, y, validation=(X[:0], []))
    with pytest.raises(OptionError, match="must give a number, not 'good'"):
        tune(NHSVM(TREE), X, y, scoring=lambda *_: "good")


# -- scores ------------------------------------------------------------------------------------------------------------


def test_several_scores_of_which_the_first_decides():
    found = tune(NHSVM(TREE), X, y, C=CS, scoring=["neg_tree_distance", "accuracy", "balanced_accuracy"], refit=False)
    assert list(found.best.scores) == ["neg_tree_distance", "accuracy", "balanced_accuracy"]
    assert found.best_score == max(t.scores["neg_tree_distance"] for t in found.records) <= 0
    named = {"mine": make_scorer(accuracy_score), "other": "lca_f1"}
    found = tune(NHSVM(TREE), X, y, C=CS, scoring=named, refit=False)
    assert list(found.best.scores) == ["mine", "other"]
    assert list(tune(NHSVM(TREE), X, y, C=[1], scoring=make_scorer(accuracy_score)).best.scores) == ["accuracy_score"]


@pytest.mark.parametrize("form", ["sets", "dense", "sparse"])
@pytest.mark.parametrize("name", ["accuracy", *scorers(TREE, multilabel=True)])
def test_scores_of_label_sets_in_all_forms(form, name):
    Z, sets = make_sets(n_samples=50)
    matrix = indicator(sets, TREE.leaves)
    given = {"sets": sets, "dense": matrix, "sparse": sp.csr_array(matrix)}[form]
    expected = tune(NHSVM(TREE), Z, sets, C=[0.1], scoring=name, refit=False).best_score
    assert tune(NHSVM(TREE), Z, given, C=[0.1], scoring=name, refit=False).best_score == pytest.approx(expected)


def test_probabilities_are_learned_only_for_scores_that_may_need_them(monkeypatch):
    seen = []
    solve = NHSVM._learn
    monkeypatch.setattr(NHSVM, "_learn", lambda self, problem: (seen.append(self.probability), solve(self, problem))[1])
    found = tune(NHSVM(TREE, probability=True, cv=2), X, y, C=[1])
    assert (seen[0], seen[1]) == (False, True)
    assert hasattr(found.model, "temperature_")
    assert -2 < tune(NHSVM(TREE, probability=True, cv=2), X, y, C=[1], scoring="neg_log_loss").best_score < 0


def test_scores_that_are_not_numbers_are_never_the_best():
    nan = iter([np.nan, 0.2, 0.1])
    found = tune(NHSVM(TREE), X, y, C=CS, scoring=lambda *_: next(nan), refit=False)
    assert found.best.C == 0.1
    with pytest.raises(NHSVMError, match="NaN"):
        tune(NHSVM(TREE), X, y, C=CS, scoring=lambda *_: np.nan)


def test_without_a_hierarchy():
    found = tune(FlatSVM(), X, y, C=[0.1, 1], scoring="f1_macro")
    assert 0 < found.best_score <= 1


# -- samples -----------------------------------------------------------------------------------------------------------


def test_a_validation_set():
    found = tune(NHSVM(TREE), X[:80], y[:80], C=CS, validation=(X[80:], y[80:]))
    assert (found.n_held_out, found.best.n_train) == (40, 80)
    np.testing.assert_array_equal(found.model.coef_, NHSVM(TREE, C=found.best.C).fit(X[:80], y[:80]).coef_)


def test_sample_weights():
    weight = np.where(np.arange(120) % 3, 1.0, 0.0)
    seen = []

    def score(model, X_out, y_out):
        seen.append(X_out)
        return 1.0

    found = tune(NHSVM(TREE), X, y, C=[1], sample_weight=weight, scoring=score)
    used = np.flatnonzero(weight)
    out = used[hold_out_split([y[i] for i in used])[1]]
    np.testing.assert_array_equal(seen[0], X[out])  # what weighs nothing is not held out
    np.testing.assert_array_equal(found.model.coef_, NHSVM(TREE, C=1).fit(X, y, sample_weight=weight).coef_)


class Counting(TransformerMixin, BaseEstimator):
    fits = 0

    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, X, y=None):
        Counting.fits += 1
        self.n_ = len(X)
        return self

    def transform(self, X):
        return self.scale * np.asarray(X)


def test_steps_of_a_pipeline_are_fitted_once_for_each_of_their_settings():
    pipeline = Pipeline([("count", Counting()), ("svm", NHSVM(TREE))])
    Counting.fits = 0
    grid = {"weights": ["maxmin", "flat"], "count__scale": [1.0, 2.0]}
    found = tune(pipeline, X, y, grid=grid, C=CS, patience=None, sample_weight=np.ones(120))
    assert Counting.fits == 3  # two settings, and the refit
    assert len(found.records) == 12
    assert found.model.named_steps["count"].n_ == 120
    assert found.best_params.keys() == {"svm__weights", "count__scale", "svm__C"}
    assert found.plan.names == ("weights", "count__scale")
    expected = pipeline.set_params(**found.records[4].params).fit(
        *(np.take(part, hold_out_split(y)[0], axis=0) for part in (X, y))
    )
    held_out = hold_out_split(y)[1]
    loose = found.records[4].scores["accuracy"] - expected.score(X[held_out], np.array(y)[held_out])
    assert abs(loose) <= 2 / len(held_out)  # another tolerance


def test_texts_in_a_pipeline_and_a_score_of_the_whole():
    texts = ["barks and barks", "a barking friend", "purrs", "a cat purrs", "leaves of oaks", "an oak has leaves"] * 4
    labels = ["dog", "dog", "cat", "cat", "oak", "oak"] * 4
    seen = []

    def score(model, some, truth):
        seen.append((type(model), type(some[0])))
        return model.score(some, truth)

    found = tune(make_pipeline(TfidfVectorizer(), NHSVM(TREE)), texts, labels, C=[1, 10], scoring=score)
    assert set(seen) == {(Pipeline, str)}
    assert found.model.predict(["it purrs"]).tolist() == ["cat"]


def test_another_estimator_as_the_last_step():
    pipeline = Pipeline([("scale", StandardScaler()), ("svm", NHSVM(TREE))])
    found = tune(pipeline, X, y, grid={"svm": [NHSVM(TREE), HSVM(TREE)]}, C=[0.1], refit=False)
    assert [type(t.params["svm"]) for t in found.records] == [NHSVM, HSVM]
    with pytest.raises(OptionError, match="Invalid parameter 'weights' for estimator HSVM"):
        tune(pipeline, X, y, grid={"svm": [NHSVM(TREE), HSVM(TREE)], "svm__weights": ["flat"]}, C=[0.1])


def test_steps_that_fail():
    with pytest.raises(DataError, match="steps before NHSVM failed: empty vocabulary"):
        tune(make_pipeline(TfidfVectorizer(), NHSVM(TREE)), ["a"] * 4, ["dog", "dog", "cat", "cat"])
    refusing = make_pipeline(Refusing(), NHSVM(TREE))
    with pytest.raises(LabelError, match="not this"):
        tune(refusing, X, y)


class Refusing(Counting):
    def transform(self, X):
        raise LabelError("not this")


def test_the_estimator_given_is_not_changed():
    model = NHSVM(TREE, C=7)
    tune(model, X, y, C=[0.1, 1], grid={"weights": ["flat"]})
    assert model.get_params() == NHSVM(TREE, C=7).get_params()
    assert not hasattr(model, "coef_")


def test_tol_of_the_search():
    found = tune(NHSVM(TREE, tol=1e-4), X, y, C=[1], search_tol=0.05)
    assert found.best.gap > 1e-4 >= found.model.gap_
    found = tune(NHSVM(TREE), X, y, C=[1], grid={"tol": [1e-5]}, refit=False)
    assert found.best.gap <= 1e-5
    stopped = tune(NHSVM(TREE, max_iter=1), X, y, C=[10], refit=False, search_tol=None)
    assert stopped.best.state == "gap above tol"
    assert "WARNING: the best fit did not end as it should (gap above tol)" in str(stopped)
    unproved = tune(NHSVM(TREE, max_iter=1, certify=False), X, y, C=[10], refit=False, search_tol=None)
    assert unproved.best.state == "gap not proved"
    assert "gap not proved" in str(unproved)
    assert "WARNING" not in str(unproved)
