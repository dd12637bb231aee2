"""A search as plain text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nhsvm.model_selection.grid import show
from nhsvm.model_selection.result import DONE, UNPROVED

if TYPE_CHECKING:
    from nhsvm.model_selection.result import Tuning

_BEYOND = {"smallest": "smaller", "largest": "larger"}


def table(found: Tuning) -> str:
    """Every fit in a row, the best with a star; then the best again, and what to be wary of."""
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
    lines = [
        "  ".join(f"{cell:{'<' if k < left else '>'}{widths[k]}}" for k, cell in enumerate(row)).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, "", *_summary(found)])


def _summary(found: Tuning) -> list[str]:
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
