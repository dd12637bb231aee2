"""The definitions themselves, given to Clarabel."""

from __future__ import annotations

import numpy as np
import pytest

from nhsvm.norms import max_norm, node_penalty, shared_norm, structured_shared_norm
from norms import conic
from norms.matrices import KINDS, random_matrix
from strategies import random_hierarchy

SEEDS = range(36)


def some_matrix(seed):
    rng = np.random.default_rng(seed)
    U = random_matrix(*rng.integers(1, 7, size=2), KINDS[seed % len(KINDS)], seed)
    return U / (np.abs(U).max() or 1.0)  # Clarabel wants numbers of order 1


@pytest.mark.parametrize("seed", SEEDS)
def test_shared_norm(seed):
    U = some_matrix(seed)
    assert shared_norm(U, tol=1e-8) == pytest.approx(conic.shared_norm(U), rel=3e-5, abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_max_norm(seed):
    U = some_matrix(seed)
    assert max_norm(U, tol=1e-8) == pytest.approx(conic.max_norm(U), rel=3e-5, abs=1e-5)


def some_hierarchy(seed):
    rng = np.random.default_rng(seed)
    return random_hierarchy(int(rng.integers(1, 14)), seed, roots=1 + seed % 3, extra=0.5 * (seed % 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_structured_shared_norm(seed):
    h = some_hierarchy(seed)
    U = random_matrix(h.n_leaves, 1 + seed % 4, KINDS[seed % len(KINDS)], seed)
    U = U / (np.abs(U).max() or 1.0)
    assert structured_shared_norm(U, h) == pytest.approx(conic.structured_shared_norm(U, h), rel=3e-5, abs=3e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_node_penalty(seed):
    h = some_hierarchy(seed)
    rng = np.random.default_rng(seed)
    lengths = rng.random(h.n_nodes) * (rng.random(h.n_nodes) < 0.7)
    expected = conic.node_penalty(lengths, h) if lengths.any() else 0.0
    assert node_penalty(lengths, h) == pytest.approx(expected, rel=1e-5)
