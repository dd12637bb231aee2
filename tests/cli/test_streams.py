"""Standard streams that are closed, full, or read by nobody; text that has no encoding; cells that are formulas."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import nhsvm as package
from cli.data import write_all
from cli.running import nhsvm, replaced
from nhsvm.cli import main
from nhsvm.cli.terminal import standard_streams
from nhsvm.errors import CacheWarning
from nhsvm.model import save

NHSVM = f"{sys.executable} -m nhsvm"
posix = pytest.mark.skipif(os.name != "posix", reason="shells of POSIX")
full_disk = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    write_all(folder)
    done = nhsvm(
        "train", folder / "docs.csv", "--text", "text", "--label", "label", "--quiet", "-o", folder / "m.nhsvm"
    )
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    write_all(tmp_path)
    (tmp_path / "m.nhsvm").write_bytes((made / "m.nhsvm").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- standard output ---------------------------------------------------------

PRINTING = [
    ("--help",),
    ("train", "--help"),
    ("--version",),
    ("train", "docs.csv", "--text", "text", "--label", "label", "-q"),
    ("train", "docs.csv", "--text", "text", "--label", "label", "-q", "--json"),
    ("predict", "m.nhsvm", "docs.csv"),
    ("predict", "m.nhsvm", "docs.csv", "--to", "jsonl"),
    ("evaluate", "m.nhsvm", "docs.csv"),
    ("inspect", "m.nhsvm"),
    ("inspect", "tree.tsv", "--json"),
    ("shrink", "m.nhsvm", "--precision", "int8", "-o", "s.nhsvm"),
    ("convert", "docs.svm", "-o", "d.blocks", "-q"),
    ("reproduce", "weights", "--out", "pages"),
]


def on_standard_output(number, words):
    """Exit code and standard error of a command in this process whose standard output is a file of this number."""
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with open(number, "w", encoding="utf-8") as out, replaced(sys, argv=["nhsvm", *words], stdout=out, stderr=err):
        with pytest.raises(SystemExit) as ended:
            main()
        assert sys.stdout is out
    err.flush()
    return ended.value.code, err.buffer.getvalue().decode()


@full_disk
@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_full_disk(folder, words):
    code, err = on_standard_output(os.open("/dev/full", os.O_WRONLY), words)
    assert (code, err) == (1, "nhsvm: standard output: No space left on device\n")


@posix
@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_reader_that_is_gone(folder, words):
    reader, writer = os.pipe()
    os.close(reader)
    assert on_standard_output(writer, words) == (141, "")


CLOSED = "nhsvm: standard output is closed; -o names a file, where a command has it"


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_closed_standard_output(folder, words):
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with replaced(sys, argv=["nhsvm", *words], stdout=None, stderr=err), pytest.raises(SystemExit) as ended:
        main()
    said = err.buffer.getvalue().decode()
    assert (ended.value.code, said) == (
        1,
        "nhsvm: standard output is closed; -o names a file, where a command has it\n",
    )


@posix
def test_a_pipe_that_is_named(folder):
    os.mkfifo("pipe.csv")
    reader = subprocess.Popen(["head", "-c", "0", "pipe.csv"])  # opens it and goes away
    with open("docs.csv", "a") as file:
        file.write("1,text,dog,a,b\n" * 20_000)
    done = nhsvm("predict", "m.nhsvm", "docs.csv", "-o", "pipe.csv", "-q")
    reader.wait()
    assert (done.code, done.out, done.err) == (141, "", "")


@posix
def test_streams_that_the_shell_has_closed(folder):
    """What in one process cannot be seen: numbers of files, and what Python says at its end."""
    script = f"{NHSVM} inspect tree.tsv >&-; echo $?; {NHSVM} convert docs.svm -o d.blocks <&- >&- 2>&-; echo $?"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n1\n", f"{CLOSED}\n")
    assert nhsvm("inspect", "d.blocks").code == 0  # no line of progress has gone into a file of it


def test_a_closed_standard_input_is_empty(folder):
    words = ["nhsvm", "predict", "m.nhsvm", "-", "--format", "csv"]
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with replaced(sys, argv=words, stdin=None, stderr=err), pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, err.buffer.getvalue()) == (2, b"nhsvm: -: no samples: the file is empty\n")


def test_a_parquet_file_that_is_too_large(folder):
    """polars, given a file, writes past Python, and panics or has errors of its own."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        done = nhsvm("predict", "m.nhsvm", "docs.csv", "-o", "p.parquet", "-q")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.message == "p.parquet cannot be written: File too large"
    assert not any("parquet" in name or ".tmp" in name for name in os.listdir())


@full_disk
def test_progress_that_nobody_can_read_is_lost_and_the_work_goes_on(folder):
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    words = ["nhsvm", "train", "docs.csv", "--text", "text", "--label", "label", "-o", "new.nhsvm"]
    with open("/dev/full", "w") as err, replaced(sys, argv=words, stdout=out, stderr=err):
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
    assert os.path.exists("new.nhsvm")


def test_streams_are_as_before_afterwards():
    before = sys.stdin, sys.stdout, sys.stderr
    with standard_streams():
        pass
    assert (sys.stdin, sys.stdout, sys.stderr) == before


# --- errors and warnings -----------------------------------------------------


@pytest.mark.parametrize(("text", "said"), [("", "gives no more of it"), ("3 TiB", "not enough memory: 3 TiB")])
def test_too_little_memory(folder, monkeypatch, text, said):
    def fail(self, X, **how):
        raise MemoryError(*([text] if text else []))

    monkeypatch.setattr(package.NHSVM, "predict", fail)
    assert said in nhsvm("predict", "m.nhsvm", "docs.csv", "-o", "x.csv").message


def test_warnings_of_the_library_are_a_plain_line(folder, monkeypatch):
    def warn(self, X, **how):
        warnings.warn("compiled code cannot be kept", CacheWarning, stacklevel=2)
        return np.repeat(self.classes_[:1], X.shape[0])

    monkeypatch.setattr(package.NHSVM, "predict", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = nhsvm("predict", "m.nhsvm", "docs.csv")
    assert (done.code, done.err) == (0, "compiled code cannot be kept\n")


# --- text that has no encoding -----------------------------------------------

HALF = "half \ud800"  # of a pair of surrogates: JSON can say it, UTF-8 cannot
ESCAPED = "half \\ud800"


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A model with such a label, and data."""
    folder = tmp_path_factory.mktemp("halves")
    rows = [{"text": text, "labels": label} for text, label in (("a b", HALF), ("c d", "whole")) for _ in range(4)]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    h = package.Hierarchy.from_edges([("root", HALF), ("root", "whole")])
    model = package.NHSVM(h).fit(np.eye(2), [HALF, "whole"])
    save(model, folder / "m.nhsvm")
    (folder / "d.svm").write_text("0 1:1\n0 2:1\n")
    return folder


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_labels_that_have_no_encoding_are_escaped(halves, tmp_path, kind):
    done = nhsvm("predict", halves / "m.nhsvm", halves / "d.svm", "--paths", "-o", tmp_path / f"o.{kind}", "-q")
    if kind == "parquet":
        assert "do not make a Parquet file" in done.message
        return
    assert done.code == 0, done.err
    text = (tmp_path / f"o.{kind}").read_bytes().decode()  # UTF-8
    assert ESCAPED in text
    if kind == "jsonl":
        assert json.loads(text.splitlines()[0])["label"] == HALF


def test_such_labels_on_a_terminal_in_reports_and_in_errors(halves, tmp_path):
    for words in (("predict", halves / "m.nhsvm", halves / "d.svm"), ("inspect", halves / "m.nhsvm", "--json")):
        done = nhsvm(*words)
        assert done.code == 0, done.err
        assert ESCAPED in done.out
    (tmp_path / "e.svm").write_text("whole 1:1\nwhole 2:1\n")
    words = ("--label-type", "str", "--report", tmp_path / "r.html", "--json")
    done = nhsvm("evaluate", halves / "m.nhsvm", tmp_path / "e.svm", *words)
    assert done.code == 0, done.err
    assert ESCAPED in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "\\ud800" in nhsvm("predict", "\ud800", halves / "d.svm").message


# --- cells that are formulas -------------------------------------------------

HOSTILE = ["=cmd()", "+cmd()", "-cmd()", "@cmd()", "\tcmd()", "\rcmd()", "-1", "1,5", "plain"]


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formulas")
    rows = "".join(f"{k} {k + 1}:1\n" for k in range(len(HOSTILE)))
    (folder / "d.svm").write_text(rows)
    (folder / "d3.svm").write_text("0 1:1\n0 2:1\n0 3:1\n")
    save(package.FlatSVM(C=100).fit(np.eye(len(HOSTILE)), HOSTILE), folder / "m.nhsvm")
    return folder


def table(done):
    assert done.code == 0, done.err
    return list(csv.DictReader(io.StringIO(done.out, newline="")))


def test_formulas_are_written_as_they_are_unless_they_are_not_to_be(formulas):
    words = ("predict", formulas / "m.nhsvm", formulas / "d.svm", "--scores")
    assert [row["label"] for row in table(nhsvm(*words))] == HOSTILE
    safe = table(nhsvm(*words, "--csv-safe"))
    assert [row["label"] for row in safe] == ["'" + cell for cell in HOSTILE[:6]] + HOSTILE[6:]
    assert all(float(row["score"]) for row in safe)


def test_formulas_in_lists_in_columns_of_the_data_and_in_their_names(formulas, folder):
    save(package.FlatSVM(C=100).fit(np.eye(3), [["=cmd()", "+x"], ["+x"], ["-1"]]), "sets.nhsvm")
    done = nhsvm("predict", "sets.nhsvm", formulas / "d3.svm", "--csv-safe", "--to", "tsv", "--scores")
    assert {line.split("\t")[0] for line in done.lines} == {"labels", "'+x;'=cmd()", "'+x", "-1"}
    (folder / "d.csv").write_text("text,=name\nbarks,=cell\n")
    [row] = table(nhsvm("predict", "m.nhsvm", "d.csv", "--keep-columns", "--csv-safe"))
    assert list(row.items())[:2] == [("text", "barks"), ("'=name", "'=cell")]


def test_csv_safe_where_there_is_no_csv(folder):
    assert (
        "--csv-safe is for CSV and TSV"
        in nhsvm("predict", "m.nhsvm", "docs.csv", "--csv-safe", "-o", "x.jsonl").message
    )
    tune = ("tune", "docs.csv", "--text", "text", "--label", "label", "--csv-safe")
    for more in ((), ("--table", "t.json")):
        assert "--csv-safe is for --table" in nhsvm(*tune, *more).message


# --- signals -----------------------------------------------------------------


@posix
def test_a_signal_ends_a_command_that_waits(folder):
    """Of a process of its own; nohup ignores SIGHUP, and so does the command then."""
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        words = [sys.executable, "-m", "nhsvm", "predict", "m.nhsvm", "-", "--format", "csv", "-o", "out.csv"]
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGHUP, hangup)
    try:
        until(lambda: any(name.startswith(".nhsvm-") for name in os.listdir()))
        child.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        assert child.poll() is None
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert (child.returncode, out, err.strip()) == (143, b"", b"")
    assert not any("out.csv" in name or ".tmp" in name for name in os.listdir())


def until(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("waited for a minute")
