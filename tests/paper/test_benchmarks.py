"""Table 4 on small files in the formats of its sets."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nhsvm import FlatSVM
from nhsvm.datasets import read_lshtc
from nhsvm.errors import DataError, OptionError
from nhsvm.metrics import example_jaccard
from nhsvm.paper import benchmarks_page as page
from nhsvm.paper.benchmark_sets import (
    N_TERMS,
    ORIGINALS,
    OURS,
    SETS,
    USUAL,
    Effort,
    cut_to_depth,
    dense_features,
    there,
)
from nhsvm.paper.benchmarks import (
    Outcome,
    Pair,
    Results,
    SetResult,
    chosen_sets,
    facts_of,
    per_sample,
    run,
    run_set,
    variants,
)
from nhsvm.paper.tables import MODELS
from paper import sets

QUICK = Effort((1.0, 0.1), tol=0.1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    sets.dry_run(folder / "lshtc_dryrun")
    sets.text_set(folder / "clinc150", sets=False)
    sets.text_set(folder / "hallmarks", sets=True)
    sets.arff(folder / "hmc", "eisen_GO", (".train", ".valid", ".test"))
    return folder


@pytest.fixture(scope="module")
def results(data):
    found = Results()
    for name in ("lshtc_dryrun", "clinc150", "hallmarks", "eisen_go"):
        found = found.with_set(
            name, run_set(SETS[name].load(data, 0), replace(QUICK, few=name == "eisen_go"), 0, "v 1")
        )
    return found


def test_sets_that_are_there(data):
    assert chosen_sets(data) == ["lshtc_dryrun", "clinc150", "hallmarks", "eisen_go"]
    assert chosen_sets(data, ["eisen_go", "clinc150"]) == ["eisen_go", "clinc150"]
    with pytest.raises(DataError, match=r"reuters21578: reuters21578/docs\.jsonl, reuters21578/hierarchy\.tsv"):
        chosen_sets(data, ["clinc150", "reuters21578"])
    with pytest.raises(OptionError, match=r"there is no set 'clinc'; there are ipc, dmoz"):
        chosen_sets(data, ["clinc"])


def test_nothing_is_there(tmp_path):
    with pytest.raises(DataError, match=r"lacks all sets; looked for ipc: a folder ipc .*eisen_GO\.test"):
        chosen_sets(tmp_path)
    with pytest.raises(DataError, match="is no folder"):
        run(tmp_path / "none")
    with pytest.raises(DataError, match=r"there is no file .*nor x\.gz"):
        there(tmp_path / "x")


def test_problems(data):
    single, multi = (OURS[name].load(data, 0) for name in ("clinc150", "hallmarks"))
    assert facts_of(single)["n_train"] == facts_of(multi)["n_train"] == 48
    assert (single.multilabel, multi.multilabel) == (False, True)
    assert facts_of(multi)["labels"] == pytest.approx(4 / 3)
    assert np.sqrt(single.train[0].multiply(single.train[0]).sum(axis=1)) == pytest.approx(1.0)
    dag = OURS["eisen_go"].load(data, 0)
    assert not dag.hierarchy.is_tree
    X, y = dag.whole
    assert X.shape == (60, 3)
    assert len(y) == 60
    assert not np.isnan(X).any()
    counts = OURS["lshtc_dryrun"].load(data, 0)
    assert counts.train[0].shape[1] <= 30  # without feature 0


def test_samples_with_several_labels_are_no_single_label_samples(tmp_path):
    sets.text_set(tmp_path / "mitre_attack", sets=True)
    assert facts_of(OURS["mitre_attack"].load(tmp_path, 0))["n_train"] == 32


def test_what_is_tried(data):
    single, multi, dag = (OURS[name].load(data, 0) for name in ("clinc150", "hallmarks", "eisen_go"))
    assert variants("FlatSVM", single, USUAL) is None
    assert variants("SSVM", single, USUAL) == [{"loss": ["zero_one", "hamming"]}]
    assert variants("SSVM", multi, USUAL) is None
    assert [part["weights"] for part in variants("NHSVM", single, USUAL)] == [["power"], ["maxmin"]]
    assert variants("NHSVM", dag, OURS["eisen_go"].effort) == [{"weights": ["maxmin"], "total": [(1.0, 1.5)]}]


def test_scores_are_those_of_a_fit_with_what_was_chosen(results, data):
    for name, result in results.sets.items():
        problem, found = SETS[name].load(data, 0), result.outcomes["FlatSVM"]
        model = FlatSVM(problem.hierarchy, 1 / (2 * found.lam), tol=QUICK.tol, random_state=0).fit(*problem.whole)
        X, y = problem.test
        predicted = model.predict(X)
        assert result.score("FlatSVM") == pytest.approx(
            100 * example_jaccard(y, predicted, hierarchy=problem.hierarchy)
        )
        assert found.gap == model.gap_
        values = per_sample(y, predicted, problem.multilabel)
        assert 100 * values.mean() == pytest.approx(result.score("FlatSVM"))
        for first in MODELS:
            for second in set(MODELS) - {first}:
                pair, other = result.pair(first, second), result.pair(second, first)
                assert (pair.mean, pair.p) == (pytest.approx(-other.mean), pytest.approx(other.p))
                assert pair.mean == pytest.approx(result.score(first) - result.score(second))


def test_two_empty_sets_agree():
    assert per_sample([[], ["a"], ["a", "b"]], [set(), [], ["b"]], True).tolist() == [1.0, 0.0, 0.5]


def test_json_and_back(results):
    assert Results.from_json(results.to_json()) == results
    assert json.loads(results.to_json())["command"] == results.command
    for text in ("", "[]", "{}", '{"sets": 1}', '{"sets": {"clinc150": {"facts": {}}}}', "[" * 100_000):
        with pytest.raises(DataError, match="no file of results"):
            Results.from_json(text)
    with pytest.raises(DataError, match="'new', which is no set"):
        Results.from_json(results.to_json().replace('"clinc150"', '"new"'))


def test_a_run_goes_on(data, monkeypatch):
    monkeypatch.setitem(SETS, "clinc150", replace(SETS["clinc150"], effort=QUICK))
    said = []
    ((name, result),) = run(data, ["clinc150"], note=said.append)
    assert name == "clinc150"
    assert said[0].startswith("clinc150: FlatSVM 1/2 C=0.5")
    done = Results().with_set(name, result)
    said.clear()
    assert list(run(data, ["clinc150"], done=lambda: done, note=said.append)) == []
    assert said == ["clinc150: done before"]
    monkeypatch.setitem(SETS, "clinc150", replace(SETS["clinc150"], effort=replace(QUICK, tol=0.2)))
    assert len(list(run(data, ["clinc150"], done=lambda: done))) == 1  # what was asked for has changed


def made_up(multilabel=False, p=0.01, **scores):
    outcomes = {m: Outcome("–", 0.1, 0.0, s, s, s, s, 1.0, 3, 0.01) for m, s in scores.items()}
    pairs = tuple(Pair(a, b, scores[a] - scores[b], p) for a in MODELS for b in MODELS if a != b)
    facts = {"n_train": 10, "n_test": 5, "n_features": 3, "features": "f", "n_nodes": 4, "n_leaves": 3, "is_tree": True,
             "multilabel": multilabel, "labels": 1.0, "chosen_on": "held-out training samples"}  # fmt: skip
    return SetResult(facts, USUAL, 0, outcomes, pairs, "v 1")


def test_marks():
    found = made_up(FlatSVM=60.0, HSVM=62.0, NHSVM=70.0, SSVM=75.0)
    assert [page.marks_of(found, m) for m in MODELS] == ["", "", " †", " † ‡"]
    chance = made_up(p=0.2, FlatSVM=60.0, HSVM=62.0, NHSVM=70.0, SSVM=75.0)
    assert [page.marks_of(chance, m) for m in MODELS] == [""] * 4
    worse = made_up(FlatSVM=72.0, HSVM=62.0, NHSVM=70.0, SSVM=69.0)
    assert [page.marks_of(worse, m) for m in MODELS] == [""] * 4


def test_the_page(results, tmp_path):
    text = page.text_of(results)
    assert results.command in text
    assert "--sets lshtc_dryrun,clinc150,hallmarks,eisen_go" in results.command
    for name, result in results.sets.items():
        assert f"### {name}\n" in text
        row = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
        assert f"{result.score('NHSVM'):.1f}" in row
    assert "- `ipc` (the paper’s own): a folder ipc or wipo-alpha" in text
    assert "- `newsgroups20`: newsgroups20/docs.jsonl" in text
    assert "`clinc150`:" not in text
    files = page.write(results, tmp_path)
    assert [path.name for path in files] == ["benchmarks.png", "benchmarks.json", "benchmarks.md"]
    assert page.known(tmp_path) == results
    assert page.known(tmp_path / "elsewhere") == Results()
    files[1].write_text("{}")
    with pytest.raises(DataError, match=r"benchmarks\.json: this is no file of results .*; move it away"):
        page.known(tmp_path)


def test_words_say_what_the_numbers_say():
    results = Results().with_set("clinc150", made_up(FlatSVM=60.0, HSVM=50.0, NHSVM=70.0, SSVM=65.0))
    assert page.words(results) == ""  # of one set there is nothing to say
    results = results.with_set("newsgroups20", made_up(FlatSVM=60.0, HSVM=59.0, NHSVM=55.0, SSVM=50.0))
    text = " ".join(page.words(results).split())
    assert "NHSVM is ahead on 1 of 2 sets, significantly on clinc150 (+10.0); it is behind on 1" in text
    assert "HSVM is furthest behind on clinc150 (-10.0 points" in text
    assert "The flat SVM has the best number on newsgroups20." in text
    assert "better than both FlatSVM and HSVM on clinc150; in the paper" in text
    assert "chose the – loss" in text
    both = Results().with_set("enron", made_up(True, FlatSVM=1.0, HSVM=2.0, NHSVM=3.0, SSVM=4.0))
    both = both.with_set("hallmarks", both.sets["enron"])
    assert "**Why.**" not in page.words(both)
    assert "best number on no set" in page.words(both)


def test_the_papers_numbers_are_beside_ours():
    results = Results().with_set("ipc", made_up(FlatSVM=51.0, HSVM=50.0, NHSVM=52.0, SSVM=53.0))
    assert "| ipc | one | tree | 51.0 | 50.0 | 52.0 † | **53.0** † ‡ | 51.6 ± .08 | 50.4 ± .09 |" in page.text_of(
        results
    )
    everything = Results()
    for name in SETS:
        everything = everything.with_set(name, results.sets["ipc"])
    assert "None: it has all that the command knows." in page.text_of(everything)


def test_a_feature_without_a_value():
    with pytest.raises(DataError, match="no value in any training sample"):
        dense_features(np.array([[np.nan, 1.0], [np.nan, 2.0]]))


# -- the paper's own sets ----------------------------------------------------------------------------------------------


@pytest.fixture
def originals(tmp_path):
    sets.patents(tmp_path / "WIPO_alpha")
    sets.challenge(tmp_path / "DMOZ2010", validation=True, labels=True)
    sets.wiki(tmp_path / "wiki2011")
    sets.images(tmp_path / "ILSVRC2010")
    return tmp_path


def test_they_are_known_by_their_names(originals):
    assert chosen_sets(originals) == ["ipc", "dmoz", "wiki_d5", "imagenet"]


@pytest.mark.parametrize("name", ORIGINALS)
def test_every_model_runs(originals, name):
    problem = ORIGINALS[name].load(originals, 0)
    found = run_set(problem, Effort((1.0,), tol=0.1, few=True), 0, "v 1")
    assert set(found.outcomes) == set(MODELS)
    assert found.score("NHSVM") > 60  # chance is 33 at most


def test_patents(originals):
    facts = facts_of(ORIGINALS["ipc"].load(originals, 0))
    assert (facts["n_train"], facts["n_test"]) == (30, 12)  # one record's symbol is not in training
    assert (facts["n_nodes"], facts["n_leaves"]) == (7, 3)


def test_patents_as_rows(tmp_path):
    sets.challenge(tmp_path / "ipc", validation=False, labels=True)
    facts = facts_of(ORIGINALS["ipc"].load(tmp_path, 0))
    assert (facts["n_train"], facts["n_test"], facts["n_leaves"]) == (40, 16, 4)


def test_dmoz_parts(originals, tmp_path):
    problem = ORIGINALS["dmoz"].load(originals, 0)
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


def test_wiki_is_cut(originals):
    problem = ORIGINALS["wiki_d5"].load(originals, 3)
    facts = facts_of(problem)
    assert facts["n_train"] + facts["n_test"] == 30  # without samples whose only label is six edges deep
    assert facts["n_leaves"] == 2
    assert not facts["is_tree"]
    assert facts["n_features"] <= N_TERMS
    rows = read_lshtc(originals / "wiki2011" / "train.txt", originals / "wiki2011" / "hierarchy.txt", multilabel=True)
    assert len(cut_to_depth(rows, 9)[1]) == 40
    with pytest.raises(DataError, match="no sample has a label at depth 1"):
        cut_to_depth(rows, 1)


def test_images(originals):
    problem = ORIGINALS["imagenet"].load(originals, 0)
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


def test_the_page_that_is_kept_is_that_of_the_results_that_are_kept():
    kept = Path(__file__).parents[2] / "docs" / "results"
    assert page.text_of(Results.from_file(kept / "benchmarks.json")) == (kept / "benchmarks.md").read_text("utf-8")
