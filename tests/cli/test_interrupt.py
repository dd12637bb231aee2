"""Ctrl-C, wherever it comes."""

import os
import signal
import sys
import threading
import time
import warnings
from types import FunctionType

import pytest
from sklearn.exceptions import ConvergenceWarning

from cli.data import write_all
from cli.running import nhsvm
from nhsvm.cli.terminal import FitProgress, SearchProgress, interrupts_heard
from nhsvm.model import load

DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
if hasattr(signal, "SIGHUP"):
    DEFAULTS[signal.SIGHUP] = signal.SIG_DFL


@pytest.fixture(autouse=True)
def python_s_own_handlers():
    before = {number: signal.signal(number, handler) for number, handler in DEFAULTS.items()}  # runners have their own
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def dropped(monkeypatch):
    """Exceptions that Python only prints."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: found.append(about.exc_type))
    return found


class Interrupted:
    """A signal comes while it is deleted."""

    def __init__(self, number=signal.SIGINT):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)


def wait():
    for _ in range(500):
        time.sleep(0.01)


def test_python_drops_what_is_raised_in_del(dropped):
    made = Interrupted()
    del made
    assert dropped == [KeyboardInterrupt]


@pytest.mark.parametrize("number", DEFAULTS)
def test_an_interrupt_in_del_is_heard_after_it(dropped, number):
    reached = []

    def deleted():
        made = Interrupted(number)
        del made
        reached.append("end")
        wait()

    with interrupts_heard(), pytest.raises(KeyboardInterrupt):
        deleted()
    assert reached == ["end"]
    assert dropped == []


def test_an_interrupt_in_functions_that_llvm_calls_is_heard_after_them():
    def inner():
        signal.raise_signal(signal.SIGINT)

    def called(reached):
        inner()
        reached.append("end")

    reached = []
    called = FunctionType(called.__code__, {"__name__": "llvmlite.binding"}, closure=called.__closure__)

    def calls():
        called(reached)
        wait()

    with interrupts_heard(), pytest.raises(KeyboardInterrupt):
        calls()
    assert reached == ["end"]


@pytest.mark.parametrize("number", DEFAULTS)
def test_elsewhere_it_is_raised_at_once(number):
    with interrupts_heard() as heard, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)  # a handler that puts it off would return
    assert heard.code == 128 + number
    assert all(signal.getsignal(number) == handler for number, handler in DEFAULTS.items())


def test_the_first_of_several_is_told():
    with interrupts_heard() as heard:
        assert heard.code == 130
        for number in (signal.SIGTERM, signal.SIGINT):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
    assert heard.code == 143


@pytest.mark.parametrize("number", DEFAULTS)
@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_handlers_of_others_are_left_alone(number, handler):
    signal.signal(number, handler)  # nohup ignores SIGHUP
    with interrupts_heard():
        assert signal.getsignal(number) is handler
    assert signal.getsignal(number) is handler


def test_a_library_changes_no_handlers():
    import nhsvm

    h = nhsvm.Hierarchy.from_edges([("animal", "dog"), ("animal", "cat")])
    nhsvm.NHSVM(h).fit([[1.0, 0.0], [0.0, 1.0]], ["dog", "cat"])
    assert all(signal.getsignal(number) == handler for number, handler in DEFAULTS.items())


SIGNALS = [number for number in DEFAULTS if number != signal.SIGINT]
DOCS = ("docs.jsonl", "--hierarchy", "tree.tsv")  # of texts


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("words", [("train", *DOCS, "--tol", "1e-12", "--C", "1000"), ("tune", *DOCS, "--C", "1,10")])
def test_what_there_is_when_a_signal_comes_is_kept(words, number, tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    seen = []

    def come(self, *about):
        seen.append(about)
        if len(seen) == 1:
            signal.raise_signal(number)

    monkeypatch.setattr(FitProgress, "__call__", come)
    monkeypatch.setattr(SearchProgress, "__call__", come)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the fits of a search
        done = nhsvm(*words, "-q")
    assert done.code == 128 + number, done.err
    assert "interrupted: model.nhsvm has the" in done.err
    assert load("model.nhsvm").predict(["barks"]).shape == (1,)
    assert not [name for name in os.listdir() if name.startswith(".")]


def test_a_thread_leaves_the_handler_alone():
    found = []

    def run():
        with interrupts_heard():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
