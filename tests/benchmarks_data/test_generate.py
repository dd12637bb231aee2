"""The generator and the split behind the benchmarks: what they claim about their data is true."""

import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")

sys.path.append(BENCHMARKS)
from data import Problem, stratified_split  # noqa: E402
from generate import text_like  # noqa: E402

sys.path.remove(BENCHMARKS)  # its files have names that folders of tests have too


@pytest.fixture(scope="module")
def problem() -> Problem:
    return text_like(2000, 5000, 60, seed=3)


def test_sizes(problem):
    assert problem.X_train.shape == (2000, 5000)
    assert problem.X_test.shape == (500, 5000)
    assert len(problem.y_train) == 2000
    assert problem.hierarchy.n_leaves == 60
    assert problem.hierarchy.is_tree
    assert {problem.hierarchy.depth(leaf) for leaf in problem.hierarchy.leaves} == {2}


def test_every_class_is_seen_and_sizes_have_a_long_tail(problem):
    classes, sizes = np.unique(problem.y_train, return_counts=True)
    assert set(classes) == set(problem.hierarchy.leaves)
    assert sizes.max() > 5 * np.median(sizes)


def test_rows_are_text_like(problem):
    norms = np.sqrt(problem.X_train.multiply(problem.X_train).sum(axis=1))
    np.testing.assert_allclose(norms, 1)
    distinct = np.diff(problem.X_train.indptr)
    assert 80 < distinct.mean() < 120
    assert distinct.max() > 3 * distinct.mean()
    frequency = np.sort(np.bincount(problem.X_train.indices, minlength=5000))[::-1]
    assert frequency[:50].sum() > 0.2 * frequency.sum()


def test_same_seed_same_data(problem):
    again, other = (text_like(2000, 5000, 60, seed=seed) for seed in (3, 4))
    assert (again.X_train != problem.X_train).nnz == 0
    assert again.hierarchy == problem.hierarchy
    np.testing.assert_array_equal(again.y_test, problem.y_test)
    assert (other.X_train != problem.X_train).nnz > 0


def test_save_and_load(problem, tmp_path):
    problem.save(tmp_path / "problem.pkl")
    loaded = Problem.load(tmp_path / "problem.pkl")
    assert loaded.hierarchy == problem.hierarchy
    assert str(loaded) == str(problem)
    assert (loaded.X_test != problem.X_test).nnz == 0


@pytest.mark.parametrize("share", [0.2, 0.25, 0.5])
def test_stratified_split(share):
    sizes = np.array([1] * 40 + [2] * 40 + [3] * 30 + [50, 200])
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes)).astype(str)
    keep, out = stratified_split(y, share, seed=1)
    np.testing.assert_array_equal(np.sort(np.concatenate([keep, out])), np.arange(len(y)))
    assert set(y[keep]) == set(y)  # no label is lost to training
    repeated = (len(y) - 40) * share
    assert abs(len(out) - repeated) <= 1
    assert abs((y[out] == "111").sum() - 200 * share) <= 1
    rare = np.isin(y[out], [str(i) for i in range(40, 110)]).sum()
    assert abs(rare - 170 * share) <= 2  # rare labels are held out in proportion
