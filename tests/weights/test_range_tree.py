"""Trees with the directional constraint and sums in a range: folded, with Newton systems of their own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import Hierarchy, node_weights
from nhsvm.weights import _interior
from nhsvm.weights._directional import solve_constrained
from nhsvm.weights._range_tree import solve_range_tree
from nhsvm.weights._tree_system import RangeTree
from reference import weights as reference
from strategies import SPECIAL, random_hierarchy, trees

RHOS = (1.1, 1.5, 2.0, 3.0, 5.0)
HIGHS = (1.01, 1.3, 1.5, 2.0, 5.0)


def check_feasible(h, out, alpha, high):
    sums = h.graph.leaf_matrix() @ alpha
    assert sums.min() >= 1 - 1e-12
    assert sums.max() <= high + 1e-12
    parent, child = h.graph.edges()
    assert (alpha[child] - alpha[parent])[~out[parent]].min(initial=0) >= -1e-12
    assert not alpha[out].any()


@pytest.mark.parametrize("seed", range(8))
def test_against_the_conic_solver(seed):
    """216 random trees; weights agree, and ours cost no more. At ρ = 1.1 the reference is less accurate."""
    rng = np.random.default_rng(seed)
    for i in range(27):
        h = random_hierarchy(int(rng.integers(2, 31)), int(rng.integers(2**32)), roots=int(rng.integers(1, 4)))
        rho, high, common = RHOS[i % 5], HIGHS[i // 5 % 5], i % 3 == 0
        options = {"rho": rho, "directional": True, "total": (1, high)}
        ours = node_weights(h, "power", **options, include_common=common)
        theirs = reference.power(h, **options, common=common, feasible=1e-8)
        assert (ours**rho).sum() <= (np.abs(theirs) ** rho).sum() * (1 + 1e-7)
        np.testing.assert_allclose(ours, theirs, atol=1e-6 if rho >= 1.5 else 5e-6)


@pytest.mark.parametrize("seed", range(8))
def test_weights_are_as_good_as_the_proof(seed, monkeypatch):
    """They hardly move when asked for more than is asked for."""
    trees_ = [random_hierarchy(30, seed * 100 + i, roots=1 + i % 3) for i in range(10)]
    options = [{"rho": rho, "directional": True, "total": (1, HIGHS[(i + seed) % 5])} for i, rho in enumerate(RHOS * 2)]
    plain = [node_weights(h, "power", **o) for h, o in zip(trees_, options, strict=True)]
    monkeypatch.setattr(_interior, "_AIM", 1e-16)
    for h, o, alpha in zip(trees_, options, plain, strict=True):
        np.testing.assert_allclose(node_weights(h, "power", **o), alpha, atol=1e-6)


@given(h=trees(), rho=st.floats(1.05, 30), high=st.floats(1.001, 4), common=st.booleans())
def test_against_the_general_method(h, rho, high, common):
    out = h.graph.is_common & (not common)
    ours = solve_range_tree(h.graph, out, rho, high)
    general = solve_constrained(h.graph, out, rho, True, high)
    check_feasible(h, out, ours, high)
    norms = [(alpha**rho).sum() ** (1 / rho) for alpha in (ours, general)]
    assert norms[0] == pytest.approx(norms[1], rel=2e-8)


@pytest.mark.parametrize("name", ["one node", "isolated roots", "chain", "star"])
def test_even_trees_need_no_solver(name, monkeypatch):
    monkeypatch.setattr("nhsvm.weights._range_tree.minimise_powers", None)
    h = SPECIAL[name]
    alpha = node_weights(h, "power", directional=True, total=(1, 2), include_common=True)
    np.testing.assert_allclose(h.graph.leaf_matrix() @ alpha, 1)
    exact = node_weights(h, "power", directional=True, include_common=True)
    np.testing.assert_allclose(alpha, exact, rtol=1e-12)


def test_a_worked_tree():
    """Two leaves and a chain of five below the root, ρ = 2.

    All of the chain has the root's weight t, and the leaves 1 − t: 6t² + 2(1−t)² is least at t = 1/4. That makes the
    long path 1.5. If it may be 1.2 only, t = 0.2; if it must be 1, t = 1/6.
    """
    h = Hierarchy.from_edges([("r", "x"), ("r", "y"), ("r", 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    for high, t in ((3.0, 1 / 4), (1.2, 0.2), (1.0, 1 / 6)):
        alpha = node_weights(h, "power", directional=True, total=(1, high), include_common=True)
        expected = {"r": t, "x": 1 - t, "y": 1 - t}
        np.testing.assert_allclose(alpha, [expected.get(n, t) for n in h.nodes], atol=1e-6)


@given(seed=st.integers(0, 2**32), spread=st.floats(0, 8))
def test_newton_systems_are_solved(seed, spread):
    """Against a dense solver, with weights of very different sizes."""
    rng = np.random.default_rng(seed)
    parent = np.array([-1, -1, 0, 0, 1, 2, 4])
    levels = [slice(0, 2), slice(2, 5), slice(5, 7)]
    top_parent, steps = np.array([0, 3, 3, 5, 6]), np.array([1.0, 2.0, 1.0, 1.0, 3.0])
    n, m = len(parent), len(steps)
    whole = np.zeros((m, n + m))
    for i, up in enumerate(top_parent):
        whole[i, n + i] = steps[i]
        while up >= 0:
            whole[i, up] = 1
            up = parent[up]
    rise = np.eye(n + m)[2:]
    for i, up in enumerate(np.concatenate([parent, top_parent])[2:]):
        rise[i, up] = -1
    E = np.vstack([np.eye(n + m), whole, -whole, rise])
    d = 10 ** rng.uniform(-spread / 2, spread / 2, len(E))
    x = rng.normal(size=n + m)
    solved = RangeTree(levels, parent, top_parent, steps)(d)((E.T * d) @ (E @ x))
    np.testing.assert_allclose(solved, x, atol=1e-6)
