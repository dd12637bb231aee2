"""The bars of an explanation are its numbers."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

from estimators.problems import TREE, make, make_sets
from nhsvm import NHSVM, FlatSVM
from nhsvm.errors import NHSVMError
from nhsvm.plots import plot_explanation

mpl.use("Agg")


@pytest.fixture(scope="module")
def model():
    return NHSVM(TREE).fit(*make())


def labels(ax):
    return [tick.get_text() for tick in ax.get_yticklabels()]


def test_bars_of_nodes_and_features(model):
    e = model.explain(make()[0][0], "oak", top=3)[0]
    figure = e.plot()
    nodes, features = figure.axes
    assert labels(nodes) == ["plant", "oak", "score"]
    scores = [node.score for node in e.nodes if node.weight > 0]
    np.testing.assert_allclose([bar.get_width() for bar in nodes.patches], [*scores, e.score])
    assert labels(features) == [*e.features, "3 more features", "intercept"]
    sums = [*e.feature_scores, e.rest.sum(), e.intercepts.sum()]
    np.testing.assert_allclose(features.get_lines()[0].get_xdata(), sums)
    widths = np.zeros(len(sums))
    for bars in features.containers:  # one colour, one side
        widths += [bar.get_width() for bar in bars]
    np.testing.assert_allclose(widths, sums, atol=1e-6)
    assert nodes.get_title(loc="left") == f"oak: {e.score:.3f}"
    assert nodes.get_ylim() == features.get_ylim()


def test_a_contrast_names_both(model):
    figure = model.explain(make()[0][0], "oak", against="cat").plot()
    nodes, features = figure.axes
    assert labels(nodes) == ["plant", "oak", "− animal", "− cat", "score"]
    assert nodes.get_title(loc="left").startswith("oak rather than cat: ")
    assert [text.get_text() for text in features.get_legend().get_texts()][-2:] == ["− animal", "− cat"]


def test_several_below_each_other(model):
    assert len(model.explain(make()[0][:3]).plot().axes) == 6


def test_on_given_axes(model):
    from matplotlib.figure import Figure

    e = model.explain(make()[0][0])[0]
    figure = Figure()
    assert e.plot(figure.subplots(1, 2)) is figure
    with pytest.raises(NHSVMError, match="axes are for one explanation, not 2"):
        plot_explanation(model.explain(make()[0][:2]), figure.subplots(1, 2))


def test_names_are_no_mathematics(model):
    names = ["$\\frac{", "a$b", "x" * 50, "c", "d", "e"]
    figure = model.explain(make()[0][0], feature_names=names).plot()
    figure.canvas.draw()
    assert "…" + "x" * 31 in labels(figure.axes[1])


def test_nothing_or_too_much_to_draw(model):
    X, y = make_sets(TREE, empty=True)
    sets = NHSVM(TREE, allow_empty=True).fit(X, y)
    empty = next(i for i, some in enumerate(sets.predict(X)) if not some)
    with pytest.raises(NHSVMError, match="no label is predicted"):
        sets.explain(X[empty]).plot()
    with pytest.raises(NHSVMError, match="13 explanations are too many"):
        model.explain(make()[0][:13]).plot()


def test_without_matplotlib(monkeypatch):
    model = FlatSVM().fit(*make())
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"nhsvm\[plot\]"):
        model.explain(make()[0][0]).plot()
