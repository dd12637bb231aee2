"""``nhsvm convert``, and the other commands on what it makes."""

import json
import warnings

import numpy as np
import polars
import pytest

from cli.data import DOCS, NUMBER, TERMS, write_all
from cli.running import nhsvm
from nhsvm.cli.terminal import Busy
from nhsvm.datasets import open_blocks
from nhsvm.model import load


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_all(folder)
    rows = [[float(text.split().count(term)) for term in TERMS] for text, _ in DOCS]
    frame = {"v": rows, "label": [label for _, label in DOCS], "k": list(range(len(DOCS)))}
    polars.DataFrame(frame).write_parquet(folder / "docs.parquet")
    return folder


def core(file):
    """What a model has learned."""
    model = load(file)
    return model[-1] if hasattr(model, "steps") else model


def same_model(one, other):
    one, other = core(one), core(other)
    assert np.asarray(one.coef_).tobytes() == np.asarray(other.coef_).tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()
    assert one.classes_.tolist() == other.classes_.tolist()


SOURCES = {
    "lshtc": ["docs.txt", "--hierarchy", "numbers.tsv"],
    "svmlight": ["docs.svm", "--hierarchy", "numbers.tsv"],
    "parquet": ["docs.parquet", "--features", "v", "--label", "label", "--hierarchy", "tree.tsv"],
    "arff": ["docs.arff"],
}


def given(files, words):
    return [str(files / word) if (files / word).exists() else word for word in words]


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_model_as_from_the_file(files, tmp_path, kind):
    source = given(files, SOURCES[kind])
    done = nhsvm("convert", *source, "-o", tmp_path / "a.blocks")
    assert (done.code, done.err) == (0, "")
    assert done.lines[0] == f"samples    {len(DOCS)}"
    assert nhsvm("train", tmp_path / "a.blocks", "-o", tmp_path / "a.nhsvm", "-q").code == 0
    assert nhsvm("train", *source, "-o", tmp_path / "b.nhsvm", "-q").code == 0
    same_model(tmp_path / "a.nhsvm", tmp_path / "b.nhsvm")
    for data in (source[0], tmp_path / "a.blocks"):
        predicted = nhsvm("predict", tmp_path / "a.nhsvm", data, "--chunk", "5")
        assert predicted.out == nhsvm("predict", tmp_path / "b.nhsvm", source[0]).out
        assert "100.0% got the right label" in nhsvm("evaluate", tmp_path / "a.nhsvm", data).out


@pytest.mark.parametrize("kind", ["lshtc", "parquet"])
@pytest.mark.parametrize("transform", ["l2", "tfidf", "bm25", "maxabs"])
def test_features_of_numbers(files, tmp_path, kind, transform):
    source = given(files, SOURCES[kind])
    assert nhsvm("convert", *source, "--transform", transform, "-o", tmp_path / "a.blocks").code == 0
    assert nhsvm("train", tmp_path / "a.blocks", "-o", tmp_path / "a.nhsvm", "-q").code == 0
    assert nhsvm("train", *source, "--transform", transform, "-o", tmp_path / "b.nhsvm", "-q").code == 0
    same_model(tmp_path / "a.nhsvm", tmp_path / "b.nhsvm")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
    one, other = (nhsvm("predict", tmp_path / f"{name}.nhsvm", source[0], "--scores").out for name in "ab")
    assert one == other
    message = nhsvm("evaluate", tmp_path / "a.nhsvm", tmp_path / "a.blocks").message
    assert "its features are made already, and the model makes them itself" in message


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--vectorizer", "bm25"],
        ["--vectorizer", "count", "--stop-words", "english"],
        ["--vectorizer", "hashing", "--max-features", "64"],
        ["--min-df", "2", "--max-features", "7", "--ngrams", "1,1"],
        ["--max-df", "0.3", "--min-df", "0.1", "--analyzer", "char_wb", "--ngrams", "2,3"],
    ],
)
def test_texts(files, tmp_path, options):
    source = [files / "docs.csv", "--text", "text", "--path", "path", *options]
    assert nhsvm("convert", *source, "-o", tmp_path / "a.blocks").code == 0
    assert nhsvm("train", tmp_path / "a.blocks", "-o", tmp_path / "a.nhsvm", "-q").code == 0
    assert nhsvm("train", *source, "-o", tmp_path / "b.nhsvm", "-q").code == 0
    same_model(tmp_path / "a.nhsvm", tmp_path / "b.nhsvm")
    one, other = (nhsvm("predict", tmp_path / f"{name}.nhsvm", files / "docs.csv", "--scores").out for name in "ab")
    assert one == other


def test_many_texts_leave_out_terms_that_come_once(tmp_path):
    rows = [{"text": f"word{k} {'dog barks' if k % 2 else 'cat purrs'}", "labels": "ab"[k % 2]} for k in range(1200)]
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = nhsvm("convert", file, "-o", tmp_path / "a.blocks", "--json")
    assert json.loads(done.out)["features"] == 6  # four words, and two pairs of them


def test_texts_with_label_sets_and_conditions(files, tmp_path):
    source = [files / "docs.jsonl", "--where", "split=train", "--hierarchy", files / "tree.tsv"]
    assert nhsvm("convert", *source, "-o", tmp_path / "a.blocks").code == 0
    assert nhsvm("train", tmp_path / "a.blocks", "-o", tmp_path / "a.nhsvm", "-q").code == 0
    assert nhsvm("train", *source, "-o", tmp_path / "b.nhsvm", "-q").code == 0
    same_model(tmp_path / "a.nhsvm", tmp_path / "b.nhsvm")
    sets = [files / "sets.jsonl", "--hierarchy", files / "tree.tsv"]
    assert nhsvm("convert", *sets, "-o", tmp_path / "s.blocks").code == 0
    assert open_blocks(tmp_path / "s.blocks").is_multilabel


def test_json_and_precision(files, tmp_path):
    done = nhsvm("convert", files / "docs.svm", "-o", tmp_path / "a.blocks", "--float32", "--json")
    found = json.loads(done.out)
    nnz = sum(len(set(text.split())) for text, _ in DOCS)
    assert (found["samples"], found["features"], found["entries"]) == (len(DOCS), len(TERMS), nnz)
    assert found["bytes"] == sum(p.stat().st_size for p in (tmp_path / "a.blocks").iterdir() if p.name != "header.json")
    data = open_blocks(tmp_path / "a.blocks")
    assert (data.X.dtype, data.y[0]) == (np.float32, NUMBER["dog"])


def test_a_test_set(files, tmp_path):
    (tmp_path / "test.txt").write_text("4 3:1 999:1\n")
    train = given(files, SOURCES["lshtc"])
    nhsvm("convert", *train, "-o", tmp_path / "train.blocks")
    nhsvm("train", tmp_path / "train.blocks", "-o", tmp_path / "a.nhsvm", "-q")
    nhsvm("convert", tmp_path / "test.txt", "-o", tmp_path / "wrong.blocks")
    assert (
        "convert the file again, with --like"
        in nhsvm("predict", tmp_path / "a.nhsvm", tmp_path / "wrong.blocks").message
    )
    done = nhsvm("convert", tmp_path / "test.txt", "--like", tmp_path / "train.blocks", "-o", tmp_path / "test.blocks")
    assert done.code == 0
    one = nhsvm("predict", tmp_path / "a.nhsvm", tmp_path / "test.blocks", "--scores").out
    assert one == nhsvm("predict", tmp_path / "a.nhsvm", tmp_path / "test.txt", "--scores").out


def test_no_labels_and_skipped_lines(files, tmp_path):
    (tmp_path / "bad.svm").write_text("3 1:1\nx\n4 2:1 1:1\n4 1:1 2:1\n")
    done = nhsvm("convert", tmp_path / "bad.svm", "--on-error", "skip", "-o", tmp_path / "a.blocks")
    assert (done.code, done.lines[0]) == (0, "samples    2")
    assert done.err.startswith("2 skipped; line 2: ")
    assert nhsvm("convert", files / "docs.svm", "--no-labels", "-o", tmp_path / "b.blocks").code == 0
    assert open_blocks(tmp_path / "b.blocks").y is None
    # nothing to learn from
    assert nhsvm("train", tmp_path / "b.blocks", "-o", tmp_path / "b.nhsvm", "-q").code == 2


def test_tune(files, tmp_path):
    source = given(files, SOURCES["parquet"])
    nhsvm("convert", *source, "-o", tmp_path / "a.blocks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = nhsvm("tune", tmp_path / "a.blocks", "--C", "1", "-o", tmp_path / "a.nhsvm", "-q", "--test-size", "0.4")
    assert done.code == 0, done.err
    nhsvm("convert", *source, "--transform", "l2", "-o", tmp_path / "b.blocks")
    assert "features are made already" in nhsvm("tune", tmp_path / "b.blocks", "-o", tmp_path / "b.nhsvm").message


def test_again(files, tmp_path):
    source = given(files, SOURCES["lshtc"])
    nhsvm("convert", *source, "-o", tmp_path / "a.blocks")
    assert "a.blocks exists already" in nhsvm("convert", *source, "-o", tmp_path / "a.blocks").message
    assert nhsvm("convert", *source, "--force", "--transform", "l2", "-o", tmp_path / "a.blocks").code == 0
    left = tmp_path / ".b.blocks.0123456789abcdef.tmp"
    left.mkdir()
    done = nhsvm("convert", *source, "-o", tmp_path / "b.blocks")
    assert "removed what an earlier conversion" in done.err
    assert not left.exists()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["docs.svm", "-o", "a.txt"], "the name must end in .blocks"),
        (["docs.xyz", "-o", "a.blocks"], "cannot tell the format"),
        (["a.blocks", "-o", "b.blocks"], "these are blocks already"),
        (["docs.svm", "-o", "absent/a.blocks"], "there is no folder"),
        (["docs.svm", "-o", "a.blocks", "--min-df", "2"], "--min-df is for texts"),
        (
            ["docs.csv", "--text", "text", "--label", "label", "--transform", "l2", "-o", "a.blocks"],
            "--transform is for",
        ),
        (["docs.svm", "-o", "a.blocks", "--transform", "standard"], "neither --missing nor --transform standard"),
        (["docs.svm", "-o", "a.blocks", "--missing", "zero"], "neither --missing nor --transform standard"),
        (
            ["docs.svm", "-o", "a.blocks", "--transform", "l2", "--like", "x.blocks"],
            "--like is for features as they are",
        ),
        (["-", "--format", "jsonl", "-o", "a.blocks"], "cannot come from standard input"),
        (
            ["docs.csv", "--text", "text", "--features", "id", "--label", "label", "-o", "a.blocks"],
            "give either --text or",
        ),
        (["docs.csv", "--features", "id", "-o", "a.blocks"], "say where the labels are"),
        (["docs.csv", "--text", "text", "--label", "label", "--min-df", "99", "-o", "a.blocks"], "no term is left"),
        (["docs.svm", "-o", "a.blocks", "--like", "absent.blocks"], "absent.blocks: cannot be read"),
        (["docs.jsonl", "--where", "split=x", "-o", "a.blocks"], "no samples are left; see --where"),
    ],
)
def test_bad_options(files, tmp_path, words, problem):
    words = [str(tmp_path / word) if word.endswith(".blocks") else word for word in words]
    assert problem in nhsvm("convert", *given(files, words)).message
    assert list(tmp_path.iterdir()) == []


def test_bm25_of_negative_numbers(tmp_path):
    (tmp_path / "a.svm").write_text("3 1:1\n4 1:2\n4 2:-1\n")
    message = nhsvm("convert", tmp_path / "a.svm", "--transform", "bm25", "-o", tmp_path / "a.blocks").message
    assert "counts must be ≥ 0, unlike those of sample 3" in message
    assert [p.name for p in tmp_path.iterdir()] == ["a.svm"]


def test_gaps_cannot_be_transformed(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,label\n1,,a\n2,1,b\n")
    words = [tmp_path / "a.csv", "--features", "x", "--features", "y", "--label", "label"]
    done = nhsvm("convert", *words, "--transform", "l2", "-o", tmp_path / "a.blocks")
    assert "no features can be made (norm): Input X contains NaN" in done.message


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--label", "label"], "--label is for CSV"),
        (["--any-order"], "give them to convert"),
        (["--label-type", "int"], "give --label-type to convert"),
        (["--transform", "l2"], "leave out --transform"),
        (["--min-df", "2"], "--min-df is for texts"),
    ],
)
def test_options_that_blocks_do_not_take(files, tmp_path, words, problem):
    nhsvm("convert", *given(files, SOURCES["lshtc"]), "--transform", "l2", "-o", tmp_path / "a.blocks")
    assert problem in nhsvm("train", tmp_path / "a.blocks", *words, "-o", tmp_path / "a.nhsvm").message


def test_damaged_steps(files, tmp_path):
    nhsvm("convert", *given(files, SOURCES["lshtc"]), "--transform", "tfidf", "-o", tmp_path / "a.blocks")
    steps = tmp_path / "a.blocks" / "steps.nhsvm"
    whole = steps.read_bytes()
    for damaged in (whole[:-1], bytes([*whole[:-1], whole[-1] ^ 1])):
        steps.write_bytes(damaged)
        assert "steps.nhsvm: damaged" in nhsvm("train", tmp_path / "a.blocks", "-o", tmp_path / "a.nhsvm").message
    steps.unlink()
    assert "steps.nhsvm: is missing" in nhsvm("train", tmp_path / "a.blocks", "-o", tmp_path / "a.nhsvm").message


def test_from_standard_input(files, tmp_path):
    raw = (files / "docs.svm").read_bytes()
    assert nhsvm("convert", "-", "--format", "svmlight", "-o", tmp_path / "a.blocks", stdin=raw).code == 0
    assert open_blocks(tmp_path / "a.blocks").n_samples == len(DOCS)


PASSES = {  # over the samples
    "numbers": (["docs.svm", "--hierarchy", "numbers.tsv"], 1),
    "numbers, transformed": (["docs.svm", "--hierarchy", "numbers.tsv", "--transform", "tfidf"], 3),
    "table": (["docs.parquet", "--features", "v", "--label", "label"], 1),
    "texts": (["docs.csv", "--text", "text", "--path", "path"], 2),
    "texts that are read once": (["docs.csv", "--text", "text", "--path", "path", "--vectorizer", "hashing"], 1),
    "whole": (["docs.arff"], 1),
}


@pytest.mark.parametrize("kind", PASSES)
def test_a_bar_goes_from_the_start_to_the_end(files, tmp_path, kind, monkeypatch):
    words, passes = PASSES[kind]
    told = []
    monkeypatch.setattr(Busy, "__call__", lambda self, what, share=None: told.append((what, share)))
    monkeypatch.setattr("nhsvm.cli.convert.ROWS", 5)
    monkeypatch.setattr("nhsvm.datasets.chunks.ROWS", 5)
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", 200)
    assert nhsvm("convert", *given(files, words), "-o", tmp_path / "a.blocks").code == 0
    shares = [share for _, share in told if share is not None]
    assert shares == sorted(shares)
    assert shares[0] <= 1 / passes
    assert shares[-1] == pytest.approx(1)
    assert len(shares) >= (1 if kind == "whole" else 2 * passes)
    assert len({what.lstrip("0123456789, ") for what, share in told if share is not None}) == passes


def test_of_a_pipe_nobody_knows_how_much_is_left(files, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(Busy, "__call__", lambda self, what, share=None: told.append((what, share)))
    raw = (files / "docs.svm").read_bytes()
    assert nhsvm("convert", "-", "--format", "svmlight", "-o", tmp_path / "a.blocks", stdin=raw).code == 0
    assert told == [(f"{len(DOCS)} samples converted", None)]
