"""The command line, one file a command.

Modules of commands import nothing heavy at their top, so that ``nhsvm --help`` and shell completion are fast; a test
holds it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import cleandoc
from typing import Any, NoReturn

import typer

from nhsvm import __version__
from nhsvm.cli._help import Command, Group
from nhsvm.cli._interrupt import interrupts_heard
from nhsvm.cli._output import as_typed
from nhsvm.errors import NHSVMError

COMMANDS = ("train", "tune", "predict", "evaluate", "inspect", "shrink", "convert", "reproduce", "demo")
"""Names of commands; ``nhsvm train`` is ``train`` in ``cli/train.py``."""

app = typer.Typer(
    cls=Group,
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
        app.command(_name, cls=Command, help=_flowing(_command.__doc__))(_command)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"nhsvm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Options of all commands."""


_UsageError: Any = typer.BadParameter.__base__  # an option that there is not, an argument that is missing, ...


def main() -> None:
    """Run a command; bad input ends it with one line on standard error and exit code 2."""
    try:
        with interrupts_heard():
            code = app(prog_name="nhsvm", standalone_mode=False)
        sys.exit(code)
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help has been shown
            sys.exit(2)
        command = "nhsvm" if error.ctx is None else error.ctx.command_path
        _fail(f"{error.format_message().rstrip('.')} (see {command} --help)")
    except (typer.Abort, KeyboardInterrupt):  # also the end of input where something was asked for
        sys.exit(130)
    except OSError as error:  # without a name: files are named by whoever writes them
        _fail(f"{error.filename or 'standard output'}: {error.strerror or error}")
    except MemoryError as error:
        _fail(f"not enough memory: {error}")
    except NHSVMError as error:
        _fail(str(error))


def _fail(problem: str) -> NoReturn:
    typer.echo(f"nhsvm: {' '.join(as_typed(problem).split())}", err=True)
    sys.exit(2)
