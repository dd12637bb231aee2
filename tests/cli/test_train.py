"""``nhsvm train``."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import typer
from sklearn.pipeline import Pipeline

import nhsvm as package
from cli.data import DOCS, write_all
from cli.running import nhsvm
from nhsvm.cli import COMMANDS
from nhsvm.cli.terminal import FitProgress
from nhsvm.datasets import read_csv
from nhsvm.model import load_with_note, read_model
from nhsvm.weights import Maxmin, Power

LABELS = [label for _, label in DOCS]
TEXTS = [text for text, _ in DOCS]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trained(*args):
    done = nhsvm("train", *args, "-q")
    assert done.code == 0, done.err
    return package.load("model.nhsvm")


def test_a_text_model_is_a_pipeline_in_one_file(folder):
    done = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "--C", "10")
    assert done.code == 0
    assert [line.split()[0] for line in done.lines] == [
        "samples", "features", "labels", "model", "training", "objective", "accuracy", "file",
    ]  # fmt: skip
    assert done.lines[0] == "samples    12"
    assert "TfidfVectorizer (word 1-2-grams, min_df 1)" in done.lines[1]
    assert done.lines[2] == "labels     4 in a hierarchy of 6 nodes"
    assert done.lines[3] == "model      NHSVM C=10"
    assert done.lines[6] == "accuracy   100.00% on the training data"
    assert "gap" in done.err
    model = package.load("model.nhsvm")
    assert isinstance(model, Pipeline)
    assert model[0].sublinear_tf
    assert model.predict(TEXTS).tolist() == LABELS
    assert model[-1].callback is None


def test_json_is_one_object_and_alone_on_standard_output(folder):
    done = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "--json")
    found = json.loads(done.out)
    assert found["samples"] == 12
    assert found["nodes"] == 6
    assert found["gap"] <= 1e-3
    assert found["bytes"] == (folder / "model.nhsvm").stat().st_size
    assert found["training_accuracy"] == 1.0


@pytest.mark.parametrize(
    ("args", "labels"),
    [
        (("docs.csv", "--text", "text", "--label", "label", "--hierarchy", "tree.tsv"), "cat dog elm oak"),
        (("docs.csv", "--text", "text", "--path", "path", "--last-part"), "cat dog elm oak"),
        (("docs.csv", "--text", "text", "--level", "top", "--level", "label", "--separator", "/"), None),
        (("docs.jsonl.gz", "--text", "text"), "cat dog elm oak"),
    ],
)
def test_labels_of_every_kind(folder, args, labels):
    model = trained(*args)
    found = model.classes_.tolist()
    assert found == (["animal/cat", "animal/dog", "plant/elm", "plant/oak"] if labels is None else labels.split())
    assert model[-1].hierarchy_.n_nodes == (4 if model[-1].hierarchy is None else 6)


@pytest.mark.parametrize("name", ["docs.svm", "docs.txt"])
def test_numbered_features_give_an_estimator_alone(folder, name):
    model = trained(name, "--hierarchy", "numbers.tsv", "--label-type", "int")
    assert type(model) is package.NHSVM
    assert model.classes_.tolist() == [3, 4, 5, 6]


def test_arff(folder):
    model = trained("docs.arff", "--model", "HSVM")
    assert type(model) is package.HSVM
    assert model.classes_.tolist() == ["animal/cat", "animal/dog", "plant/elm", "plant/oak"]


def test_dense_features_with_gaps(folder):
    (folder / "x.csv").write_text("e0,e1,label\n1,,a\n0.9,0.1,a\n0,1,b\n,0.8,b\n")
    args = ("x.csv", "--features", "e0..e1", "--label", "label")
    assert "NaN" in nhsvm("train", *args).message
    model = trained(*args, "--missing", "mean", "--transform", "standard", "--C", "10")
    assert [name for name, _ in model.steps] == ["missing", "scale", "svm"]
    assert model.predict([[1.0, 0.0], [0.0, np.nan]]).tolist() == ["a", "b"]
    assert trained(*args, "--missing", "zero")[0].transform([[np.nan, 1.0]]).tolist() == [[0.0, 1.0]]
    (folder / "x.csv").write_text("e0,e1,label\n-1,,a\n0,1,b\n")
    assert "Negative values" in nhsvm("train", *args, "--missing", "zero", "--transform", "bm25").message


@pytest.mark.parametrize("kind", ["l2", "tfidf", "bm25", "maxabs"])
def test_weighting_of_counts(folder, kind):
    model = trained("docs.svm", "--transform", kind)
    assert model.score(read_counts(folder), [3] * 3 + [4] * 3 + [5] * 3 + [6] * 3) == 1.0


def read_counts(folder):
    from nhsvm.datasets import read_svmlight

    return read_svmlight(folder / "docs.svm").X


def test_label_sets(folder):
    done = nhsvm("train", "sets.jsonl", "--hierarchy", "tree.tsv", "--json", "-q")
    assert json.loads(done.out)["multilabel"]
    assert package.load("model.nhsvm").predict(["barks, purrs"]).tolist() == [["cat", "dog"]]


@pytest.mark.parametrize(("kind", "steps"), [("bm25", 4), ("count", 2), ("hashing", 2), ("tfidf", 2)])
def test_vectorizers(folder, kind, steps):
    more = () if kind == "hashing" else ("--min-df", "2")
    model = trained("docs.jsonl", "--vectorizer", kind, "--ngrams", "1", *more, "--stop-words", "english")
    assert len(model) == steps
    assert model[0].ngram_range == (1, 1)
    assert model[0].stop_words == "english"


def test_options_reach_the_estimator(folder):
    model = trained(
        "docs.jsonl", "--C", "3", "--weights", "power", "--rho", "1.5", "--directional", "--total", "1,1.5",
        "--loss", "hamming", "--tol", "1e-4", "--max-iter", "50", "-j", "2", "--seed", "7", "--no-intercept",
        "--class-weight", "balanced", "--probability", "--folds", "3",
    )[-1]  # fmt: skip
    assert model.weights == Power(rho=1.5, directional=True, total=(1.0, 1.5))
    params = model.get_params()
    expected = {"C": 3.0, "loss": "hamming", "tol": 1e-4, "max_iter": 50, "n_jobs": 2, "random_state": 7}
    expected |= {"fit_intercept": False, "class_weight": "balanced", "probability": True, "cv": 3}
    assert {name: params[name] for name in expected} == expected


def test_a_total_goes_with_the_default_weights(folder):
    model = trained("docs.jsonl", "--total", "1,2", "--class-weight", "none")[-1]
    assert model.weights == Maxmin(total=(1.0, 2.0))
    assert model.class_weight is None


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--rho", "2"), "--rho goes with --weights power"),
        (("--model", "HSVM", "--rho", "2"), "--rho is for NHSVM, not for HSVM"),
        (("--model", "HSVM", "--weights", "power"), "--weights is for NHSVM, not for HSVM"),
        (("--weights", "flat", "--total", "1,2"), "--total goes with --weights maxmin or power"),
        (("--total", "1"), "--total must be LOW,HIGH"),
        (("--C", "-1"), "C must be a positive number"),
        (("--transform", "l2"), "--transform is for features that are numbers"),
        (("--ngrams", "2,1"), "--ngrams must be FROM,TO"),
        (("--ngrams", "x"), "--ngrams must be FROM,TO"),
        (("--min-df", "0"), "--min-df must be a whole number of texts"),
        (("--min-df", "x"), "--min-df must be a whole number of texts"),
        (("--min-df", "9"), "no term is left; lower --min-df"),
        (("--stop-words", "latin"), "--stop-words can be english"),
        (("--vectorizer", "hashing", "--min-df", "2"), "leave out --min-df"),
        (("--where", "split"), "--where must be COLUMN=VALUE"),
        (("--where", "split=x"), "no sample has split=x"),
        (("--text", "title"), "no column 'title'; there are 'id', 'text', 'labels', 'split'"),
        (("--text", "text", "--features", "id"), "give either --text or --features"),
        (("--hierarchy", "none.tsv"), "none.tsv: cannot be read: No such file"),
        (("--delimiter", ";"), "--columns and --delimiter are for CSV"),
        (("--any-order",), "--ignore-feature and --any-order are for files of numbered features"),
        (("--output", "."), "is a folder"),
        (("--output", "no/model"), "there is no folder"),
        (("--output", "-"), "a model cannot be written to standard output"),
        (("--output", "/dev/full"), "not a regular file"),
        (("--output", "./docs.jsonl"), "would overwrite the file that is read"),
        (("--hierarchy", "tree.tsv", "--output", "tree.tsv"), "would overwrite the file that is read"),
        (("--config", "none.toml"), "none.toml: cannot be read"),
    ],
)  # fmt: skip
def test_bad_options_are_one_line(folder, args, said):
    before = sorted(folder.iterdir())
    assert said in nhsvm("train", "docs.jsonl", *args, "-q").message
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("docs.csv", "--label", "label"), "say where the samples are: --text"),
        (("docs.csv", "--text", "text"), "say where the labels are: --label"),
        (("docs.xyz",), "cannot tell the format"),
        (("-",), "say --format for standard input"),
        (("-", "--format", "parquet", "--text", "x", "--label", "y"), "cannot be read from standard input"),
        (("docs.svm", "--text", "text"), "--text is for CSV, TSV, JSONL and Parquet files, not for svmlight"),
        (("docs.svm", "--ngrams", "1"), "--ngrams is for texts"),
        (("docs.svm", "--ignore-feature", "0"), "--ignore-feature is for LSHTC"),
        (("docs.txt", "--label-type", "str"), "labels of LSHTC files are whole numbers"),
        (("docs.arff", "--hierarchy", "tree.tsv"), "an ARFF file has its own hierarchy"),
        (("docs.arff", "--any-order"), "are for files of numbered features"),
        (("docs.svm", "--transform", "standard"), "--transform standard is for dense features"),
        (("docs.csv", "--features", "e9..e1", "--label", "label"), "the first number must not be above the last"),
    ],
)
def test_options_that_do_not_fit_the_file(folder, args, said):
    assert said in nhsvm("train", *args).message
    assert not (folder / "model.nhsvm").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("train",), "Missing argument 'DATA' (see nhsvm train --help)"),
        (("train", "docs.jsonl", "--modle", "x"), "No such option: --modle"),
        (("train", "docs.jsonl", "--C", "x"), "Invalid value for '--C' / '-C'"),
        (("train", "docs.jsonl", "more"), "(see nhsvm train --help)"),
        (("train", "docs.jsonl", "--format", "xml"), "'xml' is not one of 'svmlight', 'lshtc'"),
        (("predict", "m", "docs.jsonl", "--top-k"), "Option '--top-k' requires an argument (see nhsvm"),
        (("fly",), "No such command 'fly' (see nhsvm --help)"),
        (("reproduce", "nroms"), "No such command 'nroms'. Did you mean 'norms'? (see nhsvm reproduce --help)"),
    ],
)
def test_usage_errors(folder, args, said):
    assert said in nhsvm(*args).message


@pytest.mark.parametrize("args", [(), ("reproduce",)])
def test_without_a_command_there_is_help(args):
    done = nhsvm(*args)
    assert (done.code, done.err) == (2, "")
    assert " Usage: nhsvm" in done.out


def test_the_end_of_input_is_no_error_of_ours(monkeypatch):
    def ended(**_):
        raise typer.Abort

    monkeypatch.setattr("nhsvm.cli.app", ended)
    done = nhsvm("demo")
    assert (done.code, done.out, done.err) == (130, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_behind_standard_output(folder):
    """A real one: /dev/full has no room for a byte."""
    command = [sys.executable, "-m", "nhsvm", "inspect", "tree.tsv"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "nhsvm: standard output: No space left on device\n")


def test_bad_rows_can_be_skipped(folder):
    with (folder / "docs.jsonl").open("a") as file:
        file.write('{"text": 3}\nnonsense\n')
    assert "docs.jsonl:13: " in nhsvm("train", "docs.jsonl").message
    done = nhsvm("train", "docs.jsonl", "--on-error", "skip", "-q", "--json")
    assert json.loads(done.out)["skipped"] == 2
    assert done.err.startswith("2 skipped; line 13: ")


def test_standard_input(folder):
    done = nhsvm("train", "-", "--format", "jsonl", "-q", stdin=(folder / "docs.jsonl.gz").read_bytes())
    assert done.code == 0
    assert done.lines[0] == "samples    12"


def test_the_note_says_how_to_read_more(folder):
    trained("docs.csv", "--text", "text", "--path", "path", "--separator", ">")
    assert load_with_note("model.nhsvm")[1] == {"text": ["text"], "path": "path", "separator": ">", "label_type": "str"}
    trained("docs.txt", "--ignore-feature", "1")
    note = load_with_note("model.nhsvm")[1]
    assert note["ignore_feature"] == 1
    assert note["feature_numbers"].tolist()[:2] == [2, 3]


def test_a_fit_that_does_not_converge_says_so(folder):
    done = nhsvm("train", "docs.jsonl", "--max-iter", "1", "--tol", "1e-9", "--C", "100", "-q")
    assert done.code == 0
    assert "stopped after 1 pass at" in done.err


def test_the_same_data_give_the_same_model(folder):
    nhsvm("train", "docs.jsonl", "-q", "-o", "a.nhsvm")
    nhsvm("train", "docs.jsonl", "-q", "-o", "b.nhsvm")
    (header, a), (other, b) = (read_model(name) for name in ("a.nhsvm", "b.nhsvm"))
    for found in (header, other):
        found["state"].pop("history")  # has the seconds of every pass
    assert header == other
    assert a.keys() == b.keys()
    assert all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["train", "--C=-1"], "C must be a positive number"),
        (["train", "--margin", "normalized", "--loss", "hamming"], "margin='normalized'"),
        (["train", "--solver", "sgd", "--no-certify"], "--no-certify goes with --solver dual"),
        (["train", "--model", "HRSVM", "--solver", "sgd"], "HRSVM takes --solver dual"),
        (["tune", "--solver", "sgd", "--no-certify"], "--no-certify goes with --solver dual"),
    ],
)
def test_options_are_refused_before_the_data_are_read(folder, options, named):
    message = nhsvm(options[0], "missing.csv", *options[1:]).message
    assert named in message
    assert "missing.csv" not in message


def interrupting(monkeypatch, after):
    """Ctrl-C in the middle of a fit."""
    passes = []

    def press(self, record):
        passes.append(record)
        if len(passes) == after:
            raise KeyboardInterrupt

    monkeypatch.setattr(FitProgress, "__call__", press)


def test_ctrl_c_saves_what_there_is(folder, monkeypatch):
    interrupting(monkeypatch, 1)
    done = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "--tol", "1e-12", "--C", "1000", "-q")
    assert done.code == 130
    assert "interrupted after" in done.err
    assert "model.nhsvm has the model as it was then" in done.err
    model = package.load("model.nhsvm")
    assert 0 <= model[-1].gap_ < 1
    assert len(model.predict(TEXTS)) == 12


def test_ctrl_c_before_there_is_anything(folder, monkeypatch):
    def pressed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("nhsvm.cli.train.fitted", pressed)
    done = nhsvm("train", "docs.jsonl")
    assert done.code == 130
    assert "Traceback" not in done.err
    assert not (folder / "model.nhsvm").exists()


def test_a_full_disk_leaves_nothing(folder, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = sorted(folder.iterdir())
    assert "cannot be written: No space left on device" in nhsvm("train", "docs.jsonl", "-q").message
    assert sorted(folder.iterdir()) == before


def test_a_fit_without_a_proof_says_so(folder):
    proved = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "--max-iter", "1", "--certify")
    assert "% of optimal (proved)" in proved.out
    done = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "--max-iter", "1", "--tol", "1e-9", "--no-certify")
    assert done.code == 0
    assert "% of optimal (estimated)" in done.out
    assert "accuracy" not in done.out
    assert "stopped after 1 pass at an estimated gap of" in done.err
    assert "estimated gap" in nhsvm("inspect", "model.nhsvm").out
    found = json.loads(nhsvm("train", "docs.jsonl", "--max-iter", "1", "--tol", "1e-9", "--no-certify", "--json").out)
    assert found["certified"] is False
    assert 0 < found["gap"] < 1


def test_large_weights_are_announced(folder, monkeypatch):
    monkeypatch.setattr("nhsvm.cli.train.MUCH", 100)
    done = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "-q")
    (line,) = done.err.splitlines()
    assert re.fullmatch(r"memory needed: weights \d\.\d kB \(a table\) of .* dual variables .* of samples", line)
    assert "memory-limit" not in done.err


def test_memory_is_announced_unless_nothing_is_to_be_said(folder):
    assert "memory needed: weights" in nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv").err
    quiet = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "-q", "--json")
    assert "memory needed" not in quiet.err
    assert 1_000 < json.loads(quiet.out)["expected_bytes"] < 100_000


def test_weights_that_will_not_fit_are_announced_and_refused(folder):
    done = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "--memory-limit", "300", "-q")
    assert done.code == 2
    assert "this does not fit: use fewer features, or a higher --memory-limit" in done.err
    assert "even if their weights are zero, but 300 bytes may be used; leave out" in done.err.splitlines()[-1]
    assert "or raise --memory-limit" in done.err.splitlines()[-1]
    assert not (folder / "model.nhsvm").exists()
    assert "--memory-limit must be" in nhsvm("train", "docs.jsonl", "--memory-limit", "lots", "-q").message
    sgd = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "--memory-limit", "300", "-q", "--solver", "sgd")
    assert "or a higher --memory-limit, or sparse samples and --solver dual" in sgd.err
    assert "may be used; raise --memory-limit" in sgd.err.splitlines()[-1]


def test_progress_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = FitProgress(1e-3, 100, folds=5)
    with progress:
        for k, gap in enumerate((0.5, 0.02, 5e-4)):
            progress({"iteration": k + 1, "seconds": 1.0, "gap": gap, "certified": True})
        assert progress.bar.tasks[0].description == "5 more fits on folds"
        assert progress.bar.tasks[0].completed == 1.0


def test_progress_tells_estimates_from_proofs(capsys):
    progress = FitProgress(1e-3, 100)
    progress({"iteration": 1, "seconds": 100.0, "gap": 0.5, "certified": False})
    progress({"iteration": 2, "seconds": 200.0, "gap": 5e-4, "certified": True})
    assert capsys.readouterr().err == "pass 1, 100.0 s, gap about 5.00e-01\npass 2, 200.0 s, gap 5.00e-04\n"


def test_progress_without_a_gap_goes_by_passes():
    progress = FitProgress(1e-3, 4, quiet=True)
    progress({"iteration": 2, "seconds": 1.0, "gap": float("nan"), "certified": False})
    assert progress.share == 0.5


def test_help_is_light_and_shows_examples():
    heavy = ("numba", "numpy", "scipy", "sklearn", "polars", "matplotlib", "rich.progress")
    script = f"import sys, nhsvm.cli; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS), ("reproduce", "synthetic")])
def test_help_of_flags_asks_for_no_value(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    shown = nhsvm(*command, "--help").out
    assert "--help   " in shown
    assert not re.search(r"<bool>|BOOL", shown)


def test_every_command_has_an_example():
    from nhsvm.cli import COMMANDS

    for name in COMMANDS:
        done = nhsvm(name, "--help")
        assert done.code == 0
        assert "Example" in done.out
        assert f"nhsvm {name} " in done.out.split("Example", 1)[1] or name == "demo"
    assert all(name in nhsvm("--help").out for name in COMMANDS)
    assert "--install-completion" in nhsvm("--help").out


def test_docs_csv_is_what_the_reader_sees(folder):
    assert read_csv("docs.csv", text="text", path="path").texts == TEXTS


def test_auto_chooses_C_and_says_what_was_tried(folder):
    done = nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", "--auto", "--folds", "3")
    assert done.code == 0, done.err
    rows = [line[10:].split() for line in done.lines if not line[:7].strip(" tried")]
    assert rows[0] == ["C", "accuracy", "passes"]
    (best,) = (row for row in rows if row[0] == "*")
    assert len(rows) >= 4
    assert f"NHSVM folds=3 C={best[1]}, chosen by accuracy on 12 held-out samples" in done.out
    model = package.load("model.nhsvm")[-1]
    assert type(model) is package.NHSVM
    assert pytest.approx(float(best[1]), rel=0.01) == model.C
    assert model.callback is None


def test_auto_on_label_sets(folder):
    args = (
        "sets.jsonl",
        "--hierarchy",
        "tree.tsv",
        "--auto",
        "--metric",
        "f1_micro",
        "--model",
        "HSVM",
        "--json",
        "-q",
    )
    found = json.loads(nhsvm("train", *args).out)
    assert found["metric"] == "f1_micro"
    assert found["chosen"] in [{"C": one["C"]} for one in found["tried"]]
    assert found["score"] == max(one["score"] for one in found["tried"])
    assert package.load("model.nhsvm")[-1].offsets == "f1_micro"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--auto", "--C", "1"), "--auto chooses C: leave out --C"),
        (("--metric", "accuracy"), "--metric is what --auto chooses by"),
        (("--auto", "--metric", "acuracy", "-q"), "did you mean 'accuracy'"),
        (("--auto", "--rho", "3"), "--rho goes with --weights power"),
        (("--auto", "--tol", "-1"), "tol must be a positive number"),
    ],
)
def test_auto_and_what_does_not_go_with_it(folder, args, said):
    assert said in nhsvm("train", "docs.jsonl", "--hierarchy", "tree.tsv", *args).message
