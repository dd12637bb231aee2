"""Pictures of hierarchies show the weights of their nodes."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from estimators.problems import DAG, TREE, make
from nhsvm import SSVM, Hierarchy
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.plots import plot_weights
from strategies import random_hierarchy

mpl.use("Agg")


def lengths_of(model):
    return np.sqrt((model.coef_**2).sum(axis=1) + model.intercept_**2)


def boxes(collection):
    """(left, right, top, bottom) of every rectangle."""
    corners = np.array([path.vertices[:4] for path in collection.get_paths()])
    return np.hstack([corners.min(axis=1), corners.max(axis=1)])[:, [0, 2, 1, 3]]


@pytest.mark.parametrize("hierarchy", [TREE, DAG], ids=["tree", "dag"])
def test_a_small_hierarchy_is_drawn_as_a_tree(hierarchy):
    model = SSVM(hierarchy).fit(*make(hierarchy))
    axes = plot_weights(model)
    cells, bars = axes.containers
    lengths = lengths_of(model)
    np.testing.assert_allclose([bar.get_width() for bar in bars], 1.8 * lengths / lengths.max(), rtol=1e-6)
    rows = [cell.get_y() for cell in cells]
    assert sorted(np.diff(sorted(rows)).round(9)) == [1.0] * (hierarchy.n_nodes - 1)
    assert len(axes.get_lines()) == hierarchy.n_nodes - len(hierarchy.roots)  # each but a root hangs from one parent
    texts = {text.get_text(): text.get_position() for text in axes.texts}
    for node, label in enumerate(hierarchy.nodes):
        first, *others = [n for n in hierarchy.nodes if n in hierarchy.parents(label)] or [None]
        x, y = texts[f"{label}  (also below {', '.join(others)})" if others else label]
        assert y == pytest.approx(rows[node] + 0.43)
        if first is not None:
            above = next(position for text, position in texts.items() if text.split()[0] == first)
            assert x > above[0]
            assert y > above[1]
    for node, weight in enumerate(model.node_weights_):
        assert f"{weight:.2f}" in [t.get_text() for t in axes.texts if t.get_position()[1] == rows[node] + 0.43]


def test_long_names_and_virtual_leaves():
    h = Hierarchy.from_edges([("x" * 60, "y"), ("x" * 60, "z")])
    X, y = make(h)
    model = SSVM(h).fit(X, [*y[:-3], *["x" * 60] * 3])
    texts = [text.get_text() for text in plot_weights(model).texts]
    assert "x" * 39 + "…" in texts
    assert f"({'x' * 38}…" in texts


@pytest.mark.parametrize("extra", [0.0, 0.3])
def test_a_large_hierarchy_is_drawn_as_an_icicle(extra):
    h = random_hierarchy(100, 0, roots=3, extra=extra)
    model = SSVM(h, tol=0.5).fit(*make(h, n_samples=h.n_leaves))
    axes = plot_weights(model)
    cells, bars = axes.collections
    found = boxes(cells)
    assert len(found) == h.n_nodes
    for level in range(h.graph.n_levels):  # no two of a level overlap
        row = found[h.graph.level == level]
        np.testing.assert_allclose(row[:, 2], level + 0.04)
        row = row[np.argsort(row[:, 0])]
        assert (row[1:, 0] >= row[:-1, 1] - 1e-9).all()
    lengths, (left, right, top, bottom) = lengths_of(model), boxes(bars).T
    np.testing.assert_allclose(bottom, h.graph.level + 0.98)
    cut = bottom - top > 0.34 - 1e-9
    assert (right - left)[cut].sum() <= 0.01 * (right - left).sum() + (right - left).max()
    assert lengths[cut].min() >= lengths[~cut].max()
    np.testing.assert_allclose((bottom - top)[~cut] / 0.34, lengths[~cut] / lengths[cut].min(), atol=1e-6)
    order = np.argsort(model.node_weights_)
    darkness = -cells.get_facecolors()[:, :3].sum(axis=1)
    assert (np.diff(darkness[order]) >= 0).all()
    assert darkness[order[-1]] > darkness[order[0]] + 1
    shares = [float(text.get_text().split()[-1]) for text in axes.get_yticklabels()]
    assert sum(shares) == pytest.approx((h.graph.leaf_matrix() @ model.node_weights_).mean(), abs=0.005 * len(shares))


@pytest.mark.parametrize(
    ("n_groups", "shown"), [(2, "a rather long name"), (10, "a rather lo…"), (35, None)], ids=["fits", "cut", "no room"]
)
def test_names_where_there_is_room(n_groups, shown):
    names = [f"a rather long name {k}" for k in range(n_groups)]
    h = Hierarchy.from_edges([(name, f"{name}, {i}") for name in names for i in range(70 // n_groups)])
    model = SSVM(h, tol=0.5).fit(*make(h, n_samples=h.n_leaves))
    _, axes = plt.subplots()
    assert plot_weights(model, axes) is axes
    texts = [text.get_text() for text in axes.texts]
    assert len(texts) == (n_groups if shown else 0)
    assert all(text.startswith(str(shown)) for text in texts)


def test_weights_of_what_is_not_fitted():
    with pytest.raises(NHSVMError, match="fit it first"):
        plot_weights(SSVM())
    with pytest.raises(OptionError, match="max_nodes"):
        plot_weights(SSVM(TREE).fit(*make()), max_nodes=-1)
