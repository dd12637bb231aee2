"""The dual solver: certificates recomputed from definitions, KKT, and other people's solvers."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from engine.problems import MARGINS, force_passes, make_case
from nhsvm import FlatSVM, Hierarchy
from nhsvm.engine import prepare
from nhsvm.engine.single_label import PlanesAscent
from nhsvm.losses.difference import Limits

PASSES = ("batch", "cached")
both_passes = pytest.mark.parametrize("passes", PASSES)
both_inputs = pytest.mark.parametrize("sparse", [True, False])
all_margins = pytest.mark.parametrize("margin", MARGINS, ids=str)


@pytest.fixture
def spy(monkeypatch):
    """Counts the passes of each kind."""
    calls = dict.fromkeys(("batch_pass", "search_pass", "working_set_passes", "try_certificate"), 0)
    for name in calls:
        original = getattr(PlanesAscent, name)

        def counted(self, *args, name=name, original=original):
            calls[name] += 1
            return original(self, *args)

        monkeypatch.setattr(PlanesAscent, name, counted)
    return calls


@both_passes
@both_inputs
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dag", [False, True])
@all_margins
def test_certificate(passes, sparse, dtype, dag, margin, monkeypatch, spy):
    """≤ tol at exit, honest, never negative; by every kind of pass, precision and input."""
    force_passes(monkeypatch, passes)
    tol = 1e-4 if dtype == np.float32 else 1e-7
    for seed in range(2):
        case = make_case(seed, dag=dag, margin=margin, sparse=sparse, dtype=dtype)
        solution = case.solve(tol=tol)
        case.check(solution, tol)
        assert solution.history[-1]["certified"]
        assert solution.history[-1]["gap"] == solution.certificate.gap
        for k, record in enumerate(solution.history):
            assert record["iteration"] == k + 1
            if record["certified"]:
                assert record["gap"] >= -1e-12
    assert spy["batch_pass"] > 0
    assert (spy["search_pass"] > 0) == (spy["working_set_passes"] > 0) == (passes == "cached")


@all_margins
@pytest.mark.parametrize("dag", [False, True])
def test_kkt(margin, dag):
    """At a gap of 1e-9: weights only on planes with the largest slack, and all of C_i spent where there is slack."""
    tol = 1e-9
    for seed in range(4):
        case = make_case(seed, dag=dag, margin=margin, sparse=seed % 2 == 0, n=30)
        solution = case.solve(tol=tol, max_iter=5000)
        case.check(solution, tol)
        a, bracket = case.a(solution), case.bracket(solution)
        slack, primal = bracket.max(axis=1), solution.certificate.primal
        assert (a * (slack[:, None] - bracket)).max() <= tol * primal
        left = case.problem.costs - a.sum(axis=1)
        assert (left * slack).max() <= tol * primal
        assert (slack >= 0).all()
        used = a > 1e-3
        assert used.any()
        assert (slack[:, None] - bracket)[used].max() <= 1e3 * tol * primal
        # U is α V up to rounding: the third condition
        again = case.recomputed(solution)
        assert again.gap <= tol


@pytest.mark.parametrize("seed", range(40))
def test_against_a_conic_solver(seed):
    """Trees and DAGs, every loss, Eq. 13, with and without a constant feature, random costs with zeros among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    costs = rng.random(n) * rng.choice([0.0, 0.3, 1.0, 20.0], size=n)
    case = make_case(
        seed, dag=seed % 2 == 1, margin=MARGINS[seed % 4], sparse=seed % 3 > 0, n=n, d=int(rng.integers(1, 6)),
        n_nodes=int(rng.integers(2, 12)), C=costs, bias=float(rng.choice([0.0, 1.0, 2.0])),
    )  # fmt: skip
    solution = case.solve(tol=1e-8, max_iter=20_000)
    case.check(solution, 1e-8)
    optimum = case.optimum()
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-6, abs=1e-7)
    assert solution.certificate.dual == pytest.approx(optimum, rel=1e-6, abs=1e-7)


@both_inputs
def test_flat_equals_liblinear(sparse):
    from sklearn.datasets import load_iris, make_classification
    from sklearn.preprocessing import scale
    from sklearn.svm import LinearSVC

    many = make_classification(150, 15, n_informative=8, n_classes=6, random_state=0)
    for X, y in (load_iris(return_X_y=True), many):
        for C in (0.1, 1.0):
            X = scale(X)
            data = sp.csr_array(X) if sparse else X
            options = {"tol": 1e-8, "max_iter": 100_000, "random_state": 0}
            theirs = LinearSVC(multi_class="crammer_singer", C=C, **options).fit(data, y)
            W = np.hstack([theirs.coef_, theirs.intercept_[:, None]])
            scores = theirs.decision_function(data)
            slack = (scores + (np.arange(len(W)) != y[:, None])).max(axis=1) - scores[np.arange(len(y)), y]
            value = 0.5 * (W**2).sum() + C * slack.sum()
            ours = FlatSVM(C=C, intercept_scaling=1, tol=1e-5, max_iter=20_000).fit(data, y)
            assert ours.objective_ == pytest.approx(value, rel=1e-4)
            assert ours.dual_objective_ <= value * (1 + 1e-12)
            assert ours.gap_ <= 1e-5


@both_inputs
def test_escalates_to_double_when_single_cannot_reach_the_tolerance(sparse, spy):
    case = make_case(1, sparse=sparse, dtype=np.float32)
    solution = case.solve(tol=1e-10, max_iter=5000)
    assert solution.weights.values.dtype == np.float64
    assert spy["try_certificate"] > 0
    case.check(solution, 1e-10)


@both_inputs
def test_single_stays_single_when_it_reaches_the_tolerance(sparse):
    case = make_case(1, sparse=sparse, dtype=np.float32)
    assert case.solve(tol=1e-3).weights.values.dtype == np.float32


@both_passes
@both_inputs
@pytest.mark.parametrize("margin", [("hamming", False), ("normalized", True)])
def test_samples_of_zeros_owe_their_share(passes, sparse, margin, monkeypatch):
    """‖x‖ = 0 and no constant feature: slack is the largest loss whatever U is, and all of C goes to that plane."""
    force_passes(monkeypatch, passes)
    case = make_case(3, margin=margin, sparse=sparse, bias=0.0)
    X = case.X[:, :-1].copy()
    X[::2] = 0
    X = prepare(sp.csr_array(X) if sparse else X, np.float64)
    assert not sparse or (np.diff(X.indptr)[::2] == 0).all()
    case = case.with_(X=X)
    solution = case.solve(tol=1e-8, max_iter=5000)
    case.check(solution, 1e-8)
    a = case.a(solution)[::2]
    np.testing.assert_allclose(a.sum(axis=1), case.problem.costs[::2], rtol=1e-9)
    top = case.bracket(solution)[::2].max(axis=1)
    asked = np.ones(len(top)) if margin[1] else case.losses[::2].max(axis=1)
    np.testing.assert_array_equal(top, asked)


@both_inputs
def test_all_samples_are_zero(sparse):
    case = make_case(0, sparse=sparse, bias=0.0)
    X = np.zeros((40, 8))
    X = prepare(sp.csr_array(X) if sparse else X, np.float64)
    case = case.with_(X=X)
    solution = case.solve(tol=1e-6)
    case.check(solution, 1e-6)
    assert not solution.weights.values.any()
    assert solution.certificate.dual == pytest.approx(case.losses.max(axis=1).sum(), rel=1e-12)


@both_passes
@both_inputs
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_costs(passes, sparse, C, monkeypatch):
    force_passes(monkeypatch, passes)
    for dag in (False, True):
        case = make_case(5, dag=dag, sparse=sparse, C=C, n=25, d=40)
        solution = case.solve(tol=1e-5)
        case.check(solution, 1e-5)


@both_inputs
@pytest.mark.parametrize("C", [1e3, 1e5])
def test_large_costs_in_single_precision(sparse, C):
    """Rounding of scores times C exceeds the gap asked for: double precision must take over."""
    case = make_case(4, sparse=sparse, C=C, n=25, d=40, dtype=np.float32)
    solution = case.solve(tol=1e-4, max_iter=200)
    case.check(solution, 1e-4)
    assert solution.weights.values.dtype == np.float64


@both_inputs
def test_zero_costs(sparse):
    """Samples that cost nothing take no part; if none costs anything, U = 0 is optimal at once."""
    case = make_case(5, sparse=sparse, C=np.where(np.arange(40) % 3, 1.0, 0.0))
    solution = case.solve(tol=1e-8, max_iter=5000)
    case.check(solution, 1e-8)
    assert (case.a(solution)[::3] == 0).all()
    kept = np.flatnonzero(case.problem.costs)
    X = prepare(case.problem.X[kept], np.float64)
    fewer = case.with_(X=X, leaves=case.problem.leaves[kept], costs=case.problem.costs[kept])
    assert fewer.solve(tol=1e-8, max_iter=5000).certificate.primal == pytest.approx(
        solution.certificate.primal, rel=2e-8
    )
    nothing = case.with_(costs=np.zeros(40)).solve(tol=1e-8)
    assert nothing.converged
    assert nothing.certificate == (0.0, 0.0)
    assert not nothing.weights.values.any()


@both_inputs
@pytest.mark.parametrize("n", [1, 2])
def test_few_samples(sparse, n):
    case = make_case(6, sparse=sparse, n=n)
    solution = case.solve(tol=1e-9, max_iter=5000)
    case.check(solution, 1e-9)


@both_inputs
def test_one_class(sparse):
    case = make_case(0, h=Hierarchy.from_edges([], nodes=["only"]), alpha=np.ones(1), sparse=sparse)
    solution = case.solve()
    case.check(solution, 1e-9)
    assert solution.certificate == (0.0, 0.0)
    chain = make_case(0, h=Hierarchy.from_edges([(0, 1), (1, 2)]), alpha=np.array([0.0, 0.5, 0.5]), sparse=sparse)
    chain.check(chain.solve(), 1e-9)


@both_passes
@both_inputs
@pytest.mark.parametrize("dag", [False, True])
@pytest.mark.parametrize("margin", [("hamming", False), ("zero_one", False)])
def test_leaves_without_any_weight(passes, sparse, dag, margin, monkeypatch):
    """α = 0 on whole paths: such a leaf always scores 0, and moving weight to its plane moves the true leaf's path."""
    force_passes(monkeypatch, passes)
    for seed in range(4):
        case = make_case(seed, dag=dag, margin=margin, sparse=sparse)
        alpha = np.ones(case.h.n_nodes)
        alpha[case.h.graph.leaf_ancestors.row(seed % case.h.n_leaves)] = 0.0
        case = make_case(seed, dag=dag, margin=margin, sparse=sparse, alpha=alpha, n=15)
        assert min(case.problem.columns.paths.sizes()) == 0
        solution = case.solve(tol=1e-8, max_iter=5000)
        case.check(solution, 1e-8)
        assert solution.certificate.primal == pytest.approx(case.optimum(), rel=1e-6)


SOME = Hierarchy.from_edges([(f"top{k % 3}", f"leaf{k}") for k in range(9)])  # nodes: three tops, then nine leaves


@pytest.mark.parametrize("kind", ["batch", "cached", "dense", "rows"])
@pytest.mark.parametrize("margin", [("hamming", False), ("zero_one", True)])
@pytest.mark.parametrize("carries", [(0, 1, 2), (0, 1), (3, 5, 6, 9), (0, 6, 9)], ids=str)
def test_paths_of_one_column_that_not_every_leaf_has_for_itself(kind, margin, carries, monkeypatch):
    """Leaves share a column or have none: block steps must not take each for a column of its own."""
    force_passes(monkeypatch, "batch" if kind == "dense" else kind)
    monkeypatch.setattr("nhsvm.engine.storage.TABLE", 0 if kind == "rows" else 2**30)
    alpha = np.zeros(SOME.n_nodes)
    alpha[list(carries)] = 1.0
    for seed in range(3):
        case = make_case(seed, h=SOME, margin=margin, sparse=kind != "dense", alpha=alpha)
        assert case.problem.columns.longest == 1
        case = case.with_(memory=2**24)
        solution = case.solve(tol=1e-8, max_iter=5000)
        assert solution.converged
        assert solution.certificate.primal == pytest.approx(case.optimum(), rel=1e-6)
        if kind != "rows":
            case.check(solution, 1e-8)


@both_passes
@both_inputs
@pytest.mark.parametrize("dag", [False, True])
def test_no_weight_at_all(passes, sparse, dag, monkeypatch):
    """α = 0 everywhere: U has no columns, and the optimum is the sum of the largest losses."""
    force_passes(monkeypatch, passes)
    case = make_case(2, dag=dag, sparse=sparse, alpha=np.zeros(14))
    solution = case.solve(tol=1e-6)
    case.check(solution, 1e-6)
    assert solution.certificate.primal == pytest.approx(case.losses.max(axis=1).sum(), rel=1e-12)


@both_passes
def test_labels_that_nothing_tells_apart(passes, monkeypatch):
    """Eq. 13 with α = 0 at sister leaves."""
    force_passes(monkeypatch, passes)
    h = Hierarchy.from_edges([("a", "x"), ("a", "y"), ("b", "z"), ("b", "w"), ("b", "v")])
    alpha = np.array([0.0 if n in ("x", "y") else 1.0 for n in h.nodes])
    case = make_case(0, h=h, margin=("normalized", True), alpha=alpha, n=60, C=5.0)
    solution = case.solve(tol=1e-8, max_iter=5000)
    case.check(solution, 1e-8)
    assert solution.certificate.primal == pytest.approx(case.optimum(), rel=1e-6)


def test_more_labels_than_a_visit_adds():
    """Few samples of a hundred classes: nearly every wrong leaf is a plane, more than one visit proposes."""
    wide = Hierarchy.from_edges([("hub", i) for i in range(3 * PlanesAscent.tuning.new)])
    case = make_case(
        0, h=wide, alpha=np.r_[0.0, np.ones(3 * PlanesAscent.tuning.new)], margin=("zero_one", False), n=6, d=5
    )
    solution = case.solve(tol=1e-8, max_iter=5000)
    case.check(solution, 1e-8)
    assert solution.dual.count.max() > PlanesAscent.tuning.new


@both_inputs
@pytest.mark.parametrize("most", [0.0, 1e9])  # rows for each leaf, and rows that leaves share
def test_losses_made_batch_by_batch(sparse, most, monkeypatch):
    whole = make_case(7, sparse=sparse, margin=("normalized", True)).solve(tol=1e-6, max_iter=5000)
    monkeypatch.setattr("nhsvm.oracles.leaves.TABLE", 0)
    monkeypatch.setattr("nhsvm.losses.difference.LIMITS", Limits(sharing=most))
    case = make_case(7, sparse=sparse, margin=("normalized", True))
    parts = case.solve(tol=1e-6, max_iter=5000)
    np.testing.assert_array_equal(whole.weights.values, parts.weights.values)


def test_certifying_goes_through_many_chunks(monkeypatch):
    case = make_case(8)
    whole = case.solve(tol=1e-6, n_threads=2)
    monkeypatch.setattr("nhsvm.engine.problem.CHUNK", 50)
    parts = case.solve(tol=1e-6, n_threads=2)
    case.check(parts, 1e-6)
    assert parts.certificate == pytest.approx(whole.certificate, rel=1e-12)


def test_max_iter_ends_the_fit_with_an_honest_gap():
    case = make_case(9, C=100.0)
    for passes in (1, 2, 3):
        solution = case.solve(tol=1e-12, max_iter=passes)
        assert len(solution.history) == passes
        assert not solution.converged
        assert not solution.interrupted
        case.check(solution)
        assert solution.certificate.gap > 1e-12


def test_history_and_callback():
    case = make_case(10, C=10.0)
    seen = []
    solution = case.solve(tol=1e-8, max_iter=5000, callback=lambda record: seen.append(dict(record)))
    assert seen == solution.history
    keys = {"iteration", "seconds", "primal", "dual", "gap", "training_error", "planes", "certified"}
    assert all(set(record) == keys for record in seen)
    assert all(a["seconds"] <= b["seconds"] for a, b in pairwise(seen))
    # labels by score alone, as met during the last pass
    scores = case.X @ case.U(solution).T @ case.paths.T
    assert abs(seen[-1]["training_error"] - np.mean(scores.argmax(axis=1) != case.problem.leaves)) <= 0.1
    assert seen[-1]["planes"] >= (case.a(solution) > 0).sum()


@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_true_callback_ends_the_fit(after):
    case = make_case(11, C=100.0)
    solution = case.solve(tol=1e-12, max_iter=5000, callback=lambda record: record["iteration"] == after)
    assert len(solution.history) == after
    assert not solution.interrupted
    case.check(solution)


def test_no_warnings_and_no_changes_to_the_input():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)).astype(np.float32) * (rng.random((40, 6)) < 0.5)
    y = rng.integers(4, size=40)
    for data in (sp.csr_array(X), X, X.astype(np.float64)):
        before = data.copy()
        parts = lambda m: (m.data, m.indices, m.indptr) if sp.issparse(m) else (m,)
        with warnings.catch_warnings(action="error"):
            FlatSVM(C=3.0, max_iter=5000).fit(data, y)
        for a, b in zip(parts(before), parts(data), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


# -- warm start --------------------------------------------------------------------------------------------------------


@both_passes
@both_inputs
@all_margins
def test_a_solution_is_a_fixed_point(passes, sparse, margin, monkeypatch):
    """From the planes returned, the certificate comes at once: no pass is needed."""
    force_passes(monkeypatch, passes)
    case = make_case(12, sparse=sparse, margin=margin)
    first = case.solve(tol=1e-6, max_iter=5000)
    again = case.solve(first.dual, tol=1e-6)
    (record,) = again.history
    assert record["certified"]
    assert (record["primal"], record["dual"]) == again.certificate == first.certificate
    np.testing.assert_array_equal(again.weights.values, first.weights.values)
    case.check(again, 1e-6)


@both_inputs
def test_path_of_costs(sparse):
    """Planes scaled to the next C: the same optimum as from nothing, in fewer passes over all steps."""
    warm, cold, planes, before = 0, 0, None, None
    for C in (0.5, 1.0, 2.0, 4.0, 8.0):
        case = make_case(13, sparse=sparse, C=C, n=80)
        if planes is not None:
            planes.rescale(np.full(80, C / before))
        solution = case.solve(planes, tol=1e-6, max_iter=5000)
        case.check(solution, 1e-6)
        alone = case.solve(tol=1e-6, max_iter=5000)
        assert solution.certificate.primal == pytest.approx(alone.certificate.primal, rel=2e-6)
        warm, cold = warm + len(solution.history), cold + len(alone.history)
        planes, before = solution.dual, C
    assert warm < cold


def test_warm_start_under_another_loss_and_margin():
    first = make_case(14, margin=("hamming", False))
    planes = first.solve(tol=1e-6).dual
    other = make_case(14, margin=("normalized", True))
    np.testing.assert_array_equal(other.problem.leaves, first.problem.leaves)
    planes.describe(other.problem.leaves, other.problem.oracle)
    solution = other.solve(planes, tol=1e-6, max_iter=5000)
    other.check(solution, 1e-6)


def test_warm_start_when_samples_lose_their_cost():
    """Dual variables scaled to 0 keep their planes, which must not disturb anything."""
    case = make_case(15)
    planes = case.solve(tol=1e-6).dual
    factors = np.where(np.arange(40) % 2, 1.0, 0.0)
    planes.rescale(factors)
    fewer = case.with_(costs=case.problem.costs * factors)
    solution = fewer.solve(planes, tol=1e-6, max_iter=5000)
    fewer.check(solution, 1e-6)
    planes.rescale(np.zeros(40))
    nothing = case.with_(costs=np.zeros(40)).solve(planes, tol=1e-6)
    assert nothing.certificate == (0.0, 0.0)
