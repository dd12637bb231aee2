"""Runs the ``console`` blocks of a Markdown page in a folder, and compares what they print.

A line after ``$`` is a command, what follows is its output; ``...`` in it stands for anything, even several lines. A
block with a title after its language, as in ```` ```csv title="papers.csv" ````, is a file to write before the commands
that follow. A command must end well, unless its output is to begin with ``nhsvm: ``, which is how errors are said.
``nhsvm`` runs in this process; commands with pipes or redirections run in a shell that has it in its path.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cli.running import nhsvm

_FENCE = re.compile(r"^```(\w+)(?: +(?:title=\")?([\w.-]+)\"?)? *\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"[|<>;&]")


@dataclass
class Step:
    """A file to write, or a command to run."""

    line: int
    file: str | None = None
    content: str = ""
    command: str | None = None


def steps(page: Path):
    """What a page says to do, in its order."""
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        language, file, content = match.groups()
        line = text.count("\n", 0, match.start()) + 2
        if file is not None:
            yield Step(line, file=file, content=content)
        elif language == "console":
            yield from _commands(content, line)


def _commands(block, first):
    found = None
    for k, line in enumerate(block.splitlines()):
        if line.startswith("$ "):
            if found is not None:
                yield found
            found = Step(first + k, command=line.removeprefix("$ "))
        elif found is not None and line.startswith("> ") and found.command.endswith("\\"):
            found.command = found.command[:-1] + line.removeprefix("> ")
        else:
            assert found is not None, f"line {first + k}: a console block begins with '$ '"
            found.content += line + "\n"
    if found is not None:
        yield found


def run_page(page: Path, folder: Path):
    """Do what a page says; an AssertionError names the line whose output is another."""
    n_commands = 0
    for step in steps(page):
        if step.file is not None:
            (folder / step.file).write_text(step.content, encoding="utf-8")
            continue
        n_commands += 1
        printed, code = run(step.command, folder)
        fits = matches(step.content, printed) and (code == 0) != step.content.startswith("nhsvm: ")
        assert fits, (
            f"{page.name}:{step.line}: $ {step.command}\n--- expected\n{step.content}"
            f"--- printed, with exit code {code}\n{printed}"
        )
    assert n_commands, f"{page.name} has no console blocks"


def run(command, folder):
    """What a command prints, to standard output and standard error, and its exit code."""
    words = shlex.split(command)
    if words[0] == "nhsvm" and not _SHELL.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", command)):
        before = Path.cwd()
        os.chdir(folder)
        try:
            done = nhsvm(*words[1:], merged=True)
            return done.out, done.code
        finally:
            os.chdir(before)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return shell.stdout, shell.returncode


def matches(expected, printed):
    """Whether an output is as expected; blanks at the ends of lines do not count."""
    wanted, found = ("\n".join(line.rstrip() for line in text.splitlines()) for text in (expected, printed))
    pattern = re.escape(wanted.strip("\n")).replace(re.escape("..."), ".*?")
    return re.fullmatch(pattern, found.strip("\n"), re.DOTALL) is not None
