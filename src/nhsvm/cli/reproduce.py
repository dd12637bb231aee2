"""``nhsvm reproduce``: the paper's tables and figures, each as a page of results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from nhsvm.cli._help import Command, Group
from nhsvm.cli._output import needs, note
from nhsvm.errors import DataError, OptionError

reproduce = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Make the paper's tables and figures again, as pages.\n\nExample: nhsvm reproduce norms --out docs",
)

Out = Annotated[Path, typer.Option(metavar="DIR", help="Pages go to DIR/results, pictures to DIR/images.")]
Seed = Annotated[int, typer.Option(help="Of the random numbers.")]
Stored = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", show_default=False, help="Write the page of these results; run nothing."),
]


def _check(out: Path, seed: int = 0) -> None:
    """Errors before any work."""
    if seed < 0:
        raise OptionError(f"--seed must be at least 0, not {seed}")
    needs("matplotlib", "plot", "nhsvm reproduce")
    from nhsvm.reproduce._page import check_out

    check_out(out)


def _check_stored(stored: Path | None) -> None:
    if stored is not None and not stored.is_file():
        raise DataError(f"--from {stored}: there is no such file")


def _check_repeats(repeats: int) -> None:
    if repeats < 2:
        raise OptionError(f"--repeats must be at least 2 for a standard deviation, not {repeats}")


def _teller() -> Callable[[int, int], None]:
    """Says how far a run is."""
    from time import perf_counter

    began = perf_counter()

    def tell(done: int, planned: int) -> None:
        spent = perf_counter() - began
        note(f"{done}/{planned} data sets, {spent:.0f} s, about {spent * (planned / done - 1):.0f} s left")

    return tell


def _say(files: list[Path]) -> None:
    for path in files:
        typer.echo(path)


@reproduce.command(cls=Command)
def synthetic(
    repeats: Annotated[int, typer.Option(help="Data sets of each kind.")] = 20,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes; the result is the same for any number.")] = 1,
    out: Out = Path("docs"),
    quick: Annotated[bool, typer.Option("--quick", help="Small data, to see that it works.")] = False,
    compare_sizes: Annotated[bool, typer.Option("--compare-sizes", help="Also other sizes of the data.")] = False,
    stored: Stored = None,
) -> None:
    """Table 3: flat SVM, HSVM, NHSVM and SSVM on the paper's two synthetic sets.

    Example: nhsvm reproduce synthetic --repeats 20 --jobs 2
    """
    _check(out, seed)
    _check_repeats(repeats)
    if jobs < 1:
        raise OptionError(f"--jobs must be at least 1, not {jobs}")
    _check_stored(stored)
    from nhsvm.reproduce import _synthetic_page
    from nhsvm.reproduce._page import read_results
    from nhsvm.reproduce.synthetic import Results, run

    if stored is not None:
        results = read_results(stored, Results.from_json)
    else:
        results = run(repeats, seed, jobs=jobs, quick=quick, compare_sizes=compare_sizes, progress=_teller())
    _say(_synthetic_page.write(results, out))


@reproduce.command(cls=Command)
def readings(
    repeats: Annotated[int, typer.Option(help="Data sets of each reading.")] = 3,
    seed: Seed = 0,
    out: Out = Path("docs"),
    quick: Annotated[bool, typer.Option("--quick", help="Small data, to see that it works.")] = False,
    stored: Stored = None,
) -> None:
    """Table 3, where the paper can be read otherwise: how data are drawn, SGD, Algorithm 1 as printed.

    Example: nhsvm reproduce readings --repeats 3
    """
    _check(out, seed)
    _check_repeats(repeats)
    _check_stored(stored)
    from nhsvm.reproduce import _readings_page
    from nhsvm.reproduce._page import read_results
    from nhsvm.reproduce.readings import Results, run

    if stored is not None:
        results = read_results(stored, Results.from_json)
    else:
        results = run(repeats, seed, quick=quick, progress=_teller())
    _say(_readings_page.write(results, out))


@reproduce.command(cls=Command)
def benchmarks(
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", show_default=False, help="Folder with a folder for every set.")
    ] = None,
    sets: Annotated[
        str | None, typer.Option(metavar="A,B", show_default=False, help="Which sets; by default all that are there.")
    ] = None,
    seed: Seed = 0,
    out: Out = Path("docs"),
    stored: Stored = None,
) -> None:
    """Table 4: flat SVM, HSVM, NHSVM and SSVM on real sets, and on the paper's own where their files are.

    Sets that results/benchmarks.json below --out has are not run again.

    Example: nhsvm reproduce benchmarks --data data --sets clinc150,reuters21578
    """
    _check(out, seed)
    if (data is None) == (stored is None):
        raise OptionError("give --data DIR to run, or --from FILE to write the page of stored results")
    _check_stored(stored)
    from time import perf_counter

    from nhsvm.reproduce import _benchmarks_page as page
    from nhsvm.reproduce._page import read_results
    from nhsvm.reproduce.benchmarks import Results, run

    if data is None:
        assert stored is not None
        _say(page.write(read_results(stored, Results.from_json), out))
        return
    page.stored(out)  # an error in it comes before any work
    began = perf_counter()
    names = None if sets is None else [name.strip() for name in sets.split(",")]

    def tell(text: str) -> None:
        note(f"{perf_counter() - began:.0f} s {text}")

    found = run(data, names, seed, done=lambda: page.stored(out), note=tell)
    files = []
    for name, result in found:
        files = page.write(page.stored(out).with_set(name, result), out)  # another run may have added sets
    _say(files or page.write(page.stored(out), out))


@reproduce.command(cls=Command)
def norms(seed: Seed = 0, out: Out = Path("docs")) -> None:
    """Table 1: the norms of weight matrices, computed, beside their closed forms.

    Example: nhsvm reproduce norms
    """
    _check(out, seed)
    from nhsvm.reproduce.norms import write

    _say(write(out, seed))


@reproduce.command(cls=Command)
def invariance(
    seed: Seed = 0,
    out: Out = Path("docs"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points of the curves.")] = False,
) -> None:
    """Theorem 1 and Figure 1: what copies of nodes do to HSVM and to NHSVM.

    Example: nhsvm reproduce invariance
    """
    _check(out, seed)
    from nhsvm.reproduce.invariance import COPIES, RHOS, write

    copies, rhos = (COPIES[:2], RHOS[2:4]) if quick else (COPIES, RHOS)
    _say(write(out, seed, copies=copies, rhos=rhos, quick=quick))


@reproduce.command(cls=Command)
def weights(out: Out = Path("docs")) -> None:
    """What each scheme of weights does to example hierarchies.

    Example: nhsvm reproduce weights
    """
    _check(out)
    from nhsvm.reproduce.weights import write

    _say(write(out))
