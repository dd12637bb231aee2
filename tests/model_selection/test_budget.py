"""Searches that end early: time budgets, by a clock of our own, and Ctrl-C, by a callback."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from estimators.problems import TREE, make, make_sets
from nhsvm import NHSVM, FlatSVM
from nhsvm.model_selection import refit_best, search, tune

X, y = make(n_samples=120, noise=3.0)
CS = [0.01, 0.1, 1.0]


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [0.0]
    monkeypatch.setattr(search, "perf_counter", lambda: now[0])
    return now


def ticking(now, seconds):
    """A callback that lets every pass take some time."""

    def callback(record):
        now[0] += seconds

    return callback


def test_what_there_was_no_time_for_is_listed(clock):
    first = tune(NHSVM(TREE), X, y, C=CS[:1], search_tol=None, refit=False).best.passes
    model = NHSVM(TREE, callback=ticking(clock, 1.0))
    found = tune(model, X, y, C=CS, time_budget=first + 1.5, search_tol=None)
    assert [(trial.C, trial.state) for trial in found.records] == [(CS[0], "done"), (CS[1], "out of time")]
    assert found.records[-1].passes == 2
    assert found.records[-1].gap > 1e-3
    assert [one.C for one in found.untried] == CS[1:]  # also the one that was cut short
    assert {one.reason for one in found.untried} == {"time budget"}
    assert found.best is found.records[0]  # came to its end
    assert found.model.gap_ <= 1e-3  # the refit has the time it needs
    assert "out of time" in str(found)
    assert f"not tried to the end (time budget): {len(found.untried)} fit" in str(found)


def test_nothing_but_a_fit_that_was_cut_short(clock):
    found = tune(NHSVM(TREE, callback=ticking(clock, 1.0)), X, y, C=[10], time_budget=0.5, search_tol=None)
    assert [trial.state for trial in found.records] == ["out of time"]
    assert found.best.passes == 1
    assert "WARNING: the best fit did not end as it should (out of time)" in str(found)


def test_every_setting_has_its_share_of_the_time(clock):
    grid = {"weights": ["maxmin", "flat", "uniform"]}
    model = NHSVM(TREE, callback=ticking(clock, 1.0))
    found = tune(model, X, y, grid=grid, C=CS, time_budget=12, search_tol=None, refit=False)
    tried = {trial.shown["weights"] for trial in found.records}
    assert tried == {"maxmin", "flat", "uniform"}
    assert sum(trial.passes for trial in found.records) <= 12 + 3


def test_fits_that_were_cut_short_go_on_if_time_is_left(clock):
    slow = [True]

    def callback(record):
        clock[0] += 10.0 if slow[0] else 0.01

    def progress(trial, made, planned):
        slow[0] = False  # only the first pass of all is slow

    model = NHSVM(TREE, callback=callback)
    grid = {"weights": ["maxmin", "flat"]}
    found = tune(
        model, X, y, grid=grid, C=CS, time_budget=18, search_tol=None, refit=False, progress=progress, patience=None
    )
    whole = tune(NHSVM(TREE), X, y, grid=grid, C=CS, search_tol=None, refit=False, patience=None)
    assert [trial.state for trial in found.records] == ["done"] * 6
    assert not found.untried
    assert [(t.shown, t.C) for t in found.records] == [(t.shown, t.C) for t in whole.records]
    assert all(trial.gap <= 1e-3 for trial in found.records)


def interrupt(record):
    raise KeyboardInterrupt


@pytest.mark.parametrize("data", [(X, y), make_sets(n_samples=60)], ids=["labels", "sets"])
def test_an_interrupted_fit_ends_the_search(data):
    made = []

    def progress(trial, n, planned):
        made.append((n, planned))

    def callback(record):
        if len(made) == 2:
            raise KeyboardInterrupt

    model = NHSVM(TREE, callback=callback)
    found = tune(model, *data, C=CS, grid={"weights": ["maxmin", "flat"]}, progress=progress)
    assert found.interrupted
    assert found.model is None
    assert [trial.C for trial in found.records] == CS[:2]
    assert {one.reason for one in found.untried} == {"interrupted"}
    assert len(found.untried) == 4
    assert made == [(1, 6), (2, 6)]
    assert "INTERRUPTED" in str(found)
    again = refit_best(found, NHSVM(TREE), *data)
    assert again.model.C == found.best.C
    np.testing.assert_array_equal(again.model.coef_, NHSVM(TREE).set_params(**found.best_params).fit(*data).coef_)
    assert again.records == found.records


def test_an_interrupt_between_fits():
    def progress(trial, made, planned):
        raise KeyboardInterrupt

    found = tune(FlatSVM(TREE), X, y, C=CS, progress=progress)
    assert found.interrupted
    assert len(found.records) == 1


def test_an_interrupt_before_anything_has_been_tried():
    with pytest.raises(KeyboardInterrupt):
        tune(FlatSVM(TREE, callback=interrupt), X, y, C=CS)


def test_an_interrupted_refit_is_a_model_with_its_gap():
    found = tune(NHSVM(TREE), X, y, C=[1], refit=False)
    with pytest.warns(ConvergenceWarning, match="interrupted after 1 pass;"):
        again = refit_best(found, NHSVM(TREE, callback=interrupt, tol=1e-8), X, y)
    assert again.interrupted
    assert again.model.gap_ > 1e-8


def test_a_callback_of_the_user_may_end_a_fit():
    found = tune(NHSVM(TREE, callback=lambda record: True), X, y, C=[1], search_tol=None, refit=False)
    assert (found.best.passes, found.best.state) == (1, "gap above tol")
