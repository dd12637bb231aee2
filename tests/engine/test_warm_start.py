"""Dual variables that go from one C to the next stay feasible, and those of free samples stay what they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nhsvm import NHSVM, Hierarchy
from nhsvm.engine.dual.block import warm_start_factors
from nhsvm.engine.dual.marginals import Marginals
from nhsvm.engine.dual.planes import Planes
from nhsvm.hierarchy.graph import Ragged

costs = st.floats(1e-3, 1e3)


@given(st.lists(st.tuples(st.floats(0, 1), costs, costs), min_size=1, max_size=8))
def test_carried_variables_are_feasible(samples):
    share, before, now = map(np.array, zip(*samples, strict=True))
    factors = warm_start_factors(share * before, before, now)
    assert (factors * share * before <= now * (1 + 1e-12)).all()
    assert (factors >= 0).all()


def test_bound_samples_grow_and_free_ones_stay():
    before, now = np.ones(3), np.full(3, 4.0)
    np.testing.assert_array_equal(warm_start_factors(np.array([1.0, 0.5, 0.0]), before, now), [2.0, 1.0, 1.0])


def test_a_smaller_C_shrinks_only_what_is_too_large():
    before, now = np.ones(3), np.full(3, 0.25)
    np.testing.assert_allclose(warm_start_factors(np.array([1.0, 0.5, 0.2]), before, now), [0.25, 0.5, 1.0])


def test_samples_come_and_go():
    np.testing.assert_array_equal(
        warm_start_factors(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([1.0, 0.0])), [0.0, 0.0]
    )


def test_planes():
    planes = Planes(2)
    planes.count[:] = planes.room[:] = [2, 1]
    planes.start[:] = [0, 2]
    planes.weight[:3] = [0.6, 0.4, 0.3]
    planes.warm_start(np.ones(2), np.full(2, 4.0))
    np.testing.assert_allclose(planes.weight[:3], [1.2, 0.8, 0.3])


@pytest.mark.parametrize("factor", [0.1, 1.0, 7.0])
def test_marginals_are_those_of_a_mix_of_label_sets(factor):
    """Nodes a > b, a > c; the truth is {a, b}, and some weight is on {a, c}, all of it in the second sample."""
    above = Ragged(np.array([0, 0, 1, 2]), np.array([0, 0], dtype=np.int32))
    truth = Ragged(np.array([0, 2, 4]), np.array([0, 1, 0, 1], dtype=np.int32))
    marginals = Marginals(truth, np.ones(2), above)
    marginals.start[:], marginals.count[:], marginals.room[:] = [0, 3], [3, 2], [3, 2]
    marginals.column = np.array([0, 1, 2, 0, 2], dtype=np.int32)
    marginals.z = np.array([1.0, 0.7, 0.3, 1.0, 1.0])
    marginals.warm_start(np.ones(2), np.full(2, factor))
    share = min(factor, 1.0)
    expected = [factor, factor - 0.3 * share, 0.3 * share, factor, factor]
    np.testing.assert_allclose(marginals.z, expected)


def test_a_path_goes_on_near_the_solution_where_C_is_large():
    """It hardly changes there, and neither do the dual variables: most of the way to it is saved."""
    rng = np.random.default_rng(0)
    h = Hierarchy.from_edges([("a", "b"), ("a", "c")], nodes=["d"])
    y = np.array(["b", "c", "d"] * 40)
    X = rng.normal(size=(120, 60)) + np.repeat(np.eye(3), 20, axis=1)[np.searchsorted(["b", "c", "d"], y)]
    model = NHSVM(h, C=100, warm_start=True).fit(X, y)
    alone = NHSVM(h, C=1000).fit(X, y)
    assert model.set_params(C=1000).fit(X, y).history_[0]["gap"] < 0.1 < 0.9 < alone.history_[0]["gap"]
    assert model.objective_ == pytest.approx(alone.objective_, rel=2e-3)
