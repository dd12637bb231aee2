"""What all pages share: versions, tables, pictures, and files that are the same bytes every time."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any, TypeVar

from nhsvm import __version__
from nhsvm._atomic import write_file
from nhsvm.errors import DataError, OptionError

GREEK_FONT = "DejaVu Sans"  # comes with matplotlib, so that pictures do not depend on what is installed
Results = TypeVar("Results")
# what JSON that is something else ends with, on its way to numbers, lists and records
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
COLOURS = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#ccbb44")


def versions() -> str:
    """Of what the numbers depend on."""
    parts = ("numpy", "scipy", "scikit-learn", "numba")
    return ", ".join([f"nhsvm {__version__}", f"Python {python_version()}", *(f"{p} {version(p)}" for p in parts)])


def made_by(command: str, seeds: str) -> str:
    """The opening lines of a page: the command, versions and seeds."""
    return f"    {command}\n\nMade by this command, which rewrites the page and its picture. {versions()}. {seeds}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """A Markdown table; the first ``left`` columns are aligned to the left, the others to the right.

    Examples
    --------
    >>> print(table(["norm", "value"], [["trace", "1.00"]]))
    | norm | value |
    |---|--:|
    | trace | 1.00 |
    """
    rule = "".join("|---" if k < left else "|--:" for k in range(len(header))) + "|"
    return "\n".join([_row(header), rule, *map(_row, rows)])


def figure(width: float, height: float) -> Any:
    """A matplotlib figure of its own, without pyplot and its global state."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise OptionError("the pictures of reproduce need matplotlib: pip install 'nhsvm[plot]'") from error
    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def check_out(out: Path) -> None:
    """An error if pages cannot be written below a folder; nothing is touched."""
    for folder in (out, out / "results", out / "images"):
        known = folder
        while not known.exists() and known != known.parent:
            known = known.parent
        if not known.is_dir():
            raise OptionError(f"--out {out}: {known} is no folder")
        if not os.access(known, os.W_OK | os.X_OK):
            raise OptionError(f"--out {out}: permission denied in {known}")


def write_page(out: Path, name: str, text: str, picture: Any, data: str | None = None) -> list[Path]:
    """Write ``results/NAME.md``, ``images/NAME.png`` and, with data, ``results/NAME.json`` below ``out``."""
    check_out(out)
    stream = io.BytesIO()
    picture.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    files = {out / "images" / f"{name}.png": stream.getvalue(), out / "results" / f"{name}.md": text.encode()}
    if data is not None:
        files[out / "results" / f"{name}.json"] = data.encode()
    for path, content in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, [content])
        except OSError as error:
            raise OptionError(f"{path} cannot be written: {error.strerror or error}") from error
    return sorted(files)


def read_results(path: Path, parse: Callable[[str], Results]) -> Results:
    """What a run has stored; a DataError, which names the file, if it is something else."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text: {error.reason}") from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
