"""Groups of options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def takes(**groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of some dataclasses, whose fields are ``Annotated`` as typer wants them.

    The command has a parameter for every group, by the name given here, and gets an instance.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     width: int = 1
    ...     height: int = 2
    >>> @takes(size=Size)
    ... def draw(name: str, size: Size) -> None:
    ...     print(name, size.width * size.height)
    >>> signature(draw)
    <Signature (name: str, *, width: int = 1, height: int = 2) -> None>
    >>> draw("box", width=4)
    box 8
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(*args: Any, **given: Any) -> None:
            made = {
                name: kind(**{field.name: given.pop(field.name) for field in fields(kind) if field.name in given})
                for name, kind in groups.items()
            }
            command(*args, **given, **made)

        hints = get_type_hints(command, include_extras=True)
        own = [p.replace(annotation=hints[p.name]) for p in signature(command).parameters.values()]
        shared = [parameter for kind in groups.values() for parameter in _parameters(kind)]
        parameters = [p for p in own if p.name not in groups and p.kind is not Parameter.KEYWORD_ONLY]
        parameters += [*shared, *(p for p in own if p.name not in groups and p.kind is Parameter.KEYWORD_ONLY)]
        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__signature__ = Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def _parameters(kind: type) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
