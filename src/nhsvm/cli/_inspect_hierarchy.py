"""What ``nhsvm inspect`` says of a hierarchy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nhsvm.cli._show import drawing_with_columns
from nhsvm.hierarchy import Hierarchy
from nhsvm.weights import node_weights


def describe(file: Path, weights: str, max_nodes: int) -> dict[str, Any]:
    """Counts, weights and a drawing of a hierarchy file."""
    h = Hierarchy.read(file)
    alpha = node_weights(h, weights)
    return counts(h) | {
        "kind": "hierarchy",
        "file": str(file),
        "weights": weights,
        "nodes": [
            {"node": label, "depth": depth, "weight": weight}
            for label, depth, weight in zip(h.nodes, h.graph.level.tolist(), alpha.tolist(), strict=True)
        ],
        "drawing": drawing_with_columns(h, {weights: alpha}, max_nodes),
    }


def counts(h: Hierarchy) -> dict[str, Any]:
    """A hierarchy in numbers."""
    graph = h.graph
    depth, leaves = np.unique(graph.level[graph.leaves], return_counts=True)
    return {
        "hierarchy": repr(h),
        "is_tree": h.is_tree,
        "n_nodes": h.n_nodes,
        "n_leaves": h.n_leaves,
        "n_roots": graph.n_roots,
        "n_levels": graph.n_levels,
        "several_parents": int((graph.parents.sizes() > 1).sum()),
        "duplicated": h.n_nodes - h.minimal().n_nodes,
        "leaves_by_depth": dict(zip(depth.tolist(), leaves.tolist(), strict=True)),
    }


def show(result: dict[str, Any]) -> str:
    """All of it as text."""
    return f"{summary(result)}\n\n{result['drawing']}"


def summary(result: dict[str, Any]) -> str:
    """The counts as text."""
    return "\n".join(
        [
            result["hierarchy"],
            f"nodes with several parents: {result['several_parents']}",
            f"duplicated nodes (M(G) merges them): {result['duplicated']}",
            "leaves by depth: " + ", ".join(f"{d}: {n}" for d, n in result["leaves_by_depth"].items()),
        ]
    )
