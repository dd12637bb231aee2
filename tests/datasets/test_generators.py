"""The paper's two sets, made-up text, and docstrings."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nhsvm import Hierarchy
from nhsvm.datasets import Dataset, Skipped, load_docstrings, make_balanced, make_text, make_unbalanced
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.hierarchy import VirtualLeaf
from strategies import SPECIAL, random_hierarchy


def test_balanced():
    data = make_balanced(500, 20, random_state=0)
    assert data.X.shape == (500, 20)
    assert data.hierarchy == Hierarchy.from_edges([(k // 2, k) for k in range(2, 16)])
    assert set(data.y.tolist()) <= set(range(8, 16))
    again = make_balanced(500, 20, random_state=np.random.default_rng(0))
    np.testing.assert_array_equal(data.X, again.X)
    np.testing.assert_array_equal(data.y, again.y)
    assert (make_balanced(500, 20, random_state=1).y != data.y).any()
    assert make_balanced(10, 3, levels=2, random_state=0).hierarchy.n_leaves == 2


def test_balanced_labels_have_the_highest_potential():
    data, rng = make_balanced(50, 6, levels=3, random_state=3), np.random.default_rng(3)
    W = rng.standard_normal((7, 6))
    X = rng.standard_normal((50, 6))
    potential = {leaf: X @ (W[leaf - 1] + W[leaf // 2 - 1] + W[0]) for leaf in range(4, 8)}
    want = [max(potential, key=lambda leaf: potential[leaf][i]) for i in range(50)]
    assert data.y.tolist() == want


def test_balanced_by_inner_vectors_only():
    rng = np.random.default_rng(3)
    W, X = rng.standard_normal((7, 6)), rng.standard_normal((50, 6))
    led = make_balanced(50, 6, levels=3, assign="top_down", random_state=3).y.tolist()
    signed = make_balanced(50, 6, levels=3, assign="signs", random_state=3).y.tolist()
    for x, down, highest in zip(X, led, signed, strict=True):
        right = x @ W[0] > 0
        assert down == 4 + 2 * right + (x @ W[1 + right] > 0)
        potential = {
            4 + 2 * a + b: (2 * a - 1) * (x @ W[0]) + (2 * b - 1) * (x @ W[1 + a]) for a in (0, 1) for b in (0, 1)
        }
        assert highest == max(potential, key=potential.__getitem__)
    with pytest.raises(OptionError, match="assign must be"):
        make_balanced(10, 3, assign="all")


def test_unbalanced():
    data = make_unbalanced(20_000, 15, random_state=0)
    assert (data.hierarchy.n_nodes, data.hierarchy.n_leaves) == (21, 11)
    assert max(data.hierarchy.depth(leaf) for leaf in data.hierarchy.leaves) == 10
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1)
    assert abs((data.y == "leaf1").mean() - 1 / 2) < 0.05
    assert make_unbalanced(30, 2, depth=1, random_state=0).hierarchy.leaves == ("leaf1", "leaf2")


def test_unbalanced_leaves_are_cut_off_one_after_the_other():
    data, rng = make_unbalanced(300, 5, depth=4, random_state=7), np.random.default_rng(7)
    X = rng.standard_normal((300, 5))
    cuts = rng.standard_normal((5, 4))
    for x, label in zip(X, data.y, strict=True):
        k = next((k for k in range(4) if x @ cuts[:, k] <= 0), 4)
        assert label == f"leaf{k + 1}"


def test_unbalanced_with_random_offsets():
    data, rng = make_unbalanced(300, 5, depth=4, share="random", random_state=7), np.random.default_rng(7)
    X = rng.standard_normal((300, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    cuts, offsets = rng.standard_normal((5, 4)), rng.standard_normal(4)
    left = list(range(300))
    for k in range(4):
        sides = [[i for i in left if (X[i] @ cuts[:, k] > offsets[k]) == side] for side in (True, False)]
        leaf, left = sorted(sides, key=len)
        assert np.flatnonzero(data.y == f"leaf{k + 1}").tolist() == leaf
    assert np.flatnonzero(data.y == "leaf5").tolist() == left


@pytest.mark.parametrize("name", SPECIAL)
def test_text_for_any_hierarchy(name):
    h = SPECIAL[name]
    data = make_text(h, 40, 200, random_state=0)
    assert data.X.shape == (40, 200)
    assert data.X.dtype == np.float64
    assert data.X.has_canonical_format
    assert set(data.y) <= set(h.leaves)
    assert data.X.sum(axis=1).min() >= 1


def test_text_statistics():
    h = random_hierarchy(60, 0, roots=2, extra=0.5)
    data = make_text(h, 5000, 3000, mean_length=80, random_state=0)
    assert set(data.y) == set(h.leaves)
    lengths = np.asarray(data.X.sum(axis=1)).ravel()
    assert 72 < lengths.mean() < 88
    sizes = np.sort(np.unique(data.y, return_counts=True)[1])
    assert sizes[-1] > 4 * np.median(sizes)
    words = np.asarray(data.X.sum(axis=0)).ravel()
    assert words[:30].sum() > words[300:330].sum() * 5
    even = make_text(h, 5000, 3000, mean_length=5, class_exponent=0, random_state=0)
    sizes = np.unique(even.y, return_counts=True)[1]
    assert sizes.max() < 1.5 * sizes.min()


def test_text_is_about_its_label():
    """Centroids of the training half say the label of the other half, and relatives are more alike than strangers."""
    h = Hierarchy.from_edges([(top, f"{top}{k}") for top in "ab" for k in range(3)])
    data = make_text(h, 2000, 1000, topic_share=0.4, random_state=0)
    X = sp.diags_array(1 / np.asarray(data.X.sum(axis=1)).ravel()) @ data.X
    centre = np.array([np.asarray(X[:1000][data.y[:1000] == leaf].mean(axis=0)).ravel() for leaf in h.leaves])
    centre -= centre.mean(axis=0)
    found = np.array(h.leaves)[(X[1000:] @ centre.T - (centre**2).sum(axis=1) / 2).argmax(axis=1)]
    assert (found == data.y[1000:]).mean() > 0.7
    alike = np.corrcoef(centre)
    assert alike[:3, :3].sum() - 3 > alike[:3, 3:].sum()


def test_several_labels_and_labels_on_inner_nodes():
    h = random_hierarchy(40, 1)
    data = make_text(h, 3000, 100, labels_per_sample=1.8, mean_length=3, random_state=0)
    assert data.is_multilabel
    mean = np.mean([len(labels) for labels in data.y])
    assert 1.5 < mean <= 1.8
    assert all(len(set(labels)) == len(labels) > 0 for labels in data.y)
    inner = make_text(h, 3000, 100, inner_share=0.3, mean_length=3, random_state=0)
    share = np.mean([not h.is_leaf(label) for label in inner.y])
    assert 0.2 < share < 0.35


def test_text_knows_virtual_leaves_by_their_names():
    h = Hierarchy.from_edges([("a", "b"), ("a", "c")]).with_virtual_leaves(["a"])
    y = make_text(h, 50, 20, random_state=0).y
    assert set(y) == {"a", "b", "c"}
    assert not any(isinstance(label, VirtualLeaf) for label in y)


def test_texts_are_the_counts_in_words():
    h = random_hierarchy(10, 0)
    counts, texts = (make_text(h, 50, 30, output=output, random_state=4) for output in ("counts", "texts"))
    assert texts.X is None
    np.testing.assert_array_equal(counts.y, texts.y)
    for row, text in zip(counts.X.toarray(), texts.texts, strict=True):
        want = np.zeros(30)
        np.add.at(want, [int(word[1:]) for word in text.split()], 1)
        np.testing.assert_array_equal(row, want)


def test_text_is_made_in_parts(monkeypatch):
    import nhsvm.datasets.generators as module

    monkeypatch.setattr(module, "CHUNK", 7)
    data = make_text(random_hierarchy(10, 0), 50, 30, random_state=4)
    assert data.X.shape == (50, 30)
    assert len(data.y) == 50


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: make_balanced(0), "n_samples must be at least 1"),
        (lambda: make_balanced(2.5), "n_samples must be a whole number"),
        (lambda: make_balanced(3, 3, levels=1), "levels must be from 2 to 20"),
        (lambda: make_unbalanced(3, 3, depth=0), "depth must be from"),
        (lambda: make_unbalanced(3, 3, random_state="x"), "random_state must be"),
        (lambda: make_text(SPECIAL["diamond"], topic_share=1), "topic_share must be between"),
        (lambda: make_text(SPECIAL["diamond"], topic_share="x"), "topic_share must be a number"),
        (lambda: make_text(SPECIAL["diamond"], labels_per_sample=0.5), "labels_per_sample must be at least 1"),
        (lambda: make_text(SPECIAL["diamond"], output="words"), "output must be"),
    ],
)
def test_bad_options(call, problem):
    with pytest.raises(OptionError, match=problem):
        call()


def test_text_needs_a_hierarchy():
    with pytest.raises(NHSVMError, match="must be a Hierarchy"):
        make_text([("a", "b")])


def test_docstrings():
    data = load_docstrings()
    assert len(data) > 3000
    assert len(set(data.texts)) == len(data.texts)
    assert data.hierarchy.is_tree
    assert set(data.y) <= set(data.hierarchy.nodes)
    assert data.hierarchy.parents("scipy.sparse.linalg") == {"scipy.sparse"}
    assert not any("._" in label or ".tests" in label for label in data.y)
    assert load_docstrings().texts == data.texts
    assert load_docstrings().texts is not data.texts  # a user may change it
    where = data.y[next(i for i, text in enumerate(data.texts) if text.startswith("Solve a linear matrix equation"))]
    assert where == "numpy.linalg"


def test_how_data_sets_look():
    h = SPECIAL["diamond"]
    data = Dataset([["x"], ["y", "z"]], h, texts=["a", "b"])
    assert repr(data).startswith("Dataset(2 samples with texts, 1.50 labels on average, Hierarchy(DAG")
    X = np.zeros((3, 2), dtype=np.float32)
    data = Dataset(None, None, X, skipped=Skipped(4, ((1, "why"),)))
    assert repr(data) == "Dataset(3 samples, 2 features (dense float32), no labels, no hierarchy, 4 skipped)"
    assert len(data) == 3
    assert str(data.skipped) == "4 skipped; line 1: why; ..."
    assert len(Dataset(["x"], h)) == 1
