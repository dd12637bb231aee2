"""docs/paper.md is true."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROWS = re.findall(
    r"^\| ((?:Eq\. \d+)|(?:Figure|Theorem) 1) \| .*? \| (.*?) \|$",
    (Path(__file__).parents[1] / "docs" / "paper.md").read_text(encoding="utf-8"),
    flags=re.M,
)


def resolve(dotted):
    """Import the longest module prefix, then go by attributes."""
    parts = dotted.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for name in parts[k:]:
            found = getattr(found, name)
        return found
    raise AssertionError(f"{dotted} does not exist")


def test_every_equation_has_one_row():
    assert [number for number, _ in ROWS if number.startswith("Eq.")] == [f"Eq. {n}" for n in range(1, 21)]


@pytest.mark.parametrize(("number", "where"), [row for row in ROWS if row[1] != "with training"])
def test_the_function_exists_and_says_so(number, where):
    found = resolve(where.strip("`"))
    assert callable(found)
    assert re.search(re.escape(number) + r"(?!\d)", found.__doc__), f"{where} does not mention {number}"
