"""Fits that end before tol is reached, and prove no gap."""

import warnings
from dataclasses import replace
from pkgutil import resolve_name

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from estimators.test_memory import SETS, X_TEST, H, X, y
from nhsvm import HRSVM, HSVM, NHSVM, SSVM, FlatSVM, load
from nhsvm.engine import Dual, Sgd, Solver
from nhsvm.engine import storage as solver_memory
from nhsvm.engine.storage.rows import RowWeights
from nhsvm.errors import OptionError
from nhsvm.objective import Certificate

KINDS = [FlatSVM, HSVM, NHSVM, SSVM, HRSVM]


def fitted(kind=NHSVM, targets=y, **options):
    with pytest.warns(ConvergenceWarning) as caught:
        model = kind(H, **{"tol": 1e-7, "max_iter": 2} | options).fit(X, targets)
    return model, str(caught[-1].message)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("targets", [y, SETS], ids=["one", "several"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_model_without_its_proof(kind, targets, rows, monkeypatch):
    if rows:
        monkeypatch.setattr(solver_memory, "TABLE", 0)
    proved, _ = fitted(kind, targets)
    found, said = fitted(kind, targets, certify=False)
    assert proved.gap_ < 1
    assert (proved.certified_, found.certified_) == (True, False)
    last = found.history_[-1]
    assert (found.objective_, found.dual_objective_, found.gap_) == (last["primal"], last["dual"], last["gap"])
    assert proved.history_[-1]["certified"]
    assert not any(record["certified"] for record in found.history_)
    assert 0 < found.history_[-1]["gap"] < np.inf
    assert found.n_iter_ == 2
    assert f"stopped after 2 passes at an estimated gap of {found.gap_:.2g}, above tol=1e-07" in said
    dense = [np.asarray(m.coef_.toarray() if rows else m.coef_) for m in (proved, found)]
    np.testing.assert_allclose(dense[1], dense[0], rtol=1e-9, atol=1e-9)  # made anew for the proof
    np.testing.assert_allclose(found.decision_function(X_TEST), proved.decision_function(X_TEST), atol=1e-8)


@pytest.mark.parametrize("bulky", [False, True])
def test_rows_that_are_too_much_for_a_copy_are_made_anew(bulky, monkeypatch):
    monkeypatch.setattr(solver_memory, "TABLE", 0)
    monkeypatch.setattr(RowWeights, "bulky", bulky)
    made = []
    rebuild = RowWeights.rebuild
    monkeypatch.setattr(RowWeights, "rebuild", lambda self, *args: made.append(1) or rebuild(self, *args))
    fitted(max_iter=1, certify=False)
    assert len(made) == bulky


def test_threads_give_the_same_bits_near_the_limit(monkeypatch):
    """Whether rows are made anew does not depend on the gaps that threads have left between them."""
    monkeypatch.setattr(solver_memory, "TABLE", 0)
    made = []
    rebuild = RowWeights.rebuild
    monkeypatch.setattr(RowWeights, "rebuild", lambda self, *args: made.append(self) or rebuild(self, *args))
    asked = []
    bulky = RowWeights.bulky.fget
    monkeypatch.setattr(RowWeights, "bulky", property(lambda self: asked.append(self.rows.roomy) or bulky(self)))
    fitted(max_iter=1, certify=False)
    (room,) = asked
    for limit, times in ((int(2.4 * room), 1), (int(2.6 * room), 0)):
        models = []
        for jobs in (1, 2, 3):
            made.clear()
            models.append(fitted(max_iter=1, certify=False, n_jobs=jobs, memory_limit=limit)[0])
            assert len(made) == times
        for other in models[1:]:
            assert (models[0].coef_ != other.coef_).nnz == 0


@pytest.mark.parametrize(
    ("certify", "place"),
    [(True, "engine.problem.SingleLabelProblem.slacks"), (False, "engine.storage.rows.RowWeights.rebuild")],
)
def test_an_interrupt_after_the_last_pass_leaves_a_model(certify, place, monkeypatch):
    monkeypatch.setattr(solver_memory, "TABLE", 0)
    monkeypatch.setattr(RowWeights, "bulky", True)
    calls, original = [], resolve_name(f"nhsvm.{place}")

    def pressed(*args):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(f"nhsvm.{place}", pressed)
    model, said = fitted(max_iter=1, certify=certify)
    assert len(calls) == 2
    assert "interrupted after 1 pass; this model's certified gap is" in said
    assert model.gap_ < 1


def test_a_tolerance_that_is_reached_is_estimated_only():
    model = NHSVM(H, tol=1e-2, certify=False).fit(X, y)
    assert model.gap_ <= 1e-2
    assert not model.certified_
    assert not model.history_[-1]["certified"]


def test_weights_that_were_learned_are_those_of_the_model():
    """A shared model without a proof has the weights that its last passes had, which are allowed."""
    model, _ = fitted(SSVM, max_iter=30, tol=1e-12, certify=False)
    alpha = model.node_weights_
    paths = model.hierarchy_.graph.leaf_matrix().toarray()
    assert (paths @ alpha <= 1 + 1e-9).all()
    assert np.ptp(alpha) > 1e-3
    proved, _ = fitted(SSVM, max_iter=30, tol=1e-12)
    np.testing.assert_allclose(alpha, proved.node_weights_, atol=0.1)


def test_a_callback_may_end_it():
    model, said = fitted(max_iter=100, certify=False, callback=lambda record: record["iteration"] == 3)
    assert model.n_iter_ == 3
    assert not model.certified_
    assert "stopped after 3 passes" in said


def test_an_interrupt_is_proved():
    def pressed(record):
        raise KeyboardInterrupt

    model, said = fitted(max_iter=100, certify=False, callback=pressed)
    assert "interrupted after 1 pass; this model's certified gap is" in said
    assert model.gap_ < 1


def test_a_fit_goes_on_from_one_without_a_proof():
    model, _ = fitted(certify=False, warm_start=True, max_iter=1)
    model.set_params(tol=1e-3, max_iter=100).fit(X, y)
    assert model.gap_ <= 1e-3
    alone = NHSVM(H, tol=1e-3).fit(X, y)
    assert model.objective_ == pytest.approx(alone.objective_, rel=2e-3)


@pytest.mark.parametrize("targets", [y, SETS], ids=["one", "several"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_warm_start_without_a_proof_estimates_the_gap_of_what_it_goes_on_from(kind, targets):
    """Its dual is that of the variables it was given: estimates are near the gap that a certificate finds."""
    model, _ = fitted(kind, targets, certify=False, warm_start=True, tol=1e-14, max_iter=8)
    model.set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, targets)
    assert not any(record["certified"] for record in model.history_)
    exact = kind(H, tol=1e-6).fit(X, targets).objective_
    last = model.history_[-1]
    assert last["dual"] <= exact * (1 + 1e-6)
    assert last["dual"] == pytest.approx(exact, rel=0.05)
    assert last["primal"] >= exact * 0.95


def test_files(tmp_path):
    model, _ = fitted(certify=False)
    model.save(tmp_path / "model.nhsvm")
    again = load(tmp_path / "model.nhsvm")
    assert not again.certified_
    assert (again.gap_, again.objective_) == (model.gap_, model.objective_)
    assert again.certify is False
    np.testing.assert_array_equal(again.predict(X_TEST), model.predict(X_TEST))


def test_a_solver_has_its_own():
    solver = Dual(tol=1e-7, max_iter=2, certify=False)
    assert not fitted(solver=solver)[0].certified_
    assert fitted(solver=Dual(tol=1e-7, max_iter=2), certify=False)[0].certified_


def test_a_solver_that_measures_nothing_is_not_blamed_on_certify():
    class Silent(Solver):
        def solve(self, problem, state=None):
            return replace(Sgd(max_iter=1).solve(problem), certificate=Certificate(np.nan, np.nan), converged=True)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NHSVM(H, solver=Silent()).fit(X, y)
    assert model.gap_ == np.inf
    assert not model.certified_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"certify": 1}, "certify must be True, False or 'auto', not 1"),
        ({"certify": "no"}, "certify must be True, False or 'auto', not 'no'"),
        ({"certify": False, "solver": "sgd"}, "certify=False goes with solver='dual'"),
    ],
)
def test_what_it_may_be(options, message):
    with pytest.raises(OptionError, match=message):
        NHSVM(H, **options).fit(X, y)
