"""A package that cannot be written to, and a user without a home who may write nowhere else, as in many containers."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import nhsvm
from cli.data import write_all

NOBODY = 65534
# of root's rights only that to read what root can read stays (CAP_DAC_READ_SEARCH): Python may lie in root's home
BEGIN = f"""
import ctypes, os, sys

if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(8, 1, 0, 0, 0) == 0  # PR_SET_KEEPCAPS
    os.setgroups([])
    os.setresgid({NOBODY}, {NOBODY}, {NOBODY})
    os.setresuid({NOBODY}, {NOBODY}, {NOBODY})
    of_this_process = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3
    assert libc.capset(of_this_process, (ctypes.c_uint32 * 6)(4, 4, 0, 0, 0, 0)) == 0
    assert os.getresuid() == ({NOBODY},) * 3
"""
RUN = """
import nhsvm
from nhsvm.cli import main

assert nhsvm.__file__.startswith(sys.argv[1]), nhsvm.__file__
for folder in (sys.argv[1], os.path.dirname(nhsvm.__file__), os.path.expanduser("~")):
    try:
        open(os.path.join(folder, "x"), "w")
    except OSError:
        pass
    else:
        sys.exit(f"{folder} can be written to")
for words in (
    "train docs.csv --text text --label label -q -o m.nhsvm", "predict m.nhsvm docs.csv -o p.csv -q", "inspect m.nhsvm"
):
    sys.argv = ["nhsvm", *words.split()]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


@pytest.fixture
def place():
    """A folder that other users can go into, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        for path in Path(name).rglob("*"):
            if path.is_dir():
                path.chmod(0o755)  # or it could not be removed


@pytest.mark.skipif(os.name != "posix", reason="users and permissions of POSIX")
@pytest.mark.skipif(sys.platform != "linux" and os.name == "posix" and os.geteuid() == 0, reason="root, not on Linux")
def test_train_and_predict_where_nothing_can_be_kept(place):
    """One process for all commands, since all kernels are compiled in it."""
    room, work = place / "room", place / "work"
    shutil.copytree(Path(nhsvm.__file__).parent, room / "nhsvm", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (room, *room.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    work.mkdir()
    write_all(work)
    if os.geteuid() == 0:
        os.chown(work, NOBODY, NOBODY)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_", "COV_"))}
    environ = kept | {"HOME": "/nonexistent", "PYTHONPATH": str(room), "NUMBA_OPT": "0"}  # quicker to compile
    words = [sys.executable, "-c", BEGIN + RUN, str(room)]
    done = subprocess.run(words, cwd=work, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [warning] = done.stderr.splitlines()
    assert warning.startswith("compiled code cannot be kept on disk (")
    assert "NUMBA_CACHE_DIR" in warning
    assert (work / "p.csv").read_text().startswith("label\n")
    assert "NHSVM after TfidfVectorizer" in done.stdout
    assert not [path for path in room.rglob("*") if path.suffix in (".nbc", ".nbi", ".pyc")]
    made = sorted(path.name for path in work.iterdir() if path.suffix in (".nhsvm", ".csv"))
    assert made == ["docs.csv", "m.nhsvm", "p.csv"]
