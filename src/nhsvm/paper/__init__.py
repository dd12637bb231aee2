"""What only the paper's tables need: its norms, its class attributes, and its tables and figures as experiments.

>>> from nhsvm.paper import shared_norm
>>> round(shared_norm([[3.0, 4.0], [3.0, 4.0]]), 5)
5.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nhsvm.errors import OptionError
from nhsvm.registry import Family, Spec, on_first_use

if TYPE_CHECKING:
    from nhsvm.paper.attributes import class_attributes, label_kernel, label_penalty
    from nhsvm.paper.norms import (
        Factorisation,
        NodeFactorisation,
        NodePenalty,
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


@dataclass(frozen=True)
class Norm(Spec):
    """A norm of one row a leaf; ``symbol`` as the paper writes it."""

    symbol: str = ""


NORMS: Family[Norm, Callable[..., float]] = Family(
    "norm",
    __name__,
    [
        Norm("shared", "norms.shared_norm", "Eq. 17: what rows share is charged once", ("tol",), symbol="‖U‖_s"),
        Norm(
            "structured shared", "norms.structured_shared_norm", "Eq. 16: the same along a hierarchy",
            ("hierarchy", "tol"), ("hierarchy",), "‖U‖_{s,G}",
        ),
        Norm("Frobenius", "norms.frobenius_norm", "Table 1: charges for every row by itself", symbol="‖U‖_F"),
        Norm("trace", "norms.trace_norm", "Theorem 2: charges for rank", symbol="‖U‖_*"),
        Norm("max", "norms.max_norm", "Theorem 2: the longest rows of both factors", ("tol",), symbol="‖U‖_max"),
    ],
)  # fmt: skip
"""Norms by name, in the order of Table 1, which has all but the last."""


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


@dataclass(frozen=True)
class Experiment(Spec):
    """A table or figure: a function of a folder, a note and its options, which gives the files it wrote.

    Attributes
    ----------
    takes : tuple of Option
        The options, by the names in ``options``.
    example : str
        Options as somebody would type them.
    """

    takes: tuple[Option, ...] = ()
    example: str = ""


def _experiment(name: str, function: str, summary: str, *takes: Option, example: str = "") -> Experiment:
    return Experiment(name, function, summary, tuple(option.name for option in takes), (), takes, example)


_SEED = Option("seed", int, 0, "Of the random numbers.", least=0)
_QUICK = Option("quick", bool, False, "Small data, to see that it works.")
_STORED = Option("stored", Path, None, "Write the page of these results; run nothing.", flag="from", metavar="FILE")

EXPERIMENTS: Family[Experiment, Callable[..., list[Path]]] = Family(
    "experiment",
    __name__,
    [
        _experiment(
            "synthetic", "synthetic.reproduce",
            "Table 3: flat SVM, HSVM, NHSVM and SSVM on the paper's two synthetic sets.",
            Option("repeats", int, 20, "Data sets of each kind.", least=2),
            _SEED,
            Option("jobs", int, 1, "Processes; the result is the same for any number.", least=1),
            _QUICK,
            Option("compare_sizes", bool, False, "Also other sizes of the data."),
            _STORED,
            example="--repeats 20 --jobs 2",
        ),
        _experiment(
            "readings", "readings.reproduce",
            "Table 3, where the paper can be read otherwise: how data are drawn, SGD, Algorithm 1 as printed.",
            Option("repeats", int, 3, "Data sets of each reading.", least=2), _SEED, _QUICK, _STORED,
            example="--repeats 3",
        ),
        _experiment(
            "benchmarks", "benchmarks_page.reproduce",
            "Table 4: flat SVM, HSVM, NHSVM and SSVM on real sets, and on the paper's own where their files are.\n\n"
            "Sets that results/benchmarks.json below --out has are not run again.",
            Option("data", Path, None, "Folder with a folder for every set.", metavar="DIR"),
            Option("sets", str, None, "Which sets; by default all that are there.", metavar="A,B"), _SEED, _STORED,
            example="--data data --sets clinc150,reuters21578",
        ),
        _experiment(
            "norms", "theory.reproduce_norms",
            "Table 1: the norms of weight matrices, computed, beside their closed forms.", _SEED,
        ),
        _experiment(
            "invariance", "theory.reproduce_invariance",
            "Theorem 1 and Figure 1: what copies of nodes do to HSVM and to NHSVM.",
            _SEED, _QUICK._replace(help="Fewer points of the curves."),
        ),
        _experiment(
            "weights", "theory.reproduce_weights", "What each scheme of weights does to example hierarchies."
        ),
    ],
)  # fmt: skip
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
    """
    takes = EXPERIMENTS.spec(name).takes
    EXPERIMENTS.check_options(name, options)
    given = {option.name: option.default for option in takes} | options
    for option in takes:
        option.check(given[option.name])
    return EXPERIMENTS[name](Path(out), note, **given)


_HOMES = dict.fromkeys(("class_attributes", "label_kernel", "label_penalty"), "attributes") | dict.fromkeys(
    ("Factorisation", "NodeFactorisation", "NodePenalty", "node_penalty"), "norms"
)
__getattr__ = on_first_use(__name__, lambda: _HOMES | NORMS.homes)


def __dir__() -> list[str]:
    return __all__
