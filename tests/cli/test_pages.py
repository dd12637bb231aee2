"""Commands in console blocks print what the pages say; tests/test_commands.py runs those outside of such blocks."""

import re
import shlex
from typing import get_args

import pytest
from typer.main import get_command

from docs_commands import GUIDE, PAGES, PROJECT, commands
from docs_console import matches, run_page, steps
from nhsvm.cli import COMMANDS, app
from nhsvm.cli.pipeline import ModelName

CONSOLE = [name for name, text in PAGES.items() if "\n```console" in text]
ELSEWHERE = "docs/tutorials/", "docs/report.md"  # tests/test_guide.py and tests/report/test_docs.py run these


@pytest.mark.parametrize("name", [name for name in CONSOLE if not name.startswith(ELSEWHERE)])
def test_pages(name, tmp_path):
    run_page(PROJECT / name, tmp_path)


def test_pages_are_found():
    assert {"README.md", "docs/command_line.md", "docs/selection.md", "docs/report.md"} <= set(CONSOLE)


def test_the_page_of_the_command_line_names_every_command_and_model():
    page = PAGES["docs/command_line.md"]
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(COMMANDS)
    assert all(f"`{name}`" in page or f" {name}`" in page for name in get_args(ModelName))


# -- commands on pages of results, and in --help -----------------------------------------------------------------------


def wrong_options(words, command):
    """Options that a command does not have."""
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
    given = [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
    return [word for word in given if word not in known]


def why_not(line):
    """What is wrong with an ``nhsvm`` command, if anything: its name, or that of an option."""
    command, (_, *words) = get_command(app), shlex.split(line.partition("|")[0])
    while words and hasattr(command, "commands"):
        if words[0].startswith("-"):
            break
        if words[0] not in command.commands:
            return f"no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    return wrong_options(words, command) or None


# How the tables there were made; that takes hours, so it is only seen to that files and options are there.
RECORDS = [(name, line) for name in PAGES if name not in GUIDE for line in commands(PAGES[name])]


@pytest.mark.parametrize(("name", "line"), RECORDS)
def test_commands_that_made_results_exist(name, line):
    program, *words = shlex.split(line)
    if program == "nhsvm":
        assert why_not(line) is None
        return
    assert program == "python"
    script = PROJECT / words[0]
    source = "".join(file.read_text(encoding="utf-8") for file in (script, PROJECT / "benchmarks/data.py"))
    for word in words[1:]:
        assert not word.startswith("--") or f'"{word}"' in source, f"{name}: {script.name} has no {word}"


def test_records_are_found():
    assert ("docs/results/hrsvm.md", "python benchmarks/hrsvm.py --data DIR") in RECORDS
    assert ("docs/results/norms.md", "nhsvm reproduce norms --seed 0") in RECORDS


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nhsvm trian a.csv", "no command trian"),
        ("nhsvm reproduce nroms", "no command nroms"),
        ("nhsvm train a.csv --txet a -o b", ["--txet"]),
        ("nhsvm inspect a --jsno=1 | head -3", ["--jsno"]),
        ("nhsvm --install-completion", None),
    ],
)
def test_wrong_commands_are_found(line, reason):
    assert why_not(line) == reason


def examples():
    """The examples that ``--help`` shows, of commands and of their commands."""
    stack = [get_command(app)]
    while stack:
        command = stack.pop()
        stack += getattr(command, "commands", {}).values()
        for line in (command.help or "").splitlines():
            if line.startswith(("Example: ", "Examples: ")):
                yield from (part[part.index("nhsvm ") :] for part in line.split("; ") if "nhsvm " in part)


@pytest.mark.parametrize("line", list(examples()))
def test_examples_of_help_exist(line):
    assert why_not(line) is None


def test_every_command_has_an_example():
    shown = {shlex.split(line)[1] for line in examples()}
    assert set(get_command(app).commands) <= shown


# -- the runner itself -------------------------------------------------------------------------------------------------


def test_steps(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# T\n```csv a.csv\nx,y\n```\n```console\n$ echo a \\\n> b\na b\n$ cat a.csv\n...\n```\n```python\n1\n```\n"
    )
    found = list(steps(page))
    assert [(step.file, step.command, step.content) for step in found] == [
        ("a.csv", None, "x,y\n"),
        (None, "echo a b", "a b\n"),
        (None, "cat a.csv", "...\n"),
    ]
    assert [step.line for step in found] == [3, 6, 9]
    run_page(page, tmp_path)


def test_another_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo a\nb\n```\n")
    with pytest.raises(AssertionError, match=r"page.md:2: \$ echo a"):
        run_page(page, tmp_path)
    page.write_text("```console\n$ echo a; false\n...\n```\n")
    with pytest.raises(AssertionError, match="exit code 1"):
        run_page(page, tmp_path)
    page.write_text("nothing")
    with pytest.raises(AssertionError, match="no console blocks"):
        run_page(page, tmp_path)


def test_wildcards():
    assert matches("a ... c\n", "a b c\n")
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not matches("a ... c\n", "a b d\n")
