"""Hierarchies with numbers beside their nodes, as plain text."""

from __future__ import annotations

from collections.abc import Mapping

from nhsvm.hierarchy import Hierarchy
from nhsvm.typing import FloatArray


def drawing_with_columns(hierarchy: Hierarchy, columns: Mapping[str, FloatArray], max_nodes: int = 60) -> str:
    """The drawing of a hierarchy with one number a column behind every node, under the columns' names."""
    width = max(7, *map(len, columns)) + 2
    notes = {
        node: "".join(f"{values[i]:{width}.3f}" for values in columns.values())
        for i, node in enumerate(hierarchy.nodes)
    }
    drawing = hierarchy.draw(notes=notes, max_nodes=max_nodes)
    indent = len(drawing.splitlines()[0]) - len(notes[hierarchy.nodes[0]])
    return " " * indent + "".join(f"{name:>{width}}" for name in columns) + "\n" + drawing
