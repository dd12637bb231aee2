"""Fits over all paths of the library, by its public names only: what a golden file holds, and what parity is timed on.

labels one or sets × tree or DAG × weights as a table (sparse or dense samples) or in rows × all estimators, and the
paths that only an option takes.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy
import scipy.sparse as sp
from llvmlite import binding
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import nhsvm

FOLDER = Path(__file__).resolve().parent
GOLDEN = FOLDER / "golden.json"
FILES = FOLDER / "files"


class Data(NamedTuple):
    """Samples, their labels and label sets, and a hierarchy."""

    X: sp.csr_array
    y: list[str]
    sets: list[set[str]]
    hierarchy: nhsvm.Hierarchy


class Size(NamedTuple):
    """Of the data."""

    samples: int
    features: int
    inner: int
    leaves: int


SMALL = Size(150, 60, 6, 20)
SETTLED = {"C": 1.0, "intercept_scaling": 1.0, "leaf_offset": 0.0}  # whatever the defaults
ESTIMATORS = ("FlatSVM", "HSVM", "NHSVM", "SSVM", "HRSVM")


def make_data(size: Size, dag: bool) -> Data:
    """Documents whose words are those of the nodes above their labels, with some noise."""
    rng = np.random.default_rng(7)
    inner = [f"n{k}" for k in range(size.inner)]
    leaves = [f"l{k}" for k in range(size.leaves)]
    edges = {(inner[(k - 1) // 3], inner[k]) for k in range(1, size.inner)}
    edges |= {(inner[k % size.inner], leaf) for k, leaf in enumerate(leaves)}
    if dag:
        edges |= {(inner[(k + 1) % size.inner], leaves[k]) for k in range(0, size.leaves, 3)}
    hierarchy = nhsvm.Hierarchy.from_edges(sorted(edges))
    per_node = rng.random((hierarchy.n_nodes, size.features)) ** 8
    sets = [set(rng.choice(leaves, rng.choice([1, 1, 2, 3]), replace=False).tolist()) for _ in range(size.samples)]
    rates = np.array([per_node[[hierarchy.number(n) for n in hierarchy.ancestors(s)]].sum(axis=0) for s in sets])
    X = sp.csr_array(rng.poisson(rates + 0.02).astype(np.float64))
    norms = np.sqrt(X.multiply(X).sum(axis=1)).ravel()
    X = sp.csr_array(sp.diags_array(1.0 / np.maximum(norms, 1e-9)) @ X)
    X.resize(size.samples, 20 * size.features)  # words of other documents: what weights in rows have no room for
    return Data(X, [min(s) for s in sets], sets, hierarchy)


class Case(NamedTuple):
    """One fit."""

    estimator: str
    dag: bool
    has_sets: bool
    dense: bool
    options: dict[str, Any]

    def model(self, data: Data, n_jobs: int = 1) -> Any:
        """The estimator, unfitted."""
        kind = getattr(nhsvm, self.estimator)
        settled = {name: value for name, value in SETTLED.items() if name in inspect.signature(kind).parameters}
        return kind(data.hierarchy, n_jobs=n_jobs, **settled | self.options)

    def samples(self, data: Data) -> Any:
        """As the case has them."""
        return data.X.toarray() if self.dense else data.X

    def labels(self, data: Data) -> Any:
        """Labels, or label sets."""
        return data.sets if self.has_sets else data.y


def cases(rows_limit: str = "80kB") -> dict[str, Case]:
    """All of them by name; ``rows_limit`` is memory in which no table of weights has room."""
    found: dict[str, Case] = {}
    for dag in (False, True):
        shape = "dag" if dag else "tree"
        for has_sets in (False, True):
            labels = "sets" if has_sets else "one"
            for estimator in ESTIMATORS:
                found[f"{estimator}-{labels}-{shape}"] = Case(estimator, dag, has_sets, False, {"tol": 1e-2})
            rows = {"tol": 1e-2, "memory_limit": rows_limit}
            found[f"NHSVM-{labels}-{shape}-rows"] = Case("NHSVM", dag, has_sets, False, rows)
            found[f"NHSVM-{labels}-{shape}-dense"] = Case("NHSVM", dag, has_sets, True, {"tol": 1e-2})
        found[f"NHSVM-one-{shape}-double"] = Case("NHSVM", dag, False, False, {"tol": 1e-6})
    found["HRSVM-one-tree-rows"] = Case("HRSVM", False, False, False, {"tol": 1e-2, "memory_limit": rows_limit})
    found["NHSVM-one-tree-normalized"] = Case("NHSVM", False, False, False, {"tol": 1e-2, "margin": "normalized"})
    found["NHSVM-one-tree-sgd"] = Case("NHSVM", False, False, False, {"solver": "sgd", "max_iter": 5, "tol": 1e-2})
    found["NHSVM-one-tree-power"] = Case("NHSVM", False, False, False, {"tol": 1e-2, "weights": "power"})
    found["NHSVM-one-tree-probability"] = Case("NHSVM", False, False, False, {"tol": 1e-2, "probability": True})
    found["NHSVM-sets-tree-probability"] = Case("NHSVM", False, True, False, {"tol": 1e-2, "probability": True})
    found["NHSVM-sets-tree-offsets"] = Case("NHSVM", False, True, False, {"tol": 1e-2, "offsets": "f1_macro"})
    found["NHSVM-sets-dag-lp"] = Case("NHSVM", True, True, False, {"tol": 5e-2, "oracle": "lp"})
    return found


def record(case: Case, data: Data, n_jobs: int = 1) -> dict[str, Any]:
    """What a fit ends with, to the last bit: floats as hexadecimal, predictions and scores as hashes."""
    X = case.samples(data)
    with warnings.catch_warnings(), threadpool_limits(1, "blas"):  # whose threads round otherwise
        warnings.simplefilter("ignore")
        model = case.model(data, n_jobs).fit(X, case.labels(data))
        scores = model.decision_function(X)
    return {
        "objective": float(model.objective_).hex(),
        "dual": float(model.dual_objective_).hex(),
        "passes": int(model.n_iter_),
        "predictions": _hash("\n".join(answers(model, X)).encode()),
        "scores": _hash(np.ascontiguousarray(scores).tobytes()),
    }


def answers(model: Any, X: Any) -> list[str]:
    """Predictions as texts."""
    return [", ".join(sorted(found)) if isinstance(found, set) else str(found) for found in model.predict(X).tolist()]


def signature() -> dict[str, str]:
    """What the last bits of a result depend on, beside the code: the processor, and who rounds on it."""
    on = [name for name, has in binding.get_host_cpu_features().items() if has]
    # kernels can be compiled for other processors than this one, and BLAS can be told to take it for another
    told = [numba.config.CPU_NAME, numba.config.CPU_FEATURES, os.environ.get("OPENBLAS_CORETYPE")]
    host = f"{binding.get_host_cpu_name()} {_hash(' '.join(sorted(on)).encode())}"
    return {
        "processor": " ".join([host, *(repr(name) for name in told if name is not None)]),
        "versions": f"numba {numba.__version__}, numpy {np.__version__}, scipy {scipy.__version__}",
    }


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


# -- model files of every kind, as versions before have written them ---------------------------------------------------

TINY = Size(40, 5, 3, 6)
TEXTS = ["it barks", "it purrs", "leaves in the wood", "a loyal dog barks", "the cat purrs", "an oak has leaves"]


def file_models() -> dict[str, tuple[Any, Any, str | None]]:
    """(model, samples to ask it about, precision in the file) by the name of the file."""
    tree, dag = make_data(TINY, False), make_data(TINY, True)
    quick = {"max_iter": 3, "tol": 1e-2}

    def fitted(name: str, data: Data, y: Any, **options: Any) -> Any:
        return getattr(nhsvm, name)(data.hierarchy, **quick | options).fit(data.X, y)

    pipeline = make_pipeline(TfidfVectorizer(), nhsvm.NHSVM(C=10.0, **quick))
    pipeline.fit(TEXTS, ["dog", "cat", "oak", "dog", "cat", "oak"])
    wide = fitted("NHSVM", tree, tree.y)
    with_sets = fitted("NHSVM", dag, dag.sets, probability=True, offsets="f1_micro", cv=2)
    return {
        "one-table": (wide, tree.X, None),
        "one-rows": (fitted("NHSVM", tree, tree.y, memory_limit="1.5kB"), tree.X, None),
        "one-dense": (nhsvm.HSVM(tree.hierarchy, **quick).fit(tree.X.toarray(), tree.y), tree.X.toarray(), None),
        "one-float16": (wide, tree.X, "float16"),
        "one-int8": (wide, tree.X, "int8"),
        "one-probability": (fitted("FlatSVM", tree, tree.y, probability=True, cv=2), tree.X, None),
        "one-hrsvm": (fitted("HRSVM", tree, tree.y), tree.X, None),
        "sets-dag": (with_sets, dag.X, None),
        "sets-ssvm": (fitted("SSVM", tree, tree.sets), tree.X, None),
        "texts": (pipeline, TEXTS, None),
    }


def make_files() -> None:
    """Write the files, and what their models answer."""
    FILES.mkdir(exist_ok=True)
    asked = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (model, X, precision) in file_models().items():
            path = FILES / f"{name}.nhsvm"
            nhsvm.save(model, path, precision=precision, note={"made": "for tests"})
            found = nhsvm.load(path)
            asked[name] = {"answers": answers(found, X), "scores": np.round(found.decision_function(X), 4).tolist()}
    (FILES / "answers.json").write_text(json.dumps(asked, indent=0) + "\n")
