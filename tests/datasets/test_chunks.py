"""Data files a part at a time, and from standard input."""

import gzip
import io
import os
import sys
import threading
from itertools import chain

import numpy as np
import polars
import pytest

from datasets.files import fails, put
from nhsvm import Hierarchy
from nhsvm.datasets import (
    Dataset,
    open_blocks,
    read_chunks,
    read_csv,
    read_hmc_arff,
    read_jsonl,
    read_lshtc,
    read_parquet,
    read_svmlight,
    write_blocks,
)
from nhsvm.errors import FileFormatError, OptionError

H = Hierarchy.from_edges([(1, 3), (1, 4)])


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "docs.csv"
    file.write_text("text,n,label\n" + "".join(f'"t\n{k}",{k},{3 + k % 2}\n' for k in range(10)))
    return file


@pytest.mark.parametrize("size", [1, 3, 10, 99])
def test_parts_make_up_the_whole(table, size):
    options = {"text": "text", "features": "n", "label": "label", "label_type": int, "hierarchy": H, "extra": "*"}
    whole = read_csv(table, **options)
    parts = list(read_chunks(read_csv, table, size, **options))
    assert [len(part) for part in parts] == [min(size, 10 - k) for k in range(0, 10, size)]
    assert list(chain.from_iterable(part.texts for part in parts)) == whole.texts
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), whole.X)
    assert list(chain.from_iterable(part.y.tolist() for part in parts)) == whole.y.tolist()
    assert list(whole.extra) == ["text", "n", "label"]
    assert list(chain.from_iterable(part.extra["n"] for part in parts)) == [str(k) for k in range(10)]


def test_json_and_parquet(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n')
    assert [part.texts for part in read_chunks(read_jsonl, tmp_path / "x.jsonl", 2, label=None)] == [["a", "b"], ["c"]]
    polars.DataFrame({"text": ["a", "b", "c"]}).write_parquet(tmp_path / "x.parquet")
    found = read_chunks(read_parquet, tmp_path / "x.parquet", 2, text="text", extra="*")
    assert [part.extra["text"] for part in found] == [["a", "b"], ["c"]]


@pytest.mark.parametrize("reader", [read_svmlight, read_lshtc])
@pytest.mark.parametrize("labelled", [None, False])
def test_sparse_rows(tmp_path, monkeypatch, reader, labelled):
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", 30)
    file = tmp_path / "x.svm"
    file.write_text("".join(f"{3 + k % 2} {k + 1}:1 {k + 20}:2\n" for k in range(10)))
    whole = reader(file, hierarchy=H)
    parts = list(read_chunks(reader, file, like=whole, labelled=labelled))
    assert len(parts) > 3
    assert (sum(part.X.sum(axis=0) for part in parts) == whole.X.sum(axis=0)).all()
    if labelled is None:
        assert list(chain.from_iterable(part.y.tolist() for part in parts)) == whole.y.tolist()
    else:
        assert all(part.y is None for part in parts)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("reader", [read_svmlight, read_jsonl])
def test_how_much_has_been_read(tmp_path, monkeypatch, reader, packed):
    rng, n = np.random.default_rng(0), 100_000  # so that packing leaves more than gzip reads at a time
    rows = {
        read_svmlight: [f"{3 + k % 2} {k + 1}:{rng.random()}\n" for k in range(n)],
        read_jsonl: [f'{{"text": "{rng.random()}"}}\n' for k in range(n)],
    }[reader]
    raw = "".join(rows).encode()
    (tmp_path / "x").write_bytes(gzip.compress(raw, 1) if packed else raw)
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", 50_000)
    options = {"like": reader(tmp_path / "x")} if reader is read_svmlight else {"label": None}
    chunks = read_chunks(reader, tmp_path / "x", n // 20, **options)
    assert chunks.share is None  # nothing is open
    shares = [chunks.share for _ in chunks]
    assert len(shares) > 5
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5 < shares[-1] <= 1
    assert chunks.share == 1.0


def test_how_much_has_been_read_of_rows_that_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("nhsvm.datasets.table_files.BATCH", 4)
    polars.DataFrame({"x": [float(k) for k in range(10)]}).write_parquet(tmp_path / "x.parquet")
    write_blocks(Dataset(None, None, np.eye(10)), tmp_path / "x.blocks")
    for reader, options in ((read_parquet, {"features": "x", "label": None}), (open_blocks, {})):
        chunks = read_chunks(reader, tmp_path / ("x.blocks" if reader is open_blocks else "x.parquet"), 4, **options)
        assert chunks.share is None
        assert [chunks.share for _ in chunks] == [0.4, 0.8, 1.0]


def test_how_much_of_a_pipe_nobody_knows(monkeypatch):
    given(monkeypatch, b'{"text": "a"}\n{"text": "b"}\n')
    chunks = read_chunks(read_jsonl, "-", 1, label=None)
    assert [chunks.share for _ in chunks] == [None, None]


def test_what_was_skipped_is_counted_to_the_end(tmp_path, monkeypatch):
    file = tmp_path / "x.jsonl"
    file.write_text('{"text": "a"}\nx\n{"text": 3}\n{"text": "b"}\ny\n')
    chunks = read_chunks(read_jsonl, file, 1, label=None, on_error="skip")
    assert [part.texts for part in chunks] == [["a"], ["b"]]
    assert chunks.skipped.count == 3
    assert [line for line, _ in chunks.skipped.first] == [2, 3, 5]
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", 8)
    file.write_text("1:1\n1:x\n2:1\n2:y\n")
    like = Dataset(None, None, feature_names=range(1, 3))
    chunks = read_chunks(read_svmlight, file, like=like, labelled=False, on_error="skip")
    assert sum(len(part) for part in chunks) == 2
    assert chunks.skipped.count == 2


def test_nothing_left(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_text("x\n")
    with pytest.raises(FileFormatError, match="no samples: 1 skipped"):
        list(read_chunks(read_jsonl, file, on_error="skip"))
    file.write_text("")
    with pytest.raises(FileFormatError, match="the file is empty"):
        list(read_chunks(read_jsonl, file))


def test_bad_options(table):
    with pytest.raises(OptionError, match="size must be at least 1"):
        read_chunks(read_csv, table, 0, text="text")
    with pytest.raises(OptionError, match="an ARFF file is read as a whole"):
        read_chunks(read_hmc_arff, table)
    with pytest.raises(OptionError, match="cannot use print"):
        read_chunks(print, table)
    with pytest.raises(OptionError, match="need like="):
        list(read_chunks(read_svmlight, table))
    with pytest.raises(TypeError, match="unexpected keyword"):
        read_chunks(read_csv, table, texts="text")


def given(monkeypatch, raw):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(monkeypatch, packed):
    raw = b'{"text": "a"}\n{"text": "b"}\n'
    given(monkeypatch, gzip.compress(raw) if packed else raw)
    assert read_jsonl("-", label=None).texts == ["a", "b"]


def test_errors_of_standard_input(monkeypatch):
    given(monkeypatch, b"x\n")
    with pytest.raises(FileFormatError, match=r"^-:1: not JSON"):
        read_jsonl("-", label=None)
    given(monkeypatch, b"")
    with pytest.raises(FileFormatError, match=r"^-: no samples: the file is empty"):
        read_jsonl("-", label=None)


@pytest.mark.parametrize("packed", [False, True])
def test_pipes_cannot_go_back(tmp_path, packed):
    raw = b"".join(b'{"text": "%d"}\n' % k for k in range(50_000))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def feed():
        pipe.write_bytes(gzip.compress(raw, 1) if packed else raw)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        assert read_jsonl(pipe, label=None).texts == [str(k) for k in range(50_000)]
    finally:
        thread.join()


@pytest.mark.parametrize("read", [read_svmlight, read_lshtc])
def test_labels_that_begin_late(tmp_path, monkeypatch, read):
    """They are an error in whatever part they are, as in the file as a whole."""
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", 8)
    file = put(tmp_path, "test", "1:1\n2:1\n1:2\n2:2\n1 1:1\n")
    fails(read, file, 5, "a label, where the first row has none")
    like = Dataset(None, None, feature_names=range(1, 3))
    parts = iter(read_chunks(read, file, like=like))
    assert next(parts).y is None
    with pytest.raises(FileFormatError, match=r"test:5: a label, where the first row has none"):
        list(parts)


@pytest.mark.parametrize("read", [read_svmlight, read_lshtc])
def test_parts_have_the_form_of_labels_of_like(tmp_path, monkeypatch, read):
    """A part in which every sample happens to have one label is no other kind of data."""
    monkeypatch.setattr("nhsvm.datasets.files.BLOCK", 12)
    train = read(put(tmp_path, "train", "1,2 1:1\n2 2:1\n"))
    test = put(tmp_path, "test", "1 1:1\n2 2:1\n1,2 1:1\n")
    parts = [part.y for part in read_chunks(read, test, like=train)]
    assert [type(part) for part in parts] == [list, list]
    assert parts == [[[1], [2]], [[1, 2]]]
