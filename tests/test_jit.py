"""Where compiled code is kept, what is run of what is found there, and what happens where nothing can be kept."""

import errno
import hashlib
import os
import pickle
import stat
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np
import pytest

from nhsvm import _jit
from nhsvm.errors import CacheWarning

fcntl = pytest.importorskip("fcntl") if os.name == "posix" else None
posix = pytest.mark.skipif(os.name != "posix", reason="permissions")


def plus_one(x):
    return x + 1


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where code is kept; a process that has not said yet that it cannot be."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "made"))
    monkeypatch.setattr(_jit, "_said", [])
    return tmp_path / "made"


def ran(x=1.5):
    """Whether a kernel, as a new process has it, was found on disk."""
    made = _jit.kernel(plus_one)
    assert made(x) == x + 1
    hits, misses = sum(made.stats.cache_hits.values()), sum(made.stats.cache_misses.values())
    assert hits + misses == 1
    return bool(hits)


def kept(place):
    """The file of the only kernel."""
    [folder] = place.iterdir()
    [file] = folder.iterdir()
    return file


def test_code_is_found_again(place):
    assert not ran()
    assert ran()
    assert kept(place).name.startswith("test_jit.plus_one-")
    assert _jit.kernel(plus_one).stats.cache_path == str(kept(place).parent)


def test_other_types_of_arguments_are_other_files(place):
    assert not ran(1.5)
    assert not ran(2)
    assert not ran(np.float32(2))
    assert ran(1.5)
    assert ran(2)
    assert len(list(next(place.iterdir()).iterdir())) == 3


def test_code_of_changed_sources_is_replaced(place, monkeypatch):
    assert not ran()
    with monkeypatch.context() as patch:
        patch.setattr(_jit, "_sources", lambda files: "changed in any file with kernels")
        assert not ran()
        assert ran()
        assert kept(place)  # still one file
    assert not ran()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a kernel in ``loop.py``; ``stamp()`` is what its machine code depends on."""
    files = {
        "loop.py": "from nhsvm.part import helper\nfrom nhsvm.pairs import (\n    Pair,\n)\n",
        "part/__init__.py": "",
        "part/helper.py": "import numpy as np\nfrom nhsvm.constants import ROOM\n",
        "constants.py": "ROOM = 8\n",
        "pairs.py": "class Pair(NamedTuple):\n    low: Array\n    high: Array\n",
        "steps.py": "from nhsvm.loop import step\nfrom nhsvm.shared import more\n\n\n@done_by(step, Pair)\n",
        "shared.py": "",
        "elsewhere.py": "from nhsvm._jit import done_by\nfrom nhsvm.loop import kernel\n\n\n@done_by(other, Pair)\n",
        "above.py": "from nhsvm.loop import kernel\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(_jit, "_PACKAGE", tmp_path)
    return tmp_path


def stamp(package):
    for remembered in (_jit._sources, _jit._imports, _jit._steps):
        remembered.cache_clear()
    try:
        return _jit._sources(frozenset([package / "loop.py"]))
    finally:
        for remembered in (_jit._sources, _jit._imports, _jit._steps):
            remembered.cache_clear()


@pytest.mark.parametrize("name", ["loop.py", "part/helper.py", "constants.py", "steps.py", "shared.py"])
def test_the_stamp_is_of_all_that_a_kernel_uses(package, name):
    before = stamp(package)
    (package / name).write_text((package / name).read_text() + "# changed\n")
    assert stamp(package) != before


@pytest.mark.parametrize("name", ["elsewhere.py", "above.py"])
def test_the_stamp_is_not_of_what_a_kernel_cannot_reach(package, name):
    before = stamp(package)
    (package / name).write_text((package / name).read_text() + "# changed\n")
    assert stamp(package) == before


def test_the_stamp_is_also_of_named_tuples(package):
    """Machine code knows their fields by position, and numba's key of a kernel has no names of fields."""
    before = stamp(package)
    (package / "pairs.py").write_text("class Pair(NamedTuple):\n    high: Array\n    low: Array\n")
    assert stamp(package) != before


def test_named_tuples_that_a_kernel_is_given_count_too():
    """A kernel need not import the file that defines them."""
    from nhsvm.hierarchy.graph import Ragged

    ragged = numba.typeof(Ragged(np.zeros(2, np.int64), np.zeros(1, np.int32)))
    inside = numba.types.Tuple([numba.int64, ragged])
    assert [path.name for path in _jit._named_tuples((numba.float64, inside))] == ["graph.py"]


@posix
def test_what_another_process_compiles_is_waited_for(place):
    assert not ran()
    file = kept(place)
    content = file.read_bytes()
    file.unlink()
    lock = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    later = threading.Timer(0.3, lambda: file.write_bytes(content))
    later.start()
    assert ran()
    later.join()
    os.close(lock)


@posix
def test_nobody_is_waited_for_forever(place, monkeypatch):
    monkeypatch.setattr(_jit, "_PATIENCE", 0.2)
    assert not ran()
    file = kept(place)
    file.unlink()
    lock = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert not ran()
    os.close(lock)


@posix
def test_a_lock_that_a_killed_process_has_left_holds_nobody_up(place):
    assert not ran()
    file = kept(place)
    file.unlink()
    Path(f"{file}.lock").touch()
    assert not ran()
    assert kept(place) == file  # and the lock is gone
    assert ran()


@posix
def test_after_an_interrupt_nobody_waits_for_himself(place, monkeypatch):
    """The lock of a compilation that did not end is still held by this process."""
    monkeypatch.setattr(_jit, "_PATIENCE", 600.0)
    sig, made = (numba.float64,), _jit.kernel(plus_one)
    context = made.targetctx
    assert made._cache.load_overload(sig, context) is None  # numba compiles now, and is interrupted
    waits = []
    monkeypatch.setattr(_jit.time, "sleep", waits.append)
    assert not ran()
    assert waits == []
    assert ran()


@posix
def test_a_file_system_without_locks(place, monkeypatch):
    def refused(lock, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(_jit.fcntl, "flock", refused)
    monkeypatch.setattr(_jit, "_PATIENCE", 600.0)
    assert not ran()
    assert ran()


DAMAGES = {
    "cut short": lambda raw: raw[:-1],
    "only the beginning": lambda raw: raw[:40],
    "empty": lambda raw: b"",
    "longer": lambda raw: raw + b"x",
    "another bit": lambda raw: raw[:-1] + bytes([raw[-1] ^ 1]),
    "zeros": lambda raw: bytes(len(raw)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_code_is_compiled_anew(place, damage):
    """As after a power cut; with numba's own cache it is an error of pickle in every later process."""
    assert not ran()
    file = kept(place)
    file.write_bytes(damage(file.read_bytes()))
    assert not ran()
    assert ran()


# --- whom to trust -----------------------------------------------------------


class Evil:
    ran = False

    def __reduce__(self):
        return exec, ("import test_jit_evil",)


def poisoned(file):
    """What somebody who knows the format would put there."""
    content = pickle.dumps((Evil(),))
    file.write_bytes(file.read_bytes()[:32] + hashlib.sha256(content).digest() + content)


def test_what_a_file_could_do(place):
    """So that the tests below would notice if it were run."""
    assert not ran()
    poisoned(kept(place))
    with pytest.raises(ModuleNotFoundError, match="test_jit_evil"):
        ran()


@posix
@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_files_that_others_can_write_to_are_not_run(place, mode):
    assert not ran()
    assert stat.S_IMODE(kept(place).stat().st_mode) == 0o644
    poisoned(kept(place))
    kept(place).chmod(mode)
    assert not ran()
    assert ran()
    assert stat.S_IMODE(kept(place).stat().st_mode) == 0o644


@posix
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_folders_that_others_can_write_to_are_not_used(place, mode):
    assert not ran()
    assert stat.S_IMODE(kept(place).parent.stat().st_mode) & 0o022 == 0
    poisoned(kept(place))
    kept(place).parent.chmod(mode)
    with pytest.warns(CacheWarning, match=r"other users can write to .*made.*NUMBA_CACHE_DIR"):
        assert not ran()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_belongs_to_somebody_else_is_not_run(place, what):
    assert not ran()
    poisoned(kept(place))
    os.chown(kept(place) if what == "file" else kept(place).parent, 12345, -1)
    with nobody_minds():
        assert not ran()


@contextmanager
def nobody_minds():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        yield


@posix
def test_a_folder_of_the_package_is_as_open_as_its_sources(tmp_path):
    (made := tmp_path / "__pycache__").mkdir()
    for sources, folder, trusted in ((0o755, 0o755, True), (0o775, 0o775, True), (0o755, 0o775, False),
                                     (0o775, 0o777, False), (0o777, 0o775, True)):  # fmt: skip
        tmp_path.chmod(sources)
        made.chmod(folder)
        assert _jit._is_trusted(made) is trusted
    tmp_path.chmod(0o700)


# --- where nothing can be kept -----------------------------------------------


def test_a_full_disk_is_said_once(place, monkeypatch):
    @contextmanager
    def full(path, mode):
        raise OSError(errno.ENOSPC, "No space left on device")
        yield

    monkeypatch.setattr(_jit, "new_file", full)
    with pytest.warns(CacheWarning) as said:
        found = [ran(x) for x in (1.5, 2, np.float32(2))]
    assert found == [False] * 3
    assert len(said) == 1
    assert "No space left on device" in str(said[0].message)
    assert "NUMBA_CACHE_DIR" in str(said[0].message)


def test_a_place_that_is_no_folder(place):
    place.write_text("a file")
    with pytest.warns(CacheWarning, match=r"made.*: (Not a directory|File exists)"):
        assert not ran()


def test_the_kernel_that_was_compiled_is_used_after_the_warning(place, monkeypatch):
    """As in a program that makes errors of warnings."""
    place.write_text("a file")
    made = _jit.kernel(plus_one)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CacheWarning):
            made(1.5)
        assert made(1.5) == 2.5
        assert made(1) == 2


def test_sources_that_are_no_files(place, monkeypatch):
    """In an archive nobody could tell whether they have changed."""
    monkeypatch.setattr(_jit.inspect, "getfile", lambda function: "/absent.zip/nhsvm/engine/x.py")
    with pytest.warns(CacheWarning, match="is not a file"):
        assert not ran()
    assert not place.exists()


def test_a_user_without_a_home(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("HOME", "~")  # what expanduser gives where there is none
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert [place.name for place in _jit._places(__file__)] == ["__pycache__"]
    monkeypatch.setenv("HOME", "/home/me")
    assert len(list(_jit._places(__file__))) == 2


def test_code_that_somebody_has_made_in_a_folder_that_is_only_read(tmp_path, monkeypatch):
    """A read-only installation whose kernels were compiled when it was made."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(_jit, "_said", [])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    source = tmp_path / "sources" / "made.py"
    source.parent.mkdir()
    source.write_text("")
    monkeypatch.setattr(_jit.inspect, "getfile", lambda function: str(source))
    assert not ran(1.5)
    new_file = _jit.new_file

    def read_only(path, mode):
        if Path(path).is_relative_to(source.parent):
            raise PermissionError(errno.EACCES, "Permission denied")
        return new_file(path, mode)

    monkeypatch.setattr(_jit, "new_file", read_only)
    assert ran(1.5)
    assert not ran(2)  # and what is missing goes to the home of the user
    assert ran(2)
    assert len(list((tmp_path / "home").rglob("*.nbc"))) == 1


# --- parts of kernels ---------------------------------------------------------


@_jit.inlined
def doubled_until(x, most):
    n = 0
    while x < most:
        x, n = x + x, n + 1
    return n


def calls_a_part(x, most):
    n = 0
    for _ in range(2):
        n = doubled_until(x, most + n)
    return n


def test_a_part_of_a_kernel_is_a_plain_function_elsewhere(place):
    made = _jit.kernel(calls_a_part)
    assert made(1.0, 100) == doubled_until(1.0, 107) == 7
    assert len(list(next(place.iterdir()).iterdir())) == 1  # it has no machine code of its own


def test_a_part_is_compiled_for_types_and_not_for_numbers(place):
    """``n`` is 0 when types are inferred first, and then any integer."""
    part = _jit.inlined(doubled_until.py_func)

    def counts(most):
        n = 0
        for _ in range(2):
            n = part(n, most) + 1
        return n

    assert _jit.kernel(counts)(np.int64(0)) == 1
    assert len(part.overloads) == 1
