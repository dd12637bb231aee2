"""Pictures of fits show what the records say."""

import matplotlib as mpl
import numpy as np
import pytest

from nhsvm import FlatSVM
from nhsvm.errors import NHSVMError
from nhsvm.plots import plot_convergence

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
