"""The paper's own sets, in small files of their formats."""

import numpy as np
import pytest

from nhsvm.datasets import read_lshtc
from nhsvm.errors import DataError
from nhsvm.reproduce._benchmarks import facts_of, run_set
from nhsvm.reproduce._originals import N_TERMS, ORIGINALS, cut_to_depth
from nhsvm.reproduce._outcomes import MODELS, Effort
from nhsvm.reproduce.benchmarks import chosen_sets
from reproduce import sets


@pytest.fixture
def data(tmp_path):
    sets.patents(tmp_path / "WIPO_alpha")
    sets.challenge(tmp_path / "DMOZ2010", validation=True, labels=True)
    sets.wiki(tmp_path / "wiki2011")
    sets.images(tmp_path / "ILSVRC2010")
    return tmp_path


def test_they_are_known_by_their_names(data):
    assert chosen_sets(data) == ["ipc", "dmoz", "wiki_d5", "imagenet"]


@pytest.mark.parametrize("name", ORIGINALS)
def test_every_model_runs(data, name):
    problem = ORIGINALS[name].load(data, 0)
    found = run_set(problem, Effort((1.0,), tol=0.1, few=True), 0, "v 1")
    assert set(found.outcomes) == set(MODELS)
    assert found.score("NHSVM") > 60  # chance is 33 at most


def test_patents(data):
    facts = facts_of(ORIGINALS["ipc"].load(data, 0))
    assert (facts["n_train"], facts["n_test"]) == (30, 12)  # one record's symbol is not in training
    assert (facts["n_nodes"], facts["n_leaves"]) == (7, 3)


def test_patents_as_rows(tmp_path):
    sets.challenge(tmp_path / "ipc", validation=False, labels=True)
    facts = facts_of(ORIGINALS["ipc"].load(tmp_path, 0))
    assert (facts["n_train"], facts["n_test"], facts["n_leaves"]) == (40, 16, 4)


def test_dmoz_parts(data, tmp_path):
    problem = ORIGINALS["dmoz"].load(data, 0)
    assert problem.validation is not None
    assert (facts_of(problem)["n_train"], facts_of(problem)["n_test"]) == (56, 16)
    other = tmp_path / "other"
    sets.challenge(other / "dmoz", validation=True, labels=False)
    problem = ORIGINALS["dmoz"].load(other, 0)  # test rows have no labels, so validation rows are for testing
    assert problem.validation is None
    assert (facts_of(problem)["n_train"], facts_of(problem)["n_test"]) == (40, 16)
    (other / "dmoz" / "Task1" / "validation.txt").unlink()
    facts = facts_of(ORIGINALS["dmoz"].load(other, 0))
    assert (facts["n_train"], facts["n_test"]) == (32, 8)
    assert "a fifth" in facts["features"]


def test_wiki_is_cut(data):
    problem = ORIGINALS["wiki_d5"].load(data, 3)
    facts = facts_of(problem)
    assert facts["n_train"] + facts["n_test"] == 30  # without samples whose only label is six edges deep
    assert facts["n_leaves"] == 2
    assert not facts["is_tree"]
    assert facts["n_features"] <= N_TERMS
    rows = read_lshtc(data / "wiki2011" / "train.txt", data / "wiki2011" / "hierarchy.txt", multilabel=True)
    assert len(cut_to_depth(rows, 9)[1]) == 40
    with pytest.raises(DataError, match="no sample has a label at depth 1"):
        cut_to_depth(rows, 1)


def test_images(data):
    problem = ORIGINALS["imagenet"].load(data, 0)
    facts = facts_of(problem)
    assert (facts["n_train"], facts["n_test"], facts["n_nodes"], facts["n_leaves"]) == (36, 12, 6, 3)
    assert np.sqrt(problem.test[0].multiply(problem.test[0]).sum(axis=1)) == pytest.approx(1.0)


def test_what_is_missing_is_named(tmp_path):
    (tmp_path / "dmoz").mkdir()
    (tmp_path / "dmoz" / "train.txt").write_text("")
    (tmp_path / "imagenet").write_text("a file")
    with pytest.raises(DataError, match=r"dmoz: a folder dmoz or .* with train\.txt and cat_hier\.txt"):
        chosen_sets(tmp_path, ["dmoz"])
    with pytest.raises(DataError, match="lacks a folder imagenet"):
        ORIGINALS["imagenet"].load(tmp_path, 0)
