"""Where a folder of blocks may be written, and how an error of the disk is told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from nhsvm._atomic import NewFolder
from nhsvm.datasets._blocks_format import is_ours
from nhsvm.errors import OptionError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the folder in an error of the disk."""
    try:
        yield
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror or error}; nothing of it is kept") from error


def new_folder(path: Path, *, force: bool = False) -> NewFolder:
    """A folder that gets its name when it is complete; with ``force`` it replaces blocks that are there."""
    return NewFolder(path, partial(check_target, path, force=force), replace=force)


def check_target(path: Path, *, force: bool) -> None:
    """An error if a folder of blocks cannot be written; nothing is touched."""
    if not path.name:
        raise OptionError(f"{str(path)!r} is no name for a folder of blocks")
    if path.is_symlink() or (path.exists() and not (path.is_dir() and (is_ours(path) or not any(path.iterdir())))):
        raise OptionError(f"{path} exists and is not a folder of blocks: choose another name")
    if path.exists() and not force:
        raise OptionError(f"{path} exists already; choose another name, or replace it: --force, in Python force=True")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"{path} cannot be written: there is no folder {path.absolute().parent}")
    if not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise OptionError(f"{path} cannot be written: permission denied in {path.absolute().parent}")
