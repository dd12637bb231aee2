"""Shell commands on Markdown pages that are not in ``console`` blocks, which ``docs_console`` runs."""

import re
from pathlib import Path

PROJECT = Path(__file__).parents[1]
# What a command begins with. A script without "python" before it counts too, and no test knows how to run that.
_PROGRAM = (
    r"(?:nhsvm|python3?|pip3?|pipx|uv|conda|make|mkdocs|pytest|ruff|mypy|git|curl|wget|tar|unzip|zcat|gzip|cat|echo|head"
    r"|cd|export|docker|bash|sh|benchmarks/\S+\.py|\./\S+)"
)
_COMMAND = re.compile(rf"(?:\$ )?({_PROGRAM} [^#]*[^#\s])")
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def texts_of(pages):
    """Texts of pages by their paths from the top of the project."""
    return {page.relative_to(PROJECT).as_posix(): page.read_text(encoding="utf-8") for page in pages}


PAGES = texts_of([PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").rglob("*.md"))])
# Commands in docs/results are the record of how its tables were made: they take hours.
GUIDE = {name: text for name, text in PAGES.items() if not name.startswith("docs/results/")}


def commands(text):
    """Commands in blocks that are neither ``console`` nor Python nor files, in indented lines, and in running text."""
    for language, content in _BLOCK.findall(text):
        if not language.startswith(("console", "python")) and "title=" not in language:
            yield from _found(content.splitlines())
    for paragraph in re.split(r"\n\s*\n", _BLOCK.sub("\n\n", text)):
        yield from _found(line for line in paragraph.splitlines() if line.startswith("    "))
        yield from _found(" ".join(span.split()) for span in _SPAN.findall(paragraph))


def _found(lines):
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():  # a command may go on in the next line
        match = _COMMAND.match(line.strip())
        if match:
            yield match[1].strip()
