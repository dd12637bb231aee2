"""The commands on pages of documentation print what the pages say, and those in running text exist."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from docs_console import matches, run_page, steps
from nhsvm.cli import COMMANDS, app
from nhsvm.cli._estimators import ModelName

PROJECT = Path(__file__).parents[2]
TEXTS = {
    page.relative_to(PROJECT).as_posix(): page.read_text(encoding="utf-8")
    for page in [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").rglob("*.md"))]
}
CONSOLE = [name for name, text in TEXTS.items() if "\n```console" in text]
ELSEWHERE = "docs/tutorials/", "docs/report.md"  # tests/test_guide.py and tests/report/test_docs.py run these


@pytest.mark.parametrize("name", [name for name in CONSOLE if not name.startswith(ELSEWHERE)])
def test_pages(name, tmp_path):
    run_page(PROJECT / name, tmp_path)


def test_pages_are_found():
    assert {"README.md", "docs/command_line.md", "docs/selection.md", "docs/report.md"} <= set(CONSOLE)


def test_the_page_of_the_command_line_names_every_command_and_model():
    page = TEXTS["docs/command_line.md"]
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(COMMANDS)
    assert all(f"`{name}`" in page or f" {name}`" in page for name in ModelName)


# -- commands that no console block has --------------------------------------------------------------------------------

_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(
    r"^\s*(?:\$ )?((?:nhsvm|python|pip|make|mkdocs|git|curl|zcat|gzip|cat|echo|head) .*)$", re.MULTILINE
)
# Not run: `make test` would run itself; `make demo` sets up an environment and is what tests/cli/test_demo.py tests.
NOT_RUN = {"make demo", "make test"}
# Lines that are indented by four, above the tables in docs/results, are how these were made: they take hours.
RESULTS = "docs/results/"


def plain_commands(text):
    """Shell commands in blocks that are not ``console``."""
    for language, content in _BLOCK.findall(text):
        if not language.startswith(("console", "python")) and "title=" not in language:
            yield from (line.partition("#")[0].strip() for line in _COMMAND.findall(content))


@pytest.mark.parametrize("name", [name for name in TEXTS if not name.startswith(RESULTS)])
def test_no_command_is_in_a_block_that_is_not_run(name):
    assert set(plain_commands(TEXTS[name])) <= NOT_RUN


def test_plain_commands_are_found():
    assert set(plain_commands(TEXTS["README.md"])) == NOT_RUN
    assert list(plain_commands("```\nnhsvm train a.csv\n```\n```console\n$ echo a\n```\n")) == ["nhsvm train a.csv"]


def spans(text):
    """Code in running text, a line each."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", _BLOCK.sub("", text))


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


INLINE = [(name, span) for name, text in TEXTS.items() for span in spans(text) if span.startswith("nhsvm ")]


@pytest.mark.parametrize(("name", "line"), INLINE)
def test_commands_in_running_text_exist(name, line):
    assert why_not(line) is None


def test_commands_in_running_text_are_found():
    assert ("README.md", "nhsvm reproduce norms") in INLINE
    assert ("docs/tutorials/report.md", "nhsvm evaluate model.nhsvm test.csv --report report.html") in INLINE


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


BENCHMARKS = [(name, span) for name, text in TEXTS.items() for span in spans(text) if span.startswith("python bench")]


@pytest.mark.parametrize(("name", "line"), BENCHMARKS)
def test_benchmarks_in_running_text_exist(name, line):
    """They measure, and take minutes to hours, so it is only seen to that the file and its options are there."""
    _, script, *words = line.split()
    source = (PROJECT / script).read_text(encoding="utf-8") + (PROJECT / "benchmarks/data.py").read_text("utf-8")
    for word in words:
        assert not word.startswith("--") or f'"{word}"' in source, f"{name}: {script} has no {word}"


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
    page.write_text("nothing")
    with pytest.raises(AssertionError, match="no console blocks"):
        run_page(page, tmp_path)


def test_wildcards():
    assert matches("a ... c\n", "a b c\n")
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert not matches("a ... c\n", "a b d\n")
