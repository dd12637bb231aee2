"""Faults in what a process asks of the system when it writes: at the k-th step it fails, or the process is gone.

``Faults().install()`` replaces the functions of ``os``, ``io`` and ``fcntl`` that change a disk, for the rest of the
process, so it belongs in a child. Steps are counted whatever happens; the fault comes at the one that was asked for:

- ``error``: the step fails. A write has written half of its bytes by then, as on a full disk.
- ``full``: that step fails, and all later ones fail that need room.
- ``exit``: the process ends before the step, without any clean-up.
- ``torn``: the same, but half of the step's bytes are written.
- ``power``: the same as ``exit``, and all files lose what was not waited for by ``fsync``.

Where a process dies, what it leaves is what is on the disk at that step. So a run without a fault can tell what all
runs with such an end would leave, if it is asked to look at each step.
"""

import builtins
import errno
import fcntl
import io
import os

from nhsvm import _atomic

FAILING, DYING = ("error", "full"), ("exit", "torn", "power")
DEAD = 99  # exit code of a process that has ended at the fault
_NEEDS_ROOM = ("open", "write", "mkdir", "fsync")
_REPLACED = {
    "replace": "rename",
    "rename": "rename",
    "link": "link",
    "symlink": "link",
    "unlink": "unlink",
    "remove": "unlink",
    "rmdir": "rmdir",
    "mkdir": "mkdir",
    "chmod": "chmod",
    "truncate": "write",
    "ftruncate": "write",
    "write": "write",
}


class Faults:
    """What is counted, and where the fault is.

    Parameters
    ----------
    at : int or None
        The step, counted from 0; None for no fault.
    how : str or None
        One of ``FAILING`` and ``DYING``.
    look : function, optional
        Called with the number of the step and one of ``DYING`` wherever the process could die so.

    Attributes
    ----------
    steps : list of str
        Kinds of the steps so far.
    """

    def __init__(self, at=None, how=None, look=None):
        self.at, self.how, self.look, self.steps = at, how, look, []
        self._dirty = set()

    def step(self, kind, half=None):
        """Count a step, which the caller is about to take; ``half`` takes half of it. Whether that was done."""
        number = len(self.steps)
        self.steps.append(kind)
        if self.look is not None:
            self.look(number, "exit")
            self.look(number, "power")
            if half is not None:
                half()
                self.look(number, "torn")
                return True
        if self.at is None or number < self.at:
            return False
        if number > self.at:
            if self.how == "full" and kind in _NEEDS_ROOM:
                raise self._error(kind)
            return False
        if half is not None and self.how in ("torn", *FAILING):
            half()
        if self.how in FAILING:
            raise self._error(kind)
        if self.how == "power":
            for path in self.unsafe():
                _truncate(path, 0)
        os._exit(DEAD)

    def _error(self, kind):
        number = errno.ENOSPC if kind in _NEEDS_ROOM else errno.EIO
        return OSError(number, os.strerror(number))

    def written(self, descriptor):
        """What is in this file is not on disk."""
        self._dirty.add(self._identity(descriptor))

    def synced(self, descriptor):
        self._dirty.discard(self._identity(descriptor))

    def _identity(self, file):
        status = os.stat(file)
        return status.st_dev, status.st_ino

    def unsafe(self):
        """Files below the folder that the process works in, whose content was not waited for."""
        paths = (os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names)
        return [os.path.relpath(path) for path in paths if self._identity(path) in self._dirty]

    def install(self):
        """From now on, in this process."""
        faults = self
        for name, kind in _REPLACED.items():
            setattr(os, name, _counted(getattr(os, name), kind, faults))
        fcntl.flock = _counted(fcntl.flock, "flock", faults)
        fsync, os_open, plain_open = os.fsync, os.open, io.open

        def synced(file):
            faults.step("fsync")
            fsync(file)
            faults.synced(file if isinstance(file, int) else file.fileno())

        def descriptor(path, flags, *args, **options):
            if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                faults.step("open")
            return os_open(path, flags, *args, **options)

        class File(io.FileIO):
            """A file whose writes are steps."""

            def __init__(self, path, mode, closefd, opener):
                if opener is None:  # else os.open counts it
                    faults.step("open")
                super().__init__(path, mode, closefd, opener)
                faults.written(self.fileno())

            def write(self, data):
                data = memoryview(data).cast("B")
                half = len(data) // 2
                faults.written(self.fileno())
                if faults.step("write", lambda: super(File, self).write(data[:half])):
                    return half + super().write(data[half:])
                return super().write(data)

            def close(self):
                if self.closed:
                    return
                try:
                    faults.step("close")
                finally:
                    super().close()

        def opened(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
            if not set(mode) & set("wxa+") or file == os.devnull:
                return plain_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            raw = File(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            if "b" in mode and buffering == 0:
                return raw
            binary = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return binary if "b" in mode else io.TextIOWrapper(binary, encoding, errors, newline)

        os.fsync, os.open, io.open, builtins.open = synced, descriptor, opened, opened
        _atomic._exchanged = _counted(_atomic._exchanged, "rename", faults)  # a step that Python does not have
        return self


_truncate = os.truncate


def _counted(function, kind, faults):
    def counted(*args, **options):
        faults.step(kind)
        return function(*args, **options)

    return counted
