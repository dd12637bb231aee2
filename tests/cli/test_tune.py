"""``nhsvm tune``."""

import csv
import io
import json
import os
import signal
import subprocess
import sys

import pytest
from sklearn.pipeline import Pipeline

from cli.data import DOCS, write_all
from cli.running import nhsvm
from nhsvm import load
from nhsvm import model_selection as selection
from nhsvm.cli.terminal import SearchProgress
from nhsvm.cli.tune import seconds_of
from nhsvm.errors import OptionError
from nhsvm.estimators import NHSVM
from nhsvm.model_selection import search
from nhsvm.weights import Power

TEXTS, LABELS = map(list, zip(*DOCS, strict=True))
DATA = ("docs.jsonl", "--hierarchy", "tree.tsv")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_table_and_a_model(folder):
    done = nhsvm(
        "tune", *DATA, "--C", "0.1,1,10", "--weights", "maxmin,power", "--rho", "2,4", "--margin", "loss,normalized",
        "--test-size", "0.34", "--metric", "hierarchical_f1", "--metric", "accuracy", "--patience", "0",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.lines[0].split()[:6] == ["weights", "rho", "margin", "C", "hierarchical_f1", "accuracy"]
    assert len([line for line in done.lines if line.lstrip("* ").startswith(("maxmin", "power"))]) == 18
    assert any(line.startswith("best: ") for line in done.lines)
    assert done.lines[-1].startswith("model: model.nhsvm, ")
    assert done.err.splitlines()[0].startswith("1/18  weights=maxmin  margin=loss  C=0.1  hierarchical_f1 ")
    model = load("model.nhsvm")
    assert isinstance(model, Pipeline)
    assert model.predict(TEXTS).tolist() == LABELS
    predicted = nhsvm("predict", "model.nhsvm", "docs.jsonl")
    assert predicted.code == 0, predicted.err


def test_json_and_files(folder):
    done = nhsvm(
        "tune", "docs.csv", "--text", "text", "--path", "path", "--C", "1,10", "--weights", "power", "--rho", "3",
        "--directional", "no,yes", "--total", "1,1:1.5", "--out", "m.nhsvm", "--table", "t.csv", "--plot", "p.png",
        "--json", "-q", "--test-size", "0.34",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.err == ""
    found = json.loads(done.out)
    assert len(found["fits"]) == 8
    assert found["metric"] == "accuracy"
    assert found["best"]["C"] in (1.0, 10.0)
    assert found["file"] == "m.nhsvm"
    assert not found["interrupted"]
    with open("t.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["C"] for row in rows] == ["1.0", "10.0"] * 4
    assert {row["total"] for row in rows} == {"(1, 1)", "(1, 1.5)"}
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    weights = load("m.nhsvm")[-1].weights
    assert isinstance(weights, Power)
    assert weights.rho == 3


def test_a_table_in_json_and_a_drawing(folder):
    done = nhsvm("tune", *DATA, "--C", "1", "--table", "t.json", "--plot", "p.svg", "-q", "--test-size", "0.34")
    assert done.code == 0, done.err
    (row,) = json.loads((folder / "t.json").read_text())
    assert (row["C"], row["lambda"], row["best"]) == (1.0, 0.5, True)
    assert "<svg" in (folder / "p.svg").read_text()


@pytest.mark.parametrize("model", ["NHSVM", "HSVM", "FlatSVM", "SSVM"])
def test_every_model_and_label_sets(folder, model):
    done = nhsvm(
        "tune", "sets.jsonl", "--hierarchy", "tree.tsv", "--model", model, "--lambda", "0.05,0.5", "--metric",
        "example_jaccard", "--try", "leaf_offset=0,-1", "--json", "-q",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [fit["lambda"] for fit in found["fits"]] == [0.5, 0.05] * 2
    assert type(load("model.nhsvm")[-1]).__name__ == model


def test_the_paper_and_other_parameters(folder):
    done = nhsvm("tune", *DATA, "--paper", "--C", "1", "--json", "-q", "--test-size", "0.34", "--seed", "3")
    assert len(json.loads(done.out)["fits"]) == 6
    done = nhsvm("tune", *DATA, "--C", "1", "--try", "class_weight=none,balanced", "--try", "fit_intercept=true", "-q")
    assert done.code == 0, done.err
    assert "None" in done.out
    assert "balanced" in done.out


def test_a_validation_file_and_a_config_file(folder):
    (folder / "c.toml").write_text('[tune]\nC = "1,10"\nvalidation = "docs.jsonl"\n')
    done = nhsvm("tune", *DATA, "--config", "c.toml", "-q", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["held_out"] == 12
    assert {fit["n_train"] for fit in found["fits"]} == {12}


def test_numbers_as_features(folder):
    done = nhsvm("tune", "docs.svm", "--hierarchy", "numbers.tsv", "--C", "1,10", "-q", "--test-size", "0.34")
    assert done.code == 0, done.err
    assert load("model.nhsvm").C in (1.0, 10.0)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--C", "1,x"), "--C '1,x': 'x' is no number"),
        (("--C", "0"), "C must be positive numbers, but has 0.0"),
        (("--C", "1", "--lambda", "1"), "give C or lam, not both"),
        (("--weights", "maxmin,minmax"), "'minmax' is not one of maxmin, power, uniform, flat"),
        (("--weights", "maxmin", "--rho", "2"), "rho is no option of the weights in the grid: maxmin"),
        (("--weights", "power", "--rho", "1"), "rho must be a finite number > 1"),
        (("--directional", "maybe"), "'maybe' is neither yes nor no"),
        (("--model", "HSVM", "--weights", "flat"), "--weights is for NHSVM, not for HSVM"),
        (("--model", "SSVM", "--loss", "normalized"), "depends on α, which SSVM learns"),
        (("--metric", "acuracy"), "unknown score 'acuracy'; did you mean 'accuracy'"),
        (("--time-budget", "soon"), "--time-budget must be a time such as 90s, 10m or 1h30m, not 'soon'"),
        (("--try", "x"), "--try must be NAME=VALUE,VALUE"),
        (("--try", "C=1"), "--try C is given twice, or has an option of its own: --C"),
        (("--try", "colour=1"), "NHSVM has no parameter 'colour'"),
        (("--paper", "--weights", "flat"), "--paper says what is tried: leave out weights"),
        (("--table", "t.xlsx"), "--table t.xlsx: the name must end in .csv, .json"),
        (("--plot", "p.bmp"), "--plot p.bmp: the name must end in .png, .svg, .pdf"),
        (("--table", "no/t.csv"), "--table no/t.csv cannot be written: there is no folder"),
        (("-o", "."), "is a folder"),
        (("-o", "-"), "a model cannot be written to standard output"),
        (("-o", "./docs.jsonl"), "-o docs.jsonl would overwrite the file that is read"),
        (("-o", "tree.tsv"), "-o tree.tsv would overwrite the file that is read"),
        (("--validation", "docs.csv", "-o", "docs.csv"), "-o docs.csv would overwrite the file that is read"),
        (("--validation", "docs.csv", "--table", "docs.csv"), "--table docs.csv would overwrite the file that is read"),
        (("--test-size", "3.5"), "test_size must be"),
        (("--validation", "none.jsonl"), "none.jsonl"),
        (("--search-tol", "0"), "search_tol must be a positive number"),
        (("--min-df", "99"), "the steps before NHSVM failed"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing_behind(folder, args, message):
    before = files(folder)
    assert message in nhsvm("tune", *DATA, "-q", *args).message
    assert files(folder) == before


def test_bad_files(folder):
    assert "missing.jsonl" in nhsvm("tune", "missing.jsonl").message
    (folder / "empty.jsonl").write_text("")
    assert "empty.jsonl" in nhsvm("tune", "empty.jsonl").message
    (folder / "one.jsonl").write_text('{"text": "a b", "labels": "x"}\n{"text": "c", "labels": "y"}\n')
    assert "no label has a second sample" in nhsvm("tune", "one.jsonl").message
    (folder / "cut.jsonl").write_text('{"text": "a b", "labels": "x"}\n{"text": \n')
    assert "cut.jsonl:2" in nhsvm("tune", "cut.jsonl").message
    assert "say where the samples are" in nhsvm("tune", "docs.csv").message


def test_times():
    assert [seconds_of(text) for text in (None, "90", "90s", "1.5m", "1h", "1h1m1s")] == [None, 90, 90, 90, 3600, 3661]
    for bad in ("", "0", "-1", "x", "1.2.3", "m", "10 minutes"):
        with pytest.raises(OptionError, match="--time-budget must be"):
            seconds_of(bad)


def test_a_time_budget_is_passed_on(folder, monkeypatch):
    seen = {}
    tune = search.tune

    def spy(*args, **options):
        seen.update(options)
        return tune(*args, **options)

    monkeypatch.setattr(selection, "tune", spy)
    done = nhsvm("tune", *DATA, "--time-budget", "10m", "--C", "1", "-q", "--jobs", "2", "--seed", "5")
    assert done.code == 0, done.err
    assert (seen["time_budget"], seen["patience"], seen["random_state"]) == (600.0, 2, 5)


def interrupting(monkeypatch, at):
    """Ctrl-C in the fit of this number, counted from 1."""
    solve, made = NHSVM._learn, []

    def counting(self, problem):
        made.append(self)
        callback = self.callback

        def stop(record):
            raise KeyboardInterrupt

        if len(made) == at:
            self.callback = stop
        try:
            return solve(self, problem)
        finally:
            self.callback = callback

    monkeypatch.setattr(NHSVM, "_learn", counting)


def test_ctrl_c_keeps_the_best_so_far(folder, monkeypatch):
    interrupting(monkeypatch, at=3)
    done = nhsvm("tune", *DATA, "--C", "1,10,100", "--table", "t.csv", "--test-size", "0.34")
    assert done.code == 130
    assert "now learning from all samples with the best so far" in done.err
    assert "interrupted: model.nhsvm has the best model of those that had been tried" in done.err
    assert "not tried to the end (interrupted): 1 fit" in done.out
    assert load("model.nhsvm")[-1].C in (1.0, 10.0)
    assert len((folder / "t.csv").read_text().splitlines()) == 3


def test_ctrl_c_before_the_first_fit_is_done_writes_nothing(folder, monkeypatch):
    before = files(folder)
    interrupting(monkeypatch, at=1)
    done = nhsvm("tune", *DATA, "--C", "1,10")
    assert done.code == 130
    assert "nothing is written" in done.err
    assert files(folder) == before


def test_ctrl_c_in_the_refit_keeps_the_model_as_it_is_then(folder, monkeypatch):
    interrupting(monkeypatch, at=2)
    done = nhsvm("tune", *DATA, "--C", "10", "-q")
    assert done.code == 130
    assert "certified gap" in done.err
    assert load("model.nhsvm")[-1].C == 10


def test_ctrl_c_as_a_signal(folder):
    """A process of its own, which is sent SIGINT while it tries more than it will ever get through."""
    grid = ",".join(f"{2.0**k:g}" for k in range(-200, 200))
    command = [sys.executable, "-m", "nhsvm", "tune", *DATA, "--C", grid, "--patience", "0", "--try",
               "intercept_scaling=" + ",".join(map(str, range(1, 200)))]  # fmt: skip
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process inherits it if SIGINT is ignored
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        first = process.stderr.readline()
        assert first.startswith("1/")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()  # if it has not heard, it would go on for hours
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert "best: " in out
    assert load("model.nhsvm").predict(TEXTS[:1]).shape == (1,)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_on_a_terminal(folder, monkeypatch):
    trial = selection.Trial({"C": 1.0}, {}, 1.0, {"accuracy": 0.5}, 0.1, 3, 0.01, 10)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with SearchProgress(quiet=False) as progress:
        progress(trial, 1, 2)
        assert progress.bar.tasks[0].completed == 1
        assert progress.bar.tasks[0].total == 2
    with SearchProgress(quiet=True) as silent:
        silent(trial, 2, 2)
        assert silent.bar is None


def test_rows_that_are_skipped_are_counted(folder):
    with (folder / "docs.jsonl").open("a") as stream:
        stream.write("{\n")
    done = nhsvm("tune", *DATA, "--on-error", "skip", "--C", "1", "--json")
    assert done.code == 0, done.err
    assert "skipped" in done.err.splitlines()[0]
