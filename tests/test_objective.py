"""The formulas of the learning problem against loops, and weak duality."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import objective
from nhsvm.losses import make_loss
from reference.oracles import leaf_sums, random_alpha, values
from strategies import hierarchies

seeds = st.integers(0, 2**32)
MARGINS = st.sampled_from([("zero_one", False), ("hamming", False), ("normalized", False), ("normalized", True)])


@given(hierarchies(), seeds)
def test_joint_feature_gives_the_score_of_a_leaf(h, seed):
    """Eq. 1: γ(x, y) = <U, ∧(y) ⊗ x>."""
    rng = np.random.default_rng(seed)
    U, x = rng.normal(size=(h.n_nodes, 3)), rng.normal(size=3)
    scores = leaf_sums(h, U @ x)
    for k in range(h.n_leaves):
        feature = objective.joint_feature(h.graph, k, x)
        assert np.sum(U * feature) == pytest.approx(scores[k], rel=1e-12, abs=1e-12)
        inside = set(h.graph.leaf_ancestors.row(k).tolist())
        for n in range(h.n_nodes):
            assert feature[n].tolist() == (x.tolist() if n in inside else [0, 0, 0])


def test_joint_feature_takes_lists():
    from strategies import SPECIAL

    feature = objective.joint_feature(SPECIAL["one node"].graph, 0, [1, 2])
    assert feature.dtype == np.float64
    assert feature.tolist() == [[1, 2]]


@given(hierarchies(), seeds)
def test_penalty_is_that_of_the_scaled_weights(h, seed):
    """Eq. 11 is ½‖W‖² of Eq. 10 with U_n = √α_n W_n."""
    rng = np.random.default_rng(seed)
    alpha = random_alpha(h, seed)
    W = rng.normal(size=(h.n_nodes, 4)) * (alpha > 0)[:, None]
    U = np.sqrt(alpha)[:, None] * W
    assert objective.penalty((U**2).sum(axis=1), alpha) == pytest.approx(0.5 * (W**2).sum(), rel=1e-12)


@given(hierarchies(), seeds, MARGINS)
def test_loss_augmented(h, seed, margin):
    name, normalized = margin
    rng = np.random.default_rng(seed)
    loss = make_loss(name, h, random_alpha(h, seed))
    node_scores = rng.normal(size=(5, h.n_nodes))
    leaves = rng.integers(h.n_leaves, size=5)
    found = objective.loss_augmented(
        np.array([leaf_sums(h, s) for s in node_scores]), leaves, loss.to_leaves(leaves), normalized
    )
    expected = [values(h, s, y, loss, normalized) for s, y in zip(node_scores, leaves, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert (found[np.arange(5), leaves] == 0).all()


def test_values_by_hand():
    assert objective.primal(2.0, np.array([0.5, 3.0, 1.0]), np.array([2.0, 1.0, 0.0])) == 6.0
    assert objective.dual(2.0, 5.0) == 3.0
    assert objective.relative_gap(4.0, 3.0) == objective.Certificate(4.0, 3.0).gap == 0.25
    assert objective.relative_gap(0.0, 0.0) == 0.0
    assert objective.relative_gap(0.0, -1.0) == np.inf


@given(hierarchies(15), seeds, MARGINS)
def test_weak_duality(h, seed, margin):
    """primal(U) ≥ dual(a) for any U at all and any feasible a; equality is what a solver is after."""
    name, normalized = margin
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    alpha = random_alpha(h, seed) if name == "normalized" else np.ones(h.n_nodes)  # Eq. 3 has α = 1
    loss = make_loss(name, h, alpha)
    X, leaves = rng.normal(size=(n, d)), rng.integers(h.n_leaves, size=n)
    costs = rng.random(n) * rng.choice([0.0, 0.1, 10.0], size=n)
    table = loss.to_leaves(leaves)
    apart = table > 0
    kappa = np.where(apart, 1 / np.where(apart, table, 1), 0.0) if normalized else np.ones_like(table)
    losses = apart.astype(float) if normalized else table
    a = rng.dirichlet(np.full(h.n_leaves, 0.5), size=n) * costs[:, None]  # Σ_l a_il = C_i
    V = np.zeros((h.n_nodes, d))
    for i in range(n):
        for k in range(h.n_leaves):
            V[h.graph.leaf_ancestors.row(leaves[i])] += a[i, k] * kappa[i, k] * X[i]
            V[h.graph.leaf_ancestors.row(k)] -= a[i, k] * kappa[i, k] * X[i]
    own = alpha[:, None] * V
    lower = objective.dual(objective.penalty((own**2).sum(axis=1), alpha), float((a * losses).sum()))
    for U in (np.zeros_like(own), own, rng.normal(size=own.shape) * (alpha > 0)[:, None], own * rng.random()):
        scores = np.array([leaf_sums(h, U @ x) for x in X])
        slacks = objective.loss_augmented(scores, leaves, table, normalized).max(axis=1)
        upper = objective.primal(objective.penalty((U**2).sum(axis=1), alpha), slacks, costs)
        assert upper >= lower - 1e-12 * max(1.0, abs(upper))
        # the difference by its definition: Fenchel–Young of the penalty, and slacks that exceed the mean value
        mean = (a * objective.loss_augmented(scores, leaves, table, normalized)).sum()
        apart_by = objective.penalty(((U - own) ** 2).sum(axis=1), alpha)
        assert upper - lower == pytest.approx(costs @ slacks - mean + apart_by, rel=1e-9, abs=1e-9)
