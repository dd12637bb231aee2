"""Charts as geometry: where lines, marks and ticks go. The template draws them as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nhsvm.report._record import Reliability
from nhsvm.report._summary import number

WIDTH, HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 14, 48
_MARKS = 150  # marks on a line, at the most
_WIDE = 20.0  # largest / smallest from which an axis is logarithmic


@dataclass(frozen=True)
class Tick:
    """A place on an axis, and what is written there."""

    at: float
    text: str


@dataclass(frozen=True)
class Mark:
    """A point of a line; ``solid`` if it is exact."""

    x: float
    y: float
    solid: bool
    size: float
    title: str


@dataclass(frozen=True)
class Line:
    """A curve with its marks."""

    name: str
    css: str
    path: str
    marks: list[Mark]


@dataclass(frozen=True)
class Chart:
    """A picture with axes."""

    id: str
    title: str
    description: str
    x_label: str
    y_label: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    lines: list[Line]
    diagonal: str = ""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


class Axis:
    """Numbers to places, linear or logarithmic, with round ticks.

    Examples
    --------
    >>> [(tick.text, round(tick.at)) for tick in Axis([0.001, 1.0], 0, 300).ticks]
    [('0.001', 0), ('0.01', 100), ('0.1', 200), ('1', 300)]
    """

    def __init__(self, values: Sequence[float], start: float, end: float, log: bool | None = None) -> None:
        low, high = min(values), max(values)
        self.log = (low > 0 and high / low > _WIDE) if log is None else log
        if self.log:
            low, high = 10.0 ** math.floor(_log(low) + 1e-9), 10.0 ** math.ceil(_log(high) - 1e-9)
            high = high if high > low else 10 * low
            steps = range(round(_log(low)), round(_log(high)) + 1)
            numbers = [10.0**k for k in steps[:: max(1, math.ceil(len(steps) / 7))]]
        else:
            step = _round_step((high - low) or abs(high) or 1.0)
            low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
            high = high if high > low else low + step
            numbers = [low + k * step for k in range(round((high - low) / step) + 1)]
        self._low, self._high, self._start, self._end = low, high, start, end
        self.ticks = [Tick(round(self(value), 1), number(round(value, 12))) for value in numbers]

    def __call__(self, value: float) -> float:
        scale: Callable[[float], float] = _log if self.log else float
        low, high = scale(self._low), scale(self._high)
        return self._start + (scale(value) - low) / (high - low) * (self._end - self._start)


def _log(value: float) -> float:
    return math.log10(value)


def _round_step(span: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that divides a span into about five."""
    power = 10.0 ** math.floor(_log(span / 5))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= span / 5.0001)


def convergence(history: Sequence[dict[str, Any]]) -> list[Chart]:
    """The gap, and primal and dual, over seconds."""
    charts = []
    certified = "Filled marks are exact, open ones are estimates made during a pass."
    gap = _points(history, "gap")
    if gap:
        last = number(history[-1]["gap"], 3)
        kind = "" if history[-1].get("certified") else ", an estimate"
        said = f"The relative gap over seconds of training; it ends at {last}{kind}. {certified}"
        lines = [("gap", "a", gap)]
        charts.append(_chart("gap", "Gap between primal and dual", said, "(primal − dual) / primal", lines))
    both = [(name, css, _points(history, name)) for name, css in (("primal", "a"), ("dual", "b"))]
    both = [line for line in both if line[2]]
    if both:
        said = f"Primal and dual objective over seconds of training: the optimum lies between them. {certified}"
        charts.append(_chart("objective", "Primal and dual objective", said, "objective", both))
    return charts


Points = list[tuple[float, float, bool]]


def _points(history: Sequence[dict[str, Any]], name: str) -> Points:
    """(seconds, value, exact) where both are known, positive and worth a mark."""
    found = [
        (float(r["seconds"]), float(r[name]), bool(r.get("certified")))
        for r in history
        if r.get("seconds") is not None and r.get(name) is not None and r["seconds"] > 0 and r[name] > 0
    ]
    step = max(1, math.ceil(len(found) / _MARKS))
    return found[::-step][::-1]  # the last one is always there


def _chart(id: str, title: str, description: str, y_label: str, lines: list[tuple[str, str, Points]]) -> Chart:
    x = Axis([p[0] for _, _, points in lines for p in points], _LEFT, WIDTH - _RIGHT)
    y = Axis([p[1] for _, _, points in lines for p in points], HEIGHT - _BOTTOM, _TOP)
    drawn = []
    for name, css, points in lines:
        marks = [
            Mark(round(x(s), 1), round(y(v), 1), exact, 3.5, f"{name} {number(v)} after {number(s, 3)} s")
            for s, v, exact in points
        ]
        drawn.append(Line(name, css, _path(marks), marks))
    return Chart(id, title, description, "seconds", y_label, x.ticks, y.ticks, drawn)


def reliability(found: Reliability) -> Chart:
    """Observed share over mean probability, beside the diagonal."""
    x = Axis([0.0, 1.0], _LEFT, WIDTH - _RIGHT, log=False)
    y = Axis([0.0, 1.0], HEIGHT - _BOTTOM, _TOP, log=False)
    most = max(found.count)
    marks = [
        Mark(
            round(x(p), 1), round(y(q), 1), True, round(3 + 7 * math.sqrt(n / most), 1),
            f"probability {p:.2f}, observed {q:.2f}, {n:,} decisions",
        )
        for p, q, n in zip(found.confidence, found.observed, found.count, strict=True)
    ]  # fmt: skip
    return Chart(
        "reliability",
        "Reliability of probabilities",
        f"The share of decisions that are true over the probability the model gave them, in {len(marks)} bins. On the "
        f"diagonal, probabilities are what they say. The mean distance from it is {found.error:.3f}.",
        "probability given by the model",
        "share that is true",
        x.ticks,
        y.ticks,
        [Line("observed", "a", _path(marks), marks)],
        f"M{x(0):g},{y(0):g}L{x(1):g},{y(1):g}",
    )


def _path(marks: list[Mark]) -> str:
    return "M" + "L".join(f"{mark.x:g},{mark.y:g}" for mark in marks)
