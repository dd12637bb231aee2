"""The estimators among scikit-learn's: its own checks, and the tools people use them with."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, average_precision_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimators.problems import TREE, indicator, make, make_sets
from nhsvm import HSVM, NHSVM, SSVM, FlatSVM, Hierarchy
from nhsvm.errors import DataError, LabelError, UnknownLabelError
from nhsvm.metrics import scorers
from nhsvm.weights import Power

ALL = [FlatSVM, HSVM, NHSVM, SSVM]
CHECKED = [
    FlatSVM(),
    HSVM(),
    NHSVM(),
    NHSVM(weights=Power(rho=1.5)),
    NHSVM(margin="normalized"),
    NHSVM(allow_empty=True),
    SSVM(),
    SSVM(allow_empty=True),
    NHSVM(solver="sgd"),
]


# Their samples lie at 100 ± 1, with labels at random, which takes hundreds of passes; they do not look at how good the
# fit is, only at what it leaves and that it comes out the same once more.
FEW_PASSES = {"check_fit_idempotent", "check_n_features_in", "check_fit_check_is_fitted"}


def exceptions(estimator):
    """Checks that are expected to fail, and why."""
    why = (
        "scores of two fits are compared to 1e-7; a fit ends at a gap of tol, which leaves them about √tol apart. "
        "test_fit.py compares them to what the gaps justify"
    )
    found = {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    if estimator.solver == "sgd":
        found["check_fit_score_takes_y"] = "calls partial_fit after fit, which has no state to go on from: an error"
    if sklearn.utils.get_tags(estimator).classifier_tags.multi_label:
        kind = "check_classifiers_multilabel_"
        found[f"{kind}representation_invariance"] = "rows of 0 and 1 in lists are refused: lists are label sets here"
        if not estimator.allow_empty:
            why = "samples without a label are refused unless allow_empty=True; then this check passes"
            methods = ("predict", "predict_proba", "decision_function")
            found |= {f"{kind}output_format_{method}": why for method in methods}
    return found


@parametrize_with_checks(CHECKED, expected_failed_checks=exceptions)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ in FEW_PASSES:
        estimator.set_params(max_iter=10)
    check(estimator)


@pytest.mark.parametrize("cls", ALL)
def test_default_constructor(cls):
    model = cls()
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(C=3.0).C == 3.0
    with pytest.raises(ValueError, match="Invalid parameter 'D'"):
        model.set_params(D=1)
    assert not hasattr(model, "predict_proba")
    assert sklearn.base.is_classifier(model)
    assert repr(cls(C=2.0)) == f"{cls.__name__}(C=2.0)"


@pytest.mark.parametrize("cls", ALL)
def test_clone_of_a_fitted_model(cls):
    X, y = make()
    model = cls(TREE, C=0.1, class_weight={"dog": 2.0}).fit(X, y)
    other = clone(model)
    assert not [name for name in vars(other) if name.endswith("_")]
    assert other.hierarchy == TREE
    np.testing.assert_array_equal(other.fit(X, y).coef_, model.coef_)


def test_fit_changes_neither_inputs_nor_parameters():
    X, y = make(sparse=True)
    X = sp.csr_matrix((np.append(X.data, 0.0), np.append(X.indices, 0), np.append(X.indptr[:-1], X.nnz + 1)))
    X.indices[:2] = X.indices[:2][::-1]  # unsorted
    weight = np.linspace(0, 1, len(y))
    copies = X.copy(), list(y), weight.copy()
    model = NHSVM(TREE, class_weight="balanced")
    before = model.get_params()
    model.fit(X, y, weight)
    assert model.get_params() == before
    np.testing.assert_array_equal(X.indices, copies[0].indices)
    np.testing.assert_array_equal(X.data, copies[0].data)
    assert y == copies[1]
    np.testing.assert_array_equal(weight, copies[2])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames(kind):
    X, y = make()
    names = [f"f{k}" for k in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names) if kind == "pandas" else pl.DataFrame(X, schema=names)
    model = NHSVM(TREE).fit(frame, (pd.Series if kind == "pandas" else pl.Series)(y))
    assert model.feature_names_in_.tolist() == names
    assert model.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(model.predict(frame), NHSVM(TREE).fit(X, y).predict(X))
    assert model.score(frame, y) == model.score(frame, (pd.Series if kind == "pandas" else pl.Series)(y))
    with pytest.raises(DataError, match="feature names"):
        model.predict(frame[names[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


def test_score():
    X, y = make(noise=3.0)
    model = HSVM(TREE).fit(X, y)
    weight = np.arange(len(y), dtype=float)
    assert model.score(X, y) == pytest.approx(accuracy_score(y, model.predict(X)))
    assert 0 < model.score(X, y) < 1
    assert model.score(X, y, weight) == pytest.approx(accuracy_score(y, model.predict(X), sample_weight=weight))
    assert model.score(X, ["other"] * len(y)) == 0
    with pytest.raises(ValueError, match="X has 90 rows, but y has 89 labels"):
        model.score(X, y[1:])


def test_grid_search():
    X, y = make(n_samples=60)
    grid = {"C": [0.01, 1.0], "weights": ["maxmin", Power(rho=2.0)], "loss": ["auto", "hamming"]}
    search = GridSearchCV(NHSVM(TREE), grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    assert len(search.cv_results_["params"]) == 8
    assert search.predict(X[:3]).tolist() == search.best_estimator_.predict(X[:3]).tolist()


@pytest.mark.parametrize("form", ["sets", "dense", "sparse", "pandas"])
def test_grid_search_on_label_sets(form):
    X, y = make_sets(n_samples=60)
    Y = indicator(y, TREE.leaves)
    given = {"sets": y, "dense": Y, "sparse": sp.csr_array(Y), "pandas": pd.DataFrame(Y, columns=TREE.leaves)}[form]
    grid = {"nhsvm__C": [0.01, 1.0], "nhsvm__loss": ["auto", "hamming"]}
    pipe = make_pipeline(StandardScaler(), NHSVM(TREE))
    search = GridSearchCV(pipe, grid, cv=2).fit(X, given)
    assert search.best_score_ > 0.3
    assert search.score(X, given) > 0.5
    found = search.predict(X)
    assert (found if form == "sets" else Y).shape[0] == 60
    other = GridSearchCV(pipe, grid, cv=2, scoring=scorers(TREE, multilabel=True)["hierarchical_f1"]).fit(X, given)
    assert other.best_score_ > 0.8


def test_lists_of_labels_need_a_splitter():
    """For a number of folds, scikit-learn asks what y is, and has no word for lists of labels."""
    X, y = make_sets(n_samples=60)
    lists = [sorted(labels) for labels in y]
    scores = cross_val_score(NHSVM(TREE), X, lists, cv=KFold(2))
    np.testing.assert_array_equal(scores, cross_val_score(NHSVM(TREE), X, y, cv=KFold(2)))


def test_label_binarizer():
    X, y = make_sets()
    binarizer = MultiLabelBinarizer(classes=TREE.leaves)
    model = NHSVM(TREE).fit(X, binarizer.fit_transform(y))
    found = [set(labels) for labels in binarizer.inverse_transform(model.predict(X))]
    assert found == NHSVM(TREE).fit(X, y).predict(X).tolist()
    assert average_precision_score(binarizer.transform(y), model.decision_function(X)) > 0.8


def test_text_pipeline():
    words = {"dog": "bark bone", "cat": "purr mouse", "oak": "leaf wood", "rose": "flower red"}
    texts = [f"{text} {['the', 'a', 'of'][i % 3]}" for text in words.values() for i in range(5)]
    y = [label for label in words for _ in range(5)]
    model = make_pipeline(TfidfVectorizer(), NHSVM(TREE)).fit(texts, y)
    assert model.score(texts, y) == 1
    assert model.predict(["the bone", "red of"]).tolist() == ["dog", "rose"]


def test_calibrated_by_scikit_learn():
    X, y = make()
    model = CalibratedClassifierCV(NHSVM(TREE), cv=3).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_processes():
    X, y = make(sparse=True)
    for hierarchy, method in [(TREE, "predict"), (None, "decision_function")]:
        one = cross_val_predict(NHSVM(hierarchy), X, y, cv=KFold(2), method=method)
        two = cross_val_predict(NHSVM(hierarchy), X, y, cv=KFold(2), method=method, n_jobs=2)
        np.testing.assert_array_equal(one, two)


def test_numbers_for_labels_are_explained():
    """scikit-learn replaces labels by numbers there, which no hierarchy of names can know."""
    X, y = make()
    with pytest.raises(UnknownLabelError, match="cross_val_predict replaces labels by numbers"):
        cross_val_predict(NHSVM(TREE), X, y, cv=2, method="decision_function")


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("problem", [make, make_sets])
def test_pickles(cls, problem, tmp_path):
    X, y = problem()
    model = cls(TREE, warm_start=True).fit(X, y)
    back = pickle.loads(pickle.dumps(model))
    joblib.dump(model, tmp_path / "model")
    for other in (back, joblib.load(tmp_path / "model", mmap_mode="r")):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    assert back.set_params(C=2.0).fit(X, y).gap_ <= 1e-3


def test_metadata_routing():
    X, y = make(noise=3.0)
    weight = np.where(np.arange(len(y)) < 45, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = NHSVM(TREE).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipe.fit(X, y, sample_weight=weight)
        half = make_pipeline(StandardScaler().fit(X), NHSVM(TREE).fit(pipe[0].transform(X)[:45], y[:45]))
        np.testing.assert_allclose(pipe.decision_function(X), half.decision_function(X), atol=0.1)
        search = GridSearchCV(pipe, {"nhsvm__C": [0.1, 1.0]}, cv=2).fit(X, y, sample_weight=weight + 0.1)
        assert search.best_score_ > 0
        scores = cross_val_score(pipe, X, y, params={"sample_weight": weight + 0.1}, cv=2)
        assert scores.shape == (2,)
        assert NHSVM(solver="sgd").set_partial_fit_request(sample_weight=True, classes=True)


def test_row_and_column_of_what_is_not_finite():
    X, y = make()
    X[7, 2] = np.nan
    with pytest.raises(DataError, match="contains NaN: row 7, column 2"):
        NHSVM(TREE).fit(X, y)
    with pytest.raises(DataError, match="contains NaN: row 7, column 2"):
        NHSVM(TREE).fit(sp.csr_array(X), y)
    X[7, 2] = np.inf
    with pytest.raises(DataError, match=r"contains infinity.*: row 7, column 'c'"):
        NHSVM(TREE).fit(pd.DataFrame(X, columns=list("abcdef")), y)
    with pytest.raises(DataError, match="row 7, column 'c'"):
        NHSVM(TREE).fit(pl.DataFrame(X, schema=list("abcdef")), y)
    X[7, 2] = 1
    model = NHSVM(TREE).fit(X, y)
    X[0, 0] = np.nan
    with pytest.raises(DataError, match="row 0, column 0"):
        model.predict(X)


def test_bad_samples():
    X, y = make()
    with pytest.raises(LabelError, match="0 sample"):
        NHSVM(TREE).fit(X[:0], [])
    with pytest.raises(DataError, match="0 sample"):
        NHSVM(TREE).fit(X[:0], y)
    with pytest.raises(DataError, match="0 feature"):
        NHSVM(TREE).fit(X[:, :0], y)
    with pytest.raises(DataError, match="1D array"):
        NHSVM(TREE).fit(X[:, 0], y)
    model = NHSVM(TREE).fit(X, y)
    with pytest.raises(DataError, match="5 features, but NHSVM is expecting 6"):
        model.decision_function(X[:, 1:])
    assert Hierarchy is type(model.hierarchy_)
