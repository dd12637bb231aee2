"""A model by itself: what it answers without scikit-learn and without the solvers, and what it refuses."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import scipy.sparse as sp

from nhsvm import HRSVM, NHSVM, FlatSVM, Hierarchy, load, load_model
from nhsvm.errors import DataError, FileFormatError, LabelError, OptionError
from nhsvm.model import Model, Training
from nhsvm.storage import Table
from nhsvm.storage.samples import Samples

TREE = Hierarchy.from_edges([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")])
DAG = Hierarchy.from_edges([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2"), ("a", "c"), ("b", "c")])


def data(n=80, n_features=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    y = np.array(["a1", "a2", "b1", "b2"])[rng.integers(4, size=n)]
    X[:, 0] += 2 * (y < "b")
    return X, y, [{label, "c"} if x > 0 else {label} for label, x in zip(y, X[:, 1], strict=True)]


def fitted():
    X, y, sets = data()
    return {
        "one": NHSVM(TREE, probability=True, cv=3).fit(X, y),
        "flat": FlatSVM().fit(sp.csr_array(X), y),
        "sets": NHSVM(DAG, probability=True, cv=3, offsets="f1_micro", tol=1e-2).fit(X, sets),
        "independent": HRSVM(DAG, tol=1e-2).fit(X, sets),
        "program": NHSVM(DAG, oracle="lp", tol=1e-2).fit(X, sets),
    }


CODE = """
import json, sys
import numpy as np

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sklearn", "joblib") or name.startswith("nhsvm.engine"):
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Blocked())
import nhsvm

answers = {}
for name, path in json.loads(sys.argv[1]).items():
    model, X = nhsvm.load_model(path), np.load(sys.argv[2])
    answers[name] = {
        "labels": [sorted(y) if model.sets else y for y in model.predict(X).tolist()],
        "scores": model.decision_function(X).tolist(),
        "two": model.predict_topk(X, 2).tolist(),
        "proba": model.predict_proba(X).tolist() if model.has_probabilities else None,
        "explained": [part.score for part in model.explain(X[:3])],
        "packed": model.packed("int8").pruned(share=0.5).node_scores(X).tolist(),
    }
assert not any(name.startswith(("sklearn", "joblib", "nhsvm.engine", "nhsvm.estimators")) for name in sys.modules)
print(json.dumps(answers))
"""


def test_it_answers_without_scikit_learn_and_solvers(tmp_path):
    models, X = fitted(), data(20)[0]
    np.save(tmp_path / "X.npy", X)
    for name, model in models.items():
        model.save(tmp_path / name)
    paths = json.dumps({name: str(tmp_path / name) for name in models})
    out = subprocess.run(
        [sys.executable, "-c", CODE, paths, str(tmp_path / "X.npy")], capture_output=True, text=True, check=False
    )
    assert out.returncode == 0, out.stderr
    answers = json.loads(out.stdout)
    for name, model in models.items():
        found = answers[name]
        assert found["labels"] == [sorted(y) if model.model_.sets else y for y in model.predict(X).tolist()]
        assert found["scores"] == model.decision_function(X).tolist()
        assert found["two"] == model.predict_topk(X, 2).tolist()
        assert found["proba"] == (model.predict_proba(X).tolist() if model.model_.has_probabilities else None)
        assert found["explained"] == [part.score for part in model.explain(X[:3])]


@pytest.mark.parametrize("name", ["one", "sets"])
def test_it_is_what_the_estimator_has(tmp_path, name):
    estimator, X = fitted()[name], data(20)[0]
    estimator.save(tmp_path / "m")
    model, back = load_model(tmp_path / "m"), load(tmp_path / "m")
    assert type(back.model_) is Model
    assert back.classes_ is back.model_.classes
    assert back.hierarchy_ is back.model_.hierarchy
    np.testing.assert_array_equal(model.coef(), estimator.coef_)
    np.testing.assert_array_equal(model.intercept(), estimator.intercept_)
    np.testing.assert_array_equal(model.node_proba(X, n_threads=2), estimator.node_proba(X))
    assert model.training[:4] == estimator.model_.training[:4]
    if name == "one":
        assert model.predict_partial(X).tolist() == estimator.predict_partial(X).tolist()
        assert model.predict(X, beam=2).tolist() == estimator.predict(X, beam=2).tolist()
    assert model.strongest_features("a", 3) == estimator.strongest_features("a", 3)


def test_nothing_of_it_can_be_set():
    model = fitted()["flat"].model_
    with pytest.raises(FrozenInstanceError):
        model.bias = 2.0


def test_what_was_not_learned_is_no_attribute():
    X, y, _ = data()
    model = FlatSVM()
    assert not hasattr(model, "classes_")
    model.fit(X, y)
    assert not hasattr(model, "temperature_")
    assert not hasattr(model, "offsets_")


@pytest.mark.parametrize(
    ("X", "match"),
    [
        ([[1.0, 2.0]], "the model was trained with 5 features"),
        ([1.0] * 5, "the model was trained with 5 features"),
        ([[1.0, 2.0, np.nan, 0.0, 0.0]], "NaN"),
        ([[1.0, 2.0, np.inf, 0.0, 0.0]], "too large to compute with"),
        ([[1.0, 2.0, 1e200, 0.0, 0.0]], "too large to compute with"),
        (sp.csr_array([[1.0, 2.0, np.nan, 0.0, 0.0]]), "NaN"),
        (sp.csr_array([[1.0, 2.0]]), "the model was trained with 5 features"),
        ([["a", "b", "c", "d", "e"]], "no matrix of numbers"),
        ([[1j, 0, 0, 0, 0]], "no matrix of numbers"),
        (Samples(np.ones((1, 4))), "the model was trained with 5 features"),
    ],
    ids=str,
)
def test_bad_samples(X, match):
    model = fitted()["flat"].model_
    with pytest.raises(DataError, match=match):
        model.predict(X)


def test_sparse_samples_with_indices_outside():
    X = sp.csr_array(np.ones((2, 5)))
    X.indices[3] = 7
    with pytest.raises(DataError, match=r"index 7 is outside of 0 \.\. 4"):
        fitted()["flat"].model_.predict(X)


def test_integers_are_samples_too():
    model = fitted()["flat"].model_
    X = np.random.default_rng(1).integers(-2, 3, (9, 5))
    assert model.predict(X).tolist() == model.predict(X.astype(float)).tolist()
    assert model.predict(sp.csr_array(X)).tolist() == model.predict(sp.csr_array(X.astype(float))).tolist()


def test_what_it_cannot_answer():
    models, X = fitted(), data(20)[0]
    with pytest.raises(OptionError, match="without probabilities"):
        models["flat"].model_.predict_proba(X)
    with pytest.raises(OptionError, match="without probabilities"):
        models["independent"].model_.node_proba(X)
    with pytest.raises(OptionError, match="no label sets"):
        models["flat"].model_.gains(X)
    with pytest.raises(OptionError, match="one label a sample"):
        models["sets"].model_.predict_partial(X)


def test_parts_that_do_not_fit():
    weights, training = Table(np.ones((6, 3)), by_feature=False), Training(1.0, 1.0, 0.0, 1, [])
    with pytest.raises(LabelError, match="3 classes, but 4 leaves"):
        Model.make(TREE, np.arange(3), np.arange(3), np.ones(6), weights=weights, bias=1.0, training=training)


def test_a_file_that_is_none(tmp_path):
    (tmp_path / "m").write_bytes(b"x" * 100)
    with pytest.raises(FileFormatError):
        load_model(tmp_path / "m")


def test_of_a_pipeline_it_takes_features(tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from nhsvm import save

    X, y, _ = data()
    pipeline = make_pipeline(StandardScaler(), NHSVM(TREE)).fit(X, y)
    save(pipeline, tmp_path / "m")
    found = load_model(tmp_path / "m").predict(pipeline[:-1].transform(X))
    assert found.tolist() == pipeline.predict(X).tolist()


def test_sets_are_proved_as_the_option_says_now():
    X, _, sets = data()
    model = NHSVM(DAG, oracle="lp", tol=1e-2).fit(X, sets)
    assert model.model_.sets.oracle == "lp"
    found = replace(model.model_, sets=model.model_.sets._replace(oracle="auto")).predict(X)
    assert [sorted(y) for y in found] == [sorted(y) for y in model.set_params(oracle="auto").predict(X)]
