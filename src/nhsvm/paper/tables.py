"""What the paper's tables share: models, paired tests, and pages whose files are the same bytes every time."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from textwrap import fill
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Self
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, stdtr

from nhsvm import __version__
from nhsvm._atomic import write_file
from nhsvm.errors import DataError, OptionError
from nhsvm.paper import Note
from nhsvm.typing import JSON, BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODELS = ("FlatSVM", "HSVM", "NHSVM", "SSVM")
PAIRS = (("NHSVM", "FlatSVM"), ("NHSVM", "HSVM"), ("HSVM", "FlatSVM"), ("SSVM", "FlatSVM"), ("SSVM", "NHSVM"))
LEVEL = 0.05
HELD_OUT = 0.2  # of the training samples
# what JSON that is something else ends with, on its way to numbers, lists and records
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
COLOURS = ("#4477aa", "#ee6677", "#228833", "#aa3377", "#ccbb44")
SMALL_DATA = "\n\n**Small data, to see that the command works: these numbers say nothing.**"


@contextmanager
def same_bits() -> Iterator[None]:
    """Fits that give the same bits anywhere, and may end early without a warning.

    The last bits of a product depend on the threads of BLAS.
    """
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), catch_warnings():
        simplefilter("ignore", ConvergenceWarning)
        yield


# -- comparisons on the same data --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """Of two models on the same data: mean, standard deviation, and p of a two-sided paired test."""

    mean: float
    deviation: float
    p: float

    @property
    def better(self) -> bool:
        """Whether the first is significantly better."""
        return self.mean > 0 and self.p < LEVEL

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {self.deviation:.2f} ({shown_p(self.p)})"


def shown_p(p: float) -> str:
    """A p-value as pages have it."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.4f}"


def paired(first: npt.ArrayLike, second: npt.ArrayLike) -> Difference:
    """The paired t-test: t = mean / (deviation / √n) with n − 1 degrees of freedom.

    Examples
    --------
    >>> print(paired([2.0, 3.0, 4.5], [1.0, 2.5, 3.0]))
    +1.00 ± 0.50 (p = 0.0742)
    """
    difference: FloatArray = np.subtract(first, second)
    n, mean, deviation = len(difference), float(difference.mean()), float(difference.std(ddof=1))
    if deviation == 0:
        return Difference(mean, 0.0, 1.0 if mean == 0 else 0.0)
    return Difference(mean, deviation, 2 * float(stdtr(n - 1, -abs(mean) / (deviation / np.sqrt(n)))))


def mcnemar(right: npt.ArrayLike, other: npt.ArrayLike) -> float:
    """The p-value of the exact McNemar test of two models' right answers to the same questions.

    How likely is it, if both were equally good, that the samples on which exactly one is right fall so unevenly? With b
    and c of these for one and the other, it is min(1, 2 P(B ≤ min(b, c))) for a binomial B of b + c throws of a coin.

    Examples
    --------
    >>> mcnemar([True, True, True, True, True, False], [False, False, False, False, False, False])
    0.0625
    >>> mcnemar([True, False], [True, False])
    1.0
    """
    one: BoolArray = np.asarray(right, dtype=bool)
    two: BoolArray = np.asarray(other, dtype=bool)
    better, worse = int((one & ~two).sum()), int((two & ~one).sum())
    return min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5))) if better + worse else 1.0


def mean_and_deviation(values: Sequence[float]) -> str:
    """As the paper's table has it."""
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.2f}"


def marks(model: str, better: Callable[[str], bool]) -> str:
    """† for better than FlatSVM and HSVM, ‡ for better than NHSVM; ``better`` says it of another model."""
    dagger = model in ("NHSVM", "SSVM") and better("FlatSVM") and better("HSVM")
    return (" †" if dagger else "") + (" ‡" if model == "SSVM" and better("NHSVM") else "")


def setting_in_words(params: Mapping[str, JSON]) -> str:
    """Parameters of a model as a table has them.

    Examples
    --------
    >>> setting_in_words({"weights": "power", "rho": 2.0, "directional": False, "margin": "normalized"})
    'power, ρ=2, Eq. 13'
    """
    from nhsvm.model_selection.grid import show

    names = {"weights": "", "loss": "", "rho": "ρ=", "total": "T="}
    equations = {"loss": "Eq. 10", "normalized": "Eq. 13"}
    parts = []
    for key, value in params.items():
        if key == "directional":
            parts += ["directional"] * bool(value)
        elif key == "margin":
            parts.append(equations[value])
        else:
            parts.append(f"{names[key]}{show(value[1] if key == 'total' else value)}")
    return ", ".join(parts) or "–"


# -- pages -------------------------------------------------------------------------------------------------------------


def versions() -> str:
    """Of what the numbers depend on."""
    parts = ("numpy", "scipy", "scikit-learn", "numba")
    return ", ".join([f"nhsvm {__version__}", f"Python {python_version()}", *(f"{p} {version(p)}" for p in parts)])


def made_by(command: str, seeds: str) -> str:
    """The opening lines of a page: the command, versions and seeds."""
    text = f"Made by this command, which rewrites the page and its picture. {versions()}. {seeds}"
    return f"    {command}\n\n{wrapped(text)}"


def wrapped(text: str) -> str:
    """A paragraph, or an entry of a list, in lines as long as those of other pages."""
    below = "  " if text.startswith("- ") else ""
    return fill(text, 120, subsequent_indent=below, break_on_hyphens=False, break_long_words=False)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """A Markdown table; the first ``left`` columns are aligned to the left, the others to the right.

    Examples
    --------
    >>> print(table(["norm", "value"], [["trace", "1.00"]]))
    | norm | value |
    |---|--:|
    | trace | 1.00 |
    """
    rule = "".join("|---" if k < left else "|--:" for k in range(len(header))) + "|"
    head, *body = ("| " + " | ".join(cells) + " |" for cells in (header, *rows))
    return "\n".join([head, rule, *body])


def figure(width: float, height: float) -> Figure:
    """A matplotlib figure of its own, without pyplot and its global state."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise OptionError("the pictures of reproduce need matplotlib: pip install 'nhsvm[plot]'") from error
    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def open_frame(ax: Axes) -> None:
    """Only the axes themselves, without lines above and to the right."""
    ax.spines[["top", "right"]].set_visible(False)


def check_out(out: Path) -> None:
    """An error if pages cannot be written below a folder; nothing is touched."""
    for folder in (out, out / "results", out / "images"):
        known = folder
        while not known.exists() and known != known.parent:
            known = known.parent
        if not known.is_dir():
            raise OptionError(f"--out {out}: {known} is no folder")
        if not os.access(known, os.W_OK | os.X_OK):
            raise OptionError(f"--out {out}: permission denied in {known}")


def write_page(out: Path, name: str, text: str, picture: Figure, data: str | None = None) -> list[Path]:
    """Write ``results/NAME.md``, ``images/NAME.png`` and, with data, ``results/NAME.json`` below ``out``."""
    check_out(out)
    stream = io.BytesIO()
    picture.savefig(stream, format="png", dpi=120, metadata={"Software": None})
    files = {out / "images" / f"{name}.png": stream.getvalue(), out / "results" / f"{name}.md": text.encode()}
    if data is not None:
        files[out / "results" / f"{name}.json"] = data.encode()
    for path, content in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, [content])
        except OSError as error:
            raise OptionError(f"{path} cannot be written: {error.strerror or error}") from error
    return sorted(files)


# -- stored results, and how far a run is ------------------------------------------------------------------------------


class Stored:
    """Results of an experiment, which a file keeps."""

    experiment: ClassVar[str]

    def plain(self) -> dict[str, JSON]:
        """All of it, as JSON has it."""
        raise NotImplementedError

    @classmethod
    def read(cls, plain: JSON) -> Self:
        """The opposite; may end with any error that ``from_json`` knows."""
        raise NotImplementedError

    def to_json(self) -> str:
        """All of it, for :meth:`from_json`."""
        return json.dumps(self.plain(), ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The opposite; DataError if it is no such file."""
        try:
            return cls.read(json.loads(text))
        except _UNREADABLE as error:
            raise DataError(f"this is no file of results of reproduce {cls.experiment}: {error}") from error

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """What a run has stored; a DataError, which names the file, if it is something else."""
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise DataError(f"{path}: there is no such file") from error
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not UTF-8 text: {error.reason}") from error
        except DataError as error:
            raise DataError(f"{path}: {error}") from error


@dataclass(frozen=True)
class Repeated(Stored):
    """Results of repeats with random numbers.

    Attributes
    ----------
    seed, repeats : int
    quick : bool
        Whether the data are small, to see that it works.
    """

    seed: int
    repeats: int
    quick: bool

    def head(self) -> dict[str, JSON]:
        """How they were made, as JSON has it."""
        return {"seed": self.seed, "repeats": self.repeats, "quick": self.quick}

    @staticmethod
    def read_head(plain: JSON) -> tuple[int, int, bool]:
        """The opposite."""
        return int(plain["seed"]), int(plain["repeats"]), bool(plain["quick"])

    def opening(self, seeds: str, more: str = "") -> str:
        """The opening lines of their page."""
        words = (" --quick" if self.quick else "") + more
        command = f"nhsvm reproduce {self.experiment} --repeats {self.repeats} --seed {self.seed}{words}"
        return made_by(command, seeds) + (SMALL_DATA if self.quick else "")


def counted(note: Note) -> Callable[[int, int], None]:
    """Notes how many data sets of how many are done, and the time that is left."""
    began = perf_counter()

    def tell(done: int, planned: int) -> None:
        spent = perf_counter() - began
        note(f"{done}/{planned} data sets, {spent:.0f} s, about {spent * (planned / done - 1):.0f} s left")

    return tell
