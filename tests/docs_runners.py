"""How commands of the guide are run: in this process where that is quick, small, and in the current folder."""

import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.main import get_command

from cli.running import nhsvm
from docs_commands import PROJECT
from nhsvm.cli import app

BENCHMARKS = PROJECT / "benchmarks"
SCRIPTS = Path(sysconfig.get_path("scripts"))


@contextmanager
def only_modules_of(folder):
    """Files of a folder can be imported by their names, as by a script in it; afterwards all is as it was."""
    names = {file.stem for file in folder.glob("*.py")}
    kept = {name: sys.modules.pop(name) for name in names & set(sys.modules)}
    path = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = path
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(kept)


def python(words):
    """A benchmark, in this process: what is imported and compiled is there already."""
    script = PROJECT / words[1]
    assert script.parent == BENCHMARKS, f"no test knows how to run {words}"
    with only_modules_of(BENCHMARKS), warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # of small data much can be said
        patch.setattr(sys, "argv", [str(script), *words[2:], "--quick"])
        runpy.run_path(str(script), run_name="__main__")


def command_line(words):
    """``nhsvm``, in this process."""
    if words[1] == "--install-completion":
        return install_completion()
    command, rest = get_command(app), words[1:]
    while rest and hasattr(command, "commands"):
        command, rest = command.commands[rest[0]], rest[1:]
    known = {name for param in command.params for name in param.opts}
    small = [
        word for option, *value in (("--quick",), ("--repeats", "2")) if option in known for word in (option, *value)
    ]
    done = nhsvm(*words[1:], *small)
    assert done.code == 0, done.err
    print(done.out)


def install_completion():
    shell("nhsvm --install-completion; true")  # not the last one, or there is no shell left to be found
    assert "nhsvm" in (Path.home() / ".bash_completions" / "nhsvm.sh").read_text()


def make(words):
    """With an environment that is there already, whose programs write down what is asked of them.

    ``nhsvm demo`` is run as a command of the guide, and the checks of ``make test`` are those that are running now.
    """
    _, target, *settings = words
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(PROJECT / name, name)
    tools = Path("environment/bin")
    tools.mkdir(parents=True)
    for name in ("nhsvm", "python", "ruff", "mypy", "lint-imports"):
        (tools / name).write_text('#!/bin/sh\necho "$(basename "$0") $*" >> started\n')
        (tools / name).chmod(0o755)
    (tools / "../.installed").touch()
    shell(f"make {target} {shlex.join(settings)} VENV=environment")
    started = [line.strip() for line in Path("started").read_text().splitlines()]
    if target == "fuzz":
        asked = dict(setting.split("=") for setting in settings)
        [line] = started
        assert line.startswith(f"python tests/fuzz/run.py {asked.get('N', 10000)} --processes ")
        assert line.partition(" --case ")[2] == asked.get("CASE", "")
        return
    assert started == MADE[target]


MADE = {
    "demo": ["nhsvm demo"],
    "test": [
        "ruff check .",
        "ruff format --check .",
        "mypy",
        "lint-imports",
        "nhsvm warmup --quiet",
        "python -m pytest -n auto --dist worksteal --cov --cov-report=term",
    ],
    "format": ["ruff check --fix .", "ruff format ."],
    "bench": [
        "python benchmarks/hierarchy.py --clarabel",
        "python benchmarks/norms.py",
        "python benchmarks/single_label.py",
    ],
}


def pip(words):
    """Without other packages, and into a folder of the test: a copy of the sources, or what is installed already."""
    _, verb, what = words
    assert verb == "install"
    pytest.importorskip("pip")
    run = f"{shlex.quote(sys.executable)} -m pip --disable-pip-version-check --retries 0 install"
    if not what.startswith("."):
        assert f"Requirement already satisfied: {what}" in shell(f"{run} --dry-run --no-index {shlex.quote(what)}")
        return
    shutil.copytree(PROJECT / "src", "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(PROJECT / name, name)
    said = shell(f"{run} --no-deps --target installed {shlex.quote(what)}", check=False)
    if "No matching distribution found for setuptools" in said:
        pytest.skip("setuptools, which builds the package, cannot be had here")
    assert "Successfully installed nhsvm" in said
    assert "does not provide the extra" not in said
    source, there = PROJECT / "src" / "nhsvm", Path("installed/nhsvm")
    files = {file.relative_to(source) for file in source.rglob("*") if file.is_file() and file.suffix != ".pyc"}
    assert {file for file in files if "__pycache__" not in file.parts} <= {
        file.relative_to(there) for file in there.rglob("*")
    }


def shell(line, *, check=True):
    """What a command prints, run by a shell that has this environment in its path."""
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    env["PATH"] = f"{SCRIPTS}{os.pathsep}{env['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0 or not check, done.stdout
    print(done.stdout)
    return done.stdout


RUNNERS = {"python": python, "nhsvm": command_line, "make": make, "pip": pip}
