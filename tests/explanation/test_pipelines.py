"""Pipelines are explained with the words of a text."""

import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import nhsvm
from nhsvm import NHSVM, Hierarchy
from nhsvm.errors import OptionError
from nhsvm.explanation import features_of

H = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
TEXTS = [
    "barks at cats",
    "a loyal friend that barks",
    "purrs and sleeps",
    "chases mice, purrs",
    "acorns, leaves",
    "leaves",
]
LABELS = ["dog", "dog", "cat", "cat", "oak", "oak"]


@pytest.fixture(scope="module")
def model():
    return make_pipeline(TfidfVectorizer(), NHSVM(H, C=10, tol=1e-6)).fit(TEXTS, LABELS)


def test_a_text_and_its_words(model):
    (e,) = nhsvm.explain(model, "it purrs and purrs and sleeps")
    assert e.label == "cat"
    assert set(e.features) == {"purrs", "and", "sleeps"}
    assert e.features[0] == "purrs"
    scores = model.decision_function(["it purrs and purrs and sleeps"])[0]
    assert e.score == pytest.approx(scores[list(model.classes_).index("cat")], abs=1e-9)


def test_several_texts_labels_and_a_contrast(model):
    found = nhsvm.explain(model, ["barks", "leaves"], ["dog", "oak"], against="cat", top=1)
    assert [(e.row, e.label, e.against) for e in found] == [
        (row, label, "cat") for row in (0, 1) for label in ("dog", "oak")
    ]


def test_several_steps():
    steps = make_pipeline(CountVectorizer(), TfidfTransformer(), "passthrough", NHSVM(H)).fit(TEXTS, LABELS)
    assert nhsvm.explain(steps, "barks")[0].features == ("barks",)


def test_features_without_names_are_numbered():
    hashing = make_pipeline(HashingVectorizer(n_features=64), NHSVM(H)).fit(TEXTS, LABELS)
    assert features_of(hashing) is None
    (name,) = nhsvm.explain(hashing, "barks")[0].features
    assert name == f"x{hashing[0].transform(['barks']).indices[0]}"
    assert nhsvm.explain(hashing, "barks", feature_names=["w"] * 64)[0].features == ("w",)


def test_an_estimator_alone():
    X = [[1.0, 0.0], [0.0, 1.0]]
    model = NHSVM(Hierarchy.from_edges([("a", "b"), ("a", "c")])).fit(X, ["b", "c"])
    assert str(nhsvm.explain(model, X[0])) == str(model.explain(X[0]))
    assert features_of(model) is None
    assert str(nhsvm.explain(Pipeline([("svm", model)]), X)) == str(model.explain(X))


def test_what_cannot_be_explained():
    with pytest.raises(OptionError, match="not LogisticRegression"):
        nhsvm.explain(make_pipeline(TfidfVectorizer(), LogisticRegression()), "text")
    with pytest.raises(OptionError, match="not str"):
        nhsvm.explain("model.nhsvm", "text")
