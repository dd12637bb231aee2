"""Table 3 on small data."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nhsvm import FlatSVM, node_weights
from nhsvm.datasets import make_balanced, make_unbalanced
from nhsvm.errors import DataError, OptionError
from nhsvm.reproduce import _synthetic_page as page
from nhsvm.reproduce._synthetic import MODELS, TOL, Sizes
from nhsvm.reproduce.synthetic import OTHER_SIZES, SETS, Outcome, Results, plan, run


@pytest.fixture(scope="module")
def results():
    return run(2, 5, quick=True, compare_sizes=True)


def test_accuracy_is_that_of_a_fit_with_what_was_chosen(results):
    for name, sizes in results.sets.items():
        data, n = sizes.make((5, 1)), sizes.n_train
        found = results.outcomes[name, "FlatSVM"][1]
        model = FlatSVM(data.hierarchy, 1 / (2 * found.lam), tol=TOL).fit(data.X[:n], data.y[:n])
        assert found.accuracy == pytest.approx(100 * np.mean(model.predict(data.X[n:]) == data.y[n:]))


def test_processes_give_the_same(results):
    assert run(2, 5, quick=True, compare_sizes=True, jobs=2) == results


@pytest.mark.parametrize(("jobs", "begun"), [(2, 2), (3, 3), (10**9, 3), (2**62, 3)])
def test_no_more_processes_than_cores_or_tasks(monkeypatch, jobs, begun):
    from contextlib import nullcontext

    from nhsvm.reproduce import _synthetic

    found = []

    class Pool(nullcontext):
        def __init__(self, n, mp_context):
            found.append(n)

        def __enter__(self):
            return self

        def map(self, work, tasks):
            return map(str, tasks)

    monkeypatch.setattr(_synthetic, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(_synthetic, "cpu_count", lambda: 5)
    assert list(_synthetic.run_tasks([1, 2, 3], jobs)) == ["1", "2", "3"]
    monkeypatch.setattr(_synthetic, "cpu_count", lambda: 2)
    list(_synthetic.run_tasks([1, 2, 3], jobs))
    assert found == [begun, 2]


def test_json_and_back(results):
    assert Results.from_json(results.to_json()) == results
    for text in ("", "[]", "{}", '{"sets": 1}', "[" * 100_000):
        with pytest.raises(DataError, match="no file of results"):
            Results.from_json(text)
    with pytest.raises(DataError, match="no file of results"):
        Results.from_json(json.dumps(json.loads(results.to_json()) | {"seed": float("inf")}))


def test_directional_weights_are_max_min_on_both_trees():
    for data in (make_balanced(10, 2), make_unbalanced(10, 2)):
        directional = node_weights(data.hierarchy, "power", rho=2.0, directional=True)
        assert directional == pytest.approx(node_weights(data.hierarchy, "maxmin"), abs=1e-9)


def made_up(**means):
    noise = np.array([-0.2, 0.1, 0.1])
    outcomes = {
        (s, m): [Outcome(means[m] + e, "–", 0.1) for e in k * noise] for s in page.PAPER for k, m in enumerate(MODELS)
    }
    sets = {name: Sizes(name, 10, 10, 5) for name in page.PAPER}
    return Results(0, 3, False, sets, outcomes, [])


def test_marks():
    found = made_up(FlatSVM=60.0, HSVM=62.0, NHSVM=70.0, SSVM=75.0)
    assert [page.marks(found, "balanced", m) for m in MODELS] == ["", "", " †", " † ‡"]
    same = made_up(FlatSVM=60.0, HSVM=70.0, NHSVM=70.0, SSVM=70.0)
    assert [page.marks(same, "balanced", m) for m in MODELS] == ["", "", "", ""]
    text = page.text_of(found)
    assert "| NHSVM | 70.0 ± 0.35 † | 63.3 ± .34 † |" in text
    assert "NHSVM is +10.0 points from the flat SVM" in " ".join(text.split())
    assert "--compare-sizes" in text


def test_what_one_lambda_makes_of_it():
    found = made_up(FlatSVM=60.0, HSVM=62.0, NHSVM=70.0, SSVM=75.0)
    assert "**What the choice" not in page.text_of(found)
    accuracies = {"FlatSVM": [50.0, 52.0], "HSVM": [51.0, 53.0], "NHSVM": [55.0, 56.0], "SSVM": [50.0, 50.0]}
    other = (Sizes("balanced", 99, 10, 5), accuracies)
    one = replace(found, others=[other, (found.sets["balanced"], accuracies)])
    assert "**What the choice" not in page.text_of(one)  # not of both sets
    both = replace(one, others=[*one.others, (found.sets["unbalanced"], accuracies)])
    assert "are +1.0 and +4.5 points from the flat SVM on the balanced set" in " ".join(page.text_of(both).split())


def test_the_sizes_of_the_table_are_compared_as_often():
    tasks = [task for task in plan(7, compare_sizes=True) if task.C is not None]
    for sizes in OTHER_SIZES:
        assert sum(task.sizes == sizes for task in tasks) == (7 if sizes in SETS.values() else 2)


def test_the_share_of_a_cut():
    for share in (0.2, 0.5):
        y = make_unbalanced(20_000, 30, share=share, random_state=0).y
        assert (y == "leaf1").mean() == pytest.approx(share, abs=0.015)
    for wrong in (0, 1, "half", True):
        with pytest.raises(OptionError, match="share must be"):
            make_unbalanced(10, 5, share=wrong)
    with pytest.raises(OptionError, match="at least 2 features"):
        make_unbalanced(10, 1, share=0.4)


def test_bad_options():
    for options in ({"repeats": 1}, {"seed": -1}, {"jobs": 0}):
        with pytest.raises(OptionError, match=next(iter(options))):
            run(**options)
