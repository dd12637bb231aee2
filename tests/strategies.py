"""Random hierarchies for property tests: trees, forests, DAGs, and the extremes among them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from nhsvm import Hierarchy


def random_hierarchy(n_nodes: int, seed: int, *, roots: int = 1, extra: float = 0.0) -> Hierarchy:
    """A random tree or forest over 0..n_nodes-1, with about ``extra * n_nodes`` further edges (a DAG)."""
    rng = np.random.default_rng(seed)
    roots = min(roots, n_nodes)
    edges = {(int(rng.integers(v)), v) for v in range(roots, n_nodes)}
    for _ in range(round(extra * n_nodes)):
        child = int(rng.integers(1, n_nodes)) if n_nodes > 1 else 0
        if child >= roots:
            edges.add((int(rng.integers(child)), child))
    return Hierarchy.from_edges(sorted(edges), nodes=range(n_nodes))


SPECIAL = {
    "one node": Hierarchy.from_edges([], nodes=["only"]),
    "isolated roots": Hierarchy.from_edges([("a", "b"), ("a", "c")], nodes=["lonely", "alone"]),
    "chain": Hierarchy.from_edges([(i, i + 1) for i in range(999)]),
    "star": Hierarchy.from_edges([("hub", i) for i in range(10_000)]),
    "diamond": Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "x"), ("b", "x"), ("a", "y"), ("b", "z")]),
}


def trees(max_nodes: int = 25) -> st.SearchStrategy[Hierarchy]:
    """Trees and forests."""
    return st.builds(random_hierarchy, st.integers(1, max_nodes), st.integers(0, 2**32), roots=st.integers(1, 4))


def dags(max_nodes: int = 25) -> st.SearchStrategy[Hierarchy]:
    """DAGs, some with several roots; now and then one comes out as a tree."""
    return st.builds(
        random_hierarchy,
        st.integers(3, max_nodes),
        st.integers(0, 2**32),
        roots=st.integers(1, 3),
        extra=st.floats(0.1, 1.5),
    )


def hierarchies(max_nodes: int = 25) -> st.SearchStrategy[Hierarchy]:
    """Anything."""
    return st.one_of(trees(max_nodes), dags(max_nodes))
