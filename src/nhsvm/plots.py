"""Pictures, for which matplotlib must be installed (``pip install 'nhsvm[plot]'``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import NHSVMError, OptionError
from nhsvm.hierarchy import Hierarchy, VirtualLeaf
from nhsvm.hierarchy.graph import Graph
from nhsvm.typing import Estimator, FloatArray, Floats, Options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

    from nhsvm.explanation import Explanation

__all__ = ["plot_convergence", "plot_explanation", "plot_weights"]

_PANELS = 12  # explanations in one figure
_NAME = 32  # characters of a node or feature of an explanation
_NODE = 40  # characters of a node's name in a hierarchy
_CHARACTER, _LETTER = 0.078, 0.067  # inches of a character in the list and in a cell, about
_INDENT, _CELL, _BAR = 0.24, 0.5, 1.8  # inches of the list


def pyplot() -> ModuleType:
    """``matplotlib.pyplot``; an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'nhsvm[plot]'") from error
    return plt


def axes_of(ax: Axes | None, **settings: object) -> Axes:
    """The axes that were given, or new ones in a figure of these settings."""
    if ax is None:
        made: Axes = pyplot().subplots(layout="constrained", **settings)[1]
        return made
    return ax


def plot_convergence(models: Estimator | Mapping[str, Estimator], ax: Axes | None = None) -> Axes:
    """The relative gap of fits against time, on logarithmic axes.

    Parameters
    ----------
    models : fitted estimator, or mapping of names to fitted estimators
        Anything with a ``history_``.
    ax : matplotlib axes, optional

    Returns
    -------
    axes

    Notes
    -----
    Filled marks are certified: primal and dual were measured exactly. Open ones are estimates from what a pass met.
    """
    named = models if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise NHSVMError("no model to plot")
    for name, model in named.items():
        if not getattr(model, "history_", None):
            raise NHSVMError(f"{name!r} has no history_: fit it first")
    axes = axes_of(ax)
    for name, model in named.items():
        seconds, gaps = ([record[key] for record in model.history_] for key in ("seconds", "gap"))
        line = axes.plot(seconds, gaps, "-o", label=name, fillstyle="none", markersize=4)[0]
        certified = [record for record in model.history_ if record["certified"]]
        seconds, gaps = ([record[key] for record in certified] for key in ("seconds", "gap"))
        axes.plot(seconds, gaps, "o", color=line.get_color())
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="(primal − dual) / primal")
    axes.grid(alpha=0.3)
    axes.legend()
    return axes


# -- explanations ------------------------------------------------------------------------------------------------------


def plot_explanation(
    explanations: Explanation | Sequence[Explanation], axes: tuple[Axes, Axes] | None = None
) -> Figure:
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
    figure: Any  # or a part of one
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
    made: Figure = figure
    return made


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


def _draw_nodes(ax: Axes, table: _Table, colours: FloatArray) -> None:
    place = np.arange(len(table.nodes) + 1)
    bars = ax.barh(place, [*table.scores, table.item.score], color=[*colours, "0.35"])
    ax.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
    ax.set_yticks(place, [*table.nodes, "score"])
    ax.set_title(table.title, loc="left", x=0.0)
    ax.set_xlabel("what the node adds")
    ax.margins(x=0.18)
    _finish(ax, table)


def _draw_features(ax: Axes, table: _Table, colours: FloatArray) -> None:
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


def _finish(ax: Axes, table: _Table) -> None:
    ax.axvline(0.0, color="0.2", linewidth=0.8)
    ax.set_ylim(table.n_lines - 0.4, -0.6)  # the first on top, and bars of one height on both sides
    ax.spines[["top", "right"]].set_visible(False)


def _shortened(text: str) -> str:
    """One line without mathematics: a dollar sign would start some."""
    text = " ".join(text.split()).replace("$", r"\$")
    return text if len(text) <= _NAME else "…" + text[1 - _NAME :]


# -- hierarchies -------------------------------------------------------------------------------------------------------


def plot_weights(model: Estimator, ax: Axes | None = None, *, max_nodes: int = 60) -> Axes:
    """The hierarchy of a fitted model, with its weights α as colours and the lengths ‖U_n‖ of its node vectors as bars.

    Parameters
    ----------
    model : fitted estimator
        For ``SSVM``, α is what it has learned.
    ax : matplotlib axes, optional
    max_nodes : int
        Up to so many nodes are drawn as a tree with a line a node, which has room for their names. More are drawn as an
        icicle: a row a level, a cell a node, as wide as it has leaves below, coloured by α; the bars below a row are
        the lengths of its U_n, the longest hundredth being cut. Beside a level is its weight on the way to a leaf, on
        average. A node with several parents is drawn below the first of them.

    Returns
    -------
    axes
    """
    if not hasattr(model, "node_weights_"):
        raise NHSVMError(f"{type(model).__name__} has no node_weights_: fit it first")
    if max_nodes < 0:
        raise OptionError(f"max_nodes must be at least 0, not {max_nodes}")
    plt = pyplot()
    hierarchy, alpha, coef = model.hierarchy_, model.node_weights_, model.coef_
    squares = coef.power(2).sum(axis=1) if sp.issparse(coef) else np.einsum("ij,ij->i", coef, coef)
    squares = squares + model.intercept_**2
    length: FloatArray = np.sqrt(squares / (squares.max() or 1.0))
    # no weight is light, but not as white as where there is no node
    shades = plt.matplotlib.colors.ListedColormap(plt.get_cmap("Blues")(np.linspace(0.06, 1.0, 256)))
    colours = plt.cm.ScalarMappable(norm=plt.Normalize(0, max(1.0, float(alpha.max()))), cmap=shades)
    draw = _draw_tree if hierarchy.n_nodes <= max_nodes else _draw_icicle
    axes = draw(ax, _Weights(hierarchy, alpha, length, colours))
    axes.set_title(f"{type(model).__name__}: weights α and lengths of U of {hierarchy.n_nodes} nodes", fontsize=11)
    return axes


class _Weights(NamedTuple):
    """What is drawn of a model; lengths are shares of the largest."""

    hierarchy: Hierarchy
    alpha: FloatArray
    length: FloatArray
    colours: ScalarMappable


def _names(hierarchy: Hierarchy) -> list[str]:
    """Names of the nodes, not too long."""
    names = [f"({label.of} itself)" if isinstance(label, VirtualLeaf) else str(label) for label in hierarchy.nodes]
    return [name if len(name) <= _NODE else name[: _NODE - 1] + "…" for name in names]


def _ink(colour: FloatArray) -> str:
    """Black or white, whichever can be read on it."""
    return "white" if 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2] < 0.5 else "black"


def _first_parents(graph: Graph) -> list[int]:
    """The first parent of every node; −1 for roots."""
    return [int(graph.parents.row(node)[0]) if len(graph.parents.row(node)) else -1 for node in range(graph.n_nodes)]


def _extents(graph: Graph) -> tuple[FloatArray, FloatArray]:
    """(left end, width) of every node, in leaves, depth-first below first parents; inner nodes without any get 1."""
    first = _first_parents(graph)
    width = np.zeros(graph.n_nodes)
    for node in range(graph.n_nodes - 1, -1, -1):  # parents have lower numbers
        width[node] = max(width[node], 1.0)
        if first[node] >= 0:
            width[first[node]] += width[node]
    left, used = np.zeros(graph.n_nodes), np.zeros(graph.n_nodes)
    end = 0.0
    for node, parent in enumerate(first):
        if parent < 0:
            left[node], end = end, end + width[node]
        else:
            left[node] = left[parent] + used[parent]
            used[parent] += width[node]
    return left, width


def _draw_tree(given: Axes | None, drawn: _Weights) -> Axes:
    """A line a node: its name below its parent's, α as a number on its colour, and a bar for U. Units are inches."""
    hierarchy, alpha, length, colours = drawn
    graph, names = hierarchy.graph, _names(hierarchy)
    row = np.argsort(np.lexsort((graph.level, _extents(graph)[0]))).astype(float)
    first = _first_parents(graph)
    for node, parent in enumerate(first):
        others = [names[other] for other in graph.parents.row(node) if other != parent]
        names[node] += f"  (also below {', '.join(others)})" if others else ""
    x = _INDENT * graph.level
    cell = max(x[node] + _CHARACTER * len(name) for node, name in enumerate(names)) + 0.3
    bar = cell + _CELL + 0.15
    ax = axes_of(given, figsize=(max(bar + _BAR + 0.2, 5.0), 0.22 * graph.n_nodes + 0.8))
    for node, parent in enumerate(first):
        if parent >= 0:
            ax.plot([x[parent] + 0.07] * 2 + [x[node] - 0.03], [row[parent] + 0.4, row[node], row[node]], "0.6", lw=0.8)
    shades = colours.to_rgba(alpha)
    ax.barh(row, _CELL, 0.86, cell, color=shades)
    ax.barh(row, _BAR * length, 0.5, bar, color="0.45")
    for node, name in enumerate(names):
        ax.text(x[node], row[node], name, fontsize=9, va="center_baseline")
        middle: Options = {"fontsize": 8, "ha": "center", "va": "center_baseline"}
        ax.text(cell + _CELL / 2, row[node], f"{alpha[node]:.2f}", color=_ink(shades[node]), **middle)
    ax.text(cell + _CELL / 2, -0.9, "α", fontsize=9, ha="center", va="center_baseline", color="0.35")
    ax.text(bar, -0.9, "length of U", fontsize=9, va="center_baseline", color="0.35")
    ax.set(xlim=(-0.05, bar + _BAR + 0.05), ylim=(graph.n_nodes - 0.4, -1.4))
    ax.set_axis_off()
    return ax


def _draw_icicle(given: Axes | None, drawn: _Weights) -> Axes:
    """A row a level: cells coloured by α, named where there is room, and bars below them."""
    hierarchy, alpha, length, colours = drawn
    graph = hierarchy.graph
    left, width = _extents(graph)
    ax = axes_of(given, figsize=(11.0, 1.2 + graph.n_levels * float(np.clip(12 / graph.n_levels, 0.5, 1.1))))
    shades = colours.to_rgba(alpha)
    # sharp edges: blurred ones of narrow cells let the background through
    style = {"edgecolors": "white", "linewidths": 0.4} if graph.n_leaves <= 200 else {"antialiased": False}
    ax.add_collection(_boxes(left, width, graph.level + 0.04, 0.56, facecolors=shades, **style))
    by_length = np.argsort(length)
    area = np.cumsum(width[by_length])
    full = float(length[by_length[np.searchsorted(area, 0.99 * area[-1])]]) or 1.0
    bars = -0.34 * np.minimum(length / full, 1.0)
    ax.add_collection(_boxes(left, width, graph.level + 0.98, bars, facecolors="0.55", antialiased=False))
    ends = float((left + width).max())
    names = _names(hierarchy)
    letters = (width / ends * 9.2 / _LETTER - 1).astype(int)
    for node in np.flatnonzero(letters >= np.minimum([len(name) for name in names], 9)):
        middle = (left[node] + width[node] / 2, graph.level[node] + 0.32)
        name = names[node] if len(names[node]) <= letters[node] else names[node][: letters[node] - 1] + "…"
        ax.text(*middle, name, color=_ink(shades[node]), fontsize=8, ha="center", va="center", clip_on=True)
    share = np.bincount(graph.level, alpha * graph.leaf_counts) / graph.n_leaves
    ax.set_yticks(np.arange(graph.n_levels) + 0.32, [f"{k}\nα {mean:.2f}" for k, mean in enumerate(share)])
    ax.tick_params(left=False)
    ax.spines[["top", "left", "right"]].set_visible(False)
    ax.set(xlim=(0, ends), ylim=(graph.n_levels, 0), xlabel="leaves", ylabel="level, and its α on average")
    figure: Any = ax.figure
    shrink = min(0.8, 4 / figure.get_figheight())
    figure.colorbar(colours, ax=ax, label="weight α", shrink=shrink, pad=0.01, fraction=0.03)
    return ax


def _boxes(
    left: FloatArray, width: FloatArray, bottom: Floats, height: FloatArray | float, **style: Any
) -> PolyCollection:
    """Rectangles as one collection, which is quick for many."""
    from matplotlib.collections import PolyCollection

    low, high = np.broadcast_arrays(bottom, bottom + height)
    x = np.stack([left, left, left + width, left + width], axis=1)
    y = np.stack([low, high, high, low], axis=1)
    corners: Any = np.stack([x, y], axis=2)
    return PolyCollection(corners, **style)
