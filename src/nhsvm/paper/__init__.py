"""What only the paper's tables need: its norms, its class attributes, and its tables and figures as experiments.

Light to import, since the command line reads :data:`EXPERIMENTS` for its help: a name is loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nhsvm.errors import OptionError

if TYPE_CHECKING:
    from nhsvm.paper.attributes import class_attributes, label_kernel, label_penalty
    from nhsvm.paper.norms import (
        NORMS,
        Factorisation,
        NodeFactorisation,
        NodePenalty,
        Norm,
        frobenius_norm,
        max_norm,
        node_penalty,
        shared_norm,
        structured_shared_norm,
        trace_norm,
    )

__all__ = [
    "EXPERIMENTS",
    "NORMS",
    "Factorisation",
    "NodeFactorisation",
    "NodePenalty",
    "Norm",
    "Option",
    "Spec",
    "class_attributes",
    "frobenius_norm",
    "label_kernel",
    "label_penalty",
    "max_norm",
    "node_penalty",
    "reproduce",
    "shared_norm",
    "structured_shared_norm",
    "trace_norm",
]

Value = int | str | Path | None
Note = Callable[[str], None]


class Option(NamedTuple):
    """An option of an experiment; the command line may have another name for it, ``flag``."""

    name: str
    kind: type  # int, bool, str or Path; None is a value as well if it is the default
    default: Value
    help: str
    least: int | None = None
    flag: str = ""
    metavar: str | None = None

    def check(self, value: Value, name: str = "") -> None:
        """An error that has the name of the option, or another one, if a number is too small."""
        if self.least is not None and isinstance(value, int) and value < self.least:
            raise OptionError(f"{name or self.name} must be at least {self.least}, not {value}")


class Spec(NamedTuple):
    """A table or figure of the paper, which a function makes: of a folder, a note and the options, to files written."""

    name: str
    home: str  # module:function
    summary: str
    options: tuple[Option, ...] = ()
    example: str = ""  # options as somebody would type them


_SEED = Option("seed", int, 0, "Of the random numbers.", least=0)
_QUICK = Option("quick", bool, False, "Small data, to see that it works.")
_STORED = Option("stored", Path, None, "Write the page of these results; run nothing.", flag="from", metavar="FILE")

EXPERIMENTS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        Spec(
            "synthetic",
            "nhsvm.paper.synthetic:reproduce",
            "Table 3: flat SVM, HSVM, NHSVM and SSVM on the paper's two synthetic sets.",
            (
                Option("repeats", int, 20, "Data sets of each kind.", least=2),
                _SEED,
                Option("jobs", int, 1, "Processes; the result is the same for any number.", least=1),
                _QUICK,
                Option("compare_sizes", bool, False, "Also other sizes of the data."),
                _STORED,
            ),
            "--repeats 20 --jobs 2",
        ),
        Spec(
            "readings",
            "nhsvm.paper.readings:reproduce",
            "Table 3, where the paper can be read otherwise: how data are drawn, SGD, Algorithm 1 as printed.",
            (Option("repeats", int, 3, "Data sets of each reading.", least=2), _SEED, _QUICK, _STORED),
            "--repeats 3",
        ),
        Spec(
            "benchmarks",
            "nhsvm.paper.benchmarks_page:reproduce",
            "Table 4: flat SVM, HSVM, NHSVM and SSVM on real sets, and on the paper's own where their files are.\n\n"
            "Sets that results/benchmarks.json below --out has are not run again.",
            (
                Option("data", Path, None, "Folder with a folder for every set.", metavar="DIR"),
                Option("sets", str, None, "Which sets; by default all that are there.", metavar="A,B"),
                _SEED,
                _STORED,
            ),
            "--data data --sets clinc150,reuters21578",
        ),
        Spec(
            "norms",
            "nhsvm.paper.table_1:reproduce",
            "Table 1: the norms of weight matrices, computed, beside their closed forms.",
            (_SEED,),
        ),
        Spec(
            "invariance",
            "nhsvm.paper.weights:reproduce_invariance",
            "Theorem 1 and Figure 1: what copies of nodes do to HSVM and to NHSVM.",
            (_SEED, Option("quick", bool, False, "Fewer points of the curves.")),
        ),
        Spec(
            "weights",
            "nhsvm.paper.weights:reproduce_weights",
            "What each scheme of weights does to example hierarchies.",
        ),
    )
}
"""Tables and figures by name: the commands of ``nhsvm reproduce``."""


def reproduce(name: str, out: str | Path, note: Note = lambda _: None, **options: Value) -> list[Path]:
    """Make a table or figure of the paper again.

    Parameters
    ----------
    name : str
        One of :data:`EXPERIMENTS`.
    out : str or Path
        The page goes to ``out/results``, its picture to ``out/images``.
    note : callable, optional
        Told how far a long run is.
    **options
        Those of the experiment.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    OptionError
        If there is no such experiment or option, or a value is out of range.

    Examples
    --------
    >>> reproduce("norm", "docs")
    Traceback (most recent call last):
    nhsvm.errors.OptionError: no experiment 'norm': choose one of synthetic, readings, benchmarks, norms, ...
    """
    if name not in EXPERIMENTS:
        raise OptionError(f"no experiment {name!r}: choose one of {', '.join(EXPERIMENTS)}")
    known = {option.name: option for option in EXPERIMENTS[name].options}
    for given, value in options.items():
        if given not in known:
            raise OptionError(f"{name} has no option {given!r}: it has {', '.join(known) or 'none'}")
        known[given].check(value)
    module, function = EXPERIMENTS[name].home.split(":")
    made: list[Path] = getattr(import_module(module), function)(
        Path(out), note, **{option.name: option.default for option in known.values()} | options
    )
    return made


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = "attributes" if name.startswith(("class_", "label_")) else "norms"
        return getattr(import_module(f"nhsvm.paper.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
