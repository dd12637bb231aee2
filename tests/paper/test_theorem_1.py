"""Theorem 1: as ρ → 1, duplicated nodes stop to matter. True on trees, and on DAGs whenever Eq. 6 with ρ = 1 has one
optimum; false otherwise, by a counterexample."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from nhsvm import Hierarchy, node_weights
from nhsvm.hierarchy import duplicate_classes
from nhsvm.paper import label_kernel, label_penalty
from strategies import dags, trees


def with_duplicates(h, seed, share=0.5):
    """A copy above some nodes: it takes over the node's parents, and has the node as its only child."""
    rng = np.random.default_rng(seed)
    copied = {n for n in h.nodes if rng.random() < share}
    edges = []
    for n in h.nodes:
        top = ("copy", n) if n in copied else n
        edges += [(p, top) for p in h.parents(n)]
        if n in copied:
            edges += (
                [(("copy", n), ("copy of copy", n)), (("copy of copy", n), n)] if rng.random() < 0.5 else [(top, n)]
            )
    return Hierarchy.from_edges(edges, nodes=[n for n in h.nodes if not h.parents(n) and n not in copied])


def with_parallel_copies(h, seed):
    """A second node with the same parents and the same children beside some inner nodes: a DAG even from a tree."""
    rng = np.random.default_rng(seed)
    copied = {n for n in h.nodes if not h.is_leaf(n) and rng.random() < 0.5}
    beside = {n: [n, ("copy", n)] if n in copied else [n] for n in h.nodes}
    edges = [(p, c) for parent, child in h.edges() for p in beside[parent] for c in beside[child]]
    return Hierarchy.from_edges(edges, nodes=[m for n in h.roots for m in beside[n]])


def differences(h, rho):
    """Largest difference of a class's weight and of a kernel entry between G and M(G)."""
    small = h.minimal()
    classes = duplicate_classes(h)
    alpha, beta = node_weights(h, "power", rho=rho), node_weights(small, "power", rho=rho)
    name = {}
    for node, k in zip(h.nodes, classes, strict=True):
        if node in small:
            name[k] = small.number(node)
    merged = np.bincount([name[k] for k in classes], weights=alpha, minlength=small.n_nodes)
    order = [h.leaves.index(leaf) for leaf in small.leaves]
    kernel = label_kernel(h, alpha).toarray()[np.ix_(order, order)]
    return abs(merged - beta).max(), abs(kernel - label_kernel(small, beta).toarray()).max()


def has_one_optimum(h):
    """Whether  min Σ α  over the constraints of Eq. 6 has a single solution (looked for along random directions)."""
    A = h.graph.leaf_matrix().toarray()[:, ~h.graph.is_common]
    n = A.shape[1]
    least = linprog(np.ones(n), A_eq=A, b_eq=np.ones(len(A))).fun
    face = {"A_eq": A, "b_eq": np.ones(len(A)), "A_ub": np.ones((1, n)), "b_ub": [least + 1e-9]}
    for seed in range(3):
        direction = np.random.default_rng(seed).normal(size=n)
        if -linprog(-direction, **face).fun - linprog(direction, **face).fun > 1e-6:
            return False
    return True


@given(h=trees(15), seed=st.integers(0, 2**32))
def test_on_trees(h, seed):
    h = with_duplicates(h, seed)
    for difference in differences(h, 1.01):
        assert difference < 1e-6


@given(h=trees(15), seed=st.integers(0, 2**32))
def test_on_trees_with_parallel_copies(h, seed):
    h = with_parallel_copies(h.minimal(), seed)
    for difference in differences(h, 1.01):
        assert difference < 1e-6


@given(h=dags(12), seed=st.integers(0, 2**32))
def test_on_dags_with_one_optimum(h, seed):
    h = with_duplicates(h.minimal(), seed)
    assume(has_one_optimum(h.minimal()))
    far, near = differences(h, 1.5), differences(h, 1.01)
    for difference in near:
        assert difference < 1e-3
    assert max(near) <= max(far) + 1e-9


def test_not_on_every_dag():
    """Two covers of the same cost: a copy of one node tilts the balance between them, however near ρ is to 1."""
    covers = {"X": "12", "Y": "34", "Z": "13", "W": "24"}
    h = Hierarchy.from_edges([(n, leaf) for n, leaves in covers.items() for leaf in leaves])
    assert not has_one_optimum(h)
    copied = Hierarchy.from_edges([*h.edges(), ("copy", "X")])
    assert copied.minimal().n_nodes == h.n_nodes
    for rho in (1.1, 1.01, 1.001):
        np.testing.assert_allclose(node_weights(h, "power", rho=rho)[:4], node_weights(h, "power", rho=rho)[0])
        assert differences(copied, rho)[0] > 0.04
    # the limit is the least Σ α log α with a discount of log 2 on the copied node: t/(1−t) = √2
    t = np.sqrt(2) / (1 + np.sqrt(2))
    assert node_weights(copied, "power", rho=1.001)[copied.number("Y")] == pytest.approx(t, abs=1e-3)


@given(h=trees(10), seed=st.integers(0, 2**32))
def test_penalty_under_hsvm_falls_and_under_nhsvm_does_not(h, seed):
    """Figure 1 on random trees: copies of all nodes at least halve HSVM's penalty; NHSVM's near ρ = 1 stays."""
    assume(h.n_leaves > 1)
    rng = np.random.default_rng(seed)
    h = h.minimal()
    copied = with_duplicates(h, seed, share=1.0)
    rows = rng.normal(size=(h.n_leaves, 2))
    position = {leaf: i for i, leaf in enumerate(h.leaves)}
    moved = rows[[position[leaf] for leaf in copied.leaves]]
    uniform = [label_penalty(g, node_weights(g, "uniform"), r) for g, r in ((h, rows), (copied, moved))]
    assert uniform[1] <= uniform[0] / 2 * (1 + 1e-9)
    # ρ near 1 leaves siblings hardly any weight of their own, so compare where leaf vectors are sums of roots' vectors
    roots = rng.normal(size=(h.n_nodes, 2)) * (h.graph.level == h.graph.level[~h.graph.is_common].min())[:, None]
    rows = h.graph.leaf_matrix() @ roots
    moved = rows[[position[leaf] for leaf in copied.leaves]]
    power = [label_penalty(g, node_weights(g, "power", rho=1.01), r) for g, r in ((h, rows), (copied, moved))]
    assert power[1] == pytest.approx(power[0], rel=1e-3)


def test_figure_1():
    before = Hierarchy.from_edges([], nodes=["y1", "y2"])
    after = Hierarchy.from_edges([("copy of y1", "y1")], nodes=["copy of y1", "y2"])
    for scheme, ratio in [("uniform", 0.5), ("power", 1.0), ("maxmin", 1.0), ("flat", 1.0)]:
        for row, expected in [(0, ratio), (1, 1.0)]:
            penalties = []
            for h in (before, after):
                rows = np.zeros((2, 3))
                rows[h.leaves.index(("y1", "y2")[row])] = [1.0, -2.0, 0.5]
                penalties.append(label_penalty(h, node_weights(h, scheme), rows))
            assert penalties[1] / penalties[0] == pytest.approx(expected)
