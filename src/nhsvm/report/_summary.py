"""An evaluation in a few plain sentences, and numbers as people read them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nhsvm.report._measures import MEASURES
from nhsvm.report._record import Evaluation

_ENOUGH = 10  # samples that a branch must have to be called weak


def sentences(found: Evaluation) -> list[str]:
    r"""What a reader should know first.

    Examples
    --------
    >>> from nhsvm import Hierarchy, NHSVM
    >>> from nhsvm.report import evaluate
    >>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    >>> X, y = [[1.0, 0.0, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]], ["dog", "cat", "oak"]
    >>> found = evaluate(NHSVM(h, C=10).fit(X, y), [*X, [0.9, 0.1, 0.0]], [*y, "cat"])
    >>> print(*sentences(found), sep="\n")  # doctest: +NORMALIZE_WHITESPACE
    Of 4 samples, 75.0% got the right label.
    A wrong label is 2.0 edges away from the right one on average (a sibling is 2 away); 100.0% of the wrong ones are
    still in the right branch at the top.
    """
    said = _single(found) if found.kind == "single" else _sets(found)
    weak = _weakest(found)
    if weak:
        said.append(weak)
    if found.reliability is not None:
        points = 100 * found.reliability.error
        said.append(f"Its probabilities are off by {points:.1f} percentage points on average.")
    return said


def _single(found: Evaluation) -> list[str]:
    said = [f"Of {_samples(found)}, {percent(found.metrics['accuracy'])} got the right label."]
    split = next((depth for depth in found.depths if depth.nodes > 1), None)
    if found.n_wrong and split is not None and len(found.depths) > 1:
        astray = split.samples * (1 - split.accuracy)
        said.append(
            f"A wrong label is {found.metrics['error_distance']:.1f} edges away from the right one on average (a "
            f"sibling is 2 away); {percent(max(0.0, 1 - astray / found.n_wrong))} of the wrong ones are still in the "
            "right branch at the top."
        )
    return said


def _sets(found: Evaluation) -> list[str]:
    return [
        f"Of {_samples(found)}, {percent(found.metrics['exact_match'])} got exactly the right set of labels.",
        f"{percent(found.lshtc['micro_recall'])} of the true labels are found, and "
        f"{percent(found.lshtc['micro_precision'])} of the predicted ones are right; with everything above them, "
        f"{percent(found.metrics['hierarchical_recall'])} and {percent(found.metrics['hierarchical_precision'])}.",
    ]


def _samples(found: Evaluation) -> str:
    return f"{found.n_samples:,} sample{'' if found.n_samples == 1 else 's'}"


def _weakest(found: Evaluation) -> str:
    """The worst and the best of the branches at the top, if there are some to compare."""
    nodes = found.nodes
    splits = [k for k in np.unique(nodes.depth) if (nodes.depth == k).sum() > 1]
    if not splits:
        return ""
    enough = nodes.is_inner & (nodes.depth == splits[0]) & (nodes.labels >= max(_ENOUGH, 0.01 * found.n_samples))
    branches = np.flatnonzero(enough)
    if len(branches) < 2:
        return ""
    values, what = (nodes.accuracy, "accuracy") if found.kind == "single" else (nodes.f1, "F1")
    worst, best = branches[values[branches].argmin()], branches[values[branches].argmax()]
    if percent(values[worst]) == percent(values[best]):  # so there is nothing to tell them apart
        return ""
    return (
        f"The weakest large branch is {nodes.name[worst]} ({what} {percent(values[worst])}), the strongest "
        f"{nodes.name[best]} ({percent(values[best])})."
    )


def percent(value: Any) -> str:
    """A share with one decimal; a dash for what does not exist.

    Examples
    --------
    >>> percent(0.8617), percent(float("nan")), percent(None)
    ('86.2%', '–', '–')
    """
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}%"


def number(value: Any, digits: int = 4) -> str:
    """A number with so many significant digits; whole ones with commas; others as they are.

    Examples
    --------
    >>> number(12345), number(0.000123456), number(float("nan")), number(True), number("maxmin")
    ('12,345', '0.0001235', '–', 'yes', 'maxmin')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (int, np.integer)) or (isinstance(value, float) and value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:.{digits}g}" if isinstance(value, (float, np.floating)) else str(value)


def measure(name: str, value: float) -> str:
    """The value of a measure as it is shown."""
    return percent(value) if MEASURES[name].is_share else ("–" if math.isnan(value) else f"{value:.2f}")
