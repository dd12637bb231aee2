"""What commands write: results to standard output, all else to standard error, files all or nothing."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import stat
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from nhsvm._atomic import new_file
from nhsvm.errors import OptionError

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output; all else goes to standard error.")
]


def note(text: str) -> None:
    """A line on standard error, beside the result."""
    typer.echo(text, err=True)


# advice in the words of Python, and in those of the command line
_AS_TYPED = {
    "encoding=...": "--encoding ...",
    "label_type=str": "--label-type str",
    "multilabel=True": "--multilabel",
    "memory_limit": "--memory-limit",
    "min_df of the vectorizer": "--min-df",
    "n_jobs": "--jobs",
    "certify=False": "--no-certify",
    "solver='dual'": "--solver dual",
    "solver='sgd'": "--solver sgd",
}


def as_typed(text: str) -> str:
    """Words of the library in those of the command line; not in quotes, names of files and longer words.

    Examples
    --------
    >>> as_typed("memory_limit must be a size; my/memory_limit.csv:3: unknown label 'memory_limit'")
    "--memory-limit must be a size; my/memory_limit.csv:3: unknown label 'memory_limit'"
    """
    for python, typed in _AS_TYPED.items():
        text = re.sub(rf"(?<![\w'\"./\\-]){re.escape(python)}(?![\w'\"/\\-]|\.\w)", typed, text)
    return text


def broken(text: str) -> str:
    """Lines broken between words where a terminal is too narrow for them; as they are elsewhere.

    What goes on in the next line begins below the last column of the first, if there are columns.
    """
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(_broken(line, width) if len(line) > width else line for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    columns = [found.end() for found in re.finditer(r" {2,}", line[: width * 2 // 3])]
    below = " " * (columns[-1] if columns else 0)
    return textwrap.fill(line, width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


def print_json(result: Mapping[str, Any]) -> None:
    """One JSON object on standard output; numbers that JSON does not have are null."""
    typer.echo(json.dumps(as_json(result), ensure_ascii=False))


def as_json(value: Any) -> Any:
    """Plain JSON of mappings, sequences, sets, numpy arrays and scalars; everything else as text.

    Examples
    --------
    >>> import numpy as np
    >>> as_json({"gap": np.float32(0.5), "best": math.inf, 3: ("a", np.arange(2))})
    {'gap': 0.5, 'best': None, '3': ['a', [0, 1]]}
    """
    if hasattr(value, "tolist"):  # of numpy, which is not imported here
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((as_json(item) for item in value), key=str)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)


def check_writable(path: str | Path, what: str = "-o") -> None:
    """An error if a file cannot be written; nothing is touched."""
    if str(path) == "-":
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise OptionError(f"{what} {path} is a folder: give the name of a file in it")
    if target.exists() and not os.access(target, os.W_OK):
        raise OptionError(f"{what} {path} cannot be written: permission denied")
    if not target.parent.is_dir():
        raise OptionError(f"{what} {path} cannot be written: there is no folder {target.parent}")
    if not target.exists() and not os.access(target.parent, os.W_OK | os.X_OK):
        raise OptionError(f"{what} {path} cannot be written: permission denied in {target.parent}")


def check_distinct(output: str | Path, *inputs: str | Path | None, what: str = "-o") -> None:
    """An error if a file that is read would be overwritten."""
    for given in inputs:
        if given is not None and Path(given).exists() and Path(output).exists() and os.path.samefile(given, output):
            raise OptionError(f"{what} {output} would overwrite the file that is read: choose another name")


def check_model_path(path: str | Path) -> None:
    """The same for a model file, which is never written to a device, a pipe or standard output."""
    if str(path) == "-":
        raise OptionError("a model cannot be written to standard output: give the name of a file")
    check_writable(path)
    if Path(path).exists() and not Path(path).is_file():
        raise OptionError(f"-o {path} is not a regular file: choose another name for the model")


@contextmanager
def output_file(path: str | Path) -> Iterator[IO[bytes]]:
    """A file to write bytes to, which takes its name when it is complete; ``-`` is standard output.

    After an error there is no file, or still the old one. What is no regular file, such as a pipe, is written to as it
    is. An error of the disk is an OptionError that names the file.
    """
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check_writable(path)
    target = Path(os.path.realpath(path))
    with writing(path):
        if target.exists() and not stat.S_ISREG(os.stat(target).st_mode):
            with target.open("wb") as stream:
                yield stream
            return
        with new_file(path) as stream:
            yield stream


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Name the file in an error of the disk."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise OptionError(f"{path} cannot be written: {error.strerror or error}") from error


def needs(module: str, extra: str, what: str) -> None:
    """An error if an optional part is not installed."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise OptionError(f"{what} needs {module}: pip install 'nhsvm[{extra}]'")
