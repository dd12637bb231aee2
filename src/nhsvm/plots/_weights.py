"""A hierarchy with its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import NHSVMError, OptionError
from nhsvm.hierarchy.graph import FloatArray, Graph
from nhsvm.plots._pyplot import pyplot

_NAME = 40  # characters of a node's name
_CHARACTER, _LETTER = 0.078, 0.067  # inches of a character in the list and in a cell, about
_INDENT, _CELL, _BAR = 0.24, 0.5, 1.8  # inches of the list


def plot_weights(model: Any, ax: Any = None, *, max_nodes: int = 60) -> Any:
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
    hierarchy, alpha = model.hierarchy_, model.node_weights_
    coef = model.coef_
    squares = coef.power(2).sum(axis=1) if sp.issparse(coef) else np.einsum("ij,ij->i", coef, coef)
    squares = squares + model.intercept_**2
    length: FloatArray = np.sqrt(squares / (squares.max() or 1.0))
    # no weight is light, but not as white as where there is no node
    shades = plt.matplotlib.colors.ListedColormap(plt.get_cmap("Blues")(np.linspace(0.06, 1.0, 256)))
    colours = plt.cm.ScalarMappable(norm=plt.Normalize(0, max(1.0, float(alpha.max()))), cmap=shades)
    if hierarchy.graph.n_nodes <= max_nodes:
        ax = _draw_tree(ax, plt, hierarchy, alpha, length, colours)
    else:
        ax = _draw_icicle(ax, plt, hierarchy, alpha, length, colours)
    ax.set_title(f"{type(model).__name__}: weights α and lengths of U of {hierarchy.n_nodes} nodes", fontsize=11)
    return ax


def _names(hierarchy: Any) -> list[str]:
    """Names of the nodes, not too long."""
    names = [f"({label.of} itself)" if hasattr(label, "of") else str(label) for label in hierarchy.nodes]
    return [name if len(name) <= _NAME else name[: _NAME - 1] + "…" for name in names]


def _ink(colour: Any) -> str:
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


def _draw_tree(ax: Any, plt: Any, hierarchy: Any, alpha: FloatArray, length: FloatArray, colours: Any) -> Any:
    """A line a node: its name below its parent's, α as a number on its colour, and a bar for U. Units are inches."""
    graph, names = hierarchy.graph, _names(hierarchy)
    row = np.argsort(np.lexsort((graph.level, _extents(graph)[0]))).astype(float)
    first = _first_parents(graph)
    for node, parent in enumerate(first):
        others = [names[other] for other in graph.parents.row(node) if other != parent]
        names[node] += f"  (also below {', '.join(others)})" if others else ""
    x = _INDENT * graph.level
    cell = max(x[node] + _CHARACTER * len(name) for node, name in enumerate(names)) + 0.3
    bar = cell + _CELL + 0.15
    if ax is None:
        size = (max(bar + _BAR + 0.2, 5.0), 0.22 * graph.n_nodes + 0.8)
        ax = plt.subplots(layout="constrained", figsize=size)[1]
    for node, parent in enumerate(first):
        if parent >= 0:
            ax.plot([x[parent] + 0.07] * 2 + [x[node] - 0.03], [row[parent] + 0.4, row[node], row[node]], "0.6", lw=0.8)
    shades = colours.to_rgba(alpha)
    ax.barh(row, _CELL, 0.86, cell, color=shades)
    ax.barh(row, _BAR * length, 0.5, bar, color="0.45")
    for node, name in enumerate(names):
        ax.text(x[node], row[node], name, fontsize=9, va="center_baseline")
        middle = {"fontsize": 8, "ha": "center", "va": "center_baseline"}
        ax.text(cell + _CELL / 2, row[node], f"{alpha[node]:.2f}", color=_ink(shades[node]), **middle)
    ax.text(cell + _CELL / 2, -0.9, "α", fontsize=9, ha="center", va="center_baseline", color="0.35")
    ax.text(bar, -0.9, "length of U", fontsize=9, va="center_baseline", color="0.35")
    ax.set(xlim=(-0.05, bar + _BAR + 0.05), ylim=(graph.n_nodes - 0.4, -1.4))
    ax.set_axis_off()
    return ax


def _draw_icicle(ax: Any, plt: Any, hierarchy: Any, alpha: FloatArray, length: FloatArray, colours: Any) -> Any:
    """A row a level: cells coloured by α, named where there is room, and bars below them."""
    graph = hierarchy.graph
    left, width = _extents(graph)
    if ax is None:
        size = (11.0, 1.2 + graph.n_levels * float(np.clip(12 / graph.n_levels, 0.5, 1.1)))
        ax = plt.subplots(layout="constrained", figsize=size)[1]
    shades = colours.to_rgba(alpha)
    # sharp edges: blurred ones of narrow cells let the background through
    style = {"edgecolors": "white", "linewidths": 0.4} if graph.n_leaves <= 200 else {"antialiased": False}
    ax.add_collection(_boxes(plt, left, width, graph.level + 0.04, 0.56, facecolors=shades, **style))
    by_length = np.argsort(length)
    area = np.cumsum(width[by_length])
    full = float(length[by_length[np.searchsorted(area, 0.99 * area[-1])]]) or 1.0
    bars = -0.34 * np.minimum(length / full, 1.0)
    ax.add_collection(_boxes(plt, left, width, graph.level + 0.98, bars, facecolors="0.55", antialiased=False))
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
    shrink = min(0.8, 4 / ax.figure.get_figheight())
    ax.figure.colorbar(colours, ax=ax, label="weight α", shrink=shrink, pad=0.01, fraction=0.03)
    return ax


def _boxes(plt: Any, left: FloatArray, width: FloatArray, bottom: FloatArray, height: Any, **style: Any) -> Any:
    """Rectangles as one collection, which is quick for many."""
    low, high = np.broadcast_arrays(bottom, bottom + height)
    x = np.stack([left, left, left + width, left + width], axis=1)
    y = np.stack([low, high, high, low], axis=1)
    return plt.matplotlib.collections.PolyCollection(np.stack([x, y], axis=2), **style)
