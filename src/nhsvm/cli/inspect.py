"""``nhsvm inspect``: a hierarchy file in numbers and as a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from nhsvm.cli._show import drawing_with_columns
from nhsvm.hierarchy import Hierarchy
from nhsvm.weights import node_weights


def inspect(
    hierarchy: Annotated[Path, typer.Argument(help="LSHTC cat_hier.txt, edge TSV/CSV or JSON; .gz too")],
    weights: Annotated[str, typer.Option(help="scheme of the weights to show")] = "maxmin",
    max_nodes: Annotated[int, typer.Option(min=1, help="lines to draw at the most")] = 40,
) -> None:
    """Describe a hierarchy file and draw it with its node weights.

    Example: nhsvm inspect cat_hier.txt --weights power
    """
    h = Hierarchy.read(hierarchy)
    graph = h.graph
    several = int((graph.parents.sizes() > 1).sum())
    depth, leaves = np.unique(graph.level[graph.leaves], return_counts=True)
    alpha = node_weights(h, weights)
    typer.echo(f"{h}")
    typer.echo(f"nodes with several parents: {several}")
    typer.echo(f"duplicated nodes (M(G) merges them): {h.n_nodes - h.minimal().n_nodes}")
    typer.echo("leaves by depth: " + ", ".join(f"{d}: {n}" for d, n in zip(depth, leaves, strict=True)) + "\n")
    typer.echo(drawing_with_columns(h, {weights: alpha}, max_nodes))
