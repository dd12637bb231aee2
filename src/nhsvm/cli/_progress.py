"""Progress of a fit: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
from typing import Any

from nhsvm.cli._output import note

_BETWEEN = 2.0  # seconds between two plain lines


class FitProgress:
    """The callback of an estimator; use it as a context.

    Parameters
    ----------
    tol : float
        The gap at which the fit ends. From the first gap to this one, its logarithm is the way to go.
    max_iter : int
    folds : int
        Further fits, on folds, of which there are no records.
    quiet : bool
        Say nothing.

    Examples
    --------
    >>> progress = FitProgress(tol=0.01, max_iter=100, folds=0, quiet=True)
    >>> with progress:
    ...     for gap in (1.0, 0.1, 0.01):
    ...         progress({"iteration": 1, "gap": gap, "seconds": 1.0, "certified": True})
    ...         print(round(progress.share, 1))
    0.0
    0.5
    1.0
    """

    def __init__(self, tol: float, max_iter: int, folds: int = 0, *, quiet: bool = False) -> None:
        self._tol, self._max_iter, self._folds, self._quiet = tol, max_iter, folds, quiet
        self._first: float | None = None
        self._last, self._bar, self._task = -math.inf, None, None  # type: float, Any, Any
        self.share = 0.0

    def __enter__(self) -> FitProgress:
        if not self._quiet and sys.stderr.isatty():
            self._bar = bar()
            self._task = self._bar.add_task("training", total=1.0, gap="")
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, record: dict[str, Any]) -> None:
        """Take in the record of a pass."""
        gap, done = float(record["gap"]), False
        if math.isfinite(gap):
            gap = min(max(gap, self._tol), 1.0)
            self._first = gap if self._first is None else self._first
            whole = math.log(self._first / self._tol) if self._first > self._tol else 0.0
            self.share = max(self.share, math.log(self._first / gap) / whole if whole else 1.0)
            done = gap <= self._tol and bool(record["certified"])
        self.share = max(self.share, record["iteration"] / self._max_iter)
        self._show(record, done)

    def _show(self, record: dict[str, Any], done: bool) -> None:
        about = "" if record["certified"] else "about "  # an estimate
        after = f"{self._folds} more fits on folds" if done and self._folds else "training"
        if self._bar is not None:
            text = f"pass {record['iteration']}, gap {about}{record['gap']:.1e}"
            self._bar.update(self._task, completed=self.share, gap=text, description=after)
        elif not self._quiet and (done or record["seconds"] - self._last >= _BETWEEN):
            self._last = record["seconds"]
            note(f"pass {record['iteration']}, {record['seconds']:.1f} s, gap {about}{record['gap']:.2e}")


class Busy:
    """What is being done and for how long, on a terminal; use it as a context.

    Once it is told how much has been done, there is a bar with the time left.

    Parameters
    ----------
    what : str
    quiet : bool
        Say nothing.
    """

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self._what, self._quiet = what, quiet
        self._bar, self._task, self._has_share = None, None, False  # type: Any, Any, bool

    def __enter__(self) -> Busy:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._what, total=None)
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, share: float | None = None) -> None:
        """Say something else from now on, and how much has been done."""
        if self._bar is None:
            return
        if share is None:
            self._bar.update(self._task, description=what)
            return
        if not self._has_share:
            self._has_share = True
            self._bar.stop()
            self._bar = bar()
            self._task = self._bar.add_task("", total=1.0, gap="")
            self._bar.start()
        self._bar.update(self._task, completed=share, gap=fitting(what, self._bar.console.width))


_BESIDE = 38  # columns of a bar's description, of the shortest bar, of the times and of the blanks between them


def fitting(text: str, width: int) -> str:
    """As much of a text as a terminal has room for beside a bar.

    Examples
    --------
    >>> fitting("3/6  weights=maxmin  C=10", 60)
    '3/6  weights=maxmin  …'
    """
    room = max(1, width - _BESIDE)
    return text if len(text) <= room else text[: room - 1] + "…"


def bar() -> Any:
    """A bar with a text, the time gone and the time left; a narrow terminal has a shorter bar."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column

    columns = [
        TextColumn("{task.description}"),
        BarColumn(table_column=Column(min_width=8)),
        TextColumn("{task.fields[gap]}", markup=False),
        TimeElapsedColumn(table_column=Column(min_width=7, no_wrap=True)),
        TextColumn("left", table_column=Column(min_width=4, no_wrap=True)),
        TimeRemainingColumn(table_column=Column(min_width=7, no_wrap=True)),
    ]
    return Progress(*columns, console=Console(stderr=True), transient=True)
