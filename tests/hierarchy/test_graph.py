"""Structure against networkx and the naive twin."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nhsvm import Hierarchy
from nhsvm.errors import HierarchyError
from nhsvm.hierarchy import Ragged, graph
from reference import hierarchy as naive
from strategies import SPECIAL, hierarchies, random_hierarchy, trees

few = settings(max_examples=40, deadline=None)


def oracle(h: Hierarchy) -> nx.DiGraph:
    """Built from ``edges()`` alone, so it shares no query code with what it checks."""
    g = nx.DiGraph(h.edges())
    g.add_nodes_from(h.nodes)
    return g


def assert_agrees(h: Hierarchy, nodes) -> None:
    g = oracle(h)
    for n in nodes:
        assert h.parents(n) == set(g.predecessors(n))
        assert h.children(n) == set(g.successors(n))
        assert h.ancestors(n) == nx.ancestors(g, n)
        assert h.descendants(n) == nx.descendants(g, n)
        assert h.closure(n) == nx.ancestors(g, n) | {n}
        assert h.is_leaf(n) == (g.out_degree(n) == 0)
    assert set(h.leaves) == {n for n in g if g.out_degree(n) == 0}
    assert set(h.roots) == {n for n in g if g.in_degree(n) == 0}
    assert h.is_tree == all(d <= 1 for _, d in g.in_degree())
    assert (h.n_nodes, len(h), h.n_leaves) == (len(g), len(g), len(h.leaves))
    assert h.graph.n_edges == g.number_of_edges()


@few
@given(hierarchies())
def test_every_query_agrees_with_networkx(h):
    assert_agrees(h, h.nodes)


@pytest.mark.parametrize("name", SPECIAL)
def test_special_hierarchies_agree_with_networkx(name):
    h = SPECIAL[name]
    step = max(1, h.n_nodes // 10)
    assert_agrees(h, {*h.nodes[::step], *h.roots, h.nodes[-1]})


@few
@given(hierarchies(), st.data())
def test_queries_on_sets_are_unions(h, data):
    some = data.draw(st.sets(st.sampled_from(h.nodes)))
    for query in (h.parents, h.children, h.ancestors, h.descendants, h.closure):
        union = frozenset().union(*(query(n) for n in some))
        assert query(some) == union
        assert query(list(some)) == union
        assert query(frozenset(some)) == union
    assert h.ancestors(np.array(sorted(some), dtype=int)) == h.ancestors(some)


@few
@given(hierarchies())
def test_nodes_are_a_topological_order_level_by_level(h):
    place = {n: i for i, n in enumerate(h.nodes)}
    assert all(place[p] < place[c] for p, c in h.edges())
    levels = [naive.level(list(h.edges()), n) for n in h.nodes]
    assert levels == sorted(levels)
    assert [h.depth(n) for n in h.nodes] == levels
    np.testing.assert_array_equal(h.graph.level, levels)
    found = [list(range(s.start, s.stop)) for s in h.graph.levels()]
    assert found == [[i for i, k in enumerate(levels) if k == want] for want in range(max(levels) + 1)]
    assert [list(range(s.start, s.stop)) for s in h.graph.levels_up()] == found[::-1]


@few
@given(trees())
def test_siblings_stand_together_in_a_tree(h):
    first_parent = [min(map(h.number, h.parents(n)), default=-1) for n in h.nodes]
    assert first_parent == sorted(first_parent)


@few
@given(hierarchies())
def test_stored_ancestor_sets_and_what_follows_from_them(h):
    nodes, edges = list(h.nodes), list(h.edges())
    want = [sorted(map(h.number, naive.closure(edges, [n]))) for n in nodes]
    g = h.graph
    assert [g.ancestors.row(i).tolist() for i in range(g.n_nodes)] == want
    assert [g.leaf_ancestors.row(k).tolist() for k in range(g.n_leaves)] == [want[i] for i in g.leaves]
    dense = np.array([[i in want[leaf] for i in range(g.n_nodes)] for leaf in g.leaves], dtype=float)
    np.testing.assert_array_equal(g.leaf_matrix().toarray(), dense)
    np.testing.assert_array_equal(g.leaf_counts, dense.sum(axis=0))
    assert {nodes[i] for i in np.flatnonzero(g.is_common)} == naive.common(nodes, edges)


def test_ancestor_sets_of_the_extremes():
    chain, star = SPECIAL["chain"].graph, SPECIAL["star"].graph
    np.testing.assert_array_equal(chain.leaf_ancestors.row(0), np.arange(1000))
    np.testing.assert_array_equal(chain.leaf_counts, np.ones(1000))
    assert chain.is_common.sum() == 999
    assert (chain.n_levels, star.n_levels) == (1000, 2)
    np.testing.assert_array_equal(star.ancestors.sizes(), [1] + [2] * 10_000)
    assert star.leaf_counts[0] == 10_000
    assert SPECIAL["one node"].graph.is_common.tolist() == [False]


@few
@given(trees(), st.integers(0, 2**32))
def test_sum_up_adds_subtrees(h, seed):
    values = np.random.default_rng(seed).integers(-9, 9, h.n_nodes)
    want = [values[h.numbers({n} | h.descendants(n))].sum() for n in h.nodes]
    np.testing.assert_array_equal(h.graph.sum_up(values), want)


def test_ancestor_sets_too_large_to_store_are_refused(monkeypatch):
    monkeypatch.setattr(graph, "MAX_ENTRIES", 54)
    chain = [(i, i + 1) for i in range(9)]  # 55 entries
    with pytest.raises(HierarchyError, match=r"10 nodes on 10 levels.* more than 54 entries"):
        _ = Hierarchy.from_edges(chain).graph.ancestors
    assert len(Hierarchy.from_edges(chain[:-1]).graph.ancestors.indices) == 45


def test_ancestor_sets_of_a_tree_are_refused_before_any_work(monkeypatch):
    chain = Hierarchy.from_edges([(i, i + 1) for i in range(9)]).graph
    monkeypatch.setattr(graph, "MAX_ENTRIES", 54)
    monkeypatch.setattr(graph.Graph, "levels", lambda self: pytest.fail("started to work"))
    with pytest.raises(HierarchyError, match="more than 54 entries"):
        _ = chain.ancestors


def test_ancestor_sets_of_a_dag_are_refused_when_the_levels_do_not_tell(monkeypatch):
    wide = [(f"root {i}", "leaf") for i in range(9)]  # 9 + 10 entries, of which the levels promise 11
    monkeypatch.setattr(graph, "MAX_ENTRIES", 18)
    with pytest.raises(HierarchyError, match=r"10 nodes on 2 levels.* more than 18 entries"):
        _ = Hierarchy.from_edges(wide).graph.ancestors
    assert len(Hierarchy.from_edges(wide[:-1]).graph.ancestors.indices) == 17


def test_ancestor_storage_grows_when_the_first_guess_is_too_small():
    h = random_hierarchy(300, 5, extra=3.0)
    g = oracle(h)
    sizes = [len(nx.ancestors(g, n)) + 1 for n in h.nodes]
    assert sum(sizes) > max(4 * h.n_nodes, (h.graph.level + 1).sum())
    np.testing.assert_array_equal(h.graph.ancestors.sizes(), sizes)


@few
@given(st.lists(st.lists(st.integers(0, 6), max_size=5, unique=True), min_size=1, max_size=7), st.data())
def test_ragged_lists(lists, data):
    lists = [sorted(row) for row in lists]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in lists])]).astype(np.int64)
    ragged = Ragged(indptr, np.array([j for row in lists for j in row], dtype=np.int32))
    which = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=6))
    picked = ragged.rows(np.array(which, dtype=np.int32))
    assert [picked.row(i).tolist() for i in range(len(which))] == [lists[i] for i in which]
    assert ragged.sizes().tolist() == [len(row) for row in lists]
    assert ragged.owners().tolist() == [i for i, row in enumerate(lists) for _ in row]
    turned = ragged.transposed(7)
    holders = [[i for i, row in enumerate(lists) if j in row] for j in range(7)]
    assert [turned.row(j).tolist() for j in range(7)] == holders
