"""The commands on pages of documentation print what the pages say."""

from pathlib import Path

import pytest

from docs_console import matches, run_page, steps

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["README.md", "docs/command_line.md"])
def test_pages(name, tmp_path):
    run_page(PROJECT / name, tmp_path)


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
