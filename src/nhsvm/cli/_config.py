"""Options from a file: TOML with the names of the options as keys."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from nhsvm.errors import FileFormatError

_OWN = ("config", "help")  # options that make no sense in a file


def _use(context: typer.Context, file: Path | None) -> Path | None:
    """Make the values of a file the defaults of a command, so that what is typed wins."""
    if file is not None and not context.resilient_parsing:
        others = getattr(context.find_root().command, "commands", {}).values()
        context.default_map = {**(context.default_map or {}), **read_config(file, context.command, others)}
    return file


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


def read_config(file: Path, command: Any, others: Iterable[Any] = ()) -> dict[str, Any]:
    """Options of a command in a TOML file.

    Keys are the long names of options, with ``-`` or ``_``, at the top or in a table with the name of the command.
    Tables of ``others``, and keys at the top that only these know, are left alone. Arguments have the name that
    ``--help`` shows, such as ``data``.

    Raises
    ------
    FileFormatError
        For a file that cannot be read, is no TOML, or has an unknown key.
    """
    try:
        with file.open("rb") as stream:
            content = tomllib.load(stream)
    except OSError as error:
        raise FileFormatError(file, None, f"cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(file, None, f"not TOML: {error}") from None
    commands = _names_of_commands(command)
    theirs = {name for other in others for name in _names(_options(other))} - set(_names(_options(command)))
    own = content.pop(command.name, {})
    if not isinstance(own, dict):
        raise FileFormatError(file, None, f"{command.name!r} must be a table, with the options of that command")
    tables = {key for key, value in content.items() if key in commands and isinstance(value, dict)}
    given = {key: value for key, value in content.items() if key not in tables and _key(key) not in theirs}
    return _checked(file, given | own, _options(command))


def _options(command: Any) -> dict[str, Any]:
    return {p.name: p for p in command.params if p.name not in _OWN}


def _names(options: dict[str, Any]) -> dict[str, str]:
    """Keys, as they are compared, and the parameters that they stand for."""
    return {_key(option.lstrip("-")): name for name, p in options.items() for option in (name, *p.opts)}


def _names_of_commands(command: Any) -> set[str]:
    from nhsvm.cli import COMMANDS

    return {*COMMANDS, command.name}


def _checked(file: Path, given: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    names = _names(known)
    negative = {_key(option.lstrip("-")): name for name, p in known.items() for option in p.secondary_opts}
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = names.get(_key(key))
        if name is None:
            raise FileFormatError(file, None, f"unknown key {key!r}{_hint(key, names, negative)}")
        if isinstance(value, dict):
            raise FileFormatError(file, None, f"{key!r} must be a value, not a table")
        if name in found:
            raise FileFormatError(file, None, f"{key!r} is given twice")
        found[name] = _as_typed(value, getattr(known[name], "multiple", False))
    return found


def _as_typed(value: Any, multiple: bool) -> Any:
    """A value in the form it has on the command line: 1,2 for [1, 2], unless the option may be repeated."""
    if multiple:
        return value if isinstance(value, list) else [value]
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _key(name: str) -> str:
    return name.replace("-", "_").lower()


def _hint(key: str, names: dict[str, str], negative: dict[str, str]) -> str:
    if _key(key) in negative:
        return f"; write {negative[_key(key)]} = false"
    near = get_close_matches(_key(key), names, n=2, cutoff=0.7)
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else "; keys are the names of the options"
