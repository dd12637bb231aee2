"""The given hierarchy in the forms that peers take: paths, levels, and lists of nodes. Needs numpy and scipy only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

Nodes = tuple[str, ...]


def label_paths(edges: Sequence[tuple[str, str]], classes: Sequence[str]) -> list[Nodes]:
    """For every class the nodes from a root down to it, no path being the beginning of another.

    In a DAG a node hangs below the first parent that the edges name. A class with other classes below it gets a
    further step, itself again, so that it can be told from these.

    Examples
    --------
    >>> label_paths([("a", "b"), ("b", "c"), ("d", "c")], ["b", "c"])
    [('a', 'b', 'b'), ('a', 'b', 'c')]
    """
    parent: dict[str, str] = {}
    for above, below in edges:
        parent.setdefault(below, above)
    paths = []
    for name in classes:
        path = [name]
        while path[-1] in parent:
            path.append(parent[path[-1]])
        paths.append(tuple(reversed(path)))
    inner = {path[:k] for path in paths for k in range(1, len(path))}
    return [(*path, path[-1]) if path in inner else path for path in paths]


def padded(paths: Sequence[Nodes], filler: str | None) -> list[Nodes]:
    """All of one length: filled up, or with their last node repeated if ``filler`` is None."""
    longest = max(map(len, paths))
    return [path + (path[-1] if filler is None else filler,) * (longest - len(path)) for path in paths]


def level_matrices(paths: Sequence[Nodes]) -> list[Any]:
    """PECOS's chain: for each level, from the root down, which node is below which (rows below, columns above).

    Rows of the last matrix are the classes in their order. Short paths go on with a single child each.
    """
    full = padded(paths, None)
    above = np.zeros(len(full), dtype=np.int64)
    chain = []
    for level in range(1, len(full[0]) + 1):
        last = level == len(full[0])
        heads = [path[:level] for path in full]
        numbers = {head: i for i, head in enumerate(heads if last else dict.fromkeys(heads))}
        here = np.array([numbers[head] for head in heads])
        pairs = np.unique(np.column_stack([here, above]), axis=0)
        shape = (len(numbers), int(above.max()) + 1)
        chain.append(sp.csc_matrix((np.ones(len(pairs), np.float32), (pairs[:, 0], pairs[:, 1])), shape=shape))
        above = here
    return chain


def node_list(paths: Sequence[Nodes]) -> list[tuple[int, int, int]]:
    """The list of napkinXC: (parent, node, label), -1 for none; nodes with a single child are left out.

    Examples
    --------
    >>> node_list([("a", "b"), ("c", "d", "e"), ("c", "d", "f")])
    [(-1, 0, -1), (0, 1, 0), (0, 2, -1), (2, 3, 1), (2, 4, 2)]
    """
    children: dict[Nodes, dict[Nodes, None]] = {}
    for path in paths:
        for k in range(len(path)):
            children.setdefault(path[:k], {})[path[: k + 1]] = None
    label = {path: i for i, path in enumerate(paths)}
    rows: list[tuple[int, int, int]] = []

    def add(node: Nodes, parent: int) -> None:
        while len(children.get(node, ())) == 1:
            (node,) = children[node]
        number = len(rows)
        rows.append((parent, number, label.get(node, -1)))
        for child in children.get(node, ()):
            add(child, number)

    add((), -1)
    return rows
