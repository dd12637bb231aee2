"""A hierarchy with its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nhsvm.errors import NHSVMError, OptionError
from nhsvm.hierarchy.graph import FloatArray, Graph
from nhsvm.plots._pyplot import pyplot


def plot_weights(model: Any, ax: Any = None, *, max_nodes: int = 60) -> Any:
    """The hierarchy of a fitted model with its weights α, as colours, and the lengths ‖U_n‖ of its node vectors.

    Parameters
    ----------
    model : fitted estimator
        For ``SSVM``, α is what it has learned.
    ax : matplotlib axes, optional
    max_nodes : int
        Up to so many nodes are drawn as a tree: discs with α beside them, the larger the longer U_n. More are drawn as
        an icicle: a row a level, a cell a node, as wide as it has leaves below, coloured by α; the bars below a row
        are the lengths of its U_n, one in a hundred being cut. A node with several parents has its cell below the
        first.

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
    graph = hierarchy.graph
    coef = model.coef_
    lengths = coef.power(2).sum(axis=1) if sp.issparse(coef) else np.einsum("ij,ij->i", coef, coef)
    squares = lengths + model.intercept_**2
    length: FloatArray = np.sqrt(squares / (squares.max() or 1.0))
    small = graph.n_nodes <= max_nodes
    if ax is None:
        wide = float(np.clip(0.9 * graph.n_leaves, 6, 24)) if small else 10.0
        ax = plt.subplots(layout="constrained", figsize=(wide, 1.2 + 1.1 * graph.n_levels))[1]
    colours = plt.cm.ScalarMappable(norm=plt.Normalize(0, max(1.0, float(alpha.max()))), cmap="viridis_r")
    left, width = _extents(graph)
    if small:
        _draw_tree(ax, hierarchy, alpha, length, colours, left + width / 2)
    else:
        _draw_icicle(ax, graph, alpha, length, colours, left, width)
    ax.figure.colorbar(colours, ax=ax, label="weight α", shrink=0.8)
    how = "size of discs" if small else "bars"
    ax.set_title(f"{type(model).__name__}: {graph.n_nodes} nodes; {how}: length of U")
    return ax


def _extents(graph: Graph) -> tuple[FloatArray, FloatArray]:
    """(left end, width) of every node, in leaves, depth-first below first parents; inner nodes without any get 1."""
    first = np.full(graph.n_nodes, -1)
    has = graph.parents.sizes() > 0
    first[has] = graph.parents.indices[graph.parents.indptr[:-1][has]]
    width = np.zeros(graph.n_nodes)
    for node in range(graph.n_nodes - 1, -1, -1):  # parents have lower numbers
        width[node] = max(width[node], 1.0)
        if first[node] >= 0:
            width[first[node]] += width[node]
    left, used = np.zeros(graph.n_nodes), np.zeros(graph.n_nodes)
    end = 0.0
    for node, parent in enumerate(first.tolist()):
        if parent < 0:
            left[node], end = end, end + width[node]
        else:
            left[node] = left[parent] + used[parent]
            used[parent] += width[node]
    return left, width


def _draw_tree(
    ax: Any, hierarchy: Any, alpha: FloatArray, length: FloatArray, colours: Any, centre: FloatArray
) -> None:
    graph = hierarchy.graph
    for parent, child in zip(*(side.tolist() for side in graph.edges()), strict=True):
        ends = -graph.level[[parent, child]]
        ax.plot(centre[[parent, child]], ends, color="0.7", linewidth=1, zorder=1)
    ax.scatter(
        centre, -graph.level, s=20 + 480 * length, c=colours.to_rgba(alpha), edgecolors="0.3", linewidths=0.8, zorder=2
    )
    for node, label in enumerate(hierarchy.nodes):
        name = f"({label.of} itself)" if hasattr(label, "of") else str(label)
        ax.annotate(
            f"{name}\n{alpha[node]:.2f}", (centre[node], -graph.level[node]), xytext=(0, -13), fontsize=8,
            textcoords="offset points", ha="center", va="top", zorder=3,
            bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
    ax.set(xlim=(-0.2, max(1.0, float(centre.max())) + 0.7), ylim=(-graph.n_levels + 0.35, 0.45))
    ax.set_axis_off()


def _draw_icicle(
    ax: Any, graph: Graph, alpha: FloatArray, length: FloatArray, colours: Any, left: FloatArray, width: FloatArray
) -> None:
    bottom = -graph.level - 1.0
    edge = {"edgecolor": "0.8", "linewidth": 0.3} if graph.n_nodes <= 2000 else {"linewidth": 0}
    ax.bar(left, 0.56, width, bottom + 0.4, align="edge", color=colours.to_rgba(alpha), **edge)
    full = float(np.quantile(length, 0.99)) or 1.0
    ax.bar(left, 0.36 * np.minimum(length / full, 1.0), width, bottom, align="edge", color="0.25", linewidth=0)
    ax.set(xlim=(0, float((left + width).max())), ylim=(-graph.n_levels, 0), xlabel="leaves", ylabel="level")
    ax.set_yticks(-np.arange(graph.n_levels) - 0.5, [str(k) for k in range(graph.n_levels)])
