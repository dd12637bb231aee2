"""What every scheme promises, and the closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import Hierarchy, node_weights
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.weights import Maxmin, Power
from nhsvm.weights.fold import tree_like
from nhsvm.weights.power import solve_constrained
from strategies import SPECIAL, dags, hierarchies, random_hierarchy, trees

NORMALISED = [
    ("flat", {}),
    ("maxmin", {}),
    ("power", {}),
    ("power", {"rho": 1.05}),
    ("power", {"rho": 7.0}),
    ("power", {"directional": True}),
]


def path_sums(h, alpha):
    return h.graph.leaf_matrix() @ alpha


def edge_rise(h, alpha):
    """α_child − α_parent over the edges whose parent is not left out."""
    p, c = h.graph.edges()
    kept = ~h.graph.is_common[p]
    return (alpha[c] - alpha[p])[kept]


@pytest.mark.parametrize(("scheme", "options"), NORMALISED)
@given(h=hierarchies())
def test_every_path_sums_to_one(scheme, options, h):
    alpha = node_weights(h, scheme, **options)
    assert alpha.min() >= 0
    np.testing.assert_allclose(path_sums(h, alpha), 1, atol=1e-8)
    assert not alpha[h.graph.is_common].any()


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize(("scheme", "options"), NORMALISED)
def test_extreme_shapes(scheme, options, name):
    h = SPECIAL[name]
    np.testing.assert_allclose(path_sums(h, node_weights(h, scheme, **options)), 1, atol=1e-8)


@pytest.mark.parametrize("include_common", [False, True])
@given(h=hierarchies())
def test_shared_leaves_nothing_unused(include_common, h):
    norms = np.random.default_rng(h.n_nodes).exponential(size=h.n_nodes)
    norms[h.graph.is_common] *= include_common
    np.testing.assert_allclose(path_sums(h, node_weights(h, "shared", squared_norms=norms)), 1, atol=1e-8)


@given(h=hierarchies(), high=st.floats(1, 3), low=st.floats(0.3, 2), directional=st.booleans(), rho=st.floats(1.2, 4))
def test_sums_stay_in_range(h, high, low, directional, rho):
    total = (low, low * high)
    for scheme, options in [("maxmin", {}), ("power", {"rho": rho, "directional": directional})]:
        alpha = node_weights(h, scheme, total=total, **options)
        sums = path_sums(h, alpha)
        assert alpha.min() >= 0
        assert sums.min() >= low - 1e-8
        assert sums.max() <= low * high + 1e-8
        if directional:
            assert edge_rise(h, alpha).min(initial=0) >= -1e-8


@given(h=dags(), rho=st.floats(1.2, 4))
def test_relaxing_the_sums_costs_no_more(h, rho):
    exact = (node_weights(h, "power", rho=rho) ** rho).sum()
    relaxed = (node_weights(h, "power", rho=rho, total=(1, 1.5)) ** rho).sum()
    assert relaxed <= exact * (1 + 1e-8)


@given(h=trees())
def test_on_a_tree_relaxed_sums_are_exact(h):
    solved = solve_constrained(h.graph, h.graph.is_common, 2.0, False, 1.5)
    np.testing.assert_allclose(node_weights(h, "power", total=(1, 1.5)), solved, atol=1e-6)


@given(h=hierarchies())
def test_directional_weights_never_fall_along_an_edge(h):
    for options in [{"scheme": "maxmin"}, {"scheme": "power", "directional": True}]:
        assert edge_rise(h, node_weights(h, **options)).min(initial=0) >= -1e-8


@given(h=trees(), rho=st.floats(1.1, 6))
def test_on_a_tree_the_directional_optimum_does_not_depend_on_rho(h, rho):
    """The closed form, which does not know ρ, costs no more than what the general solver finds for that ρ."""
    closed = node_weights(h, "power", rho=rho, directional=True)
    solved = solve_constrained(h.graph, h.graph.is_common, rho, True, 1.0)
    assert (closed**rho).sum() <= (solved**rho).sum() * (1 + 1e-8)
    assert edge_rise(h, closed).min(initial=0) >= -1e-12


@given(h=hierarchies())
def test_maxmin_inner_nodes_get_the_least_and_leaves_the_rest(h):
    alpha = node_weights(h, "maxmin")
    kept = ~h.graph.is_common
    assert alpha[kept].min() == pytest.approx(1 / (h.graph.leaf_matrix() @ kept).max())
    inner = kept & ~h.graph.is_leaf
    np.testing.assert_array_equal(alpha[inner], alpha[kept].min() if inner.any() else [])


@given(h=dags(15))
def test_folding_changes_nothing(h):
    """Second parents above a tree-like part switch the closed form off there; α must not notice."""
    alpha = node_weights(h, "power", rho=2.0)
    unfolded = solve_constrained(h.graph, h.graph.is_common, 2.0, False, 1.0)
    np.testing.assert_allclose(alpha, unfolded, atol=1e-6)


@given(h=hierarchies())
def test_tree_like_means_no_second_parent_below(h):
    several = {n for n in h.nodes if len(h.parents(n)) > 1}
    expected = [not (h.descendants(n) & several) for n in h.nodes]
    np.testing.assert_array_equal(tree_like(h.graph), expected)


def test_flat_and_uniform():
    h = Hierarchy.from_edges([("r", "a"), ("a", "x"), ("a", "y"), ("r", "b")])
    assert dict(zip(h.nodes, node_weights(h, "flat"), strict=True)) == {"r": 0, "a": 0, "b": 1, "x": 1, "y": 1}
    assert dict(zip(h.nodes, node_weights(h, "uniform"), strict=True)) == {"r": 0, "a": 1, "b": 1, "x": 1, "y": 1}
    assert node_weights(h, "uniform", include_common=True).tolist() == [1, 1, 1, 1, 1]


def test_power_on_a_worked_tree():
    """ρ=2, root → a → {x, y}: at a, S=2 and k=2/3, c=2/3; at the root, S=2/3 and k=2/5."""
    h = Hierarchy.from_edges([("r", "a"), ("a", "x"), ("a", "y")])
    np.testing.assert_allclose(node_weights(h, "power", include_common=True), [2 / 5, 2 / 5, 1 / 5, 1 / 5])


def test_power_near_one_puts_everything_on_top():
    h = Hierarchy.from_edges([("a", "x"), ("a", "y"), ("b", "z"), ("b", "w")])
    np.testing.assert_allclose(node_weights(h, "power", rho=1.001), [1, 1, 0, 0, 0, 0], atol=1e-12)


def test_algorithm_1_on_a_worked_tree():
    """B: r=1, a=4, x=1, y=8, b=9. At a: S=9, k=2/5, N=25; at r: S=34, k=1/(1+√34)."""
    h = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "x"), ("a", "y")])
    norms = {"r": 1, "a": 4, "b": 9, "x": 1, "y": 8}
    alpha = node_weights(h, "shared", squared_norms=[norms[n] for n in h.nodes])
    k = 1 / (1 + np.sqrt(34))
    np.testing.assert_allclose(alpha, [k, (1 - k) * 2 / 5, 1 - k, (1 - k) * 3 / 5, (1 - k) * 3 / 5])


def test_shared_without_any_vector_is_flat():
    for h in SPECIAL.values():
        np.testing.assert_array_equal(
            node_weights(h, "shared", squared_norms=np.zeros(h.n_nodes)), node_weights(h, "flat")
        )


@given(h=hierarchies(), scale=st.floats(1e-12, 1e12))
def test_shared_does_not_depend_on_scale(h, scale):
    norms = np.random.default_rng(h.n_nodes).exponential(size=h.n_nodes)
    np.testing.assert_allclose(
        node_weights(h, "shared", squared_norms=scale * norms),
        node_weights(h, "shared", squared_norms=norms),
        atol=1e-7,
    )


def test_instances_and_functions_are_schemes():
    h = SPECIAL["diamond"]
    np.testing.assert_array_equal(node_weights(h, Power(rho=3)), node_weights(h, "power", rho=3))
    np.testing.assert_array_equal(node_weights(h, Maxmin()), node_weights(h))
    np.testing.assert_array_equal(node_weights(h, lambda g: np.ones(g.n_nodes)), np.ones(h.n_nodes))


@pytest.mark.parametrize(
    ("scheme", "options", "said"),
    [
        ("maximin", {}, "weights must be one of ['maxmin', 'power', 'uniform', 'flat', 'shared'], an instance"),
        ("power", {"rho": 1.0}, "rho must be a finite number > 1, not 1.0"),
        ("power", {"rho": float("nan")}, "rho"),
        ("power", {"rho": float("inf")}, "rho"),
        ("power", {"total": (1.5, 1)}, "total"),
        ("power", {"total": (0, 1)}, "total"),
        ("power", {"total": (1, float("inf"))}, "total"),
        ("power", {"total": 1}, "total must be a pair"),
        ("maxmin", {"total": (1, None)}, "total must be a pair"),
        ("flat", {"rho": 2}, "'flat' has no option 'rho'"),
        ("shared", {}, "needs squared_norms"),
        ("shared", {"squared_norms": [1.0]}, "one entry a node, 6, not shape (1,)"),
        ("shared", {"squared_norms": [1, 1, 1, -1, 1, 1]}, "squared_norms must be finite and ≥ 0, but 'x' has -1"),
        ("shared", {"squared_norms": ["a"] * 6}, "squared_norms must be numbers"),
        ("shared", {"squared_norms": [[1], [1, 2]]}, "squared_norms must be numbers"),
        ("shared", {"squared_norms": [1j] * 6}, "squared_norms must be numbers"),
        ("shared", {"squared_norms": [1, 1, 1, np.nan, 1, 1]}, "nan"),
        ("shared", {"squared_norms": [1, 1, 1, np.inf, 1, 1]}, "inf"),
        (Power(), {"rho": 2}, "go with the name"),
        (lambda h: np.ones(3), {}, "one entry a node, 6, not shape (3,)"),
        (lambda h: -np.ones(h.n_nodes), {}, "must be finite and ≥ 0, but 'r' has -1.0"),
        (None, {}, "not None"),
        (Power, {}, "an instance such as Power(rho=2)"),
        ("power", {"rho": "2"}, "rho must be a finite number > 1, not '2'"),
        ("power", {"rho": 2j}, "rho must be"),
        ("power", {"directional": "no"}, "directional must be True or False, not 'no'"),
        ("uniform", {"include_common": 1}, "include_common must be True or False, not 1"),
        ("power", {"total": ("1", "2")}, "total must be a pair"),
        ("power", {"total": (1, 1 + 1e-9)}, "narrower than 1e-06"),
    ],
)
def test_bad_options_are_named(scheme, options, said):
    with pytest.raises(OptionError) as caught:
        node_weights(SPECIAL["diamond"], scheme, **options)
    assert said in str(caught.value)


def test_no_hierarchy():
    with pytest.raises(NHSVMError, match="must be a Hierarchy, not a NoneType"):
        node_weights(None)


@pytest.mark.parametrize("directional", [False, True])
@pytest.mark.parametrize("total", [(1, 1), (1, 1.00001), (1, 1.01), (1, 1.5), (1, 1e6), (1, 1e300)])
@pytest.mark.parametrize("rho", [1.001, 1.1, 5.0, 8.0, 10.0, 16.0, 50.0, 100.0, 1000.0, 1e6])
def test_dags_are_solved_for_every_rho(rho, total, directional):
    """Nothing is said by the assertions but feasibility: a gap that cannot be proved is an error."""
    for seed in range(8):
        h = random_hierarchy(12 + 2 * seed, seed, roots=1 + seed % 2, extra=1.0)
        alpha = node_weights(h, "power", rho=rho, total=total, directional=directional)
        sums = path_sums(h, alpha)
        assert sums.min() >= 1 - 1e-8
        assert sums.max() <= total[1] + 1e-8
        assert alpha.max() <= 1 + 1e-8
