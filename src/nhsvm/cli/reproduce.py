"""``nhsvm reproduce``: the paper's tables and figures, each as a page of results; a command an experiment."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from nhsvm.cli.options import Command, Group
from nhsvm.cli.output import needs, note
from nhsvm.paper import EXPERIMENTS, Experiment, Option, Value
from nhsvm.paper import reproduce as run

reproduce = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Make the paper's tables and figures again, as pages.\n\nExample: nhsvm reproduce norms --out docs",
)

_OUT = Option("out", Path, Path("docs"), "Pages go to DIR/results, pictures to DIR/images.", metavar="DIR")


def _command(spec: Experiment) -> Callable[..., None]:
    """The command of an experiment, with its options as typer wants them."""

    def command(out: Path, **given: Value) -> None:
        for option in spec.takes:
            option.check(given[option.name], _flag(option))
        needs("matplotlib", "plot", "nhsvm reproduce")
        from nhsvm.paper.tables import check_out

        check_out(out)
        for path in run(spec.name, out, note, **given):
            typer.echo(path)

    vars(command)["__signature__"] = Signature([_parameter(option) for option in (*spec.takes, _OUT)])
    return command


def _flag(option: Option) -> str:
    return f"--{option.flag or option.name.replace('_', '-')}"


def _parameter(option: Option) -> Parameter:
    kind: Any = option.kind if option.default is not None else option.kind | None
    shown = typer.Option(
        _flag(option), metavar=option.metavar, help=option.help, show_default=option.default is not None
    )
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=Annotated[kind, shown])


for _spec in EXPERIMENTS.specs.values():
    _help = f"{_spec.summary}\n\nExample: nhsvm reproduce {_spec.name} {_spec.example}".rstrip()
    reproduce.command(_spec.name, cls=Command, help=_help)(_command(_spec))
