"""What ``evaluate`` refuses, and what it says."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from estimators.problems import DAG
from nhsvm import NHSVM
from nhsvm.errors import DataError, LabelError, NHSVMError, OptionError, UnknownLabelError
from nhsvm.report import evaluate
from report.saying import Says


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"y": ["dog", "cow"]}, UnknownLabelError, "not in the hierarchy: 'cow'.*first in sample 1 of y"),
        ({"y": ["dog"]}, DataError, "y has 1 samples, but X 2"),
        ({"y": []}, DataError, "y has no samples"),
        ({"y": None}, LabelError, "y is None"),
        ({"y": [{"dog", "cat"}, {"oak"}]}, LabelError, "one label a sample, but sample 0 of y has 2"),
        ({"texts": ["a"]}, DataError, "y has 2 samples, but texts 1"),
        ({"ids": [1, 2, 3]}, DataError, "y has 2 samples, but ids 3"),
        ({"bins": 0}, OptionError, "bins must be a whole number of at least 1, not 0"),
        ({"examples": -1}, OptionError, "examples must be a whole number of at least 0, not -1"),
        ({"confusions": True}, OptionError, "confusions must be a whole number"),
        ({"hierarchy": DAG}, UnknownLabelError, "a class of the model is not in the hierarchy: 'cat'"),
        ({"hierarchy": "tree"}, NHSVMError, "must be a Hierarchy"),
        ({"model": "model"}, OptionError, "model must be a fitted classifier"),
        ({"model": StandardScaler()}, OptionError, "model must be a fitted classifier"),
        ({"model": NHSVM()}, NotFittedError, "not fitted"),
        ({"X": [[1.0], [2.0]]}, ValueError, "1 features"),
    ],
)
def test_bad_input(change, error, said, single_model):
    given = {"model": single_model, "X": np.zeros((2, 6)), "y": ["dog", "cat"]} | change
    model, X, y = given.pop("model"), given.pop("X"), given.pop("y")
    with pytest.raises(error, match=said):
        evaluate(model, X, y, **given)


def test_a_model_that_is_no_classifier():
    class Regressor:
        def predict(self, X):
            return X

    with pytest.raises(OptionError, match="Regressor has no classes_"):
        evaluate(Regressor(), [1.0], ["a"])


def test_a_model_that_answers_for_other_samples():
    class Short(Says):
        def predict(self, X):
            return np.asarray(X)[:1]

    with pytest.raises(DataError, match="1 predictions for 2 samples"):
        evaluate(Short(["a"]), ["a", "a"], ["a", "a"])
