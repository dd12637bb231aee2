"""The command line, one file a command."""

from __future__ import annotations

import sys

import typer

from nhsvm import __version__
from nhsvm.cli.demo import demo
from nhsvm.cli.inspect import inspect
from nhsvm.errors import NHSVMError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Classify into label hierarchies.")
app.command()(demo)
app.command()(inspect)


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
        app()
    except (NHSVMError, OSError) as error:
        typer.echo(f"nhsvm: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
