"""Fits that prove nothing and may end far from the optimum: less work a visit, and the dual as feasible as ever."""

from dataclasses import replace

import numpy as np
import pytest

from engine.problems import force_passes, make_case, same_bits
from engine.set_problems import DAG, make, objective
from nhsvm.engine import Dual
from nhsvm.engine.label_sets import DagAscent
from nhsvm.engine.leaf_search import LeafAscent
from nhsvm.engine.single_label import ROUGH, PlanesAscent
from nhsvm.oracles.brute_force import BruteForce
from nhsvm.threads import Team

ROUGHLY = {"tol": 0.3, "certify": False}


def case_of(**changes):
    return make_case(3, **{"sparse": True, "n": 301, "d": 37, "n_nodes": 23, "C": 0.1} | changes)


def started(case, **options):
    """The run, before its first pass."""
    with Team(1) as team:
        return Dual(**options).begin(case.problem, None, team)


@pytest.mark.parametrize("passes", ["batch", "cached"])
@pytest.mark.parametrize("dag", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_its_dual_variables_are_feasible_and_can_be_proved_and_improved(passes, dag, sparse, monkeypatch):
    force_passes(monkeypatch, passes)
    case = case_of(dag=dag, sparse=sparse)
    rough = case.solve(**ROUGHLY)
    assert rough.converged
    case.a(rough)  # checks that they are feasible
    assert case.recomputed(rough).dual == pytest.approx(rough.certificate.dual, rel=1e-6)
    proved = case.solve(rough.dual, tol=1e-6)
    case.check(proved, 1e-6)
    assert case.optimum() == pytest.approx(proved.certificate.primal, rel=1e-5)


@pytest.mark.parametrize("passes", ["batch", "cached"])
def test_any_number_of_threads_gives_the_same_bits(passes, monkeypatch):
    force_passes(monkeypatch, passes)
    case = case_of(dtype=np.float32)
    one, two, three = (case.solve(**ROUGHLY, n_threads=k) for k in (1, 2, 3))
    assert len(one.history) > 1
    same_bits(one, two)
    same_bits(one, three)


def test_a_visit_adds_few_labels():
    case = case_of(n_nodes=60, n=600)
    assert started(case, **ROUGHLY).tuning is ROUGH
    rough, usual = (case.solve(max_iter=1, certify=False, tol=tol) for tol in (ROUGHLY["tol"], 1e-3))
    assert rough.dual.count.max() <= ROUGH.new < usual.dual.count.max()


def test_only_if_nothing_is_to_be_proved_and_samples_are_many():
    case = case_of()
    usual = PlanesAscent.tuning
    assert started(case, tol=0.3).tuning is usual
    assert started(case, tol=0.05, certify=False).tuning is usual
    few = usual.many * case.problem.columns.n_leaves - 1
    problem = case.problem
    some = replace(problem, X=problem.X[:few], leaves=problem.leaves[:few], costs=problem.costs[:few])
    assert started(replace(case, problem=some), **ROUGHLY).tuning is usual
    rows = case.with_(memory=2**12)
    assert rows.problem.weights().needs_addresses
    assert started(rows, **ROUGHLY).tuning is usual  # weights in rows have constants of their own


# -- label sets on a DAG -----------------------------------------------------------------------------------------------


def kind_of_sets(**options):
    problem, _, _ = make(DAG)
    with Team(1) as team:
        run = Dual(**options).begin(problem, None, team)
    return type(run), run.tuning.sweeps


def test_label_sets_are_found_by_candidate_leaves():
    how = LeafAscent.tuning
    assert kind_of_sets(**ROUGHLY) == (LeafAscent, how.rough_sweeps)
    assert how.rough_sweeps < how.sweeps
    for options in ({"tol": 0.3}, {"tol": 0.2, "certify": False}):
        assert kind_of_sets(**options) == (DagAscent, DagAscent.tuning.sweeps)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("allow_empty", [True, False])
def test_marginals_are_feasible_and_can_be_proved_and_improved(sparse, allow_empty):
    problem, X, _ = make(DAG, allow_empty=allow_empty, sparse=sparse, n=100)
    rough = Dual(**ROUGHLY).solve(problem)
    assert rough.converged
    least = rough.certificate.dual
    proved = Dual(tol=1e-3, max_iter=1000).solve(problem, rough.dual)
    assert proved.converged
    expected = objective(problem, X, proved.weights, BruteForce(DAG.graph, allow_empty=allow_empty))
    assert expected * (1 - 1e-9) <= proved.certificate.primal <= expected * (1 + 1e-3)
    assert least <= proved.certificate.primal
    fresh = Dual(tol=1e-3, max_iter=1000).solve(make(DAG, allow_empty=allow_empty, sparse=sparse, n=100)[0])
    assert fresh.certificate.dual * (1 - 2e-3) <= proved.certificate.dual <= fresh.certificate.primal


def test_any_number_of_threads_gives_the_same_bits_of_label_sets():
    found = []
    for threads in (1, 2, 3):
        problem, _, _ = make(DAG, dtype=np.float32, n=100)
        found.append(Dual(**ROUGHLY, n_threads=threads).solve(problem))
    assert len(found[0].history) > 1
    for other in found[1:]:
        np.testing.assert_array_equal(other.weights.values, found[0].weights.values)
        assert other.certificate == found[0].certificate
