"""``write_report``: an evaluation as one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from importlib.resources import files
from typing import Any

import numpy as np

from nhsvm._atomic import write_file
from nhsvm.errors import OptionError
from nhsvm.report._charts import convergence, reliability
from nhsvm.report._measures import MEASURES
from nhsvm.report._record import Evaluation, plain, share
from nhsvm.report._summary import measure, number, percent, sentences

MAX_NODES = 20_000  # in the picture: what a browser reads in a moment
MAX_ROWS = 500  # of a table
_CARDS = {
    "single": ("accuracy", "hierarchical_f1", "f1_macro", "error_distance", "calibration_error"),
    "sets": ("example_jaccard", "hierarchical_f1", "f1_micro", "f1_macro", "auprc", "calibration_error"),
}


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
    page: str = _template().render(
        title=title or f"{evaluation.facts['model']}: evaluation",
        found=evaluation,
        summary=sentences(evaluation),
        cards=[(MEASURES[name], measure(name, value)) for name, value in _cards(evaluation)],
        measures=[(MEASURES[name], measure(name, value)) for name, value in evaluation.metrics.items()],
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


def _jinja2() -> Any:
    """The library, or an error that says how to get it."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("the report needs jinja2: pip install 'nhsvm[report]'") from error
    return jinja2


def _template() -> Any:
    jinja2 = _jinja2()
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


def _json(value: Any) -> str:
    """JSON that can stand inside a script element: no < of a label can end it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _above(facts: dict[str, Any]) -> str:
    """By how much the objective may exceed the optimum, which lies between dual and primal value."""
    primal, dual = facts.get("objective"), facts.get("dual_objective")
    return f"{100 * (primal / dual - 1):.3g}%" if primal and dual and 0 < dual <= primal else ""


def _cards(evaluation: Evaluation) -> list[tuple[str, float]]:
    return [(k, evaluation.metrics[k]) for k in _CARDS[evaluation.kind] if k in evaluation.metrics]


def _branches(evaluation: Evaluation) -> dict[str, Any]:
    """Rows of the table of inner nodes, and how many there would be."""
    nodes, which = evaluation.nodes, evaluation.branches()
    columns = {name: getattr(nodes, name) for name in ("accuracy", "f1", "recall", "leaving", "weight")}
    columns |= {"depth": nodes.depth, "classes": nodes.n_classes, "samples": nodes.samples}
    columns |= {"missed": nodes.labels - nodes.found}
    return {"rows": _rows(nodes.name, columns, which), "total": len(which)}


def _labels(evaluation: Evaluation) -> dict[str, Any]:
    """Rows of the table of labels."""
    nodes, which = evaluation.nodes, evaluation.labels()
    columns = {
        "samples": nodes.own,
        "predicted": nodes.own_said,
        "recall": share(nodes.own_found, nodes.own),
        "precision": share(nodes.own_found, nodes.own_said),
        "f1": share(2 * nodes.own_found, nodes.own + nodes.own_said),
        "missed": nodes.own - nodes.own_found,
        "seen": nodes.is_class,
    }
    return {"rows": _rows(nodes.name, columns, which), "total": len(which)}


def _rows(names: tuple[str, ...], columns: dict[str, Any], which: Any) -> list[dict[str, Any]]:
    shown = which[:MAX_ROWS]
    values = [{"name": names[i]} for i in shown.tolist()]
    for key, column in columns.items():
        for row, value in zip(values, column[shown].tolist(), strict=True):
            row[key] = value
    return values


def _tree(evaluation: Evaluation) -> dict[str, Any]:
    """What the picture is drawn from: columns over the first nodes, level by level."""
    nodes = evaluation.nodes
    shown = slice(0, MAX_NODES)  # parents come before children, so a parent is never missing
    own, classes = nodes.own.copy(), (nodes.is_class | ((nodes.own > 0) & ~nodes.is_inner)).astype(np.int64)
    for i in range(len(nodes) - 1, MAX_NODES - 1, -1):  # what is cut off counts with its parent
        for values in (own, classes):
            values[nodes.parent[i]] += values[i]
    colours = ("accuracy", "recall", "f1") if evaluation.kind == "single" else ("f1", "accuracy", "recall")
    shares = {name: _rounded(getattr(nodes, name)[shown]) for name in (*colours, "precision", "leaving")}
    return {
        "kind": evaluation.kind,
        "colours": [*colours, *(["weight"] if np.isfinite(nodes.weight).any() else [])],
        "name": nodes.short[shown],
        "full": nodes.name[shown],
        "parent": plain(nodes.parent[shown]),
        "own": plain(own[shown]),
        "itself": _rounded(share(nodes.own_found, nodes.own)[shown]),
        "itselfF1": _rounded(share(2 * nodes.own_found, nodes.own + nodes.own_said)[shown]),
        "class": plain(classes[shown]),
        "known": plain(nodes.is_known[shown].astype(int)),
        "samples": plain(nodes.samples[shown]),
        "predicted": plain(nodes.predicted[shown]),
        "missed": plain((nodes.labels - nodes.found)[shown]),
        **shares,
        "weight": _rounded(nodes.weight[shown]),
        "all": plain(_all(evaluation)),
    }


def _all(evaluation: Evaluation) -> dict[str, Any]:
    """The numbers of the box above several roots."""
    nodes, measures = evaluation.nodes, evaluation.lshtc
    return {
        "samples": evaluation.n_samples,
        "predicted": evaluation.n_samples,
        "accuracy": measures["micro_recall"],
        "f1": measures["micro_f1"],
        "precision": None,
        "recall": None,
        "missed": (nodes.own - nodes.own_found).sum(),
        "leaving": None,
        "weight": None,
    }


def _rounded(values: Any) -> list[float | None]:
    found: list[float | None] = plain(np.round(values, 4))
    return found
