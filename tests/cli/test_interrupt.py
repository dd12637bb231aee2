"""Ctrl-C, wherever it comes."""

import signal
import sys
import threading
import time
from types import FunctionType

import pytest

from nhsvm.cli._interrupt import interrupts_heard


@pytest.fixture(autouse=True)
def python_s_own_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # test runners may have their own
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def dropped(monkeypatch):
    """Exceptions that Python only prints."""
    found = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: found.append(about.exc_type))
    return found


class Interrupted:
    """Ctrl-C comes while it is deleted."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def wait():
    for _ in range(500):
        time.sleep(0.01)


def test_python_drops_what_is_raised_in_del(dropped):
    made = Interrupted()
    del made
    assert dropped == [KeyboardInterrupt]


def test_an_interrupt_in_del_is_heard_after_it(dropped):
    reached = []

    def deleted():
        made = Interrupted()
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


def test_elsewhere_it_is_raised_at_once():
    with interrupts_heard(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # a handler that puts it off would return
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_handlers_of_others_are_left_alone(handler):
    signal.signal(signal.SIGINT, handler)
    with interrupts_heard():
        assert signal.getsignal(signal.SIGINT) is handler
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_thread_leaves_the_handler_alone():
    found = []

    def run():
        with interrupts_heard():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
