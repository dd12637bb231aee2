"""Models and evaluations that several tests look at; each is made once."""

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from estimators.problems import DAG, TREE, make, make_sets
from nhsvm import NHSVM, Hierarchy
from nhsvm.report import evaluate

TEXTS = {
    "dog": ["barks at the cat", "a loyal friend that barks", "barks and runs", "a friend who fetches"],
    "cat": ["purrs and sleeps", "chases mice and purrs", "sleeps all day", "hunts mice at night"],
    "oak": ["acorns and leaves", "a tree with leaves", "a tall tree", "leaves fall from the tree"],
}


@pytest.fixture(scope="session")
def single_model():
    X, y = make(TREE, n_samples=120, noise=1.5)
    return NHSVM(TREE, C=1, tol=0.01, probability=True, cv=2).fit(X, y)


@pytest.fixture(scope="session")
def single(single_model):
    X, y = make(TREE, n_samples=200, noise=1.5, seed=0)
    return evaluate(single_model, X, y)


@pytest.fixture(scope="session")
def sets_model():
    X, y = make_sets(DAG, n_samples=80, noise=1.0)
    return NHSVM(DAG, C=1, tol=0.05, probability=True, cv=2).fit(X, y)


@pytest.fixture(scope="session")
def sets(sets_model):
    X, y = make_sets(DAG, n_samples=60, noise=1.5)
    return evaluate(sets_model, X, y)


@pytest.fixture(scope="session")
def text_model():
    """A pipeline, with labels that are markup and would do harm if they were not escaped."""
    h = Hierarchy.from_edges(
        [("<b>animal</b>", "dog"), ("<b>animal</b>", "<script>alert(1)</script>"), ("plant", "oak")]
    )
    names = {"dog": "dog", "cat": "<script>alert(1)</script>", "oak": "oak"}
    pairs = [(text, names[label]) for label, texts in TEXTS.items() for text in texts]
    texts, y = [text for text, _ in pairs], [label for _, label in pairs]
    return make_pipeline(TfidfVectorizer(), NHSVM(h, C=10)).fit(texts, y), texts, y


@pytest.fixture(scope="session")
def nasty(text_model):
    model, texts, y = text_model
    wrong = ["<img src=x onerror=alert(1)> barks </script>", "purrs & sleeps", 'a "tree"']
    return evaluate(model, [*texts, *wrong], [*y, "oak", "dog", "dog"])
