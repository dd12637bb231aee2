"""``nhsvm demo``: what normalisation does, on a small hierarchy."""

from __future__ import annotations

import typer

from nhsvm.attributes import label_penalty
from nhsvm.cli._show import drawing_with_columns
from nhsvm.hierarchy import Hierarchy
from nhsvm.weights import Flat, Maxmin, Power, Scheme, Uniform, node_weights

_SHOP = [
    ("books", "fiction", "crime"),
    ("books", "fiction", "poetry"),
    ("books", "cooking"),
    ("music", "vinyl"),
    ("tools", "garden", "power tools", "mowers", "robot mowers"),
    ("tools", "garden", "power tools", "mowers", "petrol mowers"),
    ("tools", "garden", "power tools", "chainsaws"),
    ("tools", "hammers"),
]
_SCHEMES: dict[str, Scheme] = {
    "flat": Flat(),
    "uniform": Uniform(),
    "power": Power(),
    "even": Power(directional=True),
    "maxmin": Maxmin(),
}


def demo() -> None:
    """Show a small hierarchy with its node weights under every scheme.

    Example: nhsvm demo
    """
    h = Hierarchy.from_paths(_SHOP)
    typer.echo(f"{h}\n\nThe weight of every node (how much of a label's vector it carries):\n")
    typer.echo(drawing_with_columns(h, {name: node_weights(h, scheme) for name, scheme in _SCHEMES.items()}))
    typer.echo(
        "\nflat ignores the hierarchy; uniform (HSVM) gives deep labels more weight in all than shallow ones;\n"
        "power, even (power with directional=True) and maxmin (NHSVM) add up to 1 on the way to every leaf.\n"
    )
    _figure_1()


def _figure_1() -> None:
    """The paper's Figure 1: a needless copy of a node, and what it does to the price of a classifier."""
    before = Hierarchy.from_edges([], nodes=["y1", "y2"])
    after = Hierarchy.from_edges([("copy of y1", "y1")], nodes=["copy of y1", "y2"])
    typer.echo("Put a needless copy above label y1. The penalty on the same classifier for y1 becomes")
    for name, scheme in (("HSVM", Uniform()), ("NHSVM", Maxmin())):
        old, new = (
            label_penalty(h, node_weights(h, scheme), [[float(leaf == "y1")] for leaf in h.leaves])
            for h in (before, after)
        )
        typer.echo(f"  {name:<6} {new / old:.2f} times what it was")
