"""HRSVM: the problem it solves, what it predicts, and that it is an estimator like the others."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimators.problems import DAG, FOREST, HIERARCHIES, TREE, indicator, make, make_sets, score_bound
from estimators.test_sklearn import exceptions
from nhsvm import HRSVM, HSVM, SSVM, Hierarchy, load
from nhsvm.engine import Dual, Sgd
from nhsvm.errors import LabelError, OptionError, UnknownLabelError

all_hierarchies = pytest.mark.parametrize("h", HIERARCHIES.values(), ids=HIERARCHIES)


def w(model):
    """w_l of every class, with the intercept: sums of U over the nodes at and above it."""
    U = np.hstack([model.coef_, model.intercept_[:, None]]).astype(np.float64)
    return (model.hierarchy_.graph.leaf_matrix() @ U)[model.model_.class_leaves]


def signs(model, y):
    """±1, a row a sample, a column a class."""
    sets = [labels if isinstance(labels, (set, list)) else {labels} for labels in y]
    return np.array([[1.0 if label in labels else -1.0 for label in model.classes_.tolist()] for labels in sets])


@parametrize_with_checks([HRSVM(), HRSVM(allow_empty=True)], expected_failed_checks=exceptions)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- the problem -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False])
def test_flat_equals_liblinear(sparse):
    """Without a hierarchy it is LinearSVC with the hinge loss, one-vs-rest: the same objective."""
    many = make_classification(150, 15, n_informative=8, n_classes=6, random_state=0)
    for X, y in (load_iris(return_X_y=True), many):
        for C in (0.1, 1.0):
            X = scale(X)
            data = sp.csr_array(X) if sparse else X
            theirs = LinearSVC(loss="hinge", C=C, tol=1e-8, max_iter=1_000_000, random_state=0).fit(data, y)
            ours = HRSVM(C=C, intercept_scaling=1, tol=1e-5, max_iter=20_000).fit(data, y)
            hinge = np.maximum(0, 1 - signs(ours, y) * theirs.decision_function(data))
            value = 0.5 * ((theirs.coef_**2).sum() + (theirs.intercept_**2).sum()) + C * hinge.sum()
            assert ours.objective_ == pytest.approx(value, rel=1e-4)
            assert ours.dual_objective_ <= value * (1 + 1e-12)
            assert ours.gap_ <= 1e-5


@pytest.mark.parametrize("problem", [make, make_sets])
@pytest.mark.parametrize("h", [TREE, FOREST], ids=["tree", "forest"])
def test_recursive_regularisation(h, problem):
    """objective_ is ½ Σ ‖w_n − w_parent(n)‖² + C Σ hinges, as Gopal and Yang write it."""
    X, y = problem(h)
    model = HRSVM(h, C=0.3, intercept_scaling=1, tol=1e-5).fit(X, y)
    U = np.hstack([model.coef_, model.intercept_[:, None]]).astype(np.float64)
    graph, vectors = model.hierarchy_.graph, np.zeros_like(U)
    for n in range(graph.n_nodes):  # parents come first
        up = graph.parents.row(n)
        vectors[n] = U[n] + (vectors[up[0]] if len(up) else 0)
    penalty = 0.0
    for n in range(graph.n_nodes):
        up = graph.parents.row(n)
        penalty += 0.5 * ((vectors[n] - (vectors[up[0]] if len(up) else 0)) ** 2).sum()
    leaves = vectors[graph.leaves][model.model_.class_leaves]
    scores = X @ leaves[:, :-1].T + leaves[:, -1]
    assert model.objective_ == pytest.approx(
        penalty + 0.3 * np.maximum(0, 1 - signs(model, y) * scores).sum(), rel=1e-6
    )
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-4)
    assert (model.node_weights_ == 1).all()  # the root too


@all_hierarchies
@pytest.mark.parametrize("problem", [make, make_sets])
def test_certificate_and_history(h, problem):
    X, y = problem(h, sparse=True)
    model = HRSVM(h).fit(X, y)
    assert 0 <= model.gap_ <= 1e-3
    assert model.dual_objective_ <= model.objective_
    last = model.history_[-1]
    assert last["certified"]
    assert len(model.history_) == model.n_iter_
    assert last["training_error"] == pytest.approx(1 - model.score(X, y))
    assert HRSVM(h, C=0.01).fit(X, y).objective_ < model.objective_


@pytest.mark.parametrize("problem", [make, make_sets])
def test_order_of_samples(problem):
    """It changes the scores by no more than the gaps allow."""
    X, y = problem()
    order = np.random.default_rng(0).permutation(len(y))
    one, two = HRSVM(TREE, tol=1e-6).fit(X, y), HRSVM(TREE, tol=1e-6).fit(X[order], [y[i] for i in order])
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-6)
    assert np.abs(w(one) @ np.c_[X, np.ones(len(X))].T - w(two) @ np.c_[X, np.ones(len(X))].T).max() <= score_bound(
        [one, two], X
    )


def test_sample_and_class_weights():
    """C is multiplied by them; a sample of weight 2 is one that is there twice."""
    X, y = make(n_samples=40)
    twice = HRSVM(TREE, tol=1e-6).fit(np.vstack([X, X[:10]]), y + y[:10])
    weighted = HRSVM(TREE, tol=1e-6).fit(X, y, sample_weight=np.where(np.arange(40) < 10, 2.0, 1.0))
    assert weighted.objective_ == pytest.approx(twice.objective_, rel=1e-5)
    by_class = HRSVM(TREE, tol=1e-6, class_weight={"dog": 3.0}).fit(X, y)
    same = HRSVM(TREE, tol=1e-6).fit(X, y, sample_weight=np.where(np.array(y) == "dog", 3.0, 1.0))
    assert by_class.objective_ == pytest.approx(same.objective_, rel=1e-5)


@pytest.mark.parametrize("problem", [make, make_sets])
def test_threads(problem):
    X, y = problem(n_samples=500, sparse=True)
    one, two = (HRSVM(TREE, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


# -- answers -----------------------------------------------------------------------------------------------------------


@all_hierarchies
def test_one_label(h):
    X, y = make(h)
    model = HRSVM(h).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert model.score(X, y) > 0.8
    assert model.predict_topk(X, 2)[:, 0].tolist() == model.predict(X).tolist()


@all_hierarchies
@pytest.mark.parametrize("allow_empty", [False, True])
def test_label_sets(h, allow_empty):
    """Leaves with a positive score; the best one if there is none, unless sets may be empty."""
    X, y = make_sets(h, noise=1.5, empty=allow_empty)
    model = HRSVM(h, C=0.1, allow_empty=allow_empty).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, np.c_[X, np.ones(len(X))] @ w(model).T, atol=1e-4)
    found = model.predict(X)
    for row, labels in zip(scores, found, strict=True):
        positive = set(model.classes_[row > 0].tolist())
        assert labels == (positive or (set() if allow_empty else {model.classes_[row.argmax()]}))
    assert any(not (row > 0).any() for row in scores)
    assert len({len(labels) for labels in found}) > 2


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_indicator(form):
    X, y = make_sets()
    Y = indicator(y, TREE.leaves)
    model = HRSVM(TREE).fit(X, Y if form == "dense" else sp.csr_array(Y))
    found = model.predict(X)
    found = found if form == "dense" else found.toarray()
    sets = [{label for label, has in zip(TREE.leaves, row, strict=True) if has} for row in found]
    assert sets == HRSVM(TREE).fit(X, y).predict(X).tolist()


def test_labels_on_inner_nodes():
    X, y = make(labels=["dog", "animal", "oak"])
    model = HRSVM(TREE).fit(X, y)
    assert model.score(X, y) > 0.8
    assert "animal" in model.predict(X)


def test_one_class():
    X, _ = make()
    assert HRSVM().fit(X, ["only"] * len(X)).predict(X[:2]).tolist() == ["only", "only"]


@pytest.mark.parametrize("problem", [make, make_sets])
def test_probabilities(problem):
    X, y = problem(n_samples=120)
    model = HRSVM(TREE, probability=True, cv=3).fit(X, y)
    classes, nodes = model.predict_proba(X), model.node_proba(X)
    assert ((classes >= 0) & (classes <= 1)).all()
    np.testing.assert_allclose(classes, nodes[:, model.hierarchy_.graph.leaves[model.model_.class_leaves]])
    right = signs(model, y) > 0
    assert classes[right].mean() > 0.5 > classes[~right].mean()


def test_offsets():
    """Tuned on held-out folds, and added to the scores of leaves."""
    X, y = make_sets(n_samples=200, noise=1.5)
    plain, tuned = HRSVM(TREE, cv=3).fit(X, y), HRSVM(TREE, cv=3, offsets="f1_micro").fit(X, y)
    assert (tuned.offsets_[~tuned.hierarchy_.graph.is_leaf] == 0).all()
    own = tuned.offsets_[tuned.hierarchy_.graph.leaves[tuned.model_.class_leaves]]
    np.testing.assert_allclose(tuned.decision_function(X) - plain.decision_function(X), np.tile(own, (200, 1)))


def test_explanations():
    """All nodes above a label count, whatever else is predicted."""
    X, y = make_sets()
    model = HRSVM(TREE).fit(X, y)
    row = next(i for i, labels in enumerate(model.predict(X)) if {"dog", "cat"} <= labels)
    found = model.explain(X[row], "dog")[0]
    assert found.score == pytest.approx(model.decision_function(X[row : row + 1])[0, list(model.classes_).index("dog")])
    assert [part.node for part in found.nodes] == ["life", "animal", "dog"]
    assert not found.shared


# -- an estimator like the others --------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [make, make_sets])
@pytest.mark.parametrize("h", [None, TREE, DAG], ids=["flat", "tree", "dag"])
def test_save_and_load(h, problem, tmp_path):
    X, y = problem(TREE if h is None else h)
    model = HRSVM(h, C=2.0).fit(X, y)
    model.save(tmp_path / "model.nhsvm")
    back = load(tmp_path / "model.nhsvm")
    assert type(back) is HRSVM
    assert back.C == 2.0
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    assert back.predict(X).tolist() == model.predict(X).tolist()
    assert (back.gap_, back.n_iter_) == (model.gap_, model.n_iter_)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("problem", [make, make_sets])
def test_warm_start(problem):
    """A path of C leads where cold fits lead; other samples are refused."""
    X, y = problem()
    model = HRSVM(TREE, warm_start=True, tol=1e-5)
    for C in (0.01, 0.1, 1.0, 0.3):
        model.set_params(C=C).fit(X, y)
        assert model.gap_ <= 1e-5
        assert model.objective_ == pytest.approx(HRSVM(TREE, C=C, tol=1e-5).fit(X, y).objective_, rel=1e-5)
    assert model.fit(X, y).n_iter_ == 1
    with pytest.raises(OptionError, match="same samples and labels"):
        model.fit(X[:-1], y[:-1])
    HRSVM(TREE, warm_start=True).fit(X, y, sample_weight=[0.0] * 5 + [1.0] * 85).fit(X, y)


@pytest.mark.parametrize("problem", [make, make_sets])
@pytest.mark.parametrize("h", [None, TREE], ids=["flat", "tree"])
def test_no_start_for_other_models(h, problem):
    """Its dual variables are of another problem than theirs."""
    X, y = problem()
    model = HRSVM(h, warm_start=True).fit(X, y)
    with pytest.raises(OptionError):
        SSVM(h, warm_start=True).start_from(model).fit(X, y)


def test_tools_of_scikit_learn():
    X, y = make(n_samples=60)
    model = HRSVM(TREE, C=0.5)
    assert clone(model).get_params() == model.get_params()
    assert repr(model.set_params(hierarchy=None)) == "HRSVM(C=0.5)"
    search = GridSearchCV(HRSVM(TREE), {"C": [0.01, 1.0]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    with pytest.raises(ValueError, match="Invalid parameter 'loss'"):
        model.set_params(loss="hamming")


def test_interrupt_and_callback():
    X, y = make()
    seen = []
    with pytest.warns(UserWarning, match="stopped after 2 passes"):
        model = HRSVM(TREE, tol=1e-9, callback=lambda record: seen.append(record) or len(seen) == 2).fit(X, y)
    assert model.n_iter_ == len(seen) == 2
    assert model.dual_objective_ < model.objective_


def test_solver_instance():
    X, y = make()
    model = HRSVM(TREE, solver=Dual(tol=1e-6, seed=3)).fit(X, y)
    assert model.gap_ <= 1e-6
    assert model.coef_.dtype == np.float64


@pytest.mark.parametrize("solver", ["sgd", "alternating", Sgd()])
def test_other_solvers_are_refused(solver):
    X, y = make()
    with pytest.raises(OptionError, match="HRSVM takes solver='dual'"):
        HRSVM(TREE, solver=solver).fit(X, y)
    with pytest.raises(OptionError, match="HRSVM takes solver='dual'"):  # before labels are looked at
        HRSVM(TREE, solver=solver).fit(X, ["no label"] * len(y))


def test_a_warm_start_may_change_what_counts_as_found():
    X, y = make_sets(TREE)
    one, two = (HRSVM(TREE, allow_empty=empty).make_problem(X, y).solved.about() for empty in (False, True))
    assert len(one) == len(two)
    assert all(map(np.array_equal, one, two))


def test_no_seed_is_drawn_before_one_is_needed():
    X, y = make()
    state = np.random.RandomState(3)
    problem = HRSVM(TREE, random_state=state).make_problem(X, y)
    assert problem.folds(HRSVM(TREE, random_state=state)) is None
    assert state.randint(1000) == np.random.RandomState(3).randint(1000)


def test_bad_input():
    X, y = make()
    sets = make_sets()[1]
    for options, match in [
        ({"C": 0}, "C must be a positive number"),
        ({"tol": -1.0}, "tol must be"),
        ({"solver": "other"}, "solver must be one of"),
        ({"offsets": "other"}, "offsets must be None"),
        ({"memory_limit": "much"}, "memory_limit"),
        ({"hierarchy": "tree"}, "hierarchy must be a Hierarchy"),
        ({"offsets": "f1_micro"}, "offsets is for label sets"),
    ]:
        with pytest.raises(OptionError, match=match):
            HRSVM(**{"hierarchy": TREE} | options).fit(X, y)
    with pytest.raises(OptionError, match="class_weight is for one label a sample"):
        HRSVM(TREE, class_weight="balanced").fit(X, sets)
    with pytest.raises(LabelError, match="sample 1 has no label"):
        HRSVM(TREE).fit(X[:3], [{"dog"}, set(), {"cat"}])
    with pytest.raises(UnknownLabelError, match="fish"):
        HRSVM(TREE).fit(X, ["fish"] * len(X))
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'"):
        _ = HRSVM(TREE).partial_fit


def test_it_is_not_hsvm():
    """Label sets: there a node counts once, here once for every label below it."""
    X, y = make_sets()
    assert HRSVM(TREE).fit(X, y).objective_ != pytest.approx(HSVM(TREE).fit(X, y).objective_, rel=0.01)
    chain = Hierarchy.from_edges([("top", "a"), ("top", "b")])
    model = HRSVM(chain, tol=1e-6, fit_intercept=False).fit([[1.0], [1.0]], [{"a", "b"}, {"a", "b"}])
    # w_a = w_b = 1 with least ‖U_top‖² + ‖U_a‖² + ‖U_b‖²: two thirds above, one third below
    np.testing.assert_allclose(model.coef_[:, 0], [2 / 3, 1 / 3, 1 / 3], atol=1e-3)
