"""Every storage of weights in training keeps the protocol ``Weights``; adding one is a file and a line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import nhsvm
from nhsvm import HSVM, NHSVM, Hierarchy
from nhsvm.engine import prepare
from nhsvm.engine import storage as package
from nhsvm.engine.samples import Updates
from nhsvm.engine.storage import STORAGES, Storage, make_weights
from nhsvm.threads import Team

DOUBLED = '''
import numpy as np
import scipy.sparse as sp

from nhsvm.engine.protocols import Weights
from nhsvm.storage import Table
from nhsvm.storage.samples import Entries


class Batch:
    def __init__(self, weights, rows):
        self.U, self.samples = weights.U, weights.samples[rows]
        self.gram = self.samples @ self.samples.T

    def apply(self, updates, team):
        owner = np.repeat(np.arange(len(self.samples)), np.diff(updates.indptr))
        n = len(owner)
        np.add.at(self.U, updates.columns[:n], updates.values[:n, None] * self.samples[owner])


class Doubled(Weights):
    """A table in double precision, whatever the samples are in."""

    def __init__(self, X, n_columns, bias):
        self.X, self.bias = X, bias
        self.n_samples, self.n_features = X.shape
        self.U = np.zeros((n_columns, X.shape[1] + 1))
        dense = X.toarray() if sp.issparse(X) else X
        self.samples = np.hstack([dense.astype(float), np.full((len(dense), 1), bias)])

    @classmethod
    def zeros(cls, X, n_columns, bias, dtype, limit):
        return cls(X, n_columns, bias)

    @property
    def n_columns(self):
        return len(self.U)

    @property
    def dtype(self):
        return self.U.dtype

    @property
    def squared_norms(self):
        return (self.samples**2).sum(axis=1)

    def entries(self):
        return Entries.of(self.X)

    def scores(self, rows, out):
        out[:] = self.samples[rows] @ self.U.T

    def batch(self, rows):
        return Batch(self, rows)

    def column_cost(self):
        return np.inf

    def rebuild(self, updates, team):
        self.U[:] = 0.0
        self.batch(np.arange(self.n_samples)).apply(updates, team)
        return self.column_norms(), self.column_norms()

    def column_norms(self):
        return (self.U**2).sum(axis=1)

    def rescale(self, factors):
        self.U *= factors[:, None]

    def double(self):
        return Doubled(self.X, self.n_columns, self.bias)

    def learned(self):
        return Table(self.U, by_feature=False)
'''
LINE = 'Storage("doubled", "doubled.Doubled", "a table in double precision"),'
USE = """
import numpy as np
from nhsvm.engine.storage import STORAGES, make_weights
assert list(STORAGES)[0] == "doubled"
weights = make_weights(np.eye(3, dtype=np.float32), 2, 1.0, None, None)
assert type(weights).__name__ == "Doubled" and weights.learned().dtype == np.float64
"""


@pytest.fixture
def doubled(tmp_path, monkeypatch):
    """The storage of above, registered first."""
    (tmp_path / "doubled.py").write_text(DOUBLED, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    spec = eval(LINE.rstrip(","), {"Storage": Storage})
    monkeypatch.setattr(STORAGES, "specs", {spec.name: spec} | STORAGES.specs)
    yield "doubled"
    sys.modules.pop("nhsvm.engine.storage.doubled", None)


def table_of(weights):
    """U as a model gets it, the constant feature's weights last."""
    learned = weights.learned()
    U = learned.to_array()
    return np.hstack([U.toarray() if sp.issparse(U) else U, learned.constant[:, None]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*STORAGES, "doubled"])
def test_what_every_storage_does(name, dtype, doubled):
    rng = np.random.default_rng(0)
    n, n_columns, bias = 30, 7, 0.5
    X = rng.normal(size=(n, 12)) * (rng.random((n, 12)) < 0.4)
    X = prepare(X if name == "dense table" else sp.csr_array(X), dtype)
    samples = np.hstack([X.toarray() if sp.issparse(X) else X, np.full((n, 1), bias)]).astype(float)
    made = lambda: STORAGES[name].zeros(X, n_columns, bias, np.dtype(dtype), 2**20)
    close = {"rtol": 1e-11, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}

    def random_updates(k):
        table = sp.random_array((k, n_columns), density=0.4, rng=rng, format="csr")
        updates = Updates(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data)
        return updates, table.toarray()

    weights = made()
    assert (weights.n_samples, weights.n_features, weights.n_columns) == (n, 12, n_columns)
    np.testing.assert_allclose(weights.squared_norms, (samples**2).sum(axis=1), rtol=1e-6)
    U = np.zeros((n_columns, 13))
    with Team(2) as team:
        for _ in range(3):
            rows = rng.permutation(n)[:11]
            batch = weights.batch(rows)
            np.testing.assert_allclose(batch.gram, samples[rows] @ samples[rows].T, **close)
            updates, table = random_updates(11)
            batch.apply(updates, team)
            U += table.T @ samples[rows]
        rows = rng.permutation(n)
        for n_scored in (weights.n_columns, 3):
            scores = np.empty((n, n_columns))
            weights.head_scores(rows, n_scored, scores)
            np.testing.assert_allclose(scores[:, :n_scored], (samples[rows] @ U.T)[:, :n_scored], **close)
        scores = np.full((n, n_columns), 7.0, weights.dtype)
        weights.scorer(rows)(4, 9, scores)
        np.testing.assert_allclose(scores[4:9], samples[rows[4:9]] @ U.T, **close)
        assert (scores[:4] == 7.0).all()
        np.testing.assert_allclose(weights.column_norms(), (U**2).sum(axis=1), **close)
        factors = rng.random(n_columns)
        weights.rescale(factors)
        np.testing.assert_allclose(table_of(weights), U * factors[:, None], **close)
        weights = made().double()
        assert weights.dtype == np.float64
        updates, table = random_updates(n)
        exact, stored = weights.rebuild(updates, team)
    U = table.T @ samples
    np.testing.assert_allclose(exact, (U**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(stored, exact, rtol=1e-12)
    np.testing.assert_allclose(table_of(weights), U, rtol=1e-11, atol=1e-12)


LEAVES = ["dog", "cat", "oak", "fir"]
TREE = [("animal", "dog"), ("animal", "cat"), ("plant", "oak"), ("plant", "fir")]


@pytest.mark.parametrize("edges", [TREE, [*TREE, ("pet", "dog"), ("pet", "cat")]], ids=["tree", "DAG"])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("kind", [HSVM, NHSVM])
def test_a_fit_through_another_storage(kind, several, edges, doubled, monkeypatch):
    """The same optimum, and a model of what the storage has learned."""
    rng = np.random.default_rng(1)
    h = Hierarchy.from_edges(edges)
    y = rng.integers(4, size=80)
    X = (np.eye(4)[y] + 0.4 * rng.normal(size=(80, 4))).astype(np.float32)
    labels = [{LEAVES[k], LEAVES[k // 2]} for k in y] if several else np.array(LEAVES)[y]
    found = kind(h, C=2.0, tol=1e-3).fit(X, labels)
    assert found.model_.weights.dtype == np.float64
    monkeypatch.undo()  # the storages of the library
    expected = kind(h, C=2.0, tol=1e-3).fit(X, labels)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    assert found.gap_ <= 1e-3
    answers = zip(found.predict(X), expected.predict(X), strict=True)
    assert np.mean([set(one) == set(other) for one, other in answers]) >= 0.95


def test_the_first_storage_that_suits_is_taken(doubled):
    assert type(make_weights(np.eye(3), 2, 1.0, None, None)).__name__ == "Doubled"


def test_adding_one_is_a_file_and_a_line(tmp_path):
    copy = tmp_path / "nhsvm"
    source = Path(nhsvm.__file__).parent
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    home = copy / "engine" / "storage"
    (home / "doubled.py").write_text(DOUBLED, encoding="utf-8")
    registry = home / "__init__.py"
    content = registry.read_text(encoding="utf-8")
    start = content.index("    [\n        Storage(") + len("    [\n")
    registry.write_text(f"{content[:start]}        {LINE}\n{content[start:]}", encoding="utf-8")
    touched = []
    for path in sorted(copy.rglob("*.py")):
        before = source / path.relative_to(copy)
        old = before.read_text(encoding="utf-8").splitlines() if before.exists() else None
        new = path.read_text(encoding="utf-8").splitlines()
        if old != new:
            touched.append((path.relative_to(copy).as_posix(), None if old is None else len(new) - len(old)))
    assert touched == [("engine/storage/__init__.py", 1), ("engine/storage/doubled.py", None)]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", USE], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
