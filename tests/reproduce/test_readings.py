"""Other readings of Section 8.1, on small data, and Algorithm 1 as printed."""

import json

import numpy as np
import pytest

from nhsvm import HSVM, NHSVM, Hierarchy, node_weights
from nhsvm.errors import DataError, OptionError
from nhsvm.reproduce import _readings_page as page
from nhsvm.reproduce import _readings_words as words
from nhsvm.reproduce._printed import Printed, alternated
from nhsvm.reproduce.readings import LAMBDAS, READINGS, TOL, Results, columns, plan, run


@pytest.fixture(scope="module")
def results():
    return run(2, 5, quick=True)


def test_accuracy_is_that_of_a_fit(results):
    for reading, solver in results.found:
        if solver == "dual":
            data, n = reading.make((5, 1)), reading.n_train
            for lam, found in zip(LAMBDAS[reading.kind], results.found[reading, "dual"]["HSVM"][1], strict=True):
                model = HSVM(data.hierarchy, 1 / (2 * lam), tol=TOL).fit(data.X[:n], data.y[:n])
                assert found == pytest.approx(100 * np.mean(model.predict(data.X[n:]) == data.y[n:]))


def test_json_and_back(results):
    assert Results.from_json(results.to_json()) == results
    for text in (
        "",
        "[]",
        "{}",
        '{"readings": 1}',
        '{"readings": [{}], "seed": 0, "repeats": 2, "quick": false}',
        "[" * 100_000,
    ):
        with pytest.raises(DataError, match="no file of results"):
            Results.from_json(text)
    with pytest.raises(DataError, match="no file of results"):
        Results.from_json(json.dumps(json.loads(results.to_json()) | {"seed": float("inf")}))


def test_the_best_lambda_is_one_for_all_data_sets():
    reading = READINGS[-1]
    found = Results(0, 2, False, {(reading, "dual"): {"HSVM": [[50.0, 60.0], [55.0, 47.0]]}})
    assert found.best(reading, "dual", "HSVM") == [60.0, 47.0]


def test_plan():
    tasks = plan(3)
    assert [sum(r == reading for r, _ in tasks) for reading in READINGS] == [3, 3, 3, 3, 6]
    for options in ({"repeats": 1}, {"seed": -1}):
        with pytest.raises(OptionError, match=next(iter(options))):
            run(**options)


TREE = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "c"), ("a", "d")])


def test_printed_by_hand():
    assert TREE.nodes == ("r", "a", "b", "c", "d")
    norms = np.array([0.0, 4.0, 9.0, 0.5, 0.5])
    # a: S = 1, N = (2 + 1)², E = 3/(1 + 3); r: S = 9 + 9, N = 18, E = 1/2; leaves: E = 1
    expected = [0, 1 / 2 * 3 / 4, 1 / 2, 1 / 2 * 1 / 4, 1 / 2 * 1 / 4]
    assert Printed(norms)(TREE) == pytest.approx(expected)
    assert Printed(norms, root=False)(TREE) == pytest.approx(np.sqrt(expected))
    assert node_weights(TREE, "shared", squared_norms=norms)[1] == pytest.approx(2 / 3)  # what is optimal


def test_printed_weights_never_grow_downwards():
    rng = np.random.default_rng(0)
    tree = Hierarchy.from_edges([(k // 2, k) for k in range(2, 32)])
    for _ in range(20):
        alpha = dict(zip(tree.nodes, Printed(rng.exponential(size=31) ** 3)(tree), strict=True))
        assert all(alpha[k] <= alpha[k // 2] * (1 + 1e-12) for k in range(4, 32))
    assert not Printed(np.zeros(5))(TREE)[1]


def test_alternation():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 4)), np.array(["b", "c", "d", "b"] * 10)
    start = NHSVM(TREE, margin="normalized", tol=1e-3).fit(X, y)
    before = start.node_weights_.copy()
    found = alternated(start, X, y, root=True, rounds=2)
    assert found is not start
    np.testing.assert_array_equal(start.node_weights_, before)  # it starts other alternations too
    once = alternated(start, X, y, root=True, rounds=1)
    U = np.column_stack([once.coef_, once.intercept_]).astype(float)
    assert found.node_weights_ == pytest.approx(Printed((U**2).sum(axis=1))(TREE))


def made_up(shift):
    """The paper's numbers, ``shift`` higher for HSVM, on all data sets."""
    rows = {}
    for reading in READINGS:
        for solver in ("dual", "sgd"):
            of = {c: words.paper(reading.kind, c.split(",")[0]) for c in columns(solver)}
            of["HSVM"] += shift
            rows[reading, solver] = {c: [[v] * len(LAMBDAS[reading.kind])] * 2 for c, v in of.items()}
    return Results(0, 2, False, rows)


def test_words():
    text = " ".join(page.text_of(made_up(0.0)).split())
    assert "if 15 vectors are summed, and +2.8 and +3.3 with 7 vectors and signs (paper: +2.8 and +3.3)" in text
    assert "The paper's -0.1 is within and its +5.6 within the range" in text
    assert "below it on 2 of 2 data sets" in text
    text = " ".join(page.text_of(made_up(1.0)).split())
    assert "The paper's -0.1 is outside and its +5.6 within the range" in text
    assert "below it on 0 of 2 data sets" in text
    assert "on the balanced set by +1.0, +0.0, +0.0 (" in text


def test_page_of_small_data_says_nothing(results):
    text = page.text_of(results)
    assert "these numbers say nothing" in text
    assert "**What remains.**" not in text
