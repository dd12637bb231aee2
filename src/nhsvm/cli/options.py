"""How commands take options: one option, groups of them, values from a TOML file, and flags in ``--help``.

A command is a function that typer reads. A parameter whose type is a dataclass is a group of options: every field
becomes an option of the command, and the function gets a filled-in instance. Groups are how commands share options, and
how they stay short::

    def evaluate(model: ModelFile, data: DataFile, samples: SampleOptions, labels: LabelOptions) -> None: ...

Modules of the command line import nothing heavy at their top: ``nhsvm --help`` has to be fast.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from difflib import get_close_matches
from enum import Enum, StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from nhsvm.cli.terminal import OutputError
from nhsvm.errors import FileFormatError

# -- one option, and groups of them ------------------------------------------------------------------------------------


def option(
    *names: str,
    help: str,
    default: object = None,
    shown: str = "",
    metavar: str | None = None,
    min: float | None = None,
    panel: str | None = None,
) -> Any:
    """A field of a group that is an option on the command line; ``shown`` says in words what happens without it."""
    said = typer.Option(
        *names, help=help, show_default=shown or bool(default), metavar=metavar, min=min, rich_help_panel=panel
    )
    return field(default=default, metadata={"option": said})


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes the fields of dataclasses as options in place of these.

    A choice is a ``Literal`` of texts. What typer shows of an option is said by :func:`option` or ``Annotated``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int = option(help="In metres.", default=1)
    ...     height: int = 2
    >>> def draw(name: str, size: Size) -> None:
    ...     print(name, size.width * size.height)
    >>> with_groups(draw)("box", width=4)
    box 8
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _fields_as_parameters(groups[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=_for_typer(hints[parameter.name])))

    @wraps(command)
    def run(*args: object, **options: object) -> None:
        given = {name: value.value if isinstance(value, Enum) else value for name, value in options.items()}
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind) if field.name in given})
            for name, kind in groups.items()
        }
        command(*args, **given, **made)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = Signature(parameters, return_annotation=None)
    return run


def _fields_as_parameters(kind: type[Any]) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    parameters = []
    for one in fields(kind):
        default = Parameter.empty if one.default is MISSING else one.default
        said = one.metadata.get("option")
        hint = _for_typer(hints[one.name])
        annotation = hint if said is None else Annotated[hint, said]
        parameters.append(Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return parameters


def _for_typer(hint: Any) -> Any:
    """A type with enumerations, whose members typer offers, in place of literals."""
    kind, *more = get_args(hint) or (None,)
    if get_origin(hint) is Literal:
        return StrEnum("Choice", {name: name for name in get_args(hint)})
    if get_origin(hint) is Annotated:
        return Annotated[_for_typer(kind), *more]
    return _for_typer(kind) | None if more == [NoneType] else hint


# -- values from a file ------------------------------------------------------------------------------------------------

_NOT_IN_A_FILE = ("config", "help")


def _use(context: typer.Context, file: Path | None) -> Path | None:
    """Make the values of a file the defaults of a command, so that what is typed wins."""
    if file is not None and not context.resilient_parsing:
        root = context.find_root().command
        commands = root.commands if isinstance(root, Group) else {}
        context.default_map = {**(context.default_map or {}), **_read_config(file, context.command, commands)}
    return file


def _read_config(file: Path, command: Any, commands: Mapping[str, Any]) -> dict[str, object]:
    """Options of a command in a TOML file.

    Keys are the long names of options, with ``-`` or ``_``, at the top or in a table with the name of the command.
    Tables of other commands, and keys at the top that only these know, are left alone. Arguments have the name that
    ``--help`` shows, such as ``data``.
    """
    try:
        with file.open("rb") as stream:
            content = tomllib.load(stream)
    except OSError as error:
        raise FileFormatError(file, None, f"cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(file, None, f"not TOML: {error}") from None
    except RecursionError:
        raise FileFormatError(file, None, "nested too deeply") from None
    known = _by_key(command)
    of_others = {key for other in commands.values() for key in _by_key(other)} - known.keys()
    own = content.pop(command.name, {})
    if not isinstance(own, dict):
        raise FileFormatError(file, None, f"{command.name!r} must be a table, with the options of that command")
    shared = {
        key: value
        for key, value in content.items()
        if _key(key) not in of_others and not (isinstance(value, dict) and key in commands)
    }
    found: dict[str, object] = {}
    for key, value in (shared | own).items():
        parameter = known.get(_key(key))
        if parameter is None:
            raise FileFormatError(file, None, f"unknown key {key!r}{_hint(key, command)}")
        if isinstance(value, dict):
            raise FileFormatError(file, None, f"{key!r} must be a value, not a table")
        if parameter.name in found:
            raise FileFormatError(file, None, f"{key!r} is given twice")
        if getattr(parameter, "multiple", False):  # of options, which may be repeated, and not of arguments
            found[parameter.name] = value if isinstance(value, list) else [value]
        else:  # as it is typed: 1,2 for [1, 2]
            found[parameter.name] = ",".join(map(str, value)) if isinstance(value, list) else value
    return found


def _by_key(command: Any) -> dict[str, Any]:
    """Parameters of a command by all their names, as they are compared."""
    own = [parameter for parameter in command.params if parameter.name not in _NOT_IN_A_FILE]
    return {_key(name): parameter for parameter in own for name in (parameter.name, *parameter.opts)}


def _key(name: str) -> str:
    return name.lstrip("-").replace("-", "_").lower()


def _hint(key: str, command: Any) -> str:
    known = _by_key(command)
    for parameter in known.values():
        if _key(key) in map(_key, parameter.secondary_opts):
            return f"; write {parameter.name} = false"
    near = get_close_matches(_key(key), known, n=2, cutoff=0.7)
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else "; keys are the names of the options"


# -- options of many commands ------------------------------------------------------------------------------------------

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        callback=_use,
        is_eager=True,
        show_default=False,
        help="TOML file with the same names as the options; what is typed here wins.",
    ),
]
JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output; all else goes to standard error.")
]
QuietFlag = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
CsvSafeFlag = Annotated[
    bool,
    typer.Option("--csv-safe", help="In CSV, an apostrophe before cells that a spreadsheet would run as formulas."),
]

# -- flags in --help ---------------------------------------------------------------------------------------------------


def _without_kinds(parameters: list[Any]) -> list[Any]:
    """Parameters; options that take no value, such as ``--quiet``, show nothing behind their names."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_kinds(super().get_params(ctx))


class Group(TyperGroup):
    """A command with commands of its own."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_kinds(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run it; where a pipe that ``-o`` names has ended, it is as if standard output had, not as typer sees it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputError.of(error) from error
