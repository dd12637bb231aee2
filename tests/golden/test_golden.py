"""Fits over all paths end as they did before, and files of versions before still answer.

Bits are compared where the golden file was made: on the same kind of processor, with the same numba, numpy and scipy.
Elsewhere sums are rounded otherwise, and the proved bounds of both fits are compared, which must hold anywhere: no
lower bound of an optimum is above an upper bound of it.
"""

import json
from functools import cache

import numpy as np
import pytest

import nhsvm
from golden.cases import FILES, GOLDEN, SMALL, TEXTS, TINY, answers, cases, make_data, record, signature

CASES = cases()
ROUNDING = 1e-6


@cache
def golden():
    return json.loads(GOLDEN.read_text())


@cache
def data(dag):
    return make_data(SMALL, dag)


def test_all_cases_are_there():
    assert golden()["fits"].keys() == CASES.keys()
    assert len(CASES) >= 30


@pytest.mark.parametrize("name", CASES)
def test_a_fit_ends_as_it_did(name):
    case, before = CASES[name], golden()["fits"][name]
    one, two = (record(case, data(case.dag), n_jobs) for n_jobs in (1, 2))
    assert one == two
    if golden()["made_on"] == signature():
        assert one == before
        return
    for lower, upper in ((one, before), (before, one)):
        above = float.fromhex(upper["objective"])
        assert float.fromhex(lower["dual"]) <= above + ROUNDING * abs(above)
    gap = 1 - float.fromhex(one["dual"]) / float.fromhex(one["objective"])
    was = 1 - float.fromhex(before["dual"]) / float.fromhex(before["objective"])
    assert gap <= max(1.01 * was, case.options["tol"])


@pytest.mark.parametrize("path", sorted(FILES.glob("*.nhsvm")), ids=lambda path: path.stem)
def test_a_file_of_a_version_before_answers(path):
    asked = json.loads((FILES / "answers.json").read_text())[path.stem]
    model = nhsvm.load(path, verify=True)
    tiny = make_data(TINY, "dag" in path.stem).X
    X = TEXTS if path.stem == "texts" else tiny.toarray() if path.stem == "one-dense" else tiny
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, asked["scores"], atol=1e-3)
    sure = np.abs(scores).min(axis=1) if "sets" in path.stem else np.diff(np.sort(scores))[:, -1]
    for found, before, margin in zip(answers(model, X), asked["answers"], sure, strict=True):
        assert found == before or margin < ROUNDING  # between equal scores rounding decides
