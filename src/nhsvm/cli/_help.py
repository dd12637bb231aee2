"""Commands whose ``--help`` shows no type of options that take no value, such as ``--quiet``."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from nhsvm.cli._streams import OutputError


class _Plain:
    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters; flags have nothing to show behind their name."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in found:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                parameter.metavar = ""
        return found


class Command(_Plain, TyperCommand):
    """A command."""


class Group(_Plain, TyperGroup):
    """A command with commands of its own."""

    def invoke(self, ctx: Any) -> Any:
        """Run it; where a pipe that ``-o`` names has ended, it is as if standard output had, not as typer sees it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputError.of(error) from error
