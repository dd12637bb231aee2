"""Certificates of label sets on DAGs where bounds are those of the linear relaxation, and are loose."""

import itertools
from functools import partial

import numpy as np
import pytest

from engine.set_problems import objective
from engine.test_relaxed import exact_twin, make, overlapping
from nhsvm import FlatSVM, Hierarchy
from nhsvm.engine import Dual
from nhsvm.engine.label_sets import DagAscent, TreeAscent
from nhsvm.engine.set_certificate import Bounds, SetCertificate, SetTuning, Stage
from nhsvm.objective import dual, penalty
from nhsvm.oracles.brute_force import BruteForce
from nhsvm.oracles.dag.oracle import DagMultilabel
from nhsvm.threads import Team

TOL = 0.03  # bounds alone leave 3.8 %


@pytest.fixture
def sweeps_only(monkeypatch):
    """No oracle that proves what sweeps leave open, as on graphs where that takes too long."""

    class Boundless:
        def __init__(self, oracle):
            self.oracle, self.dtype = oracle, oracle.dtype

        def solve(self, rewards, chosen, value, bound, **remembered):
            self.oracle.solve(rewards, chosen, value, bound, **remembered)
            bound += 1e3

    def stages(self, wrong):
        first = Stage(partial(self.bounded, Boundless(self.oracles[-1]), wrong=wrong), whole=True, anyway=True)
        return [first, Stage(partial(self.bounded, self.problem.oracle.renewal(200)), whole=True)], []

    monkeypatch.setattr(SetCertificate, "stages", stages)


def loose_problem():
    h = overlapping(5, 0)
    problem, X, _ = make(h, C=0.01, n=60, d=2)
    return exact_twin(problem, h), X[:, :-1], h


@pytest.fixture
def exact_optimum():
    """Between these two, with all oracles."""
    return Dual(tol=1e-4, max_iter=3000).solve(loose_problem()[0]).certificate


def run(problem, tol, threads=1, seed=0):
    with Team(threads) as team:
        ascent = Dual(tol=tol, max_iter=400, seed=seed).begin(problem, None, team)
        ascent.run()
    return ascent


def test_weights_near_by_prove_a_smaller_gap(exact_optimum, sweeps_only):
    problem, X, h = loose_problem()
    tried = []
    original = SetCertificate.relaxed

    def spied(self, *more):
        tried.append((self.bounds.proved, original(self, *more)))
        return tried[-1][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SetCertificate, "relaxed", spied)
        ascent = run(problem, TOL)
    before, (after, _) = tried[-1]
    assert after.primal < before.primal
    assert after.dual == before.dual  # that of the exact problem, which the relaxation does not change
    assert ascent.fit.detached
    found = ascent.fit.certificate
    true = objective(problem, X, ascent.weights, BruteForce(h.graph))
    assert found.dual <= exact_optimum.primal * (1 + 1e-9)
    assert exact_optimum.dual * (1 - 1e-9) <= true <= found.primal * (1 + 1e-9)
    # the norms are those of the weights that are given back
    np.testing.assert_allclose(ascent.norms.stored, ascent.weights.column_norms(), rtol=1e-9)


def test_the_next_pass_goes_on_from_the_dual_variables(sweeps_only):
    problem, _, _ = loose_problem()
    with Team(1) as team:
        ascent = Dual(tol=TOL, max_iter=400).begin(problem, None, team)
        ascent.run()
        assert ascent.fit.detached
        moved = ascent.weights.column_norms()
        ascent.options = Dual(tol=1e-9, max_iter=len(ascent.fit.history) + 1)
        ascent.one_pass, seen = (lambda: seen.append(ascent.weights.column_norms()) or ascent.record(0.0)), []
        ascent.run()
        assert not ascent.fit.detached
        ascent.rebuild()
    np.testing.assert_allclose(seen[0], ascent.weights.column_norms(), rtol=1e-9)
    assert not np.allclose(seen[0], moved, rtol=1e-6)


def test_coefficients_of_all_samples_are_made_once_a_certificate(monkeypatch):
    problem, _, _ = loose_problem()
    with Team(1) as team:
        ascent = Dual(tol=1e-9).begin(problem, None, team)
        ascent.one_pass()
        made, beta = [], ascent.dual.beta
        monkeypatch.setattr(ascent.dual, "beta", lambda costs: made.append(beta(costs)) or made[-1])
        ascent.certify()
        assert len(made) == 1
        assert ascent.certified_mass.value == ascent.mass() >= ascent.certified_mass.least


def test_without_a_gain_all_stays_as_it_was(sweeps_only, monkeypatch):
    problem, _, _ = loose_problem()
    original = DagAscent.relaxed_run

    def far_away(self):
        made = original(self)
        made.dual.rescale(np.full(problem.n_samples, 0.2))
        return made

    monkeypatch.setattr(DagAscent, "relaxed_run", far_away)
    with Team(1) as team:
        ascent = Dual(tol=TOL, max_iter=40).begin(problem, None, team)
        ascent.run()
        assert not ascent.converged
        ascent.fit.no_gain = np.inf  # as if it were the first try
        ascent.certify()
        assert ascent.tried
        assert ascent.fit.no_gain < TOL
        alpha = problem.columns.alpha
        assert not ascent.fit.detached
        exactly = dual(penalty(ascent.norms.exact, alpha), ascent.mass())
        assert exactly - 1e-12 <= ascent.fit.certificate.dual <= exactly
        assert ascent.fit.certificate == ascent.bounds.proved


def test_threads_do_not_change_a_bit(sweeps_only):
    one, two = (run(loose_problem()[0], TOL, threads) for threads in (1, 2))
    assert one.fit.detached
    assert one.fit.certificate == two.fit.certificate
    np.testing.assert_array_equal(one.weights.values, two.weights.values)


def test_the_last_oracle_is_queried_where_the_relaxation_does_not_do(sweeps_only, monkeypatch):
    """It is exact on so small a graph, so that the first certificate that is tried proves what is asked for."""
    only_sweeps = SetCertificate.stages

    def stages(self, wrong):
        return only_sweeps(self, wrong)[0], [Stage(self.query(-1))]

    monkeypatch.setattr(SetCertificate, "stages", stages)
    ascent = run(loose_problem()[0], 0.01)
    assert ascent.converged
    assert ascent.tried
    assert not ascent.fit.detached
    np.testing.assert_array_equal(ascent.norms.stored, ascent.norms.exact)


def test_what_was_in_vain_is_not_tried_again_near_by(sweeps_only):
    problem, _, _ = loose_problem()
    tries = []
    original = SetCertificate.relaxed

    def spied(self, *more):
        tries.append(self.bounds.at_least.gap)
        return original(self, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SetCertificate, "relaxed", spied)
        ascent = run(problem, 0.01)
    assert not ascent.converged
    assert len(tries) > 1
    assert all(later <= 0.8 * earlier for earlier, later in itertools.pairwise(tries))


class Known:
    """An oracle that knows the slacks to some precision."""

    def __init__(self, slack, loose):
        self.slack, self.loose, self.queried = slack, loose, []

    def __call__(self, rows):
        self.queried.extend(rows.tolist())
        return self.slack[rows] * (1 - self.loose), self.slack[rows] * (1 + self.loose)


def bounds_of(slack, penalty_value, lower, tol, stages):
    with Team(1) as team:
        found = Bounds(np.ones(len(slack)), penalty_value, lower, tol, 4, team, SetTuning())
        found.tighten(stages)
    return found


def test_bounds_end_when_the_gap_is_proved():
    slack = np.linspace(1.0, 2.0, 40)
    rough, fine, never = (Known(slack, loose) for loose in (0.5, 0.01, 0.0))
    stages = [Stage(rough, whole=True), Stage(fine), Stage(never, doubted=True)]
    found = bounds_of(slack, 0.0, slack.sum() * 0.95, 0.1, stages)
    assert found.proved.gap <= 0.1
    assert len(rough.queried) == 40
    assert fine.queried
    assert not never.queried
    assert (found.least <= slack).all()
    assert (slack <= found.most).all()


def test_bounds_end_when_the_gap_is_known_to_be_too_large():
    slack = np.linspace(1.0, 2.0, 40)
    rough, fine = Known(slack, 0.01), Known(slack, 0.0)
    found = bounds_of(slack, 0.0, slack.sum() * 0.5, 0.1, [Stage(rough, whole=True), Stage(fine)])
    assert found.at_least.gap > 0.1
    assert not fine.queried
    bounds_of(slack, 0.0, slack.sum() * 0.5, 0.1, [Stage(rough, whole=True, anyway=True), Stage(fine)])
    assert fine.queried


def test_a_doubted_oracle_is_given_up_when_it_does_not_help():
    slack = np.linspace(1.0, 2.0, 400)
    rough, vain = Known(slack, 0.3), Known(slack, 0.29)
    bounds_of(slack, 0.0, slack.sum() * 0.99, 0.05, [Stage(rough, whole=True), Stage(vain, doubted=True)])
    assert 0 < len(vain.queried) <= 400 // 10 // 4 + 1


def test_a_modest_one_is_queried_only_if_little_is_needed():
    slack = np.linspace(1.0, 2.0, 40)
    for loose, queried in ((0.06, True), (0.3, False)):
        rough, fine = Known(slack, loose), Known(slack, 0.0)
        bounds_of(slack, 0.0, slack.sum() * 0.99, 0.06, [Stage(rough, whole=True), Stage(fine, modest=True)])
        assert bool(fine.queried) == queried


def test_certificates_have_names():
    found = bounds_of(np.ones(4), 1.0, 2.0, 0.1, [Stage(Known(np.ones(4), 0.0), whole=True)])
    assert found.proved == found.at_least == (pytest.approx(5.0, rel=1e-14), 2.0)
    assert found.proved.primal >= 5.0
    assert found.seen == found.proved.gap


def test_flat_label_sets_on_a_dag_allow_for_the_search(monkeypatch):
    """Their columns nest as on a tree, but the oracle is the search on DAGs, which takes near values for equal."""
    h = Hierarchy.from_edges([("pet", "dog"), ("pet", "cat"), ("hunter", "cat"), ("hunter", "wolf")])
    problem = FlatSVM(h).make_problem(np.eye(3), [{"dog"}, {"cat", "dog"}, {"wolf"}]).solved
    with Team(1) as team:
        ascent = Dual().begin(problem, None, team)
        assert isinstance(ascent, TreeAscent)
        norms = np.ones(problem.columns.n_columns)
        allowed = ascent.slack_errors(norms)
        monkeypatch.setattr(DagMultilabel, "tolerance", 0.0)
        assert (allowed > ascent.slack_errors(norms)).all()
