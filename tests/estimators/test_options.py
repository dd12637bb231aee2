"""Options out of range, and what the three classes must say in the same words."""

import inspect
import re
import warnings

import numpy as np
import pytest
from joblib import cpu_count, parallel_config
from sklearn.model_selection import KFold
from sklearn.utils import get_tags

from estimators.problems import DAG, TREE, indicator, make, make_sets
from nhsvm import HRSVM, HSVM, NHSVM, FlatSVM
from nhsvm.engine import Dual, Sgd
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.estimators.options import cores, n_threads
from nhsvm.losses import Hamming, LeafHamming, ZeroOne
from nhsvm.weights import Flat, Maxmin, Power, Uniform, node_weights

BAD = {
    "hierarchy": [[("a", "b")], "tree", {}],
    "C": [0, -1.0, np.inf, np.nan, "1", None, True],
    "tol": [0, -1e-3, "small", None],
    "intercept_scaling": [0, None],
    "max_iter": [0, 2.5, "many", None, True],
    "n_jobs": [0, 1.5, "all", True],
    "verbose": [-1, "loud", None],
    "fit_intercept": ["no", 1, None],
    "warm_start": ["yes", None],
    "probability": ["yes", None, 1],
    "allow_empty": ["yes", None, 1],
    "leaf_offset": [np.nan, np.inf, "-1", None, True],
    "offsets": ["accuracy", "hierarchical_recall", 3, True, ["f1_micro"]],
    "cv": [0, -1, 2.5, "5", None, True],
    "callback": ["print", 3],
    "oracle": ["fast", None, 3],
    "margin": ["wide", None, 1],
    "class_weight": ["even", 3, [1, 2]],
    "solver": ["newton", None, 3, Dual, object()],
    "random_state": ["seed", -1, 0.5],
    "loss": ["hinge", None, 3, object()],
    "weights": ["heavy", None, 3, Power],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_bad_options_are_named(name, value):
    X, y = make(n_samples=20)
    with pytest.raises(OptionError, match=name if name != "weights" else "scheme"):
        NHSVM(TREE).set_params(**{name: value}).fit(X, y)


def test_options_that_do_not_go_together():
    X, y = make(n_samples=20)
    with pytest.raises(OptionError, match=r"margin='normalized'.* leave loss='auto'"):
        NHSVM(TREE, margin="normalized", loss="hamming").fit(X, y)
    with pytest.raises(OptionError, match="warm_start goes with solver='dual'"):
        NHSVM(TREE, solver="sgd", warm_start=True).fit(X, y)
    with pytest.raises(OptionError, match="was made for"):
        NHSVM(TREE, loss=Hamming(TREE)).fit(X, ["dog"] * 10 + ["cat"] * 10)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"leaf_offset": -1.0}, "leaf_offset is for label sets"),
        ({"offsets": "f1_micro"}, "offsets is for label sets"),
        ({"oracle": "tree_multilabel"}, "oracle='tree_multilabel' is for label sets"),
        ({"oracle": "lp"}, "oracle='lp' is for label sets"),
    ],
)
def test_options_of_label_sets(options, what):
    X, y = make(n_samples=20)
    with pytest.raises(OptionError, match=what):
        NHSVM(TREE, **options).fit(X, y)
    with pytest.raises(OptionError, match=what):
        NHSVM(TREE, solver="sgd", **options).partial_fit(X, y, classes=TREE.leaves)
    np.testing.assert_array_equal(NHSVM(TREE, allow_empty=True).fit(X, y).coef_, NHSVM(TREE).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"solver": "sgd"}, "need solver='dual', not 'sgd'"),
        ({"solver": Sgd()}, r"need solver='dual', not Sgd\("),
        ({"class_weight": "balanced"}, "class_weight is for one label"),
        ({"class_weight": {"dog": 2.0}}, "class_weight is for one label"),
        ({"margin": "normalized"}, "margin='normalized'.* is for one label"),
        ({"oracle": "single_label"}, "oracle='single_label' is for one label"),
    ],
)
def test_options_of_single_labels(options, what):
    X, y = make_sets(n_samples=20)
    for given in (y, indicator(y, TREE.leaves)):
        with pytest.raises(OptionError, match=f"y has label sets, but .*{what}"):
            NHSVM(TREE, **options).fit(X * np.nan, given)
    assert not get_tags(NHSVM(TREE, **options)).classifier_tags.multi_label
    assert get_tags(NHSVM(TREE)).classifier_tags.multi_label


def test_a_solver_of_ones_own_says_what_it_can_do():
    X, y = make_sets(n_samples=20)

    class Single(Dual):
        takes_sets = proves = False

    class Unrelated:
        solve = Dual().solve

    assert HRSVM(TREE, solver=Single()).fit(*make(n_samples=20)).gap_ <= 1e-3  # as it derives from Dual
    with pytest.raises(OptionError, match=r"label sets need solver='dual', not .*Single"):
        NHSVM(TREE, solver=Single()).fit(X, y)
    with pytest.raises(OptionError, match="warm_start goes with solver='dual'"):
        NHSVM(TREE, solver=Single(), warm_start=True).fit(X, y)
    with pytest.raises(
        OptionError, match=r"solver must be one of \['dual', 'sgd', 'alternating'\] or an instance, not"
    ):
        NHSVM(TREE, solver=Unrelated()).fit(X, y)


def test_losses_of_label_sets():
    X, y = make_sets(n_samples=20)
    for loss in ("zero_one", "normalized", ZeroOne):
        with pytest.raises(OptionError, match="no sum over nodes for multi-label data"):
            NHSVM(TREE, loss=loss).fit(X, y)
    with pytest.raises(OptionError, match="'hamming' counts the node 'animal', but its weight α is 0"):
        FlatSVM(TREE, loss="hamming").fit(X, y)
    with pytest.raises(OptionError, match=r"counts the node 'life', .* use .* \(include_common=True\)"):
        HSVM(TREE, loss="hamming", allow_empty=True).fit(X, y)
    for options in ({}, {"allow_empty": True, "weights": Maxmin(include_common=True)}):
        assert NHSVM(TREE, loss="hamming", **options).fit(X, y).gap_ <= 1e-3
    assert FlatSVM(loss="hamming").fit(X, y).gap_ <= 1e-3
    with pytest.raises(OptionError, match="a weight α above 0 for every class, but 'cat' has 0"):
        NHSVM(TREE, weights=lambda h: np.array([n != "cat" for n in h.nodes], dtype=float)).fit(X, y)


def test_a_loss_that_is_no_difference():
    class Missed(LeafHamming):
        name = "missed"

        def per_node(self, true_nodes, *, multilabel):
            found = super().per_node(true_nodes, multilabel=multilabel)
            return found._replace(rewards=np.minimum(found.rewards, 0.0))

    X, y = make_sets(n_samples=20)
    with pytest.raises(OptionError, match="'missed' is no sum over the nodes in which two label sets differ"):
        NHSVM(TREE, loss=Missed).fit(X, y)


def test_oracles_of_label_sets():
    X, y = make_sets(n_samples=30)
    plain = NHSVM(TREE).fit(X, y)
    for oracle in ("tree_multilabel", "dag_multilabel", "lp"):
        model = NHSVM(TREE, oracle=oracle).fit(X, y)
        assert model.objective_ == pytest.approx(plain.objective_, rel=1e-3)
    X, y = make_sets(DAG, n_samples=30)
    with pytest.raises(OptionError, match="oracle='tree_multilabel' is for trees, but 'x' has several parents"):
        NHSVM(DAG, oracle="tree_multilabel").fit(X, y)


@pytest.mark.parametrize("bad", [{"wolf": 1.0}, {"dog": -1.0}, {"dog": np.inf}, {"dog": "2"}])
def test_bad_class_weights(bad):
    X, y = make(n_samples=20)
    with pytest.raises(OptionError, match="class_weight"):
        NHSVM(TREE, class_weight=bad).fit(X, y)
    with pytest.raises(OptionError, match="class_weight"):
        NHSVM(class_weight=bad).fit(X, y)


def test_class_weights_may_name_classes_that_are_missing():
    X, y = make(n_samples=20, labels=["dog", "cat"])
    plain = NHSVM(TREE).fit(X, y).coef_
    np.testing.assert_array_equal(NHSVM(TREE, class_weight={"oak": 3.0}).fit(X, y).coef_, plain)
    every = {"dog": 1, "cat": 1, "oak": 3}
    np.testing.assert_array_equal(NHSVM(class_weight=every).fit(X, y).coef_, NHSVM().fit(X, y).coef_)


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "uniform"},
        {"weights": Uniform()},
        {"weights": "flat"},
        {"weights": Flat()},
        {"weights": Maxmin(total=(1.0, 1.5))},
        {"weights": "power"},
        {"weights": lambda h: node_weights(h, "power", rho=3.0)},
        {"loss": ZeroOne},
        {"loss": Hamming(TREE)},
        {"loss": "zero_one"},
        {"margin": "normalized"},
        {"margin": "normalized", "loss": "normalized"},
        {"fit_intercept": False},
        {"intercept_scaling": 10},
        {"tol": 1e-6},
        {"solver": Dual(tol=1e-5)},
        {"solver": Sgd(max_iter=30, tol=1e-2)},
        {"solver": "sgd", "tol": 1e-2},
        {"random_state": 3},
        {"random_state": np.random.RandomState(3)},
        {"oracle": "single_label"},
        {"n_jobs": -1},
        {"n_jobs": 2},
        {"verbose": False},
    ],
)
def test_good_options(options):
    X, y = make()
    assert NHSVM(TREE, **options).fit(X, y).score(X, y) > 0.8


def test_named_and_given_schemes_agree():
    X, y = make()
    for name, instance in [("flat", Flat()), ("uniform", Uniform()), ("maxmin", Maxmin()), ("power", Power())]:
        a, b = (NHSVM(TREE, weights=w).fit(X, y) for w in (name, instance))
        np.testing.assert_array_equal(a.coef_, b.coef_)
    flat = NHSVM(TREE, weights="flat", loss="zero_one").fit(X, y)
    np.testing.assert_array_equal(flat.coef_, FlatSVM(TREE).fit(X, y).coef_)
    uniform = NHSVM(TREE, weights="uniform", loss="hamming").fit(X, y)
    np.testing.assert_array_equal(uniform.coef_, HSVM(TREE).fit(X, y).coef_)


def test_a_loss_of_ones_own():
    class Twice(ZeroOne):
        name = "twice"

        def to_leaves(self, leaves):
            return 2 * super().to_leaves(leaves)

    X, y = make()
    model = FlatSVM(TREE, loss=Twice, C=0.01, tol=1e-6).fit(X, y)
    plain = FlatSVM(TREE, C=0.005, tol=1e-6).fit(X, y)  # P(2U; C, 2Δ) = 4 P(U; C/2, Δ)
    assert model.objective_ == pytest.approx(4 * plain.objective_, rel=1e-5)


def test_any_number_of_threads_gives_the_same_bits():
    for sparse in (False, True):
        X, y = make(n_samples=200, sparse=sparse)
        models = [NHSVM(TREE, n_jobs=n).fit(X, y) for n in (None, 2, -1)]
        with parallel_config(n_jobs=2, backend="threading"):
            models.append(NHSVM(TREE).fit(X, y))
            scores = models[-1].decision_function(X)
        for model in models:
            np.testing.assert_array_equal(model.coef_, models[0].coef_)
            np.testing.assert_array_equal(model.decision_function(X), scores)


def sections(cls):
    """{name: text} of the documented parameters and attributes."""
    doc = inspect.cleandoc(cls.__doc__).split("Examples\n")[0]
    found = re.findall(r"^([\w, ]+) : (.*(?:\n    .*)*)", doc, flags=re.M)
    return {name: text for names, text in found for name in names.split(", ")}


def test_the_classes_document_the_same_parameters_in_the_same_words():
    flat, hsvm, nhsvm = (inspect.signature(cls).parameters for cls in (FlatSVM, HSVM, NHSVM))
    assert list(flat) == list(hsvm) == [name for name in nhsvm if name not in ("weights", "margin")]
    assert all(str(flat[name]) == str(hsvm[name]) == str(nhsvm[name]) for name in flat)
    words = [sections(cls) for cls in (FlatSVM, HSVM, NHSVM)]
    for parameters, documented in zip((flat, hsvm, nhsvm), words, strict=True):
        assert set(parameters) <= set(documented)
        assert list(documented)[: len(parameters)] == list(parameters)
    for name in words[0]:
        if name != "loss":  # which "auto" is, they say for themselves
            assert words[0][name] == words[1][name] == words[2][name], name


def test_every_error_is_one_of_ours():
    X, y = make(n_samples=20)
    with pytest.raises(NHSVMError):
        NHSVM(TREE, cv=KFold(2), probability=True).fit(X, y[:-1])


def test_no_warnings():
    X, y = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NHSVM(TREE, probability=True).fit(X, y).predict_partial(X)


@pytest.mark.parametrize("n_jobs", [999_999_999, 2**62])
def test_no_more_threads_than_cores(n_jobs):
    """A list of as many ranges of samples, and as many threads, would take all memory."""
    assert n_threads(n_jobs) == cores()
    assert n_threads(-1) == cpu_count()
    X, y = make()
    model = NHSVM(TREE, n_jobs=n_jobs).fit(X, y)
    assert model.predict(X).tolist() == NHSVM(TREE).fit(X, y).predict(X).tolist()
