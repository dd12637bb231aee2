"""Files and folders that are there as a whole or not at all: the one way in which the library writes.

What is written goes to a hidden neighbour, ``.nhsvm-….tmp``, waits for the disk, and takes its name by a rename. An
error, and a signal that becomes an exception, remove the neighbour. A process that is killed leaves it, and the next
one that writes in the same folder removes it.

A writer holds a lock (``flock``) on its neighbour until the rename. The kernel gives it back however the process ends,
so a neighbour without one is dead; numbers of processes, which are used again, would not say that. Locks need not be
seen from other machines, nor exist on every network drive. So a name begins with a mark of the machine: what another
machine has written, or what cannot be locked, is dead if nobody has touched it for a day. Files of other users are left
alone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from nhsvm.errors import OptionError

if sys.platform != "win32":
    import fcntl

PathArg = str | os.PathLike[str]

_TOKEN = "[0-9a-f]{16}(?:[0-9a-f]{8})?"  # of earlier versions the shorter one, without a mark
_LEFTOVER = re.compile(rf"\.nhsvm-{_TOKEN}\.tmp")
_ENDING = re.compile(rf"\.({_TOKEN})\.(tmp|old)")  # of folders that get the name before it
_ABANDONED = 86_400.0  # seconds without a change, where locks cannot tell
_TRIES = 100  # for a neighbour that nobody takes for a leftover before it is locked


@contextmanager
def new_file(path: PathArg, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A file to write bytes to, which takes the place of ``path`` when the context ends well.

    It is on disk by then. After an error or a crash the old file is still there, untouched. An existing file keeps its
    permissions, unless others are given, and a link is followed.

    Raises
    ------
    OSError
    OptionError
        If ``path`` is there and no regular file.
    """
    target = Path(os.path.realpath(path))  # so that a link stays a link
    old = _mode_of(target)
    mode = old if mode is None else mode
    clean(target.parent)
    temporary: Path | None = None
    file: IO[bytes] | None = None
    try:
        for _ in range(_TRIES):
            temporary = target.with_name(_hidden())
            file = _opened(temporary, 0o666 if mode is None else 0o600)  # never more than the old one gives
            if _claimed(temporary, file.fileno()):
                break
            file.close()
            temporary.unlink(missing_ok=True)
        else:
            raise OSError(f"something removes temporary files in {target.parent} at once")
        yield file
        file.flush()
        if mode is not None:
            os.chmod(temporary, mode)
        os.fsync(file.fileno())
        if sys.platform == "win32":
            file.close()  # open files cannot be renamed there; elsewhere the lock is held until after the rename
        os.replace(temporary, target)
    except BaseException:
        if file is not None:
            with suppress(OSError):  # of what is left in the buffer; the first error says more
                file.close()
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise
    file.close()
    sync(target.parent)


def write_file(path: PathArg, content: Iterable[bytes | memoryview]) -> None:
    """Write a file, all of it or nothing: see :func:`new_file`."""
    with new_file(path) as file:
        for part in content:
            file.write(part)


@contextmanager
def scratch_folder(path: PathArg) -> Iterator[Path]:
    """A hidden folder beside ``path`` for what is not kept; it is removed at the end."""
    parent = Path(path).absolute().parent
    clean(parent)
    folder, lock = _made(lambda: parent / _hidden())
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _close(lock)


class NewFolder:
    """A hidden folder beside ``path``, to be renamed at the end; use it as a context.

    Whatever ends the program, ``path`` is complete or not there. A process that is killed leaves its hidden folder
    behind, and the next one that writes ``path`` removes it.

    A folder that is there is replaced in one step on Linux, so that ``path`` always exists. Other systems, and some
    network drives, need two renames. If the process is killed between them, the next one to write ``path`` gives the
    old folder its name again.

    Parameters
    ----------
    path : Path
    check : function
        Raises an error if ``path`` cannot be written. Asked at once, and again when leftovers are gone.
    replace : bool
        Replace a folder that is there.

    Attributes
    ----------
    folder : Path
        Where to write.
    removed : int
        Folders of earlier attempts that were removed.
    """

    def __init__(self, path: Path, check: Callable[[], None], *, replace: bool = False) -> None:
        self.path, self._check, self._replace = path, check, replace
        check()
        self.folder, self._old = self._names()
        self._lock, self.removed = -1, 0

    def _names(self) -> tuple[Path, Path]:
        token = _token()
        return _beside(self.path, token, "tmp"), _beside(self.path, token, "old")

    def __enter__(self) -> NewFolder:
        clean(self.path.absolute().parent)
        self.removed = _clean_before(self.path)
        self._check()  # one that was being replaced may be back
        self.folder, self._lock = _made(self._next)
        return self

    def _next(self) -> Path:
        self.folder, self._old = self._names()
        return self.folder

    def __exit__(self, *exception: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._unlock()

    def complete(self) -> None:
        """Give the folder its name; all files in it are on disk already."""
        sync(self.folder)
        if sys.platform == "win32":
            self._unlock()  # open folders cannot be renamed there
        if self._replace and self.path.exists():
            if _exchanged(self.folder, self.path):  # the hidden folder is the old one now, and is removed at the end
                sync(self.path.parent)
                return
            try:
                os.rename(self.path, self._old)
                os.rename(self.folder, self.path)
            except BaseException:
                if self._old.exists() and not self.path.exists():
                    os.rename(self._old, self.path)
                raise
        else:
            os.rename(self.folder, self.path)
        sync(self.path.parent)
        _discard(self._old)

    def _unlock(self) -> None:
        _close(self._lock)
        self._lock = -1


def was_begun(path: Path) -> bool:
    """Whether a :class:`NewFolder` of this name was begun and not finished."""
    return bool(path.name) and bool(_leftovers(path))


def clean(folder: Path) -> int:
    """Remove what killed processes have left in a folder; how many there were."""
    with suppress(OSError), os.scandir(folder) as entries:  # whether it can be written to is told by the writing
        found = [folder / entry.name for entry in entries if _LEFTOVER.fullmatch(entry.name)]
        return sum(_removed(path) for path in found)
    return 0


def sync(folder: Path) -> None:
    """Have the names in a folder on disk as well; files are complete by then, so where this fails nothing is lost."""
    with suppress(OSError):  # not on Windows, nor on some network drives
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mode_of(target: Path) -> int | None:
    """Permissions of the file that will be replaced, if there is one."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{target} is a folder: give the name of a file in it")
    if not stat.S_ISREG(mode):  # replacing /dev/null would do harm
        raise OptionError(f"{target} is not a regular file: choose another name")
    return stat.S_IMODE(mode)


def _opened(path: Path, mode: int) -> IO[bytes]:
    """A new file; os.open rather than tempfile, for the permissions that any new file gets."""
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))


# -- names ------------------------------------------------------------------------------------------------------------


@cache
def _mark() -> str:
    """Of this machine since it was started."""
    try:
        identity = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        identity = platform.node().encode()
    return f"{zlib.crc32(identity):08x}"


def _token() -> str:
    return _mark() + os.urandom(8).hex()


def _hidden() -> str:
    return f".nhsvm-{_token()}.tmp"


def _beside(path: Path, token: str, ending: str) -> Path:
    return path.with_name(f".{path.name}.{token}.{ending}")


def _leftovers(path: Path) -> list[Path]:
    """Hidden folders of earlier attempts, those that were to be renamed first."""
    parent = path.absolute().parent
    if not parent.is_dir():
        return []
    begin = f".{path.name}"
    named = [p for p in parent.iterdir() if p.name.startswith(begin) and _ENDING.fullmatch(p.name[len(begin) :])]
    found = [p for p in named if p.is_dir() and not p.is_symlink()]
    return sorted(found, key=lambda p: (p.suffix != ".tmp", p.name))


# -- locks ------------------------------------------------------------------------------------------------------------


def _lock(descriptor: int) -> bool | None:
    """Take the only lock on what is open: whether it is ours now, or None if there are no locks here."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a network drive without locks
        return None
    return True


def _claimed(path: Path, descriptor: int) -> bool:
    """Lock what was made a moment ago; False if somebody has taken it for a leftover in between."""
    if _lock(descriptor) is False:
        return False
    if sys.platform == "win32":
        return True
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _made(name: Callable[[], Path]) -> tuple[Path, int]:
    """A new folder, and a descriptor that holds its lock (-1 on Windows, which opens no folders)."""
    for _ in range(_TRIES):
        folder = name()
        try:
            folder.mkdir()
            if sys.platform == "win32":
                return folder, -1
            with suppress(FileNotFoundError):  # somebody has taken it for a leftover
                descriptor = os.open(folder, os.O_RDONLY)
                if _claimed(folder, descriptor):
                    return folder, descriptor
                os.close(descriptor)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        shutil.rmtree(folder, ignore_errors=True)
    raise OSError(f"something removes temporary folders in {folder.parent} at once")


def _close(lock: int) -> None:
    if lock >= 0:
        os.close(lock)


# -- what killed processes have left ----------------------------------------------------------------------------------


def _clean_before(path: Path) -> int:
    """Remove what earlier attempts to write a folder have left; how many there were."""
    found = 0
    for folder in _leftovers(path):
        if folder.suffix == ".old" and not path.exists() and _is_ours(folder):
            os.rename(folder, path)  # killed between two renames: what was to be replaced is whole
            found += 1
        elif folder.suffix == ".tmp" and _is_held(folder):
            raise OptionError(f"another process is writing {path} at the moment; wait for it, or choose another name")
        else:
            found += _removed(folder)
    return found


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False if the system or the drive cannot, and nothing is done."""
    if sys.platform != "linux":
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # an old libc
        return False
    here, exchange = ctypes.c_int(-100), ctypes.c_uint(2)  # AT_FDCWD and RENAME_EXCHANGE of Linux's headers
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _discard(folder: Path) -> None:
    """Remove a folder that has been replaced; half of it is never taken for all of it."""
    with suppress(OSError):  # the next one to write here tries again
        if folder.exists():
            doomed = folder.with_suffix(".tmp")
            os.rename(folder, doomed)
            shutil.rmtree(doomed)


def _removed(path: Path) -> bool:
    """Remove a leftover, unless it is not ours or its writer may be alive; whether it was removed.

    Leftovers are in nobody's way: one that cannot be removed stays.
    """
    with suppress(OSError):
        if not _is_ours(path):
            return False
        descriptor = -1 if sys.platform == "win32" else os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not _is_dead(path, _lock(descriptor)):
                return False
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            return True
        finally:
            _close(descriptor)
    return False


def _is_dead(path: Path, locked: bool | None) -> bool:
    if locked and _locks_tell(path.name):
        return True
    return locked is not False and time.time() - _last_change(path) > _ABANDONED


def _locks_tell(name: str) -> bool:
    """Whether the writer, if it were alive, would hold a lock that can be seen from here."""
    if _LEFTOVER.fullmatch(name):
        return name.startswith(f".nhsvm-{_mark()}")
    token = _ENDING.search(name)
    assert token is not None
    return len(token[1]) == 16 or token[1].startswith(_mark())  # earlier versions locked folders, but not files


def _is_ours(path: Path) -> bool:
    """Whether it is a file or folder of this user."""
    status = os.lstat(path)
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def _is_held(folder: Path) -> bool:
    """Whether a process that runs has locked a folder."""
    if sys.platform == "win32":
        return False
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # gone, or not ours to read
        return False
    try:
        return _lock(descriptor) is False
    finally:
        os.close(descriptor)


def _last_change(path: Path) -> float:
    """When a file, or anything in a folder, was written to last."""
    inside = [os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files]
    return max(os.lstat(name).st_mtime for name in (str(path), *inside))
