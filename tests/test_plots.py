"""Pictures show what the records say."""

import matplotlib as mpl
import numpy as np
import pytest

from estimators.problems import DAG, TREE, make
from nhsvm import SSVM, FlatSVM
from nhsvm.errors import NHSVMError, OptionError
from nhsvm.plots import plot_convergence, plot_weights
from strategies import random_hierarchy

mpl.use("Agg")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    return FlatSVM(tol=1e-6).fit(rng.normal(size=(60, 5)), rng.integers(0, 4, 60))


def test_the_curve_is_the_history(model):
    axes = plot_convergence({"flat": model})
    curve, certified = axes.get_lines()
    assert curve.get_ydata().tolist() == [record["gap"] for record in model.history_]
    assert certified.get_ydata().tolist() == [record["gap"] for record in model.history_ if record["certified"]]
    assert len(certified.get_ydata()) >= 1
    assert axes.get_yscale() == "log"


def test_on_given_axes(model):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert plot_convergence(model, ax=axes) is axes
    assert axes.get_legend().get_texts()[0].get_text() == "FlatSVM"


def test_a_model_without_history_is_named():
    with pytest.raises(NHSVMError, match="'mine' has no history_"):
        plot_convergence({"mine": FlatSVM()})
    with pytest.raises(NHSVMError, match="no model"):
        plot_convergence({})


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
    model = SSVM(h, max_iter=5, tol=0.5).fit(*make(h, n_samples=h.n_leaves))
    axes = plot_weights(model)
    cells, filled = axes.containers
    assert len(cells) == len(filled) == h.n_nodes
    boxes = np.array([[c.get_x(), c.get_x() + c.get_width(), c.get_y()] for c in cells])
    for y in np.unique(boxes[:, 2]):  # no two of a level overlap
        row = boxes[boxes[:, 2] == y]
        row = row[np.argsort(row[:, 0])]
        assert (row[1:, 0] >= row[:-1, 1] - 1e-9).all()
    heights = np.array([c.get_height() for c in filled])
    assert heights.max() == pytest.approx(0.96)


def test_weights_of_what_is_not_fitted():
    with pytest.raises(NHSVMError, match="fit it first"):
        plot_weights(SSVM())
    with pytest.raises(OptionError, match="max_nodes"):
        plot_weights(SSVM(TREE).fit(*make()), max_nodes=-1)
