"""``write_report``: an evaluation as one HTML page that needs nothing else; its charts as places of lines and marks."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from nhsvm._atomic import write_file
from nhsvm.errors import OptionError
from nhsvm.report.measures import MEASURES, measure, number, percent, sentences
from nhsvm.report.record import Counts, Evaluation, Nodes, Reliability, plain, share
from nhsvm.typing import JSON, Array, Record

if TYPE_CHECKING:
    from jinja2 import Template

MAX_NODES = 20_000  # in the picture: what a browser reads in a moment
MAX_ROWS = 500  # of a table
_CARDS = {
    "single": ("accuracy", "hierarchical_f1", "f1_macro", "error_distance", "calibration_error"),
    "sets": ("example_jaccard", "hierarchical_f1", "f1_micro", "f1_macro", "auprc", "calibration_error"),
}

WIDTH, HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 14, 48
_MARKS = 150  # marks on a line, at the most
_WIDE = 20.0  # largest / smallest from which an axis is logarithmic


def write_report(evaluation: Evaluation, path: str | os.PathLike[str], title: str | None = None) -> None:
    """Write one self-contained HTML page: it opens without a network and prints well.

    The same evaluation gives the same bytes. An existing file is replaced when the new one is complete, and not before.
    Needs jinja2 (``pip install 'nhsvm[report]'``).

    Parameters
    ----------
    evaluation : Evaluation
        From :func:`nhsvm.report.evaluate`.
    path : path
    title : str, optional
        The heading; by default the model's name.

    Examples
    --------
    >>> from nhsvm import Hierarchy, NHSVM
    >>> from nhsvm.report import evaluate
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> X, y = [[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]], ["dog", "cat", "oak"]
    >>> folder = getfixture("tmp_path")
    >>> write_report(evaluate(NHSVM(h, C=10).fit(X, y), X, y), folder / "report.html", title="Pets and plants")
    >>> (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    write_file(path, [render(evaluation, title).encode("utf-8", "backslashreplace")])  # half a pair of surrogates, say


def render(evaluation: Evaluation, title: str | None = None) -> str:
    """The page as text."""
    if not isinstance(evaluation, Evaluation):
        raise OptionError(f"evaluation must come from nhsvm.report.evaluate, not be a {type(evaluation).__name__}")
    if title is not None and (not isinstance(title, str) or not title.strip()):
        raise OptionError(f"title must be some text, not {title!r}")
    style, script = _asset("report.css"), _asset("report.js")
    said = {name: measure(name, value) for name, value in evaluation.metrics.items()}
    page: str = _template().render(
        title=title or f"{evaluation.facts['model']}: evaluation",
        found=evaluation,
        summary=sentences(evaluation),
        cards=[(MEASURES[name], said[name]) for name in _CARDS[evaluation.kind] if name in said],
        measures=[(MEASURES[name], text) for name, text in said.items()],
        tree=_json(_tree(evaluation)),
        tree_cut=max(0, len(evaluation.nodes) - MAX_NODES),
        branches=_branches(evaluation),
        labels=_labels(evaluation),
        max_rows=MAX_ROWS,
        charts=convergence(evaluation.history),
        above=_above(evaluation.facts),
        reliability=None if evaluation.reliability is None else reliability(evaluation.reliability),
        style=style,
        script=script,
        policy=_policy(style, script),
    )
    return page


def _template() -> Template:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("the report needs jinja2: pip install 'nhsvm[report]'") from error
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "number": number}
    return environment.get_template("report.html.j2")


def _asset(name: str) -> str:
    return files("nhsvm.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """What the browser may load and run: our style and script by their hashes, and nothing from anywhere."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; style-src-attr 'unsafe-inline'; "
        f"script-src 'sha256-{hashes[1]}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _json(value: JSON) -> str:
    """JSON that can stand inside a script element: no < of a label can end it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _above(facts: Record) -> str:
    """By how much the objective may exceed the optimum, which lies between dual and primal value."""
    primal, dual = facts.get("objective"), facts.get("dual_objective")
    return f"{100 * (primal / dual - 1):.3g}%" if primal and dual and 0 < dual <= primal else ""


def _branches(evaluation: Evaluation) -> Record:
    """Rows of the table of inner nodes, and how many there would be."""
    nodes = evaluation.nodes
    columns = {
        "accuracy": nodes.accuracy,
        "f1": nodes.f1,
        "recall": nodes.recall,
        "leaving": nodes.leaving,
        "weight": nodes.weight,
        "depth": nodes.depth,
        "classes": nodes.n_classes,
        "samples": nodes.samples,
        "missed": nodes.labels - nodes.found,
    }
    return _table(nodes, columns, evaluation.branches())


def _labels(evaluation: Evaluation) -> Record:
    """Rows of the table of labels."""
    nodes = evaluation.nodes
    columns = {
        "samples": nodes.own,
        "predicted": nodes.own_said,
        "recall": share(nodes.own_found, nodes.own),
        "precision": share(nodes.own_found, nodes.own_said),
        "f1": share(2 * nodes.own_found, nodes.own + nodes.own_said),
        "missed": nodes.own - nodes.own_found,
        "seen": nodes.is_class,
    }
    return _table(nodes, columns, evaluation.labels())


def _table(nodes: Nodes, columns: dict[str, Array], which: Counts) -> Record:
    shown = which[:MAX_ROWS]
    columns = {"name": np.array(nodes.name, dtype=object)} | columns
    values = zip(*(column[shown].tolist() for column in columns.values()), strict=True)
    return {"rows": [dict(zip(columns, row, strict=True)) for row in values], "total": len(which)}


def _tree(evaluation: Evaluation) -> JSON:
    """What the picture is drawn from: columns over the first nodes, level by level."""
    nodes, totals = evaluation.nodes, evaluation.lshtc
    own, classes = nodes.own.copy(), (nodes.is_class | ((nodes.own > 0) & ~nodes.is_inner)).astype(np.int64)
    for i in range(len(nodes) - 1, MAX_NODES - 1, -1):  # what is cut off counts with its parent
        for values in (own, classes):
            values[nodes.parent[i]] += values[i]
    colours = ("accuracy", "recall", "f1") if evaluation.kind == "single" else ("f1", "accuracy", "recall")
    columns = {
        "name": nodes.short,
        "full": nodes.name,
        "parent": nodes.parent,
        "own": own,
        "itself": share(nodes.own_found, nodes.own),
        "itselfF1": share(2 * nodes.own_found, nodes.own + nodes.own_said),
        "class": classes,
        "known": nodes.is_known.astype(int),
        "samples": nodes.samples,
        "predicted": nodes.predicted,
        "missed": nodes.labels - nodes.found,
        **{name: getattr(nodes, name) for name in (*colours, "precision", "leaving")},
        "weight": nodes.weight,
    }
    # parents come before children, so a parent is never missing
    shown = {name: np.round(c, 4) if isinstance(c, np.ndarray) else c for name, c in columns.items()}
    return plain(
        {
            "kind": evaluation.kind,
            "colours": [*colours, *(["weight"] if np.isfinite(nodes.weight).any() else [])],
            **{name: column[:MAX_NODES] for name, column in shown.items()},
            "all": {  # the numbers of the box above several roots
                "samples": evaluation.n_samples,
                "predicted": evaluation.n_samples,
                "accuracy": totals["micro_recall"],
                "f1": totals["micro_f1"],
                "precision": None,
                "recall": None,
                "missed": (nodes.own - nodes.own_found).sum(),
                "leaving": None,
                "weight": None,
            },
        }
    )


# -- charts ------------------------------------------------------------------------------------------------------------


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
            low, high = 10.0 ** math.floor(math.log10(low) + 1e-9), 10.0 ** math.ceil(math.log10(high) - 1e-9)
            high = high if high > low else 10 * low
            steps = range(round(math.log10(low)), round(math.log10(high)) + 1)
            numbers = [10.0**k for k in steps[:: max(1, math.ceil(len(steps) / 7))]]
        else:
            step = _round_step((high - low) or abs(high) or 1.0)
            low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
            high = high if high > low else low + step
            numbers = [low + k * step for k in range(round((high - low) / step) + 1)]
        self._low, self._high, self._start, self._end = low, high, start, end
        self.ticks = [Tick(round(self(value), 1), number(round(value, 12))) for value in numbers]

    def __call__(self, value: float) -> float:
        scale: Callable[[float], float] = math.log10 if self.log else float
        low, high = scale(self._low), scale(self._high)
        return self._start + (scale(value) - low) / (high - low) * (self._end - self._start)


def _round_step(span: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that divides a span into about five."""
    power = 10.0 ** math.floor(math.log10(span / 5))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= span / 5.0001)


def convergence(history: Sequence[Record]) -> list[Chart]:
    """The gap, and primal and dual, over seconds."""
    certified = "Filled marks are exact, open ones are estimates made during a pass."
    charts = []
    gap = _points(history, "gap")
    if gap:
        last = number(history[-1]["gap"], 3)
        kind = "" if history[-1].get("certified") else ", an estimate"
        said = f"The relative gap over seconds of training; it ends at {last}{kind}. {certified}"
        y_label = "(primal − dual) / primal"
        charts.append(_over_seconds("gap", "Gap between primal and dual", said, y_label, {"gap": gap}))
    both = {name: points for name in ("primal", "dual") if (points := _points(history, name))}
    if both:
        said = f"Primal and dual objective over seconds of training: the optimum lies between them. {certified}"
        charts.append(_over_seconds("objective", "Primal and dual objective", said, "objective", both))
    return charts


Points = list[tuple[float, float, bool]]


def _points(history: Sequence[Record], name: str) -> Points:
    """(seconds, value, exact) where both are known, positive and worth a mark."""
    found = [
        (float(r["seconds"]), float(r[name]), bool(r.get("certified")))
        for r in history
        if r.get("seconds") is not None and r.get(name) is not None and r["seconds"] > 0 and r[name] > 0
    ]
    step = max(1, math.ceil(len(found) / _MARKS))
    return found[::-step][::-1]  # the last one is always there


def _over_seconds(id: str, title: str, description: str, y_label: str, lines: dict[str, Points]) -> Chart:
    x = Axis([p[0] for points in lines.values() for p in points], _LEFT, WIDTH - _RIGHT)
    y = Axis([p[1] for points in lines.values() for p in points], HEIGHT - _BOTTOM, _TOP)
    drawn = []
    for name, points in lines.items():
        marks = [
            Mark(round(x(s), 1), round(y(v), 1), exact, 3.5, f"{name} {number(v)} after {number(s, 3)} s")
            for s, v, exact in points
        ]
        drawn.append(Line(name, "b" if name == "dual" else "a", _path(marks), marks))
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
