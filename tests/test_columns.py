"""Columns against their definitions, on random graphs with random zeros in α."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm.columns import column_parents, make_columns
from reference.oracles import random_alpha
from strategies import SPECIAL, dags, hierarchies, trees

seeds = st.integers(0, 2**32)


def nearest(graph, node, alpha, strictly):
    """Walk up a tree to the next node with weight; -1 if there is none."""
    if not strictly and alpha[node] > 0:
        return node
    up = graph.parents.row(node)
    return nearest(graph, int(up[0]), alpha, False) if len(up) else -1


@given(hierarchies(), seeds)
def test_nodes_and_paths(h, seed):
    alpha = random_alpha(h, seed)
    columns = make_columns(h.graph, alpha)
    assert columns.nodes.tolist() == [n for n in range(h.n_nodes) if alpha[n] > 0]
    assert columns.alpha.tolist() == [alpha[n] for n in columns.nodes]
    assert (columns.n_columns, columns.n_leaves) == (len(columns.nodes), h.n_leaves)
    for k, leaf in enumerate(h.graph.leaves):
        closure = [n for n in h.graph.ancestors.row(leaf) if alpha[n] > 0]
        assert columns.nodes[columns.paths.row(k)].tolist() == sorted(closure)
    assert columns.longest == max(len(columns.paths.row(k)) for k in range(h.n_leaves))
    kinds = [columns.nodes, columns.alpha, *columns.paths, columns.parent, columns.leaf_column]
    assert [a.dtype for a in kinds] == [np.int32, np.float64, np.int64, np.int32, np.int32, np.int32]


@given(trees(), seeds)
def test_nearest_columns_on_a_tree(h, seed):
    alpha = random_alpha(h, seed)
    columns = make_columns(h.graph, alpha)
    name = lambda column: int(columns.nodes[column]) if column >= 0 else -1
    assert [name(c) for c in columns.parent] == [nearest(h.graph, n, alpha, True) for n in columns.nodes]
    assert [name(c) for c in columns.leaf_column] == [nearest(h.graph, n, alpha, False) for n in h.graph.leaves]


@given(hierarchies(), seeds)
def test_nests_is_that_every_leaf_has_a_column_of_its_own(h, seed):
    alpha = random_alpha(h, seed)
    columns = make_columns(h.graph, alpha)
    paths = [set(columns.paths.row(k).tolist()) for k in range(h.n_leaves)]
    own = [path - set().union(*paths[:k], *paths[k + 1 :]) for k, path in enumerate(paths)]
    assert columns.nests == (h.is_tree and all(own))


@given(hierarchies(), seeds)
def test_beyond_the_head_are_ends_of_paths(h, seed):
    columns = make_columns(h.graph, random_alpha(h, seed))
    inside = {c for k in range(h.n_leaves) for c in columns.paths.row(k)[:-1].tolist()}
    assert columns.head == max(inside, default=-1) + 1
    assert columns.head < columns.n_columns or columns.n_columns == 0  # all weights may be zero


@given(dags())
def test_a_dag_has_no_nearest_columns(h):
    columns = make_columns(h.graph, np.ones(h.n_nodes))
    empty = 0 if not h.is_tree else None
    assert empty is None or len(columns.parent) == len(columns.leaf_column) == empty
    assert columns.nests == h.is_tree


@pytest.mark.parametrize("name", SPECIAL)
def test_extremes(name):
    h = SPECIAL[name]
    columns = make_columns(h.graph, np.ones(h.n_nodes))
    assert columns.nests == h.is_tree
    assert columns.longest == {"diamond": 4}.get(name, h.graph.n_levels)
    nothing = make_columns(h.graph, np.zeros(h.n_nodes))
    assert (nothing.n_columns, nothing.longest, nothing.nests) == (0, 0, False)
    assert nothing.paths.indptr.tolist() == [0] * (h.n_leaves + 1)


@given(hierarchies(), seeds)
def test_columns_next_above(h, seed):
    """Contracted and reduced: the columns above that are above no other column above."""
    alpha = random_alpha(h, seed)
    columns = make_columns(h.graph, alpha)
    above = column_parents(h.graph, columns)
    closures = [
        {k for k, n in enumerate(columns.nodes) if n in set(h.graph.ancestors.row(node).tolist())}
        for node in columns.nodes
    ]
    for c in range(columns.n_columns):
        strictly = closures[c] - {c}
        hidden = set().union(*(closures[p] - {p} for p in strictly))
        assert above.row(c).tolist() == sorted(strictly - hidden)
