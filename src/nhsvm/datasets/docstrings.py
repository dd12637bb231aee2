"""A real text set that is always at hand: the docstrings of numpy, scipy and scikit-learn."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import pkgutil
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from nhsvm.datasets._dataset import Dataset
from nhsvm.hierarchy import Hierarchy

_PACKAGES = ("numpy", "scipy", "sklearn")
_LEFT_OUT = ("tests", "conftest", "setup", "mypy_plugin", "__main__")
_VARYING = re.compile(r"# may vary|argument\(s\) ``\{")
_LEAST = 5  # words of a text
_MEMBERS = (property, classmethod, staticmethod)


def load_docstrings() -> Dataset:
    """Docstrings of the installed numpy, scipy and scikit-learn, labelled by the public module they are found in.

    About 7,000 different texts in about 200 modules, as a tree: ``"scipy.sparse.linalg"`` is below ``"scipy.sparse"``.
    Classes are long-tailed, and inner modules are labels as well. What it has exactly depends on the versions that
    are installed. The first call takes some seconds, since it imports all modules but tests; later ones are quick.

    Returns
    -------
    Dataset
        With texts, in an order that does not change.

    Notes
    -----
    What a private module has, ``scipy.optimize._zeros_py``, is labelled by the public one above it. The same text in
    several modules counts once, in the public module with the shortest path: that is where a user finds it. Digits all
    become 0, since scipy puts fresh random numbers into the docstrings of its distributions. Texts of fewer than five
    words are left out.

    Examples
    --------
    >>> data = load_docstrings()
    >>> data.hierarchy.roots
    ('numpy', 'scipy', 'sklearn')
    >>> "scipy.sparse.linalg" in data.y
    True
    """
    pairs, hierarchy = _collected()
    y = np.empty(len(pairs), dtype=object)
    y[:] = [module for _, module in pairs]
    return Dataset(y, hierarchy, texts=[text for text, _ in pairs])


@lru_cache(1)
def _collected() -> tuple[tuple[tuple[str, str], ...], Hierarchy]:
    """Texts with their modules, and the tree of the modules."""
    module_of: dict[str, str] = {}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # old names that a package still has
        for package in _PACKAGES:
            modules = dict(_modules(package))
            for name in sorted(modules, key=lambda name: (name != _public(name), name.count("."), name)):
                for text in map(_cleaned, _docstrings(modules[name], package)):
                    if len(text.split()) >= _LEAST:
                        module_of.setdefault(text, _public(name))
    pairs = tuple(sorted(module_of.items()))  # some modules list names in an order that changes from run to run
    paths = [module.split(".") for module in sorted({module for _, module in pairs})]
    steps = [[".".join(path[: k + 1]) for k in range(len(path))] for path in paths]
    return pairs, Hierarchy.from_paths(steps)


def _cleaned(text: str) -> str:
    """A docstring without what is different every time it is made."""
    return re.sub(r"\d+", "0", "\n".join(line for line in text.strip().splitlines() if not _VARYING.search(line)))


def _public(name: str) -> str:
    """The part of a module's path before anything private."""
    return name.partition("._")[0]


def _modules(package: str) -> Iterator[tuple[str, ModuleType]]:
    """All public modules, and the private ones of public packages below the first; nothing that tests need."""
    root = importlib.import_module(package)
    yield package, root
    stack = [(package, root)]
    while stack:
        above, parent = stack.pop()
        for found in pkgutil.iter_modules(parent.__path__, above + "."):
            last = found.name.rpartition(".")[2]
            if last in _LEFT_OUT or (last.startswith("_") and (found.ispkg or parent is root or "test" in last)):
                continue
            try:
                module = importlib.import_module(found.name)
            except (Exception, SystemExit):  # noqa: BLE001 - something optional that is not installed, or a script
                continue
            yield found.name, module
            if found.ispkg:
                stack.append((found.name, module))


def _docstrings(module: ModuleType, package: str) -> Iterator[str]:
    """Docstrings of a module and of the functions and classes it offers, each class followed by its members."""
    yield module.__doc__ or ""
    listed = set(getattr(module, "__all__", ()))
    for name in sorted(listed | vars(module).keys()):
        thing = inspect.getattr_static(module, name, None)
        if name.startswith("_") or not callable(thing):
            continue
        if name in listed or _is_of(thing, package):  # not what it imports from elsewhere for its own use
            yield _own(thing)
            if inspect.isclass(thing):
                yield from _members(thing, package)


def _members(thing: type, package: str) -> Iterator[str]:
    """Docstrings of methods and properties, also of those inherited from classes of the same package."""
    for base in thing.__mro__:
        if _is_of(base, package):
            for name, member in sorted(vars(base).items()):
                if not name.startswith("_") and (callable(member) or isinstance(member, _MEMBERS)):
                    yield _own(member)


def _is_of(thing: Any, package: str) -> bool:
    return str(getattr(thing, "__module__", "")).partition(".")[0] == package


def _own(thing: Any) -> str:
    text = getattr(thing, "__doc__", None)
    return text if isinstance(text, str) else ""
