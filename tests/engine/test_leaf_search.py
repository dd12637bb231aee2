"""Label sets on a DAG of which nothing is remembered: by the leaves that could be of use."""

from dataclasses import replace

import numpy as np
import pytest

from engine.problems import tune
from engine.set_problems import DAG, make, objective
from nhsvm.engine import Dual, storage
from nhsvm.engine.leaf_search import LeafAscent
from nhsvm.engine.set_certificate import SetCertificate
from nhsvm.engine.storage.rows import RowWeights
from nhsvm.objective import Certificate, dual, penalty
from nhsvm.oracles import DagMultilabel
from nhsvm.oracles.brute_force import BruteForce
from nhsvm.threads import Team

both = pytest.mark.parametrize("allow_empty", [False, True])


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch):
    monkeypatch.setattr(DagMultilabel, "remembers", lambda self, n_samples: False)


@both
@pytest.mark.parametrize("sparse", [True, False])
def test_the_gap_closes_and_is_that_of_the_model(allow_empty, sparse):
    problem, X, _ = make(DAG, allow_empty=allow_empty, sparse=sparse)
    solution = Dual(tol=1e-3, max_iter=1000).solve(problem)
    assert solution.converged
    expected = objective(problem, X, solution.weights, BruteForce(DAG.graph, allow_empty=allow_empty))
    assert expected * (1 - 1e-9) <= solution.certificate.primal <= expected * (1 + 1e-3)
    other = Dual(tol=1e-3, max_iter=1000).solve(make(DAG, allow_empty=allow_empty, sparse=sparse)[0])
    assert other.certificate == solution.certificate


@pytest.mark.parametrize("sparse", [True, False])
def test_threads_do_not_change_a_bit(sparse):
    results = []
    for threads in (1, 2, 4):
        problem, _, _ = make(DAG, sparse=sparse, dtype=np.float32, n=100)
        results.append(Dual(tol=1e-2, n_threads=threads).solve(problem))
    for other in results[1:]:
        np.testing.assert_array_equal(other.weights.values, results[0].weights.values)
        assert other.certificate == results[0].certificate
        assert other.history[-1]["training_error"] == results[0].history[-1]["training_error"]


def begun(problem, passes, team):
    ascent = Dual().begin(problem, None, team)
    for _ in range(passes):
        ascent.batch_pass()
    assert isinstance(ascent, LeafAscent)
    return ascent


def exact_slacks(ascent, samples):
    problem = ascent.problem
    scores = np.empty((len(samples), problem.columns.n_columns))
    ascent.weights.scores(samples, scores)
    problem.add_loss(samples, scores)
    best = problem.solved(BruteForce(DAG.graph, allow_empty=problem.oracle.allow_empty), scores)
    return best[1] - problem.true_sums(samples, scores)


@both
@pytest.mark.parametrize("passes", [1, 4])
def test_slacks_are_bounded(allow_empty, passes):
    problem, _, _ = make(DAG, allow_empty=allow_empty, C=1.0)
    samples = np.arange(problem.n_samples)
    with Team(1) as team:
        ascent = begun(problem, passes, team)
        slack = exact_slacks(ascent, samples)
        for stage in range(ascent.n_stages):
            low, high = ascent.query(stage)(samples)
            assert (low <= slack + 1e-9).all()
            assert (high >= slack - 1e-9).all()
        np.testing.assert_allclose(high, slack, atol=1e-5)  # the last goes on until all is proved


def test_true_sets_take_the_place_of_worse_ones(monkeypatch):
    problem, _, _ = make(DAG)
    samples = np.arange(problem.n_samples)
    with Team(1) as team:
        ascent = begun(problem, 2, team)
        few = ascent.few

        def worst(rewards, useful):
            put, value, bound = few.found(rewards, few.useful(rewards))
            return put, value - 100.0, bound

        monkeypatch.setattr(ascent, "searches", (type("Worst", (), {"found": staticmethod(worst)}),))
        layout, slack = ascent.propose(samples, 0.0)
    assert (slack == 0.0).all()
    assert layout.own.sum() == len(problem.truth.indices)  # every true leaf may move


@both
@pytest.mark.parametrize("sparse", [True, False])
def test_steps_know_what_the_batch_before_has_changed(allow_empty, sparse, monkeypatch):
    """Label sets are found before the steps of the batch before, yet gains add up to the dual to the last digits."""
    tune(monkeypatch, LeafAscent, largest_batch=16)
    problem, _, _ = make(DAG, allow_empty=allow_empty, sparse=sparse, C=1.0, n=100)
    with Team(2) as team:
        ascent = begun(problem, 3, team)
        reported = ascent.fit.certificate.dual
        ascent.rebuild()
    exact = dual(penalty(ascent.norms.exact, problem.columns.alpha), ascent.mass())
    assert reported == pytest.approx(exact, rel=1e-9)


def test_near_the_optimum_samples_without_a_gap_are_left_out_but_not_twice(monkeypatch):
    problem, _, _ = make(DAG, C=1.0, n=100)
    with Team(1) as team:
        ascent = begun(problem, 2, team)
        tune(monkeypatch, LeafAscent, settled=0.0)
        every = np.flatnonzero(problem.costs > 0)
        assert np.array_equal(ascent.visited()[0], every)  # far away
        tune(monkeypatch, LeafAscent, settled=1.0)
        ascent.fit.last_gap[:], ascent.fit.last_slack[:] = 1.0, 2.0
        ascent.fit.last_gap[[3, 5, 8]] = 0.0
        tune(monkeypatch, LeafAscent, rest=1e-9)
        visited, slack = ascent.visited()
        assert np.setdiff1d(every, visited).tolist() == [3, 5, 8]
        assert slack == 6.0
        assert np.array_equal(ascent.visited()[0], every)
        tune(monkeypatch, LeafAscent, rest=0.3)
        ascent.batch_pass()
        left_out = np.flatnonzero(ascent.fit.left_out)
        assert 0 < len(left_out) < len(every)
        before = [ascent.dual.levels[i] for i in left_out]
        ascent.batch_pass()  # those are visited now, others may be left out
        assert not ascent.fit.left_out[left_out].any()
        assert all(ascent.dual.levels[i] is not level for i, level in zip(left_out, before, strict=True))


@both
def test_parts_of_the_gap_add_up_to_it(allow_empty):
    problem, _, _ = make(DAG, allow_empty=allow_empty, C=1.0, n=100)
    samples = np.arange(problem.n_samples)
    with Team(1) as team:
        ascent = begun(problem, 3, team)
        ascent.rebuild()
        slack = exact_slacks(ascent, samples)
        found = [ascent.gaps(samples, stage) for stage in range(ascent.n_stages)]
    norms, alpha = ascent.norms, problem.columns.alpha
    primal_value = penalty(norms.stored, alpha) + problem.costs @ slack
    gap = primal_value - dual(penalty(norms.exact, alpha), ascent.mass())
    for least, most in found:
        assert least.sum() <= gap * (1 + 1e-9) <= most.sum() * (1 + 2e-9)
    assert most.min() >= -1e-9
    assert most.sum() == pytest.approx(gap, rel=1e-6)  # the last goes on until all is proved


@pytest.fixture
def some_are_queried(monkeypatch):
    tune(monkeypatch, LeafAscent, sampled=25, many=3)


def test_some_samples_tell_the_gap_at_the_end_of_a_pass(some_are_queried, monkeypatch):
    problem, _, _ = make(DAG, C=1.0, n=100)
    every = np.count_nonzero(problem.costs)
    with Team(1) as team:
        ascent = begun(problem, 3, team)
        before = ascent.fit.certificate
        ascent.sample_gap()
        assert ascent.fit.certificate == before  # far from what is asked for
        tune(monkeypatch, LeafAscent, close=np.inf)
        drawn, parts = [], []
        ask = ascent.gaps

        def noted(samples, *rest):
            drawn.extend(samples)
            parts.append(ask(samples, *rest))
            return parts[-1]

        monkeypatch.setattr(ascent, "gaps", noted)
        ascent.sample_gap()
    assert len(set(drawn)) == 25
    least, most = np.concatenate(parts, axis=1)
    assert ascent.fit.certificate.dual == before.dual
    assert ascent.fit.certificate.primal - before.dual == pytest.approx(every * least.mean())
    assert ascent.fit.history[-1]["gap"] == ascent.fit.certificate.gap
    bound = every * (most.mean() + most.std() / 5)
    assert ascent.fit.provable == pytest.approx(bound / (before.dual + bound))
    tune(monkeypatch, LeafAscent, many=1000)
    known = ascent.fit.certificate
    ascent.sample_gap()
    assert ascent.fit.certificate == known  # a certificate would take no longer


@pytest.mark.parametrize(
    ("provable", "gap", "postponed", "tried"),
    [
        (0.0, 0.9, np.inf, True),
        (1.0, 0.9, np.inf, True),  # it would succeed
        (1.1, 0.9, np.inf, False),
        (1.1, 0.6, np.inf, True),  # what is left has to be proved by others
        (1.1, 0.9, 0.95, True),  # passes do not lead there
        (1.1, 0.8, 0.95, False),
    ],
)
def test_a_certificate_in_vain_is_postponed(provable, gap, postponed, tried, monkeypatch):
    problem, _, _ = make(DAG, C=1.0, n=100)
    asked = []
    monkeypatch.setattr(SetCertificate, "try_certificate", lambda self: asked.append(self))
    with Team(1) as team:
        ascent = begun(problem, 1, team)
        tol = ascent.options.tol
        ascent.fit.provable, ascent.fit.postponed = provable * tol, postponed * tol
        ascent.fit.certificate = Certificate(1.0, 1.0 - gap * tol)
        ascent.try_certificate()
    assert asked == ([ascent] if tried else [])
    assert ascent.fit.postponed == pytest.approx(postponed * tol if tried else gap * tol)


@both
def test_the_gap_closes_where_some_are_queried(some_are_queried, allow_empty, monkeypatch):
    """And the same bits come out for any number of threads."""
    results, asked = [], []
    ask = LeafAscent.gaps
    monkeypatch.setattr(LeafAscent, "gaps", lambda *given: asked.append(len(given[1])) or ask(*given))
    tune(monkeypatch, LeafAscent, nearer=0.0)  # as with weights in rows
    for threads in (1, 2):
        problem, X, _ = make(DAG, allow_empty=allow_empty, n=100)
        results.append(Dual(tol=1e-2, n_threads=threads).solve(problem))
    assert sum(asked) >= 50
    assert results[0].converged
    assert results[0].certificate == results[1].certificate
    np.testing.assert_array_equal(results[0].weights.values, results[1].weights.values)
    expected = objective(problem, X, results[1].weights, BruteForce(DAG.graph, allow_empty=allow_empty))
    assert expected * (1 - 1e-9) <= results[1].certificate.primal <= expected * (1 + 1e-2)


def test_samples_that_cost_nothing():
    problem, _, _ = make(DAG)
    solution = Dual(tol=1e-3).solve(replace(problem, costs=np.zeros(problem.n_samples)))
    assert solution.certificate.primal == 0.0


@both
def test_leaves_that_rise_are_those_that_a_cell_gains_by(allow_empty):
    problem, _, _ = make(DAG, allow_empty=allow_empty, C=1.0)
    samples = np.arange(20)
    with Team(1) as team:
        ascent = begun(problem, 2, team)
    rewards = np.empty((20, problem.columns.n_columns))
    ascent.weights.scores(samples, rewards)
    problem.add_loss(samples, rewards)
    state, paths = ascent.dual, problem.columns.paths
    every = np.tile(np.arange(problem.columns.n_leaves, dtype=np.int32), 20)
    indptr, rising = state.rising(samples, rewards, (np.arange(21) * problem.columns.n_leaves, every))
    for i in samples:
        expected = set(state.leaves[i].tolist())
        for cell in np.split(state.leaves[i], np.cumsum(state.sizes[i])[:-1]):
            held = np.zeros(problem.columns.n_columns, bool)
            for leaf in cell:
                held[paths.row(leaf)] = True
            rises = [rewards[i][paths.row(k)][~held[paths.row(k)]].sum() for k in range(problem.columns.n_leaves)]
            expected |= set(np.flatnonzero(np.array(rises) > 0.0).tolist())
        assert rising[indptr[i] : indptr[i + 1]].tolist() == sorted(expected)


def test_errors_are_counted(monkeypatch):
    tune(monkeypatch, LeafAscent, counted=1)
    problem, _, _ = make(DAG, C=1.0)
    samples = np.arange(problem.n_samples)
    with Team(2) as team:
        ascent = begun(problem, 3, team)
        scores = np.empty((len(samples), problem.columns.n_columns))
        ascent.weights.scores(samples, scores)
        chosen = problem.solved(BruteForce(DAG.graph), scores + problem.offsets)[0]
        wrong = problem.differ(samples, chosen).sum()
        assert ascent.errors(np.empty(0)) == pytest.approx(wrong, abs=1)  # found quickly
    assert 0 < wrong < len(samples)


@both
def test_weights_in_rows_learn_the_same(allow_empty, monkeypatch):
    table = Dual(tol=1e-3, max_iter=1000).solve(make(DAG, allow_empty=allow_empty, sparse=True, n=100)[0])
    monkeypatch.setattr(storage, "TABLE", 0)
    rows = []
    for threads in (1, 2):
        problem, _, _ = make(DAG, allow_empty=allow_empty, sparse=True, n=100, memory=2**24)
        rows.append(Dual(tol=1e-3, max_iter=1000, n_threads=threads).solve(problem))
    assert all(isinstance(solution.weights, RowWeights) for solution in rows)
    assert rows[0].converged
    assert rows[0].certificate == rows[1].certificate
    assert rows[0].certificate.primal == pytest.approx(table.certificate.primal, rel=2e-3)
    assert rows[0].certificate.dual <= table.certificate.primal
