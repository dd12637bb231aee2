"""Data sets as plain files that a worker in any environment can read."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from registry import BIG
from sklearn.feature_extraction.text import TfidfVectorizer

sys.path.append(str(Path(__file__).parents[1]))
from data import Labels, Matrix, Problem, load, stratified_split
from generate import text_like
from nhsvm.datasets import load_docstrings

OUR_SPLIT = ("mitre_attack",)  # data.py splits these itself; the others come split
VALID_SHARE = 0.2
SEED = 0

Words = tuple[list[str], list[str]]  # of the training and of the test samples


def prepare(name: str, data: Path | None, folder: Path) -> str:
    """Write a set to ``folder``, unless it is there, and give a line that describes it."""
    facts = folder / "facts.json"
    if not facts.exists():
        folder.mkdir(parents=True, exist_ok=True)
        problem, words = _read(name, data)
        write(problem, words, folder)
    return str(json.loads(facts.read_text())["description"])


def _read(name: str, data: Path | None) -> tuple[Problem, Words | None]:
    if name == "docstrings":
        return _docstrings()
    if name == "generated":
        problem = text_like(20_000, 50_000, 500, seed=SEED)
    elif name == BIG:
        problem = text_like(100_000, 150_000, 5_000, n_inner=(200, 1_800), seed=SEED)
    else:
        problem = load(name, data)
    if not sp.issparse(problem.X_train):
        return problem, None
    if data is not None and (data / name / "docs.jsonl.gz").exists():
        return problem, _raw_words(problem, data / name)
    return problem, (_words_of(problem.X_train, problem.X_train), _words_of(problem.X_test, problem.X_train))


def _docstrings() -> tuple[Problem, Words]:
    found = load_docstrings()
    texts, y = np.array(found.texts, dtype=object), np.array(found.y, dtype=str)
    train, test = stratified_split(y, 0.25, SEED)
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    X_train, X_test = vectorizer.fit_transform(texts[train]), vectorizer.transform(texts[test])
    problem = Problem("docstrings", found.hierarchy, X_train, y[train], X_test, y[test], "labels on inner nodes too")
    return problem, (_lines(texts[train]), _lines(texts[test]))


def _raw_words(problem: Problem, folder: Path) -> Words:
    """The texts behind the samples; that they are the same samples, in the same order, is checked by their labels."""
    with gzip.open(folder / "docs.jsonl.gz", "rt", encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    single = [d for d in documents if len(d["labels"]) == 1]
    y = np.array([d["labels"][0] for d in single])
    split = np.array([d["split"] for d in single])
    if problem.name in OUR_SPLIT:
        train, test = stratified_split(y, 0.25, SEED)
    else:
        train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    if not (np.array_equal(y[train], problem.y_train) and np.array_equal(y[test], problem.y_test)):
        raise ValueError(f"{problem.name}: texts and features are not of the same samples; has data.py a new split?")
    return _lines([single[i]["text"] for i in train]), _lines([single[i]["text"] for i in test])


def _lines(texts: npt.ArrayLike) -> list[str]:
    """The words that tf-idf counts, in their order: everybody has the same words."""
    words = TfidfVectorizer().build_analyzer()
    return [" ".join(words(text)) for text in texts]


def _words_of(X: Matrix, X_train: Matrix) -> list[str]:
    """Word numbers as words, for sets that come as counts: tf is got back from (1 + ln tf)·idf of a row of any length.

    The rarest word of a document is taken to occur once, which sets the length of its row.
    """
    n = X_train.shape[0]
    idf = np.log((1 + n) / (1 + np.bincount(X_train.indices, minlength=X_train.shape[1]))) + 1
    lines = []
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        words = X.indices[a:b]
        values = X.data[a:b] / idf[words]
        counts = np.rint(np.exp(values / values.min() - 1)).astype(int) if len(words) else words
        lines.append(" ".join(f"w{j}" for j in np.repeat(words, counts)))
    return lines


def write(problem: Problem, words: Words | None, folder: Path) -> None:
    classes, y_train = np.unique(problem.y_train, return_inverse=True)
    fit_rows, valid_rows = stratified_split(problem.y_train, VALID_SHARE, SEED)
    for part, X in (("train", problem.X_train), ("test", problem.X_test)):
        if sp.issparse(X):
            sp.save_npz(folder / f"X_{part}.npz", X)
        else:
            np.save(folder / f"X_{part}.npy", X)
    for part, lines in zip(("train", "test"), words or (), strict=False):
        (folder / f"words_{part}.txt").write_text("\n".join(lines), encoding="utf-8")
    np.save(folder / "y_train.npy", y_train)
    np.save(folder / "fit_rows.npy", fit_rows)
    np.save(folder / "valid_rows.npy", valid_rows)
    (folder / "truth.json").write_text(json.dumps(_names(problem.y_test)))
    facts = {
        "description": str(problem),
        "classes": _names(classes),
        "nodes": list(problem.hierarchy.nodes),
        "edges": list(problem.hierarchy.edges()),
        "is_tree": problem.hierarchy.is_tree,
    }
    (folder / "facts.json").write_text(json.dumps(facts))  # last: it says that the rest is there


def _names(y: Labels) -> list[str]:
    return [str(name) for name in y]
