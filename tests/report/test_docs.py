"""The commands on the page about reports print what it says."""

from pathlib import Path

from docs_console import run_page


def test_the_commands_of_the_page_run(tmp_path):
    run_page(Path(__file__).parents[2] / "docs" / "report.md", tmp_path)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
