"""The comparison with peers: what is handed to them, what is kept, and what is written about them."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

PEERS = Path(__file__).parents[2] / "benchmarks" / "peers"

before = list(sys.path)
sys.path.append(str(PEERS))
import page  # noqa: E402
import prepare  # noqa: E402
import records  # noqa: E402
import registry  # noqa: E402
import run  # noqa: E402
import trees  # noqa: E402
import words  # noqa: E402
import worker  # noqa: E402

sys.path[:] = before  # its files have names that folders of tests have too

EDGES = [("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("x", "d"), ("x", "y")]
CLASSES = ["b", "c", "d", "e", "y"]
PATHS = [("a", "b", "b"), ("a", "c"), ("a", "b", "d"), ("a", "b", "e"), ("x", "y")]


# -- forms of the hierarchy --------------------------------------------------------------------------------------------


def test_paths_follow_the_first_parent_and_end_at_a_leaf_of_their_own():
    assert trees.label_paths(EDGES, CLASSES) == PATHS


def test_a_class_without_classes_below_keeps_its_path():
    assert trees.label_paths(EDGES, ["b", "c"]) == [("a", "b"), ("a", "c")]


def test_padded():
    assert trees.padded(PATHS, "")[1] == ("a", "c", "")
    assert trees.padded(PATHS, None)[1] == ("a", "c", "c")
    assert {len(path) for path in trees.padded(PATHS, "")} == {3}


def test_levels_lead_from_the_root_to_the_classes_in_order():
    chain = trees.level_matrices(PATHS)
    assert [matrix.shape for matrix in chain] == [(2, 1), (3, 2), (5, 3)]
    for matrix in chain:
        np.testing.assert_array_equal(matrix.sum(axis=1), 1)  # one parent each
    top = chain[2] @ chain[1]
    np.testing.assert_array_equal(top.toarray().argmax(axis=1), [0, 0, 0, 0, 1])
    middle = chain[2].toarray().argmax(axis=1)
    assert middle[0] == middle[2] == middle[3] != middle[1]


def test_levels_of_classes_that_are_all_roots():
    (matrix,) = trees.level_matrices([("p",), ("q",)])
    assert matrix.shape == (2, 1)


def test_node_list_has_every_label_once_and_no_single_children():
    rows = trees.node_list(PATHS)
    assert sorted(label for _, _, label in rows if label >= 0) == list(range(5))
    parents = [parent for parent, _, _ in rows]
    assert parents.count(-1) == 1
    assert all(parents.count(node) != 1 for _, node, _ in rows)
    assert all(parent < node for parent, node, _ in rows)


# -- prepared data -----------------------------------------------------------------------------------------------------


def test_words_are_got_back_from_tfidf():
    texts = ["aa bb bb cc", "cc cc cc dd", "aa ee", "bb bb bb bb aa", "dd ee ee"]
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    X = vectorizer.fit_transform(texts)
    names = vectorizer.get_feature_names_out()
    lines = prepare._words_of(X, X)
    back = [sorted(str(names[int(word[1:])]) for word in line.split()) for line in lines]
    assert back == [sorted(text.split()) for text in texts]


def test_words_of_an_empty_document():
    X = sp.csr_matrix(np.array([[1.0, 0.0], [0.0, 0.0]]))
    assert prepare._words_of(X, X) == ["w0", ""]


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """A small set as a worker finds it."""
    folder = tmp_path_factory.mktemp("task")
    problem = prepare.text_like(300, 400, 8, seed=1)
    n = (problem.X_train.shape[0], problem.X_test.shape[0])
    prepare.write(problem, tuple([f"line {i}" for i in range(k)] for k in n), folder)
    return folder


def test_a_worker_sees_the_whole_training_part_and_no_truth_of_the_test_part(task, tmp_path):
    found = worker.Task(task, tmp_path)
    train, test = found.part("train"), found.part("test")
    fit, valid = found.split()
    assert test.y is None
    assert len(test.lines) == test.X.shape[0] == 75
    assert len(fit.y) + len(valid.y) == len(train.y) == 300
    assert set(fit.lines).isdisjoint(valid.lines)
    assert set(fit.y) == set(range(found.n_classes))
    assert fit.lines[3] == train.lines[np.load(task / "fit_rows.npy")[3]]


# -- workers -----------------------------------------------------------------------------------------------------------


class Constant(worker.Peer):
    """Always says the label that it is set to."""

    packages = ("numpy",)
    grid = tuple({"label": i} for i in range(6))

    def fit(self, data, setting):
        return setting["label"]

    def predict(self, model, data):
        return np.full(data.X.shape[0], model)

    def save(self, model, folder):
        (folder / "model").write_text("12345")


def test_tune_tries_all_settings_and_scores_them_on_held_out_samples(task, tmp_path):
    peer = Constant(worker.Task(task, tmp_path), "constant")
    worker.tune(peer, 100.0, tmp_path / "out")
    tried = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [found["setting"] for found in tried] == list(Constant.grid)
    y = peer.task.split()[1].y
    assert [found["valid_accuracy"] for found in tried] == [(y == i).mean() for i in range(6)]


def test_tune_stops_when_the_budget_is_spent(task, tmp_path):
    worker.tune(Constant(worker.Task(task, tmp_path), "constant"), -1.0, tmp_path / "out")
    assert (tmp_path / "out").read_text() == ""


def test_final_measures_and_judges(task, tmp_path):
    worker.final(Constant(worker.Task(task, tmp_path), "constant"), {"label": 2}, tmp_path / "out")
    record = json.loads((tmp_path / "out").read_text())
    assert record["model_mb"] == 5e-6
    assert record["fit_wall"] >= 0
    assert record["fit_peak_mb"] > 0
    assert set(record["versions"]) == {"Python", "numpy"}
    predicted = np.load(tmp_path / "predicted.npy")
    np.testing.assert_array_equal(predicted, 2)
    truth, facts = (json.loads((task / name).read_text()) for name in ("truth.json", "facts.json"))
    scores = run.judged(task, predicted)
    assert scores["accuracy"] == np.mean(np.array(truth) == facts["classes"][2])
    assert scores["hierarchical_f1"] > scores["accuracy"] > scores["macro_f1"] > 0


# -- the list of models ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.MODELS)
def test_every_model_has_a_worker_and_pinned_versions(name):
    entry = registry.MODELS[name]
    assert (PEERS / entry.worker).exists()
    if entry.environment != registry.OURS:
        lines = (PEERS / "requirements" / f"{entry.environment}.txt").read_text().split()
        assert lines
        assert all(line.count("==") == 1 and "/" not in line for line in lines)


def test_the_page_lists_the_settings_that_are_tried():
    listed = registry.C.partition("{")[2].rstrip("}").split(", ")
    assert [float(c) for c in listed] == [setting["C"] for setting in worker.C_GRID]


def test_a_missing_environment_is_a_reason(tmp_path):
    entry = registry.MODELS["hiclass"]
    with pytest.raises(run.CellFailedError, match=r"setup\.py"):
        run.python_of(entry, tmp_path)
    (tmp_path / "hiclass.failed").write_text("no compiler")
    with pytest.raises(run.CellFailedError, match="not installed: no compiler"):
        run.python_of(entry, tmp_path)


# -- records and the page ----------------------------------------------------------------------------------------------


def final(accuracy, cpu):
    sizes = dict.fromkeys(("fit_added_mb", "fit_peak_mb", "model_mb", "predict_wall", "predict_cpu"), 1.0)
    scores = {"accuracy": accuracy, "macro_f1": accuracy, "hierarchical_f1": accuracy}
    rest = {"fit_wall": cpu, "fit_cpu": cpu, "warnings": [], "load": 1.5, "versions": {"Python": "3"}}
    return sizes | scores | rest


def cell(accuracy, cpu, tried=6):
    return {"tuning": {"tried": [{}] * tried, "chosen": {"C": 0.3}, "budget": 300.0}, "final": final(accuracy, cpu)}


@pytest.fixture
def stored(tmp_path):
    found = records.Records(tmp_path / "peers.json")
    found.describe("toys", description="toys: 3 samples", n_test=400, machine={"cores": "2"})
    found.store("toys", "NHSVM", cell(0.82, 2.0))
    found.store("toys", "LinearSVC", cell(0.816, 0.5, tried=4))
    found.store("toys", "omikuji", cell(0.7, 0.1))
    found.store("toys", "hiclass", {"failed": "not installed: no compiler"})
    return found


def finish(stored):
    """Every model that has no result has a reason."""
    for name in registry.MODELS:
        if "final" not in stored.cell("toys", name):
            stored.store("toys", name, {"failed": "not installed: no compiler"})


def test_records_are_read_back(stored):
    again = records.Records(stored.path)
    assert again.sets == stored.sets
    assert again.cell("toys", "NHSVM") == cell(0.82, 2.0)
    assert again.cell("toys", "fastText") == {}


def test_machine_names_cores_and_memory():
    assert {"cores", "memory", "threads"} <= set(records.machine(2))


def test_the_page_has_every_model_the_best_and_the_reasons(stored, tmp_path):
    page.write_page(stored, tmp_path / "peers.md")
    text = (tmp_path / "peers.md").read_text()
    lines = text.splitlines()
    for name in registry.MODELS:
        assert any(line.startswith((f"| {name} |", f"| **{name}** |")) for line in lines)
    assert "| **NHSVM** | **0.8200** |" in text
    assert "| hiclass | not installed: no compiler |" in text
    assert "| fastText | not run |" in text
    assert "C 0.3 (4 of 6 tried)" in text
    tables = [line for line in lines if line.startswith("| **NHSVM**") or line.startswith("| hiclass | not")]
    assert len({line.count("|") for line in tables}) == 1


def test_words_say_who_is_first_and_who_is_quicker(stored):
    finish(stored)
    (line,) = [line for line in words.summary(stored.sets) if line.startswith("| toys")]
    assert (
        line == "| toys | NHSVM 0.8200 | LinearSVC 0.8160 | +0.40 ± 1.92 | NHSVM, 2.00 s | LinearSVC, 0.50 s | 4.00 |"
    )
    text = words.reasons(stored.sets)
    assert "most accurate on 1 of 1 sets that are done" in text
    assert "- toys: LinearSVC (4.0 times, -0.4 points)" in text  # omikuji is quicker, but not nearly as good


def test_words_about_a_lost_set(stored):
    stored.store("toys", "omikuji", cell(0.9, 0.1))
    finish(stored)
    assert "a peer is on toys (-8.00 points)" in words.reasons(stored.sets)


def test_words_about_stopping_early(stored):
    stored.store("toys", words.LOOSE, cell(0.817, 0.5))
    finish(stored)
    said = (
        "4.0 to 4.0 times less than `NHSVM` at the settings chosen for each, and its accuracy differs by -0.3 to -0.3"
    )
    assert said in words.reasons(stored.sets)


def test_nothing_is_said_of_a_set_that_is_not_done(stored):
    assert words.reasons(stored.sets).startswith("On no set has every model been run")
    assert not [line for line in words.summary(stored.sets) if line.startswith("| toys")]


def test_the_page_says_that_the_machine_was_busy(stored, tmp_path):
    page.write_page(stored, tmp_path / "peers.md")
    assert "busy" not in (tmp_path / "peers.md").read_text()
    slow = cell(0.8, 1.0)
    slow["final"]["fit_wall"] = 10.0
    stored.store("toys", "fastText", slow)
    page.write_page(stored, tmp_path / "peers.md")
    assert "busy with other work** during some fits of toys:" in (tmp_path / "peers.md").read_text()


def test_even_is_neither_first_nor_last(stored):
    finish(stored)
    for name, known in list(stored.sets["toys"]["cells"].items()):
        if "final" not in known:
            continue
        stored.store("toys", name, {**known, "final": {**known["final"], "accuracy": 0.8}})
    assert "on 0 of 1 sets that are done; they are even on toys." in words.reasons(stored.sets)
