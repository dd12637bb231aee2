"""Interrupts, threads and forks."""

import multiprocessing
import signal
import sys
import threading
import time
import warnings
from pkgutil import resolve_name

import numpy as np
import pytest

from engine.problems import force_passes, make_case, same_bits
from nhsvm.threads import Team

# what is interrupted, and by which passes it is met
PLACES = {
    "nhsvm.engine.dual.planes.batch_kernel": ("batch", "cached"),
    "nhsvm.engine.dual.planes._store_kernel": ("batch", "cached"),
    "nhsvm.engine.dual.planes.pointers": ("cached",),
    "nhsvm.engine.dual.planes._coefficients_kernel": ("batch", "cached"),
    "nhsvm.engine.dual.planes._keep_kernel": ("cached",),
    "nhsvm.engine.storage.table._sparse_apply_kernel": ("batch", "cached"),
    "nhsvm.engine.samples._gram_kernel": ("batch", "cached"),
    "nhsvm.engine.storage.table._rebuild_kernel": ("batch", "cached"),
    "nhsvm.engine.storage.table.SparseWeights.working_set_passes": ("cached",),
    "nhsvm.oracles.leaves._propose_kernel": ("batch", "cached"),
    "nhsvm.oracles.leaves._slacks_kernel": ("batch", "cached"),
}
CERTIFYING = ("_coefficients_kernel", "_rebuild_kernel", "_slacks_kernel")  # met once if the first certificate will do
CASES = [
    (place, passes, call)
    for place, kinds in PLACES.items()
    for passes in kinds
    for call in ((1,) if passes == "cached" and place.endswith(CERTIFYING) else (1, 2))
]


def interrupt(monkeypatch, place, call, after):
    """Press Ctrl-C at the given call of a kernel, before or after it has done its work."""
    original = resolve_name(place)
    calls = []

    def pressed(*args):
        calls.append(1)
        if len(calls) != call:
            return original(*args)
        if after:
            original(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(place, pressed)
    return calls


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("place", "passes", "call"), CASES)
def test_an_interrupt_anywhere_leaves_an_honest_model(place, passes, call, after, monkeypatch):
    force_passes(monkeypatch, passes)
    case = make_case(0, C=30.0, n=60, n_nodes=30, d=12)
    calls = interrupt(monkeypatch, place, call, after)
    solution = case.solve(tol=1e-9, max_iter=2000)
    assert len(calls) >= call
    assert solution.interrupted
    case.check(solution)
    case.a(solution)
    known = [record["dual"] for record in solution.history]
    if known:  # what had been reached is kept
        assert solution.certificate.dual >= known[-1] - 1e-9 * abs(known[-1])


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", [1, 3])
@pytest.mark.parametrize("place", ["addresses.address_kernel", "rows.row_pass_kernel"])
def test_an_interrupt_of_passes_over_rows(place, call, after, monkeypatch):
    monkeypatch.setattr("nhsvm.engine.storage.TABLE", 0)
    case = make_case(0, C=30.0, n=60, n_nodes=30, d=12)
    calls = interrupt(monkeypatch, f"nhsvm.engine.storage.{place}", call, after)
    solution = case.with_(memory=2**24).solve(tol=1e-9, max_iter=2000)
    assert len(calls) >= call
    assert solution.interrupted
    case.a(solution)  # feasible
    assert 0 <= solution.certificate.gap < 1
    again = case.solve(solution.dual, tol=1e-5, max_iter=5000)
    case.check(again, 1e-5)
    assert solution.certificate.dual <= again.certificate.primal * (1 + 1e-9)
    assert solution.certificate.primal >= again.certificate.dual * (1 - 1e-9)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("iteration", [1, 3])
@pytest.mark.parametrize("sparse", [True, False])
def test_an_interrupt_in_the_callback(threads, iteration, sparse):
    def press(record):
        if record["iteration"] == iteration:
            raise KeyboardInterrupt

    case = make_case(1, sparse=sparse, C=30.0)
    solution = case.solve(tol=1e-9, n_threads=threads, callback=press)
    assert solution.interrupted
    assert len(solution.history) == iteration
    case.check(solution)
    # and it can go on from there
    again = case.solve(solution.dual, tol=1e-5, max_iter=5000)
    case.check(again, 1e-5)


def test_other_errors_are_not_swallowed():
    def fail(record):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_case(2).solve(callback=fail)


# -- teams -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 101])
def test_a_team_shares_the_whole_range(size, n):
    done = np.zeros(n, int)

    def work(lo, hi):
        done[lo:hi] += 1

    with Team(size) as team:
        team.split(n, work)
    assert (done == 1).all()


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 101])
def test_a_team_takes_every_item_once(size, n):
    done = np.zeros(n, int)

    def work(k):
        time.sleep(0.001 * (k % 3))
        done[k] += 1

    with Team(size) as team:
        team.each(n, work)
    assert (done == 1).all()


@pytest.mark.parametrize("size", [1, 2])
def test_after_an_error_no_further_item_is_begun(size):
    """All items together take longer than any machine takes to pass on an error."""
    n, begun = 1000, []

    def work(k):
        begun.append(k)
        if k == 1:
            raise ZeroDivisionError
        time.sleep(0.02)

    with Team(size) as team, pytest.raises(ZeroDivisionError):
        team.each(n, work)
    assert len(begun) < n


def test_errors_of_any_member_come_out():
    def work(lo, hi):
        if lo > 0:
            raise ZeroDivisionError

    with Team(3) as team, pytest.raises(ZeroDivisionError):
        team.split(9, work)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to threads")
@pytest.mark.parametrize("mine", [True, False])
def test_nobody_works_on_after_an_interrupt(mine):
    """An interrupt while the others work, in our own share or while we wait for theirs, waits for them all the same."""
    ended = threading.Event()

    def work(lo, hi):
        if lo == 0:
            if mine:
                raise KeyboardInterrupt
            return
        if not mine:
            time.sleep(0.1)  # the main thread is waiting by now
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.3)
        ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # test runners may have their own
    try:
        with Team(2) as team:
            with pytest.raises(KeyboardInterrupt):
                team.split(2, work)
            assert ended.is_set()
    finally:
        signal.signal(signal.SIGINT, before)


def test_two_fits_at_the_same_time():
    cases = [make_case(3, n=200, sparse=True), make_case(4, n=200, sparse=False, dag=True)]
    alone = [case.solve(tol=1e-5, n_threads=2, max_iter=5000) for case in cases]
    together = [None, None]

    def fit(k):
        together[k] = cases[k].solve(tol=1e-5, n_threads=2, max_iter=5000)

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, two in zip(alone, together, strict=True):
        same_bits(one, two)


def fit_in_child(queue, case):
    solution = case.solve(tol=1e-5, n_threads=2, max_iter=5000)
    queue.put((solution.certificate, solution.weights.values))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("sparse", [True, False])
def test_a_fit_in_a_forked_child_after_one_with_threads(sparse):
    case = make_case(5, n=200, sparse=sparse)
    mine = case.solve(tol=1e-5, n_threads=2, max_iter=5000)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=fit_in_child, args=(queue, case))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, from Python 3.12
        child.start()
    certificate, values = queue.get(timeout=120)
    child.join(timeout=60)
    assert child.exitcode == 0
    assert certificate == mine.certificate
    np.testing.assert_array_equal(values, mine.weights.values)


@pytest.mark.parametrize("size", [1, 3])
def test_work_ahead(size):
    """The result, or the error, of work that was begun before it was needed."""
    with Team(size) as team:
        assert team.ahead(lambda: 7)() == 7
        failing = team.ahead(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            failing()
