"""Options in TOML files, and the parts that commands share."""

import json
import math

import numpy as np
import pytest

import nhsvm as package
from cli.data import write_all
from cli.running import nhsvm
from nhsvm.cli.inputs import LabelOptions, SampleOptions, Source, expanded
from nhsvm.cli.output import as_json
from nhsvm.errors import OptionError
from nhsvm.sizes import readable_bytes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_has_the_names_of_the_options(folder):
    (folder / "train.toml").write_text(
        'data = "docs.csv"\ntext = ["text"]\npath = "path"\nC = 3\nmin-df = 2\nmax_iter = 70\nlast-part = true\n'
        'ngrams = "1,1"\nweights = "power"\nrho = 3.0\ndirectional = false\noutput = "a.nhsvm"\nquiet = true\n'
    )
    done = nhsvm("train", "--config", "train.toml")
    assert done.code == 0, done.err
    assert done.err == ""
    model = package.load("a.nhsvm")
    assert model[0].min_df == 2
    assert model[0].ngram_range == (1, 1)
    assert model[-1].C == 3.0
    assert model[-1].max_iter == 70
    assert model[-1].weights == package.weights.Power(rho=3.0, directional=False)
    assert "dog" in model.classes_


def test_what_is_typed_wins(folder):
    (folder / "train.toml").write_text("C = 3\nmax-iter = 70\nprobability = true\n")
    assert nhsvm("train", "docs.jsonl", "--config", "train.toml", "--C", "5", "-q").code == 0
    model = package.load("model.nhsvm")[-1]
    assert (model.C, model.max_iter, model.probability) == (5.0, 70, True)


def test_values_as_toml_has_them(folder):
    (folder / "train.toml").write_text('text = "text"\nngrams = [1, 3]\ntotal = [1, 1.5]\nlevel = ["top", "label"]\n')
    done = nhsvm("train", "docs.csv", "--config", "train.toml", "-q")
    assert done.code == 0, done.err
    model = package.load("model.nhsvm")
    assert model[0].ngram_range == (1, 3)
    assert model[-1].weights.total == (1.0, 1.5)


def test_tables_of_commands(folder):
    (folder / "all.toml").write_text('C = 2\n[train]\nC = 4\n[predict]\ntop-k = 2\nto = "jsonl"\n[inspect]\nx = 1\n')
    assert nhsvm("train", "docs.jsonl", "--config", "all.toml", "-q").code == 0
    assert package.load("model.nhsvm")[-1].C == 4.0
    (folder / "all.toml").write_text('[train]\nC = 4\n[predict]\ntop-k = 2\nto = "jsonl"\n')
    done = nhsvm("predict", "model.nhsvm", "docs.jsonl", "--config", "all.toml")
    assert len(json.loads(done.lines[0])["labels"]) == 2


def test_one_file_for_all_commands(folder):
    """Keys at the top that another command has are no mistakes."""
    (folder / "all.toml").write_text('text = "text"\npath = "path"\nmin-df = 1\nC = 4\n[predict]\ntop-k = 2\n')
    for command in (["train", "docs.csv", "-q"], ["predict", "model.nhsvm", "docs.csv"]):
        done = nhsvm(*command, "--config", "all.toml")
        assert done.code == 0, done.err
    assert done.lines[0] == "label_1,label_2"
    assert nhsvm("evaluate", "model.nhsvm", "docs.csv", "--config", "all.toml").code == 0
    (folder / "all.toml").write_text('[predict]\npath = "path"\n')
    said = nhsvm("predict", "model.nhsvm", "docs.csv", "--config", "all.toml").message
    assert "unknown key 'path'" in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("max-itr = 3", "train.toml: unknown key 'max-itr' (did you mean 'max_iter'?)"),
        ("zzz = 3", "unknown key 'zzz'; keys are the names of the options"),
        ("no-intercept = true", "unknown key 'no-intercept'; write intercept = false"),
        ("C = 3\nc = 4", "'c' is given twice"),
        ("min-df = 3\nmin_df = 4", "'min_df' is given twice"),
        ("[text]\na = 1", "'text' must be a value, not a table"),
        ("C = ", "train.toml: not TOML"),
        ("C = " + "[" * 5000, "train.toml: nested too deeply"),
        ("config = 'x.toml'", "unknown key 'config'"),
        (b"\xff\xfe", "train.toml: not TOML"),
        ("train = 3", "'train' must be a table"),
    ],
)
def test_bad_files_are_one_line(folder, content, said):
    (folder / "train.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert said in nhsvm("train", "docs.jsonl", "--config", "train.toml").message
    assert not (folder / "model.nhsvm").exists()


@pytest.mark.parametrize("content", ["C = 'x'", "weights = 'best'", "max-iter = 1.5", "quiet = 'perhaps'"])
def test_bad_values_are_usage_errors(folder, content):
    (folder / "train.toml").write_text(content)
    name = content.partition(" ")[0]
    said = nhsvm("train", "docs.jsonl", "--config", "train.toml").message
    assert said.startswith(f"Invalid value for '--{name}'")
    assert not (folder / "model.nhsvm").exists()


def test_ranges_of_columns():
    assert expanded(["a", "e8..e11", "x01..03"]) == ["a", "e8", "e9", "e10", "e11", "x01", "x02", "x03"]
    assert expanded(["a1..b2"]) == ["a1..b2"]
    with pytest.raises(OptionError, match="the first number"):
        expanded(["e1..e9999999"])


def test_rows_with_a_value(folder):
    (folder / "x.jsonl").write_text(
        '{"text": "a", "labels": ["x", "y"], "ok": true, "n": 1}\n{"text": "b", "labels": ["x"], "ok": null, "n": 2}\n'
    )
    for where, texts in ((["ok=true"], ["a"]), (["ok=null"], ["b"]), (["n=2"], ["b"])):
        found = Source("x.jsonl", SampleOptions(where=where), LabelOptions()).read()
        assert found.texts == texts
        assert all(isinstance(labels, list) for labels in found.y)


def test_json_of_anything():
    assert as_json({1: {3, 1}, "b": [math.nan, np.int64(3)], "c": True}) == {"1": [1, 3], "b": [None, 3], "c": True}
    assert as_json(print).startswith("<built-in")


def test_sizes_as_people_say_them():
    assert [readable_bytes(n) for n in (3, 1500, 2e6, 3e9, 4e12)] == ["3 bytes", "1.5 kB", "2.0 MB", "3.0 GB", "4.0 TB"]


def test_a_csv_file_without_a_header(folder):
    (folder / "x.csv").write_text("barks;dog\npurrs;cat\n")
    args = ("--columns", "words,label", "--delimiter", ";", "--text", "words", "--label", "label", "-q")
    assert nhsvm("train", "x.csv", *args).code == 0
    assert nhsvm("train", "x.csv", "--format", "tsv", *args[:4], *args[4:]).code == 0


@pytest.mark.parametrize(
    ("words", "offered"), [("nhsvm tr", ["train"]), ("nhsvm predict --prob", ["--probabilities"]), ("nhsvm x", [])]
)
def test_shell_completion(monkeypatch, words, offered):
    for name, value in (("_NHSVM_COMPLETE", "complete_bash"), ("COMP_WORDS", words)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert nhsvm().out.split() == offered
