"""A search as a picture, for which matplotlib must be installed (``pip install 'nhsvm[plot]'``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nhsvm.model_selection.grid import show
from nhsvm.model_selection.result import DONE, UNPROVED
from nhsvm.plots import pyplot

if TYPE_CHECKING:
    from nhsvm.model_selection.result import Trial, Tuning

_LINES = 8  # with a colour and a name of their own; the others are grey
_MARKS = "osD^vP<>"


def plot_tuning(found: Tuning, ax: Any = None) -> Any:
    """The held-out score against C, a line a setting, the best marked.

    Parameters
    ----------
    found : Tuning
    ax : matplotlib axes, optional

    Returns
    -------
    axes

    Notes
    -----
    The settings with the best scores have colours and names, the others are grey. Open marks are fits that did not come
    to their end.
    """
    axes: Any = ax if ax is not None else pyplot().subplots(layout="constrained", figsize=(8, 5))[1]
    lines = _lines(found)
    named = lines[:_LINES]
    for name, trials in reversed(lines):
        C, scores = [trial.C for trial in trials], [trial.scores[found.scoring] for trial in trials]
        rank = next((k for k, line in enumerate(named) if line[0] == name), None)
        style = {"color": "0.8", "zorder": 1} if rank is None else {"color": f"C{rank}", "zorder": 3 - rank / _LINES}
        mark = "." if rank is None else _MARKS[rank]
        axes.plot(C, scores, "-", label=None if rank is None else name, marker=mark, markersize=5, **style)
        cut = [trial for trial in trials if trial.state not in (DONE, UNPROVED)]
        axes.plot(
            [t.C for t in cut], [t.scores[found.scoring] for t in cut], mark, mfc="white", mec=style["color"],
            zorder=style["zorder"],
        )  # fmt: skip
    best = found.best
    axes.plot(
        [best.C], [found.best_score], "*", markersize=17, color="black", markeredgecolor="white", zorder=5,
        label=f"best: {found.best_score:.4f} at C = {best.C:g}" + (" (edge of the grid)" if found.edge else ""),
    )  # fmt: skip
    axes.set(xscale="log", xlabel="C", ylabel=f"{found.scoring} on {found.n_held_out:,} held-out samples")
    axes.grid(alpha=0.3)
    _legend(axes, len(lines) - len(named))
    return axes


def _lines(found: Tuning) -> list[tuple[str, list[Trial]]]:
    """(name, fits along C) of every setting, that with the best score first."""
    lines: dict[str, list[Trial]] = {}
    for trial in found.records:
        name = ", ".join(f"{key}={show(value)}" for key, value in trial.shown.items()) or "as given"
        lines.setdefault(name, []).append(trial)

    def rank(line: tuple[str, list[Trial]]) -> tuple[bool, float]:
        return found.best not in line[1], -max(trial.scores[found.scoring] for trial in line[1])

    return sorted(lines.items(), key=rank)


def _legend(axes: Any, n_grey: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    handles, labels = handles[::-1], labels[::-1]  # drawn from the worst to the best, then the star
    title = f"and {n_grey} more in grey" if n_grey else None
    axes.legend(handles, labels, fontsize=8, title=title, title_fontsize=8)
