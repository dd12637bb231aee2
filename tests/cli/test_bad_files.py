"""Damaged data files, at every command that reads data: one line, exit code 2, nothing half-written."""

import gzip
import json
from pathlib import Path

import pytest

from cli.data import write_all
from cli.running import nhsvm

TEXT = ("--text", "text", "--label", "label")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    write_all(folder)
    assert nhsvm("train", folder / "docs.jsonl", "-q", "-o", folder / "text").code == 0
    assert nhsvm("train", folder / "docs.svm", "-q", "-o", folder / "svm").code == 0
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def damaged(folder, name, content):
    (folder / name).write_bytes(content)


def truncated(content):
    return gzip.compress(content)[:-20]


JSONL = json.dumps({"text": "woof", "labels": "dog"}).encode() + b"\n"
CASES = {
    "truncated gz": ("x.jsonl", truncated(JSONL * 1000), "not a whole gzip file"),
    "truncated gz, sparse": ("x.svm", truncated(b"3 1:1\n" * 1000), "not a whole gzip file"),
    "truncated gz, csv": ("x.csv", truncated(b"text,label\n" + b"a,b\n" * 1000), "not a whole gzip file"),
    "binary junk": ("x.jsonl", bytes(range(256)) * 50, "x.jsonl:1: "),
    "binary junk, sparse": ("x.svm", bytes(range(256)) * 50, "x.svm:"),
    "binary junk, csv": ("x.csv", bytes(range(128, 256)) * 50, "x.csv:1: "),
    "binary junk, parquet": ("x.parquet", bytes(range(256)) * 50, "not a whole Parquet file"),
    "binary junk, arff": ("x.arff", b"\x00\x01" * 500, "no @DATA"),
    "wrong encoding": (
        "x.csv",
        "text,label\ngrün,b\n".encode("latin-1"),
        "x.csv:2: not utf-8 text: invalid start byte at byte 2 of the line; say --encoding ... if it is another",
    ),
    "missing column": ("x.csv", b"words,label\na,b\n", "no column 'text'"),
    "empty": ("x.jsonl", b"", "no samples: the file is empty"),
    "empty, csv": ("x.csv", b"", "no samples: the file is empty"),
    "empty, header only": ("x.csv", b"text,label\n", "no samples: the file is empty"),
    "empty, sparse": ("x.svm", b"", "no samples: the file is empty"),
    "empty, arff": ("x.arff", b"", "the file is empty"),
    "nan": ("x.svm", b"3 1:nan\n", "expected a finite number, not 'nan'"),
    "nan, jsonl": ("x.jsonl", b'{"text": NaN, "labels": "a"}\n', "NaN is no JSON number"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", ["train", "tune", "predict", "evaluate", "convert"])
def test_damaged_files(models, folder, case, command):
    name, content, said = CASES[case]
    damaged(folder, name, content)
    has_columns = name.endswith((".csv", ".parquet"))
    model = models / ("text" if has_columns or name.endswith(".jsonl") else "svm")
    args = {
        "train": (name, *(TEXT if has_columns else ()), "-o", "out.nhsvm", "-q"),
        "tune": (name, *(TEXT if has_columns else ()), "-o", "out.nhsvm"),
        "predict": (model, name, *(TEXT[:2] if has_columns else ()), "-o", "out.csv"),
        "evaluate": (model, name, *(TEXT if has_columns else ()), "--report", "out.html"),
        "convert": (name, *(TEXT if has_columns else ()), "-o", "out.blocks"),
    }
    before = sorted(folder.iterdir())
    assert said in nhsvm(command, *args[command]).message
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"dog 1:1\n", "x.svm:1: expected a whole number as label, not 'dog' (--label-type str reads names)"),
        (b"3 1:1\n 1:1\n", "x.svm:2: expected a label (--multilabel allows for none)"),
    ],
)
def test_advice_is_in_the_words_of_the_command_line(folder, content, said):
    damaged(folder, "x.svm", content)
    assert nhsvm("train", "x.svm").message == said


def test_a_line_of_ten_megabytes(models, folder):
    long = "w" * 10_000_000
    damaged(folder, "x.jsonl", json.dumps({"text": long, "labels": "dog"}).encode() + b"\n" + JSONL)
    assert nhsvm("predict", models / "text", "x.jsonl").lines[0] == "label"
    damaged(folder, "x.jsonl", b"{" + b" " * 10_000_000)
    assert "x.jsonl:1: not JSON" in nhsvm("predict", models / "text", "x.jsonl").message
    damaged(folder, "x.svm", b"3 " + b"x" * 10_000_000)
    assert "x.svm:1: expected index:value: 'xxx" in nhsvm("train", "x.svm").message


@pytest.mark.parametrize(
    ("hierarchy", "said"),
    [
        ("animal\tdog\ndog\tanimal\n", "the hierarchy has a cycle"),
        ("animal\tdog\n", "docs.jsonl:4: not in the hierarchy: 'cat'"),
        ("", "an empty hierarchy"),
        ("animal\n", "expected two cells"),
    ],
)
def test_bad_hierarchies(folder, hierarchy, said):
    (folder / "bad.tsv").write_text(hierarchy)
    assert said in nhsvm("train", "docs.jsonl", "--hierarchy", "bad.tsv").message
    assert not (folder / "model.nhsvm").exists()


def test_a_truncated_hierarchy(folder):
    damaged(folder, "bad.tsv.gz", truncated(b"animal\tdog\n" * 1000))
    assert "not a whole gzip file" in nhsvm("train", "docs.jsonl", "--hierarchy", "bad.tsv.gz").message


def test_a_cycle_of_paths(folder):
    (folder / "x.csv").write_text("text,path\na,x > y\nb,y > x\n")
    said = nhsvm("train", "x.csv", "--text", "text", "--path", "path", "--last-part").message
    assert "the hierarchy has a cycle" in said


def test_a_folder_for_data(folder):
    assert "Is a directory" in nhsvm("train", ".", "--format", "jsonl").message


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.svm"])
def test_no_permission_to_read(models, folder, monkeypatch, name):
    def denied(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", denied)
        said = nhsvm("train", name, "-q").message
    assert said == f"{name}: cannot be read: Permission denied"
    assert not (folder / "model.nhsvm").exists()


def test_no_permission_to_read_a_model(models, folder, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("nhsvm.model.saving.read_parts", denied)
    assert (
        nhsvm("predict", models / "text", "docs.jsonl").message
        == f"{models / 'text'}: cannot be read: Permission denied"
    )


def test_unknown_labels_can_be_skipped(folder):
    (folder / "half.tsv").write_text("animal\tdog\nanimal\tcat\n")
    done = nhsvm("train", "docs.jsonl", "--hierarchy", "half.tsv", "--on-error", "skip", "-q", "--json")
    assert json.loads(done.out)["skipped"] == 6


def test_one_class_only(folder):
    damaged(folder, "x.jsonl", JSONL * 3)
    assert nhsvm("train", "x.jsonl", "-q").code == 0
    assert nhsvm("predict", "model.nhsvm", "docs.jsonl").lines == ["label", *["dog"] * 12]
