"""``nhsvm shrink``, and small models on the other commands."""

import json

import pytest

from cli.data import DOCS, write_all
from cli.running import nhsvm
from nhsvm import load
from nhsvm.storage import Packed, StoredRows

LABELS = [label for _, label in DOCS]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    write_all(folder)
    tree = ("--hierarchy", folder / "tree.tsv", "--C", "10", "-q")
    for name, data, more in [
        ("text", "docs.jsonl", ()),
        ("small", "docs.jsonl", ("--precision", "int8")),
        ("sets", "sets.jsonl", ()),
    ]:
        done = nhsvm("train", folder / data, *tree, *more, "-o", folder / name)
        assert done.code == 0, done.err
    return folder


@pytest.fixture
def folder(models, tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_training_with_less_precision(models, folder):
    assert load(models / "small")[-1].model_.weights.precision == "int8"
    assert nhsvm("predict", models / "small", "docs.jsonl").lines == ["label", *LABELS]
    assert "int8" in nhsvm("inspect", models / "small").out
    assert nhsvm("train", "docs.jsonl", "--precision", "int4", "-o", "x").code == 2


def test_shrinking(models, folder):
    done = nhsvm(
        "shrink", models / "text", "--prune", "0.5", "--precision", "float16", "-o", "m", "--held-out", "docs.jsonl"
    )
    assert done.code == 0, done.err
    first, second = done.lines
    assert first.startswith("m: ")
    assert second.startswith("12 held-out samples: ")
    values = load(folder / "m")[-1].model_.weights
    assert isinstance(values, Packed)
    assert isinstance(values.codes, StoredRows)
    assert nhsvm("predict", "m", "docs.jsonl").code == 0  # it knows how its data are read
    said = json.loads(
        nhsvm("shrink", models / "text", "--precision", "int8", "-o", "n", "--held-out", "docs.jsonl", "--json").out
    )
    assert said["effect"] == {"n_samples": 12, "before": 1.0, "after": 1.0, "same": 1.0}
    assert said["bytes"] == (folder / "n").stat().st_size < said["bytes_before"] == (models / "text").stat().st_size
    plain = nhsvm("shrink", models / "sets", "--precision", "int8", "-o", "s")
    assert len(plain.lines) == 1
    assert nhsvm("predict", "s", "sets.jsonl").out == nhsvm("predict", models / "sets", "sets.jsonl").out


def test_bad_shrinking(models, folder):
    assert nhsvm("shrink", models / "text", "-o", "m").message == "nothing to do: say --precision, --prune, or both"
    assert "share must be from 0" in nhsvm("shrink", models / "text", "--prune", "1.5", "-o", "m").message
    (folder / "own").write_bytes((models / "text").read_bytes())
    assert "own" in nhsvm("shrink", "own", "--prune", "0.5", "-o", "own").message
    (folder / "bare.csv").write_text("text\nhello\n")
    held_out = ("--held-out", "bare.csv", "--text", "text")
    done = nhsvm("shrink", models / "text", "--prune", "0.5", "-o", "m", *held_out)
    assert done.message == "bare.csv:1: no column 'labels'; there are 'text'"
    assert nhsvm("train", "docs.svm", "--C", "10", "-q", "-o", "numbers").code == 0
    (folder / "bare.svm").write_text("1:1 2:0.5\n")
    done = nhsvm("shrink", "numbers", "--prune", "0.5", "-o", "m", "--held-out", "bare.svm")
    assert "bare.svm: no labels to compare with" in done.message
    assert not (folder / "m").exists()


def test_a_beam(models, folder):
    assert nhsvm("predict", models / "text", "docs.jsonl", "--beam", "5").lines == ["label", *LABELS]
    assert (
        "--top-k asks for several"
        in nhsvm("predict", models / "text", "docs.jsonl", "--beam", "5", "--top-k", "2").message
    )
    assert "one label a sample" in nhsvm("predict", models / "sets", "sets.jsonl", "--beam", "5").message
