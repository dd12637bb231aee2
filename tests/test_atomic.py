"""Files that are whole or not there, and what killed processes leave."""

import ast
import errno
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import nhsvm
from nhsvm import _atomic
from nhsvm._atomic import NewFolder, clean, new_file, scratch_folder, was_begun, write_file
from nhsvm.errors import OptionError

fcntl = pytest.importorskip("fcntl", reason="there are no such locks on Windows")

# each begins to write, says so, and waits for a line
WRITERS = {
    "file": "with new_file(sys.argv[1]) as file: file.write(b'new'); wait()",
    "scratch": "with scratch_folder(sys.argv[1]) as folder: (folder / 'x').write_bytes(b'new'); wait()",
    "folder": """
with NewFolder(Path(sys.argv[1]), lambda: None) as new:
    (new.folder / 'x').write_bytes(b'new'); wait(); new.complete()
""",
}
BEGIN = """
import os, sys
from pathlib import Path
from nhsvm._atomic import NewFolder, new_file, scratch_folder
def wait():
    print("begun", flush=True)
    sys.stdin.readline()
"""


def started(code, path):
    environ = os.environ | {"PYTHONPATH": str(Path(nhsvm.__file__).parents[1])}
    words = [sys.executable, "-c", BEGIN + code, str(path)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)
    assert child.stdout.readline() == "begun\n"
    return child


def ended(child):
    child.communicate("\n")
    return child.returncode


def hidden(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


def again(kind, path):
    """Write with the same writer as the one that was killed."""
    if kind == "file":
        write_file(path, [b"next"])
    elif kind == "scratch":
        with scratch_folder(path):
            pass
    else:
        with NewFolder(path, lambda: None) as new:
            new.complete()


@pytest.mark.parametrize("kind", WRITERS)
def test_the_next_one_removes_what_a_killed_one_left_but_not_what_a_living_one_writes(tmp_path, kind):
    killed = started(WRITERS[kind], tmp_path / "a")
    killed.kill()
    killed.communicate()
    [left] = hidden(tmp_path)
    alive = started(WRITERS[kind], tmp_path / "b")
    assert len(hidden(tmp_path)) == 1 + (kind == "folder")  # folders are removed by who writes the same name
    again(kind, tmp_path / "a")
    [its] = hidden(tmp_path)
    assert its != left
    assert ended(alive) == 0
    assert hidden(tmp_path) == []
    if kind == "file":
        assert (tmp_path / "a").read_bytes() == b"next"
        assert (tmp_path / "b").read_bytes() == b"new"
    if kind == "folder":
        assert os.listdir(tmp_path / "b") == ["x"]


def test_two_at_a_time_in_one_process(tmp_path):
    with new_file(tmp_path / "a") as one, new_file(tmp_path / "a") as other:
        assert len(hidden(tmp_path)) == 2
        one.write(b"one")
        other.write(b"other")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert hidden(tmp_path) == []


def test_a_folder_that_another_process_writes(tmp_path):
    alive = started(WRITERS["folder"], tmp_path / "a")
    with pytest.raises(OptionError, match="another process is writing"), NewFolder(tmp_path / "a", lambda: None):
        pass
    assert was_begun(tmp_path / "a")
    assert ended(alive) == 0
    assert not was_begun(tmp_path / "a")


def killed_in(folder, step):
    """A process that replaces ``folder``, where that takes two renames, and is killed before its so-manyth one."""
    code = f"""
from nhsvm import _atomic
_atomic._exchanged = lambda one, other: False
rename, calls = os.rename, []
def killed(*names):
    calls.append(names)
    if len(calls) == {step}: os._exit(9)
    rename(*names)
os.rename = killed
with NewFolder(Path(sys.argv[1]), lambda: None, replace=True) as new:
    (new.folder / 'new').write_bytes(b''); wait(); new.complete()
"""
    assert ended(started(code, folder)) == 9


@pytest.mark.parametrize(("step", "found"), [(1, "old"), (2, "old"), (3, "new")])
def test_a_folder_that_is_replaced_is_the_old_or_the_new_one(tmp_path, step, found):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "old").write_bytes(b"")
    killed_in(folder, step)
    seen = []
    with NewFolder(folder, lambda: seen.append(folder.exists() and os.listdir(folder)), replace=True):
        pass
    assert seen[-1] == os.listdir(folder) == [found]
    assert hidden(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need two renames")
def test_a_folder_that_is_replaced_is_always_there(tmp_path, monkeypatch):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "old").write_bytes(b"")
    monkeypatch.setattr(os, "rename", None)  # not needed
    with NewFolder(folder, lambda: None, replace=True) as new:
        (new.folder / "new").write_bytes(b"")
        new.complete()
        assert os.listdir(folder) == ["new"]
        assert os.listdir(new.folder) == ["old"]
    assert os.listdir(tmp_path) == ["a"]


def test_names_that_cannot_be_exchanged(tmp_path):
    (tmp_path / "a").mkdir()
    assert not _atomic._exchanged(tmp_path / "a", tmp_path / "absent")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_the_old_folder_is_back_after_an_error_between_two_renames(tmp_path, monkeypatch, error):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "old").write_bytes(b"")
    rename, calls = os.rename, []

    def second_fails(*names):
        calls.append(names)
        if len(calls) == 2:
            raise error
        rename(*names)

    monkeypatch.setattr(_atomic, "_exchanged", lambda one, other: False)
    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(error), NewFolder(folder, lambda: None, replace=True) as new:
        new.complete()
    assert os.listdir(folder) == ["old"]
    assert hidden(tmp_path) == []


# --- what is not known to be dead --------------------------------------------


def left(folder, mark=None, ending="tmp"):
    name = f".nhsvm-{_atomic._mark() if mark is None else mark}0123456789abcdef.{ending}"
    (folder / name).write_bytes(b"half")
    return folder / name


def of_long_ago(path):
    os.utime(path, (time.time() - 100_000,) * 2)


def test_leftovers_of_another_machine_wait_for_a_day(tmp_path):
    path = left(tmp_path, mark="0" * 8)
    assert clean(tmp_path) == 0
    of_long_ago(path)
    assert clean(tmp_path) == 1
    assert not path.exists()


def test_a_folder_is_as_young_as_what_is_in_it(tmp_path):
    path = tmp_path / ".nhsvm-000000000123456789abcdef.tmp"
    path.mkdir()
    (path / "x").write_bytes(b"")
    of_long_ago(path)
    assert clean(tmp_path) == 0
    of_long_ago(path / "x")
    assert clean(tmp_path) == 1


def test_where_there_are_no_locks(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = left(tmp_path)
    write_file(tmp_path / "a", [b"x"])
    with NewFolder(tmp_path / "b", lambda: None) as new:
        new.complete()
    assert sorted(os.listdir(tmp_path)) == [path.name, "a", "b"]
    of_long_ago(path)
    write_file(tmp_path / "a", [b"x"])
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_files_of_other_users_are_left_alone(tmp_path, monkeypatch):
    path = left(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert clean(tmp_path) == 0
    assert path.exists()


def test_what_only_looks_like_a_leftover(tmp_path):
    mark = _atomic._mark()
    (tmp_path / "precious").write_bytes(b"x")
    (tmp_path / f".nhsvm-{mark}0000000000000001.tmp").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / f".nhsvm-{mark}0000000000000002.tmp")  # to open it would wait
    left(tmp_path, ending="txt")
    (tmp_path / ".nhsvm-mine.tmp").write_bytes(b"")
    assert clean(tmp_path) == 0
    assert len(os.listdir(tmp_path)) == 5
    assert clean(tmp_path / "absent") == 0


def test_a_leftover_that_cannot_be_removed_is_in_nobodys_way(tmp_path, monkeypatch):
    path = left(tmp_path)

    def refuse(self, missing_ok=False):
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)
    write_file(tmp_path / "a", [b"x"])
    assert sorted(os.listdir(tmp_path)) == [path.name, "a"]


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_that_is_taken_for_a_leftover_before_it_is_locked(tmp_path, monkeypatch, kind):
    lock, names = _atomic._lock, []

    def late(descriptor):
        if not names:
            names.extend(hidden(tmp_path))
            for name in names:
                os.rmdir(tmp_path / name) if (tmp_path / name).is_dir() else os.unlink(tmp_path / name)
        return lock(descriptor)

    monkeypatch.setattr(_atomic, "_lock", late)
    again(kind, tmp_path / "a")
    assert len(names) == 1
    assert os.listdir(tmp_path) == ([] if kind == "scratch" else ["a"])


def test_somebody_who_removes_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(_atomic, "_claimed", lambda *args: False)
    for kind in WRITERS:
        with pytest.raises(OSError, match="something removes temporary"):
            again(kind, tmp_path / "a")
    assert os.listdir(tmp_path) == []


# --- one mechanism -----------------------------------------------------------


def test_a_file_is_never_more_readable_than_the_one_that_it_replaces(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"")
    path.chmod(0o640)
    with new_file(path):
        [name] = hidden(tmp_path)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def stopped_on_a_full_disk(path):
    with new_file(path) as file:
        file.write(b"in the buffer")
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, file.fileno())
        os.close(full)
        raise KeyboardInterrupt


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux")
def test_the_first_error_is_told(tmp_path):
    """Not the one of a buffer that cannot be emptied either."""
    with pytest.raises(KeyboardInterrupt):
        stopped_on_a_full_disk(tmp_path / "a")
    assert os.listdir(tmp_path) == []


OF_MODULES = {
    "replace",
    "rename",
    "renames",
    "link",
    "move",
    "mkstemp",
    "mkdtemp",
    "NamedTemporaryFile",
    "save",
    "savez",
}
OF_OBJECTS = {"write_text", "write_bytes", "tofile"}
ALLOWED = {
    ("_atomic.py", "replace"),
    ("_atomic.py", "rename"),
    ("_atomic.py", "open"),
    ("cli/output.py", "open"),  # devices and pipes, which cannot be replaced
    ("cli/terminal.py", "open"),  # /dev/null in place of a stream that the shell has closed
    ("datasets/blocks_writer.py", "open"),  # inside a folder that gets its name at the end
}


def test_nobody_else_writes_files():
    """So that the next writer does not bring a way of its own."""
    package = Path(nhsvm.__file__).parent
    found = set()
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                found |= {(file.relative_to(package).as_posix(), what) for what in writes(node)}
    assert found == ALLOWED


def writes(call):
    """How a call writes a file, if it does."""
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
    module = getattr(getattr(call.func, "value", None), "id", None)
    if (module in ("os", "shutil", "tempfile", "np") and name in OF_MODULES) or name in OF_OBJECTS:
        yield name
    words = [word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    if name == "open" and any(set(word) <= set("rwxabt+") and set(word) & set("wxa+") for word in words):
        yield name
