"""The result: table, frame, picture."""

import sys

import matplotlib
import pandas as pd
import pytest

from estimators.problems import TREE, make
from nhsvm import NHSVM
from nhsvm.errors import NHSVMError
from nhsvm.model_selection import tune
from nhsvm.weights import Power

matplotlib.use("Agg")
X, y = make(n_samples=120, noise=2.0)


@pytest.fixture(scope="module")
def found():
    grid = {"weights": ["maxmin", "power"], "rho": [2, 4]}
    return tune(NHSVM(TREE), X, y, grid=grid, C=[0.01, 0.1, 1], scoring=["accuracy", "lca_f1"], patience=None)


def test_the_table(found):
    lines = str(found).splitlines()
    assert lines[0].split() == ["weights", "rho", "C", "accuracy", "lca_f1", "seconds", "passes", "gap"]
    assert len(lines[1:10]) == len(found.records) == 9
    assert [line.startswith("*") for line in lines[1:10]].count(True) == 1
    assert lines[1 + found.records.index(found.best)].startswith("*")
    assert lines[1].split()[:2] == ["maxmin", "-"]
    assert lines[11].startswith("best: ")
    assert "on 24 samples that were not among the 96 learned from" in lines[11]
    assert lines[12].startswith("9 fits in")
    assert lines[12].endswith("s for the refit")


def test_the_frame(found):
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 9
    assert frame.columns.tolist() == [
        "weights", "rho", "C", "lambda", "accuracy", "lca_f1", "seconds", "passes", "gap", "n_train", "state", "best",
    ]  # fmt: skip
    assert frame["best"].sum() == 1
    assert frame.loc[frame["best"], "accuracy"].item() == found.best_score
    assert (frame["lambda"] * frame["C"] == 0.5).all()


def test_without_pandas(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NHSVMError, match="pip install pandas"):
        found.to_frame()


def test_values_that_are_no_numbers_are_text():
    found = tune(NHSVM(TREE), X, y, grid={"weights": [Power(rho=3)]}, C=[1], refit=False)
    (row,) = found.rows()
    assert row["weights"].startswith("Power(rho=3")
    assert found.edge is None  # there is but one C


def test_the_edge():
    scores = iter([0.1, 0.2, 0.3])
    found = tune(NHSVM(TREE), X, y, C=[1, 2, 3], scoring=lambda *_: next(scores), refit=False)
    assert found.edge == "largest"
    assert "WARNING: the best C, 3, is at the edge of the grid (the largest): try larger values too" in str(found)
    middle = iter([0.1, 0.3, 0.2])
    assert tune(NHSVM(TREE), X, y, C=[1, 2, 3], scoring=lambda *_: next(middle), refit=False).edge is None


def test_the_picture(found):
    axes = found.plot()
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert {"weights=maxmin", "weights=power, rho=2", "weights=power, rho=4"} <= set(lines)
    (star,) = [line for label, line in lines.items() if label.startswith("best: ")]
    assert star.get_xdata().tolist() == [found.best.C]
    assert star.get_ydata().tolist() == [found.best_score]
    assert axes.get_xscale() == "log"
    assert axes.get_ylabel() == "accuracy on 24 held-out samples"
    assert found.plot(axes) is axes
    matplotlib.pyplot.close("all")


def test_a_picture_of_many_settings_and_open_fits():
    grid = {"weights": ["power"], "rho": [1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10]}
    found = tune(NHSVM(TREE, max_iter=1), X, y, grid=grid, C=[1, 10], refit=False)
    axes = found.plot()
    assert axes.get_legend().get_title().get_text() == "and 2 more in grey"
    assert len(axes.get_legend().get_texts()) == 9
    matplotlib.pyplot.close("all")


def test_progress_lines(capsys):
    tune(NHSVM(TREE), X, y, C=[0.1, 1], grid={"weights": ["flat"]}, progress=True, refit=False)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["1/2", "2/2"]
    assert lines[0].startswith("1/2  weights=flat  C=0.1  accuracy 0.")
    tune(NHSVM(TREE), X, y, C=[0.1], progress=False, refit=False)
    assert capsys.readouterr().err == ""
