"""Class attributes, their kernel, and the penalty of leaf vectors."""

import numpy as np
import pytest
from hypothesis import given

from nhsvm import Hierarchy, node_weights
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.paper import class_attributes, label_kernel, label_penalty
from strategies import SPECIAL, hierarchies


@given(h=hierarchies())
def test_normalised_attributes_have_norm_one(h):
    rows = class_attributes(h, node_weights(h, "maxmin")).toarray()
    np.testing.assert_allclose((rows**2).sum(axis=1), 1)


@given(h=hierarchies())
def test_kernel_sums_the_weights_of_shared_ancestors(h):
    alpha = np.random.default_rng(h.n_nodes).exponential(size=h.n_nodes)
    weight = dict(zip(h.nodes, alpha, strict=True))
    expected = [[sum(weight[n] for n in h.closure(a) & h.closure(b)) for b in h.leaves] for a in h.leaves]
    np.testing.assert_allclose(label_kernel(h, alpha).toarray(), expected)


@given(h=hierarchies(12))
def test_penalty_is_the_inverse_kernel_form_and_is_attained(h):
    rng = np.random.default_rng(h.n_nodes)
    alpha, U = rng.exponential(size=h.n_nodes) + 0.1, rng.normal(size=(h.n_leaves, 3))
    K = label_kernel(h, alpha).toarray()
    penalty = label_penalty(h, alpha, U)
    assert penalty == pytest.approx(np.trace(U.T @ np.linalg.solve(K, U)))
    rows = alpha[:, None] * (h.graph.leaf_matrix().T @ np.linalg.solve(K, U))
    np.testing.assert_allclose(h.graph.leaf_matrix() @ rows, U, atol=1e-8)
    assert ((rows**2).sum(axis=1) / alpha).sum() == pytest.approx(penalty)


def test_what_no_node_can_carry_costs_infinitely_much():
    h = Hierarchy.from_edges([("r", "a"), ("r", "b")])
    only_root = [1.0, 0.0, 0.0]
    assert label_penalty(h, only_root, [[1.0], [1.0]]) == pytest.approx(1.0)
    assert label_penalty(h, only_root, [[1.0], [2.0]]) == np.inf


@pytest.mark.parametrize("alpha", [[1.0], [1, 1, 1, 1, 1, -1], [1, 1, 1, 1, 1, np.nan]])
def test_bad_weights(alpha):
    with pytest.raises(OptionError, match="node_weights must"):
        label_kernel(SPECIAL["diamond"], alpha)


@pytest.mark.parametrize("rows", [[1.0, 2.0, 3.0], [[1.0]], [[1.0], [2.0], [np.nan]], [["a"]] * 3, [[1], [1, 2], [3]]])
def test_bad_leaf_rows(rows):
    h = SPECIAL["diamond"]
    with pytest.raises(NHSVMError, match="leaf_rows must"):
        label_penalty(h, np.ones(h.n_nodes), rows)
