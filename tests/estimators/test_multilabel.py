"""Learning from label sets: what a fit does, leaves behind, and says."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from estimators.problems import FOREST, HIERARCHIES, TREE, indicator, make, make_sets
from nhsvm import HSVM, NHSVM, FlatSVM, Hierarchy
from nhsvm.errors import LabelError, OptionError, UnknownLabelError
from nhsvm.losses import LeafHamming, make_loss
from nhsvm.oracles import DagMultilabel
from nhsvm.oracles.brute_force import BruteForce

ALL = [FlatSVM, HSVM, NHSVM]


def brute_force(model, X, *, allow_empty=False, loss=None, truth=None):
    """Best closures, and their values, from node scores and everything that is added to them."""
    graph = model.hierarchy_.graph
    rewards = model.node_scores(X).astype(float)
    rewards = rewards + model.leaf_offset_ * graph.is_leaf + getattr(model, "offsets_", 0.0)
    if loss is not None:
        rewards = rewards + [loss.per_node(np.flatnonzero(row), multilabel=True).rewards for row in truth]
    chosen, value, bound = np.empty(rewards.shape, np.uint8), *np.empty((2, len(rewards)))
    BruteForce(graph, allow_empty=allow_empty).solve(np.ascontiguousarray(rewards), chosen, value, bound)
    return rewards, chosen, value


def closures(model, y):
    member = np.zeros((len(y), model.hierarchy_.n_nodes))
    for row, labels in zip(member, y, strict=True):
        leaves = [model.hierarchy_.leaf_position(label) for label in labels]
        row[np.unique(model.hierarchy_.graph.leaf_ancestors.rows(np.array(leaves, dtype=int)).indices)] = 1
    return member


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("options", [{}, {"allow_empty": True}, {"leaf_offset": -1.0}, {"fit_intercept": False}])
def test_the_objective_is_what_it_says(cls, name, options):
    """Primal from coef_ by definition, with all label sets tried."""
    h = HIERARCHIES[name]
    X, y = make_sets(h, labels=[*h.leaves, h.nodes[1]], empty="allow_empty" in options)
    model = cls(h, C=0.3, **{"intercept_scaling": 1, "leaf_offset": 0} | options).fit(X, y)
    assert 0 <= model.gap_ <= 1e-3
    alpha, truth = model.node_weights_, closures(model, y)
    loss = make_loss("leaf_hamming", model.hierarchy_)
    rewards, _, value = brute_force(model, X, allow_empty=model.allow_empty, loss=loss, truth=truth)
    own = ((rewards - model.hierarchy_.graph.is_leaf * (1 - 2 * truth)) * truth).sum(axis=1)
    slack = value + truth[:, model.hierarchy_.graph.leaves].sum(axis=1) - own
    U = np.hstack([model.coef_.astype(float), model.intercept_[:, None]])
    half = 0.5 * ((U**2).sum(axis=1)[alpha > 0] / alpha[alpha > 0]).sum()
    true = half + 0.3 * slack.sum()
    if h.is_tree:
        assert model.objective_ == pytest.approx(true, rel=1e-5)
    else:  # bounds of the oracle stand in for the best sets, and may be a fifth of the tolerance above them
        assert true * (1 - 1e-6) <= model.objective_ <= true * (1 + 0.2e-3)
    assert model.history_[-1]["certified"]
    assert model.history_[-1]["gap"] == model.gap_
    assert model.n_iter_ == len(model.history_)
    assert model.history_[-1]["training_error"] == pytest.approx(1 - model.score(X, y))


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("name", HIERARCHIES)
@pytest.mark.parametrize("allow_empty", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_predictions_are_the_best_sets(cls, name, allow_empty, sparse):
    h = HIERARCHIES[name]
    X, y = make_sets(h, noise=3.0, empty=allow_empty, sparse=sparse)
    model = cls(h, C=1, allow_empty=allow_empty).fit(X, y)
    rewards, chosen, _ = brute_force(model, X, allow_empty=allow_empty)
    expected = [{model.hierarchy_.leaves[k] for k in np.flatnonzero(row)} for row in chosen[:, h.graph.leaves]]
    assert model.predict(X).tolist() == expected
    scores = model.decision_function(X)
    assert scores.shape == (90, len(model.classes_))
    for row, node, labels in zip(scores, rewards, expected, strict=True):
        for score, label in zip(row, model.classes_.tolist(), strict=True):
            with_it, without = closures(model, [labels | {label}, labels - {label}])
            assert score == pytest.approx(node @ with_it - node @ without, abs=1e-9)
    own = X @ model.coef_.T + model.intercept_ + model.leaf_offset_ * h.graph.is_leaf
    np.testing.assert_allclose(own, rewards, atol=1e-4)
    assert set(map(len, expected)) >= ({0, 1} if allow_empty else {1})


def test_the_sign_of_a_score_says_what_is_predicted():
    X, y = make_sets(noise=3.0)
    for allow_empty in (False, True):
        model = NHSVM(TREE, allow_empty=allow_empty).fit(X, y)
        inside = indicator(model.predict(X), model.classes_).astype(bool)
        forced = (inside.sum(axis=1) == 1) & (not allow_empty)
        scores = model.decision_function(X)
        assert (scores[~inside] <= 0).all()
        assert (scores[inside & ~forced[:, None]] >= 0).all()


def test_two_labels_have_two_columns():
    X, y = make_sets(labels=["dog", "oak"])
    assert NHSVM(TREE).fit(X, y).decision_function(X).shape == (90, 2)


@pytest.mark.parametrize("k", [1, 3, 9])
def test_topk(k):
    X, y = make_sets(noise=3.0)
    model = NHSVM(TREE).fit(X, y)
    best = model.predict_topk(X, k)
    assert best.shape == (90, min(k, 4))
    scores = model.decision_function(X)
    for labels, row, found in zip(best.tolist(), scores, model.predict(X), strict=True):
        assert set(labels[: len(found)]) == found if k >= len(found) else set(labels) <= found
        value = dict(zip(model.classes_.tolist(), row.tolist(), strict=True))
        assert labels == sorted(labels, key=lambda label, value=value, found=found: (label not in found, -value[label]))


def test_flat_sets_are_independent_hinge_machines():
    X, y = make_sets(noise=2.0, empty=True)
    Y = indicator(y, TREE.leaves)
    weight = np.random.default_rng(0).uniform(0.5, 2, 90)
    options = {"C": 0.2, "intercept_scaling": 1, "leaf_offset": 0}
    model = FlatSVM(TREE, allow_empty=True, tol=1e-4, **options).fit(X, Y, sample_weight=weight)
    total, found = 0.0, []
    for column in Y.T:
        machine = LinearSVC(loss="hinge", C=0.2, tol=1e-9, max_iter=10**6).fit(X, column, sample_weight=weight)
        scores = machine.decision_function(X)
        slack = np.maximum(0, 1 - np.where(column, 1, -1) * scores)
        total += 0.5 * (machine.coef_**2).sum() + 0.5 * machine.intercept_[0] ** 2 + 0.2 * weight @ slack
        found.append(scores)
    assert model.objective_ == pytest.approx(total, rel=1e-3)
    np.testing.assert_allclose(model.decision_function(X), np.array(found).T, atol=0.1)


def forms(y, classes):
    Y = indicator(y, classes)
    return {
        "list": [list(labels) for labels in y],
        "tuple": [tuple(labels) for labels in y],
        "set": y,
        "frozenset": [frozenset(labels) for labels in y],
        "series": pd.Series(y),
        "polars": pl.Series(y, dtype=pl.Object),
        "arrays": [np.array(sorted(labels)) for labels in y],
        "dense": Y,
        "bool": Y.astype(bool),
        "sparse": sp.csr_matrix(Y),
        "pandas": pd.DataFrame(Y, columns=list(classes)),
        "polars frame": pl.DataFrame(Y, schema=list(classes)),
    }


@pytest.mark.parametrize("form", forms([{"a"}], ["a"]))
def test_the_form_that_comes_in_goes_out(form):
    X, y = make_sets(noise=2.0)
    plain = NHSVM(TREE).fit(X, y)
    expected = plain.predict(X).tolist()
    given = forms(y, TREE.leaves)[form]
    model = NHSVM(TREE).fit(X, given)
    found = model.predict(X)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    if form in ("dense", "bool", "pandas", "polars frame", "sparse"):
        assert model.classes_.tolist() == list(TREE.leaves)
        assert sp.issparse(found) == (form == "sparse")
        assert (found.toarray() if form == "sparse" else found).tolist() == indicator(expected, TREE.leaves).tolist()
    else:
        kind = {"series": set, "polars": set, "arrays": list, "list": list, "tuple": tuple, "frozenset": frozenset}.get(
            form, set
        )
        assert {type(labels) for labels in found} == {kind}
        assert [set(labels) for labels in found] == expected
    assert model.score(X, given) == model.score(X, y) == plain.score(X, y)


def test_inner_nodes_come_back_as_they_were_given():
    labels = ["animal", "dog", "cat", "life", "rose"]
    _, y = make_sets(labels=labels)
    X = indicator(y, labels) + 0.1 * np.random.default_rng(0).normal(size=(90, 5))
    for cls in ALL:
        model = cls(TREE).fit(X, y)
        assert model.classes_.tolist() == ["animal", "cat", "dog", "life", "rose"]
        assert model.hierarchy_.is_virtual.sum() == 2
        assert model.score(X, y) == 1


def test_an_inner_node_alone_is_a_leaf():
    X, y = make_sets(labels=["animal", "oak"])
    model = NHSVM(TREE).fit(X, y)
    assert set(model.hierarchy_.nodes) == {"life", "animal", "plant", "oak"}
    assert set().union(*model.predict(X)) == {"animal", "oak"}


def test_without_a_hierarchy():
    X, y = make_sets()
    flat, model = FlatSVM(TREE).fit(X, y), NHSVM().fit(X, y)
    assert model.hierarchy_ == Hierarchy.from_edges([], nodes=model.classes_.tolist())
    assert model.objective_ == pytest.approx(flat.objective_, rel=1e-3)
    Y = indicator(y, TREE.leaves)
    numbered = NHSVM().fit(X, Y)
    assert numbered.classes_.tolist() == [0, 1, 2, 3]
    assert numbered.predict(X).shape == Y.shape


@pytest.mark.parametrize("allow_empty", [False, True])
@pytest.mark.parametrize("hierarchy", [TREE, FOREST, None])
def test_one_leaf_and_all_leaves(allow_empty, hierarchy):
    X, _ = make(n_samples=20)
    for labels in (["dog"], ["dog", "cat", "oak", "rose"]):
        model = NHSVM(hierarchy, allow_empty=allow_empty).fit(X, [labels] * 20)
        assert model.predict(X).tolist() == [sorted(labels)] * 20
        assert model.score(X, [labels] * 20) == 1
    if allow_empty:
        y = [["dog"] if x[0] > 0 else [] for x in X]
        model = NHSVM(hierarchy, allow_empty=True, C=100).fit(X, y)
        assert model.predict(X).tolist() == y


def test_empty_sets():
    X, y = make_sets(empty=True)
    with pytest.raises(LabelError, match=r"sample \d+ has no label: .* allow_empty=True"):
        NHSVM(TREE).fit(X, y)
    model = NHSVM(TREE, allow_empty=True).fit(X, y)
    assert set() in model.predict(X).tolist()
    assert model.set_params(allow_empty=False).predict(X).tolist().count(set()) > 0  # as it was fitted


def test_a_leaf_offset_moves_the_start():
    """With −1 a wrong label that no feature speaks for is exactly at its margin: nothing is learned of it."""
    y, zero = [{label} for label in TREE.leaves], np.zeros((1, 4))
    options = {"fit_intercept": False, "allow_empty": True}
    plain, moved = (FlatSVM(TREE, leaf_offset=offset, **options).fit(np.eye(4), y) for offset in (0.0, -1.0))
    assert np.count_nonzero(plain.coef_) == 16
    assert np.count_nonzero(moved.coef_) == 4
    assert moved.predict(zero).tolist() == [set()]
    assert (moved.decision_function(zero) == -1).all()
    assert (moved.node_scores(zero) == 0).all()
    moved.set_params(leaf_offset=5.0)
    assert (moved.decision_function(zero) == -1).all()  # as it was fitted


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", HIERARCHIES)
def test_any_number_of_threads_gives_the_same_bits(sparse, name):
    X, y = make_sets(HIERARCHIES[name], n_samples=120, sparse=sparse)
    models = [NHSVM(HIERARCHIES[name], n_jobs=n).fit(X, y) for n in (None, None, 2, 3)]
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        np.testing.assert_array_equal(model.decision_function(X), models[0].decision_function(X))
        assert model.predict(X).tolist() == models[0].predict(X).tolist()


def test_more_samples_than_a_chunk():
    X, y = make_sets(n_samples=30)
    for kind in (np.asarray, sp.csr_array):
        model = NHSVM(TREE, n_jobs=2).fit(kind(X), indicator(y, TREE.leaves))
        many = np.tile(X, (3000, 1))
        np.testing.assert_array_equal(model.predict(kind(many)), np.tile(model.predict(kind(X)), (3000, 1)))
        np.testing.assert_allclose(
            model.decision_function(kind(many)), np.tile(model.decision_function(kind(X)), (3000, 1)), atol=1e-6
        )


def test_sample_weights_are_copies():
    X, y = make_sets(n_samples=40)
    weight = np.random.default_rng(0).integers(0, 4, size=40)
    rows = np.repeat(np.arange(40), weight)
    weighted = NHSVM(TREE, tol=1e-4).fit(X, y, sample_weight=weight)
    copied = NHSVM(TREE, tol=1e-4).fit(X[rows], [y[i] for i in rows])
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=2e-4)


def test_warm_start_along_a_path():
    X, y = make_sets(n_samples=150, noise=2.0)
    weight = np.random.default_rng(0).uniform(0.5, 2, 150)
    path = NHSVM(TREE, warm_start=True)
    for C in (0.01, 0.1, 1.0, 0.05):
        path.set_params(C=C).fit(X, y, weight)
        cold = NHSVM(TREE, C=C).fit(X, y, weight)
        assert path.gap_ <= 1e-3
        assert path.objective_ == pytest.approx(cold.objective_, rel=1e-3)
        assert max(path.dual_objective_, cold.dual_objective_) <= min(path.objective_, cold.objective_)
    again = path.fit(X, y, weight)
    assert again.n_iter_ == 1
    path.set_params(leaf_offset=-1.0, weights="power", loss="hamming").fit(X, y, weight)
    cold = NHSVM(TREE, C=0.05, leaf_offset=-1.0, weights="power", loss="hamming").fit(X, y, weight)
    assert path.objective_ == pytest.approx(cold.objective_, rel=1e-3)


def test_warm_start_when_samples_come_and_go():
    X, y = make_sets(n_samples=60, noise=2.0)
    half = np.arange(60) % 2.0
    model = NHSVM(TREE, warm_start=True)
    for weight in (half, 1 - half, np.ones(60), half):
        model.fit(X, y, weight)
        assert model.gap_ <= 1e-3
        assert model.objective_ == pytest.approx(NHSVM(TREE).fit(X, y, weight).objective_, rel=1e-3)


def test_warm_start_needs_the_same_data():
    X, y = make_sets()
    model = NHSVM(TREE, warm_start=True).fit(X, y)
    before = model.decision_function(X)
    for change in ({"X": X[1:], "y": y[1:]}, {"y": [{"dog"}] * 90}, {"y": ["dog", "cat"] * 45}):
        with pytest.raises(OptionError, match="same samples and labels"):
            model.fit(**({"X": X, "y": y} | change))
    for options in ({"allow_empty": True}, {"weights": "flat"}):
        with pytest.raises(OptionError, match="the same nodes with weight, the same allow_empty"):
            NHSVM(TREE, warm_start=True).fit(X, y).set_params(**options).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_nothing_stale_after_another_fit():
    X, y = make_sets(noise=2.0)
    single = make()
    model = NHSVM(TREE, offsets="f1_micro", cv=3).fit(X, y)
    assert model.offsets_.shape == (7,)
    model.set_params(offsets=None).fit(*single)
    assert set(vars(model)) == set(vars(NHSVM(TREE).fit(*single)))
    assert model.predict(single[0]).dtype.kind == "U"
    model.fit(X, y)
    assert set(vars(model)) == set(vars(NHSVM(TREE).fit(X, y)))
    assert model.predict(X).tolist() == NHSVM(TREE).fit(X, y).predict(X).tolist()


def test_interrupted():
    X, y = make_sets(n_samples=200, noise=4.0)

    def interrupt(record):
        if record["iteration"] == 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted after 2 passes; this model's certified gap is"):
        model = NHSVM(TREE, tol=1e-9, callback=interrupt, offsets="f1_micro").fit(X, y)
    assert model.objective_ >= model.dual_objective_
    assert not hasattr(model, "offsets_")
    assert len(model.predict(X)) == 200


def test_callback_and_convergence_warning():
    X, y = make_sets(n_samples=200, noise=4.0)
    seen = []
    with pytest.warns(ConvergenceWarning, match="stopped after 1 pass at"):
        NHSVM(TREE, tol=1e-9, callback=lambda record: seen.append(dict(record)) or True).fit(X, y)
    assert [record["iteration"] for record in seen] == [1]


def test_verbose(capsys):
    X, y = make_sets()
    model = NHSVM(TREE, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == model.n_iter_
    assert "training error" in lines[-1]
    assert "nan" not in "".join(lines)


def test_labels_that_a_hierarchy_does_not_know():
    X, y = make_sets()
    with pytest.raises(UnknownLabelError, match=r"'wolf'.*first in sample 3"):
        NHSVM(TREE).fit(X * np.nan, [*y[:3], {"wolf"}, *y[4:]])
    with pytest.raises(LabelError, match="X has 90 rows, but y has 89 labels"):
        NHSVM(TREE).fit(X, y[1:])


def test_score():
    X, y = make_sets(labels=["dog", "cat", "oak"], noise=2.0)
    model = NHSVM(TREE).fit(X, y)
    found = model.predict(X)
    right = np.array([a == b for a, b in zip(found, y, strict=True)])
    weight = np.arange(90.0)
    assert model.score(X, y) == pytest.approx(right.mean())
    assert 0 < model.score(X, y) < 1
    assert model.score(X, y, weight) == pytest.approx(np.average(right, weights=weight))
    assert model.score(X, found) == 1
    unseen = [labels | {"rose"} for labels in found]
    assert model.score(X, [*unseen[:45], *found[45:]]) == 0.5
    assert model.score(X, [{"something else"}] * 90) == 0
    assert model.score(X, [set()] * 90) == 0
    assert model.score(X, indicator(found, model.classes_)) == 1
    frame = pd.DataFrame(indicator(found, TREE.leaves), columns=list(TREE.leaves))
    assert model.score(X, frame) == 1
    with pytest.raises(LabelError, match="X has 90 rows, but y has 89 labels"):
        model.score(X, y[1:])
    with pytest.raises(LabelError, match="sample 0 has one label"):
        model.score(X, ["dog"] * 90)
    with pytest.raises(LabelError, match="4 columns, but there are 3 classes"):
        model.score(X, frame.to_numpy())


def test_names_of_features():
    X, y = make_sets()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = NHSVM(TREE).fit(frame, y)
    found = NHSVM(TREE).fit(X, y).predict(X).tolist()
    assert model.predict(frame).tolist() == found  # and no warning of names that are missing
    assert model.score(frame, found) == 1
    assert model.decision_function(frame).shape == (90, 4)
    assert model.predict_topk(frame, 1).shape == (90, 1)


def test_columns_without_a_sample_are_classes():
    X, y = make_sets()
    Y = indicator(y, TREE.leaves)
    Y[:, 0] = 0
    Y[~Y.any(axis=1), 1] = 1
    model = NHSVM(TREE).fit(X, Y)
    assert model.classes_.tolist() == list(TREE.leaves)
    assert model.predict(X).shape == Y.shape
    assert not model.predict(X)[:, 0].any()


@pytest.mark.parametrize("loss", ["leaf_hamming", LeafHamming, "hamming"])
def test_losses(loss):
    X, y = make_sets()
    assert HSVM(TREE, loss=loss).fit(X, y).score(X, y) > 0.5


def test_sets_on_a_dag_need_not_be_proved(monkeypatch):
    X, y = make_sets(HIERARCHIES["dag"], n_samples=30)
    model = NHSVM(HIERARCHIES["dag"]).fit(X, y)
    asked = []
    original = DagMultilabel.__init__

    def watched(self, *args, **options):
        asked.append(options["exact"])
        original(self, *args, **options)

    monkeypatch.setattr(DagMultilabel, "__init__", watched)
    assert model.predict(X, exact=False).tolist() == model.predict(X).tolist()  # so small that all is proved anyway
    assert asked == [False, True]
