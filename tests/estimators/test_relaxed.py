"""``oracle="lp"``: the paper's way, the relaxation in training and the integer program at prediction if need be."""

from dataclasses import replace

import numpy as np
import pytest

from estimators.problems import DAG, TREE, make_sets
from nhsvm import HSVM, NHSVM, SSVM, Hierarchy, load
from nhsvm.errors import OptionError
from nhsvm.oracles import lp

# three topics of two leaves each: half of every leaf covers all topics, for less than any label set does
OVERLAPPING = Hierarchy.from_edges(
    [("r", topic) for topic in "abc"]
    + [(t, leaf) for t, leaves in {"a": "xy", "b": "yz", "c": "xz"}.items() for leaf in leaves]
)


def counted(monkeypatch):
    """Numbers of linear and integer programs solved from now on."""
    runs = []
    inner = lp.run
    monkeypatch.setattr(lp, "run", lambda model, kind, n: (runs.append(kind), inner(model, kind, n))[1])
    return runs


def test_training_is_relaxed_on_a_dag(monkeypatch):
    X, y = make_sets(OVERLAPPING, n_samples=60, noise=2.0)
    runs = counted(monkeypatch)
    relaxed = HSVM(OVERLAPPING, C=0.5, loss="hamming", oracle="lp", tol=1e-4).fit(X, y)
    linear = runs.count("linear")
    assert linear > 60
    assert runs.count("integer") < linear / 10  # to count errors, and not in passes
    exact = HSVM(OVERLAPPING, C=0.5, loss="hamming", tol=1e-4).fit(X, y)
    assert relaxed.gap_ <= 1e-4
    assert relaxed.dual_objective_ > 1.001 * exact.objective_


def test_predictions_are_label_sets_and_the_best_ones(monkeypatch):
    """With few features scores are such that the linear program is fractional for some samples."""
    X, y = make_sets(OVERLAPPING, n_samples=200, noise=2.0)
    model = HSVM(OVERLAPPING, C=0.5, loss="hamming", oracle="lp").fit(X[:50], y[:50])
    offsets = np.where(OVERLAPPING.graph.is_leaf, -3.0, 2.0)  # so it pays to cover topics by half of every leaf
    model.model_ = replace(model.model_, offsets=offsets)
    runs = counted(monkeypatch)
    found = model.predict(X)
    assert runs.count("linear") == 200
    assert 0 < runs.count("integer") < 100
    runs.clear()
    expected = model.set_params(oracle="auto").predict(X)
    assert not runs
    assert found.tolist() == expected.tolist()


def test_on_a_tree_the_relaxation_is_exact():
    X, y = make_sets(TREE, n_samples=40)
    plain, program = (NHSVM(TREE, oracle=oracle, tol=1e-4).fit(X, y) for oracle in ("auto", "lp"))
    assert program.objective_ == pytest.approx(plain.objective_, rel=1e-4)
    assert program.predict(X).tolist() == plain.predict(X).tolist()


def test_nodes_without_weight_above_leaves_of_several_parents():
    """Weights on leaves and one inner node: these columns are a tree, but the relaxation is that of the DAG."""
    h = Hierarchy.from_edges([("p", "m"), ("p", "n"), ("m", "x"), ("m", "y"), ("n", "x"), ("n", "y"), ("q", "z")])
    X, y = make_sets(h, n_samples=30)
    model = NHSVM(h, weights=lambda h: np.array([float(n not in "mn") for n in h.nodes]), oracle="lp", tol=1e-4)
    exact = NHSVM(h, weights=model.weights, tol=1e-4).fit(X, y)
    assert model.fit(X, y).gap_ <= 1e-4
    assert model.objective_ >= exact.dual_objective_


@pytest.mark.parametrize("order", [("auto", "lp"), ("lp", "auto")])
def test_dual_variables_of_one_oracle_are_not_those_of_the_other(order):
    X, y = make_sets(DAG, n_samples=30)
    model = NHSVM(DAG, oracle=order[0], warm_start=True).fit(X, y)
    with pytest.raises(OptionError, match="oracle='lp' in both or in neither"):
        model.set_params(oracle=order[1]).fit(X, y)
    again = NHSVM(DAG, oracle="lp", warm_start=True).fit(X, y)
    assert again.fit(X, y).n_iter_ == 1


def test_learned_weights_and_files(tmp_path):
    X, y = make_sets(OVERLAPPING, n_samples=40)
    model = SSVM(OVERLAPPING, oracle="lp", tol=1e-2).fit(X, y)
    assert model.gap_ <= 1e-2
    model.save(tmp_path / "m.nhsvm")
    assert load(tmp_path / "m.nhsvm").predict(X).tolist() == model.predict(X).tolist()
