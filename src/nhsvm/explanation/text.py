"""An explanation as an aligned table: a row a feature, a column a node, sums at the end of both."""

from __future__ import annotations

import numpy as np

from nhsvm.explanation.parts import Explanation, NodePart
from nhsvm.hierarchy.graph import FloatArray

_COLUMNS = 6  # nodes side by side; the others make one column
_NAME = 28  # characters of a feature
_HEAD = 24  # characters of a node


def as_text(e: Explanation) -> str:
    """See ``Explanation.__str__``."""
    lines = [_headline(e)]
    weighty = [k for k, node in enumerate(e.nodes) if node.weight > 0]
    if weighty:
        lines += _table(e, weighty)
    lines += _notes(e)
    return "\n".join(lines)


def _headline(e: Explanation) -> str:
    what = "predicted" if e.predicted else "not predicted"
    if e.against is None:
        return f"{e.label}: score {e.score:.3f} ({what})"
    return f"{e.label} ({what}) rather than {e.against}: difference of scores {e.score:.3f}"


def _table(e: Explanation, weighty: list[int]) -> list[str]:
    """The lines of the table; nodes beyond the strongest few are summed up in one column."""
    size = np.abs([e.nodes[k].score for k in weighty])
    kept = np.sort(np.argsort(-size, kind="stable")[:_COLUMNS])
    shown = [weighty[k] for k in kept]
    hidden = [k for k in weighty if k not in shown]
    heads = [_head(e.nodes[k]) for k in shown]
    heads += [f"{len(hidden)} more nodes"] * bool(hidden)
    heads.append("sum")
    rows: list[tuple[str, FloatArray]] = [
        (_shortened(name, _NAME), column) for name, column in zip(e.features, e.contributions.T, strict=True)
    ]
    if e.n_rest:
        rows.append((f"{e.n_rest} more feature{'s' * (e.n_rest != 1)}", e.rest))
    if e.intercepts.any():
        rows.append(("intercept", e.intercepts))
    if e.offsets.any():
        rows.append(("offset", e.offsets))
    rows.append(("sum", np.array([node.score for node in e.nodes])))
    wide = max(len(name) for name, _ in rows)
    widths = [max(8, len(head) + 2) for head in heads]
    lines = [" " * wide + "".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))]
    for name, values in rows:
        cells = [*values[shown], *([values[hidden].sum()] * bool(hidden)), values.sum()]
        lines.append(f"{name:<{wide}}" + "".join(f"{_rounded(v):>{w}.3f}" for v, w in zip(cells, widths, strict=True)))
    return lines


def _notes(e: Explanation) -> list[str]:
    notes = []
    if e.shared:
        notes.append("shared, so not counted: " + ", ".join(f"{node} {node.score:.3f}" for node in e.shared))
    without = [str(node) for node in e.nodes if not node.weight > 0]
    if without:
        notes.append("without weight: " + ", ".join(without))
    return notes


def _head(node: NodePart) -> str:
    name = _shortened(str(node), _HEAD)
    return f"-{name}" if node.against else name


def _rounded(value: float) -> float:
    """To the digits shown, without -0."""
    return round(float(value), 3) + 0.0


def _shortened(text: str, length: int) -> str:
    """Text of one line and at most so long; its end, which is what tells most paths apart, stays."""
    text = " ".join(text.split()) or repr(text)
    return text if len(text) <= length else "…" + text[1 - length :]
