"""Whatever happens while a file is written, there is the old one or the new one, and the next run does its work.

For every writer of the package each step that changes the disk is counted, and then fails, or is the last one of the
process, with half of its bytes or with all lost that was not waited for: see ``faults.py``.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nhsvm

pytest.importorskip("fcntl", reason="processes are forked")
pytest.importorskip("polars")
pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

FILE = {"open", "flock", "write", "fsync", "rename", "close", "chmod"}
FOLDER = {"open", "flock", "write", "fsync", "rename", "close", "mkdir", "unlink", "rmdir"}
WRITERS = {  # and steps that each must have
    "save": FILE,
    "write_report": FILE,
    "write_blocks": FOLDER,
    "write_page": FILE,
    "kernel": FILE | {"mkdir"},
    "train": FILE,
    "tune": FILE,
    "shrink": FILE,
    "evaluate": FILE,
    "predict csv": FILE,
    "predict jsonl": FILE,
    "predict parquet": FILE,
    "convert": FOLDER,
    "convert texts": FOLDER,
    "convert scaled": FOLDER,
}
WAYS = {"new_file", "write_file", "scratch_folder", "NewFolder", "output_file"}
USERS = {  # of these ways, and a writer that goes there
    "_jit.py": "kernel",
    "cli/output.py": "predict csv",
    "cli/convert.py": "convert scaled",
    "cli/tune.py": "tune",
    "datasets/blocks_writer.py": "write_blocks",
    "model/file.py": "save",
    "report/page.py": "write_report",
    "paper/tables.py": "write_page",
}


@pytest.fixture(scope="module")
def server():
    """A process that can be forked, and the names of the writers that it knows."""
    paths = [str(Path(nhsvm.__file__).parents[1]), str(Path(__file__).parents[1])]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "crash.run"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as child:
        yield child, json.loads(child.stdout.readline())
        child.stdin.close()


@pytest.mark.parametrize("name", WRITERS)
def test_the_old_file_or_the_new_one(server, name):
    child, _ = server
    child.stdin.write(f"{name}\n")
    child.stdin.flush()
    found = json.loads(child.stdout.readline())
    assert set(found["steps"]) >= WRITERS[name]
    assert found["runs"] >= sum(found["steps"].values())
    assert found["wrong"] == []


def test_no_writer_is_forgotten(server):
    """``tests/test_atomic.py`` holds that there are no ways to write but these."""
    package, found = Path(nhsvm.__file__).parent, set()
    for file in package.rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
        if file.name != "_atomic.py" and any(getattr(call.func, "id", None) in WAYS for call in calls):
            found.add(file.relative_to(package).as_posix())
    assert found == set(USERS)
    assert server[1] == list(WRITERS)
    assert set(USERS.values()) <= set(WRITERS)
