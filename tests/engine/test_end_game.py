"""The end game of small problems, and fits that are given up: against a conic solver, brute force and its own proof."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine, make_classification

from engine.problems import MARGINS, make_case, tune
from nhsvm import NHSVM, SSVM
from nhsvm.engine.ascent import passes_left
from nhsvm.engine.dual.planes import Planes
from nhsvm.engine.end_game import EndGame, Path, Small, expected, play
from nhsvm.engine.single_label import PlanesAscent

AT_ONCE = EndGame(passes=1, worth=0.0, product=0.0, entry=0.0, step=0.0)
NEVER = EndGame(passes=10**9)


def uneven_case(seed, **more):
    """A case whose columns have very different scales."""
    rng = np.random.default_rng(seed)
    case = make_case(seed, **more)
    scales = 10.0 ** rng.uniform(-1.0, 2.0, case.problem.X.shape[1])
    X = case.problem.X
    return case.with_(X=sp.csr_array(X @ sp.diags_array(scales)) if sp.issparse(X) else X * scales)


def found_by(case, tol=1e-9):
    """(planes, dual) of the end game alone."""
    played = play(case.problem, tol, AT_ONCE)
    planes = Planes(case.problem.n_samples)
    planes.add(played.samples, played.planes)
    return planes, played.dual


@pytest.fixture
def games(monkeypatch):
    """The fits that came to an end game."""
    played = []
    original = PlanesAscent.end_game

    def counted(self):
        played.append(len(self.fit.history))
        original(self)

    monkeypatch.setattr(PlanesAscent, "end_game", counted)
    return played


@pytest.mark.parametrize("seed", range(16))
def test_against_a_conic_solver(seed, monkeypatch, games):
    """Trees and DAGs, every loss, Eq. 13, sparse and dense, more features than samples, costs with zeros among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 25))
    costs = rng.random(n) * rng.choice([0.0, 0.3, 1.0, 20.0], size=n)
    case = uneven_case(
        seed, dag=seed % 2 == 1, margin=MARGINS[seed // 2 % 4], sparse=seed % 3 > 0, n=n, d=int(rng.integers(2, 40)),
        n_nodes=int(rng.integers(4, 14)), C=costs, bias=float(rng.choice([0.0, 1.0])),
    )  # fmt: skip
    tune(monkeypatch, PlanesAscent, end=AT_ONCE)
    solution = case.solve(tol=1e-7, max_iter=3)
    assert games == [1] or len(solution.history) == 1
    case.check(solution, 1e-7)
    optimum = case.optimum()
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-6, abs=1e-7)
    assert solution.certificate.dual == pytest.approx(optimum, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("margin", MARGINS, ids=str)
@pytest.mark.parametrize("dag", [False, True])
def test_small_is_the_same_problem(margin, dag):
    """Objective, dual and gap of random dual variables are those of the definitions; W has the norm that U has."""
    case = make_case(3, dag=dag, margin=margin, n=12, C=np.linspace(0.5, 2.0, 12))
    small = Small.of(case.problem, np.arange(12))
    a = np.random.default_rng(0).random(small.losses.shape)
    a *= (small.costs / a.sum(axis=1))[:, None]
    paths, X = case.paths, case.X
    U = np.zeros((case.h.n_nodes, X.shape[1]))
    mass = 0.0
    for i, y in enumerate(case.problem.leaves):
        for leaf, loss in enumerate(case.losses[i]):
            scale = 0.0 if case.normalized and loss == 0 else 1.0 / loss if case.normalized else 1.0
            U += a[i, leaf] * scale * np.outer(case.alpha * (paths[y] - paths[leaf]), X[i])
            mass += a[i, leaf] * ((loss > 0) if case.normalized else loss)
    has = case.alpha > 0
    penalty = 0.5 * float(((U**2).sum(axis=1)[has] / case.alpha[has]).sum())
    scores = X @ U.T @ paths.T
    upper = penalty
    for i, y in enumerate(case.problem.leaves):
        slack = 0.0
        for leaf, loss in enumerate(case.losses[i]):
            difference = scores[i, leaf] - scores[i, y]
            if case.normalized:
                slack = max(slack, 1.0 + difference / loss if loss > 0 else 0.0)
            else:
                slack = max(slack, loss + difference)
        upper += case.problem.costs[i] * slack
    W = small.weights(a)
    assert 0.5 * np.vdot(W, W) == pytest.approx(penalty, rel=1e-10)
    assert small.values(W, a) == pytest.approx((upper, mass - penalty), rel=1e-10)


def test_steps_keep_to_the_constraints():
    """Of a Newton step: changes of a sample's variables add up to zero, and products are linearised."""
    case = uneven_case(5, n=15, margin=("normalized", True))
    path = Path(Small.of(case.problem, np.flatnonzero(case.problem.costs > 0)))
    p = path.start()
    product = path.products(p)
    assert (product.max(axis=1) / product.min(axis=1)).max() <= 3.0 + 1e-9  # near the central path
    by = path.newton(p, product)(0.5 * product.mean(), 0.0)
    assert np.abs(by.a.sum(axis=1)).max() <= 1e-12 * np.abs(by.a).max()
    np.testing.assert_allclose(p.a * by.room + p.room * by.a, 0.5 * product.mean() - product, rtol=1e-6)
    np.testing.assert_allclose(by.W, path.small.weights(by.a), rtol=1e-6, atol=1e-9 * np.abs(by.W).max())
    room = by.slack[:, None] + path.small.margins(by.W)
    np.testing.assert_allclose(by.room, room, rtol=1e-9, atol=1e-9 * np.abs(room).max())


def test_features_as_they_come(games):
    """Wine, and classes whose features are a thousand times too large: a few passes, and a gap that is proved."""
    many, labels = make_classification(300, 20, n_informative=8, n_classes=6, random_state=0)
    for X, y in (load_wine(return_X_y=True), (many * 1000.0, labels)):
        for data in (X, sp.csr_array(X)):
            games.clear()
            model = NHSVM(C=1, tol=1e-3).fit(data, y)
            assert model.gap_ <= 1e-3
            assert games == [model.n_iter_]  # it came after a few passes, and was the end
            assert model.n_iter_ < 20
            assert model.history_[-1]["certified"]


def test_same_fit_for_any_number_of_threads_and_after_a_warm_start(games):
    X, y = load_wine(return_X_y=True)
    one, two = (NHSVM(C=1, tol=1e-3, n_jobs=n, warm_start=True).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.objective_ == two.objective_
    assert one.set_params(tol=1e-2).fit(X, y).n_iter_ == 1  # the variables of the first are good enough as they are


def test_fits_that_fall_do_not_come_to_it(games):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert NHSVM(C=1, tol=1e-3).fit(X, y).gap_ <= 1e-3
    assert not games


def test_learned_weights_have_none(monkeypatch, games):
    tune(monkeypatch, PlanesAscent, end=AT_ONCE)
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert SSVM(C=0.1, tol=1e-2).fit(X, y).gap_ <= 1e-2
    assert not games


def test_what_is_too_large():
    how = EndGame()
    case = make_case(0, n=30, d=6)
    needed = expected(case.problem, how)
    assert 0 < needed < 1
    assert expected(case.problem, replace(how, most_unknown=2)) == np.inf
    assert expected(case.problem, replace(how, most_numbers=100)) == np.inf
    assert expected(case.with_(costs=np.zeros(30)).problem, how) == np.inf
    more = make_case(0, n=60, d=6)
    assert expected(more.problem, how) > needed


def test_variables_that_are_worse_are_not_taken(monkeypatch, games):
    """Whatever a method finds, the dual never falls."""
    tune(monkeypatch, PlanesAscent, end=AT_ONCE)
    case = uneven_case(2, n=20)
    found, _ = found_by(case)
    assert found.n_planes > 0
    monkeypatch.setattr("nhsvm.engine.single_label.play", lambda *args: play(*args)._replace(dual=-1.0))
    solution = case.solve(tol=1e-5, max_iter=3)
    assert games == [1]
    duals = [record["dual"] for record in solution.history]
    assert duals == sorted(duals)
    case.check(solution)


# -- fits that are given up --------------------------------------------------------------------------------------------


def left(gaps, goal):
    """The same for gaps below a dual that stays."""
    return passes_left([(1.0 / (1.0 - gap), 1.0) for gap in gaps], goal)


def test_passes_left():
    assert left([0.5], 1e-3) == np.inf
    assert left([0.2] * 100, 1e-3) == np.inf
    assert left([0.2, 0.1, 1e-4], 1e-3) == 0
    halved = 1.0 - np.exp(-(0.5 ** np.arange(12.0)))  # log(primal/dual) is halved by every pass
    assert left(halved, 0.5**20) == pytest.approx(20 - 11, rel=1e-6)
    grows = [(1.0, 2.0 ** (k - 40.0)) for k in range(20)]  # near a gap of 1 a dual that is doubled counts
    assert passes_left(grows, 1e-3) < 1000
    assert left([1.0 / k for k in range(2, 101)], 1e-4) < 1000


def test_passes_left_with_noise():
    noisy = 0.1 * 0.98 ** np.arange(100.0) * np.random.default_rng(0).choice([0.1, 1.0, 3.0], size=100)
    assert 10 < left(noisy, 1e-4) < 1000
    noisy[10] = 1e-3  # an estimate that was too good
    assert 10 < left(noisy, 1e-4) < 1000


def test_passes_left_on_a_plateau():
    """The estimated gap stays, but the dual grows: it is a matter of as many passes as take it to the primal."""
    assert passes_left([(2.0, 1.0 + 0.001 * k) for k in range(100)], 1e-3) == pytest.approx(901)


def test_a_fit_that_stagnates_is_given_up(monkeypatch):
    tune(monkeypatch, PlanesAscent, end=NEVER, patience=20)
    X, y = make_classification(40, 10, n_informative=6, n_classes=4, random_state=0)
    model = NHSVM(C=1, tol=1e-3, max_iter=400)
    with pytest.warns(match="further passes hardly help; the samples are long"):
        model.fit(X * 1e5, y)
    assert 20 <= model.n_iter_ < 400
    assert model.gap_ > 1e-3
    assert model.history_[-1]["certified"]
