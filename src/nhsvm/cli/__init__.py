"""The command line, one file a command.

Modules of commands import nothing heavy at their top, so that ``nhsvm --help`` and shell completion are fast; a test
holds it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import cleandoc

import typer

from nhsvm import __version__
from nhsvm.errors import NHSVMError

COMMANDS = ("train", "tune", "predict", "evaluate", "inspect", "convert", "reproduce", "demo")
"""Names of commands; ``nhsvm train`` is ``train`` in ``cli/train.py``."""

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Classify into label hierarchies.",
    epilog="Every command has an example in its --help. Completion of options: nhsvm --install-completion",
)


def _flowing(text: str) -> str:
    """A docstring whose paragraphs are a line each, so that a terminal of any width can break them."""
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(text).split("\n\n"))


for _name in COMMANDS:
    _command = getattr(import_module(f"nhsvm.cli.{_name}"), _name)
    if isinstance(_command, typer.Typer):  # commands of its own
        app.add_typer(_command, name=_name)
    else:
        app.command(_name, help=_flowing(_command.__doc__))(_command)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"nhsvm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Options of all commands."""


def main() -> None:
    """Run a command; bad input ends it with one line on standard error and exit code 2."""
    try:
        app(prog_name="nhsvm")
    except (NHSVMError, OSError, MemoryError) as error:
        lack = "not enough memory: " if isinstance(error, MemoryError) else ""
        typer.echo(f"nhsvm: {lack}{' '.join(str(error).split())}", err=True)
        sys.exit(2)
