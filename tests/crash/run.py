"""Crash tests in a process of its own: it has no other threads, so it can be forked, and its clock stands still.

Told the name of a writer on standard input, it answers with a line of JSON: what was done and what was found wrong.
"""

import gc
import json
import marshal
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

time.perf_counter = lambda: 0.0  # models hold how long training took, which would make every file another one

from crash.faults import DEAD, DYING, FAILING, Faults  # noqa: E402
from crash.writers import NEW, OLD, FailedError, Writers  # noqa: E402

FINE, REFUSED, WRONG = 0, 7, 8
THOROUGH = ("save", "kernel")  # with real deaths; the others take longer
WITH_THREADS = ("predict parquet",)  # polars has some as soon as it has done anything
ANEW = (*THOROUGH, "write_blocks")  # also where there are no files yet
_LEAVES = ("unlink", "rmdir")  # a step that removes a file, and fails, leaves it for the next run


def forked(work):
    """Exit code of a child that does some work, and the traceback of what it did not expect."""
    threads = "/proc/self/task"
    assert not os.path.exists(threads) or len(os.listdir(threads)) == 1, "a process with threads cannot be forked"
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            code = WRONG
            try:
                work()
                code = FINE
            except FailedError:
                code = REFUSED
            except BaseException:  # noqa: BLE001
                said.write(traceback.format_exc().encode())
                said.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return os.waitstatus_to_exitcode(status), said.read().decode()


def snapshot(folder):
    """Content of files by name; a folder of blocks is one thing, as are folders that nobody should see."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not os.path.isdir(path):
            found[name] = Path(path).read_bytes()
        elif name.startswith(".") or name.endswith(".blocks"):
            found[name] = snapshot(path)
        else:
            found |= {f"{name}/{inner}": content for inner, content in snapshot(path).items()}
    return found


class Case:
    """One writer over the older version of its files, or where there are none.

    Parameters
    ----------
    write : function
        Given a version, writes it.
    thorough : bool
        Processes really die at every step, and the next run begins with all that they can leave. Otherwise one run says
        what would be left, and the next run is the same for all leftovers of the same names.
    warm : bool
        Write once in this process first.

    Attributes
    ----------
    wrong : list of str
    runs : int
        With a fault, or after one.
    kinds : dict
        How often there was a step of each kind.
    """

    def __init__(self, write, *, thorough, warm):
        self.write, self.thorough = write, thorough
        self.wrong, self.runs, self.kinds, self._known = [], 0, {}, set()
        self.states = {None: {}}
        if warm:
            with _Folder({}):
                write(NEW)  # what it imports is there for all children
        gc.collect()
        gc.freeze()  # else the first collection of every child copies all of its memory
        with _Folder({}):
            for version in (OLD, NEW):
                code, said = forked(lambda version=version: write(version))
                assert code == FINE, (code, said)
                self.states[version] = snapshot(".")

    def check(self, before):
        """All faults over a version."""
        steps, left = self._looked(before)
        for kind in steps:
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        for (at, how), found in left.items():
            what = f"{how} at step {at} ({steps[at]}), before {before}"
            self._old_or_new(what, before, found)
            self._next(what, found)
        for dies in (False, True):
            self._short_of_room(before, dies=dies)
        for at, kind in enumerate(steps):
            for how in FAILING if self.thorough else FAILING[1:]:
                self._failing(before, at, how, kind)
            for how in DYING if self.thorough else ():
                if (at, how) in left:
                    self._dying(before, at, how, left[at, how])

    def _looked(self, before):
        """Steps of a good run, and what one that dies would leave, by (step, how)."""
        reader, writer = os.pipe()

        def work():
            left = {}

            def look(at, how):
                found = snapshot(".")
                unsafe = faults.unsafe()
                if how != "power" or unsafe:
                    left[at, how] = _lost(found, unsafe) if how == "power" else found

            faults = Faults(look=look).install()
            self.write(NEW)
            steps, faults.look = list(faults.steps), None
            with open(writer, "wb") as stream:
                marshal.dump((steps, left), stream)

        with _Folder(self.states[before]), open(reader, "rb") as stream:
            child = os.fork()
            if not child:
                try:
                    work()
                finally:
                    os._exit(0)
            os.close(writer)
            steps, left = marshal.loads(stream.read())
            os.waitpid(child, 0)
        return steps, left

    def _old_or_new(self, what, before, found):
        """What can be seen is the old or the new file, each of them."""
        old, new, seen = self.states[before], self.states[NEW], _visible(found)
        for name in sorted({*old, *seen}):
            if name not in seen or seen[name] not in (old.get(name), new[name]):
                self.wrong.append(f"{what}: {name} is neither the old nor the new one")

    def _next(self, what, found):
        """The next run does its work and leaves nothing."""
        key = _without_tokens(repr(found if self.thorough else (_visible(found), sorted(found))))
        if key in self._known:  # it has begun with the same before
            return
        self._known.add(key)
        self.runs += 1
        with _Folder(found):
            code, said = forked(lambda: self.write(NEW))
            if code != FINE:
                self.wrong.append(f"{what}: the next run ended with {code}: {said}")
            elif snapshot(".") != self.states[NEW]:
                self.wrong.append(f"{what}: after the next run there are {sorted(snapshot('.'))}, or they differ")

    def _faulty(self, before, at, how):
        def work():
            Faults(at, how).install()
            self.write(NEW)

        self.runs += 1
        with _Folder(self.states[before]):
            code, said = forked(work)
            return code, said, snapshot(".")

    def _short_of_room(self, before, *, dies):
        """The system takes half of the largest file and no more: what is not written by Python is stopped as well."""
        sizes = [len(content) for content in _files(self.states[NEW])]

        def work():
            if dies:
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) // 2, most))
            try:
                self.write(NEW)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        self.runs += 1
        with _Folder(self.states[before]):
            code, said = forked(work)
            found = snapshot(".")
        what = f"a file that {'kills' if dies else 'is refused'} when it is half there, before {before}"
        if code != (-signal.SIGXFSZ if dies else REFUSED):
            self.wrong.append(f"{what}: it ended with {code}: {said}")
        if not dies and len(_visible(found)) < len(found):
            self.wrong.append(f"{what}: it lived, and left {sorted(set(found) - set(_visible(found)))}")
        self._old_or_new(what, before, found)
        self._next(what, found)

    def _failing(self, before, at, how, kind):
        code, said, found = self._faulty(before, at, how)
        what = f"{how} at step {at} ({kind}), before {before}"
        if code not in (FINE, REFUSED):
            self.wrong.append(f"{what}: it ended with {code}: {said}")
        self._old_or_new(what, before, found)
        if code == FINE and _visible(found) != self.states[NEW]:
            self.wrong.append(f"{what}: it said that all is well, but not all is written")
        if len(_visible(found)) < len(found) and kind not in _LEAVES:
            self.wrong.append(f"{what}: it lived, and left {sorted(set(found) - set(_visible(found)))}")
        self._next(what, found)

    def _dying(self, before, at, how, expected):
        code, said, found = self._faulty(before, at, how)
        what = f"{how} at step {at}, before {before}"
        if code != DEAD:
            self.wrong.append(f"{what}: it ended with {code}: {said}")
        if _without_tokens(repr(found)) != _without_tokens(repr(expected)):
            self.wrong.append(f"{what}: a process that died left something else than was seen")


def _files(found):
    for content in found.values():
        yield from _files(content) if isinstance(content, dict) else [content]


def _visible(found):
    return {name: content for name, content in found.items() if not os.path.basename(name).startswith(".")}


def _lost(found, unsafe, above=""):
    """A snapshot without the content of some files."""
    return {
        name: _lost(content, unsafe, f"{above}{name}/")
        if isinstance(content, dict)
        else b""
        if above + name in unsafe
        else content
        for name, content in found.items()
    }


def _without_tokens(text):
    return re.sub("[0-9a-f]{24}", "token", text)


class _Folder:
    def __init__(self, files):
        self._files = files

    def __enter__(self):
        self._before, self._path = os.getcwd(), tempfile.mkdtemp()
        os.chdir(self._path)
        _put(self._files)

    def __exit__(self, *exception):
        os.chdir(self._before)
        shutil.rmtree(self._path)


def _put(files):
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            Path(name).mkdir()
            _put({f"{name}/{inner}": more for inner, more in content.items()})
        else:
            Path(name).write_bytes(content)


def checked(name, write):
    """All faults of one writer."""
    case = Case(write, thorough=name in THOROUGH, warm=name not in WITH_THREADS)
    for before in (None, OLD) if name in ANEW else (OLD,):
        case.check(before)
    return {"steps": case.kinds, "runs": case.runs, "wrong": case.wrong}


def main():
    answers, sys.stdout = sys.stdout, sys.stderr
    if os.access("/dev/shm", os.W_OK):
        tempfile.tempdir = "/dev/shm"  # where fsync need not wait; that it is called is what matters
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        writers = Writers(Path(folder))
        print(json.dumps(list(writers.of)), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(checked(line.strip(), writers.of[line.strip()])), file=answers, flush=True)


if __name__ == "__main__":
    main()
