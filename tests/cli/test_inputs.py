"""Data files and models on the command line: what commands share."""

import os
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import nhsvm as package
from cli.data import DOCS, NUMBER, write_all
from cli.running import nhsvm
from nhsvm.cli.inputs import FileFormat, LabelOptions, SampleOptions, Source
from nhsvm.cli.models import LoadedModel, TrustOptions, load_model, read_labelled
from nhsvm.cli.output import check_writable, output_file
from nhsvm.datasets import Dataset
from nhsvm.errors import FileFormatError, OptionError

LABELS = [label for _, label in DOCS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_all(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        for name, *args in (
            ("text", "docs.jsonl", "--hierarchy", "tree.tsv"),
            ("csv", "docs.csv", "--text", "text", "--label", "label", "--hierarchy", "tree.tsv"),
            ("path", "docs.csv", "--text", "text", "--path", "path", "--last-part"),
            ("level", "docs.csv", "--text", "text", "--level", "top", "--level", "label"),
            ("svm", "docs.svm", "--hierarchy", "numbers.tsv", "--label-type", "int"),
            ("lshtc", "docs.txt", "--hierarchy", "numbers.tsv", "--label-type", "int"),
            ("arff", "docs.arff"),
            ("sets", "sets.jsonl", "--hierarchy", "tree.tsv"),
        ):
            done = nhsvm("train", *args, "-q", "--C", "10", "-o", name)
            assert done.code == 0, done.err
    finally:
        os.chdir(before)
    return folder


@pytest.mark.parametrize(
    ("model", "data", "labels"),
    [
        ("text", "docs.jsonl", LABELS),
        ("text", "docs.jsonl.gz", LABELS),
        ("csv", "docs.csv", LABELS),
        ("path", "docs.csv", LABELS),
        ("svm", "docs.svm", [NUMBER[label] for label in LABELS]),
        ("lshtc", "docs.txt", [NUMBER[label] for label in LABELS]),
        ("lshtc", "docs.svm", [NUMBER[label] for label in LABELS]),
    ],
)
def test_data_with_labels_need_no_options(folder, model, data, labels):
    loaded = load_model(folder / model, TrustOptions())
    _, inputs, y = read_labelled(loaded, str(folder / data), SampleOptions(), LabelOptions())
    assert list(y) == labels
    assert loaded.model.score(inputs, y) == 1.0
    assert loaded.transformed(inputs).shape == (12, loaded.svm.n_features_in_)


@pytest.mark.parametrize(("model", "data"), [("level", "docs.csv"), ("arff", "docs.arff"), ("sets", "sets.jsonl")])
def test_data_with_labels_of_other_kinds(folder, model, data):
    loaded = load_model(folder / model, TrustOptions())
    found, inputs, y = read_labelled(loaded, str(folder / data), SampleOptions(), LabelOptions())
    assert found.is_multilabel is loaded.is_multilabel is (model == "sets")
    assert loaded.model.score(inputs, y) == 1.0


def test_options_win_over_the_note(folder):
    loaded = load_model(folder / "path", TrustOptions())
    samples = SampleOptions(text=["id"])
    _, inputs, y = read_labelled(loaded, str(folder / "docs.csv"), samples, LabelOptions(label="label"))
    assert inputs == [str(k) for k in range(12)]
    assert list(y) == LABELS
    with pytest.raises(FileFormatError, match="not in the hierarchy"):
        read_labelled(loaded, str(folder / "docs.csv"), SampleOptions(), LabelOptions(label="text"))


def test_another_hierarchy(folder):
    loaded = load_model(folder / "csv", TrustOptions())
    labels = LabelOptions(hierarchy=folder / "numbers.tsv")
    with pytest.raises(FileFormatError, match="not in the hierarchy: 'dog'"):
        read_labelled(loaded, str(folder / "docs.csv"), SampleOptions(), labels)
    skipping = SampleOptions(on_error="skip")
    with pytest.raises(FileFormatError, match="no samples: 12 skipped"):
        read_labelled(loaded, str(folder / "docs.csv"), skipping, labels)


def test_inputs_of_the_wrong_kind(folder):
    texts, numbers = Dataset(None, None, texts=["a"]), Dataset(None, None, X=np.ones((1, 2)))
    with pytest.raises(OptionError, match="the model classifies texts"):
        load_model(folder / "text", TrustOptions()).inputs_of(numbers)
    with pytest.raises(OptionError, match="the model classifies features"):
        load_model(folder / "svm", TrustOptions()).inputs_of(texts)


def test_a_model_from_python_has_no_note(folder, tmp_path):
    model = package.NHSVM().fit(np.eye(2), ["x", "y"])
    model.save(tmp_path / "m.nhsvm")
    loaded = load_model(tmp_path / "m.nhsvm", TrustOptions())
    assert loaded == LoadedModel(loaded.model, {})
    assert loaded.svm is loaded.model
    (tmp_path / "x.svm").write_text("x 1:1\n")
    labels = LabelOptions(label_type="str")
    _, inputs, y = read_labelled(loaded, str(tmp_path / "x.svm"), SampleOptions(), labels)
    assert list(y) == list(model.predict(inputs)) == ["x"]


def test_formats():
    sources = [Source("-", SampleOptions(format=kind)) for kind in get_args(FileFormat)]
    assert {source.kind for source in sources if source.is_table} == {"csv", "tsv", "jsonl", "parquet"}
    assert {source.kind for source in sources if source.is_numbered} == {"svmlight", "lshtc"}


def test_permissions(tmp_path, monkeypatch):
    (tmp_path / "old").write_text("x")
    monkeypatch.setattr(os, "access", lambda *args: False)
    for name in ("old", "new"):
        with pytest.raises(OptionError, match="permission denied"):
            check_writable(tmp_path / name)


def test_a_pipe_is_written_to_as_it_is(tmp_path):
    with output_file("/dev/null") as stream:
        stream.write(b"x")
    assert Path("/dev/null").is_char_device()


def test_a_reader_that_is_gone_is_not_a_bad_option(tmp_path):
    with pytest.raises(BrokenPipeError), output_file(tmp_path / "x"):
        raise BrokenPipeError
    assert not list(tmp_path.iterdir())
