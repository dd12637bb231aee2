"""Estimators that choose C: compared with loops that fit from nothing, and among scikit-learn's."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import nhsvm
from estimators.problems import DAG, TREE, indicator, make, make_sets
from nhsvm import HRSVM, HRSVMCV, HSVM, HSVMCV, NHSVM, NHSVMCV, SSVM, SSVMCV, FlatSVM, FlatSVMCV
from nhsvm.datasets import make_balanced
from nhsvm.engine import Dual
from nhsvm.errors import DataError, OptionError
from nhsvm.estimators.early_stopping import held_out
from nhsvm.metrics import example_jaccard
from nhsvm.model_selection import HoldOut, hold_out_split

KINDS = {FlatSVMCV: FlatSVM, HSVMCV: HSVM, NHSVMCV: NHSVM, SSVMCV: SSVM, HRSVMCV: HRSVM}
CS = [0.003, 0.03, 0.3]
EXACT = {"tol": 1e-6, "intercept_scaling": 1.0}  # "auto" would be another number for a part of the samples
TIGHT = {"search_tol": 1e-7, "search_iter": 2000, "patience": None, **EXACT}


# -- what is chosen ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FlatSVMCV, HSVMCV, NHSVMCV, SSVMCV])  # HRSVM has ties at its optimum
def test_scores_are_those_of_fits_from_nothing(kind):
    X, y = make(noise=3.0, n_samples=120)
    model = kind(TREE, CS, **TIGHT).fit(X, y)
    train, held = hold_out_split(y, hierarchy=TREE)
    labels = np.array(y)
    expected = [KINDS[kind](TREE, C, **EXACT).fit(X[train], labels[train]).score(X[held], labels[held]) for C in CS]
    assert len(set(expected)) > 1
    np.testing.assert_array_equal(model.scores_, [expected])
    assert CS[int(np.argmax(expected))] == model.C_
    assert model.best_score_ == max(expected)
    plain = KINDS[kind](TREE, model.C_, **EXACT).fit(X, y)
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(plain.objective_, rel=3e-6)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=0.02)


@pytest.mark.parametrize("kind", [NHSVMCV, HRSVMCV])
def test_label_sets_are_chosen_by_their_overlap(kind):
    X, y = make_sets(noise=3.0, n_samples=80)
    given = {"leaf_offset": 0.0} if kind is NHSVMCV else {}
    model = kind(TREE, CS, **TIGHT, **given, offsets=None).fit(X, y)
    train, held = hold_out_split(y, hierarchy=TREE)
    sets, expected = np.array(y, dtype=object), []
    for C in CS:
        plain = KINDS[kind](TREE, C, **EXACT, **given).fit(X[train], sets[train])
        expected.append(example_jaccard(sets[held], plain.predict(X[held]), hierarchy=TREE))
    assert model.scoring_ == "example_jaccard"
    np.testing.assert_allclose(model.scores_, [expected], atol=1e-12)
    assert CS[int(np.argmax(expected))] == model.C_


@pytest.mark.parametrize("kind", [NHSVMCV, HRSVMCV, SSVMCV])
@pytest.mark.parametrize("hierarchy", [TREE, DAG], ids=["tree", "dag"])
def test_label_sets_go_on_to_all_samples(hierarchy, kind):
    """From dual variables of those that were not held out: the others begin as at U = 0."""
    X, y = make_sets(hierarchy, n_samples=30)
    model = kind(hierarchy, [0.01, 0.1], tol=1e-3, cv=0.4).fit(X, y)
    whole = KINDS[kind](hierarchy, model.C_, tol=1e-3).fit(X, y)
    assert model.gap_ <= 1e-3
    assert model.objective_ == pytest.approx(whole.objective_, rel=3e-3)
    assert model.dual_objective_ <= whole.objective_


def test_folds_have_a_row_of_scores_each():
    X, y = make(noise=3.0)
    rows = [(np.arange(0, 60), np.arange(60, 90)), (np.arange(30, 90), np.arange(30))]
    model = NHSVMCV(TREE, CS, cv=rows, **TIGHT).fit(X, y)
    labels = np.array(y)
    expected = [[NHSVM(TREE, C, **EXACT).fit(X[a], labels[a]).score(X[b], labels[b]) for C in CS] for a, b in rows]
    np.testing.assert_array_equal(model.scores_, expected)
    assert CS[int(np.argmax(np.mean(expected, axis=0)))] == model.C_
    assert (model.n_splits_, model.n_held_out_) == (2, 60)
    assert NHSVMCV(TREE, CS, cv=3).fit(X, y).scores_.shape == (3, 3)


@pytest.mark.parametrize("several", [False, True])
def test_it_takes_three_times_the_passes_of_one_fit_at_most(several):
    if several:
        hierarchy, (X, y) = TREE, make_sets(n_samples=600, n_features=20, noise=2.0)
    else:
        data = make_balanced(n_samples=600, random_state=0)
        hierarchy, X, y = data.hierarchy, data.X, data.y
    model = NHSVMCV(hierarchy).fit(X, y)
    one = NHSVM(hierarchy, model.C_).fit(X, y)
    assert len(model.cv_results_["params"]) >= 3
    assert 0.8 * model.n_passes_ + model.n_iter_ <= 3 * one.n_iter_  # those of the choice are over 80 % of the samples


def test_the_scale_of_the_features_makes_no_difference():
    X, y = make(noise=2.0)
    weight = np.linspace(0.5, 2.0, len(y))
    model, other = (NHSVMCV(TREE).fit(scale * X, y, weight) for scale in (1.0, 10.0))
    np.testing.assert_allclose(other.Cs_, model.Cs_ / 100.0)
    np.testing.assert_array_equal(other.scores_, model.scores_)
    assert model.Cs_[3] == NHSVM(TREE).fit(X, y, weight).C_
    np.testing.assert_allclose(model.Cs_ / model.Cs_[3], np.geomspace(1 / 32, 32.0, 7), rtol=0.01)
    sparse = NHSVMCV(TREE, Cs=1).fit(sp.csr_array(X), y, weight)
    assert sparse.Cs_.tolist() == [model.Cs_[3]]


def test_fits_of_the_choice_are_as_loose_as_the_last_one():
    """Where the tolerance is larger than that of the choice; otherwise they end at a gap of 0.1."""
    X, y = make(noise=2.0)
    for tol, ends in ((0.4, 0.4), (1e-3, 0.1)):
        model = NHSVMCV(TREE, CS, tol=tol).fit(X, y)
        assert max(model.cv_results_["gap"]) <= ends
        assert model.gap_ <= tol
        given = NHSVMCV(TREE, CS, tol=tol, search_tol=ends).fit(X, y)
        np.testing.assert_array_equal(model.cv_results_["gap"], given.cv_results_["gap"])
    loose = NHSVMCV(TREE, CS, certify=False, tol=0.4).fit(X, y)
    assert not loose.certified_
    assert not any(record["certified"] for record in loose.history_)


def test_early_stopping_is_for_the_last_fit():
    """What it holds out costs nothing, also where the path has learned from it."""
    X, y = make(noise=2.0)
    model = NHSVMCV(TREE, CS, early_stopping=True, **EXACT).fit(X, y)
    assert all("validation_score" in record for record in model.history_)
    plain = NHSVM(TREE, model.C_, early_stopping=True, **EXACT)
    weight = np.ones(len(y))
    weight[held_out(plain, plain.make_problem(X, y)).held_out] = 0.0
    exact = NHSVM(TREE, model.C_, **EXACT).fit(X, y, weight)
    assert model.certified_
    assert 0.5 * exact.objective_ <= model.dual_objective_ <= exact.objective_
    assert exact.dual_objective_ <= model.objective_


def test_the_path_ends_where_scores_do_not_rise():
    path = np.geomspace(1e-4, 0.3, 7)
    X, y = make(noise=3.0, n_samples=600)
    model = NHSVMCV(TREE, path).fit(X, y)
    tried = np.isfinite(model.scores_[0])
    assert 3 <= tried.sum() < 7
    assert (np.diff(tried.astype(int)) <= 0).all()  # from the smallest on
    whole = NHSVMCV(TREE, path, patience=None).fit(X, y)
    assert np.isfinite(whole.scores_).all()
    np.testing.assert_array_equal(whole.scores_[0][tried], model.scores_[0][tried])
    few = NHSVMCV(TREE, path[:4]).fit(X[:400], y[:400])
    assert few.n_held_out_ == 80
    assert np.isfinite(few.scores_).all()


def test_other_weights_are_tried_at_the_best_C():
    X, y = make(noise=3.0, n_samples=120)
    model = NHSVMCV(TREE, CS, weights=["uniform", "flat", "maxmin"], **TIGHT).fit(X, y)
    params = model.cv_results_["params"]
    assert [one["weights"] for one in params] == ["uniform"] * 3 + ["flat", "maxmin"]
    train, held = hold_out_split(y, hierarchy=TREE)
    labels = np.array(y)
    for one, score in zip(params, model.cv_results_["mean_test_score"], strict=True):
        plain = NHSVM(TREE, **EXACT, **one).fit(X[train], labels[train])
        assert plain.score(X[held], labels[held]) == score
    best = model.cv_results_["mean_test_score"].argmax()
    assert model.best_params_ == params[best]
    assert model.best_estimator_.weights == params[best]["weights"]
    np.testing.assert_allclose(model.node_weights_, NHSVM(TREE, **params[best]).fit(X, y).node_weights_)
    assert model.cv_results_["rank_test_score"][best] == 1


def test_leaf_offsets_and_offsets_are_chosen_for_label_sets():
    X, y = make_sets(n_samples=200, noise=3.0)
    model = NHSVMCV(TREE, CS, leaf_offset=[0.0, -1.0]).fit(X, y)
    assert [one["leaf_offset"] for one in model.cv_results_["params"]][-1] == -1.0
    assert model.offsets_.shape == (7,)
    assert model.best_estimator_.offsets == "example_jaccard"
    assert NHSVMCV(TREE, CS, scoring="lca_f1").fit(X, y).best_estimator_.offsets is None  # there is no search for it
    with pytest.raises(AttributeError, match="offsets_"):
        _ = NHSVMCV(TREE, CS, offsets=None).fit(X, y).offsets_


def test_held_out_samples_give_probabilities_without_another_fit():
    X, y = make(noise=3.0, n_samples=200)
    model = NHSVMCV(TREE, CS, probability=True, **TIGHT).fit(X, y)
    train, held = hold_out_split(y, hierarchy=TREE)
    given = NHSVM(TREE, model.C_, probability=True, cv=[(train, held)], **EXACT).fit(X, y)
    assert model.temperature_ == pytest.approx(given.temperature_, rel=1e-3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    sets = make_sets(n_samples=100)
    assert NHSVMCV(TREE, CS, probability=True).fit(*sets).node_proba(sets[0]).shape == (100, 7)
    assert not hasattr(NHSVMCV(TREE), "predict_proba")


def test_samples_of_weight_zero_are_neither_learned_from_nor_scored():
    X, y = make(noise=2.0)
    wrong = [*y, *(["rose"] * 30)]
    more = np.vstack([X, X[:30]])
    weight = np.concatenate([np.ones(90), np.zeros(30)])
    model = NHSVMCV(TREE, CS, **TIGHT).fit(more, wrong, weight)
    alone = NHSVMCV(TREE, CS, **TIGHT).fit(X, y)
    np.testing.assert_array_equal(model.scores_, alone.scores_)
    assert model.n_held_out_ == alone.n_held_out_
    assert model.objective_ == pytest.approx(alone.objective_, rel=3e-6)


def test_groups_are_for_a_splitter():
    X, y = make(noise=2.0)
    groups = np.arange(90) // 4 % 5
    model = NHSVMCV(TREE, CS, cv=GroupKFold(5)).fit(X, y, groups=groups)
    expected = NHSVMCV(TREE, CS, cv=list(GroupKFold(5).split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(model.scores_, expected.scores_)
    assert NHSVMCV(TREE, CS, cv=HoldOut(0.3)).fit(X, y).n_splits_ == 1


@pytest.mark.parametrize("scoring", ["hierarchical_f1", "balanced_accuracy", lambda model, X, y: -model.C])
def test_scores(scoring):
    X, y = make(noise=2.0)
    model = NHSVMCV(TREE, CS, scoring=scoring).fit(X, y)
    assert np.isfinite(model.best_score_)
    if callable(scoring):
        assert CS[0] == model.C_
        assert model.best_score_ == -CS[0]


def test_solvers_of_all_kinds():
    X, y = make(noise=2.0)
    seen = []
    solver = Dual(tol=1e-6, callback=seen.append)
    model = NHSVMCV(TREE, CS, solver=solver, search_tol=1e-3).fit(X, y)
    assert model.gap_ <= 1e-6
    assert len(seen) == model.n_passes_ + model.n_iter_
    np.testing.assert_array_equal(model.scores_, NHSVMCV(TREE, CS, search_tol=1e-3, tol=1e-6).fit(X, y).scores_)
    assert NHSVMCV(TREE, CS, solver="sgd", tol=0.1).fit(X, y).score(X, y) > 0.5


# -- a fitted estimator like others ------------------------------------------------------------------------------------


def test_a_file_holds_the_plain_estimator(tmp_path):
    X, y = make(noise=2.0)
    model = NHSVMCV(TREE, CS).fit(X, y)
    model.save(tmp_path / "m.nhsvm")
    loaded = nhsvm.load(tmp_path / "m.nhsvm")
    assert type(loaded) is NHSVM
    assert loaded.C == model.C_
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    texts = ["barks a lot", "barks", "purrs", "purrs all day", "acorns", "acorns fall"]
    pipe = make_pipeline(TfidfVectorizer(), NHSVMCV(TREE, [1, 10], cv=2)).fit(
        texts, ["dog", "dog", "cat", "cat", "oak", "oak"]
    )
    nhsvm.save(pipe, tmp_path / "p.nhsvm")
    assert nhsvm.load(tmp_path / "p.nhsvm").predict(["it purrs"]).tolist() == ["cat"]
    assert "cat: score" in str(nhsvm.explain(pipe, "it purrs"))


def test_scikit_learn_tools():
    X, y = make(noise=2.0)
    model = NHSVMCV(TREE, CS).fit(X, y)
    assert model.classes_.tolist() == sorted(TREE.leaves)
    assert model.predict(X).tolist() == model.best_estimator_.predict(X).tolist()
    other = clone(model)
    assert not [name for name in vars(other) if name.endswith("_")]
    np.testing.assert_array_equal(other.fit(X, y).coef_, model.coef_)
    assert repr(NHSVMCV(Cs=3)) == "NHSVMCV(Cs=3)"
    assert 0 < cross_val_score(NHSVMCV(TREE, CS), X, y, cv=2).mean() <= 1
    search = GridSearchCV(NHSVMCV(TREE, CS), {"weights": ["maxmin", "flat"]}, cv=2).fit(X, y)
    assert search.best_estimator_.C_ in CS
    sets = make_sets()
    found = NHSVMCV(TREE, CS).fit(sets[0], indicator(sets[1], TREE.leaves)).predict(sets[0])
    assert found.shape == (90, 4)


def test_results_are_the_same_for_any_number_of_threads():
    X, y = make(noise=2.0)
    models = [NHSVMCV(TREE, CS, n_jobs=jobs).fit(X, y) for jobs in (1, 2)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_without_a_refit_there_is_no_model():
    X, y = make(noise=2.0)
    model = NHSVMCV(TREE, CS, refit=False).fit(X, y)
    assert model.C_ in CS
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        model.save("nowhere")


def test_callback_and_lines(capsys):
    X, y = make(noise=2.0)
    records = []
    model = NHSVMCV(TREE, CS, callback=records.append, verbose=1).fit(X, y)
    assert sum("trying" in record for record in records) == model.n_passes_
    assert len(records) == model.n_passes_ + model.n_iter_
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("weights=maxmin  leaf_offset=auto  C=0.003  accuracy ")
    with pytest.warns(ConvergenceWarning):
        ended = NHSVMCV(TREE, CS, callback=lambda record: True, tol=1e-9).fit(X, y)
    assert (ended.n_passes_, ended.n_iter_, ended.C_) == (1, 1, CS[0])


@pytest.mark.parametrize("press", [2, 40])
def test_an_interrupt_keeps_the_best_so_far(press):
    X, y = make(noise=3.0)
    passes = []

    def callback(record):
        passes.append(record)
        if len(passes) == press:
            raise KeyboardInterrupt

    how = {"search_tol": 1e-6, "search_iter": 30, "patience": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = NHSVMCV(TREE, CS, callback=callback, tol=1e-12, **how).fit(X, y)
    assert model.interrupted_
    assert model.predict(X).shape == (90,)
    assert ("trying" in passes[-1]) == (press == 2)


def test_an_error_leaves_the_model_before():
    X, y = make(noise=2.0)
    model = NHSVMCV(TREE, CS).fit(X, y)
    before = model.predict(X)
    with pytest.raises(DataError):
        model.fit(X[:, :3] * np.nan, y)
    assert model.n_features_in_ == 6
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"Cs": 0}, "Cs must be a number of values to try, or a list"),
        ({"Cs": [1.0, -1.0]}, "C must be positive numbers"),
        ({"Cs": 0.5}, "Cs must be a number of values"),
        ({"cv": 1.5}, "cv must be a share"),
        ({"cv": 0}, "cv must be a whole number of at least 1"),
        ({"weights": []}, "weights has no value to try"),
        ({"weights": ["maxmin", "mxmin"]}, "weights must be one of"),
        ({"search_tol": 0}, "search_tol must be a positive number"),
        ({"search_iter": 0}, "search_iter must be a whole number"),
        ({"patience": 0}, "patience must be a whole number"),
        ({"scoring": 3}, "scoring must be a name or a function"),
        ({"scoring": "acuracy"}, "did you mean 'accuracy'"),
        ({"scoring": "neg_log_loss"}, "asks for probabilities"),
        ({"refit": "yes"}, "refit must be True or False"),
        ({"offsets": "nonsense"}, "offsets must be"),
        ({"tol": -1}, "tol must be"),
        ({"hierarchy": 3}, "hierarchy must be a Hierarchy"),
        ({"offsets": "f1_micro"}, "offsets is for label sets"),
        ({"leaf_offset": [0.0, -1.0]}, "leaf_offset is for label sets"),
    ],
)
def test_errors_come_before_any_fit(options, said, monkeypatch):
    X, y = make()
    monkeypatch.setattr("nhsvm.estimators.base.HierarchicalSVM._learn", None)
    with pytest.raises(OptionError, match=said):
        NHSVMCV(**options).fit(X, y)


def test_nothing_to_hold_out():
    with pytest.raises(DataError, match="none can be held out"):
        NHSVMCV().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'C'"):
        NHSVMCV(C=1.0)


def exceptions(estimator):
    why = "a fit ends at a gap of tol, which leaves scores of two fits about √tol apart"
    found = {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    kind = "check_classifiers_multilabel_"
    if sklearn.utils.get_tags(estimator).classifier_tags.multi_label:
        found[f"{kind}representation_invariance"] = "rows of 0 and 1 in lists are refused: lists are label sets here"
        why = "samples without a label are refused unless allow_empty=True"
        found |= {f"{kind}output_format_{name}": why for name in ("predict", "predict_proba", "decision_function")}
    return found


@parametrize_with_checks([NHSVMCV(Cs=[0.01, 1.0], max_iter=30)], expected_failed_checks=exceptions)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
