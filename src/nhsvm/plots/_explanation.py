"""What nodes and features add to a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nhsvm.errors import NHSVMError
from nhsvm.hierarchy.graph import FloatArray
from nhsvm.plots._pyplot import pyplot

if TYPE_CHECKING:
    from nhsvm.explanation.parts import Explanation

_PANELS = 12  # in one figure
_NAME = 32  # characters of a node or feature


def plot_explanation(explanations: Explanation | Sequence[Explanation], axes: Any = None) -> Any:
    """Bars of what every node on the way to a label adds to its score, and every feature at these nodes.

    Parameters
    ----------
    explanations : Explanation, or Explanations
        What ``explain`` of an estimator gives; at most 12, one below the other.
    axes : pair of matplotlib axes, optional
        For nodes and for features; for one explanation.

    Returns
    -------
    matplotlib figure

    Notes
    -----
    Left, the nodes from the top of the hierarchy down and, last, the score, their sum. Right, the strongest features,
    in the colours of the nodes where they add (to the right of 0) or take away (to the left); a dot is the sum over all
    nodes.
    """
    items = list(explanations) if isinstance(explanations, Sequence) else [explanations]
    if not items:
        raise NHSVMError("no explanation to draw: no label is predicted")
    if len(items) > _PANELS:
        raise NHSVMError(f"{len(items)} explanations are too many for one figure; draw at most {_PANELS} of them")
    if axes is not None and len(items) > 1:
        raise NHSVMError(f"axes are for one explanation, not {len(items)}")
    plt = pyplot()
    tables = [_Table(item) for item in items]
    if axes is None:
        heights = [table.n_lines for table in tables]
        figure, grid = plt.subplots(
            len(items), 2, squeeze=False, layout="constrained", figsize=(11, sum(0.9 + 0.26 * h for h in heights)),
            gridspec_kw={"width_ratios": (2, 3), "height_ratios": heights},
        )  # fmt: skip
    else:
        figure, grid = axes[0].figure, [axes]
    for (left, right), table in zip(grid, tables, strict=True):
        colours = plt.get_cmap("viridis")(np.linspace(0.05, 0.85, len(table.nodes)))
        _draw_nodes(left, table, colours)
        _draw_features(right, table, colours)
    return figure


class _Table:
    """The rows and columns of an explanation that are drawn."""

    def __init__(self, item: Explanation) -> None:
        kept = [k for k, node in enumerate(item.nodes) if node.weight > 0]
        self.item = item
        self.nodes = [("− " if item.nodes[k].against else "") + _shortened(str(item.nodes[k])) for k in kept]
        self.scores = np.array([item.nodes[k].score for k in kept])
        parts = [item.contributions[kept]]
        self.features = [_shortened(name) for name in item.features]
        rest = f"{item.n_rest} more feature{'s' * (item.n_rest != 1)}"
        for name, column in ((rest, item.rest), ("intercept", item.intercepts), ("offset", item.offsets)):
            if column.any():
                parts.append(column[kept][:, None])
                self.features.append(name)
        self.parts: FloatArray = np.hstack(parts)
        self.n_lines = max(len(kept) + 1, len(self.features), 3)

    @property
    def title(self) -> str:
        item = self.item
        what = str(item.label) if item.against is None else f"{item.label} rather than {item.against}"
        return f"{what}: {item.score:.3f}"


def _draw_nodes(ax: Any, table: _Table, colours: Any) -> None:
    place = np.arange(len(table.nodes) + 1)
    bars = ax.barh(place, [*table.scores, table.item.score], color=[*colours, "0.35"])
    ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
    ax.set_yticks(place, [*table.nodes, "score"])
    ax.set_title(table.title, loc="left", x=0.0)
    ax.set_xlabel("what the node adds")
    ax.margins(x=0.18)
    _finish(ax, table)


def _draw_features(ax: Any, table: _Table, colours: Any) -> None:
    place = np.arange(len(table.features))
    ends = {1: np.zeros(len(place)), -1: np.zeros(len(place))}  # of the bars so far, to both sides
    for row, colour, name in zip(table.parts, colours, table.nodes, strict=True):
        for side, end in ends.items():
            part = np.where(side * row > 0, row, 0.0)
            ax.barh(place, part, left=end, color=colour, label=name if side == 1 else None)
            ends[side] = end + part
    ax.plot(table.parts.sum(axis=0), place, "o", color="black", markersize=4, label="sum")
    ax.set_yticks(place, table.features)
    ax.set(xlabel="what the feature adds at the nodes")
    ax.margins(x=0.05)
    _finish(ax, table)
    ax.legend(fontsize=8, loc="best")


def _finish(ax: Any, table: _Table) -> None:
    ax.axvline(0.0, color="0.2", linewidth=0.8)
    ax.set_ylim(table.n_lines - 0.4, -0.6)  # the first on top, and bars of one height on both sides
    ax.spines[["top", "right"]].set_visible(False)


def _shortened(text: str) -> str:
    """One line without mathematics: a dollar sign would start some."""
    text = " ".join(text.split()).replace("$", r"\$")
    return text if len(text) <= _NAME else "…" + text[1 - _NAME :]
