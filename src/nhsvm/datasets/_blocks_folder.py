"""A folder that is written under another name and gets its own when it is complete."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nhsvm.datasets._blocks_format import HEADER, is_ours
from nhsvm.errors import OptionError

if sys.platform != "win32":
    import fcntl


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the folder in an error of the disk."""
    try:
        yield
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror or error}; nothing of it is kept") from error


class NewFolder:
    """A hidden folder beside ``path``, to be renamed at the end; use it as a context.

    Whatever ends the program, ``path`` is complete or not there. A process that is killed leaves its hidden folder
    behind: nobody holds a lock on it then, and the next one to write ``path`` removes it.

    Parameters
    ----------
    path : Path
    force : bool
        Replace a folder of blocks that is there.

    Attributes
    ----------
    folder : Path
        Where to write.
    removed : int
        Folders of earlier attempts that were removed.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self.path, self._force = path, force
        check_target(path, force=force)
        token = secrets.token_hex(8)
        self.folder = _beside(path, f"{token}.tmp")
        self._old = _beside(path, f"{token}.old")
        self._lock, self.removed = -1, 0

    def __enter__(self) -> NewFolder:
        with writing(self.path):
            self.removed = _clean(self.path)
            check_target(self.path, force=self._force)  # one that was being replaced may be back
            self.folder.mkdir()
            self._lock = _locked(self.folder)
        return self

    def __exit__(self, *exception: object) -> None:
        self._unlock()
        shutil.rmtree(self.folder, ignore_errors=True)

    def complete(self) -> None:
        """Give the folder its name; all files in it are on disk already."""
        with writing(self.path):
            sync(self.folder)
            self._unlock()  # Windows would not rename it
            if self._force and self.path.exists():
                os.rename(self.path, self._old)
                try:
                    os.rename(self.folder, self.path)
                except OSError:
                    os.rename(self._old, self.path)
                    raise
            else:
                os.rename(self.folder, self.path)
            sync(self.path.parent)
        shutil.rmtree(self._old, ignore_errors=True)

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


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


def unfinished(path: Path) -> bool:
    """Whether a folder of this name was begun."""
    return bool(path.name) and bool(_leftovers(path))


def sync(path: Path) -> None:
    """Have the names in a folder on disk; where this cannot be done nothing is lost."""
    with suppress(OSError):  # not on Windows, nor on some network drives
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{ending}")


def _leftovers(path: Path) -> list[Path]:
    parent = path.absolute().parent
    if not parent.is_dir():
        return []
    begin = f".{path.name}."
    found = (p for p in parent.iterdir() if p.name.startswith(begin) and p.suffix in (".tmp", ".old"))
    return sorted(p for p in found if len(p.name) == len(begin) + 20 and p.is_dir())


def _clean(path: Path) -> int:
    """Remove what earlier attempts have left; how many there were."""
    found = _leftovers(path)
    for folder in found:
        if folder.suffix == ".old" and not path.exists() and (folder / HEADER).exists():
            os.rename(folder, path)  # killed between two renames: what was to be replaced is whole
            continue
        lock = _locked(folder)
        if lock < 0 and sys.platform != "win32":
            raise OptionError(f"another process is writing {path} at the moment; wait for it, or choose another name")
        if lock >= 0:
            os.close(lock)
        shutil.rmtree(folder)
    return len(found)


def _locked(folder: Path) -> int:
    """A descriptor that holds the only lock on a folder until it is closed, or −1 if another process has it."""
    if sys.platform == "win32":  # no locks on folders; open files cannot be removed there
        return -1
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return -1
    return descriptor
