"""What users choose is registered once: parts of a family by name, and options.

A part is registered in one line of its family's ``__init__``. That line, a :class:`Spec`, feeds the family's
dictionary, the checks of names and options, the choices and the help of the command line, the tables of the guide and
the contract tests. Nothing is imported before it is asked for, so that the command line knows all names without loading
NumPy.

An option is declared by an :class:`Option` beside its type: those of the estimators in :mod:`nhsvm.options`, those of
functions in a typed dict, from which :class:`Declared` makes signatures and documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, Signature, cleandoc, signature
from textwrap import fill, indent
from typing import Any, Generic, TypeVar, get_type_hints

from nhsvm.errors import OptionError


@dataclass(frozen=True)
class Spec:
    """One part of a family.

    Attributes
    ----------
    name : str
        What users write.
    cls : str
        ``"module.Name"`` of the class (or function) inside the family's package.
    summary : str
        What it is, in a line of Markdown: the guide's tables show it.
    options : tuple of str
        What can be given with the name.
    needs : tuple of str
        The options without a default. A part that needs some is not offered where there is only a name to give.
    """

    name: str
    cls: str
    summary: str
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def home(self) -> str:
        """The module inside the family's package."""
        return self.cls.rpartition(".")[0]

    @property
    def attribute(self) -> str:
        """The class's own name."""
        return self.cls.rpartition(".")[2]


Part = TypeVar("Part")
SpecType = TypeVar("SpecType", bound=Spec)


class Family(Mapping[str, Part], Generic[SpecType, Part]):
    """Name → class (or function), imported when it is asked for.

    Parameters
    ----------
    option : str
        What the choice is called in messages: ``"loss"`` in "loss must be one of ...".
    package : str
        Where the modules of the specs are.
    specs : sequence of Spec
    also : str
        What may be given instead of a name, for messages.

    Examples
    --------
    >>> losses = Family("loss", "nhsvm.losses", [Spec("hamming", "losses.Hamming", "nodes that differ")])
    >>> losses["hamming"]
    <class 'nhsvm.losses.losses.Hamming'>
    >>> losses.spec("haming")
    Traceback (most recent call last):
    nhsvm.errors.OptionError: loss must be one of ['hamming'], not 'haming'
    """

    def __init__(self, option: str, package: str, specs: list[SpecType], also: str = "") -> None:
        self.option, self.package, self.also = option, package, also
        self.specs = {spec.name: spec for spec in specs}

    def __getitem__(self, name: str) -> Part:
        spec = self.specs[name]
        part: Part = getattr(import_module(f"{self.package}.{spec.home}"), spec.attribute)
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs)

    def __len__(self) -> int:
        return len(self.specs)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.specs

    @property
    def choices(self) -> list[str]:
        """The names that need no option."""
        return [name for name, spec in self.specs.items() if not spec.needs]

    @property
    def homes(self) -> dict[str, str]:
        """Class name → module, for :func:`on_first_use`."""
        return {spec.attribute: spec.home for spec in self.specs.values()}

    def spec(self, name: object) -> SpecType:
        """The spec of that name, or an error that lists all names."""
        if not isinstance(name, str) or name not in self.specs:
            raise self.refusal(name)
        return self.specs[name]

    def refusal(self, given: object) -> OptionError:
        """The error for what is neither a name nor what ``also`` says."""
        return OptionError(f"{self.option} must be one of {list(self)}{self.also}, not {given!r}")

    def check_options(self, name: str, options: Mapping[str, object]) -> None:
        """Raise an OptionError that names the first option which that part does not have, or needs."""
        spec = self.spec(name)
        unknown = sorted(options.keys() - set(spec.options))
        if unknown:
            known = ", ".join(spec.options) or "none"
            raise OptionError(f"{self.option}={name!r} has no option {unknown[0]!r}; it has {known}")
        missing = [option for option in spec.needs if option not in options]
        if missing:
            raise OptionError(f"{self.option}={name!r} needs {missing[0]}=")


def on_first_use(package: str, homes: Callable[[], Mapping[str, str]]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package whose public names are imported when first used: name → module.

    ``homes`` is a function, so that a part registered later is found too.
    """

    def getattr_(name: str) -> object:
        home = homes().get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{home}"), name)

    return getattr_


# -- options -----------------------------------------------------------------------------------------------------------

Check = Callable[[str, object], None]


def _unchecked(name: str, value: object) -> None:
    """Checked where it is used: a scheme or a loss says itself what it takes."""


@dataclass(frozen=True)
class Flag:
    """How the command line offers an option.

    Attributes
    ----------
    help : str
    type : type
        What is read from the command line; a tuple of texts is a choice among these.
    names : tuple of str
        Other than that of the option.
    shown : str
        What is said to happen without it.
    panel, metavar : str
    name : str
        Of the option on the command line, if its flag has another.
    """

    help: str
    type: Any = str
    names: tuple[str, ...] = ()
    shown: str = ""
    panel: str = "Model"
    metavar: str | None = None
    name: str = ""


@dataclass(frozen=True)
class Option:
    """One option of the estimators.

    Attributes
    ----------
    default : object
    kind : str
        Its type, as the documentation says it.
    doc : str
    check : function of (name, value)
        Raises an OptionError.
    flag : Flag, optional
        None where the command line has no use for it, or its own way to say it.
    """

    default: Any
    kind: str
    doc: str
    check: Check = _unchecked
    flag: Flag | None = None


Function = TypeVar("Function", bound=Callable[..., object])


class Declared:
    """Options that functions take as ``**options``; it decorates these functions.

    Parameters
    ----------
    options : type
        A typed dict whose types are annotated with an :class:`Option` each.
    **others : Option
        In place of those declared there.
    """

    def __init__(self, options: type, **others: Option) -> None:
        hints = get_type_hints(options, include_extras=True)
        self.options: dict[str, Option] = {name: kind.__metadata__[0] for name, kind in hints.items()} | others

    def complete(self, function: str, given: Mapping[str, object]) -> Any:
        """What was given, checked, and defaults."""
        unknown = given.keys() - self.options.keys()
        if unknown:
            raise TypeError(f"{function}() got an unexpected keyword argument {min(unknown)!r}")
        for name, value in given.items():
            self.options[name].check(name, value)
        return {name: option.default for name, option in self.options.items()} | dict(given)

    def __call__(self, function: Function) -> Function:
        """Give a function the signature and, in place of ``{options}``, the documentation of all of them."""
        before = [p for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        named = [Parameter(name, Parameter.KEYWORD_ONLY, default=o.default) for name, o in self.options.items()]
        function.__signature__ = Signature([*before, *named])  # type: ignore[attr-defined]
        entries = (
            f"{name} : {option.kind}\n{indent(fill(option.doc, 112, break_on_hyphens=False), ' ' * 4)}"
            for name, option in self.options.items()
        )
        function.__doc__ = cleandoc(function.__doc__ or "").replace("{options}", "\n".join(entries))
        return function
