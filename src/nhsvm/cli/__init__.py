"""The command line, one file a command.

Modules of commands import nothing heavy at their top, so that ``nhsvm --help`` and shell completion are fast; a test
holds it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import cleandoc
from typing import Any

import typer

from nhsvm import __version__
from nhsvm.cli.options import Command, Group, with_groups
from nhsvm.cli.output import as_typed
from nhsvm.cli.terminal import INTERRUPTED, Heard, OutputError, interrupts_heard, plain_warnings, standard_streams
from nhsvm.errors import NHSVMError

COMMANDS = ("train", "tune", "predict", "evaluate", "inspect", "shrink", "convert", "reproduce", "warmup", "demo")
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
        app.command(_name, cls=Command, help=_flowing(_command.__doc__))(with_groups(_command))


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


_PIPE_CLOSED = 141  # as of a program that SIGPIPE ends; Python has no such signal


def main() -> None:
    """Run a command; bad input ends it with one line on standard error and exit code 2."""
    with standard_streams(), plain_warnings():
        sys.exit(_code())


def _code() -> int:
    """Run a command; its exit code."""
    heard = Heard()
    try:
        with interrupts_heard() as heard:
            code = app(prog_name="nhsvm", standalone_mode=False)
            sys.stdout.flush()
        return heard.code if code == INTERRUPTED else code or 0
    except OutputError as lost:
        return _PIPE_CLOSED if lost.is_pipe else _failed(str(lost), 1)
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help has been shown
            return 2
        command = "nhsvm" if error.ctx is None else error.ctx.command_path
        return _failed(f"{error.format_message().rstrip('.')} (see {command} --help)")
    except (typer.Abort, KeyboardInterrupt):  # also the end of input where something was asked for
        return heard.code
    except OSError as error:  # with the name of a file, or of no file; those of standard output are above
        return _failed(f"{error.filename or 'the system'}: {error.strerror or error}")
    except MemoryError as error:
        return _failed(f"not enough memory: {str(error) or 'the system, or a limit that was set, gives no more of it'}")
    except NHSVMError as error:
        return _failed(str(error))


def _failed(problem: str, code: int = 2) -> int:
    typer.echo(f"nhsvm: {' '.join(as_typed(problem).split())}", err=True)
    return code
