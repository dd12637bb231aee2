"""The losses on plain Python sets of nodes, straight from their formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from math import sqrt

from nhsvm.hierarchy import Graph

Twin = Callable[[Graph, Mapping[int, float], set[int], set[int]], float]

TWINS: dict[str, Twin] = {
    "zero_one": lambda graph, alpha, y, z: 1.0 if y != z else 0.0,
    "hamming": lambda graph, alpha, y, z: float(len(y ^ z)),
    "normalized": lambda graph, alpha, y, z: sqrt(sum(alpha[n] for n in sorted(y ^ z))),
    "leaf_hamming": lambda graph, alpha, y, z: float(sum(1 for n in y ^ z if not len(graph.children.row(n)))),
}


def closure(graph: Graph, leaves: Iterable[int]) -> set[int]:
    """Ā(L), by walking up."""
    found, front = set(), [int(n) for n in leaves]
    while front:
        node = front.pop()
        if node not in found:
            found.add(node)
            front += [int(p) for p in graph.parents.row(node)]
    return found


def label_sets(graph: Graph) -> list[set[int]]:
    """All of Y_m; those of one leaf, Y_s, come first."""
    leaves = [int(n) for n in graph.leaves]
    return [closure(graph, some) for size in range(1, len(leaves) + 1) for some in combinations(leaves, size)]
