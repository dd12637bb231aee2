"""Every estimator to a file and back."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold

from estimators.problems import DAG, FOREST, HIERARCHIES, TREE, indicator, make, make_sets
from nhsvm import HSVM, NHSVM, FlatSVM, load
from nhsvm.errors import FileFormatError, OptionError
from nhsvm.losses import Hamming
from nhsvm.model import read_model, write_model
from nhsvm.weights import Power

ATTRIBUTES = ["objective_", "dual_objective_", "gap_", "n_iter_", "history_", "n_features_in_", "hierarchy_"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nhsvm"


def round_trip(model, X, path):
    model.save(path)
    back = load(path, verify=True)
    assert type(back) is type(model)
    assert back.get_params() == model.get_params()
    for name in ATTRIBUTES:
        assert getattr(back, name) == getattr(model, name)
    assert back.classes_.dtype == model.classes_.dtype
    assert back.classes_.tolist() == model.classes_.tolist()
    np.testing.assert_array_equal(back.coef_, model.coef_)
    np.testing.assert_array_equal(back.intercept_, model.intercept_)
    np.testing.assert_array_equal(back.node_weights_, model.node_weights_)
    for given in (X, sp.csr_array(X), X.toarray() if sp.issparse(X) else np.asarray(X)):
        np.testing.assert_array_equal(back.decision_function(given), model.decision_function(given))
        np.testing.assert_array_equal(back.predict(given), model.predict(given))
        np.testing.assert_array_equal(back.predict_topk(given, 2), model.predict_topk(given, 2))
        np.testing.assert_array_equal(back.node_scores(given), model.node_scores(given))
    return back


@pytest.mark.parametrize("cls", [FlatSVM, HSVM, NHSVM])
@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_round_trip(cls, name, sparse, tol, path):
    h = HIERARCHIES[name]
    X, y = make(h, sparse=sparse, labels=[*h.leaves, h.nodes[1]])
    back = round_trip(cls(h, tol=tol).fit(X, y), X, path)
    assert not back.model_.weights.values.flags.writeable  # mapped
    assert back.model_.weights.dtype == (np.float32 if tol == 1e-3 else np.float64)
    assert back.fit(X, y).gap_ <= tol


@pytest.mark.parametrize(
    "options",
    [
        {"weights": Power(rho=1.5)},
        {"weights": "uniform", "loss": Hamming},
        {"margin": "normalized"},
        {"class_weight": {"dog": 2.0}},
        {"fit_intercept": False, "intercept_scaling": 3},
        {"warm_start": True},
        {"solver": "sgd", "tol": 1e-2},
        {"n_jobs": 2, "random_state": 4, "verbose": 0},
    ],
)
def test_options(options, path):
    X, y = make()
    round_trip(NHSVM(TREE, **options).fit(X, y), X, path)


@pytest.mark.parametrize("hierarchy", [TREE, FOREST, DAG, None])
def test_probabilities(hierarchy, path):
    X, y = make(hierarchy or TREE, noise=2.0)
    model = NHSVM(hierarchy, probability=True, cv=3).fit(X, y)
    back = round_trip(model, X, path)
    assert back.temperature_ == model.temperature_
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(back.node_proba(X), model.node_proba(X))
    assert back.predict_partial(X).tolist() == model.predict_partial(X).tolist()


def test_without_probabilities(path):
    X, y = make()
    assert not hasattr(round_trip(NHSVM(TREE).fit(X, y), X, path), "temperature_")


@pytest.mark.parametrize("labels", [[1, 2, 3], [True, False], [("a", 1), ("b", 2)], [1, "one", (2,)]])
def test_labels(labels, path):
    X, _ = make()
    round_trip(NHSVM().fit(X, [labels[i % len(labels)] for i in range(90)]), X, path)


FORMS = {
    "list": lambda y: [list(labels) for labels in y],
    "set": lambda y: y,
    "tuple": lambda y: [tuple(labels) for labels in y],
    "frozenset": lambda y: [frozenset(labels) for labels in y],
    "dense": lambda y: indicator(y, TREE.leaves),
    "sparse": lambda y: sp.csr_array(indicator(y, TREE.leaves)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", [{}, {"allow_empty": True, "leaf_offset": -1.0, "offsets": "f1_macro", "cv": 3}])
def test_label_sets(form, options, path):
    X, y = make_sets(noise=2.0, empty=bool(options))
    model = NHSVM(TREE, **options).fit(X, FORMS[form](y))
    model.save(path)
    back = load(path, verify=True)
    assert back.get_params() == model.get_params()
    assert len(back.history_) == len(model.history_)
    assert (back.objective_, back.gap_, back.history_[-1]) == (model.objective_, model.gap_, model.history_[-1])
    assert hasattr(back, "offsets_") == bool(options)
    back.set_params(allow_empty=False, leaf_offset=0.0, offsets=None)  # the model stays what it is
    found, again = model.predict(X), back.predict(X)
    assert type(again) is type(found)
    if form == "sparse":
        found, again = found.toarray(), again.toarray()
    assert again.tolist() == found.tolist()
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(back.predict_topk(X), model.predict_topk(X))
    assert back.score(X, FORMS[form](y)) == model.score(X, FORMS[form](y))
    first = path.read_bytes()
    model.save(path)
    assert path.read_bytes() == first


def test_files_from_before_label_sets(path):
    X, y = make()
    model = NHSVM(TREE).fit(X, y)
    model.save(path)
    header, arrays = read_model(path)
    header["state"].pop("sets")
    for name in ("allow_empty", "leaf_offset", "offsets"):
        header["params"].pop(name)
    write_model(path, header, dict(arrays))
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))


def replaced_by(name, array):
    return lambda header, arrays: arrays.update({f"fitted/{name}": array})


def sets_replaced(**change):
    def replace(header, arrays):
        pairs = {"form": "set", "allow_empty": False, "leaf_offset": 0.0} | change
        header["state"]["sets"] = {"dict": [[key, value] for key, value in pairs.items()]}

    return replace


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (sets_replaced(form="heap"), "label sets with"),
        (sets_replaced(form=["list"]), "label sets with"),
        (sets_replaced(allow_empty=1), "label sets with"),
        (sets_replaced(leaf_offset="0"), "leaf_offset should be a finite number"),
        (sets_replaced(leaf_offset={"float": "nan"}), "leaf_offset should be a finite number"),
        (sets_replaced(more=1), "label sets with"),
        (
            lambda h, a: [sets_replaced()(h, a), replaced_by("offsets", np.zeros(6))(h, a)],
            "'offsets' is float64 of shape (6,)",
        ),
        (lambda h, a: [sets_replaced()(h, a), replaced_by("offsets", np.zeros(7, int))(h, a)], "'offsets' is int64"),
        (lambda header, arrays: header["state"].update(sets=[1]), "'sets' should be of type dict"),
        (lambda header, arrays: arrays.update({"fitted/offsets": np.zeros(7)}), "offsets of nodes, but no label sets"),
    ],
)
def test_damaged_label_sets(path, change, what):
    assert what in break_it(path, change)


def test_feature_names(path):
    X, y = make()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = NHSVM(TREE).fit(frame, y)
    model.save(path)
    back = load(path)
    assert back.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))


def test_what_cannot_be_saved(path):
    X, y = make()
    with pytest.raises(OptionError, match="parameter 'offsets'"):
        NHSVM(TREE, offsets=lambda h, a, b: 0.0).fit(*make_sets(n_samples=30)).save(path)
    for options in ({"callback": print}, {"cv": KFold(3)}, {"weights": lambda h: np.ones(h.n_nodes)}):
        with pytest.raises(OptionError, match=f"parameter {next(iter(options))!r}"):
            NHSVM(TREE, **options).fit(X, y).save(path)


def break_it(path, change):
    X, y = make()
    NHSVM(TREE, probability=True).fit(X, y).save(path)
    header, arrays = read_model(path)
    arrays = dict(arrays)
    change(header, arrays)
    write_model(path, header, arrays)
    with pytest.raises(FileFormatError) as caught:
        load(path)
    return str(caught.value)


def replaced(name, change):
    return lambda header, arrays: arrays.update({f"fitted/{name}": change(arrays[f"fitted/{name}"])})


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (replaced("values", lambda a: a[:-1]), "'values' is float32 of shape"),
        (replaced("values", lambda a: a.T), "'values' is float32 of shape"),
        (replaced("node_weights", lambda a: a[:-1]), "'node_weights' is float64 of shape"),
        (replaced("class_leaves", lambda a: a * 0), "not the leaves"),
        (replaced("class_leaves", lambda a: a[:-1]), "'class_leaves' is int32 of shape"),
        (lambda header, arrays: arrays.pop("fitted/values"), "rows of weights that are not rows of features"),
        (lambda header, arrays: header["state"].pop("gap"), "fitted value 'gap' is missing"),
        (lambda header, arrays: header["state"].update(temperature=-1.0), "temperature should be"),
        (lambda header, arrays: header["state"].update(temperature="hot"), "temperature should be a finite number"),
        (lambda header, arrays: header["params"].update(new=1), "unexpected keyword"),
        (lambda header, arrays: header.update(estimator="SSVN"), "it holds a"),
    ],
)
def test_damaged(path, change, what):
    assert what in break_it(path, change)


def test_cut_short(path):
    X, y = make()
    NHSVM(TREE).fit(X, y).save(path)
    data = path.read_bytes()
    for size in (0, 7, 100, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(FileFormatError):
            load(path)
