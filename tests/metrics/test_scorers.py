"""Scorers in scikit-learn's own tools."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier

from nhsvm import NHSVM, Hierarchy, metrics
from nhsvm.errors import NHSVMError, OptionError

H = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak"), ("plant", "rose")])


class Fixed(BaseEstimator):
    """Says what it was told."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.answer


def make(n=60):
    rng = np.random.default_rng(0)
    y = np.array(H.leaves)[np.arange(n) % 4]
    return rng.normal(size=(n, 4)) + 2 * np.eye(4)[np.arange(n) % 4], y


def test_values():
    y_true, y_pred = ["dog", "oak"], ["cat", "oak"]
    for name, scorer in metrics.scorers(H).items():
        function, sign = getattr(metrics, scorer._score_func.__name__), -1 if name.startswith("neg_") else 1
        assert scorer(Fixed(y_pred), [[0], [0]], y_true) == sign * function(
            y_true, y_pred, hierarchy=H, **{k: v for k, v in scorer._kwargs.items() if k != "hierarchy"}
        )
    assert metrics.scorers(H)["neg_tree_distance"](Fixed(y_pred), [[0], [0]], y_true) == -1.0
    weighted = metrics.scorers(H)["f1_micro"](Fixed(y_pred), [[0], [0]], y_true, sample_weight=[1, 3])
    assert weighted == 0.75


def test_pickle():
    for scorer in metrics.scorers(H).values():
        again = pickle.loads(pickle.dumps(scorer))
        assert again(Fixed(["cat"]), [[0]], ["dog"]) == scorer(Fixed(["cat"]), [[0]], ["dog"])
        assert get_scorer(scorer) is scorer


@pytest.mark.parametrize("model", [LogisticRegression(), NHSVM(hierarchy=H, tol=0.1)])
def test_grid_search(model):
    X, y = make()
    search = GridSearchCV(
        model, {"C": [0.01, 1.0]}, scoring=metrics.scorers(H), refit="hierarchical_f1", cv=2, error_score="raise"
    ).fit(X, y)
    for name in metrics.scorers(H):
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()
    assert 0 < search.best_score_ <= 1
    assert (search.cv_results_["mean_test_neg_tree_distance"] <= 0).all()
    one = GridSearchCV(model, {"C": [1.0]}, scoring=metrics.scorers(H)["lca_f1"], cv=2, error_score="raise").fit(X, y)
    assert one.best_score_ == search.cv_results_["mean_test_lca_f1"][1]


def test_multilabel():
    X, y = make()
    Y = np.array([[leaf == label or leaf == "rose" for leaf in H.leaves] for label in y])[:, [2, 0, 1]].astype(int)
    names = [H.leaves[k] for k in (2, 0, 1)]
    several = metrics.scorers(H, multilabel=True, labels=names)
    assert set(metrics.scorers(H)) - set(several) == {"neg_tree_distance"}
    found = cross_validate(OneVsRestClassifier(LogisticRegression()), X, Y, scoring=several, cv=3, error_score="raise")
    assert 0.5 < found["test_hierarchical_f1"].mean() <= 1


def test_own_scorer():
    scorer = make_scorer(metrics.f1, hierarchy=H, average="macro", over="nodes", roots=False)
    assert scorer(Fixed(["dog"]), [[0]], ["dog"]) == 1.0


def test_errors():
    with pytest.raises(NHSVMError, match="must be a Hierarchy"):
        metrics.scorers("hierarchy")
    with pytest.raises(OptionError, match="multilabel"):
        metrics.scorers(H, multilabel="yes")
