"""Typed errors. Every message says what was wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

_LONGEST = 900  # characters of a message
_LONGEST_NAME = 100  # characters of a label that similar ones are looked for
_KEPT = 600  # of them at its beginning, where the place is; the end has the advice


class NHSVMError(ValueError):
    """Base class of every error this library raises on purpose.

    Of a very long message, such as one with a name of a megabyte in it, the middle is left out.
    """

    def __init__(self, *args: object) -> None:
        if args and isinstance(args[0], str) and len(args[0]) > _LONGEST:
            text = args[0]
            args = (f"{text[:_KEPT]} … {text[_KEPT - _LONGEST :]}", *args[1:])
        super().__init__(*args)


class HierarchyError(NHSVMError):
    """The given edges, parents or paths do not describe a label hierarchy.

    Attributes
    ----------
    problem : str
        The message without the place.
    kind : str
        What ``item`` counts: "edge" or "path".
    item : int or None
        Position of the offending edge or path in what was given.
    """

    def __init__(self, problem: str, kind: str = "", item: int | None = None) -> None:
        self.problem, self.kind, self.item = problem, kind, item
        super().__init__(problem if item is None else f"{kind} {item}: {problem}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return HierarchyError, (self.problem, self.kind, self.item)


class CycleError(HierarchyError):
    """The given edges contain a directed cycle.

    Attributes
    ----------
    cycle : tuple
        The labels on the cycle, from parent to child; the first is repeated at the end.
    file : str or None
        Where they stand, if they were read.
    """

    def __init__(self, cycle: Sequence[Hashable], file: str | None = None) -> None:
        self.cycle, self.file = tuple(cycle), file
        shown = " -> ".join(map(repr, self.cycle[:12]))
        if len(self.cycle) > 12:
            shown += f" -> ... ({len(self.cycle) - 1} nodes)"
        where = "" if file is None else f"{file}: "
        super().__init__(f"{where}the hierarchy has a cycle: {shown}; remove one of these edges (parent -> child)")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return CycleError, (self.cycle, self.file)


class UnknownLabelError(NHSVMError):
    """A label that the hierarchy does not hold.

    Attributes
    ----------
    labels : tuple
        The unknown labels.
    """

    def __init__(self, labels: Iterable[Hashable], known: Iterable[Hashable] = (), text: str = "") -> None:
        self.labels = tuple(labels)
        super().__init__(text or self._describe(tuple(known)))

    def _describe(self, known: Sequence[Hashable]) -> str:
        parts = [repr(label) + _hint(label, known) for label in self.labels[:5]]
        more = len(self.labels) - len(parts)
        return "not in the hierarchy: " + "; ".join(parts) + (f"; and {more} more" if more else "")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return UnknownLabelError, (self.labels, (), str(self))


class LabelError(NHSVMError):
    """A known label, or set of labels, that cannot be used in this place."""


class DataError(NHSVMError):
    """Samples or sample weights that cannot be learned from; the message names the first offending row."""


class FileFormatError(NHSVMError):
    """A file that does not parse; the message starts with the file and the line."""

    def __init__(self, path: str | Path, line: int | None, problem: str) -> None:
        self.path, self.line, self.problem = str(path), line, problem
        where = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.path, self.line, self.problem)


class UntrustedPatternError(FileFormatError):
    """A model file brings a regular expression of its own, which can take forever; see ``trust_patterns``."""


class OptionError(NHSVMError):
    """An option, or a combination of options, outside its range."""


class MemoryLimitError(NHSVMError):
    """The weights do not fit into the memory that may be used; the message says what would."""


class MemoryWarning(UserWarning):
    """A fit that begins may need more memory than it is allowed, as far as an estimate tells."""


class CacheWarning(UserWarning):
    """Compiled code cannot be kept for later processes; the message says why, and what to set."""


class NotSolvedError(NHSVMError):
    """A numerical method ended without the accuracy it promises."""


def _hint(label: Hashable, known: Sequence[Hashable]) -> str:
    """Near matches, and the classic mix-up of 3 and '3'."""
    other_type = next((k for k in known if type(k) is not type(label) and str(k) == str(label)), None)
    if other_type is not None:
        return (
            f" (the hierarchy has {other_type!r}, a {type(other_type).__name__}, "
            f"but the label is a {type(label).__name__})"
        )
    if isinstance(label, str) and len(label) <= _LONGEST_NAME:  # comparing takes the product of lengths, or more
        near = get_close_matches(label, [k for k in known if isinstance(k, str) and len(k) <= _LONGEST_NAME], n=3)
        if near:
            return " (did you mean " + " or ".join(map(repr, near)) + "?)"
    return ""
