"""The step of one leaf's level: against a grid, and against the definition of levels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.parts import compiled
from nhsvm.engine.dual import level_step
from strategies import dags

best_level, best_set, others = compiled(level_step._best_level, level_step._best_set, level_step._others)


def gain(v, z, m, r, alpha, q):
    """What the dual gains if all nodes of the path go to max(v, m)."""
    change = np.maximum(v, m) - z
    return float(r @ change - 0.5 * q * alpha @ change**2)


@given(st.integers(0, 2**32))
def test_the_best_level_is_the_best_of_a_grid(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    most = float(rng.uniform(0.1, 3.0))
    m = np.sort(rng.uniform(0, most, n))[::-1].copy() * (rng.random(n) < 0.7)
    m[-1] = 0.0  # the leaf itself
    now = float(rng.choice([0.0, most, rng.uniform(0, most)]))
    z, r, alpha = np.maximum(now, m), rng.normal(size=n), 10.0 ** rng.uniform(-2, 1, n)
    q = float(rng.choice([0.0, 0.3, 5.0]))
    level, gained = best_level(np.arange(n, dtype=np.int32), z, m, r, alpha, q, most, np.empty(n, np.int32))
    assert 0.0 <= level <= most
    assert gained == pytest.approx(gain(level, z, m, r, alpha, q), abs=1e-9)
    assert gained >= max(gain(v, z, m, r, alpha, q) for v in np.linspace(0, most, 201)) - 1e-9


@given(dags(), st.integers(0, 2**32))
def test_what_a_path_keeps_without_its_leaf(h, seed):
    graph = h.graph
    rng = np.random.default_rng(seed)
    levels = rng.choice([0.0, 0.5, 1.0, rng.random()], graph.n_leaves)
    below = graph.leaf_matrix().toarray() > 0  # (leaf, node)
    z = np.max(np.where(below, levels[:, None], 0.0), axis=0)
    ptr, child = graph.children.indptr.astype(np.int32), graph.children.indices
    for leaf in range(graph.n_leaves):
        path = graph.leaf_ancestors.row(leaf)
        without = levels.copy()
        without[leaf] = 0.0
        m = np.empty(len(path))
        others(path, ptr, child, z, np.full(graph.n_nodes, -1, np.int32), m)
        np.testing.assert_array_equal(m, np.max(np.where(below, without[:, None], 0.0), axis=0)[path])


def test_leaves_do_not_take_turns_for_ever():
    """By rounding, each of three changes in a row is worth 1e-17 here."""
    paths = [[1, 2, 5, 6, 7], [0, 2, 3, 4, 6, 8], [0, 1, 2, 3, 5, 6, 9]]
    r = np.array([0.4, 0.1 + 0.2, 0.4, -0.2, -(0.1 + 0.2), -0.2, -0.4, -0.1, 0.1, -0.2])
    ptr = np.cumsum([0, *map(len, paths)])
    below = np.empty(len(r), np.int32)
    total = best_set(ptr, np.concatenate(paths), r, np.empty(3, np.int32), below, True)
    assert total == pytest.approx(r[below > 0].sum(), abs=1e-12)
