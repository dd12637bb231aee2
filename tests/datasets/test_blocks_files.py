"""Blocks that are half-written, damaged, in the way, or on a full disk: an error that names the file, and no harm."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import zlib
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from datasets.files import NAMES, NUMBERS, put
from nhsvm.datasets import (
    Dataset,
    convert_to_blocks,
    open_blocks,
    read_csv,
    read_jsonl,
    read_lshtc,
    read_parquet,
    read_svmlight,
    write_blocks,
)
from nhsvm.datasets.blocks import checksum, read_header
from nhsvm.datasets.blocks_writer import new_folder
from nhsvm.datasets.chunks import source_of
from nhsvm.errors import FileFormatError, OptionError

LINES = "".join(f"{2 + k % 4} {1 + k % 7}:{k} {9 + k % 5}:1\n" for k in range(200))
EMPTY = Dataset(None, None, np.eye(2))


@pytest.fixture
def blocks(tmp_path):
    """Blocks that have every kind of file."""
    to = tmp_path / "a.blocks"
    text = put(tmp_path, "train.txt", "3,4 7:1 90:2\n4 7:3\n5 8:1 90:1\n")
    convert_to_blocks(read_lshtc, text, to, hierarchy=NUMBERS)
    text.unlink()
    return to


def hidden(folder):
    return sorted(p.name for p in folder.iterdir() if p.name.startswith("."))


# --- a process that is killed ------------------------------------------------

_CONVERT = """
import sys
from nhsvm.datasets import files, convert_to_blocks, read_svmlight
files.BLOCK = 500

def progress(n_rows, share):
    if n_rows > 100:
        print("half", flush=True)
        sys.stdin.read()

convert_to_blocks(read_svmlight, sys.argv[1], sys.argv[2], progress=progress)
"""


def test_killed_half_way(tmp_path):
    source, to = put(tmp_path, "train.svm", LINES), tmp_path / "a.blocks"
    child = subprocess.Popen(
        [sys.executable, "-c", _CONVERT, str(source), str(to)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout.readline() == b"half\n"
        with pytest.raises(OptionError, match=r"another process is writing .*a.blocks at the moment"):
            convert_to_blocks(read_svmlight, source, to)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.communicate()
    [left] = hidden(tmp_path)
    assert os.path.getsize(tmp_path / left / "data.f64") >= 0
    with pytest.raises(FileFormatError, match=r"a.blocks: cannot be read: No such file.*begun and not finished"):
        open_blocks(to)
    with pytest.raises(FileFormatError, match=r"no header.json"):
        open_blocks(tmp_path / left)
    assert convert_to_blocks(read_svmlight, source, to).removed == 1
    assert hidden(tmp_path) == []
    found, wanted = open_blocks(to), read_svmlight(source)
    assert np.array_equal(found.X.toarray(), wanted.X.toarray())
    assert found.y.tolist() == wanted.y.tolist()


def test_killed_between_two_renames(blocks, tmp_path):
    before = open_blocks(blocks).X.toarray()
    blocks.rename(tmp_path / ".a.blocks.0123456789abcdef.old")
    shutil.copytree(tmp_path / ".a.blocks.0123456789abcdef.old", tmp_path / ".a.blocks.0123456789abcdef.tmp")
    with pytest.raises(OptionError, match="exists already"):
        write_blocks(EMPTY, blocks)
    assert np.array_equal(open_blocks(blocks).X.toarray(), before)
    assert hidden(tmp_path) == []


def test_other_hidden_files_are_left_alone(tmp_path):
    for name in (".a.blocks.tmp", ".a.blocks.mine.tmp", ".b.blocks.0123456789abcdef.tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / ".a.blocks.0123456789abcdef.tmp").write_text("a file")
    assert write_blocks(EMPTY, tmp_path / "a.blocks").removed == 0
    assert len(hidden(tmp_path)) == 4


def test_an_error_leaves_nothing(tmp_path):
    with pytest.raises(FileFormatError, match=r"train.svm:201: expected a whole number as label"):
        convert_to_blocks(read_svmlight, put(tmp_path, "train.svm", LINES + "x 1:1\n"), tmp_path / "a.blocks")
    with pytest.raises(FileFormatError, match="the file is empty"):
        convert_to_blocks(read_lshtc, put(tmp_path, "empty.txt", ""), tmp_path / "a.blocks")

    def stop(n_rows, share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert_to_blocks(read_svmlight, put(tmp_path, "b.svm", LINES), tmp_path / "a.blocks", progress=stop)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.svm", "empty.txt", "train.svm"]


# --- what is there already ---------------------------------------------------


def test_replacing(blocks, tmp_path):
    open_before = open_blocks(blocks).X
    before = open_before.toarray()
    with pytest.raises(OptionError, match=r"a.blocks exists already.*--force"):
        write_blocks(EMPTY, blocks)
    assert np.array_equal(open_blocks(blocks).X.toarray(), before)
    write_blocks(EMPTY, blocks, force=True)
    assert np.array_equal(open_blocks(blocks).X, np.eye(2))
    assert np.array_equal(open_before.toarray(), before)  # who has the old ones open keeps them
    assert hidden(tmp_path) == []


def test_an_empty_folder_may_be_replaced(tmp_path):
    (tmp_path / "a.blocks").mkdir()
    write_blocks(EMPTY, tmp_path / "a.blocks", force=True)
    assert open_blocks(tmp_path / "a.blocks").n_samples == 2


def test_what_is_not_ours_is_never_replaced(tmp_path):
    folder = tmp_path / "a.blocks"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    (tmp_path / "b.blocks").write_text("a file")
    (tmp_path / "c.blocks").symlink_to(folder)
    (tmp_path / "foreign.blocks").mkdir()
    (tmp_path / "foreign.blocks" / "header.json").write_text("{}")
    for name in ("a", "b", "c", "foreign"):
        with pytest.raises(OptionError, match="exists and is not a folder of blocks"):
            write_blocks(EMPTY, tmp_path / f"{name}.blocks", force=True)
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_failed_rename_keeps_the_old_ones(blocks, tmp_path, monkeypatch):
    rename, calls = os.rename, []

    def second_fails(source, target):
        calls.append(source)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr("nhsvm._atomic._exchanged", lambda *_: False)  # a system that cannot do it in one step
    monkeypatch.setattr("os.rename", second_fails)
    with pytest.raises(OptionError, match=r"a.blocks cannot be written: Input/output error; nothing of it is kept"):
        write_blocks(EMPTY, blocks, force=True)
    assert open_blocks(blocks).n_samples == 3
    assert hidden(tmp_path) == []


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(OptionError, match="there is no folder"):
        write_blocks(EMPTY, tmp_path / "absent" / "a.blocks")
    with pytest.raises(OptionError, match="is no name"):
        write_blocks(EMPTY, "/")
    with pytest.raises(OptionError, match="expected the path"):
        write_blocks(EMPTY, 3)
    monkeypatch.setattr("os.access", lambda *args: False)  # root may write anywhere
    with pytest.raises(OptionError, match="permission denied"):
        write_blocks(EMPTY, tmp_path / "a.blocks")


def test_two_at_a_time(tmp_path):
    with new_folder(tmp_path / "a.blocks"), pytest.raises(OptionError, match="another process is writing"):
        write_blocks(EMPTY, tmp_path / "a.blocks")
    write_blocks(EMPTY, tmp_path / "a.blocks")


# --- the disk ----------------------------------------------------------------

Usage = namedtuple("Usage", "total used free")


def room(monkeypatch, free):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage(10**9, 10**9 - free, free))


def test_a_disk_that_is_too_small_is_told_from_the_first_part(tmp_path, monkeypatch):
    """The first part would fit, all of them would not."""
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", 4000)
    source = put(tmp_path, "train.svm", LINES * 1000)
    room(monkeypatch, 2_000_000)
    seen = []
    with pytest.raises(OptionError, match=r"a.blocks needs about 9 MB more, but the disk has 2 MB free"):
        convert_to_blocks(read_svmlight, source, tmp_path / "a.blocks", progress=lambda *told: seen.append(told))
    assert seen == []
    assert [p.name for p in tmp_path.iterdir()] == ["train.svm"]
    room(monkeypatch, 20_000_000)
    convert_to_blocks(read_svmlight, source, tmp_path / "a.blocks")


def expected_rows(reader, file, **options):
    return source_of(reader, file, options, "the test").expected_rows()


@pytest.mark.parametrize("ending", ["parquet", "csv", "svm.gz", "jsonl"])
def test_rows_that_are_expected(tmp_path, ending, monkeypatch):
    import polars

    frame = polars.DataFrame({"x": [float(k) for k in range(1000, 1500)]})
    file = tmp_path / f"a.{ending}"
    if ending == "parquet":
        frame.write_parquet(file)
        assert expected_rows(read_parquet, file, features="x") == 500
        assert expected_rows(read_parquet, put(tmp_path, "b.parquet", "junk"), features="x") is None
    elif ending == "csv":
        frame.write_csv(file)
        assert expected_rows(read_csv, file, features="x") == 501
    elif ending == "jsonl":
        assert expected_rows(read_jsonl, put(tmp_path, "a.jsonl", "")) is None
        assert expected_rows(read_jsonl, tmp_path / "absent.jsonl") is None
        assert expected_rows(read_jsonl, tmp_path) is None

        def refuse(self, *args, **kwargs):  # root may read anything
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr(Path, "open", refuse)
        assert expected_rows(read_jsonl, tmp_path / "a.jsonl") is None
    else:
        assert expected_rows(read_svmlight, put(tmp_path, "a.svm.gz", LINES)) is None


def test_a_part_that_does_not_fit(tmp_path, monkeypatch):
    room(monkeypatch, 1_000_000)
    with pytest.raises(OptionError, match="needs about 1 MB more, but the disk has 1 MB free"):
        write_blocks(EMPTY, tmp_path / "a.blocks")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full(tmp_path, monkeypatch):
    def full(self, array):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("nhsvm.datasets.blocks_writer.NumberFile.append", full)
    with pytest.raises(
        OptionError, match=r"a.blocks cannot be written: No space left on device; nothing of it is kept"
    ):
        write_blocks(EMPTY, tmp_path / "a.blocks")
    assert list(tmp_path.iterdir()) == []


# --- damage ------------------------------------------------------------------

FILES = [
    "indptr.i64", "indices.i32", "data.f64", "label_codes.i32", "label_indptr.i64", "feature_numbers.i64",
    "parent.i32", "child.i32", "names.json",
]  # fmt: skip


def test_every_file_is_listed(blocks):
    assert sorted(p.name for p in blocks.iterdir()) == sorted([*FILES, "header.json"])


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(blocks, name):
    file = blocks / name
    whole = file.read_bytes()
    for damaged in (whole[:-1], b"", whole + b"\0"):
        file.write_bytes(damaged)
        for verify in (True, False):
            with pytest.raises(FileFormatError, match=f"{name}: (cut short|too long|damaged)"):
                open_blocks(blocks, verify=verify)
    for k in range(len(whole)):
        for bit in (1, 128):
            file.write_bytes(whole[:k] + bytes([whole[k] ^ bit]) + whole[k + 1 :])
            with pytest.raises(FileFormatError, match=r"damaged"):
                open_blocks(blocks)
    file.unlink()
    with pytest.raises(FileFormatError, match=f"{name}: is missing"):
        open_blocks(blocks)
    file.mkdir()
    with pytest.raises(FileFormatError, match=f"{name}: cannot be read: Is a directory"):
        open_blocks(blocks)


def test_damaged_header(blocks):
    file = blocks / "header.json"
    whole = file.read_bytes()
    for k in range(len(whole)):
        if whole[k] not in b" \n":  # which may be another blank
            file.write_bytes(whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :])
            with pytest.raises(FileFormatError, match=r"header.json: "):
                read_header(blocks)
    for damaged in (b"", whole[:100], b"[]", b"{}", b"\xff\xfe", b"[" * 100_000):
        file.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"header.json: (damaged|not the header)"):
            open_blocks(blocks)
    file.write_bytes(whole.replace(b'"version": 1', b'"version": 2'))
    with pytest.raises(FileFormatError, match="blocks of version 2, and this nhsvm reads version 1"):
        open_blocks(blocks)
    file.unlink()
    with pytest.raises(FileFormatError, match=r"a.blocks: not a folder of blocks: it has no header.json"):
        open_blocks(blocks)
    file.mkdir()
    with pytest.raises(FileFormatError, match=r"header.json: cannot be read: Is a directory"):
        open_blocks(blocks)


def test_not_blocks_at_all(tmp_path):
    with pytest.raises(FileFormatError, match=r"x.txt: not a folder of blocks, but a file"):
        open_blocks(put(tmp_path, "x.txt", "1 1:1\n"))
    with pytest.raises(FileFormatError, match=r"absent: cannot be read: No such file or directory$"):
        open_blocks(tmp_path / "absent")
    with pytest.raises(FileFormatError, match=r"No such file or directory$"):
        open_blocks(tmp_path / "absent" / "a.blocks")


def with_names(blocks, names):
    """Other names, with the right checksums."""
    raw = names if isinstance(names, bytes) else json.dumps(names).encode()
    (blocks / "names.json").write_bytes(raw)
    content = json.loads((blocks / "header.json").read_bytes())["content"]
    content["files"]["names.json"] = {"bytes": len(raw), "crc32": zlib.crc32(raw)}
    (blocks / "header.json").write_bytes(_raw(content))


def _raw(content):
    """A header that says this, with the right checksum."""
    outer = {"format": "nhsvm blocks", "version": 1, "crc32": checksum(content), "content": content}
    return json.dumps(outer).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"n_rows": -1},
        {"n_rows": 4},
        {"n_rows": "3"},
        {"n_rows": True},
        {"n_features": 2**31},
        {"nnz": 4},
        {"nnz": None},
        {"nnz": "5"},
        {"dtype": "float16"},
        {"labels": "many"},
        {"labels": "one"},
        {"labels": "none"},
        {"label_dtype": "U5"},
        {"features": "words"},
        {"features": "names"},
        {"hierarchy": 1},
        {"hierarchy": False},
        {"note": []},
        {"files": {}},
        {"files": []},
        {"files": {"indptr.i64": 3}},
        {"files": {"indptr.i64": {"bytes": 8}}},
        {"files": {"indptr.i64": {"bytes": "x", "crc32": 1}}},
        {"files": {"indptr.i64": {"bytes": float("inf"), "crc32": 1}}},
    ],
)
def test_a_header_that_contradicts_itself(blocks, changes):
    content = json.loads((blocks / "header.json").read_bytes())["content"] | changes
    (blocks / "header.json").write_bytes(_raw(content))
    with pytest.raises(FileFormatError, match=r"header.json: damaged"):
        open_blocks(blocks)


def test_a_header_with_an_entry_less(blocks):
    content = json.loads((blocks / "header.json").read_bytes())["content"]
    for name in content:
        (blocks / "header.json").write_bytes(_raw({k: v for k, v in content.items() if k != name}))
        with pytest.raises(FileFormatError, match=r"header.json: damaged: entries are missing"):
            open_blocks(blocks)


@pytest.mark.parametrize(
    ("name", "place", "value", "problem"),
    [
        ("indptr.i64", 0, 1, "rows do not follow"),
        ("indptr.i64", 1, 9, "rows do not follow"),
        ("indptr.i64", 3, 4, "rows do not follow"),
        ("indices.i32", 0, -1, "a feature that does not exist"),
        ("indices.i32", 4, 3, "a feature that does not exist"),
        ("indices.i32", 1, 0, "a row is not sorted"),
        ("label_codes.i32", 0, 3, "a label that does not exist"),
        ("label_codes.i32", 0, -1, "a label that does not exist"),
        ("label_indptr.i64", 0, 1, "samples do not follow"),
        ("label_indptr.i64", 2, 1, "samples do not follow"),
        ("parent.i32", 0, 99, "joins no nodes"),
        ("child.i32", 0, 0, "its hierarchy is wrong"),
    ],
)
def test_numbers_that_kernels_must_never_see(blocks, name, place, value, problem):
    """Not damage, but malice: the checksums are right."""
    numbers = np.fromfile(blocks / name, dtype="<i8" if name.endswith("64") else "<i4")
    numbers[place] = value
    numbers.tofile(blocks / name)
    content = json.loads((blocks / "header.json").read_bytes())["content"]
    content["files"][name]["crc32"] = zlib.crc32(numbers.tobytes())
    (blocks / "header.json").write_bytes(_raw(content))
    with pytest.raises(FileFormatError, match=problem):
        open_blocks(blocks)


@pytest.mark.parametrize("names", [{}, {"labels": "ab", "nodes": []}, {"labels": [1.5], "nodes": []}])
def test_names_that_are_none(blocks, names):
    with_names(blocks, names)
    with pytest.raises(FileFormatError, match=r"names.json: damaged: no list of"):
        open_blocks(blocks)


@pytest.mark.parametrize("names", [b"", b"{", b"\xff", b"3", b"null", b"[]", b"[" * 100_000])
def test_names_that_are_no_json(blocks, names):
    with_names(blocks, names)
    with pytest.raises(FileFormatError, match=r"names.json: damaged: not a JSON object"):
        open_blocks(blocks)


@pytest.mark.parametrize("size", [2**40, 2**62, 10**30])
def test_names_of_any_size(blocks, size):
    """What a header says is no reason to ask for so much memory."""
    content = json.loads((blocks / "header.json").read_bytes())["content"]
    content["files"]["names.json"]["bytes"] = size
    (blocks / "header.json").write_bytes(_raw(content))
    with pytest.raises(FileFormatError, match=r"names.json: damaged: its checksum"):
        open_blocks(blocks)


@pytest.mark.parametrize("names", [["a", "b", "c"], [1, 2, 2**63], [1, 2, "3"]])
def test_numbers_as_labels_that_are_none(tmp_path, names):
    blocks = tmp_path / "a.blocks"
    write_blocks(Dataset(np.array([7, 8, 9]), None, np.eye(3)), blocks)
    with_names(blocks, {"labels": names})
    with pytest.raises(FileFormatError, match=r"a.blocks: damaged: labels of the type int64 that are no"):
        open_blocks(blocks)


def test_half_a_number(blocks):
    content = json.loads((blocks / "header.json").read_bytes())["content"]
    raw = (blocks / "parent.i32").read_bytes()[:-1]
    (blocks / "parent.i32").write_bytes(raw)
    content["files"]["parent.i32"] = {"bytes": len(raw), "crc32": zlib.crc32(raw)}
    (blocks / "header.json").write_bytes(_raw(content))
    with pytest.raises(
        FileFormatError, match=r"header.json: damaged: parent.i32 is not listed, or with another length"
    ):
        open_blocks(blocks)


def test_too_few_names_of_features(tmp_path):
    to = tmp_path / "a.blocks"
    data = Dataset(None, NAMES, np.eye(2), feature_names=np.array(["a", "b"], dtype=object))
    write_blocks(data, to)
    assert open_blocks(to).feature_names.tolist() == ["a", "b"]
    raw = json.dumps({"features": ["a"], "nodes": list(NAMES.nodes)}).encode()
    (to / "names.json").write_bytes(raw)
    content = json.loads((to / "header.json").read_bytes())["content"]
    content["files"]["names.json"] = {"bytes": len(raw), "crc32": zlib.crc32(raw)}
    (to / "header.json").write_bytes(_raw(content))
    with pytest.raises(FileFormatError, match="another number of features"):
        open_blocks(to)


# --- options -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "options", "problem"),
    [
        (read_svmlight, {"zero_based": "maybe"}, "zero_based must be"),
        (read_svmlight, {"n_features": 0}, "n_features must be from 1"),
        (read_svmlight, {"label_type": float}, "label_type must be int or str"),
        (read_svmlight, {"dtype": "int8"}, "dtype must be float32 or float64"),
        (read_svmlight, {"on_error": "shout"}, "on_error must be"),
        (read_svmlight, {"like": 3}, "like must be a Dataset"),
        (read_svmlight, {"like": EMPTY}, "numbered features"),
        (read_svmlight, {"hierarchy": 3}, "hierarchy must be"),
        (read_svmlight, {"each": lambda part: part}, "each is for tables"),
        (read_csv, {"text": "t"}, "blocks hold features, not texts"),
        (read_csv, {}, "say where the samples are"),
        (
            read_csv,
            {"features": "x", "path": "p", "qualified": False, "drop_implied": True},
            "drop_implied needs a hierarchy here",
        ),
        (open_blocks, {}, "cannot use open_blocks"),
    ],
)
def test_options(tmp_path, reader, options, problem):
    with pytest.raises(OptionError, match=problem):
        convert_to_blocks(reader, put(tmp_path, "a.txt", LINES), tmp_path / "a.blocks", **options)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
