"""What is accepted, and what is said about the rest."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from nhsvm import Hierarchy, metrics
from nhsvm.errors import DataError, LabelError, NHSVMError, OptionError, UnknownLabelError
from nhsvm.hierarchy import VirtualLeaf

H = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
ALL = [measure for name, measure in metrics.METRICS.items() if name != "auprc"]  # which has scores for predictions
SINGLE = [metrics.METRICS[name] for name, spec in metrics.METRICS.specs.items() if spec.single]
TRUE, PRED = ["dog", "oak", "cat"], ["cat", "oak", "cat"]
MATRIX = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0]])  # dog, oak, cat


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(
    "y",
    [
        tuple(TRUE),
        np.array(TRUE),
        np.array(TRUE, dtype=object),
        pd.Series(TRUE, index=[7, 8, 9]),
        pl.Series(TRUE),
        dict.fromkeys(TRUE).keys(),
        [[label] for label in TRUE],
        [{label} for label in TRUE],
        [(label, label) for label in TRUE],
        np.array([[label] for label in TRUE] + [None], dtype=object)[:3],
        MATRIX,
        MATRIX.astype(bool),
        MATRIX.astype(float),
        pd.DataFrame(MATRIX, columns=H.leaves),
        sp.csr_array(MATRIX),
        sp.csc_matrix(MATRIX),
        sp.coo_array(([1, 1, 1, 0], ([0, 1, 2, 2], [0, 2, 1, 2])), shape=(3, 3)),
    ],
    ids=lambda y: type(y).__name__,
)
def test_forms(function, y):
    assert function(y, PRED, hierarchy=H) == function(TRUE, PRED, hierarchy=H)
    assert function(PRED, y, hierarchy=H) == function(PRED, TRUE, hierarchy=H)


@pytest.mark.parametrize("function", ALL)
def test_columns_by_name(function):
    names = ["oak", "animal", "dog", "cat"]
    columns = np.zeros((3, 4), dtype=int)
    columns[[0, 1, 2], [2, 0, 3]] = 1
    found = function(sp.csr_array(columns), PRED, hierarchy=H, labels=names)
    assert found == function(TRUE, PRED, hierarchy=H, labels=names)


def test_labels_of_any_kind():
    assert metrics.f1((label for label in TRUE), iter(TRUE), hierarchy=H) == 1
    h = Hierarchy.from_paths([("b", "other"), ("t", "other")], qualified=True)
    y = [("b", "other"), ("t", "other")]
    assert metrics.tree_distance(y, y[::-1], hierarchy=h) == 4
    assert metrics.example_jaccard([y, [y[0]]], [[y[0]], y], hierarchy=h) == 0.5
    numbers = Hierarchy.from_edges([(0, 1), (0, 2)])
    assert metrics.f1(np.array([1, 2]), np.array([1.0, 1.0]), hierarchy=numbers) == 0.5
    sets = Hierarchy.from_edges([("r", frozenset("a")), ("r", "b")])
    assert metrics.f1([frozenset("a")], ["b"], hierarchy=sets) == 0
    virtual = H.with_virtual_leaves(["animal"])
    assert metrics.f1([VirtualLeaf("animal")], ["animal"], hierarchy=virtual) == 1


@pytest.mark.parametrize("function", ALL)
def test_unknown_labels(function):
    with pytest.raises(UnknownLabelError, match=r"y_pred, sample 1: .*'dgo' \(did you mean 'dog'") as caught:
        function(TRUE, ["dog", "dgo", "cat"], hierarchy=H)
    assert caught.value.labels == ("dgo",)
    with pytest.raises(UnknownLabelError, match=r"y_true, sample 2: .*'cow'"):
        function([{"dog"}, set(), {"cow"}], [{"dog"}] * 3, hierarchy=H)
    with pytest.raises(UnknownLabelError, match=r"labels: .*'cow'"):
        function(TRUE, PRED, hierarchy=H, labels=["cow"])


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "more", "error", "says"),
    [
        (TRUE, PRED[:2], {}, DataError, "y_true has 3 samples, but y_pred 2"),
        ([], [], {}, DataError, "y_true has no samples"),
        (TRUE, np.zeros((0, 3)), {}, DataError, "y_pred has no samples"),
        ("dog", "dog", {}, LabelError, "not the string 'dog'"),
        (5, PRED, {}, LabelError, "expected a collection"),
        (TRUE, ["dog", {"oak"}, "cat"], {}, LabelError, "y_pred: sample 0 has one label, 'dog', but sample 1 a set"),
        ([[["dog"]]], [["dog"]], {}, LabelError, "y_true, sample 0: a label must be hashable"),
        (TRUE, MATRIX[:, :2], {}, LabelError, "y_pred has 2 columns, but the hierarchy 3 leaves"),
        (TRUE, MATRIX, {"labels": ["dog"]}, LabelError, "y_pred has 3 columns, but there are 1 labels"),
        (TRUE, 2 * MATRIX, {}, LabelError, "y_pred, sample 0: expected 0 or 1 for 'dog', not 2"),
        (TRUE, MATRIX.astype(str), {}, LabelError, "y_pred must be labels, label sets or a 0/1 matrix"),
        (TRUE, np.zeros((3, 3, 1)), {}, LabelError, "y_pred must be labels, label sets or a 0/1 matrix"),
        (TRUE, PRED, {"labels": ["dog", "cat", "dog"]}, LabelError, "'dog' is there twice"),
        (TRUE, PRED, {"labels": "dog"}, LabelError, "not the string"),
        (TRUE, PRED, {"sample_weight": [1, 2]}, DataError, "one number a sample, 3"),
        (TRUE, PRED, {"sample_weight": [1, -1, 2]}, DataError, "sample 1 has -1"),
        (TRUE, PRED, {"sample_weight": [1, np.nan, 2]}, DataError, "sample 1 has nan"),
        (TRUE, PRED, {"sample_weight": [0, 0, 0]}, DataError, "0 for every sample"),
        (TRUE, PRED, {"sample_weight": ["x", "y", "z"]}, DataError, "must be numbers"),
        (TRUE, PRED, {"hierarchy": {"dog": "animal"}}, NHSVMError, "must be a Hierarchy, not a dict"),
    ],
)
def test_errors(function, y_true, y_pred, more, error, says):
    with pytest.raises(error, match=says):
        function(y_true, y_pred, **{"hierarchy": H, **more})


@pytest.mark.parametrize("function", SINGLE)
def test_measures_of_one_label(function):
    with pytest.raises(LabelError, match=f"{function.__name__} compares one label .* sample 1 of y_pred has 2 labels"):
        function(["dog", "cat"], [{"dog"}, {"cat", "oak"}], hierarchy=H)
    with pytest.raises(LabelError, match="sample 0 of y_true has 0 labels"):
        function([set()], ["dog"], hierarchy=H)


@pytest.mark.parametrize(
    ("function", "option", "bad"),
    [
        (metrics.f1, "average", ["weighted", None]),
        (metrics.f1, "over", ["leaves", 1]),
        (metrics.f1, "roots", ["all", 1, None]),
        (metrics.f1, "zero_division", ["warn", 2, True]),
        (metrics.hierarchical_f1, "average", ["macro"]),
        (metrics.hierarchical_precision, "zero_division", [np.nan, -1]),
        (metrics.hierarchical_recall, "zero_division", ["0"]),
        (metrics.hamming_distance, "normalize", ["yes", 1]),
        (metrics.graph_accuracy, "max_distance", [0, -1, np.inf, np.nan, True, "5"]),
        (metrics.example_jaccard, "over", ["Nodes"]),
    ],
)
def test_options(function, option, bad):
    for value in bad:
        with pytest.raises(OptionError, match=f"{option} must be"):
            function(TRUE, PRED, hierarchy=H, **{option: value})


@pytest.mark.parametrize(
    ("scores", "more", "error", "says"),
    [
        (np.zeros((2, 5)), {}, DataError, "y_true has 3 samples, but node_scores 2"),
        (np.zeros((3, 3)), {}, LabelError, "3 columns, but there are 5 nodes; say with nodes="),
        (np.zeros((3, 5)), {"nodes": ["dog"]}, LabelError, "5 columns, but there are 1 nodes"),
        (np.zeros((3, 1)), {"nodes": ["cow"]}, UnknownLabelError, "nodes: .*'cow'"),
        (np.zeros(3), {}, DataError, "a matrix of numbers"),
        ([[1, 2], [3], [4]], {}, DataError, "different lengths"),
        (np.full((3, 5), "x"), {}, DataError, "a matrix of numbers"),
        (sp.csr_array((3, 5)), {}, DataError, "must be dense"),
        (np.full((3, 5), np.nan), {}, DataError, "row 0"),
        (np.zeros((3, 5)), {"zero_division": 7}, OptionError, "zero_division"),
        (np.zeros((3, 5)), {"roots": "yes"}, OptionError, "roots"),
        (np.zeros((3, 5)), {"hierarchy": None}, NHSVMError, "must be a Hierarchy"),
    ],
)
def test_auprc_errors(scores, more, error, says):
    with pytest.raises(error, match=says):
        metrics.auprc(TRUE, scores, **{"hierarchy": H, **more})


def test_public_names():
    assert set(dir(metrics)) == set(metrics.__all__) == {"METRICS", "scorers", *metrics.METRICS}
    assert all(callable(getattr(metrics, name)) for name in metrics.__all__ if name != "METRICS")
    with pytest.raises(AttributeError, match="no attribute 'accuracy'"):
        _ = metrics.accuracy


def test_only_scorers_need_scikit_learn():
    code = (
        "import sys; from nhsvm import Hierarchy; from nhsvm.metrics import f1, tree_distance, auprc;"
        "h = Hierarchy.from_edges([(0, 1), (0, 2)]); f1([1], [2], hierarchy=h); tree_distance([1], [2], hierarchy=h);"
        "print(not {'sklearn', 'numba', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
