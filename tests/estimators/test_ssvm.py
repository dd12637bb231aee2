"""The Shared SVM: what the learned weights say, and that nothing with fixed weights is better."""

import numpy as np
import pytest
import scipy.sparse as sp

from estimators.problems import DAG, FOREST, HIERARCHIES, TREE, make, make_sets
from nhsvm import HSVM, NHSVM, SSVM, FlatSVM, Hierarchy, load
from nhsvm.engine import Alternating, Dual
from nhsvm.errors import OptionError
from nhsvm.losses import Normalized, make_loss
from nhsvm.paper import structured_shared_norm
from nhsvm.weights import Power

GROUPS = Hierarchy.from_edges([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")])


def weights(model):
    return dict(zip(model.hierarchy_.nodes, model.node_weights_.tolist(), strict=True))


def penalty(model):
    rows = np.hstack([model.coef_, model.intercept_[:, None] / model.intercept_scaling_]).astype(float)
    used = model.node_weights_ > 0
    return 0.5 * float(np.sum((rows[used] ** 2).sum(axis=1) / model.node_weights_[used])), rows


@pytest.mark.parametrize("h", HIERARCHIES.values(), ids=HIERARCHIES)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("loss", ["zero_one", "hamming"])
def test_no_scheme_is_better(h, C, loss):
    X, y = make(h)
    model = SSVM(h, C=C, loss=loss).fit(X, y)
    assert model.gap_ <= 1e-3
    sums = model.hierarchy_.graph.leaf_matrix() @ model.node_weights_
    assert (sums <= 1 + 1e-9).all()
    for scheme in ("maxmin", "flat", "power", Power(rho=1.5, directional=True)):
        other = NHSVM(h, C=C, loss=loss, weights=scheme).fit(X, y)
        assert model.dual_objective_ <= other.objective_
        assert model.objective_ <= other.objective_ * (1 + 1e-3)


@pytest.mark.parametrize("h", HIERARCHIES.values(), ids=HIERARCHIES)
def test_no_scheme_is_better_for_label_sets(h):
    X, y = make_sets(h)
    model = SSVM(h, C=0.3).fit(X, y)
    assert model.gap_ <= 1e-3
    for scheme in ("maxmin", "flat", "power"):
        assert model.objective_ <= NHSVM(h, C=0.3, weights=scheme).fit(X, y).objective_ * (1 + 1e-3)


def test_features_of_their_own_share_nothing():
    """On disjoint features the Shared SVM is the flat one."""
    rng = np.random.default_rng(0)
    y = np.repeat(GROUPS.leaves, 10)
    X = np.zeros((40, 8))
    for k in range(4):
        X[10 * k : 10 * k + 10, 2 * k : 2 * k + 2] = 1 + rng.random((10, 2))
    flat, shared = (cls(GROUPS, C=0.1, fit_intercept=False, tol=1e-6).fit(X, y) for cls in (FlatSVM, SSVM))
    assert shared.objective_ == pytest.approx(flat.objective_, rel=1e-6)
    np.testing.assert_allclose(shared.node_weights_, [0, 0, 1, 1, 1, 1], atol=1e-3)
    np.testing.assert_allclose(shared.decision_function(X), flat.decision_function(X), atol=0.01)


def test_what_is_the_same_is_shared():
    """Leaves that no feature tells apart: all weight goes to the node above, and their own vectors vanish."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.vstack([rng.normal(1, 0.3, (20, 3)), rng.normal(-1, 0.3, (20, 3))]), 2, axis=0)
    y = np.concatenate([np.tile(["a1", "a2"], 20), np.tile(["b1", "b2"], 20)])
    model = SSVM(GROUPS, C=0.3, loss="hamming", tol=1e-6).fit(X, y)
    found = weights(model)
    assert min(found["a"], found["b"]) > 0.99
    assert max(found[leaf] for leaf in GROUPS.leaves) < 0.01
    assert np.abs(model.coef_[2:]).max() < 1e-2 * np.abs(model.coef_[:2]).max()


@pytest.mark.parametrize("h", HIERARCHIES.values(), ids=HIERARCHIES)
def test_the_penalty_is_the_structured_shared_norm(h):
    """Of the matrix with a row a leaf: at the optimum no other split of it over the nodes is cheaper (Eq. 16).

    With label sets it may be: their scores are no function of that matrix.
    """
    X, y = make(h)
    model = SSVM(h, C=0.1, tol=1e-5, max_iter=5000).fit(X, y)
    assert model.gap_ <= 1e-5
    value, rows = penalty(model)
    norm = structured_shared_norm(model.hierarchy_.graph.leaf_matrix() @ rows, model.hierarchy_, tol=1e-8)
    assert 0.5 * norm**2 <= value * (1 + 1e-7)
    assert value - 0.5 * norm**2 <= model.gap_ * model.objective_ + 1e-7 * value


@pytest.mark.parametrize("h", [TREE, DAG], ids=["tree", "dag"])
@pytest.mark.parametrize("problem", [make, make_sets])
@pytest.mark.parametrize("sparse", [True, False])
def test_threads_and_files(h, problem, sparse, tmp_path):
    X, y = problem(h, sparse=sparse)
    model = SSVM(h).fit(X, y)
    for other in (SSVM(h, n_jobs=2).fit(X, y), SSVM(h, n_jobs=4).fit(X, y)):
        np.testing.assert_array_equal(model.node_weights_, other.node_weights_)
        np.testing.assert_array_equal(model.coef_, other.coef_)
        assert model.objective_ == other.objective_
    model.save(tmp_path / "model")
    back = load(tmp_path / "model", verify=True)
    assert isinstance(back, SSVM)
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(back.node_weights_, model.node_weights_)
    assert back.history_[-1]["primal"] == model.objective_
    assert back.history_[-1]["fixed_primal"] >= back.objective_


@pytest.mark.parametrize("problem", [make, make_sets])
def test_warm_start(problem):
    X, y = problem(FOREST)
    model = SSVM(FOREST, C=1, intercept_scaling=1, warm_start=True, tol=1e-4).fit(X, y)
    one, dual = model.objective_, model.dual_objective_
    assert model.history_[0]["dual"] < 0.5 * dual  # a first pass from nothing leads nowhere near
    assert model.fit(X, y).history_[0]["dual"] >= dual * (1 - 1e-9)  # it goes on from where it was
    assert model.objective_ == pytest.approx(one, rel=2e-4)
    model.set_params(C=0.5).fit(X, y)
    assert model.objective_ == pytest.approx(
        SSVM(FOREST, C=0.5, intercept_scaling=1, tol=1e-4).fit(X, y).objective_, rel=2e-4
    )


@pytest.mark.parametrize("problem", [make, make_sets])
@pytest.mark.parametrize("h", [FOREST, DAG], ids=["forest", "dag"])
def test_it_starts_from_other_weights(h, problem):
    X, y = problem(h)
    options = {"C": 1, "intercept_scaling": 1, "leaf_offset": 0 if problem is make_sets else "auto"}
    other = NHSVM(h, **options, warm_start=True, tol=1e-4).fit(X, y)
    kept, before = other.objective_, other.predict(X)
    cold = SSVM(h, **options, tol=1e-3).fit(X, y)
    model = SSVM(h, **options, warm_start=True, tol=1e-3).start_from(other)
    dual = model.fit(X, y).history_[0]["dual"]
    assert model.objective_ == pytest.approx(cold.objective_, rel=2e-3)
    assert dual > 2 * cold.history_[0]["dual"]  # a head start, and no small one
    assert dual > 0.5 * cold.dual_objective_
    # it is as it was; of label sets on a DAG the objective is a bound, which may be loose by a fifth of the tolerance
    assert other.fit(X, y).objective_ == pytest.approx(kept, rel=2e-5 if h is DAG and problem is make_sets else 1e-6)
    assert np.array_equal(np.asarray(other.predict(X), dtype=object), np.asarray(before, dtype=object))


def test_what_it_cannot_start_from():
    X, y = make()
    with pytest.raises(OptionError, match="warm_start=True, which says"):
        SSVM(TREE).start_from(NHSVM(TREE, warm_start=True).fit(X, y))
    with pytest.raises(OptionError, match="this NHSVM has no dual variables"):
        SSVM(TREE, warm_start=True).start_from(NHSVM(TREE).fit(X, y))
    other = SSVM(TREE, warm_start=True).start_from(NHSVM(TREE, warm_start=True).fit(X, y))
    with pytest.raises(OptionError, match="the same samples"):
        other.fit(X[1:], y[1:])


def test_flat_hierarchy_is_the_flat_machine():
    X, y = make()
    one, two = SSVM(tol=1e-6).fit(X, y), FlatSVM(tol=1e-6).fit(X, y)
    assert one.objective_ == pytest.approx(two.objective_, rel=2e-6)
    assert one.node_weights_.tolist() == [1.0] * 4


def test_labels_of_inner_nodes_probabilities_and_class_weights():
    X, y = make(labels=["animal", "dog", "oak", "rose"])
    model = SSVM(TREE, probability=True, class_weight="balanced").fit(sp.csr_array(X), y)
    assert model.score(X, y) > 0.7
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_offsets_of_label_sets():
    X, y = make_sets(TREE, n_samples=60)
    model = SSVM(TREE, C=1, offsets="f1_micro", cv=2).fit(X, y)
    assert model.offsets_.shape == (7,)
    assert model.score(X, y) > 0.5


def test_losses_that_depend_on_the_weights_are_refused():
    X, y = make()
    ready = make_loss("normalized", TREE, np.ones(7))
    for loss in ("normalized", Normalized, ready):
        with pytest.raises(OptionError, match="depends on α, which SSVM learns"):
            SSVM(TREE, loss=loss).fit(X, y)
    X, y = make_sets()
    assert SSVM(TREE, loss="leaf_hamming").fit(X, y).objective_ == SSVM(TREE).fit(X, y).objective_


def test_solvers():
    X, y = make()
    for solver in ("dual", "sgd", Dual()):
        with pytest.raises(OptionError, match="takes solver='alternating'"):
            SSVM(TREE, solver=solver).fit(X, y)
    assert SSVM(TREE, solver=Alternating(tol=1e-5)).fit(X, y).gap_ <= 1e-5
    for cls in (FlatSVM, HSVM, NHSVM):
        with pytest.raises(OptionError, match="use SSVM"):
            cls(TREE, solver="alternating").fit(X, y)
