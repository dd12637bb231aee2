"""Estimators to files and back, with a stand-in for the estimators of the library."""

import builtins
import importlib
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from nhsvm import Hierarchy, __version__
from nhsvm.errors import FileFormatError, LabelError, NHSVMError, OptionError
from nhsvm.losses import Hamming, ZeroOne
from nhsvm.model import Model, Training, load, load_model, read_model, save, saving, write_model
from nhsvm.storage import Table
from nhsvm.weights import Flat, Maxmin, Power, Shared, Uniform


class Toy(BaseEstimator):
    def __init__(self, hierarchy=None, C=1.0, weights="maxmin", loss="auto", class_weight=None, extra=None):
        self.hierarchy = hierarchy
        self.C = C
        self.weights = weights
        self.loss = loss
        self.class_weight = class_weight
        self.extra = extra

    def fit(self, X, y):
        X = np.asarray(X, dtype=float)
        classes = np.unique(y) if not isinstance(y, np.ndarray) or y.dtype != object else y
        given = self.hierarchy or Hierarchy.from_edges([], nodes=classes.tolist())
        hierarchy = given.with_virtual_leaves(classes.tolist()).subset(classes.tolist())
        leaves = np.array([hierarchy.leaf_position(label) for label in classes.tolist()], dtype=np.int32)
        n_columns, n_weights = hierarchy.n_nodes, X.shape[1] + 1
        values = np.asfortranarray(np.arange(n_columns * n_weights, dtype=np.float32).reshape(n_columns, n_weights))
        history = [{"gap": np.inf, "iteration": 0}, {"gap": 0.5, "iteration": 1}]
        weights, training = Table(values, by_feature=False), Training(2.0, 1.0, 0.5, 2, history)
        alpha = np.ones(n_columns)
        self._adopt(Model.make(hierarchy, classes, leaves, alpha, weights=weights, bias=1.0, training=training))
        return self

    def _adopt(self, model):
        if self.C < 0:
            raise OptionError("C is below 0")
        self.model_ = model

    def changed(self, **parts):
        self.model_ = replace(self.model_, **parts)
        return self


H = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
X = np.ones((3, 2))


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    home = sys.modules[__name__]
    assert home.Toy is Toy
    monkeypatch.setitem(saving.ESTIMATORS, "Toy", __name__)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nhsvm"


def fitted(**params):
    return Toy(**({"hierarchy": H} | params)).fit(X, ["dog", "oak", "animal"])


def test_round_trip(path):
    model = fitted(C=0.25)
    save(model, path)
    back = load(path, verify=True)
    assert type(back) is Toy
    assert back.get_params() == model.get_params()
    one, two = model.model_, back.model_
    assert two.hierarchy == one.hierarchy
    assert two.hierarchy.nodes == one.hierarchy.nodes
    assert two.classes.tolist() == one.classes.tolist()
    assert two.classes.dtype == one.classes.dtype
    assert two.training == one.training
    assert two.n_features == 2
    assert two.bias == 1.0
    np.testing.assert_array_equal(two.weights.values, one.weights.values)
    assert two.weights.values.flags.f_contiguous
    assert not two.weights.values.flags.writeable
    assert two.feature_names is two.sets is two.offsets is two.temperature is two.curves is None


def test_a_model_by_itself(path):
    save(fitted(), path)
    one, two = load(path).model_, load_model(path)
    assert type(two) is Model
    np.testing.assert_array_equal(two.decision_function(X), one.decision_function(X))
    assert two.predict(X).tolist() == one.predict(X).tolist()


def test_header(path):
    save(fitted(), path)
    header, arrays = read_model(path)
    assert header["nhsvm"] == __version__
    assert header["estimator"] == "Toy"
    fitted_arrays = {f"fitted/{name}" for name in ("values", "node_weights", "class_leaves")}
    assert set(arrays) == {f"hierarchy/{n}/{end}" for n in (0, 1) for end in ("parent", "child")} | fitted_arrays


def test_a_hierarchy_is_stored_once(path):
    model = Toy(hierarchy=H).fit(X, ["dog", "oak", "cat"])
    model.changed(hierarchy=H)
    save(model, path)
    assert len(read_model(path)[0]["hierarchies"]) == 1
    back = load(path)
    assert back.hierarchy is back.model_.hierarchy


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1,
        float("inf"),
        "text",
        b"bytes",
        (1.0, 1.5),
        [1, [2, (3,)]],
        {"dog": 2.0, "oak": 1},
        {("a", 1): {"x": [None]}, 3: np.float64(0.5), frozenset([1]): 0},
        {},
        np.float64(2.0),
        np.int64(3),
        np.bool_(True),
        np.str_("x"),
        Flat(),
        Uniform(),
        Maxmin(total=(1.0, 1.5)),
        Power(rho=np.float64(1.5), directional=True),
        Hamming,
        ZeroOne,
        H,
        {"nested": [H, Power()]},
    ],
    ids=repr,
)
def test_parameters(path, value):
    save(fitted(extra=value), path)
    back = load(path).extra
    assert back == value
    assert type(back) is type(value)


def test_array_parameters(path):
    values = {"a": np.eye(2), "s": np.array(["x", "yy"]), "o": np.array([("a",), None], dtype=object)}
    save(fitted(extra=values, weights=Shared(squared_norms=np.arange(3.0))), path)
    back = load(path)
    for name, value in values.items():
        assert back.extra[name].dtype == value.dtype
        assert back.extra[name].tolist() == value.tolist()
    assert back.weights.squared_norms.tolist() == [0.0, 1.0, 2.0]


class MyPower(Power):
    pass


@pytest.mark.parametrize(
    "value",
    [
        len,
        lambda h: h,
        np.random.RandomState(0),
        np.random.default_rng(0),
        object(),
        date(2020, 1, 1),
        {1, 2},
        MyPower(),
        Toy(),
        Toy,
        1j,
        [object()],
        {"a": object()},
        {object(): 1},
        np.array([object()]),
        np.array([1j]),
        Hierarchy.from_edges([("a", date(2020, 1, 1))]),
        Hamming(H),
        Shared(squared_norms=object()),
        np.dtype(int),
    ],
    ids=lambda value: type(value).__name__,  # the same in every process, unlike addresses
)
def test_parameters_that_cannot_be_stored(path, value):
    with pytest.raises(OptionError, match=r"Toy cannot be saved: parameter 'extra' is .*, but it is a .*"):
        save(fitted(extra=value), path)
    assert not os.listdir(path.parent)


def test_deep_parameters(path):
    deep = []
    for _ in range(80):
        deep = [deep]
    with pytest.raises(OptionError, match="nested more than 64"):
        save(fitted(extra=deep), path)
    assert not os.listdir(path.parent)


def test_deepest_parameters(path):
    deep = "x"
    for _ in range(60):
        deep = {"k": deep}
    save(fitted(extra=deep), path)
    assert load(path).extra == deep


@pytest.mark.parametrize(
    "y",
    [
        np.array([3, 1, 2]),
        np.array([0.5, 1.5, 2.5], dtype=np.float32),
        np.array([True, False]),
        np.array(["a", "b"]),
        np.array(["a", 1, ("x", 2)], dtype=object),
    ],
    ids=lambda y: str(y.dtype),
)
def test_classes_of_all_types(path, y):
    model = Toy().fit(X, y)
    save(model, path)
    back = load(path)
    one, two = model.model_, back.model_
    assert two.classes.dtype == one.classes.dtype
    assert two.classes.tolist() == one.classes.tolist()
    assert two.hierarchy.nodes == one.hierarchy.nodes
    assert list(map(type, two.hierarchy.nodes)) == list(map(type, one.hierarchy.nodes))


def test_feature_names(path):
    save(fitted().changed(feature_names=np.array(["länge", "width"], dtype=object)), path)
    back = load(path).model_.feature_names
    assert back.dtype == object
    assert back.tolist() == ["länge", "width"]


def test_not_fitted(path):
    with pytest.raises(NotFittedError):
        save(Toy(), path)
    assert not os.listdir(path.parent)


class SubToy(Toy):
    pass


def test_other_estimators(path):
    sub = SubToy(hierarchy=H).fit(X, ["dog", "oak", "cat"])
    impostor = type("Toy", (Toy,), {})(hierarchy=H).fit(X, ["dog", "oak", "cat"])
    for other in (LogisticRegression(), sub, impostor, 3, None):
        with pytest.raises(OptionError, match="only FlatSVM, HRSVM, HSVM, NHSVM, SSVM"):
            save(other, path)
    assert not os.listdir(path.parent)


def test_labels_that_cannot_be_stored(path):
    h = Hierarchy.from_edges([("a", date(2020, 1, 2)), ("a", "b")])
    with pytest.raises(LabelError, match=r"datetime.date\(2020, 1, 2\)"):
        save(Toy(hierarchy=h).fit(X, ["b"]).changed(hierarchy=h), path)
    assert not os.listdir(path.parent)


def test_fitted_values_that_cannot_be_stored(path):
    model = fitted()
    with pytest.raises(NHSVMError, match="fitted value 'history'"):
        save(model.changed(training=model.model_.training._replace(history=[object()])), path)
    with pytest.raises(NHSVMError, match="'fitted/offsets' is of type object"):
        save(fitted().changed(offsets=np.array([None])), path)
    assert not os.listdir(path.parent)


def test_same_model_same_bytes(tmp_path):
    for name in "12":
        save(fitted(extra={"labels": frozenset(["a", "b", "c"])}), tmp_path / name)
    save(load(tmp_path / "1"), tmp_path / "3")
    assert len({(tmp_path / n).read_bytes() for n in "123"}) == 1


def test_same_bytes_in_another_process(tmp_path):
    """The order of sets depends on the process; the file does not."""
    code = """
import sys, numpy as np
from nhsvm import Hierarchy
from nhsvm.model import hierarchy_to_parts, write_model
h = Hierarchy.from_edges([("root", frozenset("abcdef")), ("root", "x")])
write_model(sys.argv[1], *hierarchy_to_parts(h))
"""
    for seed in "12":
        env = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / seed)], check=True, env=env)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


# -- bad files ---------------------------------------------------------------------------------------------------------


def altered(path, change):
    """Save a model, change its header or arrays, write it with fitting checksums, and load it."""
    save(fitted(), path)
    header, arrays = read_model(path)
    change(header, arrays)
    write_model(path, header, arrays)
    with pytest.raises(FileFormatError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    return caught.value.problem


@pytest.mark.parametrize("name", ["os", "os.system", "nhsvm.errors", "builtins", "", "__import__", "Hierarchy"])
def test_nothing_a_file_names_is_imported(path, name, monkeypatch):
    save(fitted(), path)
    header, arrays = read_model(path)
    header["estimator"] = name
    write_model(path, header, arrays)

    def no_import(*args, **kwargs):
        raise AssertionError("an import")

    monkeypatch.setattr(saving, "import_module", no_import)
    with pytest.raises(FileFormatError, match="it holds a"):
        load(path)


@pytest.mark.parametrize("key", ["estimator", "params", "classes", "state", "hierarchies"])
@pytest.mark.parametrize("value", ["missing", None, 3, "x", [], [1], {"a": 1}, True])
def test_bad_entries(path, key, value):
    def change(header, arrays):
        header[key] = value
        if value == "missing":
            del header[key]

    if (key, value) == ("state", {"a": 1}):
        pytest.skip("a state that lacks its entries: below")
    assert altered(path, change)


@pytest.mark.parametrize("value", [3, "x", [], {}, {"dtype": "object", "labels": [[1]]}])
def test_bad_feature_names(path, value):
    assert altered(path, lambda header, arrays: header.update(feature_names=value))


def test_bad_fitted_state(path):
    assert "the fitted value 'n_features_in' is missing" in altered(
        path, lambda header, arrays: header["state"].clear()
    )
    assert "rows of weights" in altered(path, lambda header, arrays: arrays.pop("fitted/values"))
    assert "'values' is float32 of shape (5, 1)" in altered(
        path, lambda header, arrays: arrays.update({"fitted/values": arrays["fitted/values"][:, :1]})
    )
    assert "OptionError: C is below 0" in altered(path, lambda header, arrays: header["params"].update(C=-1.0))
    assert "unexpected keyword argument 'new'" in altered(path, lambda header, arrays: header["params"].update(new=1))
    assert "no edges" in altered(path, lambda header, arrays: arrays.pop("hierarchy/0/parent"))


def test_a_file_without_a_parameter_takes_the_default(path):
    save(fitted(C=5.0), path)
    header, arrays = read_model(path)
    del header["params"]["C"]
    write_model(path, header, arrays)
    assert load(path).C == 1.0


@pytest.mark.parametrize(
    "value",
    [
        {"unknown": 1},
        {"dict": 3},
        {"dict": [1]},
        {"dict": [["a"]]},
        {"dict": [["a", 1, 2]]},
        {"dict": [[[], 1]]},
        {"dict": {"ab": 1, "cd": {}}, "x": 1},
        {"tuple": 1},
        {"hierarchy": 7},
        {"hierarchy": -1},
        {"hierarchy": "0"},
        {"hierarchy": True},
        {"hierarchy": []},
        {"array": "missing"},
        {"array": []},
        {"labels": 3},
        {"labels": {"dtype": "V8", "labels": []}},
        {"weights": 3},
        {"weights": "power"},
        {"weights": ["power"]},
        {"weights": ["eval", {"dict": []}]},
        {"weights": ["power", {"dict": [["unknown", 1]]}]},
        {"weights": ["power", {"dict": [[1, 1]]}]},
        {"weights": ["power", [1]]},
        {"weights": [[], {"dict": []}]},
        {"loss": "eval"},
        {"loss": []},
        [{"loss": None}],
    ],
    ids=repr,
)
def test_bad_values(path, value):
    assert altered(path, lambda header, arrays: header["params"].update(extra=value))


def test_deep_values(path):
    deep = 1
    for _ in range(70):
        deep = [deep]
    assert "nested more than 64" in altered(path, lambda header, arrays: header["params"].update(extra=deep))


def test_a_pickle_is_not_run(path):
    class Bomb:
        def __reduce__(self):
            return open, (str(path.with_name("boom")), "w")

    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileFormatError, match="begins like a pickle"):
        load(path)
    assert os.listdir(path.parent) == [path.name]


def test_loading_runs_no_pickle_eval_or_exec(path, monkeypatch):
    save(fitted(extra={"a": Power()}), path)

    def forbidden(*args, **kwargs):
        raise AssertionError

    for module, name in [(pickle, "loads"), (pickle, "load"), (builtins, "eval"), (builtins, "exec"), (np, "load")]:
        monkeypatch.setattr(module, name, forbidden)
    load(path)


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_every_name_is_an_estimator_of_ours():
    """All estimators can be saved and loaded."""
    estimators = importlib.import_module("nhsvm.estimators")
    assert set(saving.ESTIMATORS) - {"Toy"} == set(estimators.__all__)
    for name, home in saving.ESTIMATORS.items():
        if name in estimators.__all__:
            assert home == "nhsvm.estimators"
            assert saving._estimator_class(name) is getattr(estimators, name)
