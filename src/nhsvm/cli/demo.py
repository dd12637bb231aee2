"""``nhsvm demo``: four models on real texts, side by side; then one sentence, its place, and why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nhsvm.cli._output import broken, check_writable, note, writing
from nhsvm.errors import OptionError
from nhsvm.sizes import readable_bytes

if TYPE_CHECKING:
    from nhsvm.cli._demo import Comparison

SENTENCE = "Eigenvalues of a large sparse symmetric matrix, by Lanczos iterations"


def demo(
    text: Annotated[str | None, typer.Option(help="A sentence to classify; asked for on a terminal.")] = None,
    report: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("nhsvm-demo.html"),
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
) -> None:
    """Train and compare four models on real texts, classify a sentence, explain the answer, write a report.

    The texts are the docstrings of the installed numpy, scipy and scikit-learn; their labels are the modules they are
    from. Nothing is downloaded.

    Example: nhsvm demo --text "fit a straight line to points"
    """
    if text is not None and not text.strip():
        raise OptionError("--text is empty: give a sentence to classify")
    if not no_report:
        check_writable(report, "--report")
    from nhsvm.cli._demo import Comparison, figure

    typer.echo(broken(figure()))
    comparison = Comparison()
    typer.echo(broken(comparison.describe_data()))
    for line in comparison.run():
        typer.echo(broken(line))
    for sentence in _sentences(text):
        typer.echo(broken(comparison.classify(sentence)))
    if not no_report:
        _write(comparison, report)


def _sentences(text: str | None) -> Iterator[str]:
    """The one that was given, or the default one; on a terminal, all that the user types."""
    if text is not None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield SENTENCE if text is None else text
        return
    typed = _asked("\nA sentence about numerical Python, to see which module it belongs to", default=SENTENCE)
    while typed:
        yield typed
        typed = _asked("\nAnother one (Enter to end)", default="", show_default=False)


def _asked(question: str, **options: Any) -> str:
    """What the user types; nothing after Ctrl-C or the end of input, so that the report is still written."""
    try:
        typed: str = typer.prompt(question, **options)
    except typer.Abort:
        typer.echo()
        return ""
    return typed.strip()


def _write(comparison: Comparison, path: Path) -> None:
    from importlib.util import find_spec

    if find_spec("jinja2") is None:
        note("\nNo report: it needs jinja2, pip install 'nhsvm[report]'")
        return
    with writing(path):
        comparison.write_report(path)
    typer.echo(f"\nReport on NHSVM: {path} ({readable_bytes(path.stat().st_size)}), to be opened in a browser")
