"""What a search has found: every fit, the best, a table, a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nhsvm.errors import NHSVMError
from nhsvm.model_selection.grid import Plan, show, show_setting
from nhsvm.plots import axes_of
from nhsvm.typing import Estimator, Frame, Options, Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DONE, OPEN, UNPROVED, CUT = "done", "gap above tol", "gap not proved", "out of time"
_BEYOND = {"smallest": "smaller", "largest": "larger"}
_LINES = 8  # of a picture with a colour and a name of their own; the others are grey
_MARKS = "osD^vP<>"


@dataclass(frozen=True)
class Trial:
    """One fit.

    Attributes
    ----------
    params : dict
        For ``set_params``, with C.
    shown : dict
        The same by the names of the grid, without C.
    C : float
    scores : dict of str to float
        Of the held-out samples; higher is better.
    seconds : float
        Of training alone.
    passes : int
        Over the training samples.
    gap : float
        Certified (primal − dual) / primal; infinite if ``certify=False`` left it out.
    n_train : int
        Samples learned from.
    state : {"done", "gap above tol", "gap not proved", "out of time"}
        How it ended: as it should, at ``max_iter``, at ``max_iter`` with ``certify=False``, or with the time budget.
    """

    params: Options
    shown: Options
    C: float
    scores: dict[str, float]
    seconds: float
    passes: int
    gap: float
    n_train: int
    state: str = DONE

    @property
    def lam(self) -> float:
        """The paper's λ = 1/(2C)."""
        return 1 / (2 * self.C)

    def line(self, scoring: str) -> str:
        """The fit in one line."""
        setting = "".join(f"{name}={show(value)}  " for name, value in self.shown.items())
        more = "" if self.state == DONE else f"  ({self.state})"
        return f"{setting}C={self.C:g}  {scoring} {self.scores[scoring]:.4f}  {self.seconds:.1f} s{more}"


@dataclass(frozen=True)
class Untried:
    """A fit that was not made, or not ended, and why."""

    shown: Options
    C: float
    reason: str


@dataclass(frozen=True)
class Tuning:
    """The result of :func:`nhsvm.model_selection.tune`.

    Attributes
    ----------
    scoring : str
        Name of the score that decides.
    best : Trial
    model : fitted estimator, or None
        With the best parameters, refitted on all training samples; None without ``refit``, or if interrupted.
    records : tuple of Trial
        Every fit, in the order of the grid.
    untried : tuple of Untried
        What the time budget, Ctrl-C or a score that had fallen left out.
    n_held_out : int
    interrupted : bool
    refit_seconds : float
    plan : Plan
        The settings of the grid, and under ``refused`` the combinations that the estimator refuses.
    """

    scoring: str
    best: Trial
    records: tuple[Trial, ...]
    untried: tuple[Untried, ...] = ()
    n_held_out: int = 0
    interrupted: bool = False
    model: Estimator = None
    refit_seconds: float = 0.0
    plan: Plan = field(default_factory=Plan, repr=False)

    @property
    def best_params(self) -> Options:
        """For ``set_params``."""
        return dict(self.best.params)

    @property
    def best_score(self) -> float:
        return self.best.scores[self.scoring]

    @property
    def edge(self) -> str | None:
        """Whether the best C is the "smallest" or "largest" of several: the optimum may be beyond. Else None."""
        tried = next((s.Cs for s in self.plan.settings if s.shown == self.best.shown), (self.best.C,))
        if len(tried) == 1 or self.best.C not in (tried[0], tried[-1]):
            return None
        return "smallest" if tried[0] == self.best.C else "largest"

    def to_frame(self) -> Frame:
        """All fits as a pandas DataFrame: a row each, with a column for every parameter of the grid and every score."""
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError as error:
            raise NHSVMError("to_frame needs pandas: pip install pandas; or use records") from error
        return pd.DataFrame(self.rows())

    def rows(self) -> list[Record]:
        """All fits as plain dicts of numbers and text, for tables and files."""
        return [
            {name: _plain(trial.shown.get(name)) for name in self.plan.names}
            | {"C": trial.C, "lambda": trial.lam}
            | trial.scores
            | {"seconds": trial.seconds, "passes": trial.passes, "gap": trial.gap, "n_train": trial.n_train}
            | {"state": trial.state, "best": trial is self.best}
            for trial in self.records
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """The held-out score against C, a line a setting, the best marked; returns the matplotlib axes.

        The settings with the best scores have colours and names, the others are grey. Open marks are fits that did not
        come to their end.
        """
        return _plot(self, axes_of(ax, figsize=(8, 5)))

    def __str__(self) -> str:
        return "\n".join([*_table(self), "", *_summary(self)])


def choose(records: Sequence[Trial], scoring: str) -> Trial:
    """The best score among the fits that came to their end; ties go to the smaller C, then to the earlier setting."""
    ended = [trial for trial in records if trial.state != CUT] or list(records)
    scored = [trial for trial in ended if trial.scores[scoring] == trial.scores[scoring]]
    if not scored:
        raise NHSVMError(f"{scoring!r} is not a number (NaN) for any of the {len(ended)} fits, so none is the best")
    return min(scored, key=lambda trial: (-trial.scores[scoring], trial.C))


def _plain(value: object) -> str | float | None:
    """As tables and files have it."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else show(value)


def _table(found: Tuning) -> list[str]:
    """Every fit in a row, the best with a star."""
    names = found.plan.names
    scores = list(found.best.scores)
    rows = [["", *names, "C", *scores, "seconds", "passes", "gap", ""]]
    for trial in found.records:
        settings = [show(trial.shown[name]) if name in trial.shown else "-" for name in names]
        numbers = [f"{trial.C:g}", *(f"{trial.scores[name]:.4f}" for name in scores), f"{trial.seconds:.2f}"]
        state = "" if trial.state == DONE else trial.state
        rows.append(
            ["*" if trial is found.best else "", *settings, *numbers, f"{trial.passes}", f"{trial.gap:.0e}", state]
        )
    left = 1 + len(names)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:{'<' if k < left else '>'}{widths[k]}}" for k, cell in enumerate(row)).rstrip()
        for row in rows
    ]


def _summary(found: Tuning) -> list[str]:
    """The best again, and what to be wary of."""
    best = found.best
    setting = "".join(f"{name}={show(value)}, " for name, value in best.shown.items())
    seconds = sum(trial.seconds for trial in found.records)
    refitted = "" if found.model is None else f", {found.refit_seconds:.1f} s for the refit"
    lines = [
        f"best: {setting}C={best.C:g} (λ={best.lam:g}): {found.scoring} {found.best_score:.4f} "
        f"on {found.n_held_out:,} samples that were not among the {best.n_train:,} learned from",
        f"{_fits(len(found.records))} in {seconds:.1f} s of training{refitted}",
    ]
    if found.edge is not None:
        lines.append(
            f"WARNING: the best C, {best.C:g}, is at the edge of the grid (the {found.edge}): "
            f"try {_BEYOND[found.edge]} values too"
        )
    if best.state not in (DONE, UNPROVED):  # the latter is what certify=False asks for
        lines.append(f"WARNING: the best fit did not end as it should ({best.state})")
    lines += [
        f"not tried to the end ({reason}): {_fits(n)}"
        for reason, n in Counter(one.reason for one in found.untried).items()
    ]
    for reason in dict.fromkeys(reason for _, reason in found.plan.refused):
        lines.append(f"left out ({reason}):")
        lines += [f"    {setting}" for setting, why in found.plan.refused if why == reason]
    if found.interrupted:
        lines.append("INTERRUPTED: this is what had been tried by then")
    return lines


def _fits(n: int) -> str:
    return f"{n} fit" + ("s" if n != 1 else "")


def _plot(found: Tuning, axes: Axes) -> Axes:
    lines = _lines(found)
    for rank, (name, trials) in reversed(list(enumerate(lines))):
        label, mark, colour, zorder = None, ".", "0.8", 1.0
        if rank < _LINES:
            label, mark, colour, zorder = name, _MARKS[rank], f"C{rank}", 3 - rank / _LINES
        C, scores = [trial.C for trial in trials], [trial.scores[found.scoring] for trial in trials]
        axes.plot(C, scores, "-", label=label, marker=mark, markersize=5, color=colour, zorder=zorder)
        cut = [(trial.C, trial.scores[found.scoring]) for trial in trials if trial.state not in (DONE, UNPROVED)]
        axes.plot(*zip(*cut, strict=True) if cut else ([], []), mark, mfc="white", mec=colour, zorder=zorder)
    best = found.best
    axes.plot(
        [best.C], [found.best_score], "*", markersize=17, color="black", markeredgecolor="white", zorder=5,
        label=f"best: {found.best_score:.4f} at C = {best.C:g}" + (" (edge of the grid)" if found.edge else ""),
    )  # fmt: skip
    axes.set(xscale="log", xlabel="C", ylabel=f"{found.scoring} on {found.n_held_out:,} held-out samples")
    axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()  # drawn from the worst to the best, then the star
    title = f"and {len(lines) - _LINES} more in grey" if len(lines) > _LINES else None
    axes.legend(handles[::-1], labels[::-1], fontsize=8, title=title, title_fontsize=8)
    return axes


def _lines(found: Tuning) -> list[tuple[str, list[Trial]]]:
    """(name, fits along C) of every setting, that with the best score first."""
    lines: dict[str, list[Trial]] = {}
    for trial in found.records:
        lines.setdefault(show_setting(trial.shown), []).append(trial)

    def rank(line: tuple[str, list[Trial]]) -> tuple[bool, float]:
        return found.best not in line[1], -max(trial.scores[found.scoring] for trial in line[1])

    return sorted(lines.items(), key=rank)
