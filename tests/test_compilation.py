"""Who is told that kernels are being compiled, and when."""

import io
import sys

import pytest

from nhsvm import compilation
from nhsvm.cli.terminal import Busy, FitProgress
from nhsvm.compilation import COMPILING, QUIET, Compilations


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Kernels that take ``step`` seconds each."""

    def __init__(self):
        self.now, self.step = 0.0, 0.6

    def __call__(self):
        return self.now


@pytest.fixture
def made(monkeypatch):
    """Those of a process that is told, with no time gone by."""
    monkeypatch.delenv(QUIET, raising=False)
    clock = Clock()
    monkeypatch.setattr(compilation, "perf_counter", clock)
    found = Compilations()
    found.clock = clock
    monkeypatch.setattr("nhsvm.cli.terminal.COMPILATIONS", found)
    return found


def compiles(made, n=1, *, compiled=True):
    for k in range(n):
        made.begin(k)
        made.clock.now += made.clock.step
        made.end(k, compiled=compiled)


def to(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_a_terminal_gets_one_line_once_it_takes_longer_than_a_second(made, monkeypatch):
    said = to(monkeypatch, Terminal())
    compiles(made, 2)
    assert said.getvalue() == ""
    compiles(made, 5)
    assert said.getvalue() == f"{COMPILING} ...\n"
    assert (made.kernels, round(made.seconds, 1)) == (7, 4.2)


def test_what_another_process_has_compiled_is_waited_for_and_not_counted(made, monkeypatch):
    said = to(monkeypatch, Terminal())
    compiles(made, 3, compiled=False)
    assert (made.kernels, round(made.seconds, 1)) == (0, 1.8)
    assert said.getvalue() == f"{COMPILING} ...\n"


def test_a_pipe_gets_nothing_that_nobody_has_asked_for(made, monkeypatch):
    said = to(monkeypatch, io.StringIO())
    compiles(made, 5)
    assert said.getvalue() == ""
    with made.told(made.say):  # as verbose=1 asks
        compiles(made, 5)
    assert said.getvalue() == f"{COMPILING} ...\n"


def test_a_program_without_standard_error(made, monkeypatch):
    to(monkeypatch, None)
    compiles(made, 5)


def test_a_variable_of_the_environment_silences_it(made, monkeypatch):
    said = to(monkeypatch, Terminal())
    monkeypatch.setenv(QUIET, "1")
    compiles(made, 5)
    with Busy("predicting"):
        compiles(made, 5)
    assert COMPILING not in said.getvalue()


def test_a_bar_says_it_and_goes_on(made, monkeypatch):
    said = to(monkeypatch, Terminal())
    with FitProgress(tol=0.01, max_iter=100) as progress:
        compiles(made, 2)
        made.begin("another")
        assert progress.bar.tasks[0].description == f"{COMPILING}: 2 done"
        progress.bar.refresh()
        made.end("another", compiled=True)
        assert progress.bar.tasks[0].description == "training"
    assert COMPILING in said.getvalue()


def test_a_command_tells_a_pipe_in_a_line_unless_it_is_quiet(made, monkeypatch):
    said = to(monkeypatch, io.StringIO())
    with Busy("predicting", quiet=True):
        compiles(made, 5)
    assert said.getvalue() == ""
    with Busy("predicting"):
        compiles(made, 5)
    assert said.getvalue() == f"{COMPILING} ...\n"


def test_verbose_asks_for_the_line(made, monkeypatch):
    """The fit of an estimator, with a kernel that is not there."""
    import nhsvm
    from nhsvm.engine import Dual

    monkeypatch.setattr("nhsvm.estimators.base.COMPILATIONS", made)

    class Compiling(Dual):
        def solve(self, *given):
            compiles(made, 5)
            return super().solve(*given)

    X, y = [[1.0, 0.0], [0.0, 1.0]], ["a", "b"]
    for verbose, lines in ((0, 0), (1, 1)):
        said = to(monkeypatch, io.StringIO())
        nhsvm.FlatSVM(solver=Compiling(), verbose=verbose).fit(X, y)
        assert said.getvalue().count(COMPILING) == lines
