"""Commands in the tutorials print what the pages say, given the files that their Python makes."""

import doctest
import re
import tempfile
from pathlib import Path

import pytest

from docs_console import run_page

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
PAGES = [page for page in sorted((DOCS / "tutorials").glob("*.md")) if "```console" in page.read_text(encoding="utf-8")]


class Kept:
    """A temporary folder that outlives the page."""

    def __init__(self, name):
        self.name = str(name)

    def cleanup(self):
        pass


def test_there_are_pages():
    assert {"text.md", "lshtc.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_run_in_the_folder_of_the_page(page, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda: Kept(tmp_path))
    text = page.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    doctest.DocTestRunner(verbose=False).run(examples, out=lambda _: None)  # which writes the files
    run_page(page, tmp_path)


def test_every_page_is_in_the_navigation():
    config = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- [^:]+: (\S+\.md)$", config, flags=re.M)
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page not in RECORDS}
    assert sorted(listed) == sorted(pages)


def test_every_decision_is_in_their_index_by_its_own_title():
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    titles = {page.name: page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in RECORDS}
    assert len(titles) > 30
    assert {file: title for title, file in re.findall(r"^- \[(.+)\]\((\S+)\)$", index, flags=re.M)} == titles


@pytest.mark.parametrize("page", RECORDS, ids=lambda page: page.stem)
def test_a_decision_says_what_was_asked_and_what_would_reopen_it(page):
    text = page.read_text(encoding="utf-8")
    number = page.name[:3]
    assert text.startswith(f"# {number}: ")
    assert [record.name for record in RECORDS if record.name.startswith(number)] == [page.name]
    bold = re.findall(r"^\*\*(Question|Decision|What would reopen it)\b", text, flags=re.M)
    assert bold == ["Question", "Decision", "What would reopen it"]
