"""Prediction that keeps a few nodes a level."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from estimators.problems import DAG, FOREST, TREE, make, make_sets
from nhsvm import HRSVM, HSVM, NHSVM, FlatSVM, load, prune
from nhsvm.errors import OptionError
from reference.beam import beam_leaf
from strategies import random_hierarchy


def trained(cls, seed, *, sparse=True, **options):
    h = random_hierarchy(40, seed, roots=2)
    X, y = make(h, n_samples=150, n_features=12, noise=3.0, seed=seed, sparse=sparse)
    return cls(h, C=0.1, tol=1e-2, **options).fit(X, y), X


@pytest.mark.parametrize("cls", [FlatSVM, HSVM, NHSVM, HRSVM])
@pytest.mark.parametrize("width", [1, 2, 5, 1000])
@pytest.mark.parametrize("sparse", [True, False])
def test_it_is_what_its_twin_finds(cls, width, sparse):
    for seed in range(4):
        model, X = trained(cls, seed, sparse=sparse)
        columns = model.model_.columns
        scores = model.node_scores(X)[:, columns.nodes]
        expected = [beam_leaf(columns.parent, columns.leaf_column, row, width) for row in scores]
        found = model.predict(X, beam=width)
        assert (found == model.classes_[expected]).mean() >= 0.99  # sums in another order
        if width == 1000:
            assert (found == model.predict(X)).mean() >= 0.99


def test_a_narrow_beam_is_not_exact():
    model, X = trained(HSVM, 1)
    exact = model.predict(X)
    share = [(model.predict(X, beam=width) == exact).mean() for width in (1, 3, 1000)]
    assert share[0] < share[2] == 1.0
    assert share[0] <= share[1]


@pytest.mark.parametrize("precision", [None, "float16", "int8"])
@pytest.mark.parametrize("rows", [True, False])
def test_packed_and_pruned_weights(precision, rows, tmp_path):
    model, X = trained(HSVM, 2)
    if rows:
        model = prune(model, share=0.3).model
        size = model.model_.weights.size
        assert (size > 0).any()
        assert (size < 0).any()
    model.save(tmp_path / "m", precision=precision)
    back = load(tmp_path / "m")
    assert (back.predict(X, beam=1000) == back.predict(X)).mean() >= 0.99
    assert (back.predict(X, beam=1) != back.predict(X)).any()


def test_threads_pipelines_and_one_document():
    model, X = trained(HSVM, 3)
    found = model.predict(X, beam=2)
    np.testing.assert_array_equal(model.set_params(n_jobs=2).predict(X, beam=2), found)
    np.testing.assert_array_equal(model.predict(sp.csr_array(X)[[7]], beam=2), found[[7]])
    pipeline = make_pipeline(MaxAbsScaler(), HSVM(TREE))
    X, y = make(TREE)
    pipeline.fit(X, y)
    np.testing.assert_array_equal(pipeline.predict(X, beam=100), pipeline.predict(X))


def test_labels_without_weight_score_nothing():
    X, y = make(FOREST)
    model = NHSVM(FOREST, weights=lambda h: np.array([float(n not in ("oak", "rock")) for n in h.nodes])).fit(X, y)
    assert (model.predict(X) == "rock").any()
    assert (model.predict(X) == "oak").any()
    np.testing.assert_array_equal(model.predict(X, beam=3), model.predict(X))


@pytest.mark.parametrize("beam", [0, -1, 1.5, True, "3"])
def test_bad_widths(beam):
    X, y = make(TREE)
    model = HSVM(TREE).fit(X, y)
    with pytest.raises(OptionError, match="beam must be None or a whole number of at least 1"):
        model.predict(X, beam=beam)


def test_where_there_is_no_beam():
    X, y = make(DAG)
    with pytest.raises(OptionError, match="several parents"):
        HSVM(DAG).fit(X, y).predict(X, beam=2)
    X, y = make_sets(TREE)
    with pytest.raises(OptionError, match="one label a sample"):
        HSVM(TREE).fit(X, y).predict(X, beam=2)
