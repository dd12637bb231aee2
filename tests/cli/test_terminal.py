"""What a terminal gets that a pipe does not: lines that fit, and something that moves."""

import io
import os
import shutil
import sys

import pytest
from typer.testing import CliRunner

from cli.running import nhsvm
from nhsvm.cli import app
from nhsvm.cli.output import broken
from nhsvm.cli.terminal import Busy, bar, fitting


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch, width=80):
    """Standard error from now on. (Not a fixture: pytest puts its own in place between fixtures and tests.)"""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    return found


@pytest.fixture
def narrow(monkeypatch):
    """Standard output is a terminal of 30 columns."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda fallback=None: os.terminal_size((30, 24)))


def test_sentences_are_broken_between_words(narrow):
    assert broken("the best C, 10, is at the edge of the grid\n\nshort") == (
        "the best C, 10, is at the edge\nof the grid\n\nshort"
    )


def test_what_is_broken_goes_on_below_its_column(narrow):
    assert broken("weights  160 float32, 7.6 MB; 85% zero") == "weights  160 float32, 7.6 MB;\n         85% zero"


def test_long_words_stay_whole(narrow):
    assert broken("file " + "x" * 40) == "file\n" + "x" * 40


def test_a_pipe_gets_lines_as_they_are():
    assert broken("word " * 100) == "word " * 100


def test_busy_says_what_it_does(monkeypatch):
    said = terminal(monkeypatch)
    with Busy("reading [docs].csv") as busy:
        busy.bar.refresh()
        busy("7 samples labelled")
        busy.bar.refresh()
    assert "reading [docs].csv" in said.getvalue()  # no markup
    assert "7 samples labelled" in said.getvalue()


def test_busy_has_a_bar_once_it_knows_how_much_is_done(monkeypatch):
    said = terminal(monkeypatch)
    with Busy("reading docs.csv") as busy:
        busy("10,000 samples labelled", 0.25)
        busy("20,000 samples labelled", 0.5)
        busy.bar.refresh()
        assert busy.bar.tasks[0].percentage == 50
    assert "20,000 samples labelled" in said.getvalue()
    assert "left" in said.getvalue()


def test_busy_says_nothing_to_a_pipe_or_when_quiet(monkeypatch):
    said = terminal(monkeypatch)
    with Busy("reading", quiet=True) as busy:
        busy("labelled")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Busy("reading") as busy:
        busy("labelled", 0.5)
    assert said.getvalue() + sys.stderr.getvalue() == ""


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_bar_shows_its_times_on_narrow_terminals(width, monkeypatch):
    said = terminal(monkeypatch, width)
    progress = bar()
    text = fitting("3/6  weights=maxmin  C=10  accuracy 0.9420  3.6 s", progress.console.width)
    task = progress.add_task("trying", total=6, gap=text)
    progress.start()
    progress.update(task, completed=3)
    progress.refresh()
    progress.stop()
    line = said.getvalue()
    assert "0:00:00" in line
    assert "left" in line
    assert "3/6  weights" in line
    assert "-:--:--" in line


def test_paragraphs_of_help_flow():
    out = CliRunner().invoke(app, ["evaluate", "--help"], env={"COLUMNS": "70", "TERM": "dumb"}).output
    text = " ".join(out.split())
    assert "Columns and features are those of the training data unless options say otherwise." in text
    lines = [line.strip() for line in out.partition("Shows all")[2].partition("Example:")[0].splitlines()]
    assert all(len(line) > 50 for line in lines[:-3] if line)  # none is broken where the source is


class TerminalOfBytes(io.TextIOWrapper):
    def isatty(self):
        return True


def test_commands_on_a_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(
        "cli.running.text_stream", lambda: TerminalOfBytes(io.BytesIO(), encoding="utf-8", write_through=True)
    )
    rows = [f"{word} {k},{label}" for k in range(4) for word, label in (("quarks", "a > b"), ("cells", "a > c"))]
    (tmp_path / "data.csv").write_text("text,topic\n" + "\n".join(rows) + "\n")
    columns = ("--text", "text", "--path", "topic")
    assert "reading data.csv" in nhsvm("train", "data.csv", *columns).err
    assert "learning from all samples with the best" in nhsvm("tune", "data.csv", *columns, "--C", "1").err
    assert "predicting and counting" in nhsvm("evaluate", "model.nhsvm", "data.csv").err
    assert "reading" not in nhsvm("evaluate", "model.nhsvm", "data.csv", "--json").err
    assert "8 samples labelled" in nhsvm("predict", "model.nhsvm", "data.csv", "-o", "labels.csv").err
    assert (tmp_path / "labels.csv").read_text().splitlines()[1] == "a > b"
    said = nhsvm("convert", "data.csv", *columns, "-o", "data.blocks").err
    assert "8 samples converted" in said
    assert "left" in said
