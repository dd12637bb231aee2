"""Random matrices for the property tests of norms, hard ones among them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.typing import FloatArray

KINDS = ("plain", "rounded", "row scales", "column scales", "low rank", "repeated rows", "zero rows")


def random_matrix(n: int, m: int, kind: str, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(n, m))
    if kind == "rounded":
        U = np.round(U)
    elif kind == "row scales":
        U = U * np.exp(3 * rng.normal(size=(n, 1)))
    elif kind == "column scales":
        U = U * np.exp(3 * rng.normal(size=(1, m)))
    elif kind == "low rank":
        U = rng.normal(size=(n, 1)) * rng.normal(size=(1, m)) + (m > 3) * rng.normal(size=(n, 1))
    elif kind == "repeated rows":
        U = U[rng.integers(0, (n + 1) // 2, n)]
    elif kind == "zero rows":
        U = U * (rng.random((n, 1)) < 0.5)
    return U


def matrices(max_rows: int = 9, max_columns: int = 9) -> st.SearchStrategy[FloatArray]:
    return st.builds(
        random_matrix,
        st.integers(1, max_rows),
        st.integers(1, max_columns),
        st.sampled_from(KINDS),
        st.integers(0, 2**32),
    )


@st.composite
def leaf_matrices(draw, shape: st.SearchStrategy[Hierarchy], max_columns: int = 6) -> tuple[Hierarchy, FloatArray]:
    """A hierarchy with one row a leaf: any kind of matrix, or a sum of sparse node rows (which share exactly)."""
    h = draw(shape)
    m, seed = draw(st.integers(1, max_columns)), draw(st.integers(0, 2**32))
    kind = draw(st.sampled_from([*KINDS, "shared"]))
    if kind != "shared":
        return h, random_matrix(h.n_leaves, m, kind, seed)
    rng = np.random.default_rng(seed)
    node_rows = rng.normal(size=(h.n_nodes, m)) * (rng.random((h.n_nodes, 1)) < 0.3)
    return h, h.graph.leaf_matrix() @ node_rows
