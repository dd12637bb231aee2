"""Pictures of hierarchies show the weights of their nodes."""

import matplotlib as mpl
import numpy as np
import pytest

from estimators.problems import DAG, TREE, make
from nhsvm import SSVM
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.plots import plot_weights
from strategies import random_hierarchy

mpl.use("Agg")


@pytest.mark.parametrize("hierarchy", [TREE, DAG], ids=["tree", "dag"])
def test_a_small_hierarchy_is_drawn_as_a_tree(hierarchy):
    model = SSVM(hierarchy).fit(*make(hierarchy))
    axes = plot_weights(model)
    (discs,) = (c for c in axes.collections if len(c.get_offsets()) == hierarchy.n_nodes)
    assert len(axes.get_lines()) == hierarchy.graph.n_edges
    lengths = np.sqrt((model.coef_**2).sum(axis=1) + model.intercept_**2)
    np.testing.assert_array_equal(np.argsort(discs.get_sizes()), np.argsort(lengths))
    assert len(np.unique(discs.get_offsets(), axis=0)) == hierarchy.n_nodes
    texts = [text.get_text() for text in axes.texts]
    assert texts == [f"{n}\n{a:.2f}" for n, a in zip(hierarchy.nodes, model.node_weights_, strict=True)]


@pytest.mark.parametrize("extra", [0.0, 0.3])
def test_a_large_hierarchy_is_drawn_as_an_icicle(extra):
    h = random_hierarchy(100, 0, roots=3, extra=extra)
    model = SSVM(h, tol=0.5).fit(*make(h, n_samples=h.n_leaves))
    axes = plot_weights(model)
    cells, bars = axes.containers
    assert len(cells) == len(bars) == h.n_nodes
    boxes = np.array([[c.get_x(), c.get_x() + c.get_width(), c.get_y()] for c in cells])
    for y in np.unique(boxes[:, 2]):  # no two of a level overlap
        row = boxes[boxes[:, 2] == y]
        row = row[np.argsort(row[:, 0])]
        assert (row[1:, 0] >= row[:-1, 1] - 1e-9).all()
    lengths = np.sqrt((model.coef_**2).sum(axis=1) + model.intercept_**2)
    heights = np.array([c.get_height() for c in bars])
    expected = 0.36 * np.minimum(lengths / np.quantile(lengths, 0.99), 1.0)
    np.testing.assert_allclose(heights, expected, atol=1e-6)
    least, most = np.argmin(model.node_weights_), np.argmax(model.node_weights_)
    scale = mpl.colormaps["viridis_r"]
    for node in (least, most):
        assert cells[node].get_facecolor() == pytest.approx(scale(model.node_weights_[node]), abs=0.01)


def test_weights_of_what_is_not_fitted():
    with pytest.raises(NHSVMError, match="fit it first"):
        plot_weights(SSVM())
    with pytest.raises(OptionError, match="max_nodes"):
        plot_weights(SSVM(TREE).fit(*make()), max_nodes=-1)
