"""Generated texts of the shapes of the paper's Table 2."""

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest

SCALE = Path(__file__).parents[2] / "benchmarks" / "scale"

before = list(sys.path)
sys.path.append(str(SCALE))
import shapes  # noqa: E402

sys.path[:] = before  # its files have names that folders of tests have too

# of the paper: samples, features, nodes, leaves, labels a sample, and whether the graph is a tree
TABLE_2 = {
    "ipc": (75_000, 228_000, 553, 451, 1, True),
    "wiki_d5": (41_000, 1_000, 1_512, 1_218, 1.1, False),
    "imagenet": (100_000, 51_000, 1_676, 1_000, 1, False),
    "dmoz10": (163_000, 165_000, 17_221, 12_294, 1, True),
    "wiki": (456_000, 346_000, 50_312, 36_504, 1.8, False),
}


@pytest.mark.parametrize("name", TABLE_2)
def test_numbers_of_the_paper(name):
    shape = shapes.SHAPES[name]
    *numbers, tree = TABLE_2[name]
    assert [shape.samples, shape.features, shape.nodes, shape.leaves, shape.labels] == numbers
    assert (shape.extra_edges == 0) == tree


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_what_is_made_has_the_shape(name):
    """Nodes, leaves, samples, features, labels, tree or DAG, and long tails; at a size that is made in no time."""
    shape = shapes.SHAPES[name]
    shape = shape.times(nodes=0.02, samples=0.02, features=max(0.02, 1_000 / shape.features))
    made = shapes.make(shape, n_test=50)
    h = made.hierarchy
    assert (h.n_nodes, len(h.leaves)) == (shape.nodes, shape.leaves)
    assert h.is_tree == (shape.extra_edges == 0)
    assert made.X.shape == (shape.samples, shape.features)
    assert made.X_test.shape == (50, shape.features)
    assert made.X.nnz > 20 * shape.samples
    sets = [[label] if isinstance(label, str) else label for label in made.y]
    assert all(set(labels) <= set(h.leaves) for labels in sets)
    if shape.labels > 1:
        assert np.mean([len(labels) for labels in sets]) == pytest.approx(shape.labels, rel=0.1)
    times = np.unique(np.concatenate([np.asarray(labels, dtype=str) for labels in sets]), return_counts=True)[1]
    assert times.max() > 3 * np.median(times)
    words = np.sort(np.bincount(made.X.indices, minlength=shape.features))[::-1]
    assert words[: shape.features // 100 + 1].mean() > 5 * words.mean()  # Zipf: few words are in most documents


def test_the_same_seed_makes_the_same_texts():
    first, again, other = (shapes.make(shapes.SHAPES["ipc"].scaled(0.002), n_test=5, seed=s) for s in (1, 1, 2))
    assert (first.X != again.X).nnz == 0
    np.testing.assert_array_equal(first.y, again.y)
    assert (first.X != other.X).nnz > 0


def test_sizes_and_factors():
    shape = shapes.SHAPES["dmoz10"].times(samples=2, nodes=0.5)
    assert (shape.samples, shape.features) == (326_000, 165_000)
    assert shape.nodes == pytest.approx(17_221 / 2, abs=1)
    assert shapes.factor("labels=1.5") == ("labels", 1.5)
    for wrong in ("foo=2", "samples", "samples=0"):
        with pytest.raises((argparse.ArgumentTypeError, ValueError)):
            shapes.factor(wrong)
    for wrong in ("0", "-1", "nan", "inf"):
        with pytest.raises(argparse.ArgumentTypeError, match="must be above 0"):
            shapes.positive(wrong)
