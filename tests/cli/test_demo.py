"""``nhsvm demo``, on a few texts of our own in place of the docstrings."""

import importlib.util
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from nhsvm import Hierarchy, datasets
from nhsvm.cli import app, demo, main

WORDS = {
    "lib.matrix.sparse": "eigenvalues of a sparse symmetric matrix",
    "lib.matrix.dense": "solve systems with a dense matrix",
    "lib.stats": "mean and variance of random numbers",
    "lib": "read this first",
}


@pytest.fixture(autouse=True)
def few_texts(monkeypatch, tmp_path):
    paths = [[".".join(label.split(".")[: k + 1]) for k in range(label.count(".") + 1)] for label in WORDS]
    h = Hierarchy.from_paths(paths)
    y = np.array([label for label in WORDS for _ in range(6)], dtype=object)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.permutation(WORDS[label].split())) + f" {k % 3} item" for k, label in enumerate(y)]
    monkeypatch.setattr(datasets, "load_docstrings", lambda: datasets.Dataset(y, h, texts=texts))
    monkeypatch.chdir(tmp_path)


def run(*args, **options):
    result = CliRunner().invoke(app, ["demo", *args], **options)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_everything_with_the_default_sentence(tmp_path):
    output = run()
    table = [
        line.split() for line in output.splitlines() if line.startswith(("FlatSVM  ", "HSVM ", "NHSVM  ", "SSVM "))
    ]
    assert [row[0] for row in table] == ["FlatSVM", "HSVM", "SSVM", "NHSVM"]
    for row in table:
        accuracy, distance, gap, seconds, unit = row[-5:]
        assert 0 <= float(accuracy.rstrip("%")) <= 100
        assert float(distance) >= 0
        assert float(gap.rstrip("%")) <= 1
        assert float(seconds) >= 0
        assert unit == "s"
    assert repr(demo.SENTENCE) in output
    assert "belongs to lib > lib.matrix > lib.matrix.sparse (probability " in output
    assert "lib.matrix.sparse: score" in output
    assert "lib.matrix.sparse (predicted) rather than " in output
    assert "│   ├── crime       1.000    1.000    0.333" in output
    page = (tmp_path / "nhsvm-demo.html").read_text(encoding="utf-8")
    assert "NHSVM on the docstrings of numpy, scipy and scikit-learn" in page


def test_what_takes_long_is_said_before_it_is_done(monkeypatch, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("nhsvm.FlatSVM", interrupted)
    monkeypatch.setattr(sys, "argv", ["nhsvm", "demo"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "reading docstrings ...\ncompiling, once after installation ..."


def test_a_sentence_and_no_report(tmp_path):
    output = run("--text", "variance of the mean", "--no-report")
    assert "'variance of the mean'\n  belongs to lib > lib.stats" in output
    assert "Report" not in output
    assert not list(tmp_path.iterdir())


def test_words_that_nobody_knows():
    assert "none of these words is in the docstrings" in run("--text", "zzz", "--no-report")


def test_on_a_terminal_it_asks(monkeypatch):
    typed = iter(["sparse matrix", "random numbers", ""])
    asked = []
    monkeypatch.setattr(demo.sys, "stdin", Terminal())
    monkeypatch.setattr(demo.sys, "stdout", Terminal())
    monkeypatch.setattr(demo.typer, "prompt", lambda text, **_: asked.append(text) or next(typed))
    assert list(demo._sentences(None)) == ["sparse matrix", "random numbers"]
    assert len(asked) == 3
    assert list(demo._sentences("given")) == ["given"]


def test_ctrl_c_at_a_question_ends_the_questions(monkeypatch):
    def interrupted(text, **_):
        raise demo.typer.Abort

    monkeypatch.setattr(demo.sys, "stdin", Terminal())
    monkeypatch.setattr(demo.sys, "stdout", Terminal())
    monkeypatch.setattr(demo.typer, "echo", lambda: None)
    monkeypatch.setattr(demo.typer, "prompt", interrupted)
    assert list(demo._sentences(None)) == []


class Terminal:
    def isatty(self):
        return True


def test_without_the_extra_for_reports(monkeypatch, tmp_path):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jinja2" else found(name))
    result = CliRunner().invoke(app, ["demo", "--text", "matrix"])
    assert result.exit_code == 0
    assert "No report: it needs jinja2, pip install 'nhsvm[report]'" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--text", " "], "--text is empty"),
        (["--report", "no/such/folder/x.html"], "there is no folder"),
        (["--report", "."], "is a folder"),
    ],
)
def test_bad_input_before_any_work(args, said, monkeypatch, capsys):
    monkeypatch.setattr(datasets, "load_docstrings", lambda: pytest.fail("work was done"))
    monkeypatch.setattr(sys, "argv", ["nhsvm", "demo", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err


def test_an_answer_that_is_not_sure():
    comparison = demo.Comparison()
    list(comparison.run())
    svm = comparison.model[-1]
    svm.model_ = replace(svm.model_, temperature=50.0)  # all labels are about equally likely
    assert "It is not sure: at least 50% probable is only lib" in comparison.classify("mean matrix")
    svm.model_ = replace(svm.model_, temperature=0.01)
    assert "not sure" not in comparison.classify("mean of random numbers")
