"""``nhsvm reproduce``."""

import os

import pytest

from cli.running import nhsvm
from paper import sets


@pytest.mark.parametrize(
    "options",
    [
        ["synthetic", "--quick", "--repeats", 2],
        ["readings", "--quick", "--repeats", 2],
        ["norms", "--seed", 1],
        ["invariance", "--quick"],
        ["weights"],
    ],
)
def test_pages(options, tmp_path):
    done = nhsvm("reproduce", *options, "--out", tmp_path)
    assert done.code == 0, done.err
    name = options[0]
    page = (tmp_path / "results" / f"{name}.md").read_text(encoding="utf-8")
    assert f"    nhsvm reproduce {' '.join(map(str, options[:1]))}" in page
    assert (tmp_path / "images" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert f"../images/{name}.png" in page
    assert str(tmp_path / "results" / f"{name}.md") in done.lines
    if name in ("synthetic", "readings"):
        stored = tmp_path / "results" / f"{name}.json"
        assert nhsvm("reproduce", name, "--from", stored, "--out", tmp_path / "b").code == 0
        assert (tmp_path / "b" / "results" / f"{name}.md").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["synthetic", "--repeats", 1], "--repeats must be at least 2"),
        (["synthetic", "--jobs", 0], "--jobs must be at least 1"),
        (["synthetic", "--seed", -1], "--seed must be at least 0"),
        (["synthetic", "--from", "nothing.json"], "there is no such file"),
        (["readings", "--repeats", 1], "--repeats must be at least 2"),
        (["readings", "--from", "nothing.json"], "there is no such file"),
        (["norms", "--seed", -1], "--seed must be at least 0"),
    ],
)
def test_bad_options(options, message, tmp_path):
    assert message in nhsvm("reproduce", *options, "--out", tmp_path / "new").message
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x00\xff" * 99, "x.json: not UTF-8 text"),
        (b"", "x.json: this is no file of results"),
        (b'{"sets": {', "x.json: this is no file of results"),
        (b"[3]", "x.json: this is no file of results"),
    ],
)
@pytest.mark.parametrize("name", ["synthetic", "readings", "benchmarks"])
def test_damaged_results(name, content, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.json").write_bytes(content)
    assert said in nhsvm("reproduce", name, "--from", "x.json", "--out", "new").message
    assert not (tmp_path / "new").exists()


def test_a_disk_that_fills_up(tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "weights.md").write_text("old")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    said = nhsvm("reproduce", "weights", "--out", tmp_path).message
    assert said == f"{tmp_path / 'images' / 'weights.png'} cannot be written: No space left on device"
    assert (tmp_path / "results" / "weights.md").read_text() == "old"
    assert [path.name for path in tmp_path.rglob("*")] == ["images", "results", "weights.md"]


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is no folder" in nhsvm("reproduce", "weights", "--out", tmp_path / "file").message


def test_no_such_table():
    assert nhsvm("reproduce", "table9").code == 2


def test_benchmarks(tmp_path):
    sets.text_set(tmp_path / "data" / "clinc150", sets=False)
    run = ["reproduce", "benchmarks", "--data", tmp_path / "data", "--out", tmp_path]
    done = nhsvm(*run)
    assert done.code == 0, done.err
    assert "clinc150: NHSVM chosen" in done.err
    page = (tmp_path / "results" / "benchmarks.md").read_text(encoding="utf-8")
    assert "    nhsvm reproduce benchmarks --data DIR --sets clinc150 --seed 0" in page
    assert "- `newsgroups20`: newsgroups20/docs.jsonl, newsgroups20/hierarchy.tsv" in page
    assert (tmp_path / "images" / "benchmarks.png").read_bytes().startswith(b"\x89PNG")
    again = nhsvm(*run, "--sets", " clinc150")
    assert "clinc150: done before" in again.err
    assert again.lines == done.lines
    stored = tmp_path / "results" / "benchmarks.json"
    assert nhsvm("reproduce", "benchmarks", "--from", stored, "--out", tmp_path / "b").code == 0
    assert (tmp_path / "b" / "results" / "benchmarks.md").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --data DIR to run, or --from FILE"),
        (["--data", ".", "--from", "x.json"], "give --data DIR to run, or --from FILE"),
        (["--from", "nothing.json"], "there is no such file"),
        (["--data", "nothing"], "nothing is no folder"),
        (["--data", ".", "--sets", "clinc"], "there is no set 'clinc'"),
        (["--data", ".", "--sets", ""], "there is no set ''"),
        (["--data", ".", "--seed", -1], "--seed must be at least 0"),
    ],
)
def test_bad_options_of_benchmarks(options, message, tmp_path):
    assert message in nhsvm("reproduce", "benchmarks", *options, "--out", tmp_path / "new").message
    assert not (tmp_path / "new").exists()


def test_benchmarks_of_an_empty_folder(tmp_path):
    (tmp_path / "data").mkdir()
    done = nhsvm("reproduce", "benchmarks", "--data", tmp_path / "data", "--out", tmp_path / "new")
    assert "lacks all sets; looked for ipc: " in done.message
    assert not (tmp_path / "new").exists()
