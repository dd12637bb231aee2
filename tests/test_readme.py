"""The tables of README are lines of pages that commands have made."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
TABLES = re.findall(r"<!-- lines of (\S+) -->\n((?:\|.*\n)+)", README)


def test_there_are_tables_of_accuracy_and_of_time():
    assert [page for page, _ in TABLES] == [f"docs/results/{name}.md" for name in ("synthetic", "benchmarks", "peers")]


@pytest.mark.parametrize(("page", "table"), TABLES, ids=[page for page, _ in TABLES])
def test_every_line_is_one_of_the_page(page, table):
    lines = table.splitlines()
    assert len(lines) >= 6
    assert not set(lines) - set((PROJECT / page).read_text(encoding="utf-8").splitlines())


def test_results_are_nowhere_else():
    """A number of a result that stands in a sentence would not be compared."""
    start = README.index("## How good it is")
    section = README[start : README.index("\n## ", start + 1)]
    words = re.sub(r"^\|.*$|<!--.*-->|\]\([^)]*\)", "", section, flags=re.MULTILINE)
    assert not re.findall(r"\d+\.\d+", words)
