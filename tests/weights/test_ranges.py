"""Trees with the directional constraint and sums in a range: the one scheme without a closed form on trees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import Hierarchy, node_weights
from nhsvm.weights import interior, steep
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


@given(
    h=trees(40), log_rho=st.floats(-6, 12), log_width=st.floats(-5.9, 1), common=st.booleans(), low=st.floats(0.3, 2)
)
def test_every_tree_is_solved(h, log_rho, log_width, common, low):
    """A gap that cannot be proved is an error; constraints hold to rounding."""
    high = 1 + 10**log_width
    alpha = node_weights(
        h, "power", rho=1 + 10**log_rho, directional=True, total=(low, low * high), include_common=common
    )
    check_feasible(h, h.graph.is_common & (not common), alpha / low, high)


@given(h=trees(), rho=st.floats(1.05, 8), high=st.floats(1.001, 4))
def test_both_methods_agree(h, rho, high):
    """The one for large ρ works with the norm, and proves it by another inequality."""
    norms = []
    for limit in (8.0, 1.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("nhsvm.weights.power.STEEP", limit)
            alpha = node_weights(h, "power", rho=rho, directional=True, total=(1, high))
        norms.append((alpha**rho).sum() ** (1 / rho))
    assert norms[0] == pytest.approx(norms[1], rel=2e-8)


# 2 and 4 have leaves that pull, and longer ways below them that allow less: this changes what 0 and 1 want
NESTED = Hierarchy.from_edges(
    [(0, 1), (1, 2), (2, 3), (3, 5), (5, 7), (7, 10), (1, 4), (4, 6), (6, 8), (8, 9)]
    + [(5, f"near {i}") for i in range(5)]
    + [(9, f"far {i}") for i in range(5)]
)


PARENTS = "0 0 2 0 0 1 0 7 1 1 0 3 3 2 3 2 16 17 18 0 1 5 6 23 3 5 26 0 28 6 30 7 3 6 0 9 7 37 12 1 40 41 42 43 44"
# the root and a node far below are held at the upper end, 4/3
HELD = Hierarchy.from_edges([(int(parent), child) for child, parent in enumerate(PARENTS.split(), 1)])


@pytest.mark.parametrize(
    ("h", "rho", "high"), [(NESTED, 5.0, 1.13), (NESTED, 5.0, 1.15), (NESTED, 5.0, 1.17), (HELD, 1.1, 4 / 3)]
)
def test_where_what_is_below_changes_what_is_above(h, rho, high):
    options = {"rho": rho, "directional": True, "total": (1, high)}
    ours = node_weights(h, "power", **options, include_common=True)
    check_feasible(h, np.zeros(h.n_nodes, dtype=bool), ours, high)
    theirs = reference.power(h, **options, common=True, feasible=1e-8)
    assert (ours**rho).sum() <= (np.abs(theirs) ** rho).sum() * (1 + 1e-7)
    np.testing.assert_allclose(ours, theirs, atol=5e-6)


@pytest.mark.parametrize(("n_nodes", "rho"), [(5_000, 1.1), (20_000, 2.0), (3_000, 100.0)])
def test_on_a_large_tree(n_nodes, rho, monkeypatch):
    proofs = []

    def remember(*given):
        proofs.append(certified(*given))
        return proofs[-1]

    certified = interior.certified
    for module in (interior, steep):
        monkeypatch.setattr(module, "certified", remember)
    h = random_hierarchy(n_nodes, 0)
    alpha = node_weights(h, "power", rho=rho, directional=True, total=(1, 1.5), include_common=True)
    check_feasible(h, np.zeros(h.n_nodes, dtype=bool), alpha, 1.5)
    assert proofs[0].gap <= 1e-10 * proofs[0].value


def test_for_huge_rho_the_largest_weight_hardly_changes():
    steep_one, steeper = (
        node_weights(NESTED, "power", rho=rho, directional=True, total=(1, 1.15), include_common=True).max()
        for rho in (1e6, 1e9)
    )
    assert steeper == pytest.approx(steep_one, rel=1e-5)


@pytest.mark.parametrize("name", ["one node", "isolated roots", "chain", "star"])
def test_even_trees_make_no_use_of_the_range(name):
    h = SPECIAL[name]
    alpha = node_weights(h, "power", directional=True, total=(1, 2), include_common=True)
    exact = node_weights(h, "power", directional=True, include_common=True)
    np.testing.assert_allclose(alpha, exact, atol=1e-6)


def test_a_worked_tree():
    """Two leaves and a chain of five below the root, ρ = 2.

    All of the chain has the root's weight t, and the leaves 1 − t: 6t² + 2(1−t)² is least at t = 1/4. That makes the
    long path 1.5. If it may be 1.2 only, t = 0.2; if it must be 1, t = 1/6.
    """
    h = Hierarchy.from_edges([("r", "x"), ("r", "y"), ("r", 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    for high, t in ((3.0, 1 / 4), (1.2, 0.2), (1.0, 1 / 6)):
        alpha = node_weights(h, "power", directional=True, total=(1, high), include_common=True)
        expected = {"r": t, "x": 1 - t, "y": 1 - t}
        np.testing.assert_allclose(alpha, [expected.get(n, t) for n in h.nodes], atol=1e-7)
