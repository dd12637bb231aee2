"""The only importer of numba: how every kernel of the library is compiled, and where machine code is kept.

A kernel is a plain function of arrays and scalars. It is compiled when first called, kept on disk for later processes,
and releases the interpreter lock, so that threads run it side by side. What is kept holds as long as no file changes
that the kernel's own file imports, directly or not, so kernels may use functions and tuples of other files.

numba would keep it beside the source or below the home of the user, fail while modules are imported where neither can
be written to, and run whatever it finds there. Here nothing is looked at before a kernel is called, a place that cannot
be written to may still be read from, as in an image that somebody else has made, and where nothing can be kept kernels
are compiled in memory, with one :class:`~nhsvm.errors.CacheWarning`. Machine code is run only from files that no other
user can write to. Of several processes that need the same code one compiles it, and the others wait for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import pickle
import re
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import ir
from numba import types
from numba.core import caching, compiler
from numba.core.serialize import dumps
from numba.extending import intrinsic, overload
from numba.misc.appdirs import AppDirs

from nhsvm._atomic import new_file
from nhsvm.compilation import COMPILATIONS
from nhsvm.errors import CacheWarning

if sys.platform != "win32":
    import fcntl

_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# numba would put two more functions around a part, for other callers than kernels, and it is inlined into both of them
_PART = _OPTIONS | {"forceinline": True, "no_cpython_wrapper": True}
_AppDirs: Any = AppDirs  # what numba has no types of
_CompileResult: Any = compiler.CompileResult
_dumps: Any = dumps
_overload: Any = overload
_NamedTuple: Any = types.BaseNamedTuple
_index_key: Any = caching.FunctionCache._index_key
_HERE = Path(__file__)
_PACKAGE = _HERE.parent
_IMPORT = re.compile(r"^(?:from|import) (nhsvm[\w.]*)(?: import ([^#\n(]+|\([^)]*\)))?", re.MULTILINE)
_PATIENCE, _LOOK = 120.0, 0.05
"""Seconds to wait at most for another process that compiles, and between two looks at what it has made."""
_DIGEST = hashlib.sha256().digest_size


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function``; sums may be reordered once, at compile time, so results are the same in every call."""
    compiled: Any = numba.njit(**_OPTIONS)(function)
    compiled._cache = _Kept(function)  # as njit(cache=True) does with its own
    return compiled  # type: ignore[no-any-return]


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function for kernels, to become a part of them.

    Handing over many arrays takes longer than a short step; and a kernel that calls another kernel is not the same
    machine code, nor gives the same last bits, in the process that compiled both and in those that find them on disk.
    Called from Python, it is the plain function.
    """
    compiled: Any = numba.njit(**_PART)(function)
    template = compiled.get_call_template

    def template_of_any_number(arguments: Any, named: Any) -> Any:
        """While types are inferred a variable may still be a constant: that is no reason to compile twice."""
        return template([types.unliteral(kind) for kind in arguments], named)  # type: ignore[no-untyped-call]

    compiled.get_call_template = template_of_any_number
    compiled._insert = lambda *overload: None  # there is nothing that Python could call,
    compiled._compile_for_args = lambda *arguments, **named: function  # so it never looks for it
    return compiled  # type: ignore[no-any-return]


def done_by(declared: Callable[..., Any], kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say how kernels carry out ``declared``, a function without a body, if its first argument is a ``kind``.

    A kind is a named tuple. Which function it is, is settled when a kernel is compiled, and it becomes a part of it.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def choose(block: Any, *rest: Any) -> Any:
            is_kind = isinstance(block, _NamedTuple) and block.instance_class is kind
            return function if is_kind else None

        _overload(declared, jit_options=_PART, strict=False)(choose)
        return function

    return register


# -- machine code on disk ---------------------------------------------------------------------------------------------


class _Kept(caching.FunctionCache):
    """Machine code of one kernel, a file for each types of its arguments.

    A file begins with a hash of all that the code depends on, and one of what follows. So what is old, of another
    processor, cut short, or just being written by another process is never taken for what is asked for. numba's own
    index of such files can end with the code of one signature under the name of another, if two processes compile at
    the same time.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func = function
        self._module = inspect.getfile(function)
        self._name = f"{Path(self._module).stem}.{function.__qualname__}-{function.__code__.co_firstlineno}"
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(next(_places(self._module), ""))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code for arguments of these types, or None."""
        target_context.refresh()
        name, wanted = self._file(sig, target_context.codegen())
        found = self._found(name, wanted)
        if found is None:
            COMPILATIONS.begin((self._module, name))
            found = self._after_others(name, wanted)
            if found is not None:
                COMPILATIONS.end((self._module, name), compiled=False)
        return None if found is None else _CompileResult._rebuild(target_context, *pickle.loads(found))

    def _found(self, name: str, wanted: bytes) -> bytes | None:
        for place in _places(self._module):
            content = _content(place / name, wanted)
            if content is not None:
                COMPILATIONS.files[place / name] = 2 * _DIGEST + len(content)
                return content
        return None

    def _after_others(self, name: str, wanted: bytes) -> bytes | None:
        """What another process is compiling, once it is there; None, with a lock, if it is this one's turn."""
        # once more after an interrupt or an error, it still is
        lock = None if (self._module, name) in _turns else _opened_lock(self._module, name)
        if lock is None:
            return None
        end = time.monotonic() + _PATIENCE
        mine, found = _taken(lock), self._found(name, wanted)
        while not mine and found is None and time.monotonic() < end:
            time.sleep(_LOOK)
            mine, found = _taken(lock), self._found(name, wanted)
        if mine and found is None:
            _turns[self._module, name] = lock
        else:
            os.close(lock)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code, in the first place where it can be kept."""
        try:
            self._save(sig, data)
        finally:
            name, _ = self._file(sig, data.codegen)
            COMPILATIONS.end((self._module, name), compiled=True)
            lock = _turns.pop((self._module, name), None)
            if lock is not None:
                for place in _places(self._module):
                    with contextlib.suppress(OSError):
                        (place / f"{name}.lock").unlink()
                os.close(lock)

    def _save(self, sig: Any, data: Any) -> None:
        if data.library.has_dynamic_globals:  # addresses, which are others in the next process
            return
        name, digest = self._file(sig, data.codegen)
        content = _dumps(data._reduce())
        problem = f"{self._module} is not a file"
        for place in _places(self._module):
            try:
                place.mkdir(mode=0o755, parents=True, exist_ok=True)
                if not _is_trusted(place):
                    problem = f"other users can write to {place}"
                    continue
                with new_file(place / name, mode=0o644) as file:
                    file.write(digest + hashlib.sha256(content).digest() + content)
            except OSError as error:
                problem = f"{place}: {error.strerror or error}"
            else:
                COMPILATIONS.files[place / name] = 2 * _DIGEST + len(content)
                return
        _say_once(problem)

    def flush(self) -> None:
        """Nothing: what is old is never taken for what is asked for."""

    def _file(self, sig: Any, codegen: Any) -> tuple[str, bytes]:
        """Name of the file for arguments of some types, and the hash of all that its content depends on."""
        # types, processor, byte code; and whether the bounds of arrays are checked, as NUMBA_BOUNDSCHECK asks for
        key = repr((_index_key(self, sig, codegen), getattr(numba.config, "BOUNDSCHECK", None)))
        short = hashlib.sha256(key.encode()).hexdigest()[:16]
        python = f"py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
        versions = f"{numba.__version__} {llvmlite.__version__} {sys.version}"
        sources = _sources(frozenset([Path(self._module), *_named_tuples(sig)]))
        digest = hashlib.sha256("\0".join((self._name, key, versions, sources)).encode()).digest()
        return f"{self._name}.{python}.{short}.nbc".replace("<", "").replace(">", ""), digest


@cache
def _sources(files: frozenset[Path]) -> str:
    """A hash of all that machine code made of these files depends on: themselves, and what they import of the package.

    Steps that are registered by :func:`done_by` import the function that they carry out, not the other way round, and
    count with it.
    """
    found: set[Path] = set()
    new = {_HERE, *(path for path in files if path.is_file())}  # of one in an archive nothing is kept
    while new:
        found |= new
        new = {imported for path in new for imported in _imports(path)} - found
        new = new or {path for path, declared in _steps() if path not in found and declared & found}
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def _imports(path: Path) -> frozenset[Path]:
    """The files of the package that a file imports."""
    return frozenset(file for files in _imported(path).values() for file in files)


def _imported(path: Path) -> dict[str, list[Path]]:
    """For every name that a file imports from the package, the files that it may mean."""
    found = {}
    for module, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        place = _PACKAGE.joinpath(*module.split(".")[1:])
        for name in re.findall(r"\w+", names) or [module]:
            files = (each for at in (place, place / name) for each in (at.with_suffix(".py"), at / "__init__.py"))
            found[name] = [file for file in files if file.is_file()]
    return found


@cache
def _steps() -> list[tuple[Path, frozenset[Path]]]:
    """The files that register functions by :func:`done_by`, each with the files that declare what these carry out."""
    found = []
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path != _HERE and (names := re.findall(r"@done_by\((\w+)", path.read_text(encoding="utf-8"))):
            files = (file for name in names for file in _imported(path).get(name, [path]))
            found.append((path, frozenset(files)))
    return found


def _named_tuples(kind: Any) -> Iterator[Path]:
    """Files of the named tuples among types of arguments, also of those inside others."""
    if isinstance(kind, _NamedTuple):
        yield Path(inspect.getfile(kind.instance_class))
    if isinstance(kind, Iterable):
        for part in kind:
            yield from _named_tuples(part)


def _places(module: str) -> Iterator[Path]:
    """Folders that may have machine code of a module, the best first."""
    file = Path(os.path.realpath(module))
    if not file.is_file():  # in an archive, say: its changes could not be told
        return
    of_package = f"nhsvm_{hashlib.sha256(os.fsencode(file.parent)).hexdigest()[:32]}"
    given = getattr(numba.config, "CACHE_DIR", "")
    if given:
        yield Path(given).absolute() / of_package
        return
    yield file.parent / "__pycache__"
    home = Path(_AppDirs(appname="numba", appauthor=False).user_cache_dir)
    if home.is_absolute():  # else it begins with ~, of a user without a home
        yield home / of_package


def _opened_lock(module: str, name: str) -> int | None:
    """A file that one process at a time can lock, in the first place where code of a module can be kept."""
    if sys.platform == "win32":  # every process compiles for itself
        return None
    for place in _places(module):
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
            if _is_trusted(place):
                return os.open(place / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    return None


def _taken(lock: int) -> bool:
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: nobody waits
        return True
    return True


def _content(path: Path, wanted: bytes) -> bytes | None:
    """What a file has behind its hashes; None if they are not these, or others can write to it."""
    try:
        if not _is_trusted(path.parent):
            return None
        with path.open("rb") as file:
            if not _is_trusted(path, os.fstat(file.fileno())):
                return None
            raw = file.read()
    except OSError:  # not there, as a rule
        return None
    digest, checksum, content = raw[:_DIGEST], raw[_DIGEST : 2 * _DIGEST], raw[2 * _DIGEST :]
    return content if digest == wanted and checksum == hashlib.sha256(content).digest() else None


def _is_trusted(path: Path, status: os.stat_result | None = None) -> bool:
    """Whether only this user, the owner of the package and the administrator can write to a file or a folder.

    Of folders of the package: nobody can who could not change its sources as well.
    """
    if sys.platform == "win32":  # the home of a user is their own there
        return True
    status = os.stat(path) if status is None else status
    package = os.stat(_PACKAGE)
    open_to = stat.S_IMODE(status.st_mode) & 0o022
    if stat.S_ISDIR(status.st_mode) and path.name == "__pycache__":
        open_to &= ~stat.S_IMODE(os.stat(path.parent).st_mode)
    return status.st_uid in (0, os.geteuid(), package.st_uid) and not open_to


def _say_once(problem: str) -> None:
    """The warning that nothing is kept; once in a process."""
    if not _said:
        _said.append(problem)
        warnings.warn(
            f"compiled code cannot be kept on disk ({problem}), so that every process compiles it anew; set "
            "NUMBA_CACHE_DIR to a folder that you can write to, and others cannot",
            CacheWarning,
            stacklevel=2,
        )


_said: list[str] = []
_turns: dict[tuple[str, str], int] = {}
"""Locks of files of machine code that this process is about to make, by module and name."""


@intrinsic
def widened(typing_context: Any, weight: Any) -> Any:
    """A stored weight as a float to compute with: uint16 are the bits of a float16, int8 a number, floats themselves.

    The bits of a half, moved to where a float has them, are the same number but for its exponent, which is 112 too
    small. Infinity and NaN are not looked for.
    """
    if weight not in (types.uint16, types.int8):
        return weight(weight), lambda context, builder, signature, arguments: arguments[0]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        single, word = ir.FloatType(), ir.IntType(32)
        if weight is types.int8:
            return builder.sitofp(arguments[0], single)
        bits = builder.zext(arguments[0], word)
        sign = builder.shl(builder.and_(bits, word(0x8000)), word(16))
        size = builder.shl(builder.and_(bits, word(0x7FFF)), word(13))
        return builder.fmul(builder.bitcast(builder.or_(sign, size), single), single(2.0**112))

    return types.float32(weight), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, position: Any) -> Any:
    """Ask for ``array[position]`` (one-dimensional) to be brought into the cache, and do not wait for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(struct.data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        signature_ = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], signature_)
        # 1: to be written, 3: keep it as near as possible, 1: data, not instructions
        builder.call(function, [address, ir.Constant(number, 1), ir.Constant(number, 3), ir.Constant(number, 1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
