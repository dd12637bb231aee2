"""Trees with the directional constraint and sums in a range."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import Hierarchy, node_weights
from nhsvm.errors import NotSolvedError
from nhsvm.weights import _range_proof, _range_sums
from nhsvm.weights._directional import solve_constrained
from nhsvm.weights._interior import Solution, certified
from nhsvm.weights._range_tree import solve_range_tree
from nhsvm.weights._reach import wanted_reach
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


@given(h=trees(40), log_rho=st.floats(-6, 6), high=st.floats(1.0001, 10))
def test_proofs_are_close(h, log_rho, high):
    """At all ρ up to what is promised."""
    with remembered() as proofs:
        node_weights(h, "power", rho=1 + 10**log_rho, directional=True, total=(1, high), include_common=True)
    assert all(proof.gap <= 1e-12 * max(1, 10 ** (log_rho - 2)) * proof.value for proof in proofs)


@given(h=trees(40), seed=st.integers(0, 2**32), rho=st.floats(1.05, 20), high=st.floats(1.001, 4))
def test_proofs_are_honest(h, seed, rho, high):
    """Weights that are feasible and not optimal: what is proved of them must be true."""
    rng = np.random.default_rng(seed)
    with remembered() as proofs, pytest.MonkeyPatch.context() as patch:
        solve_range_tree(h.graph, np.zeros(h.n_nodes, dtype=bool), rho, high)
        patch.setattr(_range_sums, "_MOST_LOOKS", 1)
        patch.setattr(_range_sums, "wanted_reach", lambda tree, rho: wrong_reach(tree, rho, rng))
        try:
            solve_range_tree(h.graph, np.zeros(h.n_nodes, dtype=bool), rho, high)
        except NotSolvedError:
            assert len(proofs) == 2
    if proofs:
        assert proofs[1].value >= proofs[0].value * (1 - 1e-12)
        assert proofs[1].value - proofs[1].gap <= proofs[0].value * (1 + 1e-12)


def wrong_reach(tree, rho, rng):
    """What even subtrees want, for the sums to be 1 at least, and anything for the rest."""
    right = wanted_reach(tree, rho)
    return np.where(tree.is_top, right, tree.level + rng.uniform(1, tree.height))


@contextmanager
def remembered():
    """What is proved meanwhile, whether it is good enough or not."""
    found = []

    def remember(y, rest, value, gap, relative, n_steps):
        found.append(Solution(y, value, gap, n_steps))
        return certified(y, rest, value, gap, relative, n_steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_range_proof, "certified", remember)
        yield found


# 2 and 4 have leaves that pull, and longer ways below them that allow less: this changes what 0 and 1 want
NESTED = Hierarchy.from_edges(
    [(0, 1), (1, 2), (2, 3), (3, 5), (5, 7), (7, 10), (1, 4), (4, 6), (6, 8), (8, 9)]
    + [(5, f"near {i}") for i in range(5)]
    + [(9, f"far {i}") for i in range(5)]
)


def test_guesses_are_mended(monkeypatch):
    """Where what is below may not have what it wants, what is above must be searched for."""
    for high in (1.13, 1.15, 1.17):
        with remembered() as proofs:
            ours = solve_range_tree(NESTED.graph, np.zeros(NESTED.n_nodes, dtype=bool), 5.0, high)
        assert proofs[0].n_steps > 1
        general = solve_constrained(NESTED.graph, np.zeros(NESTED.n_nodes, dtype=bool), 5.0, True, high)
        np.testing.assert_allclose(ours, general, atol=1e-9)
    monkeypatch.setattr(_range_sums, "_MOST_LOOKS", 1)
    with pytest.raises(NotSolvedError, match=r"Power\(rho=5.*tree, 21 nodes.*after 1 steps the relative duality gap"):
        node_weights(NESTED, "power", rho=5, directional=True, total=(1, 1.15), include_common=True)


PARENTS = "0 0 2 0 0 1 0 7 1 1 0 3 3 2 3 2 16 17 18 0 1 5 6 23 3 5 26 0 28 6 30 7 3 6 0 9 7 37 12 1 40 41 42 43 44"


def test_a_whole_number_at_the_upper_end():
    """The root and a node far below are held at the upper end and reach whole numbers, where slopes jump."""
    h = Hierarchy.from_edges([(int(parent), child) for child, parent in enumerate(PARENTS.split(), 1)])
    out = np.zeros(h.n_nodes, dtype=bool)
    with remembered() as proofs:
        ours = solve_range_tree(h.graph, out, 1.1, 4 / 3)
    assert proofs[0].gap <= 1e-13 * proofs[0].value
    check_feasible(h, out, ours, 4 / 3)
    assert (ours**1.1).sum() == pytest.approx(
        (solve_constrained(h.graph, out, 1.1, True, 4 / 3) ** 1.1).sum(), rel=1e-9
    )


def test_on_a_large_tree():
    """20,000 nodes; what is proved of the folded tree is true of the whole."""
    h = random_hierarchy(20_000, 0)
    for rho in (1.1, 2.0, 5.0, 100.0):
        with remembered() as proofs:
            alpha = node_weights(h, "power", rho=rho, directional=True, total=(1, 1.5), include_common=True)
        check_feasible(h, np.zeros(h.n_nodes, dtype=bool), alpha, 1.5)
        assert proofs[0].gap <= 1e-13 * proofs[0].value
        assert (alpha**rho).sum() ** (1 / rho) == pytest.approx(proofs[0].value, rel=1e-12)


def test_above_what_powers_can_tell():
    """Beyond ρ = 10⁷ the general method takes over; the largest weight hardly changes any more."""
    steep, steeper = (
        node_weights(NESTED, "power", rho=rho, directional=True, total=(1, 1.15), include_common=True).max()
        for rho in (1e6, 1e9)
    )
    assert steeper == pytest.approx(steep, rel=1e-5)


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
    monkeypatch.setattr("nhsvm.weights._range_tree.solve_range", None)
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
        np.testing.assert_allclose(alpha, [expected.get(n, t) for n in h.nodes], atol=1e-14)
