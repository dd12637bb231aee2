"""Evaluations of models: measures, labels of every kind, and what is refused."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.problems import DAG, TREE, make, make_sets
from nhsvm import NHSVM, FlatSVM, Hierarchy, metrics
from nhsvm.errors import OptionError
from nhsvm.report import Evaluation, evaluate
from nhsvm.report import answers as answers_module
from nhsvm.report.measures import MEASURES, fitting
from report.saying import Says


def test_one_label_worked_by_hand():
    h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
    y = ["dog", "dog", "dog", "cat", "oak"]
    found = evaluate(Says(["dog", "cat", "oak"]), ["dog", "cat", "oak", "cat", "oak"], y, hierarchy=h)
    assert (found.kind, found.n_samples, found.n_wrong) == ("single", 5, 2)
    assert found.metrics["accuracy"] == 0.6
    assert found.metrics["tree_distance"] == (2 + 4) / 5
    assert found.metrics["error_distance"] == 3
    nodes = found.nodes
    assert nodes.name == ("animal", "plant", "dog", "cat", "oak")
    assert nodes.samples.tolist() == [4, 1, 3, 1, 1]
    assert nodes.predicted.tolist() == [3, 2, 1, 2, 2]
    assert nodes.both.tolist() == [3, 1, 1, 1, 1]
    assert nodes.accuracy.tolist() == [0.5, 1, 1 / 3, 1, 1]
    assert nodes.recall.tolist() == [0.75, 1, 1 / 3, 1, 1]
    assert nodes.precision.tolist() == [1, 0.5, 1, 0.5, 0.5]
    np.testing.assert_equal(nodes.leaving, [0.5, np.nan, 1, np.nan, np.nan])  # the dog taken for an oak left "animal"
    assert [nodes.name[i] for i in found.branches()] == ["animal", "plant"]
    assert [nodes.name[i] for i in found.labels()] == ["dog", "cat", "oak"]
    top, leaf = found.depths
    assert (top.accuracy, top.first_errors, leaf.accuracy, leaf.first_errors) == (0.8, 1, 0.6, 1)
    assert [(c.true, c.predicted, c.count, c.distance) for c in found.confusions] == [
        ("dog", "cat", 1, 2),
        ("dog", "oak", 1, 4),
    ]
    assert found.confusions[0].share == pytest.approx(1 / 3)
    assert [(e.id, e.true, e.predicted, e.distance) for e in found.examples] == [
        ("1", [["animal", "dog"]], [["animal", "cat"]], 2),
        ("2", [["animal", "dog"]], [["plant", "oak"]], 4),
    ]
    assert math.isnan(found.examples[0].margin)  # it has no scores
    assert found.reliability is None
    assert found.history == []


def test_measures_are_those_of_metrics(single_model):
    X, y = make(TREE, n_samples=50, noise=2.0, seed=3)
    pred, given = single_model.predict(X), {"hierarchy": TREE}
    found = evaluate(single_model, X, y)
    assert found.metrics == pytest.approx(
        {
            "accuracy": single_model.score(X, y),
            "hierarchical_f1": metrics.hierarchical_f1(y, pred, **given),
            "hierarchical_precision": metrics.hierarchical_precision(y, pred, **given),
            "hierarchical_recall": metrics.hierarchical_recall(y, pred, **given),
            "f1_micro": metrics.f1(y, pred, **given),
            "f1_macro": metrics.f1(y, pred, average="macro", **given),
            "f1_macro_nodes": metrics.f1(y, pred, average="macro", over="nodes", **given),
            "tree_distance": metrics.tree_distance(y, pred, **given),
            "error_distance": metrics.tree_distance(y, pred, **given) * 50 / found.n_wrong,
            "lca_f1": metrics.lca_f1(y, pred, **given),
            "calibration_error": found.reliability.error,
        }
    )
    assert list(found.metrics) == fitting("single", probabilities=True)
    assert found.lshtc == pytest.approx(metrics.lshtc_measures(y, pred, **given))
    assert {d.depth: d.accuracy for d in found.depths} == metrics.accuracy_at_depth(y, pred, **given)


def test_measures_of_label_sets_are_those_of_metrics(sets_model, monkeypatch):
    X, y = make_sets(DAG, n_samples=40, noise=1.5, seed=5)
    pred, given = sets_model.predict(X), {"hierarchy": DAG}
    monkeypatch.setattr(answers_module, "_NUMBERS", 7 * DAG.n_nodes)  # several chunks
    found = evaluate(sets_model, X, y)
    assert found.kind == "sets"
    assert list(found.metrics) == fitting("sets", probabilities=True)
    own = sets_model.hierarchy_
    expected = {
        "exact_match": sets_model.score(X, y),
        "example_jaccard": metrics.example_jaccard(y, pred, **given),
        "example_jaccard_nodes": metrics.example_jaccard(y, pred, over="nodes", **given),
        "f1_micro": metrics.f1(y, pred, **given),
        "f1_samples": metrics.f1(y, pred, average="samples", **given),
        "f1_macro_nodes": metrics.f1(y, pred, average="macro", over="nodes", **given),
        "hamming_distance": metrics.hamming_distance(y, pred, **given),
        "hamming_distance_nodes": metrics.hamming_distance(y, pred, over="nodes", **given),
        "lca_f1": metrics.lca_f1(y, pred, **given),
        "graph_accuracy": metrics.graph_accuracy(y, pred, **given),
    }
    assert {name: found.metrics[name] for name in expected} == pytest.approx(expected)
    assert found.metrics["auprc"] == pytest.approx(
        metrics.auprc(y, sets_model.node_proba(X).astype(np.float32), nodes=own.nodes, **given)
    )
    assert {d.depth: d.accuracy for d in found.depths} == metrics.accuracy_at_depth(y, pred, **given)
    wrong = {str(i) for i in range(40) if y[i] != pred[i]}
    assert {e.id for e in found.examples} <= wrong
    assert found.n_wrong == len(wrong)


def test_reliability_counts_every_prediction_once(single_model, monkeypatch):
    X, y = make(TREE, n_samples=70, noise=1.5, seed=2)
    monkeypatch.setattr(answers_module, "_NUMBERS", 40)  # ten samples at a time
    found = evaluate(single_model, X, y, bins=5).reliability
    confidence, right = single_model.predict_proba(X).max(axis=1), single_model.predict(X) == np.array(y)
    place = np.minimum((confidence * 5).astype(int), 4)
    assert found.count == [int((place == k).sum()) for k in range(5) if (place == k).any()]
    assert found.confidence == pytest.approx([confidence[place == k].mean() for k in range(5) if (place == k).any()])
    assert found.observed == pytest.approx([right[place == k].mean() for k in range(5) if (place == k).any()])
    gaps = np.abs(np.array(found.confidence) - found.observed)
    assert found.error == pytest.approx(np.average(gaps, weights=found.count))


def test_reliability_of_label_sets_is_that_of_nodes(sets_model):
    X, y = make_sets(DAG, n_samples=30, noise=1.5)
    found = evaluate(sets_model, X, y, bins=1).reliability
    own = sets_model.hierarchy_
    counted = [i for i in range(1, own.n_nodes) if not own.is_virtual[i]]  # 0 is the only root
    true = np.array([[own.nodes[i] in own.closure(list(labels)) for i in counted] for labels in y])
    assert found.of == "node"
    assert found.count == [true.size]
    assert found.observed == pytest.approx([true.mean()])
    assert found.confidence == pytest.approx([sets_model.node_proba(X)[:, counted].mean()])


def test_margins_are_differences_of_scores(single_model):
    X, y = make(TREE, n_samples=60, noise=2.5, seed=4)
    found = evaluate(single_model, X, y)
    scores, classes = single_model.decision_function(X), single_model.classes_.tolist()
    assert found.examples
    for example in found.examples:
        i = int(example.id)
        true, pred = example.true[0][-1], example.predicted[0][-1]
        assert example.margin == pytest.approx(scores[i, classes.index(pred)] - scores[i, classes.index(true)])
        assert example.margin >= 0
    margins = [example.margin for example in found.examples]
    assert margins == sorted(margins, reverse=True)
    pairs = [(str(e.true), str(e.predicted)) for e in found.examples]
    assert len(pairs) == len(set(pairs))


def test_two_classes_have_margins_too():
    h = Hierarchy.from_edges([("r", "a"), ("r", "b")])
    model = NHSVM(h).fit([[0.0], [1.0], [0.1], [0.9]], ["a", "b", "a", "b"])
    found = evaluate(model, [[1.0], [0.0]], ["a", "b"])
    assert [example.margin for example in found.examples] == pytest.approx(
        np.abs(model.decision_function([[1.0], [0.0]]))[[int(e.id) for e in found.examples]]
    )


def same(a, b):
    """Equal but for the model's name and time, and rounding of scores."""
    left, right = a.to_dict(), b.to_dict()
    for found in (left, right):
        del found["facts"], found["history"]
        for example in found["examples"]:
            example["margin"] = round(example["margin"], 4)
    return left == right


def test_pipeline_search_frames_and_forms_of_y_give_the_same():
    X, y = make(TREE, n_samples=60)
    scaled = StandardScaler().fit(X)
    bare = NHSVM(TREE, C=1, tol=0.01).fit(scaled.transform(X), y)
    expected = evaluate(bare, scaled.transform(X), y)
    pipeline = make_pipeline(scaled, bare)
    assert same(evaluate(pipeline, X, y), expected)
    assert evaluate(pipeline, X, y).facts["model"] == "StandardScaler → NHSVM"
    for frame in (list(X), X.tolist()):
        assert same(evaluate(pipeline, frame, pl.Series(y)), expected)
    named = make_pipeline(StandardScaler().fit(pd.DataFrame(X, columns=list("abcdef"))), bare)
    for frame in (
        pd.DataFrame(X, columns=list("abcdef"), index=range(100, 160)),
        pl.DataFrame(X, schema=list("abcdef")),
    ):
        assert same(evaluate(named, frame, pd.Series(y)), expected)
    for matrix in (sp.csr_array(scaled.transform(X)), sp.coo_array(scaled.transform(X))):
        assert same(evaluate(bare, matrix, np.array(y)), expected)
    assert same(evaluate(bare, scaled.transform(X), [[label] for label in y]), expected)
    search = GridSearchCV(NHSVM(TREE, tol=0.01), {"C": [1.0]}, cv=2).fit(scaled.transform(X), y)
    assert same(evaluate(search, scaled.transform(X), y), expected)


def test_indicators_and_other_forms_of_label_sets_give_the_same():
    X, y = make_sets(TREE, n_samples=40)
    columns = list(TREE.leaves)
    matrix = np.array([[int(leaf in labels) for leaf in columns] for labels in y])
    by_sets = evaluate(NHSVM(TREE, tol=0.05).fit(X, y), X, y)
    by_matrix = NHSVM(TREE, tol=0.05).fit(X, matrix)
    for form in (matrix, sp.csr_array(matrix), pd.DataFrame(matrix, columns=columns), y, [tuple(s) for s in y]):
        assert same(evaluate(by_matrix, X, form), by_sets)


def test_label_sets_of_single_labels():
    X, y = make_sets(TREE, n_samples=40)
    model = NHSVM(TREE, tol=0.05).fit(X, y)
    assert same(
        evaluate(model, X[:4], ["dog", "cat", "oak", "dog"]),
        evaluate(model, X[:4], [{"dog"}, {"cat"}, {"oak"}, {"dog"}]),
    )


def test_empty_label_sets():
    X, y = make_sets(TREE, n_samples=40, empty=True)
    model = NHSVM(TREE, tol=0.05, allow_empty=True).fit(X, y)
    found = evaluate(model, np.zeros((2, X.shape[1])), [set(), {"dog"}])
    assert found.n_samples == 2
    assert found.to_dict()["examples"][-1]["true"] in ([], [["life", "animal", "dog"]])


def test_labels_on_inner_nodes_are_labels():
    h = Hierarchy.from_edges([("a", "b"), ("a", "c")])
    model = NHSVM(h).fit([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], ["a", "b", "c"])
    found = evaluate(model, [[1.0, 0, 0], [0, 1.0, 0], [0, 1.0, 0]], ["a", "b", "a"])
    assert found.nodes.name == ("a", "b", "c")
    assert found.nodes.own.tolist() == [2, 1, 0]
    assert found.nodes.own_found.tolist() == [1, 1, 0]
    assert found.nodes.own_said.tolist() == [1, 2, 0]
    assert [found.nodes.name[i] for i in found.labels()] == ["a", "b"]
    assert found.metrics["tree_distance"] == pytest.approx(1 / 3)
    assert np.isfinite(found.nodes.weight).all()
    virtual = NHSVM(h.with_virtual_leaves(["a"])).fit([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], ["a", "b", "c"])
    assert evaluate(virtual, [[1.0, 0, 0]], ["a"]).nodes.name == ("a", "b", "c")


def test_labels_that_training_has_not_seen_are_counted():
    X, y = make(TREE, n_samples=60, labels=["dog", "cat", "oak"])
    model = NHSVM(TREE, tol=0.05).fit(X, y)
    found = evaluate(model, X[:4], ["dog", "cat", "rose", "rose"])
    assert found.metrics["accuracy"] <= 0.5
    (note,) = found.notes
    assert "2 of 4 samples have a label that training has not seen (1 such label: rose)" in note
    assert "Of the others" in note
    assert found.nodes.is_known[found.nodes.name.index("rose")] == False  # noqa: E712
    assert math.isnan(found.nodes.weight[found.nodes.name.index("rose")])
    margins = {e.id: e.margin for e in found.examples}
    assert math.isnan(margins.get("2", margins.get("3")))
    assert "Of the others" not in evaluate(model, X[:1], ["rose"]).notes[0]


def test_unseen_labels_in_label_sets_count_in_auprc(sets_model):
    X, y = make_sets(DAG, n_samples=30)
    model = NHSVM(DAG, tol=0.1).fit(X, [labels - {"w"} or {"y"} for labels in y])
    full, reduced = evaluate(model, X, y), evaluate(model, X, [labels - {"w"} or {"y"} for labels in y])
    assert full.metrics["auprc"] < reduced.metrics["auprc"]
    assert "training has not seen" in full.notes[0]


def test_a_model_without_hierarchy_meets_new_labels():
    model = FlatSVM().fit([[0.0], [1.0]], ["a", "b"])
    found = evaluate(model, [[0.0], [1.0]], ["a", "z"])
    assert found.nodes.name == ("a", "b", "z")
    assert "such label: z" in found.notes[0]
    assert len(found.branches()) == 0


def test_a_flat_model_is_judged_by_a_hierarchy():
    X, y = make(TREE, n_samples=60, noise=2.0)
    flat = FlatSVM().fit(X, y)
    assert len(evaluate(flat, X, y).depths) == 1
    found = evaluate(flat, X, y, hierarchy=TREE)
    assert found.metrics["tree_distance"] == metrics.tree_distance(y, flat.predict(X), hierarchy=TREE)
    other = LogisticRegression().fit(X, y)
    assert evaluate(other, X, y, hierarchy=TREE).metrics["accuracy"] == pytest.approx(other.score(X, y))
    assert evaluate(other, X, y).reliability.count


def test_labels_may_be_numbers_or_paths():
    numbers = evaluate(Says([3, 4]), [3, 4], [3, 3], hierarchy=Hierarchy.from_edges([(1, 3), (1, 4)]))
    assert numbers.nodes.name == ("1", "3", "4")
    assert numbers.confusions[0].true == "3"
    h = Hierarchy.from_paths([("books", "other"), ("toys", "other")], qualified=True)
    labels = list(h.leaves)
    model = NHSVM(h).fit([[0.0, 1.0], [1.0, 0.0]], labels)
    found = evaluate(model, [[0.0, 1.0]], [labels[1]])
    assert found.examples[0].true == [["toys", "other"]]
    assert found.confusions[0].true == "toys › other"


def test_names_leave_out_what_the_parent_says():
    h = Hierarchy.from_edges([("sci", "sci.med"), ("sci", "science"), ("sci", "sci."), ("a", "ab"), ("a", "a > c")])
    found = evaluate(Says(list(h.leaves)), ["ab"], ["ab"], hierarchy=h)
    assert dict(zip(found.nodes.name, found.nodes.short, strict=True)) == {
        "sci": "sci", "a": "a", "sci.med": "med", "science": "science", "sci.": "sci.", "ab": "ab", "a > c": "c",
    }  # fmt: skip


def test_a_dag_says_so(sets):
    assert any("several parents" in note for note in sets.notes)
    assert max(len(e.true) for e in sets.examples) >= 1


def test_texts_and_ids(text_model):
    model, texts, y = text_model
    wrong = ["oak" if label == "dog" else "dog" for label in y]
    found = evaluate(model, texts, wrong, ids=[f"doc-{i}" for i in range(len(texts))])
    assert {(e.id, e.text) for e in found.examples} <= {(f"doc-{i}", text) for i, text in enumerate(texts)}
    given = evaluate(
        model, texts, wrong, texts=pd.Series(["x  y\n" * 400] * len(texts), index=range(5, 5 + len(texts)))
    )
    assert given.examples[0].text.startswith("x y x y")
    assert len(given.examples[0].text) <= 280
    assert given.examples[0].text.endswith("…")
    assert evaluate(model, texts, wrong, examples=0, confusions=0).examples == []


def test_many_labels_are_cut():
    h = Hierarchy.from_edges([("r", str(i)) for i in range(40)])
    rng = np.random.default_rng(0)
    y = [{str(i) for i in range(20)}, {str(i) for i in range(20, 40)}] * 2
    model = NHSVM(h, tol=0.1).fit(rng.normal(size=(4, 3)), y)
    found = evaluate(model, np.zeros((1, 3)), [set(map(str, range(0, 40, 2)))])
    assert found.examples[0].true[-1] == ["and 8 more"]


def test_auprc_that_would_need_too_much_memory_is_left_out(sets_model, monkeypatch):
    X, y = make_sets(DAG, n_samples=20)
    monkeypatch.setattr(answers_module, "_KEPT", 10)
    found = evaluate(sets_model, X, y)
    assert "auprc" not in found.metrics
    assert any("AU(PRC) was left out" in note for note in found.notes)


def test_to_dict_is_json(single, sets, nasty):
    for found in (single, sets, nasty):
        text = json.dumps(found.to_dict(), allow_nan=False)
        assert json.loads(text) == found.to_dict()
        assert len(found.to_dict()["nodes"]["accuracy"]) == len(found.nodes)
    assert isinstance(single, Evaluation)


def test_facts(single, single_model):
    assert single.facts["model"] == "NHSVM"
    assert single.facts["classes"] == 4
    assert single.facts["weights"] == "maxmin"
    assert single.facts["weights_stored"] == single_model.model_.weights.count_nonzero()
    assert 0 < single.facts["weights_stored"] <= 6 * 7  # the root has no weight
    assert single.facts["gap"] <= 0.01
    assert single.facts["hierarchy"] == "tree, 7 nodes, 4 leaves, 1 root, 3 levels"
    assert single.history[-1]["certified"] is True


def test_everything_right():
    found = evaluate(Says(["a", "b"]), ["a", "b"], ["a", "b"], hierarchy=Hierarchy.from_edges([("r", "a"), ("r", "b")]))
    assert found.n_wrong == 0
    assert (found.confusions, found.examples) == ([], [])
    assert math.isnan(found.metrics["error_distance"])


def test_every_measure_has_words():
    assert set(fitting("single", probabilities=True)) | set(fitting("sets", probabilities=True)) == set(MEASURES)
    assert "calibration_error" not in fitting("sets", probabilities=False)


def test_models_without_probabilities_or_history(single_model):
    X, y = make(TREE, n_samples=40)

    def stop(record):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        interrupted = NHSVM(TREE, probability=True, callback=stop).fit(X, y)
    found = evaluate(interrupted, X, y)  # it was to have probabilities, but they come last
    assert found.reliability is None
    assert len(found.history) == 1
    streamed = NHSVM(TREE, solver="sgd").partial_fit(X, y, classes=list(TREE.leaves))
    assert evaluate(streamed, X, y).history == []
    other = LogisticRegression().fit(X, y)
    other.history_ = "what other libraries keep there"
    assert evaluate(other, X, y).history == []


@pytest.mark.parametrize("kind", ["single_model", "sets_model"])
def test_predictions_for_a_measure(kind, request):
    """Everything is about the labels that ``predict(X, for_measure=...)`` gives."""
    model = request.getfixturevalue(kind)
    X, y = make(TREE, noise=3.0, seed=4) if kind == "single_model" else make_sets(DAG, noise=3.0, seed=4)
    found, plain = evaluate(model, X, y, for_measure="hierarchical_f1"), evaluate(model, X, y)
    pred = model.predict(X, for_measure="hierarchical_f1")
    assert found.metrics["hierarchical_f1"] == metrics.hierarchical_f1(y, pred, hierarchy=model.hierarchy)
    if kind == "sets_model":  # where answers are others
        assert found.metrics["hierarchical_f1"] != plain.metrics["hierarchical_f1"]
    assert found.n_wrong == sum(a != b for a, b in zip(pred, y, strict=True))


def test_a_measure_is_for_models_of_this_library(single_model):
    X, y = make(TREE)
    with pytest.raises(OptionError, match="for models of this library, and not for LogisticRegression"):
        evaluate(LogisticRegression().fit(X, y), X, y, hierarchy=TREE, for_measure="hierarchical_f1")
    with pytest.raises(OptionError, match="for_measure must be one of"):
        evaluate(single_model, X, y, for_measure="f1_macro")
